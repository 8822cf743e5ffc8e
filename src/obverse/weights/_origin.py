"""Which file or net an audit is of, so that one of another is not mistaken for it. Not for reading weights.

A file is recognized by its name, size, time and a sample of its bytes; a net in memory by all numbers
in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import torch
from torch import Tensor

from .._core import BadInput, Record
from ._readers.open import files_of
from ._readers.stored import Weight

PIECES, PIECE = 16, 2**16  # of a file that are looked at, equally spaced, and bytes of one


@dataclass(frozen=True)
class FileState(Record):
    """A file as it was."""

    name: str
    size: int
    modified: int  # nanoseconds
    sample: str  # digest of some of its bytes


@dataclass(frozen=True)
class Origin(Record):
    """Where weights come from; `content` is the digest of those in memory, and empty for others."""

    paths: tuple[str, ...]
    files: tuple[FileState, ...]
    content: str = ""

    @property
    def lasting(self) -> tuple[tuple[str, int, str], ...]:
        """What is the same for a copy of the files on another machine."""
        return tuple((one.name, one.size, one.sample) for one in self.files)


def origin_of(weights: Sequence[Weight], data: Tensor | None = None) -> Origin:
    """Of weights from files without reading them; of others, and of `data`, by all their numbers."""
    paths = tuple(dict.fromkeys(one.source for one in weights if one.source))
    in_memory = [one for one in weights if not one.source]
    content = _digest(in_memory, data) if in_memory or data is not None else ""
    return Origin(paths, tuple(state for path in paths for state in states(path)), content)


def states(path: str) -> tuple[FileState, ...]:
    """The files that the weights at a path are read from; of an address, none: it names a revision."""
    try:
        return tuple(_state(file) for file in files_of(path))
    except OSError as error:
        raise BadInput(f"to read {path}", got=error.strerror or error, do="check the path") from None


def _state(file: Path) -> FileState:
    about, digest = file.stat(), sha256()
    with file.open("rb") as opened:
        for piece in range(PIECES):
            opened.seek(piece * max(about.st_size - PIECE, 0) // (PIECES - 1))
            digest.update(opened.read(PIECE))
    return FileState(file.name, about.st_size, about.st_mtime_ns, digest.hexdigest())


def _digest(weights: Iterable[Weight], data: Tensor | None) -> str:
    digest = sha256()
    for weight in weights:
        digest.update(f"{weight.name} {weight.kind} {weight.rows} {weight.columns}\0".encode())
        if not weight.left_out:
            _add(digest, weight.load())
            if (bias := weight.load_bias()) is not None:
                _add(digest, bias)
    if data is not None:
        digest.update(f"data {tuple(data.shape)}\0".encode())
        _add(digest, data)
    return digest.hexdigest()


def _add(digest: object, values: Tensor) -> None:
    for some in values.detach().flatten().split(2**22):
        digest.update(some.cpu().contiguous().view(torch.uint8).numpy())  # type: ignore[attr-defined]
