"""Both edges of the spectrum of noise whose profile was taken off, and its distance to the law.

Sinkhorn's factors make all rows and columns equal, and with them go the fluctuations that carry the largest
singular value of heavy-tailed or sparse noise beyond the edge: what is left lies *inside* the edge of normal
noise, by about (excess kurtosis + 4) / √(rows · columns) of its square. That was simulated, for normal, ±1,
Laplace, Student t₅ and t₃ and pruned entries (experiments/parts); the constants keep to the safe side of it.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from ..results import Number
from . import marchenko_pastur as law
from .lanczos import fit_scale
from .marchenko_pastur import Array
from .repulsion import NOTHING, cosines, distances, downwards, energy_lost, inwards, missing

_SHIFT, _SHIFT_FROM = 0.85, 4.0  # of the squared upper edge, inwards, per (kurtosis + 4) / √(rows · columns)
_DISTANCE_SHIFT = 0.27  # of size · distance, for normal entries
_LIGHT, _HEAVY = 0.1, 0.21  # more per unit of kurtosis, below and above 0
_DISTANCE_SPREAD = 0.03  # by which a unit of kurtosis widens the distance's null
HEAVY = 6.0  # excess kurtosis (that of a Student t₅) beyond which the edge is not moved further inwards
SURELY = 1e-30  # a chance that is not made smaller by computing where the edge was pushed
HARD = 16  # so many more columns than rows, or fewer: the smallest value is repelled by 0, not by an edge


def shifted(kurtosis: float, rows: int, columns: int) -> float:
    """The kurtosis that `edge_probability` would need to put the edge where it is without a profile."""
    most = law.MOST_SHIFT * math.sqrt(rows * columns)
    return -min(_SHIFT * (min(max(kurtosis, -2.0), HEAVY) + _SHIFT_FROM), most)


def upper_p(
    value: float, rows: int, columns: int, scale: float, kurtosis: float, above: Array = NOTHING
) -> float:
    """The chance that noise of this shape, beside the signal `above` it, has a value this large or larger."""
    if min(rows, columns) < 1 or scale <= 0:
        return 1.0
    chance = partial(
        law.edge_probability,
        value,
        rows,
        columns,
        scale,
        scale_error=law.scale_error(rows, columns),
        kurtosis=shifted(kurtosis, rows, columns),
    )
    far = chance()
    if not len(above) or far < SURELY:
        return far
    return chance(inwards=inwards(distances(above, rows, columns, scale), rows, columns))


def lower_p(value: float, rows: int, columns: int, scale: float, above: Array = NOTHING) -> float:
    """The chance that noise of this shape, below the signal `above` it, has a value this small or smaller.

    For matrices near to square, Edelman's upper bound on the density of the smallest eigenvalue of a Wishart
    matrix (1988), which is exact for small values; otherwise Tracy–Widom for the logarithm (Ma 2012).
    """
    from scipy.special import gammainc, gammaincc, gammaln

    short, long = sorted((rows, columns))
    if short < 1 or scale <= 0:
        return 1.0
    eigenvalue = (value / scale) ** 2
    if eigenvalue <= 0:
        return 0.0
    more = long - short
    push = downwards(distances(above, rows, columns, scale), rows, columns)
    eigenvalue *= 1 + (2 * push if more <= HARD else push)
    if more <= HARD:
        shape = (more + 1) / 2
        inside = float(gammainc(shape, eigenvalue / 2))
        if inside <= 0:
            return 0.0
        bound = gammaln((long + 1) / 2) - gammaln(short / 2) - gammaln(more + 1)
        bound += (2 * shape - 1) * math.log(2) + gammaln(shape) + math.log(inside)
        return math.exp(min(float(bound), 0.0))
    low, high = math.sqrt(short - 0.5), math.sqrt(long - 0.5)
    width = (1 / low - 1 / high) ** (1 / 3) / (high - low)
    width = math.hypot(width, 2 * law.scale_error(rows, columns) / math.sqrt(law._VARIANCE))
    statistic = (2 * math.log(high - low) - math.log(eigenvalue)) / width
    return float(gammaincc(law._SHAPE, max(statistic + law._TRACY_WIDOM_SHIFT, 0.0) / law._SCALE))


def count_above(
    values: Array,
    rows: int,
    columns: int,
    scale: float,
    kurtosis: float,
    level: float,
    beside: int | None = None,
) -> tuple[int, list[float]]:
    """How many of `values` (descending), one after the other, noise of the size that is left would not have.

    The probabilities are those of the counted ones and of the first that is not. All counted ones push the
    edge, or the first `beside`: those that surely are signal.
    """
    probabilities = []
    for taken, value in enumerate(values):
        p = upper_p(
            float(value),
            rows - taken,
            columns - taken,
            scale,
            kurtosis,
            values[: taken if beside is None else min(taken, beside)],
        )
        probabilities.append(p)
        if p >= level:
            return taken, probabilities
    return len(values), probabilities


def count_below(
    values: Array, rows: int, columns: int, scale: float, level: float, above: Array = NOTHING
) -> tuple[int, list[float]]:
    """The same from the smallest upwards (`values` ascending), below the signal `above`."""
    probabilities = []
    for taken, value in enumerate(values):
        p = lower_p(float(value), rows - taken, columns - taken, scale, above)
        probabilities.append(p)
        if p >= level:
            return taken, probabilities
    return len(values), probabilities


def bulk_scale(values: Array, rows: int, columns: int, above: Array = NOTHING) -> float:
    """Of the entries, by least squares on the quantiles in the middle of the law (`values` ascending).

    The signal `above` has pushed them down, by how much depends on the scale: found in two steps.
    """
    size = len(values)
    shares = (np.arange(size) + 0.5) / size
    scale = fit_scale(values, shares, rows, columns)
    for _ in range(2 if len(above) and scale > 0 else 0):
        zetas = distances(above, rows, columns, scale)
        plain = law.quantiles(shares, rows, columns)
        fewer = missing(cosines(plain, rows, columns), zetas) / size
        scale = fit_scale(values, shares, rows, columns, fewer)
    return scale


def scale_of_energy(rest: float, above: Array, rows: int, columns: int) -> float:
    """Of the entries of noise, from the energy that the signal `above` leaves of a matrix of this shape."""
    rows, columns = rows - len(above), columns - len(above)
    scale = math.sqrt(rest / (rows * columns))
    for _ in range(2 if len(above) else 0):
        scale = math.sqrt((rest + energy_lost(above, rows, columns, scale)) / (rows * columns))
    return scale


def bulk_distance(distance: float, size: int, kurtosis: float, *, error: float = 0.0) -> Number:
    """A distance to the law beside its null, for `size` singular values of a matrix without its profile.

    The null of `law.distance_number`, moved: equal rows and columns bend the spectrum by about 0.2 ranks per
    unit of kurtosis. The distance may be smaller by `error`: p is that of the smallest that it may be.
    """
    shift = (_DISTANCE_SHIFT + (_HEAVY if kurtosis > 0 else _LIGHT) * max(kurtosis, -2.0)) / size
    wider = 1 + _DISTANCE_SPREAD * max(kurtosis, 0.0)
    null = law.distance_number(0.0, size).null or 0.0
    least = max(distance - error, 0.0)
    reduced = law.distance_number(null + (least - shift - null) / wider, size)
    return Number(distance, (reduced.spread or 0.0) * wider, min(null + shift, 1.0), reduced.p)
