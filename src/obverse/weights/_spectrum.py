"""Singular values of a layer: the bulk against the Marchenko–Pastur law, and the spikes beyond its edge."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import torch
from scipy.special import ndtri
from torch import Tensor

from . import _marchenko_pastur as law
from ._controls import root_mean_square
from ._lanczos import Quadrature, fit_law, fit_scale, lanczos, leading, quantiles
from ._marchenko_pastur import (
    Array,
    critical_distance,
    distance_number,
    edge_probability,
    edge_units,
    limited_kurtosis,
    lower_edge_probability,
    planted_strength,
    scale_error,
)
from ._tails import NORMAL, Tails, smallness
from .results import Number, Spike

STEPS = 96  # of a density: no node of it stands for more than 2 % of a random matrix
SAMPLED = 2**15  # singular values times start vectors: shares are good to 0.4 %
LEAST_VECTORS = 8
FEW = 256  # so many start vectors that none is missed cost little
MISSING = 0.05  # of the values: so many zeros are no small values of noise
ZERO = 4e-3  # of the largest: float32 squares tell no smaller singular value from 0
BASIS = 512  # vectors in which spikes are looked for
_SURE = 3.09  # standard errors: 1 in 1,000
SHOWN = 200  # singular values kept for pictures


@dataclass(frozen=True)
class Bulk:
    """What was found: the law's scale, the spikes (descending), and the distance of the rest to the law.

    From a density, spikes, values below and null directions are lower bounds.
    """

    scale: float
    spikes: tuple[Spike, ...]
    taken: int  # so many values were taken off before the law was fitted
    distance: Number
    critical: float  # the distance that noise exceeds with the chance `level`
    largest: float
    below: int  # singular values below what noise has
    null_directions: int  # those that are zero
    values: Array  # ascending
    error: float | None  # of the distance: the one of all singular values is not further away than that
    directions: Tensor | None = None  # of the short side, for the spikes


def singular_values(matrix: Tensor) -> Array:
    """All of them, ascending. Of a wide matrix those of its transpose: LAPACK takes a quarter less time."""
    tall = matrix if matrix.shape[0] >= matrix.shape[1] else matrix.T
    values: Array = torch.linalg.svdvals(tall).flip(0).double().cpu().numpy()
    return values


@cache
def _seconds_per_operation(device: str) -> float:
    """Measured once on a small matrix; larger ones run at about that speed or faster."""
    probe = torch.randn(640, 640, generator=torch.Generator().manual_seed(0)).to(device)
    best = math.inf
    for _ in range(5):
        start = time.perf_counter()
        torch.linalg.svdvals(probe).cpu()
        best = min(best, time.perf_counter() - start)
    return best / _operations(640, 640)


def _operations(rows: int, columns: int) -> float:
    short, long = sorted((rows, columns))
    return 4 * short**2 * long - 4 / 3 * short**3  # reduction to bidiagonal form


def exact_seconds(matrix: Tensor) -> float:
    """About how long all singular values of this matrix would take here."""
    return _operations(*matrix.shape) * _seconds_per_operation(str(matrix.device))


def affordable(matrix: Tensor, budget: float) -> int:
    """How many times all singular values can be computed in so many seconds."""
    if budget <= 0:
        return 0
    return int(min(budget / exact_seconds(matrix), 1e6))


def exact_bulk(matrix: Tensor, level: float, tails: Tails = NORMAL) -> Bulk:
    """From all singular values."""
    rows, columns = matrix.shape
    return bulk_from_values(singular_values(matrix), rows, columns, level, tails)


def bulk_from_values(values: Array, rows: int, columns: int, level: float, tails: Tails = NORMAL) -> Bulk:
    """From all singular values, ascending."""
    kurtosis = limited_kurtosis(tails.kurtosis, rows, columns)
    size = len(values)
    spikes = 0
    scale = _fitted(values, rows, columns)
    zeros = count_zeros(values)
    solid = values[zeros:]  # beside rounding anything would be a spike
    for _ in range(8):  # spikes shift the fit and the fit decides about spikes: this settles at once
        found = count_spikes(solid[::-1], rows, columns, scale, level, tails)
        if found == spikes:
            break
        spikes = found
        scale = _fitted(values[: size - spikes], rows - spikes, columns - spikes)
    bulk = values[: size - spikes]
    distance = ks_distance(bulk, rows - spikes, columns - spikes, scale)
    below = count_below(bulk, rows - spikes, columns - spikes, scale, level, tails)
    return Bulk(
        scale=scale,
        spikes=described(values[size - spikes :][::-1], rows, columns, scale, float(values @ values), tails),
        taken=spikes,
        distance=_distance_number(distance, len(bulk), tails, kurtosis),
        critical=_critical(len(bulk), level, tails, kurtosis),
        largest=float(values[-1]),
        below=below,
        # a large square matrix of noise has a value that float32 cannot tell from zero every now and then
        null_directions=zeros if zeros > 1 else min(zeros, below),
        values=thinned(values),
        error=None,
    )


def _distance_number(distance: float, size: int, tails: Tails, kurtosis: float, error: float = 0.0) -> Number:
    """Beside its null; p is that of the smallest distance that it may be."""
    least = max(distance - error, 0.0)
    null = tails.distance
    number = distance_number(least, size, kurtosis=kurtosis) if null is None else null.number(least)
    return replace(number, value=distance)


def _critical(size: int, level: float, tails: Tails, kurtosis: float) -> float:
    if tails.distance is not None:
        return tails.distance.critical(level)
    return critical_distance(size, level, kurtosis=kurtosis)


def count_zeros(values: Array) -> int:
    """How many of the singular values (ascending) are zero to float32 precision."""
    return int((values <= 16 * float(torch.finfo(torch.float32).eps) * values[-1]).sum())


def density(matrix: Tensor, generator: torch.Generator) -> tuple[Quadrature, Tensor]:
    """The density of singular values, and vectors of the short side among which its spikes are found."""
    size = min(matrix.shape)
    vectors = size if size <= FEW else max(LEAST_VECTORS, SAMPLED // size)
    found, basis = lanczos(matrix, steps=STEPS, vectors=vectors, generator=generator)
    return found, basis[: max(2, BASIS // vectors) * vectors]


def lanczos_bulk(matrix: Tensor, level: float, generator: torch.Generator, tails: Tails = NORMAL) -> Bulk:
    """From a Lanczos density: for layers whose singular values would take too long.

    Spikes are counted among values that are never above those of the matrix, so that there are at least as
    many; the weight of the density beyond the edge says how many values to take off for the law's fit.
    """
    rows, columns = matrix.shape
    size = min(rows, columns)
    kurtosis = limited_kurtosis(tails.kurtosis, rows, columns)
    found, basis = density(matrix, generator)
    ritz, directions = leading(matrix, basis)
    energy = matrix.numel() * root_mean_square(matrix) ** 2
    descending = ritz.double().cpu().numpy()
    spikes, edge_scale = _spikes_by_energy(descending, rows, columns, energy, level, tails)
    upper = _last_of_noise(rows, columns, edge_scale, level, tails)
    beyond = found.mean_share(upper, math.inf)
    doubt = -float(ndtri(level))  # standard errors
    rest = found.between(0.0, upper)
    taken = min(max(len(spikes), round(size * beyond)), size - 1)
    fit = fit_law(rest, rows - taken, columns - taken)
    error = doubt * fit.error + fit.resolution
    below, zeros = _fewest_below(found, rows - taken, columns - taken, fit.scale, level, tails, doubt)
    return Bulk(
        scale=fit.scale,
        spikes=described(spikes, rows, columns, edge_scale, energy, tails),
        taken=taken,
        distance=_distance_number(fit.distance, size - taken, tails, kurtosis, error),
        critical=_critical(size - taken, level, tails, kurtosis),
        largest=float(max(descending[0], found.nodes.max())),
        below=below,
        null_directions=zeros,
        values=quantiles(found, (np.arange(SHOWN) + 0.5) / SHOWN),
        error=error,
        directions=directions[:, : len(spikes)],
    )


def _share_error(found: Quadrature, share: float) -> float:
    return found.sampling_error * 2 * math.sqrt(share * (1 - min(share, 1.0)))


def _last_of_noise(rows: int, columns: int, scale: float, level: float, tails: Tails) -> float:
    """The singular value that the largest one of noise exceeds with the chance `level`."""
    low, high = law.edges(rows, columns, scale)[1] * 0.5, law.edges(rows, columns, scale)[1] * 4
    for _ in range(50):
        middle = (low + high) / 2
        if _edge_p(middle, rows, columns, scale, tails) < level:
            high = middle
        else:
            low = middle
    return high


def _fewest_below(
    found: Quadrature, rows: int, columns: int, scale: float, level: float, tails: Tails, doubt: float
) -> tuple[int, int]:
    """At least so many singular values lie below those of noise, and at least so many are zero."""
    if scale <= 0:
        return 0, 0
    size = found.size
    if rows < 2 or columns < 2:
        return 0, 0
    low, high = 0.0, law.edges(rows, columns, scale)[1]
    for _ in range(50):
        middle = (low + high) / 2
        if _lower_p(middle, rows, columns, scale, tails) < level:
            low = middle
        else:
            high = middle
    counts = []
    # the weights at the nodes beside the edge are partly those of what lies inside: halfway is safe
    for until in (low / 2, ZERO * float(found.nodes.max())):
        share = found.mean_share(0.0, until)
        counts.append(max(0, math.floor(size * (share - doubt * _share_error(found, share)))))
    return counts[0], counts[1] if counts[1] > MISSING * size else min(counts)


def _spikes_by_energy(
    top: Array, rows: int, columns: int, energy: float, level: float, tails: Tails
) -> tuple[Array, float]:
    """The spikes among values that descend, and the scale that decided about them.

    A density's scale is uncertain by its start vectors, far more than the edge of noise is. What the spikes
    leave of the energy gives a scale as certain as a fit to all singular values does.
    """
    spikes, scale = top[:0], math.sqrt(energy / (rows * columns))
    for _ in range(50):  # strong spikes hide weak ones until they are taken off
        longest = top[: count_spikes(top, rows, columns, scale, level, tails)]
        if len(longest) <= len(spikes):
            break
        spikes = longest
        rest = energy - float(spikes @ spikes)
        if rest < 1e-6 * energy:  # rounding
            break
        scale = math.sqrt(rest / ((rows - len(spikes)) * (columns - len(spikes))))
    return spikes, scale


def rescaled_distance(
    equalized: Tensor, exact: bool, generator: torch.Generator, tails: Tails = NORMAL
) -> tuple[Number, float]:
    """Distance to the law of a matrix whose rows and columns have been given equal norms, and its error."""
    rows, columns = equalized.shape
    kurtosis = limited_kurtosis(tails.kurtosis, rows, columns)
    size = min(rows, columns)
    if exact:
        values = singular_values(equalized)
        distance, error = ks_distance(values, rows, columns, _fitted(values, rows, columns)), 0.0
    else:
        found, _ = density(equalized, generator)
        fit = fit_law(found, rows, columns)
        distance, error = fit.distance, _SURE * fit.error + fit.resolution
    return _distance_number(distance, size, tails, kurtosis, error), error


def _fitted(values: Array, rows: int, columns: int) -> float:
    size = len(values)
    return fit_scale(values, (np.arange(size) + 0.5) / size, rows, columns)


def ks_distance(values: Array, rows: int, columns: int, scale: float) -> float:
    """Kolmogorov–Smirnov distance of singular values (ascending) to the law."""
    if scale <= 0:
        return 1.0
    return law.ks_distance(law.cdf(values, rows, columns, scale))


def _edge_p(value: float, rows: int, columns: int, scale: float, tails: Tails) -> float:
    """The chance that noise with these tails has a singular value this large or larger."""
    if tails.upper is not None:
        return tails.upper.p(edge_units(value, rows, columns, scale))
    error = scale_error(rows, columns)
    kurtosis = limited_kurtosis(tails.kurtosis, rows, columns)
    return edge_probability(value, rows, columns, scale, scale_error=error, kurtosis=kurtosis)


def _lower_p(value: float, rows: int, columns: int, scale: float, tails: Tails) -> float:
    """The chance that noise with these tails has a singular value this small or smaller."""
    if tails.lower is not None:
        return tails.lower.p(smallness(value, rows, columns, scale))
    return lower_edge_probability(value, rows, columns, scale, scale_error=scale_error(rows, columns))


def count_spikes(
    descending: Array, rows: int, columns: int, scale: float, level: float, tails: Tails = NORMAL
) -> int:
    """How many singular values, from the largest down, noise of the remaining size would not have."""
    if scale <= 0:
        return 0
    count = 0
    for value in descending[: min(rows, columns) // 2]:
        if _edge_p(float(value), rows - count, columns - count, scale, tails) >= level:
            break
        count += 1
    return count


def count_below(
    ascending: Array, rows: int, columns: int, scale: float, level: float, tails: Tails = NORMAL
) -> int:
    """How many singular values, from the smallest up, noise of the remaining size would not have."""
    if scale <= 0:
        return 0
    count = 0
    for value in ascending[: len(ascending) // 2]:
        if _lower_p(float(value), rows - count, columns - count, scale, tails) >= level:
            break
        count += 1
    return count


def described(
    values: Array, rows: int, columns: int, scale: float, energy: float, tails: Tails = NORMAL
) -> tuple[Spike, ...]:
    """Spikes with their strengths, shares and probabilities."""
    return tuple(
        Spike(
            value=float(value),
            strength=planted_strength(float(value), rows, columns, scale),
            share=float(value) ** 2 / energy,
            p=_edge_p(float(value), rows, columns, scale, tails),
        )
        for value in values
    )


def thinned(values: Array) -> Array:
    """At most `SHOWN` of the values, equally spaced in rank, both ends among them."""
    if len(values) <= SHOWN:
        return values
    chosen: Array = values[np.linspace(0, len(values) - 1, SHOWN).round().astype(int)]
    return chosen
