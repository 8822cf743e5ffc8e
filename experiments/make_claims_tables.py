"""Put the verdicts of experiments/results into docs/claims.md, between its marks: no hand-made numbers.

python experiments/make_claims_tables.py
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from make_results import DOCS, put_between_marks, table
from scipy.optimize import brentq

from obverse.claims import Outcome, read_sweep
from obverse.claims.alm._evolution import critical_ratio, evolve

RESULTS = Path(__file__).parent / "results" / "claims"
LONG = Path(__file__).parent / "results" / "claims-trained"
IDENTITY = Path(__file__).parent / "results" / "claims-identity"
LADDER = Path(__file__).parent / "results" / "claims-ladder"
GENERATIVE = Path(__file__).parent / "results" / "claims-generative"


def row(outcome: Outcome) -> list[str]:
    return [
        f"`{outcome.id}`",
        outcome.title,
        outcome.reading,
        f"**{outcome.verdict}**" if outcome.verdict == "failed" else outcome.verdict,
        outcome.sentence.replace("|", "∣"),
    ]


WIDTHS = (1, 2, 4, 10)
DEPTHS = (1, 2, 3, 4, 6, 8)
WIDE = 1e6  # non-zeros at the top: so many that nothing depends on their number


def top_error(depth: int, ratio: float, width: float) -> float:
    """At the top, a quarter of it active, of layers with k_(j−1) = ratio · k_j and n_j = width · k_j."""
    sparsities = [WIDE * ratio ** (depth - layer) for layer in range(depth + 1)]
    widths = [sparsities[0], *(width * kept for kept in sparsities[1:-1]), 4 * WIDE]
    return evolve(widths, sparsities)[-1].error


def ratio_for(depth: int, width: float, error: float = 0.5) -> float:
    """The ratio of neighbouring sparsities at which this error is reached."""
    return float(brentq(lambda ratio: top_error(depth, ratio, width) - error, 1.01, 200, xtol=1e-3))


def depths() -> str:
    rows = [
        [
            f"{width}",
            *(f"{ratio_for(depth, width):.1f}" for depth in DEPTHS),
            f"{critical_ratio(width):.2f}",
        ]
        for width in WIDTHS
    ]
    return table(["n_j / k_j", *(f"depth {depth}" for depth in DEPTHS), "no end from"], rows)


def main() -> None:
    reversible = [outcome for folder in (RESULTS, LONG) for outcome in read_sweep(folder)]
    identity = list(read_sweep(IDENTITY))
    ladder = list(read_sweep(LADDER))
    generative = list(read_sweep(GENERATIVE))
    outcomes = reversible + identity + ladder + generative
    failed = [outcome for outcome in outcomes if outcome.verdict == "failed"]
    verdicts = Counter(outcome.verdict for outcome in outcomes)
    counts = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())
    heads = ["claim", "about", "reading", "verdict", "found"]
    text = f"""{len(outcomes)} claims at full settings, seed {read_sweep(RESULTS).seed}: {counts}.

### Why are deep nets reversible

{table(heads, list(map(row, reversible)))}

### Identity matters in deep learning

More on these, with pictures: [identity](identity.md).

{table(heads, list(map(row, identity)))}

### A theoretical framework for deep locally connected ReLU network

More on these, with pictures: [the ladder](ladder.md).

{table(heads, list(map(row, ladder)))}

### Theory of Deep Learning: Generative Models

More on these: [diversity](diversity.md), [generators](generators.md).

{table(heads, list(map(row, generative)))}

### How deep does it go?

By the recursion of `alm.depth.evolution`, for wide layers with a quarter of the top active: the ratio
k_(j−1)/k_j of neighbouring sparsities from which the squared error at the top is below half of ‖h‖², by depth
and by width n_j/k_j of the hidden layers; and the ratio from which depth has no end, up to a common factor of
h̃ (this last one is not confirmed by simulation: the layers it needs are too wide).

{depths()}

### Why those that fail do

{chr(10).join(f"- `{outcome.id}`: {outcome.remark}" for outcome in failed)}
"""
    put_between_marks(DOCS / "claims.md", text)


if __name__ == "__main__":
    main()
