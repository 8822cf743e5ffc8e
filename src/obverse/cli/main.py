"""The command `obverse`: gathers the commands and turns errors into one sentence and an exit code.

Exit codes: 0 done; 2 something to put right (the sentence says what); 3 found what `audit --fail-on` or
`claims run --check` looks for; 1 a bug, or a claim that crashed; 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import sys
import traceback
from typing import Annotated

import typer

from .. import __version__
from ..errors import ObverseError
from ..training.fit import Interrupted
from .audit import audit
from .claims import claims_app
from .compare import compare
from .diversity import diversity
from .explore import explore
from .generate import generate_app
from .ladder import ladder
from .memorize import memorize
from .report import report
from .sample import sample
from .search import search
from .shadow import shadow
from .train import train

app = typer.Typer(
    name="obverse",
    help="The other side of your network: train with a net's own shadow, look at it, measure it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
for command in (train, compare, search, sample, shadow, audit, memorize, ladder, diversity, report, explore):
    app.command()(command)
app.add_typer(claims_app, name="claims")
app.add_typer(generate_app, name="generate")


def _print_version(wanted: bool) -> None:
    if wanted:
        import torch

        typer.echo(f"obverse {__version__} (torch {torch.__version__})")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print versions, exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Read here so that --help shows them; `main` looks at --debug itself."""


def main() -> None:
    """Run the command line."""
    debug = "--debug" in sys.argv[1:]
    # --debug may stand anywhere, as people add it to the end of what just failed
    sys.argv[1:] = (["--debug"] if debug else []) + [word for word in sys.argv[1:] if word != "--debug"]
    try:
        app()
    except ObverseError as error:
        stopped = isinstance(error, Interrupted)
        if debug:
            traceback.print_exc()
        else:
            typer.secho(f"obverse: {error}", err=True, fg="yellow" if stopped else "red")
        raise SystemExit(130 if stopped else 2) from None
    except Exception as error:
        if debug:
            raise
        typer.secho(
            f"obverse: this is a bug: {type(error).__name__}: {error}\n"
            "Run it again with --debug and report what it prints.",
            err=True,
            fg="red",
        )
        raise SystemExit(1) from None
