"""One case: files in a folder and the command that reads them. Not for what becomes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

HERE = "."  # where a case is run: the folder with its files
OUTSIDE = "../outside"  # beside that folder; nothing may be read from it or written to it
SECRET = "SECRET"  # in what lies outside
EXECUTED = "EXECUTED"  # the file that a hostile payload would make


@dataclass(frozen=True)
class Sparse:
    """A file of this size that is nearly all zeros and takes no room on the disk."""

    start: bytes
    size: int


@dataclass(frozen=True)
class Link:
    """A symbolic link."""

    target: str


Content = bytes | Sparse | Link


@dataclass(frozen=True)
class Case:
    """`words` is a command line of obverse, or the name of a reader (see `judge`) and the path to read."""

    files: Mapping[str, Content]
    words: tuple[str, ...]

    def write(self, folder: Path) -> None:
        for name, content in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, Link):
                path.symlink_to(content.target)
            elif isinstance(content, Sparse):
                with path.open("wb") as file:
                    file.write(content.start)
                    file.truncate(content.size)
            else:
                path.write_bytes(content)
