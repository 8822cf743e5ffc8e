"""How a command ends: JSON for programs or a table for people, the files, the page. Not for what they say."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from pathlib import Path, PurePath
from typing import Any, TypeVar

import typer

from .._core import BadInput, Record, explained, held, printable, record_text, replace_atomically
from .registry import ResultType

T = TypeVar("T", bound=Record)

FORMAT = 1


def print_json(value: Mapping[str, Any]) -> None:
    """One line on stdout, with its format's number; what is no finite number is null, as JSON has none."""
    typer.echo(json.dumps({"format": FORMAT, **_strict(value)}, allow_nan=False))


def _strict(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): _strict(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(one) for one in value]
    return str(value) if isinstance(value, PurePath) else value


def deliver(
    result: T,
    entry: ResultType,
    table: Callable[[T], None],
    *,
    out: Path | None,
    as_json: bool,
    quick: str = "",
    files: Callable[[Path], Sequence[str]] | None = None,
    beside: Sequence[str] = (),
) -> None:
    """The end of a command that measures: the result is printed; with `out`, its files and page are written.

    `quick` is what was measured less of. `files` and `beside` are those of `write_result`.
    """
    print_result(result, entry, table, as_json=as_json, quick=quick)
    if out is not None:
        write_result(result, entry, out, as_json=as_json, files=files, beside=beside)


def print_result(
    result: T, entry: ResultType, table: Callable[[T], None], *, as_json: bool, quick: str = ""
) -> None:
    """A note if it is a first look only, then JSON or the table."""
    if quick:
        echo_quick(quick, as_json)
    if as_json:
        typer.echo(record_text(result, entry.version), nl=False)
    else:
        table(result)


def write_result(
    result: Record,
    entry: ResultType,
    out: Path,
    *,
    as_json: bool,
    files: Callable[[Path], Sequence[str]] | None = None,
    beside: Sequence[str] = (),
) -> None:
    """The JSON file, what lies beside it, and the page.

    `files` writes into `out` what lies beside the JSON file and gives the lines that say where; `beside`
    names all that it may write. What an earlier command left of these, and its page, is removed before the
    new JSON file takes its place: whenever the process is killed, everything there belongs to one result.
    """
    old = [out / name for name in (entry.html, *beside)] if (out / entry.name).exists() else []
    for folder in {(out / name).parent for name in beside} - {out}:
        if folder.is_symlink():
            raise BadInput("a folder of its own for the pictures", got=f"a link at {folder}", do="remove it")

    def write(temporary: Path) -> None:
        temporary.write_text(record_text(result, entry.version), encoding="utf-8")
        for path in old:  # not before: a full disk is noticed above
            path.unlink(missing_ok=True)

    replace_atomically(out / entry.name, write)
    for line in () if files is None else files(out):
        echo(line, as_json)
    echo_page(entry, out / entry.name, as_json)


def echo_page(entry: ResultType, path: Path, as_json: bool) -> None:
    """Write the page of what is at `path`, and say where it is."""
    echo(f"page: {entry.write(path)}", as_json)


_HELD: ContextVar[ExitStack | None] = ContextVar("_HELD", default=None)


@contextmanager
def holding_folders() -> Iterator[None]:
    """A command: the folders that are made in it are its own until it ends."""
    with ExitStack() as folders:
        token = _HELD.set(folders)
        try:
            yield
        finally:
            _HELD.reset(token)


def make_folder(out: Path | None, hold: bool = True) -> None:
    """The folder of --out, if given; before the measurement, so that no time is lost to a wrong one.

    Another command that runs in it is told, and so is one that comes until this one ends. Without
    `hold` that is left to the measurement itself.
    """
    if out is None:
        return
    with explained(out):
        out.mkdir(parents=True, exist_ok=True)
    folders = _HELD.get()
    if hold and folders is not None:
        folders.enter_context(held(out))


def echo(text: str, as_json: bool) -> None:
    """A line beside the result: with --json it goes to stderr."""
    typer.echo(printable(text), err=as_json)


def echo_quick(what: str, as_json: bool) -> None:
    """That a measurement was a small one."""
    echo(f"note: --quick: {what}; a first look, not a result", as_json)


def debugging(context: typer.Context) -> bool:
    """Whether --debug was given, which stands before the command's name."""
    return bool(context.parent and context.parent.params.get("debug"))
