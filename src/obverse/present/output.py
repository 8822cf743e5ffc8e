"""How a command says what came out: one JSON value for programs, or words for people. Not for tables."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import typer

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


def tell(text: str, as_json: bool) -> None:
    """A line beside the result: with --json it goes to stderr."""
    typer.echo(text, err=as_json)


def tell_quick(what: str, as_json: bool) -> None:
    """That a measurement was a small one."""
    tell(f"note: --quick: {what}; a first look, not a result", as_json)


def debugging(context: typer.Context) -> bool:
    """Whether --debug was given, which stands before the command's name."""
    return bool(context.parent and context.parent.params.get("debug"))
