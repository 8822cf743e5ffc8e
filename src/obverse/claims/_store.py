"""The folder of a sweep: points/<key>.json as each measurement ends, claims.json at the end. Not for running.

What is found in a folder is read as data of unknown origin: a point that is not in order is no point.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .._core import BadInput, locked, make_inside, read_record, record_text, replace_atomically, write_text
from .results import Measured, Sweep

FORMAT = 1
NAME = "claims.json"


@dataclass(frozen=True)
class Store:
    """An open folder; see `open_store`."""

    folder: Path

    def read(self, key: str) -> Measured | None:
        """What was measured under this key, if it is there, whole, and no crash."""
        path = self._point(key)
        if path.is_symlink() or not path.is_file():
            return None
        try:
            found = read_record(path, Measured, "measured point", FORMAT)
        except BadInput:
            return None
        return found if found.key == key and found.values and not found.crash else None

    def save(self, measured: Measured) -> None:
        write_text(self._point(measured.key), record_text(measured, FORMAT))

    def finish(self, sweep: Sweep) -> None:
        """The result of all points; the page of an earlier one, which would not be its own, goes."""
        path = self.folder / NAME

        def write(temporary: Path) -> None:
            temporary.write_text(record_text(sweep, FORMAT), encoding="utf-8")
            path.with_suffix(".html").unlink(missing_ok=True)  # not before: a full disk is noticed above

        replace_atomically(path, write)

    def _point(self, key: str) -> Path:
        return self.folder / "points" / f"{key}.json"


@contextmanager
def open_store(folder: Path) -> Iterator[Store]:
    """Make the folder of a sweep or go on in one; no other process can meanwhile."""
    points = folder / "points"
    make_inside(points)
    with locked(folder):
        yield Store(folder)


def read_sweep(path: Path) -> Sweep:
    """The result of a sweep, from its file or its folder."""
    return read_record(path / NAME if path.is_dir() else path, Sweep, "result of claims", FORMAT)
