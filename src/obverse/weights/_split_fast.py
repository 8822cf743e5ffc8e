"""Profile, signal and bulk of a large matrix from few products with it. Not for small ones: see decompose.

The largest singular values come from block Lanczos, the scale from the energy that they leave, the distance
of the bulk from a Lanczos density.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from ._decompose import ROUNDS, Split, first_seen, profile_beside, scale_by
from ._edges import bulk_distance, count_above, count_below
from ._krylov import Leading, leading
from ._lanczos import fit_law, lanczos
from ._marchenko_pastur import Array
from ._profile import sinkhorn
from ._structure import fourth_moment
from .results import Number

QUICK = (16, 10)  # width of the block and products with it: enough for what distorts the profile
THOROUGH = (24, 24)  # a value 1 % beyond the edge converges to 0.1 %
ROOM = 4  # the space searched has so many times the dimensions found in it
LARGEST_SPACE = 0.5  # of the shorter side
DENSITY = {"steps": 16, "vectors": 8}  # resolves distances of 0.004 at 2 × 16 passes over the matrix
TOLERANCE = 1e-3  # of the profile: a thirtieth of the sampling error of a row of 2,000 entries
SETTLED = 0.5  # a profile that moves by less, in units of its sampling error, leaves the signal as it is


@torch.no_grad()
def split_fast(matrix: Tensor, alpha: float, generator: torch.Generator) -> Split:
    """`matrix` is float32 with rows ≤ columns, none of them empty."""
    profile = sinkhorn(matrix, tolerance=TOLERANCE)
    found = _look(matrix, profile, None, QUICK, alpha, generator)
    if found.count:
        profile = profile_beside(matrix, *profile, found.left, found.right, TOLERANCE)
    settled = False
    probabilities = found.probabilities[: found.count]
    for _ in range(ROUNDS):
        before = found.count
        found = _look(matrix, profile, found.left, THOROUGH, alpha, generator)
        known = min(before, found.count, len(probabilities))
        probabilities = first_seen(probabilities, found.probabilities, known)
        settled = found.count == 0
        if settled:
            break
        moved = profile_beside(matrix, *profile, found.left, found.right, TOLERANCE)
        settled = _distance(profile, moved) < SETTLED * math.sqrt((2 + found.kurtosis) / matrix.shape[1])
        if settled:
            break
        profile = moved
    return _described(found, profile, probabilities, alpha, generator, settled)


class _Look:
    """One search for the signal under a given profile."""

    def __init__(self, scaled: Tensor, top: Leading, kurtosis: float, energy: float, alpha: float) -> None:
        rows, columns = scaled.shape
        self.scaled, self.top, self.kurtosis, self.energy = scaled, top, kurtosis, energy
        self.count, self.scale, self.probabilities = settle_by_energy(
            top.values[: top.left.shape[1]], rows, columns, energy, kurtosis, alpha
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
    energy = float(torch.linalg.vector_norm(scaled, dtype=torch.float64)) ** 2
    kurtosis = fourth_moment(scaled) / (energy / scaled.numel()) ** 2 - 3
    block, steps = effort
    while True:
        top = leading(scaled, block=block, steps=steps, start=start, generator=generator)
        found = _Look(scaled, top, kurtosis, energy, alpha)
        if found.count * ROOM <= top.size or top.size >= LARGEST_SPACE * rows:
            return found
        start, block = found.left, 2 * block


def settle_by_energy(
    values: Array, rows: int, columns: int, energy: float, kurtosis: float, alpha: float
) -> tuple[int, float, list[float]]:
    """How many of the largest values (descending) are signal, and the scale of the energy they leave."""
    count, scale = 0, math.sqrt(energy / (rows * columns))
    probabilities: list[float] = []
    while True:
        found, now = count_above(values, rows, columns, scale, kurtosis, alpha)
        probabilities = first_seen(probabilities, now, count)
        if found <= count:
            return count, scale, probabilities
        rest = energy - float(values[:found] @ values[:found])
        if rest < 1e-6 * energy:  # rounding
            return found, 0.0, probabilities
        count, scale = found, math.sqrt(rest / ((rows - found) * (columns - found)))


def _distance(one: tuple[Tensor, Tensor], other: tuple[Tensor, Tensor]) -> float:
    """Root mean square of the differences of two profiles' logarithms, common scale aside."""
    squares = 0.0
    for before, after in zip(one, other, strict=True):
        change = (after / before).log()
        squares += float((change - change.mean()).square().mean())
    return math.sqrt(squares)


def _described(
    found: _Look,
    profile: tuple[Tensor, Tensor],
    probabilities: list[float],
    alpha: float,
    generator: torch.Generator,
    settled: bool,
) -> Split:
    rows, columns = found.scaled.shape
    count, scale, values = found.count, found.scale, found.top.values[: found.top.left.shape[1]]
    low = high = count
    below, below_p = np.zeros(0), None
    distance: Number | None = None
    density = values[::-1]
    if scale > 0:
        low, _ = count_above(values, rows, columns, scale, found.kurtosis, min(alpha, 0.025))
        high, _ = count_above(values, rows, columns, scale, found.kurtosis, 0.975)
        quadrature = lanczos(_refilled_(found, generator), **DENSITY, generator=generator)
        fit = fit_law(quadrature, rows, columns)
        distance = bulk_distance(fit.distance, rows - count, found.kurtosis, error=fit.error)
        smallest = np.array([quadrature.nodes.min()])  # no smaller than the smallest singular value
        lowest, chances = count_below(smallest, rows - count, columns - count, scale, alpha)
        below, below_p = smallest[:lowest], tuple(chances)
        density = np.sort(quadrature.nodes, axis=None)
    return Split(
        of_rows=profile[0],
        of_columns=profile[1],
        left=found.left,
        right=found.right,
        above=values[:count].copy(),
        above_p=tuple(probabilities[: count + 1]),
        below=below,
        below_p=below_p,
        count_low=min(low, count),
        count_high=max(high, count),
        scale=scale,
        kurtosis=found.kurtosis,
        distance=distance,
        values=density,
        zeros=0,
        energy=found.energy,
        settled=settled,
        at_least=2 * count >= len(values),
        exact=False,
    )


def _refilled_(found: _Look, generator: torch.Generator) -> Tensor:
    """The scaled matrix, changed in place: noise of the bulk's scale instead of the signal's directions."""
    columns = found.scaled.shape[1]
    if found.count == 0:
        return found.scaled
    device = generator.device
    fresh = torch.empty(found.count, columns, device=device).normal_(generator=generator).to(found.scaled)
    found.scaled.addmm_(found.left, found.scale * fresh - found.image.T)
    return found.scaled
