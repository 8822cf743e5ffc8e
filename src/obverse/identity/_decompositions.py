"""Singular and eigenvalue decompositions with vectors that are orthogonal. Not for values alone.

Divide and conquer, which torch and numpy use, is fast, and fails now and then where small values cluster: its
vectors are off, by up to 7e-6 in what was tried, or NaN, or an error is raised. Then the slower QR iteration
stands in.
"""

from __future__ import annotations

import torch
from torch import Tensor

TOLERANCE = 1e-13  # of an entry of VᵀV − I; sound vectors have 1e-14 at d = 2000


def svd(matrix: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """U, σ (descending) and Vᵀ of a square matrix in float64."""
    from scipy import linalg

    try:
        left, values, right = torch.linalg.svd(matrix)
        if _orthogonal(left) and _orthogonal(right):
            return left, values, right
    except RuntimeError:  # torch's LinAlgError: it did not converge
        pass
    left, values, right = map(torch.as_tensor, linalg.svd(matrix.cpu().numpy(), lapack_driver="gesvd"))
    return left.to(matrix), values.to(matrix), right.to(matrix)


def eigenvectors(symmetric: Tensor) -> Tensor:
    """Those of a symmetric matrix in float64, in columns, by ascending eigenvalue."""
    from scipy import linalg

    try:
        vectors: Tensor = torch.linalg.eigh(symmetric).eigenvectors
        if _orthogonal(vectors):
            return vectors
    except RuntimeError:  # torch's LinAlgError: it did not converge
        pass
    _, found = linalg.eigh(symmetric.cpu().numpy(), driver="ev")
    return torch.as_tensor(found).to(symmetric)


def _orthogonal(matrix: Tensor) -> bool:
    inner = matrix.T @ matrix
    inner.diagonal().sub_(1)
    return bool(inner.abs().max() <= TOLERANCE)  # false for NaN
