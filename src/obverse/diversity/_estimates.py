"""A number with its standard error, and progress over several passes. Not for anything that is measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .._core import Record
from ._distances import OnBlock

_PART = 1000  # ticks of a pass


@dataclass(frozen=True)
class Estimate(Record):
    """`error` is a standard error; whoever made it says by what method."""

    value: float
    error: float

    checks: ClassVar[Any] = (("a standard error of at least 0", lambda one: one.error >= 0),)

    def __str__(self) -> str:
        return f"{self.value:.3g} ± {self.error:.2g}"


def one_pass(on_block: OnBlock | None, number: int, passes: int) -> OnBlock | None:
    """What pass `number` (from 0) of several calls: `on_block` sees one progress from start to end."""
    if on_block is None:
        return None

    def tell(done: int, total: int) -> None:
        on_block(number * _PART + done * _PART // total, passes * _PART)

    return tell
