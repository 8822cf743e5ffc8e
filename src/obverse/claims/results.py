"""What running claims gives, as plain values. Not for computing them, nor for showing them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from .._core import Record

Value = int | float | str | bool
Setting = Mapping[str, Any]  # of Value
Verdict = Literal["held", "failed", "inconclusive", "crashed"]
Kind = Literal["value", "bound", "rate", "exponent"]  # what a prediction is; a rate's constant is free
VERDICTS: tuple[Verdict, ...] = ("held", "failed", "inconclusive", "crashed")


@dataclass(frozen=True)
class Point:
    """The trials at one setting beside the prediction: what a rule judges."""

    setting: Setting
    predicted: float
    values: tuple[float, ...]

    @cached_property
    def mean(self) -> float:
        return sum(self.values) / len(self.values)

    @cached_property
    def error(self) -> float:
        """The standard error of the mean; infinite for one trial, which says nothing of its spread."""
        count = len(self.values)
        if count < 2:
            return float("inf")
        squares = sum((value - self.mean) ** 2 for value in self.values)
        return float((squares / (count - 1) / count) ** 0.5)


@dataclass(frozen=True)
class Measured(Record):
    """The trials of one setting, as the measurement gave them; `crash` is the traceback where it did not."""

    key: str  # of the measurement, its setting, its seed, and the code that it imports
    setting: dict[str, Any]
    values: tuple[float, ...]
    seconds: float
    crash: str = ""


@dataclass(frozen=True)
class Judged(Record):
    """One setting of a claim, judged: `low` and `high` bound what was measured (see the rule)."""

    setting: dict[str, Any]
    predicted: float
    count: int  # trials
    mean: float
    error: float | None  # standard error of the mean; None for one trial
    low: float
    high: float
    verdict: Verdict | None  # None where the rule judges the grid as a whole
    note: str  # a few words: "1.2 standard errors", "within in 200 of 200"
    seconds: float = 0.0


@dataclass(frozen=True)
class Outcome(Record):
    """A claim's verdict, the numbers it rests on, its seed and its time."""

    id: str
    title: str
    statement: str
    source: str
    reading: str
    twin: str
    remark: str
    quantity: str
    axis: str
    series: str
    kind: Kind
    rule: str  # what the verdict means
    expected: Verdict
    verdict: Verdict
    sentence: str
    numbers: dict[str, float]
    points: tuple[Judged, ...]
    curve: tuple[tuple[float, float], ...]  # fitted rate over the axis, where the rule fits one
    crash: str
    quick: bool
    seed: int
    seconds: float
    place: str = ""  # of what is printed: a few of its words, the section, the line

    @property
    def surprising(self) -> bool:
        """Another verdict than was found before; for want of trials, as in a quick run, is no surprise."""
        return self.verdict != self.expected and not (self.quick and self.verdict == "inconclusive")

    def __str__(self) -> str:
        return f"{self.id}: {self.verdict}; {self.sentence}"


@dataclass(frozen=True)
class Sweep(Record):
    """The outcomes of several claims."""

    outcomes: tuple[Outcome, ...]
    seed: int
    quick: bool
    seconds: float
    versions: dict[str, str]

    def __iter__(self) -> Iterator[Outcome]:
        return iter(self.outcomes)

    def count(self, verdict: Verdict) -> int:
        return sum(outcome.verdict == verdict for outcome in self.outcomes)

    def __str__(self) -> str:
        return "\n".join(map(str, self.outcomes))
