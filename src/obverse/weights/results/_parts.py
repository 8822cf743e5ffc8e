"""What a matrix is made of, in numbers: profile, signal and bulk. Not for computing them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..._core import Record

# The chance of a false direction in a matrix of noise: in audit, decompose, ablate, compress and commands.
# A net has tens to hundreds of matrices: at 0.01 one of a hundred untouched ones would show a false one.
ALPHA = 0.001
MOSTLY = 0.5  # of the energy in the signal, and beyond: "mostly signal"

Grade = Literal[
    "untouched", "signal in a random bulk", "mostly signal", "structured otherwise", "cannot tell"
]
GRADES: tuple[Grade, ...] = (
    "untouched",
    "signal in a random bulk",
    "mostly signal",
    "structured otherwise",
    "cannot tell",
)


@dataclass(frozen=True)
class Number(Record):
    """A measured number beside what random entries of that shape would give.

    `spread` is the standard deviation under that null where `null` is given, and otherwise the standard
    error of `value`; `p` is the chance of so extreme a value under the null.
    """

    value: float
    spread: float | None = None
    null: float | None = None
    p: float | None = None

    @property
    def excess(self) -> float:
        """How much larger it is than that of random entries."""
        return max(0.0, self.value - (self.null or 0.0))


@dataclass(frozen=True)
class Direction(Record):
    """A singular value that noise would not have; in units of the matrix without its profile."""

    value: float  # as seen
    strength: float  # of the planted part behind it: without what noise adds
    shrunk: float  # with which it enters the best estimate of the signal
    p: float  # of noise reaching so far


@dataclass(frozen=True)
class Interval(Record):
    """An estimate and a 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def is_bound(self) -> bool:
        """Nothing is known but that it is at most `value`."""
        return self.low == 0 < self.value == self.high

    @classmethod
    def at_most(cls, value: float) -> Interval:
        return cls(value, 0.0, value)


@dataclass(frozen=True)
class Decomposition(Record):
    """A matrix as profile × (signal + bulk), in numbers. Those of the spectrum are without the profile."""

    rows: int
    columns: int
    empty_rows: int  # all zeros: left out
    empty_columns: int
    method: Literal["exact", "krylov", "none"]
    alpha: float  # chance of a false direction in noise
    grade: Grade
    sentence: str
    rank: int  # directions of the signal
    rank_interval: tuple[int, int]
    rank_is_bound: bool  # there may be more: not all that are left were looked at
    settled: bool  # profile and rank agree with each other
    directions: tuple[Direction, ...]  # descending
    upper_p: float | None  # of the largest singular value that is not signal
    below: tuple[float, ...]  # singular values smaller than those of noise, ascending
    lower_p: float | None  # of the smallest singular value
    null_directions: int  # singular values that are 0 to float32 precision
    scale: float  # of the bulk's entries
    lower: float  # the law's edges
    upper: float
    kurtosis: float  # excess, of the bulk's entries
    heavy_tails: bool  # probabilities at the edges are upper bounds only
    distance: Number | None  # of the bulk to the law (Kolmogorov–Smirnov)
    profile_share: Number | None  # 1 − geometric ÷ arithmetic mean of the profile's energies
    signal_share: Interval | None  # of the energy without profile; None where nothing can be told
    # The bulk's share, less what is off the law. Of a bulk that is structured otherwise only a bound is
    # known: low is 0, and value and high are the most that can be random.
    random_share: Interval | None
