"""The Marchenko–Pastur distribution of the singular values of random matrices, and how far finite ones stray.

For a matrix with independent entries of scale s, its sides p ≤ q large and c = p/q, the p singular values
over s√q are distributed as √λ with λ on [(1 − √c)², (1 + √c)²]; a quarter circle when square.

- Finite matrices: the eigenvalues of noise are rigid, the p singular values keep within O(log p / p) of the
  limit at any ratio of the sides. The constants of the null describe p times the Kolmogorov–Smirnov
  distance with the scale fitted as `_lanczos.fit_scale` does, simulated with exact normal matrices of 32 to
  1,024 rows and ratios 1 to 1/100 (the test does it again). Its upper tail is that of a Gumbel distribution.
- The edge: how far the largest singular value of noise reaches (Tracy–Widom of order 1 by Chiani's shifted
  gamma distribution, 2014), and how strong what lies beyond it is.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ..results import Number

Array = npt.NDArray[np.float64]


def ks_distance(expected: Array) -> float:
    """Kolmogorov–Smirnov distance of a sample to a law, from the law's cdf at the sorted sample."""
    steps = np.arange(len(expected) + 1) / len(expected)
    return float(max((expected - steps[:-1]).max(), (steps[1:] - expected).max()))


def edges(rows: int, columns: int, scale: float = 1.0) -> tuple[float, float]:
    """The smallest and the largest singular value that the law allows."""
    short, long = sorted((rows, columns))
    return scale * (math.sqrt(long) - math.sqrt(short)), scale * (math.sqrt(long) + math.sqrt(short))


def density(singular: Array, rows: int, columns: int, scale: float) -> Array:
    """The density of singular values."""
    short, long = sorted((rows, columns))
    c = short / long
    unit = scale * math.sqrt(long)
    low, high = (1 - math.sqrt(c)) ** 2, (1 + math.sqrt(c)) ** 2
    y = np.asarray(singular, dtype=np.float64) / unit
    inside = np.clip((high - y**2) * (y**2 - low), 0.0, None)
    # λ = y² has density √((high − λ)(λ − low)) / 2πcλ, and dλ = 2y dy; at c = 1 the y cancels
    result: Array = np.sqrt(inside) / (math.pi * c * np.maximum(y, 1e-12) * unit)
    if short == long:
        result = np.where((y >= 0) & (y <= 2), np.sqrt(np.clip(4 - y**2, 0, None)) / (math.pi * unit), 0.0)
    return result


def cdf(singular: Any, rows: int, columns: int, scale: float) -> Array:
    """The share of singular values at or below each of `singular`, in closed form."""
    short, long = sorted((rows, columns))
    c = short / long
    low, high = (1 - math.sqrt(c)) ** 2, (1 + math.sqrt(c)) ** 2
    x = np.clip((np.asarray(singular, dtype=np.float64) / (scale * math.sqrt(long))) ** 2, low, high)
    half, root = (low + high) / 2, math.sqrt(low * high)
    arc = np.arcsin(np.clip((x - half) / ((high - low) / 2), -1, 1))
    integral = np.sqrt((high - x) * (x - low)) + half * (arc + math.pi / 2)
    if root > 0:  # else the square case, whose last term is nought
        ratio = (2 * half * x - 2 * low * high) / (x * (high - low))
        integral -= root * (np.arcsin(np.clip(ratio, -1, 1)) + math.pi / 2)
    result: Array = np.clip(integral / (2 * math.pi * c), 0.0, 1.0)
    return result


def quantiles(shares: Array, rows: int, columns: int) -> Array:
    """The singular values, for entries of scale 1, below which lie the given shares of them."""
    result: Array = np.interp(shares, *_grid(rows, columns))
    return result


@lru_cache(maxsize=32)  # the same shapes come again, in a matrix and in a net
def _grid(rows: int, columns: int) -> tuple[Array, Array]:
    """Shares and the singular values below which they lie."""
    lowest, highest = edges(rows, columns)
    # equally spaced in the angle of a half circle, where the density's square-root edges become smooth
    angle = np.linspace(0, math.pi, 4097)
    grid = (lowest**2 + highest**2) / 2 - (highest**2 - lowest**2) / 2 * np.cos(angle)
    singular = np.sqrt(np.clip(grid, 0, None))
    return cdf(singular, rows, columns, 1.0), singular


_MEAN, _MEAN_PER_LOG = 0.35, 0.4025
_SPREAD, _SPREAD_PER_LOG = 0.24, 0.011
_SHIFT, _SHIFT_FROM, _SHIFT_SPREAD = 0.135, 3.0, 0.015  # by the entries' excess kurtosis
FIT_ERROR = 0.74  # relative standard error of the fitted scale, times √(rows · columns)
MOST_SHIFT = 0.1  # of the edge: beyond it single entries are the spikes, and are to be found


def distance_number(distance: float, size: int, *, kurtosis: float = 0.0) -> Number:
    """A distance to the law for `size` singular values, beside what noise has."""
    mean, spread = _distance_null(size, kurtosis)
    return Number(distance, spread, mean, gumbel_sf(distance, mean, spread))


def gumbel_sf(value: float, mean: float, spread: float) -> float:
    """The chance that a Gumbel variable of this mean and standard deviation is at least `value`."""
    reduced = math.pi / math.sqrt(6) * (value - mean) / spread + _EULER
    return -math.expm1(-math.exp(-max(reduced, -30.0)))


def _distance_null(size: int, kurtosis: float) -> tuple[float, float]:
    heavy = max(kurtosis, 0.0)
    shift = _SHIFT * heavy**2 / (heavy + _SHIFT_FROM)
    mean = (_MEAN + _MEAN_PER_LOG * math.log(size) + shift) / size
    return mean, (_SPREAD + _SPREAD_PER_LOG * math.log(size) + _SHIFT_SPREAD * heavy) / size


_EULER = 0.57721566
_FLOAT32 = float(np.finfo(np.float32).eps)


def count_zeros(values: Array, columns: int) -> int:
    """How many singular values (ascending) are zero to float32 precision."""
    return int((values <= values[-1] * columns * _FLOAT32).sum())


def scale_error(rows: int, columns: int) -> float:
    """Relative standard error of a scale fitted to the middle of the spectrum."""
    return FIT_ERROR / math.sqrt(rows * columns)


_SHAPE, _SCALE, _TRACY_WIDOM_SHIFT = 46.446, 0.186054, 9.84801  # Chiani's fit for β = 1
_VARIANCE = 1.6078  # of the Tracy–Widom law


def edge_width(rows: int, columns: int) -> float:
    """The unit in which the largest squared singular value of noise of scale 1 is Tracy–Widom."""
    short, long = math.sqrt(min(rows, columns) - 0.5), math.sqrt(max(rows, columns) - 0.5)
    return float((short + long) * (1 / short + 1 / long) ** (1 / 3))


def edge_units(
    singular: float,
    rows: int,
    columns: int,
    scale: float,
    *,
    scale_error: float = 0.0,
    kurtosis: float = 0.0,
    inwards: float = 0.0,
) -> float:
    """How far a singular value lies beyond the upper edge, in units in which noise's largest is Tracy–Widom.

    Centred and scaled with the halves of Ma (2012), so that it holds from a few dozen rows on;
    `scale_error` is the relative standard error of a scale that was estimated. Heavy-tailed entries reach
    further at finite size, by kurtosis / √(rows · columns) of the squared edge (Hwang et al. 2019). A signal
    beside the noise pushes the squared edge `inwards`.
    """
    short, long = math.sqrt(min(rows, columns) - 0.5), math.sqrt(max(rows, columns) - 0.5)
    centre = (short + long) ** 2
    width = math.sqrt(edge_width(rows, columns) ** 2 + (2 * scale_error * centre) ** 2 / _VARIANCE)
    centre *= 1 + kurtosis / math.sqrt(rows * columns)
    centre -= inwards
    return ((singular / scale) ** 2 - centre) / width


def tracy_widom_sf(value: float) -> float:
    """The chance that a variable of the Tracy–Widom distribution (β = 1) is at least `value`."""
    from scipy.special import gammaincc

    return float(gammaincc(_SHAPE, max(value + _TRACY_WIDOM_SHIFT, 0.0) / _SCALE))


def edge_probability(singular: float, rows: int, columns: int, scale: float, **corrections: float) -> float:
    """The chance that noise of this shape and scale has a singular value this large or larger."""
    return tracy_widom_sf(edge_units(singular, rows, columns, scale, **corrections))


def threshold_strength(rows: float, columns: float, scale: float) -> float:
    """The strength below which a planted rank-one part leaves no trace (Baik–Ben Arous–Péché)."""
    return float(scale * (rows * columns) ** 0.25)


def planted_strength(singular: float, rows: float, columns: float, scale: float) -> float:
    """The θ of a rank-one part θuvᵀ that noise turns into this singular value (Benaych-Georges–Nadakuditi).

    With y the singular value over s√q and c = p/q: y² = (1 + θ²)(c + θ²)/θ², θ in the same unit. Inside the
    bulk there is no solution; the threshold is returned.
    """
    short, long = sorted((rows, columns))
    c, unit = short / long, scale * math.sqrt(long)
    middle = (singular / unit) ** 2 - 1 - c
    if middle <= 2 * math.sqrt(c):
        return threshold_strength(rows, columns, scale)
    return unit * math.sqrt((middle + math.sqrt(middle**2 - 4 * c)) / 2)
