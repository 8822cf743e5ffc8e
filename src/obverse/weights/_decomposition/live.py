"""Rows and columns of zeros: units and inputs that a layer does not have. They are counted and left out."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Live:
    """A matrix without its rows and columns of zeros, and which rows and columns are left."""

    matrix: Tensor
    rows: Tensor  # bool, one per row of the whole matrix
    columns: Tensor
    dead_rows: int
    dead_columns: int


@torch.no_grad()
def live_part(matrix: Tensor) -> Live:
    """The matrix itself where nothing is dead."""
    rows, columns = (_largest(matrix, dim) > 0 for dim in (1, 0))
    dead_rows, dead_columns = int((~rows).sum()), int((~columns).sum())
    if dead_rows or dead_columns:
        matrix = matrix[rows][:, columns]
    return Live(matrix, rows, columns, dead_rows, dead_columns)


def _largest(matrix: Tensor, dim: int) -> Tensor:
    """The largest |entry| along a dimension; 0 where there is none."""
    if matrix.shape[dim] == 0:
        return matrix.new_zeros(matrix.shape[1 - dim])
    return torch.maximum(matrix.amax(dim), -matrix.amin(dim))
