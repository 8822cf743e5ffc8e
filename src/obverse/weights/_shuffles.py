"""Nulls from a layer's own entries in random order, for entries whose tails reach far. See `_tails`."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from ._controls import root_mean_square, shuffled
from ._lanczos import fit_law, fit_scale, lanczos
from ._marchenko_pastur import limited_kurtosis
from ._spectrum import STEPS, density, ks_distance, rescaled_distance, singular_values
from ._structure import Arrangement, arrangement
from ._tails import UNKNOWN, Sample, Tails, is_heavy, sample, smallness, upper_sample
from .results import Correlations, Number

MOST, LEAST = 32, 4  # shuffles
_ENTRIES = 2**23  # in all shuffles


@dataclass(frozen=True)
class Null:
    """What entries of these tails give: as normal ones do, corrected by kurtosis, or as their shuffles do."""

    tails: Tails
    rescaled: Sample | None = None
    arranged: dict[str, Sample] | None = None

    def beside(self, found: Arrangement) -> Arrangement:
        """The same measurements, beside this null."""
        if self.arranged is None:
            return found
        rows, columns = found.cosines
        return Arrangement(
            row_norms=self._number("row_norms", found.row_norms),
            column_norms=self._number("column_norms", found.column_norms),
            cosines=(self._cosines(rows), self._cosines(columns)),
            blocks=self._number("blocks", found.blocks),
            kurtosis=found.kurtosis,
        )

    def _number(self, name: str, number: Number) -> Number:
        return (self.arranged or {})[name].number(number.value)

    def _cosines(self, found: Correlations) -> Correlations:
        return replace(found, rms=(self.arranged or {})[found.side].number(found.rms.value, both=True))


def shuffles_for(kurtosis: float, rows: int, columns: int) -> int:
    """How many shuffles a matrix of such entries needs: none where tails are light."""
    if not is_heavy(kurtosis, rows, columns):
        return 0
    return max(LEAST, min(MOST, _ENTRIES // (rows * columns)))


def _tail(rows: int, columns: int) -> float:
    """Spread of a Gumbel distribution with the tail of small values x: x^(1 + difference of the sides)."""
    return math.pi / math.sqrt(6) / (1 + abs(rows - columns))


@torch.no_grad()
def shuffled_null(
    matrix: Tensor, kurtosis: float, count: int, exact: bool, generator: torch.Generator
) -> Null:
    """From `count` shuffles of a centred matrix; without `exact`, no lower edge."""
    rows, columns = matrix.shape
    if count == 0:
        return Null(Tails(kurtosis))
    largest, scales, small, distances, rescaled = [], [], [], [], []
    arranged: dict[str, list[float]] = {}
    for _ in range(count):
        one = shuffled(matrix, generator)
        if exact:
            values = singular_values(one)
            shares = (np.arange(len(values)) + 0.5) / len(values)
            scale = fit_scale(values, shares, rows, columns)
            distances.append(ks_distance(values, rows, columns, scale))
            small.append(smallness(float(values[0]), rows, columns, scale))
            largest.append(float(values[-1]))
        else:
            found, _ = lanczos(one, steps=STEPS, vectors=1, generator=generator)
            scale = root_mean_square(one)
            largest.append(float(found.nodes.max()))
            if kurtosis > limited_kurtosis(kurtosis, rows, columns):  # where its correction does not hold
                distances.append(fit_law(density(one, generator)[0], rows, columns).distance)
        scales.append(scale)
        found_here = arrangement(one, kurtosis, generator)
        for name, value in found_here.values().items():
            arranged.setdefault(name, []).append(value)
        if exact:
            rescaled.append(rescaled_distance(one, True, generator)[0].value)
    tails = Tails(
        kurtosis,
        upper=upper_sample(largest, rows, columns, scales),
        lower=sample(small, least=_tail(rows, columns)) if exact else UNKNOWN,
        distance=sample(distances) if distances else None,
    )
    nulls = {name: sample(values) for name, values in arranged.items()}
    return Null(tails, sample(rescaled) if exact else None, nulls)
