"""A number with its standard error, and progress over several passes. Not for anything that is measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .._core import Progress, Record

_PART = 1000  # ticks of a pass


@dataclass(frozen=True)
class Estimate(Record):
    """`error` is a standard error; the function that made it says by what method."""

    value: float
    error: float

    checks: ClassVar[Any] = (("a standard error of at least 0", lambda one: one.error >= 0),)

    def __str__(self) -> str:
        return f"{self.value:.3g} ± {self.error:.2g}"


def one_pass(progress: Progress | None, number: int, passes: int) -> Progress | None:
    """What pass `number` (from 0) of several calls: `progress` sees one progress from start to end."""
    if progress is None:
        return None

    def tell(done: int, total: int, what: str) -> None:
        progress(number * _PART + done * _PART // total, passes * _PART, what)

    return tell
