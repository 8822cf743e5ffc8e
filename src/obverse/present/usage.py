"""Words that the parser does not understand, told in the form of every other error. Not for parsing them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from .._core import BadInput
from .output import holding_folders

# Typer brings its own copy of click or uses the installed one: its errors are found through what it exports.
BAD_PARAMETER: type[Any] = typer.BadParameter
UsageError: type[Exception] = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "UsageError"
)
KINDS = {
    "integer": "a whole number",
    "int": "a whole number",
    "number": "a number",
    "float": "a number",
}


def _plain(params: list[Any]) -> list[Any]:
    """Without the type of a switch, which takes no value, and of an argument, which says what it is."""
    for one in params:
        if getattr(one, "is_flag", False) or one.param_type_name == "argument":
            one.display_type_rich = lambda **_: None
    return params


def _flowing(text: str | None) -> str | None:
    """Paragraphs whose lines are as long as the terminal, not as the source."""
    return text and "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


class Command(TyperCommand):
    """A command whose help says no more than it has to."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.help = _flowing(self.help)

    def get_params(self, ctx: Any) -> list[Any]:
        return _plain(super().get_params(ctx))

    def invoke(self, ctx: Any) -> Any:
        with holding_folders():
            return super().invoke(ctx)


class Commands(TyperGroup):
    """A group of commands that proposes the nearest name for one that it does not have."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _plain(super().get_params(ctx))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if not ctx.resilient_parsing and args and self.get_command(ctx, args[0]) is None:
            names = self.list_commands(ctx)
            raise BadInput(
                f"a command of {ctx.command_path}",
                got=repr(args[0]),
                do=proposal(args[0], names, ctx.command_path),
            )
        return super().resolve_command(ctx, args)


def proposal(word: str, known: list[str], command: str) -> str:
    begun = [one for one in known if one.startswith(word)]
    near = begun[:3] or get_close_matches(word, known, n=3, cutoff=0.6)
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    return f"{hint}see: {command} --help"


def as_sentence(error: Any, words: Sequence[str]) -> str:
    """A usage error of the parser as expected …; got …; what to do. `words` are what was typed.

    Versions of typer word these errors differently and not all say what they found: that is looked up.
    """
    context: Any = getattr(error, "ctx", None)
    command = context.command_path if context else _command(words)
    see = f"see: {command} --help"
    kind = type(error).__name__
    message = " ".join(error.format_message().split()).rstrip(".")
    if kind == "NoSuchOption":
        known = (
            [word for one in context.command.get_params(context) for word in _words(one)] if context else []
        )
        return _sentence(
            f"an option of {command}", error.option_name, proposal(error.option_name, known, command)
        )
    if kind == "MissingParameter":
        return _sentence(_flag(error.param), "nothing", see)
    if kind == "BadOptionUsage":
        if "does not take a value" in message:
            return _sentence(f"{error.option_name} without a value", "one", see)
        return _sentence(f"a value for {error.option_name}", "none", see)
    if isinstance(error, BAD_PARAMETER):
        noun = next((noun for word, noun in KINDS.items() if word in message.lower()), "another value")
        given = _given(error.param, words)
        said = repr(given) if given is not None else message
        return _sentence(f"{noun} for {_flag(error.param)}", said, "correct it")
    extra = re.search(r"unexpected extra argument\S* \((.*)\)", message)
    if extra:
        return _sentence(f"no more words for {command}", extra[1], see)
    return _sentence("words that obverse understands", message, see)


def _sentence(expected: str, got: str, do: str) -> str:
    return str(BadInput(expected, got=got, do=do))


def _command(words: Sequence[str]) -> str:
    """The command that words belong to, where the parser does not say: its names come first."""
    names = itertools.takewhile(
        lambda word: re.fullmatch("[a-z]+", word), [w for w in words if w != "--debug"]
    )
    return " ".join(["obverse", *names])


def _words(parameter: Any) -> list[str]:
    return [*getattr(parameter, "opts", ()), *getattr(parameter, "secondary_opts", ())]


def _flag(parameter: Any) -> str:
    """What the parameter is called on the command line: --epochs, or RUN."""
    if parameter is None:
        return "a parameter"
    if parameter.param_type_name == "option":
        return str(parameter.opts[0])
    return str(parameter.metavar or parameter.name.upper())


def _given(parameter: Any, words: Sequence[str]) -> str | None:
    """The last value that was typed for an option."""
    flags = _words(parameter)
    found = None
    for at, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name in flags:
            found = value if equals else (words[at + 1] if at + 1 < len(words) else found)
    return found
