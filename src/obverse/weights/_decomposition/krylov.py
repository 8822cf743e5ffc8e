"""The largest singular values with their directions, and the density of all: block Lanczos, random starts.

Ritz values never exceed the singular values they stand for, so that what has not converged is found too
small, not too large. Seen from the random vectors of the first block, the same Ritz values are the nodes of a
quadrature of the spectral density.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from .lanczos import Quadrature, lanczos_from
from .marchenko_pastur import Array
from .reduction import Reduction, reduce_gram

STRIPES = 8  # of rows: blocks below the diagonal are the mirror images of those above
BAND = 512  # columns of a band that stays in the cache between two products with it
THIN = 0.6  # speed of products with a block of 32 vectors, as a share of that of square ones


@dataclass(frozen=True, eq=False)
class Krylov:
    """Singular values, descending, as seen in a space of few dimensions."""

    basis: Tensor  # (rows, dimensions) orthonormal
    inner: Tensor  # M Mᵀ in this basis, float64
    known: int  # directions that the first block began with, beside random vectors
    width: int  # of a block
    steps: int

    @cached_property
    def _reduced(self) -> Reduction:
        return reduce_gram(self.inner.clone())

    @property
    def values(self) -> Array:
        return self._reduced.values[::-1]

    @property
    def half(self) -> int:
        """How many of the values are near to singular values: the smaller ones are an average of many."""
        return max(len(self.inner) // 2, 1)

    @property
    def left(self) -> Tensor:
        """Directions of the larger half (rows × half)."""
        return self.leading(self.half)

    def leading(self, count: int) -> Tensor:
        """The directions (rows × count) of the largest values."""
        return self.basis @ self._reduced.leading(count).to(self.basis)

    def quadrature(self, without: int) -> Quadrature:
        """Of the density without the largest values: as many nodes per start vector as there were products.

        Lanczos once more, on the few values alone: it gives what it would give on the matrix.
        """
        kept = len(self.inner) - without
        start = self._reduced.components(self.known, self.width)[:, :kept]
        values = torch.from_numpy(self._reduced.values[:kept].copy())
        return lanczos_from(start / start.norm(dim=1, keepdim=True), values.diag(), steps=self.steps)


class Projected:
    """Singular values, descending, as seen in the space of given orthonormal directions, all of them near."""

    def __init__(self, directions: Tensor, image: Tensor) -> None:
        """`image` (columns × count) is that of the directions (rows × count) under the transposed matrix."""
        exact = image.double()
        squares, turn = torch.linalg.eigh(exact.T @ exact)
        self._directions, self._image, self._turn = directions, image, turn.flip(1).to(directions)
        self.values: Array = squares.flip(0).clamp_min(0).sqrt().cpu().numpy()
        self.half = len(self.values)

    def leading(self, count: int) -> Tensor:
        """The directions (rows × count) of the largest values."""
        leading: Tensor = self._directions @ self._turn[:, :count]
        return leading

    def image(self, count: int) -> Tensor:
        """Of these (columns × count)."""
        image: Tensor = self._image @ self._turn[:, :count]
        return image


class BlockLanczos:
    """Lanczos on M Mᵀ (rows ≤ columns) with a block of vectors, fully reorthogonalized, that can go on.

    `start` are known directions (rows × any number, orthonormal), in the first block beside random vectors;
    these are orthogonal to them, so that they see the density of the rest. With `room` for many dimensions
    M Mᵀ is formed where that saves time.
    """

    def __init__(
        self, matrix: Tensor, *, block: int, start: Tensor | None, generator: torch.Generator, room: int = 0
    ) -> None:
        rows = matrix.shape[0]
        known = matrix.new_zeros(rows, 0) if start is None else start.to(matrix)
        block = max(1, min(block, rows - known.shape[1]))
        fresh = torch.empty(rows, block, device=generator.device).normal_(generator=generator).to(matrix)
        self.matrix, self.known = matrix, known.shape[1]
        self.width = self.known + block
        self.steps = 0
        self._next = torch.cat((known, fresh), dim=1)
        self._length = 0.0  # of the product that `_next` is what is left of
        self._gram = half_gram(matrix) if _gram_pays(rows, matrix.shape[1], room) else None
        self._basis = matrix.new_empty(0, rows)  # one vector a row, so that it grows in place
        self._inner = torch.zeros(0, 0, dtype=torch.float64, device=matrix.device)

    @property
    def size(self) -> int:
        return self.steps * self.width

    @torch.no_grad()
    def extend(self, steps: int) -> None:
        """So many products with M Mᵀ more, as far as there are dimensions left."""
        rows, width = self.matrix.shape[0], self.width
        steps = max(0 if self.steps else 1, min(steps, rows // width - self.steps))
        begin, end = self.size, self.size + steps * width
        inner = self._inner.new_zeros(end, end)
        inner[:begin, :begin] = self._inner
        basis = self._basis.new_empty(end, rows)
        basis[:begin] = self._basis
        self._basis, self._inner = basis, inner
        for _ in range(steps):
            begin, end = self.size, self.size + width
            basis[begin:end] = _orthonormal(self._next, basis[:begin].T, self._length).T
            self._next = self._times(basis[begin:end])
            self._length = float(torch.linalg.vector_norm(self._next))
            space = basis[:end]
            beside = space @ self._next
            inner[:end, begin:end] = beside
            inner[begin:end, :end] = beside.T
            self._next -= space.T @ beside
            self._next -= space.T @ (space @ self._next)  # once is not enough in float32
            self.steps += 1

    def _times(self, vectors: Tensor) -> Tensor:
        """M Mᵀ with vectors (one a row), one a column."""
        if self._gram is not None:
            return self._gram @ vectors.T
        total = torch.zeros_like(vectors)
        for band in self.matrix.split(BAND, dim=1):  # from memory once, not once for each product
            total.addmm_(vectors @ band, band.T)
        return total.T

    def found(self) -> Krylov:
        """As seen in the space so far."""
        inner = (self._inner + self._inner.T) / 2
        return Krylov(self._basis.T, inner, self.known, self.width, self.steps)


def half_gram(matrix: Tensor) -> Tensor:
    """M Mᵀ, by stripes of rows: the blocks above the diagonal, and their mirror images."""
    rows = matrix.shape[0]
    height = -(-rows // STRIPES)
    total = matrix.new_empty(rows, rows)
    for top in range(0, rows, height):
        here = slice(top, top + height)
        torch.mm(matrix[here], matrix[top:].T, out=(block := total.new_empty(len(matrix[here]), rows - top)))
        total[here, top:] = block
        total[top:, here] = block.T
    return total


def _gram_pays(rows: int, columns: int, room: int) -> bool:
    """Whether M Mᵀ and products with it take less time than twice as many products with M."""
    formed = (1 + 1 / STRIPES) * rows * rows * columns
    return 4 * rows * columns * room / THIN > formed + 2 * rows * rows * room / THIN


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
