"""Numbers and words out of a request, each within its bounds. Not for what is done with them.

A request is untrusted, also behind the token: whatever is asked for is checked before anything is computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._core import BadInput


class Fields:
    """The fields of one request."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self._body = body

    def has(self, name: str) -> bool:
        return self._body.get(name) is not None

    def raw(self, name: str) -> Any:
        return self._body.get(name)

    def number(self, name: str, low: float, high: float) -> float:
        value = self._body.get(name)
        real = isinstance(value, int | float) and not isinstance(value, bool)
        if value is None or not real or not low <= value <= high:
            raise BadInput(
                f"{name} from {low:g} to {high:g}", got=_format(value), do="move it into that range"
            )
        return float(value)

    def whole(self, name: str, low: int, high: int) -> int:
        value = self.number(name, low, high)
        if value != int(value):
            raise BadInput(f"{name} as a whole number", got=value, do="round it")
        return int(value)

    def choice(self, name: str, options: Sequence[str]) -> str:
        value = self._body.get(name)
        if not isinstance(value, str) or value not in options:
            raise BadInput(
                f"{name} out of {', '.join(options)}", got=_format(value), do="choose one of these"
            )
        return value

    def flag(self, name: str) -> bool:
        value = self._body.get(name)
        value = False if value is None else value
        if not isinstance(value, bool):
            raise BadInput(f"{name} true or false", got=_format(value), do="correct it")
        return value

    def several(self, name: str, most: int, low: float, high: float) -> list[float]:
        """A list of numbers, at most so many."""
        value = self._body.get(name)
        if not isinstance(value, list) or len(value) > most:
            got = f"{len(value)}" if isinstance(value, list) else _format(value)
            raise BadInput(f"up to {most:,} numbers as {name}", got=got, do="send fewer")
        return [Fields({name: one}).number(name, low, high) for one in value]


def _format(value: object) -> str:
    return "none" if value is None else repr(value)[:60]
