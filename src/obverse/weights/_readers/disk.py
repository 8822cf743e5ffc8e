"""Bounded reads, and file names that must stay in their folder. Not for any one format."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ..._core import BadInput
from .stored import printable

_SHARED = ".huggingface-shared-blobs"  # marks the folder of what repositories share


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
