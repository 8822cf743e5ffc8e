"""`obverse report`: one page, from whatever another command has left in a directory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    run: Annotated[
        Path,
        typer.Argument(
            metavar="RUN",
            help="Directory of a run (of a net or a generator), comparison, search, audit, sweep, survey, "
            "memorized data set, ladder or diversity test, or the JSON of such a one.",
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Page to write \\[RUN/report.html].")
    ] = None,
) -> None:
    """Write one HTML page with tables, curves, pictures and settings; it needs no network.

    Example: obverse report runs/first
    """
    from ..report import build

    typer.echo(f"page: {build(run, out)}")
