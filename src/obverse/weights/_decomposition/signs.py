"""Sparse noise beside itself with other signs: what few non-zero entries do. Not for dense noise.

With a handful of non-zero entries in a column, rows that depend on each other come about by chance, and the
spectrum is off the law without any structure. Random signs keep all that (and the profile, which depends on
squares alone), so that they show what such noise has.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..results import Number
from . import marchenko_pastur as law
from .edges import bulk_scale
from .marchenko_pastur import Array
from .reduction import reduce

SPARSE = 24  # non-zero entries per column, below which this is worth its time
FLIPS = 199  # matrices with random signs, at least where they are small
FEWEST = 19
WORK = 5e10  # rows² × columns × matrices: about ten seconds


@dataclass(frozen=True)
class Flipped:
    """Singular values (matrices × rows, ascending) of the same entries with random signs."""

    values: Array
    distances: Array  # of each to the law

    @property
    def spread(self) -> float:
        """Of the distances, with the error of their mean."""
        return float(self.distances.std(ddof=1)) * math.sqrt(1 + 1 / len(self.distances))

    @property
    def hardly_move(self) -> bool:
        """Whether signs leave the spectrum nearly as it is, as they do that of a permutation or of a band.

        What it shows is then a matter of where the entries are, and the null is that of dense noise, which
        has them elsewhere.
        """
        dense = law.distance_number(0.0, self.values.shape[1]).spread
        return dense is not None and self.spread < dense / 2

    def below(self, bulk: Array, level: float, dense: tuple[int, list[float]]) -> tuple[int, list[float]]:
        """How many of the smallest values of `bulk` (ascending) such noise would not have.

        The chance is that of the rank among the matrices, so that it is at least 1 / (1 + their number).
        `dense` is the answer beside dense noise, which stands where signs hardly move the spectrum.
        """
        if self.hardly_move:
            return dense
        tiny = float(bulk[-1]) * 1e-6  # what is zero in one is rounding in another
        probabilities: list[float] = []
        for place, value in enumerate(bulk[: len(bulk) // 2]):
            smaller = float((self.values[:, place] <= value + tiny).sum())
            probabilities.append((1 + smaller) / (1 + len(self.values)))
            if probabilities[-1] >= level:
                return place, probabilities
        return len(probabilities), probabilities

    def distance(self, value: float) -> Number:
        """Beside what such noise has; the tail is the extreme-value law that dense noise has too."""
        if self.hardly_move:
            return law.distance_number(value, self.values.shape[1])
        mean = float(self.distances.mean())
        return Number(value, self.spread, mean, law.gumbel_sf(value, mean, self.spread))


def is_sparse(matrix: Tensor) -> bool:
    return float((matrix != 0).sum()) / max(matrix.shape) < SPARSE


@torch.no_grad()
def flip(matrix: Tensor, level: float, generator: torch.Generator) -> Flipped:
    """`matrix` is noise with its profile taken off, rows ≤ columns."""
    rows, columns = matrix.shape
    wanted = max(FLIPS, math.ceil(1 / level))
    count = max(FEWEST, min(wanted, int(WORK / (rows**2 * columns))))
    values = np.empty((count, rows))
    distances = np.empty(count)
    for at in range(count):
        signs = torch.randint(0, 2, matrix.shape, generator=generator, device=generator.device)
        values[at] = reduce(matrix * (2 * signs - 1).to(matrix)).values
        distances[at] = _distance(values[at], columns)
    return Flipped(values, distances)


def _distance(values: Array, columns: int) -> float:
    solid = values[law.count_zeros(values, columns) :]
    scale = bulk_scale(solid, len(solid), columns)
    return law.ks_distance(law.cdf(solid, len(solid), columns, scale)) if scale > 0 else 1.0
