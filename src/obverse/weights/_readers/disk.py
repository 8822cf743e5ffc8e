"""Bounded reads, members of archives, file names that must stay in their folder. Not for any one format."""

from __future__ import annotations

import io
import struct
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
from torch import Tensor

from ..._core import BadInput
from .stored import printable

_SHARED = ".huggingface-shared-blobs"  # marks the folder of what repositories share
_LONGEST_LINE = 2**16
_ZIP, _ZIP_HEADER = b"PK\x03\x04", 30  # how a member begins, and the bytes before its name


@dataclass(frozen=True)
class Span:
    """Where some bytes of a file are."""

    start: int
    length: int
    title: str


def read_span(path: Path, start: int, length: int, what: str) -> Tensor:
    """Some bytes of a file; the caller has checked that the file has them."""
    try:
        with path.open("rb") as file:
            file.seek(start)
            content = np.fromfile(file, np.uint8, length)
    except OSError as error:
        raise BadInput(f"{what} in {path}", got=error.strerror or error, do="restore the file") from None
    if len(content) < length:
        raise BadInput(
            f"{length:,} bytes of {what} in {path}",
            got=f"{len(content):,}",
            do="don't change the file while it is read",
        )
    return torch.from_numpy(content)


def member(path: Path, info: zipfile.ZipInfo, do: str) -> Span:
    """Where a member's bytes are; its own header, before them, repeats the name and may have more fields."""
    title, room = printable(info.filename), path.stat().st_size
    if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
        raise BadInput(
            f"plain bytes in {title} of {path}",
            got="compressed or encrypted ones, which may unfold without end",
            do=do,
        )
    header = read_span(path, info.header_offset, _ZIP_HEADER, title).numpy().tobytes()
    mark, name, more = struct.unpack("<4s22xHH", header)
    start = info.header_offset + _ZIP_HEADER + name + more
    if mark != _ZIP or info.file_size != info.compress_size or start + info.file_size > room:
        raise BadInput(f"{title} of {path} to fit the file", got=f"{info.file_size:,} bytes", do=do)
    return Span(start, info.file_size, title)


class Window(io.RawIOBase):
    """A part of a file, as a file for reading: who asks for more than there is gets what there is."""

    def __init__(self, file: BinaryIO, start: int, length: int) -> None:
        self._file, self._start, self._length, self._place = file, start, length, 0

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = 0) -> int:
        self._place = max(0, offset + (0, self._place, self._length)[whence])
        return self._place

    def read(self, size: int = -1) -> bytes:
        left = max(0, self._length - self._place)
        self._file.seek(self._start + self._place)
        content = self._file.read(left if size < 0 else min(size, left))
        self._place += len(content)
        return content

    def readline(self, size: int | None = -1) -> bytes:
        self._file.seek(self._start + self._place)
        limit = min(_LONGEST_LINE, max(0, self._length - self._place))
        content = self._file.readline(limit)
        self._place += len(content)
        return content

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        content = self.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)


def inside(folder: Path, name: object, source: Path) -> Path:
    """The file that `source` names, which must exist and lie in `folder` once every link is followed.

    Hugging Face's cache keeps the files of a snapshot as links to blobs beside it, and these, where several
    repositories have one file, as links to blobs beside the repositories: all of them count as inside.
    """
    if not isinstance(name, str) or "\0" in name or not _encodes(name):
        raise BadInput(f"the name of a file in {source}", got=repr(name)[:200], do="restore it")
    homes = [folder.resolve()]
    if homes[0].parent.name == "snapshots":
        homes.append(homes[0].parent.parent / "blobs")
        shared = homes[0].parent.parent.parent / "blobs"
        if (shared / _SHARED).is_file():
            homes.append(shared)
    target = (folder / name).resolve()
    if not any(target.is_relative_to(home) for home in homes) or ".." in Path(name).parts:
        raise BadInput(
            f"only files inside {folder} in {source}",
            got=printable(name),
            do="put the files into one folder; nothing outside it is read",
        )
    if not target.is_file():
        raise BadInput(
            f"the file {printable(name)} that {source} names",
            got="none",
            do="download or copy it into the folder",
        )
    return target


def _encodes(name: str) -> bool:
    """JSON can hold half a character, which no file can have in its name."""
    try:
        return bool(name.encode())
    except UnicodeEncodeError:
        return False
