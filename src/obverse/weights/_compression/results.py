"""What a compression did, as plain values. Not for doing it, nor for showing it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ..._core import Record, counted, read_record
from .._ablation.results import Measure, Score, show
from ..results import Number


@dataclass(frozen=True)
class LayerCompression(Record):
    """One weight: replaced by two thin layers where `rank` is given, and otherwise as it was."""

    checks: ClassVar[tuple[tuple[str, Callable[[Any], bool]], ...]] = (
        ("rows and columns ≥ 1", lambda record: min(record.rows, record.columns) >= 1),
        (
            "a rank from 1 to the shorter side, or null",
            lambda r: r.rank is None or 1 <= r.rank <= min(r.rows, r.columns),
        ),
        ("weights ≥ 0", lambda record: min(record.before, record.after) >= 0),
    )
    name: str
    kind: str
    rows: int
    columns: int
    rank: int | None
    before: int  # weights, without the bias
    after: int
    note: str  # why it stays, or what the decomposition says


@dataclass(frozen=True)
class Compression(Record):
    """Which layers were replaced, what it saved and, if inputs were given, what it cost."""

    checks: ClassVar[tuple[tuple[str, Callable[[Any], bool]], ...]] = (
        ("parameters ≥ 0", lambda record: min(record.parameters_before, record.parameters_after) >= 0),
        (
            "a measure with its scores",
            lambda r: (r.measure is None) == (r.before is None) == (r.after is None),
        ),
    )
    model: str
    layers: tuple[LayerCompression, ...]
    parameters_before: int  # of the whole net
    parameters_after: int
    measure: Measure | None
    inputs: int
    before: Number | None  # mean and standard error
    after: Score | None  # with the paired change
    recalibration_inputs: int  # 0: batch norms keep their statistics
    settings: dict[str, Any]
    versions: dict[str, str]
    seconds: float

    @property
    def saved(self) -> int:
        """Parameters."""
        return self.parameters_before - self.parameters_after

    @property
    def replaced(self) -> tuple[LayerCompression, ...]:
        return tuple(layer for layer in self.layers if layer.rank is not None)

    @property
    def summary(self) -> str:
        """One line about the whole net."""
        count = len(self.replaced)
        if not count:
            said = f"no layer of {len(self.layers)} pays: {self.parameters_before:,} parameters stay"
        else:
            share = 100 * self.saved / max(self.parameters_before, 1)
            said = (
                f"{counted(count, 'layer')} of {len(self.layers)} replaced by two thin ones: "
                f"{self.parameters_before:,} → {self.parameters_after:,} parameters ({share:.1f} % saved)"
            )
        if self.measure is None or self.before is None or self.after is None:
            return said
        ends = [show(self.measure, value) for value in (self.before.value, self.after.value)]
        return f"{said}; {self.measure} {ends[0]} → {ends[1]}"

    def __str__(self) -> str:
        lines = [
            f"  {layer.name} ({layer.rows} × {layer.columns}): "
            + (layer.note if layer.rank is None else f"rank {layer.rank}, {layer.before:,} → {layer.after:,}")
            for layer in self.layers
        ]
        return "\n".join([self.summary, *lines])


FORMAT = 1
NAME = "compression.json"


def read_compression(path: Path) -> Compression:
    """The compression in a file, or in the compression.json of a directory."""
    file = Path(path)
    return read_record(file / NAME if file.is_dir() else file, Compression, "compression", FORMAT)
