"""Put the calibration of `decompose` into docs/decompose.md, between its marks: no hand-made numbers.

python -m experiments.parts.page
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scipy.stats import beta

from obverse.weights import Thresholds
from obverse.weights.results import FAMILY

from .._lab.places import DOCS
from .._lab.result_files import read
from .._lab.tables import put_between_marks, table
from .run import ALPHA, LEVELS, RESULTS

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


def pooled() -> dict[tuple[str, int], dict[str, Any]]:
    """Of each kind of noise and number of rows, all shapes and profiles together."""
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for (kind, shape, _), cell in cells("noise"):
        row = rows.setdefault((kind, int(shape.partition("×")[0])), {"matrices": 0})
        row["matrices"] += cell["matrices"]
        for part, counts in cell["counts"].items():
            before = row.setdefault(part, [0] * len(LEVELS))
            row[part] = [one + more for one, more in zip(before, counts, strict=True)]
    return rows


def share(count: int, matrices: int) -> str:
    """In percent, with its Clopper–Pearson interval at 95 %."""
    low = float(beta.ppf(0.025, count, matrices - count + 1)) if count else 0.0
    high = float(beta.ppf(0.975, count + 1, matrices - count)) if count < matrices else 1.0
    return f"{100 * count / matrices:.1f} ({100 * low:.1f}–{100 * high:.1f})"


def noise_table(part: str, rows: dict[tuple[str, int], dict[str, Any]]) -> str:
    """One row per kind of noise, one column per number of rows, at the default level."""
    sizes = sorted({size for _, size in rows})
    at = LEVELS.index(ALPHA)
    found = []
    for kind in dict.fromkeys(kind for kind, _ in rows):
        line = [rows.get((kind, size)) for size in sizes]
        found.append([kind, *("–" if one is None else share(one[part][at], one["matrices"]) for one in line)])
    return table(["noise", *(f"{size:,} rows" for size in sizes)], found)


def matrices_table(rows: dict[tuple[str, int], dict[str, Any]]) -> str:
    """How many matrices there are of every kind, and which shapes."""
    shapes: dict[int, dict[str, None]] = {}
    for (_, shape, _), _ in cells("noise"):
        shapes.setdefault(int(shape.partition("×")[0]), {})[shape] = None
    lines = []
    for size in sorted(shapes):
        many = {row["matrices"] for (_, rows_), row in rows.items() if rows_ == size}
        counts = f"{min(many):,}" if len(many) == 1 else f"{min(many):,} to {max(many):,}"
        lines.append([f"{size:,}", ", ".join(shapes[size]), counts])
    return table(["rows", "shapes", "matrices per kind"], lines)


def above() -> tuple[list[str], int]:
    """Cells and edges whose rate lies surely above one of the levels, and how many comparisons there were."""
    found, compared = [], 0
    for name, cell in cells("noise"):
        for part in ("upper", "lower", "distance"):
            for count, level in zip(cell["counts"][part], LEVELS, strict=True):
                compared += 1
                if surely_above(count, cell["matrices"], level):
                    found.append(f"{' '.join(name[:2])}, {NAMES[part]}, level {level:g}: {count}")
    return found, compared


def audited_table() -> str:
    """What the whole audit says of checkpoints of noise, one row per kind."""
    contents = read(RESULTS / "audited.json")
    many, rows = contents["settings"]["checkpoints"], []
    for kind, cell in contents["entries"].items():
        layers = cell["layers"]
        false = layers - cell["verdicts"].get("untouched", 0)
        remarks = (
            ", ".join(f"{aspect} {count}" for aspect, count in sorted(cell["remarks"].items())) or "none"
        )
        rows.append([kind, share(false, layers), remarks, f"{cell['named']} of {many}"])
    named = sum(cell["named"] for cell in contents["entries"].values())
    everywhere = many * len(contents["entries"])
    rows.append(["all", "", "", f"{named} of {everywhere}: {share(named, everywhere)} %"])
    return table(
        ["noise", "verdict not *untouched*, %", "false remarks, of as many", "checkpoints named"], rows
    )


def audited_words() -> str:
    settings = read(RESULTS / "audited.json")["settings"]
    layers = settings["layers"]
    return (
        f"The whole audit (`audit`, α = {Thresholds().level:g}) of {settings['checkpoints']} checkpoints of "
        f"{layers} layers of noise per kind, 64 to 256 rows, each layer with one of the three profiles. A "
        "checkpoint is *named* where Holm's rule over its layers says of at least one that it shows more "
        f"than noise does; noise may be in {100 * FAMILY:g} % of checkpoints at most. Remarks about "
        "correlations, blocks and the mean are false of all of these matrices, those about recovery of the "
        "third without scales; what tells of tails or scales is true, and not counted:"
    )


NAMES = {"upper": "upper edge", "lower": "lower edge", "distance": "distance"}


def _in_order(rank: str, times: str, shape: str, _: str) -> tuple[list[int], int, float]:
    sides = [int(side) for side in shape.split("×")]
    return sides, int(rank.split()[1]), float(times.split()[0])


def planted_table() -> str:
    """One row per shape, rank and strength."""
    head = ["shape", "rank", "× threshold", "directions found", "rank exact", "oracle", "best threshold"]
    head += ["too many", "interval or “at least” true", "interval alone", "“at least”", "strength", "error"]
    rows = []
    found_in = sorted(cells("planted"), key=lambda one: _in_order(*one[0]))
    for (rank, times, shape, _), cell in found_in:
        draws = cell["draws"]
        parts = [
            "–" if cell[key] is None else f"{100 * cell[key] / draws:.0f} %"
            for key in ("exact", "oracle", "best", "too many", "true", "interval", "at least")
        ]
        measured = ["–" if cell[key] is None else f"{cell[key]:.3f}" for key in ("strength", "error")]
        found = f"{100 * cell['directions']:.0f} %"
        rows.append([shape, rank.removeprefix("rank "), times.split()[0], found, *parts, *measured])
    return table(head, rows)


def page() -> None:
    rows = pooled()
    exceeded, compared = above()
    text = [
        matrices_table(rows),
        f"False alarms in percent of the matrices at the level {100 * ALPHA:g} %, with Clopper–Pearson "
        "intervals at 95 %, all shapes and profiles of a size together.",
        "The largest singular value:",
        noise_table("upper", rows),
        "The smallest one:",
        noise_table("lower", rows),
        "The distance to the distribution:",
        noise_table("distance", rows),
        f"Of {compared:,} comparisons of a shape's rate with the levels "
        f"{', '.join(f'{level:g}' for level in LEVELS)}, the Clopper–Pearson interval at {DOUBT:g} lies "
        f"above the level in {len(exceeded)} (where all rates are exactly the level, up to 1 of 100 do): "
        + ("; ".join(exceeded) or "none")
        + ".",
        audited_words(),
        audited_table(),
        "Planted signals in normal noise, all directions equally strong, under log-normal profiles of 0.5; "
        "strengths (planted = 1) and errors (of the rebuilt signal, ÷ that of an oracle that knows the best "
        "value for each seen direction) where the rank is exact. The *oracle* knows profile and scale, and "
        "compares each value with Tracy–Widom for as many rows and columns less, at the same level; *best "
        "threshold* is the one fixed line between the singular values that is right most often, chosen with "
        "the answers at hand:",
        planted_table(),
    ]
    put_between_marks(PAGE, "\n\n".join(text) + "\n")


if __name__ == "__main__":
    page()
