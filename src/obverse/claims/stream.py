"""A random matrix W of n × m that is never held: its rows are drawn in blocks when needed, and again alike.

Each block comes from a counter-based generator (Philox) by its number, so that memory does not grow with n
and no block depends on another. Not for what is done with W (see layer).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

ROWS = 256  # of one block of the generator
ENTRIES = 2**24  # of W held at a time: 64 MB

Draw = Callable[[np.random.Generator, int, int], np.ndarray]


def normal(random: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Eq. 7: W_ij ~ N(0, 1)."""
    return random.standard_normal((rows, columns), dtype=np.float32)


@dataclass(frozen=True)
class Weights:
    """The paper's W (n × m: the transpose of a PyTorch weight), by its seed and the law of its entries."""

    inputs: int  # n
    units: int  # m
    seed: int
    draw: Draw = normal

    def blocks(self, stream: int = 0) -> Iterator[tuple[Tensor, list[np.random.Generator]]]:
        """W's rows in order, and for each ROWS of them a generator for what belongs to them, such as masks.

        `stream` gives other such generators beside the same rows.
        """
        together = max(1, ENTRIES // (ROWS * self.units)) * ROWS
        with ThreadPoolExecutor(torch.get_num_threads()) as pool:
            for start in range(0, self.inputs, together):
                firsts = range(start, min(start + together, self.inputs), ROWS)
                parts = list(pool.map(self._part, firsts))
                whole = parts[0] if len(parts) == 1 else np.concatenate(parts)
                yield torch.from_numpy(whole), [self._random(first, 1 + stream) for first in firsts]

    def _part(self, first: int) -> np.ndarray:
        return self.draw(self._random(first, 0), min(ROWS, self.inputs - first), self.units)

    def _random(self, first: int, stream: int) -> np.random.Generator:
        counter = np.array([0, 0, first // ROWS, stream], dtype=np.uint64)
        return np.random.Generator(np.random.Philox(key=self.seed, counter=counter))


def draw_seed(generator: torch.Generator) -> int:
    """A seed for a Weights out of a torch generator."""
    return int(torch.randint(2**62, (), generator=generator))
