"""The profile of a matrix: the scale of each row and of each column. Not for what is left without it.

Sinkhorn's iteration on the squared entries finds r, c > 0 such that all rows and all columns of r_i W_ij² c_j
have the same mean (Landa, Zhang and Kluger 2022, "biwhitening").
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

SWEEPS = 50  # far more than a dense matrix needs; a sparse one may have no solution, and stops here
TOLERANCE = 1e-4  # relative, of the rows' means; their own sampling error, √(2 / columns), is far larger
BAND = 2**19  # entries squared at a time: they stay in the cache


@torch.no_grad()
def sinkhorn(matrix: Tensor, *, sweeps: int = SWEEPS, tolerance: float = TOLERANCE) -> tuple[Tensor, Tensor]:
    """Factors (rows), (columns) in float64 that give every row and column of r_i W_ij² c_j the mean 1.

    Lines without energy get the factor 0: there is no scale that would give them any.
    """
    if matrix.stride(0) < matrix.stride(1):  # it lies by columns
        of_columns, of_rows = sinkhorn(matrix.T, sweeps=sweeps, tolerance=tolerance)
        return of_rows, of_columns
    of_columns = torch.ones(matrix.shape[1], dtype=torch.float64, device=matrix.device)
    squares = matrix.square() if matrix.numel() <= BAND else None
    of_rows, of_columns = _sweep(matrix, squares, of_columns)
    for _ in range(sweeps):
        before, (of_rows, of_columns) = of_rows, _sweep(matrix, squares, of_columns)
        if bool(((of_rows - before).abs_() <= tolerance * of_rows).all()):
            break
    return of_rows, of_columns


def _sweep(matrix: Tensor, squares: Tensor | None, of_columns: Tensor) -> tuple[Tensor, Tensor]:
    """The rows' factors for these of the columns, and the columns' for those: one pass over the matrix."""
    rows, columns = matrix.shape
    weights = of_columns.to(matrix)
    if squares is not None:
        of_rows = inverse(squares @ weights, columns)
        return of_rows, inverse(of_rows.to(matrix) @ squares, rows)
    factors = []
    sums = torch.zeros_like(of_columns)
    for band in matrix.split(max(1, BAND // columns)):
        few = band.square()
        of_band = inverse(few @ weights, columns)
        sums += of_band.to(matrix) @ few
        factors.append(of_band)
    return torch.cat(factors), inverse(sums, rows)


def inverse(sums: Tensor, length: int) -> Tensor:
    """1 / mean, and 0 where there is none."""
    factors = length / sums.double()
    return factors.masked_fill_(factors == math.inf, 0.0)


def unevenness(factors: Tensor) -> float:
    """1 − geometric ÷ arithmetic mean of the energies 1 / factors: 0 for equal lines, near 1 for a few."""
    energies = 1 / factors[factors > 0]
    if len(energies) == 0:
        return 0.0
    return float(1 - energies.log().mean().exp() / energies.mean())
