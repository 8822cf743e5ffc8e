"""Words that the parser does not understand, told in the form of every other error. Not for parsing them."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Any

import typer
from typer.core import TyperGroup

from ..errors import BadInput

# Typer brings its own copy of click or uses the installed one: its errors are found through what it exports.
BAD_PARAMETER: type[Any] = typer.BadParameter
UsageError: type[Exception] = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "UsageError"
)
KINDS = {
    "integer": "a whole number",
    "int": "a whole number",
    "float": "a number",
    "boolean": "true or false",
}


class Commands(TyperGroup):
    """A group of commands that proposes the nearest name for one that it does not have."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if not ctx.resilient_parsing and args and self.get_command(ctx, args[0]) is None:
            names = self.list_commands(ctx)
            raise BadInput(
                f"a command of {ctx.command_path}", got=repr(args[0]), do=proposal(args[0], names, ctx)
            )
        return super().resolve_command(ctx, args)


def proposal(word: str, known: list[str], context: Any) -> str:
    near = get_close_matches(word, known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    return f"{hint}see: {context.command_path} --help"


def as_sentence(error: Any) -> str:
    """A usage error of the parser as expected …; got …; what to do."""
    context: Any = getattr(error, "ctx", None)
    command = context.command_path if context else "obverse"
    see = f"see: {command} --help"
    kind = type(error).__name__
    flag = _flag(error)
    message = " ".join(error.format_message().split()).rstrip(".")
    if kind == "NoSuchOption":
        known = (
            [word for one in context.command.get_params(context) for word in _words(one)] if context else []
        )
        do = proposal(error.option_name, known, context) if context else see
        return _sentence(f"an option of {command}", error.option_name, do)
    if kind == "MissingParameter":
        return _sentence(flag, "nothing", see)
    if kind == "BadOptionUsage":
        if "does not take a value" in message:
            return _sentence(f"{error.option_name} without a value", "one", see)
        return _sentence(f"a value for {error.option_name}", "none", see)
    if isinstance(error, BAD_PARAMETER):
        noun = KINDS.get(getattr(getattr(error.param, "type", None), "name", ""), "another value")
        found = re.search(r"'(.*?)' is not a valid", message)
        return _sentence(f"{noun} for {flag}", repr(found[1]) if found else message, "correct it")
    extra = re.search(r"unexpected extra arguments? \((.*)\)", message)
    if extra:
        return _sentence(f"no more words for {command}", extra[1], see)
    return _sentence("words that obverse understands", message, see)


def _sentence(expected: str, got: str, do: str) -> str:
    return str(BadInput(expected, got=got, do=do))


def _words(parameter: Any) -> list[str]:
    return [*getattr(parameter, "opts", ()), *getattr(parameter, "secondary_opts", ())]


def _flag(error: Any) -> str:
    """What the parameter is called on the command line: --epochs, or RUN."""
    parameter = getattr(error, "param", None)
    if parameter is None:
        return "a parameter"
    if parameter.param_type_name == "option":
        return str(parameter.opts[0])
    return str(parameter.metavar or parameter.name.upper())
