"""Profile, signal and bulk of a large matrix from few products with it. Not for small ones: see decompose.

The largest singular values come from block Lanczos, the scale from the energy that they leave, the distance
of the bulk from a Lanczos density.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from ._decompose import (
    ROUNDS,
    Split,
    count_signal,
    first_seen,
    moments,
    profile_beside_,
    scale_by,
    to_protect,
)
from ._edges import bulk_distance, count_above, count_below
from ._krylov import Krylov, block_lanczos, quadrature
from ._lanczos import Quadrature, fit_law
from ._marchenko_pastur import Array
from ._profile import sinkhorn
from .results import Number

QUICK = (32, 5)  # width of the block and products with it: enough for what distorts the profile
THOROUGH = (32, 16)  # a direction at 1.3 times the threshold shows as it does among all singular values
FEWEST = 12  # random vectors beside the known directions: the density is seen from them
GROWTH = 1.25  # more room than for what was found last
ROOM = 4  # the space searched has so many times the dimensions found in it
ROUNDING = 1e-6  # of the energy: what is left is not a bulk
LARGEST_SPACE = 0.5  # of the shorter side
QUANTILES = 200  # of the density, for charts
_EMPTY = 1e-9  # weight of a node that is none: a start vector had seen all there is before
TOLERANCE = 1e-3  # of the profile: a thirtieth of the sampling error of a row of 2,000 entries
SETTLED = 0.5  # a profile that moves by less, in units of its sampling error, leaves the signal as it is


@torch.no_grad()
def split_fast(matrix: Tensor, alpha: float, generator: torch.Generator) -> Split:
    """`matrix` is float32 with rows ≤ columns, none of them empty."""
    rows, columns = matrix.shape
    profile = sinkhorn(matrix, tolerance=TOLERANCE)
    left, known, effort = None, 0, QUICK
    probabilities: list[float] = []
    settled = False
    for _ in range(ROUNDS):
        found = _look(matrix, profile, left, effort, alpha, generator)
        probabilities = first_seen(probabilities, found.probabilities, min(known, found.count))
        if found.count == known:
            settled = effort is THOROUGH
            if settled:
                break
            left, effort = found.left, THOROUGH
            continue
        known = to_protect(found.top.values, found.count, known, rows, columns, found.scale)
        left, right = found.left[:, :known], found.right[:, :known]
        found.scaled.addmm_(left, found.image[:, :known].T, alpha=-1)  # it is not needed any more
        moved = profile_beside_(found.scaled, profile, left, right, TOLERANCE)
        if known == found.count:
            error = math.sqrt((2 + max(found.kurtosis, -1.0)) / columns)
            settled = effort is THOROUGH and _distance(profile, moved) < SETTLED * error
            if settled:
                break
            effort = THOROUGH
        profile = moved
    return _described(found, probabilities, alpha, settled)


class _Look:
    """One search for the signal under a given profile."""

    def __init__(
        self,
        scaled: Tensor,
        profile: tuple[Tensor, Tensor],
        top: Krylov,
        kurtosis: float,
        energy: float,
        alpha: float,
        known: int,
    ) -> None:
        rows, columns = scaled.shape
        self.profile = profile
        self.scaled, self.top, self.kurtosis, self.energy = scaled, top, kurtosis, energy
        values = top.values[: top.left.shape[1]]

        def scale_without(count: int) -> float:
            rest = energy - float(values[:count] @ values[:count])
            return math.sqrt(rest / ((rows - count) * (columns - count))) if rest > ROUNDING * energy else 0.0

        self.count, self.scale, self.probabilities = count_signal(
            values, rows, columns, scale_without, kurtosis, alpha, known
        )
        self.left = top.left[:, : self.count]
        self.image = scaled.T @ self.left
        self.right = self.image / torch.linalg.vector_norm(self.image, dim=0)


def _look(
    matrix: Tensor,
    profile: tuple[Tensor, Tensor],
    start: Tensor | None,
    effort: tuple[int, int],
    alpha: float,
    generator: torch.Generator,
) -> _Look:
    """The block grows until the space is several times as large as what is found in it."""
    scaled = scale_by(matrix, *profile)
    rows = scaled.shape[0]
    known = matrix.new_zeros(rows, 0) if start is None else start
    rest, kurtosis = moments(scaled, known)
    energy = rest + float((scaled.T @ known).square().sum(dtype=torch.float64))
    width, steps = effort
    widest = math.ceil(LARGEST_SPACE * rows / steps)
    count = known.shape[1]
    while True:
        if count <= width - FEWEST:  # begin with what is known
            top = block_lanczos(scaled, block=width - count, steps=steps, start=start, generator=generator)
        else:
            width = min(max(width, math.ceil(GROWTH * ROOM * count / steps)), widest)
            top = block_lanczos(scaled, block=width, steps=steps, start=None, generator=generator)
        found = _Look(scaled, profile, top, kurtosis, energy, alpha, known.shape[1])
        if found.count * ROOM <= len(top.values) or width >= widest:
            return found
        start, count = None, max(found.count, width)


def _distance(one: tuple[Tensor, Tensor], other: tuple[Tensor, Tensor]) -> float:
    """Root mean square of the differences of two profiles' logarithms, common scale aside."""
    squares = 0.0
    for before, after in zip(one, other, strict=True):
        change = (after / before).log()
        squares += float((change - change.mean()).square().mean())
    return math.sqrt(squares)


def _quantiles(seen: Quadrature, rows: int, top: Array) -> Array:
    """Singular values as one would draw them: quantiles of the bulk's density, and those of the signal."""
    bulk = max(2, round(QUANTILES * (rows - len(top)) / rows))
    used = seen.weights.mean(axis=0) > _EMPTY
    shares, nodes = seen.shares.mean(axis=0)[used], seen.nodes.mean(axis=0)[used]
    places = np.interp((np.arange(bulk) + 0.5) / bulk, shares, nodes)
    kept = top[np.linspace(0, len(top) - 1, min(len(top), QUANTILES - bulk + 1)).round().astype(int)]
    result: Array = np.concatenate((places, kept[::-1]))
    return result


def _described(
    found: _Look,
    probabilities: list[float],
    alpha: float,
    settled: bool,
) -> Split:
    rows, columns = found.scaled.shape
    count, scale, values = found.count, found.scale, found.top.values[: found.top.left.shape[1]]
    kurtosis = found.kurtosis
    low = high = count
    below, below_p = np.zeros(0), None
    distance: Number | None = None
    density = values[::-1]
    if scale > 0:
        low, _ = count_above(values, rows, columns, scale, kurtosis, min(alpha, 0.025))
        high, _ = count_above(values, rows, columns, scale, kurtosis, 0.975)
        size = (rows - count, columns - count)
        fit = fit_law(seen := quadrature(found.top, count), *size)
        distance = bulk_distance(fit.distance, rows - count, kurtosis, error=fit.error)
        density = _quantiles(seen, rows, values[:count])
        smallest = np.sort(seen.nodes[seen.weights > 0])[:1]  # no smaller than the smallest singular value
        lowest, chances = count_below(smallest, *size, scale, alpha)
        below, below_p = smallest[:lowest], tuple(chances)
    return Split(
        of_rows=found.profile[0],
        of_columns=found.profile[1],
        left=found.left,
        right=found.right,
        above=values[:count].copy(),
        above_p=tuple(probabilities[: count + 1]),
        below=below,
        below_p=below_p,
        count_low=min(low, count),
        count_high=max(high, count),
        scale=scale,
        kurtosis=kurtosis,
        distance=distance,
        values=density,
        zeros=0,
        energy=found.energy,
        settled=settled,
        at_least=2 * count >= len(values),
        exact=False,
    )
