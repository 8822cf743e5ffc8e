"""What a claim is: a statement, its source, a prediction, a measurement and a rule. Not how it is run."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from itertools import product
from typing import Any, Literal

import torch
from torch import Tensor

from .._core import BadInput
from ._rules import Rule
from .results import Setting, Value, Verdict

Reading = Literal["as printed", "corrected", "exact", "beyond the paper"]
Measure = Callable[[Setting, torch.Generator], Sequence[float] | Tensor]
Predict = Callable[[Setting], float]
Domain = Callable[[Setting], None]
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def measurement(key: str) -> Callable[[Measure], Measure]:
    """Name a measurement for good: its random numbers and what is kept of it follow this name.

    So a function can be renamed, and its file moved, without changing a published number. A measurement
    without a name goes by its module and its function.
    """

    def name(measure: Measure) -> Measure:
        measure.key = key  # type: ignore[attr-defined]
        return measure

    return name


def per_trial(draw: Callable[[Setting, torch.Generator], float | Tensor]) -> Measure:
    """A measurement from what one trial does: repeated `setting["trials"]` times, with one generator."""

    @wraps(draw)
    def measure(setting: Setting, generator: torch.Generator) -> list[float]:
        return [float(draw(setting, generator)) for _ in range(setting["trials"])]

    return measure


@dataclass(frozen=True)
class Claim:
    """One statement that can be run.

    `measure(setting, generator)` is a simulation that knows nothing of the prediction and returns one number
    a trial, independent of each other; `predict` is a number, or a function of the setting: a closed form, a
    bound or a rate (a rate's constant is free). `rule` says what the two must do for the claim to hold, over
    the whole grid. `domain(setting)` raises `BadInput` where the statement says nothing: there nothing is
    measured or predicted.

    Two claims with the same `measure` judge the same draws: this is how a statement as printed and its
    correction are compared. `measure` must be a function at the top level of its module.
    """

    id: str  # "alm.thm2.3"
    title: str  # a few words
    statement: str  # one sentence, with its symbols
    source: str  # paper, number and equation
    grid: tuple[Setting, ...]
    predict: float | Predict
    measure: Measure
    rule: Rule
    quantity: str  # what is measured, as the label of an axis
    axis: str  # the setting that is drawn along the horizontal axis
    series: str = ""  # the setting that tells curves apart
    quick: tuple[Setting, ...] = ()  # a grid of seconds in place of minutes; by default the full one
    domain: Domain | None = None  # by default every setting
    reading: Reading = "as printed"
    place: str = ""  # of what is printed: a few of its words, the section, the line of the plain text
    twin: str = ""  # the same statement in its other reading
    expected: Verdict = "held"  # what it has been found to be: a change is worth a look
    long: bool = False  # trains on images
    remark: str = ""  # what a reader should know before believing it

    def __post_init__(self) -> None:
        if not _ID.fullmatch(self.id):
            raise BadInput("an id of letters, digits, dots and dashes", got=repr(self.id), do="rename it")
        if not self.grid:
            raise BadInput(f"a grid of settings for {self.id}", got="none", do="give it at least one setting")
        for name in filter(None, (self.axis, self.series)):
            if any(name not in setting for setting in (*self.grid, *self.quick)):
                raise BadInput(f"{name!r} in every setting of {self.id}", got="one without", do="add it")

    def also(self, **changes: Any) -> Claim:
        """Another claim of the same family: as this one, but for what is given. Remarks do not carry over."""
        of_one: dict[str, Any] = {"twin": "", "expected": "held", "remark": "", "place": ""}
        return replace(self, **(of_one | changes))

    def other(self, **changes: Any) -> Claim:
        """The twin of this claim: the same settings and draws, unless changed; each names the other."""
        return self.also(**({"id": self.twin, "twin": self.id} | changes))

    def check(self, setting: Setting) -> None:
        """Raises `BadInput` for a setting that the statement says nothing about."""
        if self.domain is not None:
            self.domain(setting)

    def predicted(self, setting: Setting) -> float:
        """The prediction at a setting of the domain."""
        self.check(setting)
        return float(self.predict(setting) if callable(self.predict) else self.predict)

    def settings(self, quick: bool = False) -> tuple[Setting, ...]:
        return self.quick if quick and self.quick else self.grid


def grid(**choices: Value | Sequence[Value]) -> tuple[Setting, ...]:
    """Every combination of the values given, the last name varying fastest.

    >>> grid(m=100, t=(10, 20))
    ({'m': 100, 't': 10}, {'m': 100, 't': 20})
    """
    lists: list[list[Any]] = [
        list(each) if isinstance(each, Sequence) and not isinstance(each, str) else [each]
        for each in choices.values()
    ]
    return tuple(dict(zip(choices, values, strict=True)) for values in product(*lists))
