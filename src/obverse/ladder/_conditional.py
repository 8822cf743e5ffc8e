"""P(z_β | z_α) as the pairs of events that occur: never dense, one index a row where z_β follows from z_α."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .._core import BadInput, OneLine
from ._checks import SUM_TOLERANCE, chances


@dataclass(frozen=True)
class Conditional(OneLine):
    """P_αβ, m_α × m_β: `values[i]` at (`rows[i]`, `columns[i]`), rows ascending, one entry for each pair.

    An event that never happens has an empty row.
    """

    rows: Tensor
    columns: Tensor
    values: Tensor
    shape: tuple[int, int]

    @staticmethod
    def of(above: Tensor, below: Tensor, p: Tensor, shape: tuple[int, int]) -> Conditional:
        """From the events of every input in both regions and the inputs' probabilities."""
        pairs, place = torch.unique(above * shape[1] + below, return_inverse=True)
        joint = p.new_zeros(len(pairs)).index_add_(0, place, p)
        seen = joint > 0
        rows, columns, joint = pairs[seen] // shape[1], pairs[seen] % shape[1], joint[seen]
        prior = p.new_zeros(shape[0]).index_add_(0, rows, joint)
        return Conditional(rows, columns, joint / prior[rows], shape)

    @staticmethod
    def from_dense(matrix: Tensor, name: str = "P") -> Conditional:
        """From a matrix whose rows are probabilities."""
        dense = chances(matrix, name)
        if dense.ndim != 2 or 0 in dense.shape:
            raise BadInput(
                f"{name} as a matrix of probabilities", got=f"shape {tuple(dense.shape)}", do="correct it"
            )
        off = (dense.sum(1) - 1).abs()
        if float(off.max()) > SUM_TOLERANCE:
            row = int(off.argmax())
            raise BadInput(
                f"rows of {name} that sum to one",
                got=f"{float(dense[row].sum()):.6g} in row {row}",
                do="divide each row by its sum",
            )
        rows, columns = dense.nonzero(as_tuple=True)
        return Conditional(rows, columns, dense[rows, columns], (dense.shape[0], dense.shape[1]))

    @property
    def is_function(self) -> bool:
        """Whether z_β is a function of z_α: at most one event a row."""
        return len(self.rows) == len(self.rows.unique())

    def __matmul__(self, below: Tensor) -> Tensor:
        """P_αβ F_β."""
        self._check(below, 1)
        terms = below[self.columns] * self.values.unsqueeze(1)
        return below.new_zeros(self.shape[0], below.shape[1]).index_add_(0, self.rows, terms)

    def transposed(self, above: Tensor) -> Tensor:
        """P_αβᵀ G̃_α."""
        self._check(above, 0)
        terms = above[self.rows] * self.values.unsqueeze(1)
        return above.new_zeros(self.shape[1], above.shape[1]).index_add_(0, self.columns, terms)

    def _check(self, values: Tensor, side: int) -> None:
        if values.ndim != 2 or len(values) != self.shape[side] or values.dtype != self.values.dtype:
            raise BadInput(
                f"a matrix of {self.shape[side]:,} rows in {self.values.dtype}, one for each event",
                got=f"shape {tuple(values.shape)}, {values.dtype}",
                do="convert it, or take the right region's",
            )

    def dense(self) -> Tensor:
        """The matrix itself, for small cases and pictures."""
        full = self.values.new_zeros(self.shape)
        full[self.rows, self.columns] = self.values
        return full
