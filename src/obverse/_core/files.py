"""Writing that survives a crash: temporary file, fsync, rename. Not for what is inside the files."""

from __future__ import annotations

import errno
import glob
import json
import math
import os
import secrets
import shlex
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .errors import BadInput, NoSuchFile, ObverseError

TEMPORARY = ".tmp"
MAX_JSON = 64 * 2**20
# Flags that Windows does not have, and whose dangers it does not have either.
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)  # on a pipe nobody writes to, opening would wait for ever


class WriteFailed(ObverseError):
    """The disk is full, the directory is read-only, …: what was there before is still there."""

    def __init__(self, path: Path, error: OSError) -> None:
        reason = error.strerror or error
        if error.errno in (errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENOENT):
            do = "choose another place"
        else:
            do = (
                "what was saved before is intact: free space or permissions there, then try again "
                "(a run: resume it)"
            )
        super().__init__(f"expected to write {path}; got: {reason}; {do}")


def cache_folder() -> Path:
    """Where what can be fetched or made again is kept for this user: data sets, the explorer's net."""
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The XDG rules: a relative path there is to be ignored.
    return (given if given.is_absolute() else Path.home() / ".cache") / "obverse"


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn an OSError into a sentence about this path."""
    try:
        yield
    except OSError as error:
        raise WriteFailed(path, error) from error


def looks_like_a_path(text: str) -> bool:
    """Whether somebody who typed this meant a file or folder: it has a separator, or an ending such as .npz.

    >>> looks_like_a_path("images/"), looks_like_a_path("own.npz"), looks_like_a_path("minst")
    (True, True, False)
    """
    return os.sep in text or text.startswith("~") or bool(Path(text).suffix)


def quoted(path: str | os.PathLike[str]) -> str:
    """A path as it is typed into a shell: for commands that a sentence proposes."""
    return shlex.quote(os.fspath(path))


def replace_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """`write` a temporary file beside `path`, flush it to disk, and put it in place in one step.

    The temporary file has a name that no other write has, and is made new: two processes that write the same
    path each put a whole file there, and nothing is written through a link that somebody left in the folder.
    """
    temporary = path.with_name(f".{path.name[:40]}.{secrets.token_hex(8)}{TEMPORARY}")
    with explained(path):
        try:
            temporary.touch(exist_ok=False)  # never through a link, never into a file that is there
            write(temporary)
            with temporary.open("rb") as file:
                os.fsync(file.fileno())
            os.replace(temporary, path)
            sync_folder(path.parent)
        finally:
            temporary.unlink(missing_ok=True)


def remove_temporaries(path: Path) -> None:
    """What killed processes left of a file they were writing; for who has the lock of its folder."""
    with explained(path):
        for other in path.parent.glob(f".{glob.escape(path.name[:40])}.*{TEMPORARY}"):
            other.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    replace_atomically(path, lambda temporary: temporary.write_bytes(text.encode()))


def append_text(path: Path, text: str) -> None:
    """Add to a file of our own, on disk before this returns; a link in its place is refused."""

    def opener(name: str, flags: int) -> int:
        return os.open(name, flags | _NO_LINK, 0o666)

    with explained(path), open(path, "ab", opener=opener) as file:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())


def make_inside(folder: Path) -> None:
    """A folder in a directory of ours; a link in its place, which may lead anywhere, is refused."""
    if folder.is_symlink():
        raise BadInput(f"a folder of its own at {folder}", got="a link", do="remove it")
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)


def read_file(path: Path, what: str, limit: int | None = None) -> bytes:
    """The content of an untrusted file, of at most `limit` bytes where one is given.

    Pipes and devices, which may have no end, are refused. What the system refuses stays an OSError, for
    the caller that has a sentence for it.
    """
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | _NO_WAIT)) as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            raise BadInput(f"a file for {what}", got=f"{path}, which is none", do="check the path")
        if limit is not None and about.st_size > limit:
            size = f"{about.st_size:,} bytes in {path}"
            raise BadInput(f"{what} of at most {limit:,} bytes", got=size, do="this is not one of ours")
        return file.read(about.st_size)  # and no more, should it be growing


def write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


def read_json(path: Path, what: str, limit: int | None = None) -> dict[str, Any]:
    """A JSON object from an untrusted file, its size checked first: `limit`, or `MAX_JSON` bytes."""
    try:
        value = parse_json(read_file(path, what, limit or MAX_JSON).decode())
    except BadInput:
        raise
    except FileNotFoundError:
        raise NoSuchFile(path if path.parent.exists() else path.parent) from None
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(
            f"{what} in JSON", got=f"{path}: {error}", do="restore it or start a new run"
        ) from None
    if not isinstance(value, dict):
        raise BadInput(f"{what} as a JSON object", got=f"{type(value).__name__} in {path}", do="restore it")
    return value


def parse_json(text: str) -> Any:
    """What the JSON standard allows, and no more: Python's parser also takes NaN and Infinity."""
    return json.loads(text, parse_float=_finite, parse_constant=_finite)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is not a finite number")
    return value


def sync_folder(folder: Path) -> None:
    """Make a rename in this folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
