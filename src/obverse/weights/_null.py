"""How far the spectrum of a finite random matrix strays from its limiting law.

The eigenvalues of noise are rigid: the p singular values keep within O(log p / p) of the law, at any ratio of
the sides. The constants below describe p times the Kolmogorov–Smirnov distance, with the scale fitted as
`lanczos.fit_scale` does; they were simulated with exact normal matrices of 32 to 1,024 rows and ratios 1 to
1/100 (the test does it again). Its upper tail is that of a Gumbel law.
"""

from __future__ import annotations

import math

from .results import Number

_MEAN, _MEAN_PER_LOG = 0.35, 0.4025
_SPREAD, _SPREAD_PER_LOG = 0.24, 0.011
_SHIFT, _SHIFT_FROM, _SHIFT_SPREAD = 0.135, 3.0, 0.015  # by the entries' excess kurtosis
FIT_ERROR = 0.74  # relative standard error of the fitted scale, times √(rows · columns)
MOST_SHIFT = 0.1  # of the edge: beyond it single entries are the spikes, and are to be found


def distance_number(distance: float, size: int, *, error: float = 0.0, kurtosis: float = 0.0) -> Number:
    """A distance to the law for `size` singular values, beside what noise has; `error` is of its estimate."""
    heavy = max(kurtosis, 0.0)
    shift = _SHIFT * heavy**2 / (heavy + _SHIFT_FROM)
    mean = (_MEAN + _MEAN_PER_LOG * math.log(size) + shift) / size + error
    spread = (_SPREAD + _SPREAD_PER_LOG * math.log(size) + _SHIFT_SPREAD * heavy) / size
    spread = math.hypot(spread, error)
    reduced = math.pi / math.sqrt(6) * (distance - mean) / spread + 0.57721566  # Euler's constant
    return Number(distance, spread, mean, -math.expm1(-math.exp(-max(reduced, -30.0))))


def scale_error(rows: int, columns: int) -> float:
    """Relative standard error of a scale fitted to the middle of the spectrum."""
    return FIT_ERROR / math.sqrt(rows * columns)


def limited_kurtosis(kurtosis: float, rows: int, columns: int) -> float:
    """The kurtosis that the corrections may use: they are of first order, and hold while small."""
    return min(kurtosis, MOST_SHIFT * math.sqrt(rows * columns))
