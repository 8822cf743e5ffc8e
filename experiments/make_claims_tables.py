"""Put the verdicts of experiments/results into docs/claims.md, between its marks: no hand-made numbers.

python experiments/make_claims_tables.py
"""

from __future__ import annotations

from pathlib import Path

from make_results import DOCS, put_between_marks, table

from obverse.claims import Outcome
from obverse.claims.store import read_sweep

RESULTS = Path(__file__).parent / "results" / "claims"
LONG = Path(__file__).parent / "results" / "claims-trained"


def row(outcome: Outcome) -> list[str]:
    return [
        f"`{outcome.id}`",
        outcome.title,
        outcome.reading,
        f"**{outcome.verdict}**" if outcome.verdict == "failed" else outcome.verdict,
        outcome.sentence.replace("|", "∣"),
    ]


def main() -> None:
    sweeps = [read_sweep(folder) for folder in (RESULTS, LONG)]
    outcomes = [outcome for sweep in sweeps for outcome in sweep]
    failed = [outcome for outcome in outcomes if outcome.verdict == "failed"]
    counts = ", ".join(
        f"{sum(sweep.count(verdict) for sweep in sweeps)} {verdict}"
        for verdict in ("held", "failed", "inconclusive", "crashed")
        if any(sweep.count(verdict) for sweep in sweeps)
    )
    heads = ["claim", "about", "reading", "verdict", "found"]
    text = f"""{len(outcomes)} claims at full settings, seed {sweeps[0].seed}: {counts}.

{table(heads, list(map(row, outcomes)))}

### Why those that fail do

{chr(10).join(f"- `{outcome.id}`: {outcome.remark}" for outcome in failed)}
"""
    put_between_marks(DOCS / "claims.md", text)


if __name__ == "__main__":
    main()
