"""`obverse report`: one page, from whatever another command has left in a directory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..present import complete, options
from ..present.options import Json
from ..present.output import print_json


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
    """Write one HTML page with tables, curves, pictures and settings; it needs no network.

    Example: obverse report runs/first
    """
    from ..present import build

    page = build(run, out)
    if as_json:
        print_json({"page": page, "run": run})
    else:
        typer.echo(f"page: {page}")
