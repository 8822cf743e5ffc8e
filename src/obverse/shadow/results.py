"""What a survey of a net's shadows found, as values to write and read back. Not for measuring: see survey."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from .._core import Record, read_record
from ._words import summary

FORMAT = 1
NAME = "shadow.json"
QUANTITIES = ("agreement", "error", "cosine")


def _is_share(value: float | None) -> bool:
    return value is None or 0 <= value <= 1


def _shares(one: Reading) -> tuple[float | None, ...]:
    return one.agreement, one.chance, one.silent, one.found, one.found_pixels


def _errors(one: Reading) -> tuple[float | None, ...]:
    return (
        *(one.error, one.varying, one.error_se, one.centred_se),
        *(one.spread, one.unrelated, one.blank),
    )


@dataclass(frozen=True)
class Reading(Record):
    """What the shadows of one layer are worth, over all inputs; None where that cannot be said.

    `agreement`: the share of inputs whose shadow the net gives the label of the input. `chance`: the same if
    the labels of the shadows were dealt to the inputs at random. `error`: Σ‖ĥ − h‖² / Σ‖h‖²; `varying`: the
    same with the mean of h in place of ĥ, so that an error as large says nothing of the input. `cosine`: of
    x and x̃, the mean over inputs, 0 for a shadow of zeros. `silent`: the share of such shadows.

    What is kept of each input, None in older files: `found` and `found_pixels` are the shares of inputs that
    are found again among `Survey.among`: ĥ is nearer to h of its own input, or x̃ to its own input, than to
    any other's. `centred` is the cosine after the mean input is taken off both. `error_se` and `centred_se`
    are standard errors over inputs. `spread`: how far two samples of one h are apart, over how far two
    inputs are (None where nothing is drawn). Errors to compare with: `unrelated`, of h of the next input in
    place of ĥ, and `blank`, of h of the mean input.
    """

    agreement: float | None
    chance: float | None
    error: float | None
    varying: float | None
    cosine: float | None
    silent: float
    found: float | None = None
    found_pixels: float | None = None
    centred: float | None = None
    error_se: float | None = None
    centred_se: float | None = None
    spread: float | None = None
    unrelated: float | None = None
    blank: float | None = None

    checks: ClassVar[Any] = (
        ("shares from 0 to 1", lambda one: all(map(_is_share, _shares(one)))),
        (
            "errors of at least 0",
            lambda one: all(error is None or error >= 0 for error in _errors(one)),
        ),
    )


@dataclass(frozen=True)
class LayerSurvey(Record):
    """One layer; the scales are those at keep = 1, None where the layer has none. `level` is the factor for
    the whole way down from it that calibration found beyond the scales of the layers on the way."""

    name: str
    shape: tuple[int, ...]  # of one h
    scale: float | None
    theory_scale: float | None
    level: float | None
    own: Reading
    shuffled: Reading
    untrained: Reading | None = None  # of the net with fresh random weights, for the fitted reverse


@dataclass(frozen=True)
class Survey(Record):
    """The shadows of every layer of one net. `test_error` is that on the inputs used, where labels are known.

    `switches` and `match_norm`: the positions of the maxima in max pooling, or the norm, were borrowed from
    each x, so that the shadows are not functions of h alone.
    """

    model: str
    weights: str  # where they come from; "" where that is not known
    random_weights: bool
    data: str
    samples: int
    input_shape: tuple[int, ...]
    test_error: float | None
    calibrated: bool
    keep: float
    refine: int
    smooth: bool
    match_norm: bool
    switches: bool
    seed: int
    layers: tuple[LayerSurvey, ...]
    versions: dict[str, str]
    seconds: float
    reverse: str = "transpose"
    among: int = 0  # inputs among which one is found again; 0 in older files

    checks: ClassVar[Any] = (
        ("at least one layer", lambda one: len(one.layers) > 0),
        ("a test error as a share", lambda one: _is_share(one.test_error)),
        ("a reverse, transpose or fitted", lambda one: one.reverse in ("transpose", "fitted")),
    )

    def __str__(self) -> str:
        form = "{:<24} {:>10} {:>8} {:>8} {:>8} {:>8} {:>8}"
        lines = [form.format("layer", "same label", "shuffled", "error", "shuffled", "cosine", "shuffled")]
        for one in self.layers:
            pairs = [(getattr(one.own, name), getattr(one.shuffled, name)) for name in QUANTITIES]
            numbers = ["–" if value is None else f"{value:.3g}" for pair in pairs for value in pair]
            lines.append(form.format(one.name, *numbers))
        return "\n".join([summary(self), *lines])


def read_survey(path: Path) -> Survey:
    """The survey in a file, or in the shadow.json of a directory."""
    return read_record(path / NAME if path.is_dir() else path, Survey, "survey of shadows", FORMAT)
