"""`obverse report`: one self-contained page from a run, a comparison or an audit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="Run, comparison or audit directory, or an audit.json.")
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
