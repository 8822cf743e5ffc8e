"""The profile of a matrix: the scale of each row and of each column. Not for what is left without it.

Sinkhorn's iteration on the squared entries finds r, c > 0 such that all rows and all columns of r_i W_ij² c_j
have the same mean (Landa, Zhang and Kluger 2022, "biwhitening").
"""

from __future__ import annotations

import torch
from torch import Tensor

SWEEPS = 50  # far more than a dense matrix needs; a sparse one may have no solution, and stops here
TOLERANCE = (
    1e-4  # relative, of the rows' means: their own sampling error is √(2 / columns), a hundred times that
)


@torch.no_grad()
def sinkhorn(
    squares: Tensor, *, start: Tensor | None = None, sweeps: int = SWEEPS, tolerance: float = TOLERANCE
) -> tuple[Tensor, Tensor]:
    """Factors (rows), (columns) in float64 that give every row and column of `squares` the mean 1.

    `start` are the factors of the columns to begin with. Lines without energy keep the factor 0: there is no
    scale that would give them any.
    """
    columns = squares.shape[1]
    of_columns = torch.ones(columns, dtype=torch.float64, device=squares.device) if start is None else start
    of_rows = _factors(squares, of_columns)
    for _ in range(sweeps):
        of_columns = _factors(squares.T, of_rows)
        before, of_rows = of_rows, _factors(squares, of_columns)
        if bool(((of_rows - before).abs() <= tolerance * of_rows).all()):
            break
    return of_rows, of_columns


def _factors(squares: Tensor, others: Tensor) -> Tensor:
    means = (squares @ others.to(squares.dtype)).double() / squares.shape[1]
    return torch.where(means > 0, 1 / means, 0.0)


def unevenness(factors: Tensor) -> float:
    """1 − geometric ÷ arithmetic mean of the energies 1 / factors: 0 for equal lines, near 1 for a few."""
    energies = 1 / factors[factors > 0]
    if len(energies) == 0:
        return 0.0
    return float(1 - energies.log().mean().exp() / energies.mean())
