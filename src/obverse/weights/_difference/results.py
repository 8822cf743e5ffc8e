"""What changed from one checkpoint to another, as plain values. Not for measuring or showing it."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from ..._core import Record, counted, p_value, printable, read_record, record_text
from ..results import Decomposition

Change = Literal[
    "identical",
    "nothing but rounding",
    "scaled",
    "rows in another order",
    "in a few rows",
    "in a few columns",
    "directions",
    "dense",
    "scattered",
    "changed",
    "cannot tell",
    "not comparable",
]
CHANGES: tuple[Change, ...] = (
    "dense",
    "scattered",
    "directions",
    "in a few rows",
    "in a few columns",
    "scaled",
    "rows in another order",
    "changed",
    "cannot tell",
    "not comparable",
    "nothing but rounding",
    "identical",
)
UNCHANGED: tuple[Change, ...] = ("identical", "nothing but rounding")
UNKNOWN: tuple[Change, ...] = ("cannot tell", "not comparable")
FEW = 8  # directions that the summary calls few


@dataclass(frozen=True)
class LayerDifference(Record):
    """From base to tuned, one matrix; what was not measured is None."""

    checks: ClassVar[tuple[tuple[str, Callable[[Any], bool]], ...]] = (
        ("rows and columns ≥ 1", lambda record: min(record.rows, record.columns) >= 1),
        ("rank ≥ 0", lambda record: record.rank is None or record.rank >= 0),
    )
    name: str  # in tuned
    base_name: str
    kind: str
    rows: int  # of tuned
    columns: int
    base_rows: int
    base_columns: int
    change: Change
    sentence: str
    stored: tuple[str, str] = ("", "")  # format of base and of tuned
    changed: int | None = None  # numbers that differ
    changed_rows: int | None = None  # rows with one that differs
    changed_columns: int | None = None
    size: float | None = None  # ‖tuned − base‖ / ‖base‖, Frobenius
    rank: int | None = None  # directions that stand out of the change; 0 where there are none
    rank_is_bound: bool = False  # there may be more
    strengths: tuple[float, ...] = ()  # their singular values, as estimated, descending; the largest 64
    share: float | None = None  # of the energy of the change that lies in them
    visible_from: float | None = None  # about the singular value from which on a direction would have shown
    factor: float | None = None  # tuned = factor · base
    added_rows: int = 0  # beyond those of base: not compared
    parts: Decomposition | None = None  # of the change

    @property
    def is_changed(self) -> bool:
        return self.change not in (*UNCHANGED, *UNKNOWN)

    def __str__(self) -> str:
        return f"{self.name} ({self.rows} × {self.columns}): {self.sentence}"


@dataclass(frozen=True)
class LayerLineage(Record):
    """How alike the matching rows of a layer are, beside rows matched at random."""

    name: str
    rows: int  # compared
    cosine: float  # of matching rows, on average, without what all rows share
    p: float  # of rows that match no better than at random: (1 + #≥) / (1 + N)


@dataclass(frozen=True)
class Lineage(Record):
    """Do two checkpoints come from one initialization?"""

    p: float | None  # None: no layer to ask
    layers: tuple[LayerLineage, ...]
    alpha: float
    draws: int

    @property
    def sentence(self) -> str:
        if self.p is None:
            return "whether they are of one lineage cannot be told: no layer with hidden units of its own"
        mean = sum(one.cosine for one in self.layers) / len(self.layers)
        asked = f"mean cosine {mean:.2f} in {counted(len(self.layers), 'layer')}, p {_equals(self.p)}"
        if self.p <= self.alpha:
            return f"of one lineage: matching hidden units are alike ({asked})"
        return (
            "no sign of a common lineage: matching hidden units are not clearly more alike than any others "
            f"({asked}); between unrelated nets a difference says little"
        )

    def __str__(self) -> str:
        return self.sentence


def _equals(p: float) -> str:
    text = p_value(p)
    return text if text.startswith("<") else f"= {text}"


@dataclass(frozen=True)
class Difference(Record):
    """What changed from base to tuned, layer by layer, and whether they are related."""

    base: str
    tuned: str
    layers: tuple[LayerDifference, ...]
    only_base: tuple[str, ...]
    only_tuned: tuple[str, ...]
    notes: tuple[str, ...]
    lineage: Lineage
    settings: dict[str, Any]
    versions: dict[str, str]
    seconds: float

    def count(self, *changes: Change) -> int:
        return sum(layer.change in changes for layer in self.layers)

    @property
    def ranks(self) -> dict[str, int]:
        """How many directions the change of each layer has, where they were counted."""
        return {layer.name: layer.rank for layer in self.layers if layer.rank is not None}

    @property
    def summary(self) -> str:
        """One line about all layers."""
        if not self.layers:
            return "from base to tuned: no layer is in both"
        moved = [layer for layer in self.layers if layer.is_changed]
        said = f"from base to tuned: {len(moved)} of {counted(len(self.layers), 'layer')} changed"
        few = sum(layer.change == "directions" and (layer.rank or 0) <= FEW for layer in moved)
        kinds = Counter(layer.change for layer in moved)
        more = [f"{few} by at most {FEW} directions"] if few else []
        if kinds["directions"] > few:
            more.append(f"{kinds['directions'] - few} by more than {FEW} directions")
        more += [
            f"{kinds[one]} {one}" for one in CHANGES if kinds[one] and one not in ("directions", "changed")
        ]
        if kinds["changed"]:
            more.append(f"{kinds['changed']} not taken apart")
        parts = [said + (f" ({', '.join(more)})" if more else "")]
        same = [f"{self.count(one)} {one}" for one in UNCHANGED if self.count(one)]
        parts += [", ".join(same)] if same else []
        parts += [f"{self.count(one)} {one}" for one in UNKNOWN if self.count(one)]
        return "; ".join(parts)

    def __iter__(self) -> Iterator[LayerDifference]:
        return iter(self.layers)

    def __str__(self) -> str:
        lines = [self.summary, self.lineage.sentence, *(f"  {layer}" for layer in self.layers)]
        lines += [f"  {name}: only in base" for name in self.only_base]
        lines += [f"  {name}: only in tuned" for name in self.only_tuned]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])


FORMAT = 1
NAME = "difference.json"
TABLE = "difference.csv"
_COLUMNS = (
    "name",
    "base_name",
    "kind",
    "rows",
    "columns",
    "base_rows",
    "base_columns",
    "change",
    "changed",
    "changed_rows",
    "changed_columns",
    "size",
    "rank",
    "rank_is_bound",
    "share",
    "visible_from",
    "factor",
    "added_rows",
    "sentence",
)


def difference_text(found: Difference) -> str:
    return record_text(found, FORMAT)


def read_difference(path: Path) -> Difference:
    """The difference in a file, or in the difference.json of a directory."""
    file = Path(path)
    return read_record(file / NAME if file.is_dir() else file, Difference, "difference", FORMAT)


def to_csv(found: Difference) -> str:
    """One row a layer; a cell that a spreadsheet would run begins with a quote."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("layer", *_COLUMNS[1:]))
    for layer in found.layers:
        writer.writerow([_cell(getattr(layer, name)) for name in _COLUMNS])
    return out.getvalue()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        return str(value)
    text = printable(value)
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text
