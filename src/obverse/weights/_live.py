"""Rows and columns of zeros: units and inputs that a layer does not have. They are counted and left out."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Live:
    """A matrix without its rows and columns of zeros, and which rows are left."""

    matrix: Tensor
    rows: Tensor  # bool, one per row of the whole matrix
    dead_rows: int
    dead_columns: int


@torch.no_grad()
def live_part(matrix: Tensor) -> Live:
    """The matrix itself where nothing is dead."""
    rows = torch.linalg.vector_norm(matrix, ord=torch.inf, dim=1) > 0
    columns = torch.zeros(matrix.shape[1], dtype=torch.bool, device=matrix.device)
    for band in matrix.split(max(1, 2**20 // matrix.shape[1])):
        columns |= (band != 0).any(0)
    dead_rows, dead_columns = int((~rows).sum()), int((~columns).sum())
    if dead_rows or dead_columns:
        matrix = matrix[rows][:, columns]
    return Live(matrix, rows, dead_rows, dead_columns)
