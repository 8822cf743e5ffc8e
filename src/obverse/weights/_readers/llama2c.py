"""Checkpoints of llama2.c: a header of a few numbers, then the weights in a fixed order. Not for tokenizers.

The files have no names and share their ending with torch's. One is taken for such a checkpoint only if its
header promises exactly the bytes that it has, or if what stands behind them is a whole tokenizer of as many
words: that is passed over.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from ..._core import BadInput, counted
from .disk import read_span
from .stored import Stored, block_order

_MARK, _HEADER = 0x616B3432, 256  # of the newer versions; the first has seven numbers and no mark
_LARGEST = 2**31
_MOST_WORDS = 2**20


@dataclass(frozen=True)
class Checkpoint:
    """What is in a file, by its header."""

    version: int
    dim: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    vocabulary: int
    length: int  # of a context
    shared: bool  # embedding and output are one matrix

    @property
    def start(self) -> int:
        return _HEADER if self.version else 28

    def matrices(self) -> Iterator[tuple[str, tuple[int, ...], int]]:
        """Name, shape and number of layers of each block of weights, in the order of the file."""
        wide, narrow = self.dim, self.dim // self.heads * self.kv_heads
        attention = [
            (f"layers.{{}}.attention.{name}.weight", shape, self.layers)
            for name, shape in (
                ("wq", (wide, wide)),
                ("wk", (narrow, wide)),
                ("wv", (narrow, wide)),
                ("wo", (wide, wide)),
            )
        ]
        forward = [
            (f"layers.{{}}.feed_forward.{name}.weight", shape, self.layers)
            for name, shape in (
                ("w1", (self.hidden, wide)),
                ("w2", (wide, self.hidden)),
                ("w3", (self.hidden, wide)),
            )
        ]
        norms = [(f"layers.{{}}.{name}_norm.weight", (wide,), self.layers) for name in ("attention", "ffn")]
        last = [("norm.weight", (wide,), 1)]
        embedding = [("tok_embeddings.weight", (self.vocabulary, wide), 1)]
        output = [] if self.shared else [("output.weight", (self.vocabulary, wide), 1)]
        if self.version:
            yield from [*norms, *last, *embedding, *attention, *forward, *output]
        else:  # the angles of the positions, cosines and sines, are no weights
            angles = [("", (self.length * (wide // self.heads // 2),), 2)]
            yield from [*embedding, norms[0], *attention, norms[1], *forward, *last, *angles, *output]

    def tensors(self) -> Iterator[tuple[str, tuple[int, ...], int]]:
        """Name, shape and place of each tensor; the last one is where the file ends."""
        place = self.start
        for name, shape, count in self.matrices():
            for index in range(count):
                yield name.format(index), shape, place
                place += 4 * math.prod(shape)
        yield "", (), place


def checkpoint_in(path: Path) -> Checkpoint | None:
    """The checkpoint that this file is, or None: no other file has a header that fits its length."""
    with path.open("rb") as file:
        head = file.read(48)
    if head[:8] == struct.pack("<Ii", _MARK, 2):
        raise BadInput(
            f"version 0 or 1 of llama2.c's format in {path}",
            got="version 2, whose scales stand in one of two orders that the file doesn't tell",
            do="export it again with --version 1",
        )
    found = _header(head)
    if found is None:
        return None
    end, size = _end(found), path.stat().st_size
    return found if end == size or (end < size and _is_tokenizer(path, end, found.vocabulary)) else None


def open_llama2c(path: Path) -> dict[str, Stored]:
    """The weights of a checkpoint, named as in Llama's own files."""
    found = checkpoint_in(path)
    if found is None:
        raise BadInput(f"a checkpoint of llama2.c in {path}", got="other bytes", do="check the file")
    stored = {}
    for name, shape, place in sorted(found.tensors(), key=lambda one: block_order(one[0])):
        if name:
            stored[name] = Stored(shape, "float32", partial(_load, path, shape, place, f"{name} in {path}"))
    return stored


def remark_on(path: Path) -> str | None:
    """What of the file is passed over."""
    found = checkpoint_in(path)
    rest = path.stat().st_size - _end(found) if found else 0
    if not rest:
        return None
    return f"a tokenizer follows the weights; its {counted(rest, 'byte')} are passed over"


def _end(checkpoint: Checkpoint) -> int:
    *_, (_, _, end) = checkpoint.tensors()
    return end


def _header(head: bytes) -> Checkpoint | None:
    if len(head) < 48:
        return None
    version = 0
    if struct.unpack_from("<I", head)[0] == _MARK:
        (version,) = struct.unpack_from("<i", head, 4)
        numbers = struct.unpack_from("<7i", head, 8)
        shared = head[36] == 1
        if version != 1 or head[36] > 1:
            return None
    else:
        numbers = struct.unpack_from("<7i", head)
        shared = numbers[5] > 0  # written as a negative number of words where they are two
        numbers = (*numbers[:5], abs(numbers[5]), numbers[6])
    dim, hidden, layers, heads, kv_heads, vocabulary, length = numbers
    if min(numbers) < 1 or layers > 10_000 or dim % heads or heads % kv_heads:
        return None
    if dim * max(dim, hidden, vocabulary) > _LARGEST or length * dim > _LARGEST:
        return None
    return Checkpoint(version, dim, hidden, layers, heads, kv_heads, vocabulary, length, shared)


def _is_tokenizer(path: Path, start: int, words: int) -> bool:
    """The longest word's length, then score, length and letters of each, up to the end of the file."""
    size = path.stat().st_size
    if words > _MOST_WORDS or size - start < 4 + 8 * words or size - start > 4 + 264 * words:
        return False
    content = read_span(path, start, size - start, "a tokenizer").numpy().tobytes()
    (longest,) = struct.unpack_from("<i", content)
    place, seen = 4, 0
    for _ in range(words):
        if place + 8 > len(content):
            return False
        (length,) = struct.unpack_from("<i", content, place + 4)
        if not 0 <= length <= longest:
            return False
        seen, place = max(seen, length), place + 8 + length
    return place == len(content) and seen == longest > 0


def _load(path: Path, shape: tuple[int, ...], place: int, where: str) -> Tensor:
    return read_span(path, place, 4 * math.prod(shape), where).view(torch.float32).reshape(shape)
