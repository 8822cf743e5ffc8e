"""What each kind of result is called on disk, and how it is shown on pages and in notebooks.

Rooms register theirs: files and pages in `page`, what notebooks show in `notebook`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .._core import BadInput, NoSuchFile, quoted, write_text


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
    if not path.exists():
        raise NoSuchFile(path)
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


Size = tuple[float, float]  # inches


@dataclass(frozen=True)
class Panel:
    """One figure of a result: `draw(result, axes, ink, **options)`, its options with defaults."""

    name: str
    draw: Callable[..., None]
    size: Size | Callable[[Any], Size] = (5.6, 3.6)
    there: Callable[[Any], bool] = lambda result: True


@dataclass(frozen=True)
class Table:
    """Texts of any origin; the first column holds names."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Look:
    """How results of one kind show themselves in a notebook."""

    kind: type[Any]
    panels: tuple[Panel, ...]
    table: Callable[[Any], Table]
    items: Callable[[Any], Iterable[Any]] = lambda result: (result,)  # the rows of to_frame()
    words: Callable[[Any], str] = lambda result: str(result).split("\n", 1)[0]


_LOOKS: dict[type[Any], Look] = {}


def show(*looks: Look) -> None:
    """At the top level of a room's `notebook` module."""
    _LOOKS.update({look.kind: look for look in looks})


def look_of(kind: type[Any]) -> Look | None:
    """That of the class or of the nearest one that it derives from; rooms are asked when first needed."""
    for base in kind.__mro__:
        library, _, path = base.__module__.partition(".")
        module = f"{library}.{path.partition('.')[0]}.notebook"
        if base not in _LOOKS and library == __name__.partition(".")[0] and find_spec(module):
            import_module(module)
        if base in _LOOKS:
            return _LOOKS[base]
    return None
