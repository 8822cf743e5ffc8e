"""The density of singular values without computing them all: stochastic Lanczos quadrature.

From a random start vector, k steps give k nodes and weights that integrate polynomials up to degree 2k − 1
against the spectral density as the vector sees it. Not for exact values: see spectrum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from . import marchenko_pastur as law
from .marchenko_pastur import Array

MIDDLE = (0.1, 0.9)  # the shares between which a law's scale is fitted: spikes and edges stay out


@dataclass(frozen=True)
class Quadrature:
    """One row a start vector: singular values (ascending), their weights, and how far each is from converged.

    A node is within `residuals` of a singular value.
    """

    nodes: Array
    weights: Array
    residuals: Array

    @property
    def shares(self) -> Array:
        """The share of the density below each node; half of a node's own weight lies below it."""
        result: Array = np.cumsum(self.weights, axis=1) - self.weights / 2
        return result


@torch.no_grad()
def lanczos_from(start: Tensor, short: Tensor, *, steps: int) -> Quadrature:
    """Lanczos on the rows of `short`, for given start vectors (one a row), fully reorthogonalized."""
    vectors, size = start.shape
    steps = min(steps, size)
    basis = torch.zeros(steps, vectors, size, device=short.device, dtype=short.dtype)
    diagonal = torch.zeros(vectors, steps, dtype=torch.float64)
    beside = torch.zeros(vectors, steps, dtype=torch.float64)
    now = start / start.norm(dim=1, keepdim=True)
    going = torch.ones(vectors, 1, dtype=torch.bool, device=short.device)
    for step in range(steps):
        basis[step] = now
        after = (now @ short) @ short.T
        before = after.norm(dim=1, keepdim=True)
        diagonal[:, step] = (after * now).sum(1).double().cpu()
        for _ in range(2):  # once is not enough in float32
            overlap = torch.einsum("kvn,vn->kv", basis[: step + 1], after)
            after = after - torch.einsum("kv,kvn->vn", overlap, basis[: step + 1])
        length = after.norm(dim=1, keepdim=True)
        # nothing but rounding is left: the vector has seen all there is, and what follows would be ghosts
        going = going & (length > _NOTHING_LEFT * before)
        beside[:, step] = torch.where(going, length, 0.0)[:, 0].double().cpu()
        now = torch.where(going, after / length.clamp_min(torch.finfo(short.dtype).tiny), 0.0)
    tridiagonal = torch.diag_embed(diagonal)
    if steps > 1:
        tridiagonal += torch.diag_embed(beside[:, :-1], 1) + torch.diag_embed(beside[:, :-1], -1)
    squares, columns = torch.linalg.eigh(tridiagonal)
    nodes = squares.clamp_min(0).sqrt()
    # |θ − σ²| ≤ β|last entry|, and σ² − θ = (σ − √θ)(σ + √θ)
    residuals = beside[:, -1:] * columns[:, -1].abs() / nodes.clamp_min(1e-300)
    return Quadrature(nodes.numpy(), columns[:, 0].square().numpy(), residuals.numpy())


_NOTHING_LEFT = 1e-5  # of a vector, after float32 has taken the others out of it twice


@dataclass(frozen=True)
class Fit:
    """The Marchenko–Pastur law fitted to a density, its distance, and that distance's error."""

    scale: float
    distance: float
    error: float


def fit_law(found: Quadrature, rows: int, columns: int) -> Fit:
    """Fit the law's scale to the middle of a density; Kolmogorov–Smirnov distance at the nodes.

    The error is the standard error over start vectors plus the resolution, the distance that the law's own
    quadrature with as many nodes has to itself.
    """
    shares = found.shares
    scale = fit_scale(found.nodes, shares, rows, columns)
    gaps = shares - law.cdf(found.nodes, rows, columns, scale)
    spread = gaps.std(axis=0, ddof=1) / np.sqrt(len(gaps)) if len(gaps) > 1 else np.zeros(gaps.shape[1])
    own = own_quadrature(gaps.shape[1], rows, columns)
    resolution = np.abs(own.shares - law.cdf(own.nodes, rows, columns, 1.0)).max()
    distance = max(float(np.abs(gaps.mean(axis=0)).max()), _jump(found, gaps))
    return Fit(scale, distance, float(spread.max() + resolution))


def _jump(found: Quadrature, gaps: Array) -> float:
    """Distance just before or behind a node that is a singular value itself, by the median start vector.

    There the density jumps by the node's whole weight: many singular values are one and the same.
    """
    converged = found.residuals < _CONVERGED * found.nodes
    beside = np.where(converged, np.abs(gaps) + found.weights / 2, 0.0)
    return float(np.median(beside.max(axis=1)))


_CONVERGED = 1e-4


def fit_scale(singular: Array, shares: Array, rows: int, columns: int, fewer: Array | float = 0.0) -> float:
    """Least squares of singular values on the law's quantiles, over the middle of the density.

    A share `fewer` of the law's values than it says is above each of them (see repulsion).
    """
    middle = (shares > MIDDLE[0]) & (shares < MIDDLE[1])
    if not middle.any():
        middle = np.ones_like(shares, dtype=bool)
    expected = law.quantiles((shares - fewer)[middle], rows, columns)
    return float((singular[middle] @ expected) / (expected @ expected))


def own_quadrature(steps: int, rows: int, columns: int) -> Quadrature:
    """The nodes and weights that Lanczos finds for the law itself, at scale 1.

    Its Jacobi matrix is constant: 1, then 1 + c, with √c beside the diagonal (in units of the long side).
    """
    short, long = sorted((rows, columns))
    c = short / long
    diagonal = np.full(steps, 1 + c)
    diagonal[0] = 1.0
    beside = np.full(steps - 1, np.sqrt(c))
    squares, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1))
    nodes = np.sqrt(np.clip(squares, 0, None) * long)
    return Quadrature(nodes[None], vectors[0][None] ** 2, np.zeros((1, steps)))
