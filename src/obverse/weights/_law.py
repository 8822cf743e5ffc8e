"""The Marchenko–Pastur law of the singular values of random matrices; quarter circle when square.

For a matrix with independent entries of scale s, its sides p ≤ q large and c = p/q, the p singular values
over s√q are distributed as √λ with λ on [(1 − √c)², (1 + √c)²]. Not for finite-size effects: see null.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

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
    lowest, highest = edges(rows, columns)
    # equally spaced in the angle of a half circle, where the density's square-root edges become smooth
    angle = np.linspace(0, math.pi, 4097)
    grid = (lowest**2 + highest**2) / 2 - (highest**2 - lowest**2) / 2 * np.cos(angle)
    singular = np.sqrt(np.clip(grid, 0, None))
    result: Array = np.interp(shares, cdf(singular, rows, columns, 1.0), singular)
    return result
