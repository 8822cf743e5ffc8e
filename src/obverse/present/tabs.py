"""A tab of the explorer, as a room offers it. Not for the server that asks, nor for what a tab answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from .fields import Fields


class Subject(Protocol):
    """What the explorer shows: a net, with a shadow calibrated on `inputs`, and inputs to pick from."""

    def __hash__(self) -> int: ...
    @property
    def net(self) -> Any: ...
    @property
    def shadow(self) -> Any: ...
    @property
    def inputs(self) -> Any: ...
    @property
    def weights(self) -> tuple[Any, ...]: ...
    @property
    def step(self) -> float: ...
    @property
    def apply(self) -> Callable[[Any], Any]: ...
    @property
    def undo(self) -> Callable[[Any], Any]: ...
    def weight(self, name: str) -> Any: ...
    def chosen(self, fields: Fields) -> Any: ...


Answer = Callable[[Any, Fields], dict[str, Any]]


def _nothing(subject: Subject) -> dict[str, Any]:
    return {}


@dataclass(frozen=True)
class Tab:
    """`about` gives the bounds of its controls, by name, once at the start."""

    name: str  # of its script, as the page asks for it
    script: str  # the path of that in the library
    answers: Mapping[str, Answer]  # by the name of the question
    about: Callable[[Any], dict[str, Any]] = _nothing
