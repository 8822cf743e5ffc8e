"""The largest singular values and their directions without all others: block Lanczos with random starts.

Ritz values never exceed the singular values they stand for, so that what has not converged is found too
small, not too large.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ._marchenko_pastur import Array


@dataclass(frozen=True)
class Leading:
    """Singular values, descending, with their left directions; `size` is that of the space searched."""

    values: Array
    left: Tensor  # (rows, as many as were asked for)
    size: int


@torch.no_grad()
def leading(
    matrix: Tensor, *, block: int, steps: int, start: Tensor | None, generator: torch.Generator
) -> Leading:
    """From `steps` products of M Mᵀ with blocks of vectors, fully reorthogonalized; rows ≤ columns.

    `start` are directions to begin with (rows × any number); the block is as wide, at least.
    """
    rows = matrix.shape[0]
    fresh = torch.empty(rows, block, device=generator.device).normal_(generator=generator).to(matrix)
    begin = fresh if start is None else torch.cat((start.to(matrix), fresh), dim=1)
    width = min(begin.shape[1], rows)
    steps = max(1, min(steps, rows // width))
    basis = matrix.new_empty(rows, steps * width)
    image = matrix.new_empty(rows, steps * width)  # of the basis under M Mᵀ
    now = torch.linalg.qr(begin[:, :width]).Q
    for step in range(steps):
        here = slice(step * width, (step + 1) * width)
        basis[:, here] = now
        image[:, here] = matrix @ (matrix.T @ now)
        if step + 1 < steps:
            known = basis[:, : here.stop]
            after = image[:, here].clone()
            for _ in range(2):  # once is not enough in float32
                after -= known @ (known.T @ after)
            now = torch.linalg.qr(after).Q
    inner = (basis.T @ image).double()
    squares, vectors = torch.linalg.eigh((inner + inner.T) / 2)
    values: Array = squares.flip(0).clamp_min(0).sqrt().cpu().numpy()
    return Leading(values, basis @ vectors.flip(1)[:, : len(values) // 2].to(basis), steps * width)
