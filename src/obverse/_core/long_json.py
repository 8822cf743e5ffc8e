"""A JSON object with one long list in it, read item by item: the text is never in memory as a whole.

The file is of unknown origin: its size, each of its items and their number are bounded.
"""

from __future__ import annotations

import codecs
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .errors import BadInput
from .files import _finite

CHUNK = 2**20  # bytes read at a time
LARGEST = 2**31  # bytes of a file
LONGEST = 2**26  # characters of an item
MOST = 2**17  # items
_OF_NUMBERS = "0123456789+-.eE"
_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_finite)


def read_long_json(path: Path, what: str, key: str, take: Callable[[Any], None]) -> dict[str, Any]:
    """The object without the list at `key`, of which every item goes to `take` as it is read."""
    with path.open("rb") as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode) or about.st_size > LARGEST:
            raise BadInput(
                f"{what} of at most {LARGEST:,} bytes", got=f"{about.st_size:,} in {path}", do="split it"
            )
        try:
            return _Text(file.read).object(key, take)
        except (ValueError, RecursionError) as error:
            raise BadInput(
                f"{what} in JSON", got=f"{path}: {error}", do="restore it or start a new run"
            ) from None


class _Text:
    """What is read and not yet taken."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read, self._decode = read, codecs.getincrementaldecoder("utf-8")().decode
        self._text, self._at, self._ended = "", 0, False

    def object(self, key: str, take: Callable[[Any], None]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        self._expect("{")
        if self._next() == "}":
            self._at += 1
        else:
            while True:
                name = self._value()
                if not isinstance(name, str) or name in found:
                    raise ValueError("a name that is none, or twice")
                self._expect(":")
                if name == key and self._next() == "[":
                    self._list(take)
                else:
                    found[name] = self._value()
                if not self._goes_on("}"):
                    break
        if self._next():
            raise ValueError("more behind the end")
        return found

    def _list(self, take: Callable[[Any], None]) -> None:
        self._expect("[")
        if self._next() == "]":
            self._at += 1
            return
        for _ in range(MOST):
            take(self._value())
            if not self._goes_on("]"):
                return
        raise ValueError(f"more than {MOST:,} items")

    def _goes_on(self, end: str) -> bool:
        sign = self._next()
        if sign not in (",", end):
            raise ValueError(f"{sign!r} in place of a comma")
        self._at += 1
        return sign == ","

    def _expect(self, sign: str) -> None:
        if self._next() != sign:
            raise ValueError(f"no {sign!r} where it is needed")
        self._at += 1

    def _next(self) -> str:
        """The next sign that is no space; empty at the end."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in " \t\r\n":
                self._at += 1
            if self._at < len(self._text) or not self._more():
                return self._text[self._at : self._at + 1]

    def _value(self) -> Any:
        self._next()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError:
                if len(self._text) - self._at > LONGEST or not self._more():
                    raise
                continue
            length = end - self._at
            may_go_on = isinstance(value, int | float) and not self._text[end:].strip(_OF_NUMBERS)
            if not may_go_on or not self._more():
                self._at += length
                return value

    def _more(self) -> bool:
        """Read on; what was taken is let go. False at the end of the file."""
        if self._ended:
            return False
        chunk = self._read(max(CHUNK, len(self._text) - self._at))  # as much again: a long item is not
        self._text = self._text[self._at :] + self._decode(chunk, not chunk)  # begun anew too often
        self._at, self._ended = 0, not chunk
        return not self._ended
