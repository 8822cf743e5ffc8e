"""The command `obverse`: gathers the commands and turns errors into one sentence and an exit code.

Exit codes: 0 done; 2 invalid input (the sentence says what); 3 found what `audit --fail-on`,
`claims run --check` or the self-check of `doctor` looks for; 1 a bug, or a claim that crashed; 130 stopped by
Ctrl-C, but for `explore`, which ends so; 141 broken pipe.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Annotated

import typer
from typer.main import get_command

from .._core import BadInput, ObverseError, printable
from ..present import Command, Commands, UsageError, as_sentence

DONE, BUG, WRONG, FOUND, STOPPED, UNREAD = 0, 1, 2, 3, 130, 141
# What a system refuses is no bug of ours.
REFUSED = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.EMFILE)
EXIT_CODES = {
    DONE: "done",
    BUG: "a bug, or a claim that crashed",
    WRONG: "invalid input; the sentence says what",
    FOUND: "found what `audit --fail-on`, `claims run --check` or the self-check of `doctor` looks for",
    STOPPED: "stopped by Ctrl-C, but for `explore`, which ends so",
    UNREAD: "broken pipe: the program that read the output ended first",
}

LINES = "\n"  # a message of ours may have several

app = typer.Typer(
    name="obverse",
    cls=Commands,
    help="The other side of your network: train with a net's own shadow, look at it, measure it.\n\n"
    "Example: obverse doctor",
    epilog="Exit codes: " + "; ".join(f"{code} {meaning}" for code, meaning in EXIT_CODES.items()) + ".",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
# In the order of the help. A room's commands are in its `command` module.
COMMANDS = (
    ("training.command", "train"),
    ("training.command", "compare"),
    ("training.command", "search"),
    ("training.command", "sample"),
    ("shadow.command", "shadow"),
    ("weights.command", "audit"),
    ("identity.command", "memorize"),
    ("ladder.command", "ladder"),
    ("diversity.command", "diversity"),
    ("app.report", "report"),
    ("app.explore", "explore"),
    ("app.doctor", "doctor"),
)
GROUPS = (("claims.command", "claims"), ("training.command", "generate"))
for module, name in COMMANDS:
    app.command(cls=Command)(getattr(import_module(f"obverse.{module}"), name))
for module, name in GROUPS:
    app.add_typer(getattr(import_module(f"obverse.{module}"), f"{name}_app"), name=name)


def _print_version(wanted: bool) -> None:
    if wanted:
        from ._environment import versions

        typer.echo("\n".join(f"{name} {number}" for name, number in versions().items()))
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print versions, exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Read here so that --help shows them; `main` looks at --debug itself."""


@cache
def command() -> Callable[..., object]:
    """What the parser works with. Typer makes it anew at every call, of all flags of all commands."""
    return get_command(app)


def main() -> None:
    """Run the command line."""
    debug = "--debug" in sys.argv[1:]
    # --debug may stand anywhere, as people add it to the end of what just failed
    sys.argv[1:] = (["--debug"] if debug else []) + [word for word in sys.argv[1:] if word != "--debug"]
    try:
        code = _run(debug)
        with suppress(ValueError):  # closed already
            sys.stdout.flush()
    except BrokenPipeError:
        code = silence_stdout()
    except OSError as error:  # the last of the output could not be written
        echo_error(_refused(error))
        silence_stdout()
        code = WRONG
    except SystemExit as stop:  # rich and click have a way of their own to leave when nobody reads on
        if isinstance(stop.__context__, BrokenPipeError):
            raise SystemExit(silence_stdout()) from None
        raise
    raise SystemExit(code)


def _run(debug: bool) -> int:
    """The exit code."""
    try:
        code = command()(prog_name="obverse", standalone_mode=False)
        return code if isinstance(code, int) else DONE
    except (KeyboardInterrupt, typer.Abort):
        return STOPPED
    except UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            typer.echo(str(error), err=True, nl=False)
        elif debug:
            traceback.print_exc()
        else:
            echo_error(as_sentence(error, sys.argv[1:]))
        return WRONG
    except ObverseError as error:
        from .._core import Interrupted

        stopped = isinstance(error, Interrupted)
        if debug:
            traceback.print_exc()
        else:
            echo_error(str(error), "yellow" if stopped else "red")
        return STOPPED if stopped else WRONG
    except BrokenPipeError:
        raise
    except Exception as error:
        if debug:
            raise
        if isinstance(error, OSError) and error.errno in REFUSED:
            echo_error(_refused(error))
            return WRONG
        echo_error(
            f"this is a bug: {type(error).__name__}: {printable(str(error), keep=LINES)}\n"
            "Run it again with --debug and report what it prints."
        )
        return BUG


def _refused(error: OSError) -> str:
    where = f" {error.filename}" if error.filename else " the output"
    said = error.strerror or str(error)
    return str(
        BadInput(f"to read or write{where}", got=said, do="make room or give permission, then try again")
    )


def echo_error(text: str, colour: str = "red") -> None:
    typer.secho(f"obverse: {printable(text, keep=LINES)}", err=True, fg=colour)


def silence_stdout() -> int:
    """Nobody reads what is left: without this Python would say so at the very end."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return UNREAD
