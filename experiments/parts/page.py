"""Put the calibration of `decompose` into docs/decompose.md, between its marks: no hand-made numbers.

python -m experiments.parts.page
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scipy.stats import beta

from .._lab.places import DOCS
from .._lab.result_files import read
from .._lab.tables import put_between_marks, table
from .run import LEVELS, RESULTS

PAGE = DOCS / "decompose.md"
DOUBT = 0.01  # one-sided, for each cell


def cells(what: str) -> Iterator[tuple[list[str], dict[str, Any]]]:
    """The parts of each cell's name, and what was counted in it; smaller matrices first."""
    files = sorted(RESULTS.glob(f"{what}_*.json"), key=lambda file: int(file.stem.rpartition("_")[2]))
    for file in files:
        for name, cell in read(file)["entries"].items():
            yield name.split(", "), cell


def surely_above(count: int, matrices: int, level: float) -> bool:
    """Whether the Clopper–Pearson interval lies above the level."""
    return count > 0 and float(beta.ppf(DOUBT, count, matrices - count + 1)) > level


def noise_table() -> str:
    """One row per kind of noise, all its shapes and profiles together."""
    pooled: dict[str, dict[str, Any]] = {}
    for (kind, *_), cell in cells("noise"):
        row = pooled.setdefault(kind, {"matrices": 0, "cells": 0, "above": 0})
        row["matrices"] += cell["matrices"]
        row["cells"] += 1
        for part, counts in cell["counts"].items():
            before = row.setdefault(part, [0] * len(LEVELS))
            row[part] = [one + more for one, more in zip(before, counts, strict=True)]
            if part != "distance":
                row["above"] += any(
                    surely_above(count, cell["matrices"], level)
                    for count, level in zip(counts, LEVELS, strict=True)
                )
    head = ["noise", "matrices", "upper edge", "lower edge", "distance", "edges above the level"]
    rows = []
    for kind, row in pooled.items():
        shares = [" / ".join(f"{100 * n / row['matrices']:.2f}" for n in row[part][:2]) for part in PARTS]
        rows.append([kind, f"{row['matrices']:,}", *shares, f"{row['above']} of {2 * row['cells']}"])
    return table(head, rows)


PARTS = ("upper", "lower", "distance")


def shapes() -> str:
    """Which shapes were run, in words."""
    seen = dict.fromkeys(shape for (_, shape, _), _ in cells("noise"))
    return ", ".join(seen)


def planted_table() -> str:
    """One row per shape, rank and strength."""
    head = ["shape", "rank", "× threshold", "directions found", "rank exact", "strength", "error ÷ oracle's"]
    rows = []
    for (rank, times, shape, _), cell in cells("planted"):
        exact = f"{100 * cell['exact'] / cell['draws']:.0f} %"
        measured = ["–" if cell[key] is None else f"{cell[key]:.3f}" for key in ("strength", "error")]
        found = f"{100 * cell['directions']:.0f} %"
        rows.append([shape, rank.removeprefix("rank "), times.split()[0], found, exact, *measured])
    return table(head, rows)


def page() -> None:
    text = (
        f"Shapes of the noise: {shapes()}. False alarms in percent of the matrices, at the levels 5 % / 1 %; "
        f"the last column counts the edges, per shape and profile, whose rate lies above one of the levels "
        f"{', '.join(f'{level:g}' for level in LEVELS)} by its Clopper–Pearson interval at {DOUBT:g} "
        f"(a rate of exactly the level does so in up to 1 of 100 comparisons).\n\n"
        f"{noise_table()}\n\n"
        "Planted signals in normal noise, all directions equally strong, under log-normal profiles of 0.5; "
        "strengths (planted = 1) and errors where the rank is exact:\n\n"
        f"{planted_table()}\n"
    )
    put_between_marks(PAGE, text)


if __name__ == "__main__":
    page()
