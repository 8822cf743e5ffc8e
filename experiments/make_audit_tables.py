"""Put the tables of audit_trained_nets into docs/audit.md, between its marks: no hand-made numbers.

python experiments/make_audit_tables.py
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import audit_trained_nets as nets
from make_results import DOCS, percent, put_between_marks, table

from obverse.training.compare import mean_and_se

Record = dict[str, Any]
Row = dict[str, Any]
Cell = Callable[[list[Row]], str]  # of one layer, a row a seed

ASPECTS = ("entries", "offsets", "spectrum", "norms", "correlations", "blocks", "recovery")


def number(column: str, digits: int = 3) -> Cell:
    """Mean over seeds, and the standard error where it shows."""

    def cell(rows: list[Row]) -> str:
        values = [row[column] for row in rows if row[column] is not None]
        if not values:
            return "–"
        mean, se = mean_and_se(values)
        tail = f" ± {se:.{digits}f}" if se is not None and round(se, digits) > 0 else ""
        return f"{round(mean, digits) + 0.0:.{digits}f}{tail}"  # no minus sign before a zero

    return cell


def word(column: str) -> Cell:
    """What most seeds say."""
    return lambda rows: Counter(row[column] for row in rows).most_common(1)[0][0]


def ratio(prefix: str) -> Cell:
    """Mean over seeds, and the 95 % intervals of all seeds together."""

    def cell(rows: list[Row]) -> str:
        if rows[0][f"{prefix}_ratio"] is None:
            return "–"
        low = min(row[f"{prefix}_ratio_low"] for row in rows)
        high = max(row[f"{prefix}_ratio_high"] for row in rows)
        return f"{mean(rows, f'{prefix}_ratio'):.2f} ({low:.2f} … {high:.2f})"

    return cell


def conditions(rows: list[Row]) -> str:
    """k and t, and whether k < t < k² for their means."""
    k, t = mean(rows, "data_recovery_sparsity"), mean(rows, "data_recovery_kept")
    return f"k {k:.0f}, t {t:.0f}: {'yes' if k < t < k * k else 'no'}"


def peaks(rows: list[Row]) -> str:
    return f"{mean(rows, 'peak'):.2f} / {mean(rows, 'peak_bound'):.2f}"


def mean(rows: list[Row], column: str) -> float:
    return sum(row[column] for row in rows) / len(rows)


MEASURES: dict[str, Cell] = {
    "entries: KS distance to a normal law": number("entries_ks"),
    "entries: best law": word("entries_best_law"),
    "entries: excess kurtosis": number("entries_kurtosis", 2),
    "offsets: abs(mean) / std": number("offsets_ratio", 2),
    "offsets: share within 10 % of the mean": number("offsets_near_mean", 2),
    "spectrum: distance to Marchenko–Pastur": number("spectrum_distance"),
    "spectrum: the same at equal norms": number("spectrum_rescaled"),
    "spikes": number("spikes", 1),
    "spikes: share of the energy": number("spike_share"),
    "norms of rows: spread": number("row_norms", 2),
    "norms of columns: spread": number("column_norms", 2),
    "cosines of rows: rms × √length": number("row_cosine_rms", 2),
    "cosines of columns: rms × √length": number("column_cosine_rms", 2),
    "random h: recovery error": number("recovery_error"),
    "random h: layer ÷ shuffled": ratio("recovery"),
    "own h: recovery error": number("data_recovery_error"),
    "own h: layer ÷ shuffled": ratio("data_recovery"),
    "own h: k < t < k²": conditions,
    "own h: ‖h‖∞/‖h‖ and √(log k / k)": peaks,
}


def of_layer(records: Sequence[Record], moment: str, name: str) -> list[Row]:
    return [row for record in records for row in record[moment] if row["layer"] == name]


def judged(records: Sequence[Record]) -> list[str]:
    return [row["layer"] for row in records[0]["after"] if row["verdict"] != "not judged"]


def overview(variants: dict[str, list[Record]]) -> str:
    """How many layers pass each aspect, over all seeds, before → after."""

    def passed(records: list[Record], aspect: str, moment: str) -> str:
        rows = [row for name in judged(records) for row in of_layer(records, moment, name)]
        return f"{sum(aspect not in row['not_random_like'].split(', ') for row in rows)}/{len(rows)}"

    lines = [
        [name, *(f"{passed(rs, aspect, 'before')} → {passed(rs, aspect, 'after')}" for aspect in ASPECTS)]
        for name, rs in variants.items()
    ]
    return table(["layers that pass", *ASPECTS], lines)


def numbers(records: list[Record]) -> str:
    """One column a layer; before → after, or one of them where both read the same."""

    def change(cell: Cell, name: str) -> str:
        before, after = (cell(of_layer(records, moment, name)) for moment in ("before", "after"))
        return after if before == after else f"{before} → {after}"

    layers = judged(records)
    moved = [[record["moved"][name] for record in records] for name in layers]
    lines = [["‖W − W₀‖ / ‖W₀‖", *(f"{mean_and_se(distances)[0]:.2f}" for distances in moved)]]
    lines += [[what, *(change(cell, name) for name in layers)] for what, cell in MEASURES.items()]
    shapes = [of_layer(records, "after", name)[0] for name in layers]
    heads = [f"{row['layer']} ({row['rows']} × {row['columns']})" for row in shapes]
    return table(["", *heads], lines)


def sentences(records: list[Record]) -> str:
    """The verdicts of the first seed in words, and whether the other seeds have the same."""
    lines = []
    for name in judged(records):
        for moment in ("before", "after"):
            rows = of_layer(records, moment, name)
            same = sum(row["verdict"] == rows[0]["verdict"] for row in rows)
            seeds = f"{same} of {len(rows)}"
            lines.append([name, moment, rows[0]["sentence"], seeds])
    return table(["layer", "training", "verdict (seed 0)", "seeds with this verdict"], lines)


def section(name: str, records: list[Record]) -> str:
    variant = nets.VARIANTS[name]
    error = percent([record["test_error"] for record in records])
    return f"""### {name}

{variant.epochs} epochs from a step size of {variant.rate:g}; test error {error} %, {len(records)} seeds.

{numbers(records)}

{sentences(records)}
"""


def main() -> None:
    records = nets.read()
    variants = {
        name: [records[variant.key(seed)] for seed in range(variant.seeds)]
        for name, variant in nets.VARIANTS.items()
    }
    parts = [section(name, found) for name, found in variants.items()]
    text = f"""Before → after training; mean over seeds ± standard error where it shows, brackets the 95 %
intervals of all seeds together. Layers with a side below 32 (the output layers) are not judged. Recovery is
at the sparsity where the layer does worst against its own entries shuffled.
`python experiments/audit_trained_nets.py` runs it.

{overview(variants)}

{chr(10).join(parts)}"""
    put_between_marks(DOCS / "audit.md", text)


if __name__ == "__main__":
    main()
