"""What an ablation says, as plain values. Not for computing them, nor for showing them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from ..._core import Record, counted, listed, read_record
from ..results import Number

Measure = Literal["accuracy", "agreement", "loss"]
Treatment = Literal[
    "signal only",
    "bulk resampled",
    "bulk shuffled",
    "signal removed",
    "directions random",
    "random directions removed",
    "noise added",
    "rounded",
]


@dataclass(frozen=True)
class Score(Record):
    """The mean over the inputs, and its change from the untreated net with a paired standard error.

    None where the loss of an input is not finite.
    """

    value: float | None
    change: float | None
    error: float | None


@dataclass(frozen=True)
class Effect(Record):
    """One treatment; `recalibrated` with batch-norm statistics estimated anew, where that was asked for."""

    treatment: Treatment
    score: Score
    recalibrated: Score | None


@dataclass(frozen=True)
class Kept(Record):
    """A point of the curve: so many directions kept (of all layers: this multiple of each layer's rank)."""

    checks: ClassVar[tuple[tuple[str, Callable[[Any], bool]], ...]] = (
        ("directions ≥ 0", lambda record: record.directions >= 0),
    )
    directions: float
    score: Score


@dataclass(frozen=True)
class LayerAblation(Record):
    """One layer, the others untouched."""

    checks: ClassVar[tuple[tuple[str, Callable[[Any], bool]], ...]] = (
        ("rows and columns ≥ 1", lambda record: min(record.rows, record.columns) >= 1),
        ("a rank from 0 to the shorter side", lambda r: 0 <= r.rank <= min(r.rows, r.columns)),
    )
    name: str
    kind: str
    rows: int
    columns: int
    rank: int  # directions of the signal
    signal_share: float | None  # of the energy without profile; None where nothing can be told
    sentence: str  # what the decomposition says
    bits: float | None  # of the entries where they are rounded; None where nothing was
    effects: tuple[Effect, ...]  # none where the matrix is too small to be taken apart
    curve: tuple[Kept, ...]  # by the number of directions kept
    needed: float | None  # directions at which the curve bends; None where it has no bend

    def effect(self, treatment: Treatment) -> Effect | None:
        return next((one for one in self.effects if one.treatment == treatment), None)

    @property
    def at_rank(self) -> Score | None:
        """With just the signal's directions kept, at their own singular values."""
        return next((one.score for one in self.curve if one.directions == self.rank), None)


@dataclass(frozen=True)
class Ablation(Record):
    """What a net needs of its layers: its score with each treated, and with all at once."""

    model: str
    measure: Measure
    inputs: int
    untreated: Number  # mean and standard error
    recalibrated: Score | None  # untreated, but with batch-norm statistics estimated anew
    recalibration_inputs: int
    layers: tuple[LayerAblation, ...]
    together: tuple[Effect, ...]  # all layers at once
    together_curve: tuple[Kept, ...]  # by the multiple of each layer's rank that is kept
    correlation: Number | None  # Spearman's, of rank and bend over the layers, with its p-value
    settings: dict[str, Any]
    versions: dict[str, str]
    seconds: float

    @property
    def treated(self) -> tuple[LayerAblation, ...]:
        return tuple(layer for layer in self.layers if layer.effects)

    def effect(self, treatment: Treatment) -> Effect | None:
        """Of all layers at once."""
        return next((one for one in self.together if one.treatment == treatment), None)

    @property
    def summary(self) -> str:
        """One line about the whole net."""
        if not self.treated:
            return f"nothing to treat: no layer of {len(self.layers)} could be taken apart"
        said = [f"{show(self.measure, self.untreated.value)} untreated"]
        for treatment, words in (
            ("signal only", "with the signal alone"),
            ("bulk resampled", "with a fresh random bulk"),
            ("signal removed", "without the signal"),
        ):
            one = self.effect(treatment)  # type: ignore[arg-type]
            if one is not None:
                said.append(f"{show(self.measure, one.score.value)} {words}")
        count = len(self.treated)
        which = f"{counted(count, 'layer')} at once" if count > 1 else "1 layer"
        return f"{self.measure}, {which}: {listed(said)}"

    def __iter__(self) -> Iterator[LayerAblation]:
        return iter(self.layers)

    def __str__(self) -> str:
        lines = [self.summary]
        for layer in self.layers:
            numbers = ", ".join(
                f"{one.treatment} {show(self.measure, one.score.value)}" for one in layer.effects
            )
            lines.append(f"  {layer.name} (k = {layer.rank}): {numbers or layer.sentence}")
        return "\n".join(lines)


def show(measure: Measure, value: float | None) -> str:
    """A score as a person writes it: shares in percent."""
    if value is None:
        return "not finite"
    return f"{value:.4g}" if measure == "loss" else f"{100 * value:.1f} %"


FORMAT = 1
NAME = "ablation.json"


def read_ablation(path: Path) -> Ablation:
    """The ablation in a file, or in the ablation.json of a directory."""
    file = Path(path)
    return read_record(file / NAME if file.is_dir() else file, Ablation, "ablation", FORMAT)
