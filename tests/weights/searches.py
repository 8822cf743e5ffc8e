"""Lanczos from random starts in one go, as tests want it."""

from __future__ import annotations

import torch
from torch import Tensor

from obverse.weights._decomposition.krylov import BlockLanczos, Krylov
from obverse.weights._decomposition.lanczos import Quadrature, lanczos_from


def lanczos(matrix: Tensor, *, steps: int, vectors: int, generator: torch.Generator) -> Quadrature:
    """On the short side of `matrix`, for several random start vectors at once."""
    short = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    start = torch.empty(vectors, short.shape[0]).normal_(generator=generator).to(short)
    return lanczos_from(start, short, steps=steps)


def block_lanczos(
    matrix: Tensor, *, block: int, steps: int, start: Tensor | None, generator: torch.Generator
) -> Krylov:
    """From `steps` products of M Mᵀ with blocks of vectors; rows ≤ columns."""
    search = BlockLanczos(matrix, block=block, start=start, generator=generator)
    search.extend(steps)
    return search.found()
