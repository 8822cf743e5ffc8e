"""What heavy-tailed entries give by chance: the same measurements on the layer's own entries, shuffled.

Not for entries with light tails: there the nulls of normal entries hold, corrected by the kurtosis.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ._controls import shuffled
from ._structure import Arrangement, arranged_values
from ._tails import Sample, is_heavy, sample
from .results import Correlations, Number

MOST, LEAST = 32, 4  # shuffles
_ENTRIES = 2**23  # in all shuffles


@dataclass(frozen=True)
class Null:
    """What entries of these tails give, by the name of the measurement."""

    arranged: dict[str, Sample]

    def beside(self, found: Arrangement) -> Arrangement:
        """The same measurements, beside this null."""
        rows, columns = found.cosines
        return Arrangement(
            row_norms=self._number("row_norms", found.row_norms),
            column_norms=self._number("column_norms", found.column_norms),
            cosines=(self._cosines(rows), self._cosines(columns)),
            blocks=self._number("blocks", found.blocks),
            kurtosis=found.kurtosis,
        )

    def _number(self, name: str, number: Number) -> Number:
        return self.arranged[name].number(number.value)

    def _cosines(self, found: Correlations) -> Correlations:
        return replace(found, rms=self.arranged[found.side].number(found.rms.value, both=True))


def shuffles_for(kurtosis: float, rows: int, columns: int) -> int:
    """How many shuffles a matrix of such entries needs: none where tails are light."""
    if not is_heavy(kurtosis, rows, columns):
        return 0
    return max(LEAST, min(MOST, _ENTRIES // (rows * columns)))


@torch.no_grad()
def shuffled_null(matrix: Tensor, kurtosis: float, count: int, generator: torch.Generator) -> Null:
    """From `count` shuffles of a centred matrix."""
    arranged: dict[str, list[float]] = {}
    for _ in range(count):
        for name, value in arranged_values(shuffled(matrix, generator), kurtosis, generator).items():
            arranged.setdefault(name, []).append(value)
    return Null({name: sample(values) for name, values in arranged.items()})
