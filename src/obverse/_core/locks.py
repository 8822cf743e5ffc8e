"""One process at a time in a directory, by a lock that its death releases. Not for threads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from .errors import BadInput, ObverseError
from .files import explained


class RunLocked(ObverseError):
    def __init__(self, path: Path) -> None:
        super().__init__(
            f"expected {path} to be free; got: another process is working in it; "
            "wait for it to end, or choose another directory"
        )


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep every other process out of this directory for the duration; a link as its lock is refused."""
    from filelock import FileLock, Timeout

    place = path / ".lock"
    if place.is_symlink():
        raise BadInput(f"a lock of its own at {place}", got="a link", do="remove it")
    lock = FileLock(place, timeout=0)  # opens without following links, should one come in between
    with explained(path):
        try:
            lock.acquire()
        except Timeout:  # itself an OSError
            raise RunLocked(path) from None
    try:
        yield
    finally:
        lock.release()


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """The same for a folder that results are written to, where no file of the lock is to be left, or a file.

    The folder itself is locked. Where a system cannot do that, as on some network drives, it is `locked`.
    A file there is not.
    """
    with explained(folder):
        descriptor = os.open(folder, os.O_RDONLY)
    try:
        alone = _alone(descriptor, folder)
        with nullcontext() if alone or folder.is_file() else locked(folder):
            yield
    finally:
        os.close(descriptor)  # and the lock is gone


def _alone(descriptor: int, folder: Path) -> bool:
    """Lock an open folder; False where that is not possible at all."""
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise RunLocked(folder) from None
    except (ImportError, OSError):
        return False
    return True
