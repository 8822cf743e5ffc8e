"""Singular values of a layer: the bulk against the Marchenko–Pastur law, and the spikes beyond its edge."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from torch import Tensor

from . import _marchenko_pastur as law
from ._controls import root_mean_square
from ._lanczos import fit_law, fit_scale, lanczos
from ._marchenko_pastur import (
    Array,
    distance_number,
    edge_probability,
    limited_kurtosis,
    planted_strength,
    scale_error,
)
from .results import Number, Spike

EXACT_UP_TO = 1024  # from there on the rescaled spectrum is a Lanczos density
QUICK = {"steps": 16, "vectors": 8}  # resolves distances of 0.004 at 2 × 16 passes over the layer
DEEP = {"steps": 96, "vectors": 4}  # where it stands in for the singular values themselves
SHOWN = 200  # singular values kept for pictures


@dataclass(frozen=True)
class Bulk:
    """What was found: the law's scale, the spikes (descending), and the distance of the rest to the law."""

    scale: float
    spikes: tuple[Spike, ...]
    distance: Number
    largest: float
    null_directions: int
    values: Array  # ascending
    error: float | None


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


def exact_bulk(matrix: Tensor, level: float, kurtosis: float) -> Bulk:
    """From all singular values; `kurtosis` is the excess of the entries."""
    rows, columns = matrix.shape
    return bulk_from_values(singular_values(matrix), rows, columns, level, kurtosis)


def bulk_from_values(values: Array, rows: int, columns: int, level: float, kurtosis: float) -> Bulk:
    """From all singular values, ascending."""
    kurtosis = limited_kurtosis(kurtosis, rows, columns)
    size = len(values)
    spikes = 0
    scale = _fitted(values, rows, columns)
    solid = values[_zeros(values, rows, columns) :]  # beside rounding anything would be a spike
    for _ in range(4):  # spikes shift the fit and the fit decides about spikes: this settles at once
        found = count_spikes(solid[::-1], rows, columns, scale, level, kurtosis)
        if found == spikes:
            break
        spikes = found
        scale = _fitted(values[: size - spikes], rows - spikes, columns - spikes)
    bulk = values[: size - spikes]
    distance = ks_distance(bulk, rows - spikes, columns - spikes, scale)
    zeros = _zeros(values, rows, columns)
    return Bulk(
        scale=scale,
        spikes=described(
            values[size - spikes :][::-1], rows, columns, scale, float(values @ values), kurtosis
        ),
        distance=distance_number(distance, len(bulk), kurtosis=kurtosis),
        largest=float(values[-1]),
        null_directions=zeros,
        values=thinned(values),
        error=None,
    )


def _zeros(values: Array, rows: int, columns: int) -> int:
    """How many are zero to float32 precision."""
    return int((values <= values[-1] * max(rows, columns) * torch.finfo(torch.float32).eps).sum())


def lanczos_bulk(matrix: Tensor, level: float, kurtosis: float, generator: torch.Generator) -> Bulk:
    """From a Lanczos density: for layers whose singular values would take too long.

    Spikes are the nodes beyond the edge that have converged.
    """
    rows, columns = matrix.shape
    kurtosis = limited_kurtosis(kurtosis, rows, columns)
    found = lanczos(matrix, **DEEP, generator=generator)
    fit = fit_law(found, rows, columns)
    tops = [
        nodes[gaps < 1e-3 * nodes][::-1] for nodes, gaps in zip(found.nodes, found.residuals, strict=True)
    ]
    energy = matrix.numel() * root_mean_square(matrix) ** 2
    spikes, scale = _spikes_by_energy(tops, rows, columns, energy, level, kurtosis)
    order = np.argsort(found.nodes, axis=None)
    shares = np.cumsum(found.weights.flatten()[order]) / len(found.nodes)
    grid = (np.arange(SHOWN) + 0.5) / SHOWN
    return Bulk(
        scale=fit.scale,
        spikes=described(spikes, rows, columns, scale, energy, kurtosis),
        distance=distance_number(fit.distance, min(rows, columns), error=fit.error, kurtosis=kurtosis),
        largest=float(found.nodes.max()),
        null_directions=0,
        values=np.interp(grid, shares, found.nodes.flatten()[order]),
        error=fit.error,
    )


def _spikes_by_energy(
    tops: list[Array], rows: int, columns: int, energy: float, level: float, kurtosis: float
) -> tuple[Array, float]:
    """The longest run of spikes (descending) among several lists, and the scale that decided about them.

    A density's scale is uncertain by its start vectors, far more than the edge of noise is. What the spikes
    leave of the energy gives a scale as certain as a fit to all singular values does.
    """
    spikes, scale = tops[0][:0], math.sqrt(energy / (rows * columns))
    for _ in range(8):  # strong spikes hide weak ones until they are taken off
        runs = [top[: count_spikes(top, rows, columns, scale, level, kurtosis)] for top in tops]
        longest = max(runs, key=len)
        if len(longest) <= len(spikes):
            break
        spikes = longest
        rest = energy - float(spikes @ spikes)
        if rest < 1e-6 * energy:  # rounding
            break
        scale = math.sqrt(rest / ((rows - len(spikes)) * (columns - len(spikes))))
    return spikes, scale


def rescaled_distance(equalized: Tensor, kurtosis: float, generator: torch.Generator) -> Number:
    """Distance to the law of a matrix whose rows and columns have been given equal norms."""
    rows, columns = equalized.shape
    kurtosis = limited_kurtosis(kurtosis, rows, columns)
    size = min(rows, columns)
    if size <= EXACT_UP_TO:
        values = singular_values(equalized)
        distance = ks_distance(values, rows, columns, _fitted(values, rows, columns))
        return distance_number(distance, size, kurtosis=kurtosis)
    fit = fit_law(lanczos(equalized, **QUICK, generator=generator), rows, columns)
    return distance_number(fit.distance, size, error=fit.error, kurtosis=kurtosis)


def _fitted(values: Array, rows: int, columns: int) -> float:
    size = len(values)
    return fit_scale(values, (np.arange(size) + 0.5) / size, rows, columns)


def ks_distance(values: Array, rows: int, columns: int, scale: float) -> float:
    """Kolmogorov–Smirnov distance of singular values (ascending) to the law."""
    if scale <= 0:
        return 1.0
    return law.ks_distance(law.cdf(values, rows, columns, scale))


def count_spikes(
    descending: Array, rows: int, columns: int, scale: float, level: float, kurtosis: float
) -> int:
    """How many singular values, from the largest down, noise of the remaining size would not have."""
    if scale <= 0:
        return 0
    count = 0
    for value in descending[: min(rows, columns) // 2]:
        size = (rows - count, columns - count)
        error = scale_error(*size)
        if edge_probability(float(value), *size, scale, scale_error=error, kurtosis=kurtosis) >= level:
            break
        count += 1
    return count


def described(
    values: Array, rows: int, columns: int, scale: float, energy: float, kurtosis: float
) -> tuple[Spike, ...]:
    """Spikes with their strengths, shares and probabilities."""
    error = scale_error(rows, columns)
    return tuple(
        Spike(
            value=float(value),
            strength=planted_strength(float(value), rows, columns, scale),
            share=float(value) ** 2 / energy,
            p=edge_probability(float(value), rows, columns, scale, scale_error=error, kurtosis=kurtosis),
        )
        for value in values
    )


def thinned(values: Array) -> Array:
    """At most `SHOWN` of the values, equally spaced in rank, both ends among them."""
    if len(values) <= SHOWN:
        return values
    chosen: Array = values[np.linspace(0, len(values) - 1, SHOWN).round().astype(int)]
    return chosen
