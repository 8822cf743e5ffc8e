"""Put the verdicts of all claims into docs/claims.md and docs/papers.md, between their marks.

python -m experiments.claims.page
"""

from __future__ import annotations

from collections import Counter

from scipy.optimize import brentq

from obverse.claims import Outcome, read_sweep
from obverse.claims.alm._evolution import critical_ratio, evolve

from .._lab.places import DOCS
from .._lab.tables import put_between_marks, table
from ..zoo.verdicts import verdict_table
from . import papers
from .run import RESULTS


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


def verdicts() -> str:
    first = read_sweep(RESULTS / "reversibility")
    reversible = [*first, *read_sweep(RESULTS / "trained"), *read_sweep(RESULTS / "hypothesis")]
    identity, ladder, generative, tools = (
        list(read_sweep(RESULTS / name)) for name in ("identity", "ladder", "generative", "tools")
    )
    outcomes = reversible + identity + ladder + generative + tools
    failed = [outcome for outcome in outcomes if outcome.verdict == "failed"]
    found = Counter(outcome.verdict for outcome in outcomes)
    counts = ", ".join(f"{count} {verdict}" for verdict, count in found.most_common())
    heads = ["claim", "about", "reading", "verdict", "found"]
    return f"""{len(outcomes)} claims at full settings, seed {first.seed}: {counts}.

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

### Tools in use

Rules that tools apply to trained weights, and what they do on weights whose parts are known; more in
[selection](selection.md).

{table(heads, list(map(row, tools)))}

### The hypothesis on public nets

The claims `alm.hypothesis.*` above are about nets trained on digits. The same quantities and lines on
[the zoo](zoo.md) of public nets, which says how to read them:

{verdict_table()}

### How deep does it go?

By the recursion of `alm.depth.evolution`, for wide layers with a quarter of the top active: the ratio
k_(j−1)/k_j of neighbouring sparsities from which the squared error at the top is below half of ‖h‖², by depth
and by width n_j/k_j of the hidden layers; and the ratio from which depth has no end, up to a common factor of
h̃ (this last one is not confirmed by simulation: the layers it needs are too wide).

{depths()}

### Why those that fail do

{chr(10).join(f"- `{outcome.id}`: {outcome.remark}" for outcome in failed)}
"""


def page() -> None:
    put_between_marks(DOCS / "claims.md", verdicts())
    put_between_marks(DOCS / "papers.md", papers.text())


if __name__ == "__main__":
    page()
