"""The density of singular values without computing them all: stochastic Lanczos quadrature.

From a random start vector, k steps give k nodes and weights that integrate polynomials up to degree 2k − 1
against the spectral density as the vector sees it. Not for exact values: see spectrum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from . import _marchenko_pastur as law
from ._marchenko_pastur import Array

MIDDLE = (0.1, 0.9)  # the shares between which a law's scale is fitted: spikes and edges stay out


@dataclass(frozen=True)
class Quadrature:
    """One row per start vector: singular values (ascending), their weights, and how far from converged.

    A node is within `residuals` of a singular value.
    """

    nodes: Array
    weights: Array
    residuals: Array
    size: int  # the number of singular values that the density stands for

    @property
    def shares(self) -> Array:
        """The share of the density below each node; half of a node's own weight lies below it."""
        result: Array = np.cumsum(self.weights, axis=1) - self.weights / 2
        return result

    @property
    def sampling_error(self) -> float:
        """Largest standard error of a share: of the share u, 2u(1 − u) / (size · vectors), as if u = ½.

        The start vectors are at right angles to each other: as many as there are singular values miss none.
        """
        vectors = len(self.nodes)
        return math.sqrt(max(0.5 / (self.size * vectors) * (1 - vectors / self.size), 0.0))

    def mean_share(self, low: float, high: float) -> float:
        """The share of the density between two singular values."""
        inside = (self.nodes >= low) & (self.nodes <= high)
        return float((self.weights * inside).sum(axis=1).mean())

    def between(self, low: float, high: float) -> Quadrature:
        """The density between two singular values alone; weights of each start vector add up to 1 again."""
        weights = np.where((self.nodes >= low) & (self.nodes <= high), self.weights, 0.0)
        total = weights.sum(axis=1, keepdims=True)
        weights = np.divide(weights, total, out=self.weights.copy(), where=total > 0)
        return Quadrature(self.nodes, weights, self.residuals, self.size)


@torch.no_grad()
def lanczos(
    matrix: Tensor, *, steps: int, vectors: int, generator: torch.Generator
) -> tuple[Quadrature, Tensor]:
    """Lanczos on the short side of `matrix`, for several random orthonormal start vectors at once."""
    short = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    size = short.shape[0]
    start = torch.empty(size, min(vectors, size)).normal_(generator=generator).to(short)
    return lanczos_from(torch.linalg.qr(start).Q.T.contiguous(), short, steps=steps)


@torch.no_grad()
def lanczos_from(start: Tensor, short: Tensor, *, steps: int) -> tuple[Quadrature, Tensor]:
    """Lanczos on the rows of `short`, for given start vectors (one a row), fully reorthogonalized.

    The density, and the vectors of all steps (steps · vectors × short side).
    """
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
    found = Quadrature(nodes.numpy(), columns[:, 0].square().numpy(), residuals.numpy(), size)
    return found, basis.reshape(-1, size)


_NOTHING_LEFT = 1e-5  # of a vector, after float32 has taken the others out of it twice


@torch.no_grad()
def leading(matrix: Tensor, basis: Tensor) -> tuple[Tensor, Tensor]:
    """The best singular values (descending) and directions of the short side that a basis (rows) holds.

    The i-th value is never above the i-th singular value of the matrix (Cauchy's interlacing).
    """
    short = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    frame = torch.linalg.qr(basis.T).Q
    left, values, _ = torch.linalg.svd(frame.T @ short, full_matrices=False)
    return values, frame @ left


@dataclass(frozen=True)
class Fit:
    """The Marchenko–Pastur law fitted to a density, its distance, and how far off that may be.

    `error` is one standard error from the start vectors; `resolution` bounds what the nodes cannot tell:
    at a node the share below it is known to half of its weight (Chebyshev, Markov and Stieltjes).
    """

    scale: float
    distance: float
    error: float
    resolution: float


def fit_law(found: Quadrature, rows: int, columns: int) -> Fit:
    """Fit the law's scale to the middle of a density; Kolmogorov–Smirnov distance of the two."""
    shares = np.linspace(*MIDDLE, 402)[1:-1]
    scale = fit_scale(quantiles(found, shares), shares, rows, columns)
    if scale <= 0:
        return Fit(scale, 1.0, found.sampling_error, 0.0)
    low, high = law.edges(rows, columns, scale)
    inside = scale * law.quantiles(np.arange(1, 400) / 400, rows, columns)
    jumps = found.nodes[_atoms(found)]
    points = np.concatenate((inside, [0.0, 0.99 * low, low, high, 1.01 * high], jumps, jumps * (1 + 1e-6)))
    found_shares, unknown = mean_cdf(found, points)
    distance = float(np.abs(found_shares - law.cdf(points, rows, columns, scale)).max())
    return Fit(scale, distance, found.sampling_error, float(unknown.max()))


def quantiles(found: Quadrature, shares: Array) -> Array:
    """The singular values below which these shares of the density lie."""
    order = np.argsort(found.nodes, axis=None)
    below = np.cumsum(found.weights.flatten()[order]) / len(found.nodes)
    result: Array = found.nodes.flatten()[order][np.searchsorted(below, shares).clip(max=len(order) - 1)]
    return result


def _atoms(found: Quadrature) -> npt.NDArray[np.bool_]:
    """Nodes that are singular values of their own, with all of their weight: the density jumps there."""
    reach = found.nodes.max(axis=1, keepdims=True)
    # a singular value of 0 is found to the rounding of its square
    converged = (found.residuals < 1e-3 * found.nodes) | (found.nodes < 1e-3 * reach)
    atoms: npt.NDArray[np.bool_] = converged & (found.weights > 1e-9)
    return atoms


def mean_cdf(found: Quadrature, points: Array) -> tuple[Array, Array]:
    """The share of the density at or below each point, averaged over start vectors, and how well it is known.

    Straight lines between the nodes' shares, but steps at nodes that have converged.
    """
    total, unknown = np.zeros(len(points)), np.zeros(len(points))
    atoms = _atoms(found)
    for nodes, shares, weights, jumps in zip(found.nodes, found.shares, found.weights, atoms, strict=True):
        half = np.where(jumps, weights / 2, 0.0)
        x = np.stack((nodes * np.where(jumps, 1 - 1e-7, 1.0), nodes), axis=1).flatten()
        y = np.stack((shares - half, shares + half), axis=1).flatten()
        used = np.repeat(weights > 0, 2)
        x, y = _with_ends(x[used], y[used])
        total += np.interp(points, x, y, left=0.0, right=1.0)
        open_nodes = ~jumps & (weights > 0)
        if open_nodes.any():
            unknown += np.interp(points, nodes[open_nodes], weights[open_nodes] / 2, left=0.0, right=0.0)
    return total / len(found.nodes), unknown / len(found.nodes)


def _with_ends(x: Array, y: Array) -> tuple[Array, Array]:
    """The outermost nodes stand for what lies half a gap beyond them too, unless they have converged."""
    first, last = x[0] - (x[min(2, len(x) - 1)] - x[0]) / 2, x[-1] + (x[-1] - x[max(-3, -len(x))]) / 2
    return np.concatenate(([max(first, 0.0)], x, [last])), np.concatenate(([0.0], y, [1.0]))


def fit_scale(singular: Array, shares: Array, rows: int, columns: int) -> float:
    """Least squares of singular values on the law's quantiles, over the middle of the density."""
    middle = (shares > MIDDLE[0]) & (shares < MIDDLE[1])
    if not middle.any():
        middle = np.ones_like(shares, dtype=bool)
    expected = law.quantiles(shares[middle], rows, columns)
    return float((singular[middle] @ expected) / (expected @ expected))
