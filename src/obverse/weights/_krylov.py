"""The largest singular values with their directions, and the density of all: block Lanczos, random starts.

Ritz values never exceed the singular values they stand for, so that what has not converged is found too
small, not too large. Seen from the random vectors of the first block, the same Ritz values are the nodes of a
quadrature of the spectral density.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ._lanczos import Quadrature, lanczos_from
from ._marchenko_pastur import Array


@dataclass(frozen=True)
class Krylov:
    """Singular values, descending, as seen in a space of few dimensions."""

    values: Array
    left: Tensor  # (rows, half as many): directions of the larger half
    weights: Array  # (random start vectors, values): how much of each vector lies in each direction
    steps: int


@torch.no_grad()
def block_lanczos(
    matrix: Tensor, *, block: int, steps: int, start: Tensor | None, generator: torch.Generator
) -> Krylov:
    """From `steps` products of M Mᵀ with blocks of vectors, fully reorthogonalized; rows ≤ columns.

    `start` are known directions (rows × any number, orthonormal), in the first block beside random vectors;
    these are orthogonal to them, so that they see the density of the rest.
    """
    rows = matrix.shape[0]
    known = matrix.new_zeros(rows, 0) if start is None else start.to(matrix)
    block = max(1, min(block, rows - known.shape[1]))
    fresh = torch.empty(rows, block, device=generator.device).normal_(generator=generator).to(matrix)
    now = torch.linalg.qr(torch.cat((known, fresh), dim=1)).Q
    width = now.shape[1]
    steps = max(1, min(steps, rows // width))
    basis = matrix.new_empty(rows, steps * width)
    image = matrix.new_empty(rows, steps * width)  # of the basis under M Mᵀ
    for step in range(steps):
        here = slice(step * width, (step + 1) * width)
        basis[:, here] = now
        image[:, here] = matrix @ (now.T @ matrix).T
        if step + 1 < steps:
            before = basis[:, : here.stop]
            after = image[:, here].clone()
            for _ in range(2):  # once is not enough in float32
                after -= before @ (before.T @ after)
            now = _orthonormal(after, before, float(torch.linalg.vector_norm(image[:, here])))
    inner = (basis.T @ image).double()
    squares, vectors = torch.linalg.eigh((inner + inner.T) / 2)
    squares, vectors = squares.flip(0), vectors.flip(1)
    values: Array = squares.clamp_min(0).sqrt().cpu().numpy()
    weights: Array = vectors[known.shape[1] : width].square().cpu().numpy()
    left = basis @ vectors[:, : max(len(values) // 2, 1)].to(basis)
    return Krylov(values, left, weights, steps)


def _orthonormal(after: Tensor, before: Tensor, length: float) -> Tensor:
    """A basis of the columns of `after`, orthogonal to `before`.

    Where all there is has been seen, only rounding is left, and that lies in the directions seen before: it
    is made orthogonal to them again, or they would count twice.
    """
    found: Tensor
    found, triangle = torch.linalg.qr(after)
    if float(triangle.diagonal().abs().min()) < _NOTHING_LEFT * length:
        for _ in range(2):
            found = torch.linalg.qr(found - before @ (before.T @ found)).Q
    return found


_NOTHING_LEFT = 1e-4  # of the length of a block, after float32 has taken the others out of it twice


def quadrature(found: Krylov, without: int) -> Quadrature:
    """Of the density without the largest values: as many nodes per start vector as there were products.

    Lanczos once more, on the few values alone: it gives what it would give on the matrix.
    """
    values = torch.from_numpy(found.values[without:].copy())
    start = torch.from_numpy(found.weights[:, without:]).sqrt()
    return lanczos_from(start / start.norm(dim=1, keepdim=True), values.diag(), steps=found.steps)
