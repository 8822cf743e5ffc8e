"""`obverse doctor`: what obverse runs on, what is missing for which extra, and whether it computes right."""

from __future__ import annotations

import json
from collections.abc import Sequence

import typer

from ..present import Column, Json, debugging, layer_progress, open_console, print_grid, say
from ._checks import Check, run_checks
from ._environment import Environment, Extra, environment, extras

FORMAT = 1
FAILED = 3
COLOURS = {"ok": "green", "missing": "yellow", "failed": "red"}


def doctor(context: typer.Context, as_json: Json = False) -> None:
    """Is everything there, and does it compute right? Versions, data, extras, a self-check of seconds.

    Exit status: 0 well, extras may be missing; 3 the self-check failed.

    Example: obverse doctor
    """
    here, offered = environment(), extras()
    debug = debugging(context)
    with layer_progress("self-check") as progress:
        found = run_checks(debug, progress)
    if as_json:
        said = {
            "format": FORMAT,
            "environment": here.to_dict(),
            "extras": [one.to_dict() for one in offered],
            "checks": [one.to_dict() for one in found],
            "well": all(one.state == "ok" for one in found),
        }
        typer.echo(json.dumps(said, allow_nan=False))
    else:
        print_doctor(here, offered, found)
    failed = [one for one in found if one.state == "failed"]
    if failed:
        names = ", ".join(one.name for one in failed)
        typer.echo(f"obverse: self-check: {len(failed)} of {len(found)} failed: {names}", err=True)
        raise typer.Exit(FAILED)


def print_doctor(here: Environment, offered: Sequence[Extra], found: Sequence[Check]) -> None:
    console = open_console()
    lines = [*environment_lines(here), *extra_lines(offered), *found]
    columns = [
        Column("", tuple(one.name for one in lines), left=True, whole=True),
        Column(
            "state",
            tuple(one.state for one in lines),
            left=True,
            styles=tuple(COLOURS[one.state] for one in lines),
        ),
        Column(
            "found",
            tuple(f"{one.said}; {one.do}" if one.do else one.said for one in lines),
            left=True,
            folded=True,
        ),
    ]
    print_grid(console, columns, "")
    say(console, summary(offered, found), "bold")


def summary(offered: Sequence[Extra], found: Sequence[Check]) -> str:
    missing = [one.name for one in offered if one.missing]
    failed = [one.name for one in found if one.state == "failed"]
    seconds = sum(one.seconds or 0.0 for one in found)
    said = f"self-check: {len(found) - len(failed)} of {len(found)} ok in {seconds:.1f} seconds"
    if missing:
        said += f"; extras that are not there, and needed only for what they are for: {', '.join(missing)}"
    return said


def environment_lines(here: Environment) -> list[Check]:
    """The environment as lines; what is missing in it and what to do."""
    lines = [
        Check(name, "missing" if number == "missing" else "ok", number, "install obverse again")
        if number == "missing"
        else Check(name, "ok", number)
        for name, number in here.versions.items()
    ]
    memory = "not told by the system" if here.memory is None else f"{here.memory / 1024:.1f} GiB"
    if here.memory_free is not None:
        memory += f", {here.memory_free / 1024:.1f} GiB of it free"
    lines += [
        Check("platform", "ok", here.platform),
        Check("cores", "ok", f"{here.cores}, of which torch uses {here.threads}"),
        Check("memory", "ok", memory),
        *(Check("device", "ok", device) for device in here.devices),
        Check(
            "data folder",
            "ok" if here.data_folder_writable else "missing",
            here.data_folder + ("" if here.data_folder_writable else ", where nothing can be written"),
            "" if here.data_folder_writable else "set OBVERSE_DATA to another folder",
        ),
        Check(
            "data sets", "ok", f"{', '.join(here.data_sets)}; others are downloaded when they are first used"
        ),
    ]
    return lines


def extra_lines(offered: Sequence[Extra]) -> list[Check]:
    if not offered:
        return [Check("extras", "missing", "obverse is not installed, so none are known", "pip install .")]
    return [
        Check(
            f"extra {one.name}",
            "missing" if one.missing else "ok",
            f"for {one.purpose}" + (f"; lacks {', '.join(one.missing)}" if one.missing else ""),
            one.install if one.missing else "",
        )
        for one in offered
    ]
