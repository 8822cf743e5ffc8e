"""One process at a time in a run directory, by a lock that its death releases. Not for threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import ObverseError
from .files import explained


class RunLocked(ObverseError):
    def __init__(self, path: Path) -> None:
        super().__init__(
            f"expected {path} to be free; got: another process is working in it; "
            "wait for it to end, or choose another directory"
        )


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep every other process out of this run directory for the duration."""
    from filelock import FileLock, Timeout

    lock = FileLock(path / ".lock", timeout=0)
    with explained(path):
        try:
            lock.acquire()
        except Timeout:  # itself an OSError
            raise RunLocked(path) from None
    try:
        yield
    finally:
        lock.release()
