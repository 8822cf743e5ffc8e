"""Does the signal end where the count ends, or does it go on below? Not for how many directions can be seen.

Beside a signal of low rank, the largest singular values of noise thin out towards the edge as the law says.
Directions too weak to be seen, or correlated rows and columns, leave more there. Their number is a sum over
singular values of a smooth function that is 1 at the edge. For noise it stays within about one of what the
law says, whatever the size (eigenvalues are rigid), so that even a few more are noticed. Its null was
simulated without a profile, for noise of seven kinds and beside planted signals; the test does some of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .marchenko_pastur import Array
from .repulsion import cosines, distances, quantiles

FROM, WIDTH = 0.6, 0.4  # radians below the edge where the function is ½, and to either side until 1 and 0
MEAN, SPREAD = -0.5, 0.5  # of the number, for noise; heavy tails make it smaller
_LIGHT = 0.2  # more per unit by which the kurtosis is below 0
UNLIKELY = 0.05  # for noise: from then on a crowd counts as directions
FAINT, SEVERAL = 1e-2, 2  # of alpha: the chance of directions that noise nearly has; so many are no accident
POINTS = 2048  # of the law's distribution


@dataclass(frozen=True)
class Crowd:
    """How many more singular values there are just below the edge than noise has, and the chance of it."""

    more: float
    error: float
    p: float


def crowd(
    nodes: Array,
    weights: Array,
    size: tuple[int, int],
    scale: float,
    kurtosis: float,
    above: Array,
    error: float = 0.0,
) -> Crowd:
    """Of singular values with weights, beside the signal `above`; `error` is that of the weighted number."""
    from scipy.special import ndtr

    expected = quantiles((np.arange(POINTS) + 0.5) / POINTS, *size, distances(above, *size, scale))
    number = float(weights @ _near_the_edge(nodes / scale, *size))
    number -= min(size) * float(_near_the_edge(expected, *size).mean())
    number -= MEAN - _LIGHT * min(max(kurtosis, -2.0), 0.0)
    spread = float(np.hypot(SPREAD, error))
    return Crowd(number, spread, float(ndtr(-number / spread)))


def _near_the_edge(singular: Array, rows: int, columns: int) -> Array:
    angles = np.arccos(np.clip(cosines(singular, rows, columns), -1, 1))
    result: Array = (1 - np.sin(np.pi / 2 * np.clip((angles - FROM) / WIDTH, -1, 1))) / 2
    return result


def crowd_of_density(
    nodes: Array, weights: Array, size: tuple[int, int], scale: float, kurtosis: float, above: Array
) -> Crowd:
    """The same from the densities that several vectors see (one a row)."""
    short, vectors = min(size), len(nodes)
    each = short * (weights * _near_the_edge(nodes / scale, *size)).sum(axis=1)
    error = float(each.std(ddof=1) / np.sqrt(vectors)) if vectors > 1 else float(short)
    weight = short / vectors * weights.ravel()
    return crowd(nodes.ravel(), weight, size, scale, kurtosis, above, error)


def most(count: int, near: int, many: Crowd, size: tuple[int, int]) -> int:
    """The upper end of an interval for the number of directions: `near` are those that may be noise too."""
    crowded = count + math.ceil(many.more + 2 * many.error) if many.p < UNLIKELY else count
    return min(max(count, near, crowded), min(size) + count)


def is_open(probabilities: tuple[float, ...], count: int, many: Crowd, alpha: float) -> bool:
    """Whether there are surely or easily more directions than the `count` seen.

    Values crowd at the edge below them, or several of those seen are at the limit of what can be: the signal
    goes on down to it, and nothing says that it ends there.
    """
    faint = sum(p > FAINT * alpha for p in probabilities[:count])
    return count > 0 and (faint >= SEVERAL or many.p < alpha)
