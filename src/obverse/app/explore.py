"""`obverse explore`: a local page to look at a net and play with the theory. Not for what is on it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._core import BadInput
from ..present import (
    FactoryArguments,
    Normalize,
    Seed,
    Weights,
    check_seed,
    complete,
    debugging,
    options,
    training_progress,
)
from ..shadow import check_runs, open_net, open_run_net, parse_scaling

if TYPE_CHECKING:
    from ._explorer.server import Server
    from ._explorer.subject import Subject


def explore(
    context: typer.Context,
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN | MODEL]",
            help="The directory of a run; or module:factory, e.g. mynets:resnet, imported and called: "
            "[bold]this runs your code[/bold] \\[a small net of the embedded digits].",
            autocompletion=complete.run,
        ),
    ] = None,
    data: Annotated[str | None, options.data("for a run: its own")] = None,
    data_root: Annotated[str | None, options.data_root()] = None,
    weights: Weights = None,
    arg: FactoryArguments = None,
    normalize: Normalize = None,
    port: Annotated[
        int | None,
        typer.Option(metavar="N", help="Port on 127.0.0.1 \\[that of the last time, else a free one]."),
    ] = None,
    browser: Annotated[
        bool,
        typer.Option(
            "--browser/--no-browser",
            show_default=False,
            help="Open the page, or only print its address \\[open].",
        ),
    ] = True,
    seed: Seed = 0,
) -> None:
    """Look at a net and play with the theory: a local page, for this machine and this user alone.

    Shadow, theory bench, audit, birthday room and ladder, each with controls to move. Stop it with Ctrl-C.

    Example: obverse explore runs/first
    """
    from ._explorer import serve

    check_seed(seed)
    if port is not None and not 0 <= port < 2**16:
        raise BadInput("--port from 0 to 65535", got=port, do="leave it out to get a free one")
    subject = _subject(model, data, data_root, weights, arg or [], normalize, seed)
    server = serve(subject, port or None, debug=debugging(context))
    _until_stopped(server, browser)


def _subject(
    model: str | None,
    data: str | None,
    data_root: str | None,
    weights: Path | None,
    words: list[str],
    normalize: tuple[str, str] | None,
    seed: int,
) -> Subject:
    from ._explorer import Subject, embedded_run

    if model is None:
        useless = [
            name
            for name, given in (
                ("data", data),
                ("data-root", data_root),
                ("weights", weights),
                ("arg", words),
                ("normalize", normalize),
            )
            if given
        ]
        if useless:
            raise BadInput(
                f"a run or a model with --{useless[0]}",
                got="none",
                do="name it, e.g. obverse explore runs/first",
            )
        with training_progress() as follow:
            path = embedded_run(_display(follow))
        _, net, found = open_run_net(path, None, None)
        return Subject.of("the embedded digits net", net, found, seed=seed)
    name, net, found = open_net(model, data, data_root, weights, words, seed)
    scaling = parse_scaling(normalize, found.input_shape)
    check_runs(net, scaling.apply(found.test_x[:2]), name)
    return Subject.of(name, net, found, apply=scaling.apply, undo=scaling.undo, seed=seed)


def _display(follow: Callable[..., dict[str, Any]]) -> Callable[[], dict[str, Any]]:
    def training() -> dict[str, Any]:
        typer.echo(
            "training a small net of the embedded digits, at the first start only: seconds on an idle "
            "machine, up to a minute beside other work",
            err=True,
        )
        return follow("digits")

    return training


def _until_stopped(server: Server, browser: bool) -> None:
    """Serve until Ctrl-C or a polite kill; both are the way to end it, and no failure."""
    import webbrowser

    from .._core import terminable
    from ._explorer.address import doorway

    with terminable():
        door = doorway(server.at) if browser else None
        typer.echo(f"obverse explore: {server.at.url}")
        typer.echo("for this machine only; stop it with Ctrl-C", err=True)
        try:
            if door is not None and not webbrowser.open(door.as_uri()):
                typer.echo("no browser found: open the address above", err=True)
            server.serve_forever()
        except KeyboardInterrupt:
            typer.echo("stopped", err=True)
        finally:
            ended = server.close()
            if door is not None:
                shutil.rmtree(door.parent, ignore_errors=True)
    if not ended:
        _leave_at_once()


def _leave_at_once() -> None:
    """An answer is still being computed inside torch, which aborts when Python ends around it."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(0)
