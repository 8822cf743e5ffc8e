"""Put the tables of trained nets into docs/audit.md, between its marks: no hand-made numbers.

python -m experiments.audit.page
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from obverse._core.statistics import mean_and_se

from .._lab.places import DOCS
from .._lab.tables import percent, put_between_marks, table
from . import run as nets

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
    """Mean over seeds, and the lowest and highest ends of their 95 % intervals."""

    def cell(rows: list[Row]) -> str:
        if rows[0][f"{prefix}_ratio"] is None:
            return "–"
        low = min(row[f"{prefix}_ratio_low"] for row in rows)
        high = max(row[f"{prefix}_ratio_high"] for row in rows)
        return f"{mean(rows, f'{prefix}_ratio'):.2f} ({low:.2f} … {high:.2f})"

    return cell


def spikes(rows: list[Row]) -> str:
    """The audit counts no further than half of the singular values."""
    most = min(rows[0]["rows"], rows[0]["columns"]) // 2
    return f"≥ {most}" if any(row["spikes"] == most for row in rows) else number("spikes", 1)(rows)


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
    "spikes": spikes,
    "spikes: share of the energy": number("spike_share"),
    "norms of rows: spread": number("row_norms", 2),
    "norms of columns: spread": number("column_norms", 2),
    "cosines of rows: rms × √length": number("row_cosine_rms", 2),
    "cosines of columns: rms × √length": number("column_cosine_rms", 2),
    f"random h, k at {nets.SPARSITY:.0%}: recovery error": number("fixed_error"),
    f"random h, k at {nets.SPARSITY:.0%}: layer ÷ shuffled": ratio("fixed"),
    "random h, worst k: layer ÷ shuffled": ratio("recovery"),
    "own h: recovery error": number("data_recovery_error"),
    "own h: layer ÷ shuffled": ratio("data_recovery"),
    "own h: k < t < k²": conditions,
    "own h: ‖h‖∞/‖h‖ and √(log k / k)": peaks,
}


def of_layer(records: Sequence[Record], moment: str, name: str) -> list[Row]:
    return [_known(row) for record in records for row in record[moment] if row["layer"] == name]


def _known(row: Row) -> Row:
    """A row under the names of the stored ones: audits that take layers apart have others."""
    if "rank" not in row:
        return row
    off = [] if row["verdict"] == "untouched" else ["spectrum"]
    return row | {
        "spectrum_distance": row["distance"],
        "spectrum_rescaled": row["distance"],  # they have no profile
        "spikes": row["rank"],
        "spike_share": row["signal_share"],
        "not_random_like": ", ".join([*off, *row["remarks"].split(", ")]),
    }


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
    """The verdicts in words; where seeds differ, each verdict in the words of the first seed that has it."""
    lines = []
    for name in judged(records):
        for moment in ("before", "after"):
            rows = of_layer(records, moment, name)
            for verdict in dict.fromkeys(row["verdict"] for row in rows):
                seeds = [seed for seed, row in enumerate(rows) if row["verdict"] == verdict]
                lines.append([name, moment, rows[seeds[0]]["sentence"], ", ".join(map(str, seeds))])
    return table(["layer", "training", "verdict, in the words of the first of these seeds", "seeds"], lines)


def section(name: str, records: list[Record]) -> str:
    variant = nets.VARIANTS[name]
    error = percent([record["test_error"] for record in records])
    return f"""### {name}

{variant.epochs} epochs from a step size of {variant.rate:g}; test error {error} %, {len(records)} seeds.

{numbers(records)}

{sentences(records)}
"""


def page() -> None:
    records = nets.read()
    variants = {
        name: [records[variant.key(seed)] for seed in range(variant.seeds)]
        for name, variant in nets.VARIANTS.items()
    }
    parts = [section(name, found) for name, found in variants.items()]
    text = f"""Before → after training; mean over seeds ± standard error where it shows (of 2 or 3 seeds:
a rough one), brackets from the lowest to the highest end of the seeds' 95 % intervals. Layers with a side
below 32 (the output layers) are not judged. The MLP's offsets start at 0, which counts as constant. Random h
have k non-zeros, {nets.SPARSITY:.0%} of the shorter side (at least 2), or as many as the layer does worst at
against its own entries shuffled: a maximum of three, which tends to lie above 1 for random layers too. Own h
are made by the layer itself and not by the shuffled one, so that random layers come out below 1: compare with
the value before training.
`python -m experiments.audit.run` runs it.

{overview(variants)}

{chr(10).join(parts)}"""
    put_between_marks(DOCS / "audit.md", text)


if __name__ == "__main__":
    page()
