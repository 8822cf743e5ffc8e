"""`obverse report`: one page, from whatever another command has left in a directory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..present import Json, complete, options, print_json

PAGES = (
    "training",
    "training._search",
    "training._generators",
    "weights",
    "weights._ablation",
    "weights._compression",
    "weights._adapters",
    "weights._difference",
    "claims",
    "shadow",
    "identity",
    "ladder",
    "diversity",
)


def report(
    run: Annotated[
        Path,
        typer.Argument(
            metavar="RUN",
            help="Directory of a run (of a net or a generator), comparison, search, audit, sweep, survey, "
            "memorized data set, ladder or diversity test, or the JSON of such a one.",
            autocompletion=complete.results,
        ),
    ],
    out: Annotated[Path | None, options.out_at("the page", "RUN/report.html", "FILE")] = None,
    as_json: Json = False,
) -> None:
    """Write one HTML page with tables, curves, images and settings; it needs no network.

    Example: obverse report runs/first
    """
    page = write_report(run, out)
    if as_json:
        print_json({"page": page, "run": run})
    else:
        typer.echo(f"page: {page}")


def write_report(path: Path | str, out: Path | str | None = None) -> Path:
    """Write the page of whatever a command has left at `path`: a directory, or the JSON of a result.

        obverse.report("runs/first")  # runs/first/report.html

    Args:
        path: a directory that a command has written with --out, or one JSON of a result.
        out: where the page is to be; by default beside the result, under its usual name.

    Returns:
        Path: where the page lies. It needs no network and no other file.
    """
    from importlib import import_module

    from ..present import registry

    for room in PAGES:
        import_module(f"obverse.{room}.page")
    path = Path(path)
    return registry.find(path).write(path, None if out is None else Path(out))
