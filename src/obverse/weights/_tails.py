"""What the tails of a layer's entries allow: nulls from the layer's own entries in random order.

For entries with light tails the nulls of normal entries hold, with a correction of first order in the
kurtosis. Heavy tails (pruned layers, Student t) reach further than that; there the same measurements are
made on shuffled entries. Not for the measurements themselves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ._decomposition.marchenko_pastur import edge_units, edges
from .results import Number

HEAVY = 0.3  # from this shift of the edge on, in its own units, a first-order correction is not relied on
_EULER = 0.57721566
_DOUBT = 0.2  # chance that the spread of the shuffles is taken for smaller than it is


@dataclass(frozen=True)
class Sample:
    """What shuffled entries gave: mean and standard deviation of one measurement.

    `spread` allows for how few shuffles there are: a new one lies within it as often as it should.
    """

    mean: float
    spread: float
    count: int

    def p(self, value: float) -> float:
        """The chance of so large a value, by a Gumbel distribution: its tail is that of maxima."""
        if self.spread <= 0:
            return 1.0 if value <= self.mean else 0.0
        reduced = math.pi / math.sqrt(6) * (value - self.mean) / self.spread + _EULER
        return -math.expm1(-math.exp(-max(reduced, -30.0)))

    def number(self, value: float, *, both: bool = False) -> Number:
        """A value beside this null; with `both`, too small counts as much as too large."""
        from scipy.special import stdtr

        if not both:
            return Number(value, self.spread, self.mean, self.p(value))
        distance = abs(value - self.mean) / self.spread if self.spread > 0 else math.inf
        p = 2 * float(stdtr(self.count - 1, -distance)) if value != self.mean else 1.0
        return Number(value, self.spread, self.mean, p)


def sample(values: Sequence[float]) -> Sample:
    """Of at least two values."""
    from scipy.stats import chi2

    count = len(values)
    spread = float(np.std(values, ddof=1))
    widening = math.sqrt((count - 1) / float(chi2.ppf(_DOUBT, count - 1)) * (1 + 1 / count))
    return Sample(float(np.mean(values)), spread * widening, count)


def is_heavy(kurtosis: float, rows: int, columns: int) -> bool:
    """Whether tails reach so far that shuffled entries must say how far."""
    edge = edges(rows, columns)[1]
    return (
        edge_units(edge, rows, columns, 1.0) - edge_units(edge, rows, columns, 1.0, kurtosis=kurtosis) > HEAVY
    )
