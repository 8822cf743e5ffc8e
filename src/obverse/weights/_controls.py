"""What a layer is compared with: its own entries in random order, and fresh normal ones. Not for judging."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from .._core import or_global

# Entries that are permuted together. With their order they fit the cache, and torch does not share so few
# out to threads, which on a busy machine would wait for each other hundreds of times.
_BLOCK = 2**15
_ORDERS = 64  # drawn for each of the two rounds; drawing them is half of the work


@torch.no_grad()
def shuffled(matrix: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """The same entries in random order.

    One permutation of everything waits for memory at each entry. Instead: the rows in random order and the
    entries permuted within blocks of rows, then within blocks of columns, each block small enough for the
    cache. An entry can get anywhere, and where it gets tells nothing of where its neighbours are; a matrix
    of one block (2¹⁵ entries) has every order with the same chance. On larger ones each block of rows sends
    the same number of entries to each block of columns, which chance would do only nearly, and each of
    64 orders serves several blocks, chosen at random.
    """
    generator = or_global(generator)
    rows, columns = matrix.shape
    order = torch.randperm(rows, generator=generator, device=generator.device).to(matrix.device)
    result = torch.empty_like(matrix, memory_format=torch.contiguous_format)
    for start, stop, inside in _blocks(rows, columns, generator):
        block = matrix.index_select(0, order[start:stop])
        result[start:stop] = block.flatten().index_select(0, inside.to(block.device)).view(block.shape)
    for start, stop, inside in _blocks(columns, rows, generator):
        block = result[:, start:stop]
        result[:, start:stop] = block.flatten().index_select(0, inside.to(block.device)).view(block.shape)
    return result


@torch.no_grad()
def gaussian(matrix: Tensor, generator: torch.Generator) -> Tensor:
    """Normal entries of mean 0 and of the matrix's mean square."""
    fresh = torch.empty_like(matrix, memory_format=torch.contiguous_format, device=generator.device)
    return fresh.normal_(generator=generator).to(matrix.device).mul_(root_mean_square(matrix))


def root_mean_square(matrix: Tensor) -> float:
    """s of a matrix that need not be centred. Row by row, since one float32 sum over millions drifts."""
    sizes = torch.linalg.vector_norm(matrix, dim=1).double()
    return float((sizes.square().mean() / matrix.shape[1]).sqrt())


def _blocks(lines: int, length: int, generator: torch.Generator) -> Iterator[tuple[int, int, Tensor]]:
    """Start and stop of runs of lines with about `_BLOCK` entries each, and an order for these entries."""
    height = max(1, _BLOCK // length)
    orders: dict[tuple[int, int], Tensor] = {}
    for start in range(0, lines, height):
        stop = min(start + height, lines)
        which = int(torch.randint(_ORDERS, (), generator=generator, device=generator.device))
        if (stop - start, which) not in orders:
            orders[stop - start, which] = torch.randperm(
                (stop - start) * length, generator=generator, device=generator.device, dtype=torch.int32
            )
        yield start, stop, orders[stop - start, which]
