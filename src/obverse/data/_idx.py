"""Reads one idx file of bytes, the format of MNIST. Not for the idx types that hold other numbers."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import numpy.typing as npt

from .._core import BadInput
from ._dataset import check_room

_CHUNK = 2**20


def read_idx(path: Path, dimensions: int, shape: tuple[int, ...] | None = None) -> npt.NDArray[np.uint8]:
    """The array in `path` (gzip if the name ends in .gz); `shape`, if given, is what it must have.

    Memory is taken as the content comes, never on the word of the header.
    """
    length = 4 + 4 * dimensions
    try:
        with _open(path) as stream:
            header = stream.read(length)
            if len(header) < length:
                raise _bad(path, f"at least {length} bytes", f"{len(header)}")
            if header[:4] != bytes((0, 0, 0x08, dimensions)):
                raise _bad(path, f"magic 0000080{dimensions} (bytes, {dimensions}-d)", header[:4].hex())
            found = struct.unpack(f">{dimensions}I", header[4:])
            if shape is not None and found != shape:
                raise _bad(path, f"shape {shape} in the header", found)
            count = math.prod(found)
            check_room(count, str(path))
            size = path.stat().st_size
            if path.suffix != ".gz" and size != length + count:
                raise _bad(path, f"{length + count:,} bytes for shape {found}", f"{size:,}")
            content = _read_at_most(stream, count + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise _bad(path, "a readable idx file", error) from error
    if len(content) != count:
        got = f"{len(content):,}" if len(content) < count else "more"
        raise _bad(path, f"{count:,} values for shape {found}", got)
    return np.frombuffer(content, np.uint8).reshape(found)


def _open(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def _read_at_most(stream: BinaryIO, count: int) -> bytearray:
    content = bytearray()
    while len(content) < count and (chunk := stream.read(min(_CHUNK, count - len(content)))):
        content += chunk
    return content


def _bad(path: Path, expected: str, got: object) -> BadInput:
    return BadInput(
        f"{expected} in {path}",
        got=got,
        do="delete the file and load again, or put a sound copy in its place",
    )
