"""Put the tables of trained nets into docs/audit.md, between its marks: no hand-made numbers.

python -m experiments.audit.page
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from obverse._core import counted
from obverse._core.statistics import mean_and_se

from .._lab.places import DOCS
from .._lab.tables import percent, put_between_marks, table
from . import run as nets

Record = dict[str, Any]
Row = dict[str, Any]
Cell = Callable[[list[Row]], str]  # of one layer, one row per seed


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def number(column: str, digits: int) -> Cell:
    """Mean over seeds, and the standard error where it shows."""

    def cell(rows: list[Row]) -> str:
        values = [row[column] for row in rows if row[column] is not None]
        if not values:
            return "–"
        value, se = mean_and_se(values)
        tail = f" ± {se:.{digits}f}" if se is not None and round(se, digits) > 0 else ""
        return f"{round(value, digits) + 0.0:.{digits}f}{tail}"  # no minus sign before a zero

    return cell


def share(column: str) -> Cell:
    return lambda rows: f"{100 * mean([row[column] for row in rows]):.0f} %"


def word(column: str) -> Cell:
    """What the seeds say, the commonest first."""

    def cell(rows: list[Row]) -> str:
        found = Counter(row[column] for row in rows).most_common()
        return found[0][0] if len(found) == 1 else ", ".join(f"{words} ({many})" for words, many in found)

    return cell


def ratio(prefix: str) -> Cell:
    """Mean over seeds, and the lowest and highest ends of their 95 % intervals."""

    def cell(rows: list[Row]) -> str:
        if any(row[f"{prefix}_ratio"] is None for row in rows):
            return "–"
        low = min(row[f"{prefix}_ratio_low"] for row in rows)
        high = max(row[f"{prefix}_ratio_high"] for row in rows)
        return f"{mean([row[f'{prefix}_ratio'] for row in rows]):.2f} ({low:.2f} … {high:.2f})"

    return cell


def cosines(rows: list[Row]) -> str:
    return f"{mean([max(row['row_cosine_rms'], row['column_cosine_rms']) for row in rows]):.2f}"


def directions(rows: list[Row]) -> str:
    return f"{mean([row['rank'] for row in rows]):.0f} of {min(rows[0]['rows'], rows[0]['columns'])}"


PARTS: dict[str, Cell] = {
    "verdict": word("verdict"),
    "directions": directions,
    "share of the signal": share("signal_share"),
    "random share": share("random_share"),
    "bulk’s distance": number("distance", 3),
}
REMARKS: dict[str, Cell] = {
    "distribution that fits the entries best": word("entries_best_law"),
    "distance to a normal distribution": number("entries_ks", 3),
    "biases: abs(mean) / std": number("offsets_ratio", 2),
    "biases within 10 % of the mean": share("offsets_near_mean"),
    "cosines ÷ chance": cosines,
    "random h: layer ÷ shuffled": ratio("recovery"),
    "own h: layer ÷ shuffled": ratio("data_recovery"),
}


def of_layer(records: Sequence[Record], moment: str, name: str) -> list[Row]:
    return [row for record in records for row in record[moment] if row["layer"] == name]


def judged(records: Sequence[Record]) -> list[str]:
    return [row["layer"] for row in records[0]["after"] if row["verdict"] != "not judged"]


def change(cell: Cell, records: list[Record], name: str) -> str:
    """Before → after, or one of them where both read the same."""
    before, after = (cell(of_layer(records, moment, name)) for moment in ("before", "after"))
    return after if before == after else f"{before} → {after}"


def layers(variants: dict[str, list[Record]], cells: dict[str, Cell], *, moved: bool = False) -> str:
    lines = []
    for net, records in variants.items():
        for name in judged(records):
            row = of_layer(records, "after", name)[0]
            line = [net, f"{name}, {row['rows']} × {row['columns']}"]
            if moved:
                line.append(f"{mean([record['moved'][name] for record in records]):.2f}")
            lines.append(line + [change(cell, records, name) for cell in cells.values()])
    head = ["net", "layer", *(["moved by"] if moved else []), *cells]
    return table(head, lines)


def needs(variants: dict[str, list[Record]]) -> str:
    """Accuracy with all layers treated at once, over seeds."""
    treatments = list(next(iter(variants.values()))[0]["needed"]["together"])
    lines = []
    for net, records in variants.items():
        found = [record["needed"] for record in records]
        values = [[one["untreated"] for one in found]]
        values += [[one["together"][treatment] for one in found] for treatment in treatments]
        lines.append([net, *map(percent, values)])
    return table(["net", "untreated", *treatments], lines)


def alone(variants: dict[str, list[Record]]) -> str:
    """Change of accuracy with one layer treated, in points; the mean over seeds."""
    treatments = list(next(iter(variants.values()))[0]["needed"]["together"])
    lines = []
    for net, records in variants.items():
        for name in judged(records):
            found = [record["needed"]["layers"][name] for record in records]
            cells = [f"{100 * mean([one[treatment][0] for one in found]):+.1f}" for treatment in treatments]
            lines.append([net, name, *(cell.replace("-", "−") for cell in cells)])
    return table(["net", "layer", *treatments], lines)


def sentences(variants: dict[str, list[Record]]) -> str:
    lines = []
    for net, records in variants.items():
        for name in judged(records):
            lines.append([net, name, of_layer(records[:1], "after", name)[0]["sentence"]])
    return table(["net", "layer", "after training, first seed"], lines)


def nets_in_words(variants: dict[str, list[Record]]) -> str:
    lines = []
    for net, records in variants.items():
        plan = nets.VARIANTS[net]
        error = percent([record["test_error"] for record in records])
        lines.append(
            f"- {net}: {plan.epochs} epochs from a step size of {plan.rate:g}, weight decay {plan.decay:g}; "
            f"test error {error} %, {counted(len(records), 'seed')}."
        )
    lines += [f"- {net}: not measured yet." for net in nets.VARIANTS if net not in variants]
    return "\n".join(lines)


def page() -> None:
    records = nets.read()
    variants: dict[str, list[Record]] = {}
    for name, variant in nets.VARIANTS.items():
        done = [variant.key(seed) for seed in range(variant.seeds) if variant.key(seed) in records]
        if done:
            variants[name] = [records[key] for key in done]
    put_between_marks(
        DOCS / "audit.md",
        f"""The nets:

{nets_in_words(variants)}

Before → after training, means over seeds. The output layers have ten rows and are not judged. “Moved by” is
‖W − W₀‖ ÷ ‖W₀‖.

{layers(variants, PARTS, moved=True)}

{sentences(variants)}

**What the nets need.** Accuracy in %, on {nets.TESTED:,} test inputs, ± standard error over seeds, with all
layers treated at once:

{needs(variants)}

One layer treated, the others as trained; change of accuracy in points:

{alone(variants)}

**The old tests**, which are remarks now. Biases that are all 0, as the MLPs’ before training, count as
constant. Random h are at the sparsity where the layer does surely worst; brackets go from the lowest to the
highest end of the seeds’ 95 % intervals.

{layers(variants, REMARKS)}
""",
    )


if __name__ == "__main__":
    page()
