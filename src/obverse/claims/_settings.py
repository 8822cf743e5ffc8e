"""The settings of claims, changed and checked before any time is spent on them. Nothing is measured here."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from .._core import BadInput, ObverseError
from ._claim import Claim
from .results import Point, Setting

TRUTH = {"true": True, "false": False}


def predict(claim: Claim, setting: Setting) -> float:
    """The prediction; a setting that the theorem does not allow is refused with the name of the claim."""
    try:
        return claim.predicted(setting)
    except BadInput as error:
        where = ", ".join(f"{name} = {value}" for name, value in setting.items())
        raise ObverseError(_about(error, f"{claim.id} at {where}")) from error


def _about(error: BadInput, what: str) -> str:
    """The same sentence, with what it is about behind what was expected."""
    expected, got, rest = str(error).partition("; got ")
    return f"{expected}, for {what}{got}{rest}"


def checked(claim: Claim, quick: bool, *, overridden: bool) -> Claim:
    """The claim with its predictions made, so that settings of the user's are refused before time is spent:
    those that the theorem says nothing about, and those that the rule cannot judge.

    Anything else that goes wrong is a crash of this claim, which the runner confines to it.
    """
    try:
        known = [(setting, predict(claim, setting)) for setting in claim.settings(quick)]
        # as if what is predicted had been measured
        claim.rule.judge([Point(setting, value, (value, value)) for setting, value in known])
    except ObverseError as error:
        if not overridden:
            return claim
        raise (ObverseError(_about(error, claim.id)) if isinstance(error, BadInput) else error) from error
    except Exception:
        return claim
    return replace(claim, predict=lambda setting: next(value for one, value in known if one == setting))


def set_values(claims: Sequence[Claim], words: Sequence[str], quick: bool) -> list[Claim]:
    """The claims with NAME=VALUE in every setting that has the name; those that become alike are merged."""
    if not words:
        return list(claims)
    known: dict[str, list[Any]] = {}
    for claim in claims:
        for setting in claim.settings(quick):
            for name, value in setting.items():
                known.setdefault(name, []).append(value)
    values: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or name not in known:
            raise BadInput(f"--set out of {', '.join(sorted(known))}", got=repr(word), do="write NAME=VALUE")
        values[name] = read_value(name, text, known[name])
    return [_with(claim, values, quick) for claim in claims]


def read_value(name: str, text: str, examples: Sequence[Any]) -> Any:
    """A value of the kind that the settings have under this name."""
    kinds = {type(each) for each in examples}
    readers: tuple[tuple[set[type], str, Callable[[str], Any]], ...] = (
        ({bool}, "true or false", lambda word: TRUTH[word.lower()]),
        ({int}, "a whole number", int),
        ({int, float}, "a number", _finite),
    )
    for allowed, noun, read in readers:
        if kinds <= allowed:
            try:
                return read(text)
            except (ValueError, KeyError):
                raise BadInput(f"{noun} for {name}", got=repr(text), do="correct --set") from None
    return text


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _with(claim: Claim, values: dict[str, Any], quick: bool) -> Claim:
    merged: list[Setting] = []
    for setting in claim.settings(quick):
        changed = {name: values.get(name, value) for name, value in setting.items()}
        if changed not in merged:
            merged.append(changed)
    return replace(claim, grid=tuple(merged), quick=())
