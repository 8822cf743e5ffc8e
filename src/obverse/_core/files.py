"""Writing that survives a crash: temporary file, fsync, rename. Not for what is inside the files."""

from __future__ import annotations

import errno
import json
import math
import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .errors import BadInput, ObverseError

TEMPORARY = ".tmp"
MAX_JSON = 64 * 2**20


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


def quoted(path: str | os.PathLike[str]) -> str:
    """A path as it is typed into a shell: for commands that a sentence proposes."""
    return shlex.quote(os.fspath(path))


def replace_atomically(path: Path, write: Callable[[Path], None]) -> None:
    """`write` a temporary file beside `path`, flush it to disk, and put it in place in one step."""
    temporary = path.with_name(f".{path.name}{TEMPORARY}")
    with explained(path):
        try:
            temporary.unlink(missing_ok=True)  # a link that somebody left there would lead out of the folder
            write(temporary)
            with temporary.open("rb") as file:
                os.fsync(file.fileno())
            os.replace(temporary, path)
            sync_folder(path.parent)
        finally:
            temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    def write(temporary: Path) -> None:
        temporary.write_text(text, encoding="utf-8")

    replace_atomically(path, write)


def write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


def read_json(path: Path, what: str) -> dict[str, Any]:
    """A JSON object from an untrusted file, its size checked first."""
    try:
        if path.stat().st_size > MAX_JSON:
            raise BadInput(f"{what} of at most {MAX_JSON} bytes", got=f"{path}", do="this is not one of ours")
        value = parse_json(path.read_text(encoding="utf-8"))
    except BadInput:
        raise
    except FileNotFoundError:
        raise BadInput(what, got=f"no file {path}", do="check the path") from None
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
