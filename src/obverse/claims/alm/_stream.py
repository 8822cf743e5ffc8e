"""A random matrix W of n × m that is never held: its rows are drawn in blocks when needed, and again alike.

Each group of rows comes from a counter-based generator (Philox) by its number, so that memory does not grow
with n, and no group depends on another or on how many threads draw. Not for what is done with W: see layer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

HELD = 2**22  # entries of W held at a time, 16 MB: memory of this size is used again, and not mapped anew
ALONE = 2**18  # entries from one generator: enough to be worth making it, few enough for several threads
DRAWN = 2**16  # entries drawn at once, so that what they are made from stays in a core's cache

_HELD = threading.local()

Draw = Callable[[np.random.Generator, int, int], np.ndarray]


def normal(random: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Eq. 7: W_ij ~ N(0, 1), by Box and Muller: three times as fast as NumPy's own, which branches.

    32 bits for the radius reach to 6.7 standard deviations; one entry in 4·10¹⁰ should lie beyond.
    """
    found = np.empty((rows, columns), dtype=np.float32)
    fill_normal(found, random)
    return found


def fill_normal(matrix: np.ndarray, random: np.random.Generator) -> None:
    """`normal` into an array of contiguous rows."""
    flat = matrix.reshape(-1)
    half = -(-len(flat) // 2)
    words = draw_words(random, 2 * half)
    radius, angle = scratch("radius", half, np.float32), scratch("angle", half, np.float32)
    share(words[:half], out=radius)
    np.log(radius, out=radius)
    radius *= -2
    np.sqrt(radius, out=radius)
    angle[:] = words[half:].view(np.int32)
    angle *= np.pi / 2**31
    np.cos(angle, out=flat[:half])
    flat[:half] *= radius
    np.sin(angle, out=angle)
    np.multiply(angle[: len(flat) - half], radius[: len(flat) - half], out=flat[half:])


def draw_words(random: np.random.Generator, count: int) -> np.ndarray:
    """So many words of 32 bits."""
    return random.integers(0, 2**64, -(-count // 2), dtype=np.uint64).view(np.uint32)[:count]


def share(words: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Uniform on (0, 1] out of 32-bit words: as float32, finer towards 0 and never 0."""
    found = np.empty(words.shape, dtype=np.float32) if out is None else out
    found[:] = words
    found += 0.5
    found *= 2.0**-32
    return found


def scratch(name: str, count: int, dtype: type) -> np.ndarray:
    """An array that this thread uses again and again: fresh memory costs as much as what is put into it."""
    held: dict[str, np.ndarray] = _HELD.__dict__
    if name not in held or len(held[name]) < count:
        held[name] = np.empty(count, dtype)
    return held[name][:count]


@dataclass(frozen=True)
class Weights:
    """The paper's W (n × m: the transpose of a PyTorch weight), by its seed and the law of its entries.

    `draw` makes the next rows of W, a multiple of 8 of them at a time and at the end what is left.
    """

    inputs: int  # n
    units: int  # m
    seed: int
    draw: Draw = normal

    @property
    def rows(self) -> int:
        """How many rows come from one generator; all but the last have as many."""
        return _eights(ALONE // self.units)

    def blocks(self, stream: int = 0) -> Iterator[tuple[Tensor, list[np.random.Generator]]]:
        """W's rows in order, and for each `rows` of them a generator for what belongs to them, such as masks.

        `stream` gives other such generators beside the same rows.
        """
        together = max(1, HELD // (self.rows * self.units)) * self.rows
        with ThreadPoolExecutor(torch.get_num_threads()) as pool:
            for start in range(0, self.inputs, together):
                block = torch.empty(min(together, self.inputs - start), self.units)
                firsts = range(start, start + len(block), self.rows)
                list(pool.map(self._fill, firsts, block.split(self.rows)))
                yield block, [self._random(first, 1 + stream) for first in firsts]

    def _fill(self, first: int, part: Tensor) -> None:
        fill(part.numpy(), self._random(first, 0), self.draw)

    def _random(self, first: int, stream: int) -> np.random.Generator:
        # Drawing counts up the first two of the four words: 2¹²⁸ steps before it would reach a neighbour.
        counter = np.array([0, 0, first // self.rows, stream], dtype=np.uint64)
        return np.random.Generator(np.random.Philox(key=self.seed, counter=counter))


def draw_seed(generator: torch.Generator) -> int:
    """A seed for a Weights out of a torch generator."""
    return int(torch.randint(2**62, (), generator=generator))


def fill(matrix: np.ndarray, random: np.random.Generator, draw: Draw = normal) -> None:
    """Draw a matrix in place, a few rows at a time."""
    step = _eights(DRAWN // matrix.shape[1])
    for row in range(0, len(matrix), step):
        some = matrix[row : row + step]
        if draw is normal:
            fill_normal(some, random)
        else:
            some[:] = draw(random, *some.shape)


def _eights(count: int) -> int:
    """The multiple of 8 at or below, at least 8."""
    return max(8, count // 8 * 8)
