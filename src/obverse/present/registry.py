"""What each kind of result is called on disk, and how it is shown. Rooms register theirs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._core import BadInput, quoted, write_text


@dataclass(frozen=True)
class ResultType:
    """One kind of result: a JSON file, or a directory that holds it.

    A directory may hold several: the one with the smallest `rank` gives its page.
    """

    name: str  # of its file: "audit.json"
    kind: type[Any]  # the class of the result
    version: int  # of the file's format
    read: Callable[[Path], Any]
    page: Callable[..., str]  # path of the file or its directory → HTML
    html: str  # the page's usual name: "audit.html"
    rank: int
    chart: Callable[[Any], Any] | None = None  # a result → its figure
    holds: Callable[[Path], bool] | None = (
        None  # whether a directory is one, if that is not its file's presence
    )
    any_file: bool = False  # takes files of other names
    any_folder: bool = False  # says what is wrong with a directory that is none of all
    unfinished: str = ""  # a file in the directory of one that was interrupted

    def matches(self, path: Path) -> bool:
        if path.is_file():
            return path.name == self.name
        return (path / self.name).is_file() if self.holds is None else self.holds(path)

    def write(self, path: Path, out: Path | None = None, **options: Any) -> Path:
        """The page, beside the result under its usual name, or at `out`; `options` are the page's own."""
        target = (path if path.is_dir() else path.parent) / self.html if out is None else Path(out)
        if target.is_dir():
            target = target / self.html
        if not target.parent.is_dir():
            raise BadInput(f"a directory for {target}", got=f"no {target.parent}", do="make it first")
        write_text(target, self.page(path, **options))
        return target


_TYPES: dict[str, ResultType] = {}


def register(entry: ResultType) -> ResultType:
    """At the top level of a room's `page` module."""
    _TYPES[entry.name] = entry
    return entry


def result_types() -> tuple[ResultType, ...]:
    """Those of the pages that have been imported, in the order in which a directory is asked for them."""
    return tuple(sorted(_TYPES.values(), key=lambda entry: entry.rank))


def find(path: Path) -> ResultType:
    """The type of what is at `path`."""
    for entry in result_types():
        if entry.matches(path):
            return entry
    for entry in result_types():
        if entry.unfinished and (path / entry.unfinished).is_file():
            raise BadInput(
                f"a finished result in {path}",
                got=f"{entry.unfinished}, the record of an interrupted one",
                do=f"run the same command once more with --out {quoted(path)}: it goes on from there",
            )
    return next(entry for entry in result_types() if (entry.any_file if path.is_file() else entry.any_folder))
