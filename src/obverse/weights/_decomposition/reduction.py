"""All singular values of a matrix and its leading directions from one reduction to tridiagonal form.

The Gram matrix in float64 has its eigenvalues exact to 1e-16 of the largest, the singular values then to
1e-8 of the largest. Reducing it is nearly all of the work; the values and any of the vectors follow from it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .marchenko_pastur import Array

CHUNK = 2**22  # entries converted to float64 at a time
STRIPES = 4  # of rows, where the Gram matrix is large: half of it is the other half


@dataclass(frozen=True)
class Reduction:
    """G = Q T Qᵀ with T tridiagonal; Q as the reflections that LAPACK keeps."""

    values: Array  # singular values, ascending
    diagonal: Array
    beside: Array
    reflectors: Array
    factors: Array

    def leading(self, count: int) -> Tensor:
        """The directions (rows × count, float64) of the largest singular values, descending."""
        from scipy.linalg import eigh_tridiagonal

        size = len(self.values)
        if count == 0:
            return torch.zeros(size, 0, dtype=torch.float64)
        _, vectors = eigh_tridiagonal(
            self.diagonal,
            self.beside,
            select="i",
            select_range=(size - count, size - 1),
            lapack_driver="stemr",
        )
        return torch.from_numpy(self._reflected(vectors[:, ::-1], "N"))

    def components(self, first: int, last: int) -> Tensor:
        """Of the unit vectors from `first` to before `last` (rows), along all directions (ascending)."""
        from scipy.linalg import eigh_tridiagonal

        _, vectors = eigh_tridiagonal(self.diagonal, self.beside, lapack_driver="stemr")
        units = np.eye(len(self.values))[:, first:last]
        return torch.from_numpy(self._reflected(units, "T").T @ vectors)

    def _reflected(self, vectors: Array, way: str) -> Array:
        """Q times vectors ("N"), or Qᵀ times them ("T"); their first entries stay."""
        from scipy.linalg import lapack

        inner = np.asfortranarray(vectors[1:])
        work = int(lapack.dormqr("L", way, self.reflectors, self.factors, inner, -1)[1][0])
        turned = lapack.dormqr("L", way, self.reflectors, self.factors, inner, work, overwrite_c=1)[0]
        return np.concatenate((vectors[:1], turned))


@torch.no_grad()
def reduce(matrix: Tensor) -> Reduction:
    """Of a matrix with rows ≤ columns, at least two rows."""
    return reduce_gram(gram(matrix))


def reduce_gram(square: Tensor) -> Reduction:
    """Of a Gram matrix in float64, which is not kept."""
    from scipy.linalg import lapack

    size = len(square)
    work = int(lapack.dsytrd_lwork(size, lower=1)[0])
    # it is symmetric: its transpose is the same matrix in the order that LAPACK wants
    reflectors, diagonal, beside, factors, _ = lapack.dsytrd(
        square.cpu().numpy().T, lower=1, lwork=work, overwrite_a=1
    )
    squares, failed = lapack.dsterf(diagonal, beside)
    if failed:
        raise ArithmeticError(f"expected {size} eigenvalues to be found; got {size - failed}")
    values = np.sqrt(np.maximum(squares, 0.0))
    return Reduction(values, diagonal, beside, reflectors[1:, :-1], factors)


def gram(matrix: Tensor) -> Tensor:
    """M Mᵀ in float64, a few columns at a time; of a large one the upper half, and its mirror image."""
    rows = matrix.shape[0]
    total = torch.zeros(rows, rows, dtype=torch.float64, device=matrix.device)
    height = rows if rows < 2 * HIGH else -(-rows // STRIPES)
    for band in matrix.split(max(1, CHUNK // rows), dim=1):
        wide = band.double()
        for top in range(0, rows, height):
            total[top : top + height, top:].addmm_(wide[top : top + height], wide[top:].T)
    for top in range(height, rows, height):
        total[top : top + height, :top] = total[:top, top : top + height].T
    return total


HIGH = 256  # rows of a stripe from which a product of stripes is as fast as that of whole matrices
