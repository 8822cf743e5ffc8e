"""Weights in .gguf files, one or split. The container is read here; the package gguf dequantizes.

Beside the tensor asked for, names and a few megabytes of the file are in memory at a time. Shapes are stored
with the inputs first, and are turned. Some converters put the rows of query and key into another order
than the original has; singular values do not depend on it.
"""

from __future__ import annotations

import math
import mmap
import re
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..._core import BadInput, require
from .disk import inside, read_span
from .layout import weights_in
from .naming import Layer
from .stored import Stored, Weight, block_order, printable

_MAGIC, _VERSIONS = b"GGUF", (2, 3)
_ALIGNMENT = 32
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_SIDES = 4  # of a tensor, in ggml
_MOST_ITEMS = 2**22  # texts and lists in all metadata; vocabularies have some hundred thousand
_MOST_TENSORS = 2**17
_LONGEST_NAME = 2**16
_SPLIT = re.compile(r"(?P<stem>.*)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf", re.IGNORECASE)
_PLAIN = {"F32": "float32", "F16": "float16", "F64": "float64", "BF16": "bfloat16"}
_WHOLE = {"I8": "int8", "I16": "int16", "I32": "int32", "I64": "int64"}
_READ_AT_ONCE = 2**22  # bytes that are turned into numbers at a time
_DO = "download or convert it again"


def open_gguf(path: Path) -> tuple[Weight, ...]:
    """The weights of a .gguf file, or of all files of a split model when one of them is named."""
    require("gguf", "gguf")
    stored: dict[str, Stored] = {}
    for part in _parts(path):
        with _mapped(part) as reader:
            found = {name: _stored(name, part, reader, one) for name, one in _tensors(reader)}
        if twice := next(iter(found.keys() & stored.keys()), None):
            raise BadInput(
                f"each tensor once in the parts of {path}", got=f"{printable(twice)} twice", do=_DO
            )
        stored |= found
    stored = {name: stored[name] for name in sorted(stored, key=block_order)}
    stacks = {
        name: Layer("matrix")  # one for each head, which no one matrix stands for
        for name, one in stored.items()
        if len(one.shape) == 3 and not re.search(r"conv|patch|_exps\.", name)
    }
    return weights_in(stored, str(path), stacks, file=True)


def split_names(path: Path) -> list[str]:
    """The names of all parts of a split model that this file is one of; else its own."""
    if not (match := _SPLIT.fullmatch(path.name)):
        return [path.name]
    names = (f"{match['stem']}-{one + 1:05}-of-{match['count']}.gguf" for one in range(int(match["count"])))
    return [path.name if name.lower() == path.name.lower() else name for name in names]


def _parts(path: Path) -> Iterator[Path]:
    names = split_names(path)
    if path.name not in names:
        raise BadInput(f"a part of a split model as {path.name}", got="a number beyond the last", do=_DO)
    for name in names:
        yield path if name == path.name else inside(path.parent, name, path)


@dataclass
class _Reader:
    """The bytes of a file from front to back, each checked to be there."""

    path: Path
    content: mmap.mmap
    place: int = 0
    items: int = 0

    def take(self, length: int) -> bytes:
        start = self.skip(length)
        return self.content[start : self.place]

    def skip(self, length: int) -> int:
        start = self.place
        if length > len(self.content) - start:
            got = f"{len(self.content):,} bytes in all"
            raise BadInput(f"{length:,} bytes at {start:,} of {self.path}", got=got, do=_DO)
        self.place += length
        return start

    def number(self, form: str) -> Any:
        (value,) = struct.unpack(f"<{form}", self.take(struct.calcsize(form)))
        return value

    def text(self) -> str:
        length = self.number("Q")
        if length > _LONGEST_NAME:
            raise BadInput(f"names of at most {_LONGEST_NAME:,} bytes in {self.path}", got=length, do=_DO)
        try:
            return self.take(length).decode()
        except UnicodeDecodeError as error:
            raise BadInput(f"names in UTF-8 in {self.path}", got=error, do=_DO) from None

    def value(self, kind: int) -> Any:
        """A number; what is longer is passed over."""
        if kind in _SCALARS:
            return self.number(_SCALARS[kind])
        if kind == _STRING:
            self.skip(self.number("Q"))
        elif kind == _ARRAY:
            self.pass_over(*struct.unpack("<IQ", self.take(12)))
        else:
            raise BadInput(f"a known kind of metadata in {self.path}", got=f"number {kind}", do=_DO)
        return None

    def pass_over(self, kind: int, count: int) -> None:
        if kind in _SCALARS:
            self.skip(count * struct.calcsize(_SCALARS[kind]))
            return
        self.items += count
        if self.items > _MOST_ITEMS or kind == _ARRAY:
            got = "lists of lists" if kind == _ARRAY else f"{self.items:,}"
            raise BadInput(f"at most {_MOST_ITEMS:,} texts as metadata of {self.path}", got=got, do=_DO)
        for _ in range(count):
            self.value(kind)


@dataclass(frozen=True)
class _Tensor:
    shape: tuple[int, ...]
    kind: int
    start: int  # in the file


@contextmanager
def _mapped(path: Path) -> Iterator[_Reader]:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        yield _Reader(path, content)


def _tensors(reader: _Reader) -> Iterator[tuple[str, _Tensor]]:
    """Names, shapes, types and places, as the head of the file has them."""
    path = reader.path
    if len(reader.content) < 24 or reader.take(4) != _MAGIC:
        raise BadInput(f"a GGUF file in {path}", got="other bytes", do=_DO)
    version = reader.number("I")
    if version not in _VERSIONS:
        got = "big-endian numbers" if version & 0xFFFF == 0 else f"version {version}"
        raise BadInput(f"version 2 or 3 of GGUF, little-endian, in {path}", got=got, do="convert it again")
    count, pairs = reader.number("Q"), reader.number("Q")
    if count > _MOST_TENSORS or pairs > _MOST_TENSORS:
        got = f"{count:,} and {pairs:,}"
        raise BadInput(f"at most {_MOST_TENSORS:,} tensors and pairs of metadata in {path}", got=got, do=_DO)
    alignment: Any = _ALIGNMENT
    for _ in range(pairs):
        key = reader.text()
        value = reader.value(reader.number("I"))
        if key == "general.alignment":
            alignment = value
    if type(alignment) is not int or alignment < 1 or alignment & (alignment - 1):
        raise BadInput(f"a power of two as general.alignment of {path}", got=alignment, do=_DO)
    found: dict[str, _Tensor] = {}
    for _ in range(count):
        name, sides = reader.text(), reader.number("I")
        if sides > _SIDES or name in found:
            got = "the same name twice" if name in found else f"{sides:,}"
            raise BadInput(f"at most {_SIDES} dimensions of {printable(name)} in {path}", got=got, do=_DO)
        shape = struct.unpack(f"<{sides}Q", reader.take(8 * sides))
        kind, start = struct.unpack("<IQ", reader.take(12))
        found[name] = _Tensor(tuple(reversed(shape)), kind, start)
    base = -(-reader.place // alignment) * alignment
    for name, one in found.items():
        yield name, _Tensor(one.shape, one.kind, base + one.start)


def _stored(name: str, path: Path, reader: _Reader, tensor: _Tensor) -> Stored:
    """Where its numbers are, once the file has been found to hold as many."""
    from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

    where = f"{printable(name)} in {path}"
    try:
        kind = GGMLQuantizationType(tensor.kind)
        block, size = GGML_QUANT_SIZES[kind]
    except (ValueError, KeyError):
        return _unreadable(tensor, f"type {tensor.kind}")
    if (tensor.shape or (1,))[-1] % block:
        got = f"blocks of {block} in {kind.name}"
        raise BadInput(f"whole blocks in the rows of {where}", got=got, do=_DO)
    length, room = math.prod(tensor.shape) // block * size, len(reader.content)
    if tensor.start + length > room:
        raise BadInput(
            f"{length:,} bytes from {tensor.start:,} for {where}", got=f"{room:,} bytes in all", do=_DO
        )
    if plain := (_PLAIN | _WHOLE).get(kind.name):
        dtype: torch.dtype = getattr(torch, plain)

        def load() -> Tensor:
            return read_span(path, tensor.start, length, where).view(dtype).reshape(tensor.shape)

        return Stored(tensor.shape, plain, load)
    if not _dequantizes(kind, size):
        return _unreadable(tensor, kind.name)
    return Stored(tensor.shape, "float32", _blocks(path, tensor, kind, block, size, where))


def gguf_version() -> str:
    from importlib.metadata import version

    return version("gguf")


def _unreadable(tensor: _Tensor, kind: str) -> Stored:
    reason = (
        f"GGUF {kind}, which the package gguf {gguf_version()} cannot turn into numbers; update it "
        "(pip install -U gguf), or convert the model to F16 or Q8_0"
    )

    def load() -> Tensor:
        raise BadInput("a type that can be turned into numbers", got=f"GGUF {kind}", do="update gguf")

    return Stored(tensor.shape, f"GGUF {kind}", load, unreadable=reason)


def _dequantizes(kind: Any, size: int) -> bool:
    """Whether the package knows the type: it has a list of its own, which only trying asks."""
    from gguf.quants import dequantize

    try:
        with np.errstate(all="ignore"):
            dequantize(np.zeros((1, size), np.uint8), kind)
    except NotImplementedError:
        return False
    return True


def _blocks(
    path: Path, tensor: _Tensor, kind: Any, block: int, size: int, where: str
) -> Callable[[], Tensor]:
    """Some rows at a time: what the package needs on its way is several times what it returns."""
    from gguf.quants import dequantize

    def load() -> Tensor:
        columns = tensor.shape[-1]
        rows, length = math.prod(tensor.shape[:-1]), columns // block * size
        values = torch.empty(rows, columns)
        step = max(1, _READ_AT_ONCE // max(length, 1))
        for first in range(0, rows, step):
            count = min(step, rows - first)
            content = read_span(path, tensor.start + first * length, count * length, where).numpy()
            with np.errstate(all="ignore"):  # scales without a finite value are refused with their place
                numbers = dequantize(content.reshape(count, length), kind)
            values[first : first + count] = torch.from_numpy(numbers)
        return values.reshape(tensor.shape)

    return load
