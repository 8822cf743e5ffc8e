"""The axes of a claim's plot: where a value lies, and which values are labelled. Not for drawing.

Values come from files: any finite number has its place between 0 and 1.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .._core import number, powered, short

DECADE, OCTAVE = 10.0, 2.0  # what positive values must span for a logarithmic axis
MARGIN = 0.05  # of the axis, left free at either end
NOTHING = 0.08  # of a logarithmic axis, set apart for zeros
LARGEST = sys.float_info.max


@dataclass(frozen=True)
class Axis:
    """An axis from `low` to `high`; a logarithmic one may have a place of its own for `zero`."""

    low: float
    high: float
    logarithmic: bool = False
    zero: bool = False

    def share(self, value: float) -> float:
        """From 0 at `low` to 1 at `high`, and never beyond."""
        if not self.logarithmic:
            # halves: the difference of two floats may be larger than any float
            part = (value / 2 - self.low / 2) / (self.high / 2 - self.low / 2)
            return min(max(part, 0.0), 1.0)
        start = 2 * NOTHING if self.zero else 0.0
        if value <= 0:
            return NOTHING if self.zero else 0.0
        part = (math.log10(value) - math.log10(self.low)) / (math.log10(self.high) - math.log10(self.low))
        return start + (1 - start) * min(max(part, 0.0), 1.0)

    def ticks(self, most: int = 6) -> list[tuple[float, str]]:
        """At most about so many round values, each with its label."""
        if self.logarithmic:
            return [(0.0, "0")] * self.zero + [(value, short(value)) for value in self._decades(most)]
        from matplotlib.ticker import MaxNLocator

        if max(abs(self.low), abs(self.high)) > LARGEST / 1e3:  # no room to compute with
            return [(value, number(value)) for value in (self.low, self.high)]
        places = MaxNLocator(most - 1, steps=[1, 2, 5, 10]).tick_values(self.low, self.high)
        found = [float(value) for value in places]
        inside = [value for value in found if self.low <= value <= self.high]
        return list(zip(inside, labels(inside), strict=True))

    def _decades(self, most: int) -> list[float]:
        low, high = math.log10(self.low), math.log10(self.high)
        if high - low > 2:
            step = math.ceil((high - low) / (most - 1))
            return [10.0**power for power in range(math.ceil(low), math.floor(high) + 1, step)]
        powers = range(math.floor(low), math.ceil(high) + 1)
        steps = (1, 2, 5) if high - low > 0.7 else (1, 1.5, 2, 3, 4, 5, 7)
        return [
            one * 10.0**power for power in powers for one in steps if low <= math.log10(one) + power <= high
        ]


def axis_for(values: Iterable[float], *, span: float = DECADE, from_zero: bool = False) -> Axis:
    """The axis that shows these values: logarithmic where the positive ones span more than `span` and none
    is negative. `from_zero`: a linear one begins at 0 if that leaves most of it to the values."""
    finite = [value for value in values if math.isfinite(value)]
    positive = [value for value in finite if value > 0]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    if positive and low >= 0 and high / span > min(positive):
        ends = math.log10(min(positive)), math.log10(high)
        pad = MARGIN * (ends[1] - ends[0])
        return Axis(_power(ends[0] - pad), _power(ends[1] + pad), logarithmic=True, zero=low == 0)
    size = max(abs(low), abs(high))
    pad = 2 * MARGIN * (high / 2 - low / 2)
    if pad <= max(size * 1e-9, 1e-300):  # one value, or as good as one
        pad = size / 10 if size > 1e-290 else 1.0
    elif from_zero and 0 <= low < 0.6 * high:
        return Axis(0.0, min(high + pad, LARGEST))
    return Axis(max(low - pad, -LARGEST), min(high + pad, LARGEST))


def _power(exponent: float) -> float:
    """10 to a power, within what a float can hold."""
    return float(10.0 ** min(max(exponent, -323.0), 308.25))


def labels(ticks: Sequence[float]) -> list[str]:
    """Evenly spaced values with as many digits as tell them apart."""
    if len(ticks) < 2:
        return [number(value) for value in ticks]
    largest = max(abs(value) for value in ticks)
    last = math.floor(math.log10(ticks[1] - ticks[0]) + 1e-9)  # the digit in which they differ
    if last >= -5 and largest < 1e5:
        texts = [f"{value:,.{max(0, -last)}f}".replace("-", "−") for value in ticks]
        return ["0" if not text.strip("−0.") else text for text in texts]
    decimals = max(0, math.floor(math.log10(largest)) - last)
    return ["0" if abs(value) < 1e-9 * largest else powered(value, decimals) for value in ticks]
