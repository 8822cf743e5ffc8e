"""Results as values: frozen dataclasses that are written as JSON and read back with every field checked.

Not for what is in them, nor for how files are written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from .errors import BadInput, NoSuchFile
from .files import MAX_JSON, read_json
from .long_json import read_long_json
from .shown import Shown

MAX_ITEMS = 2**16  # of a list, or names of a mapping
MAX_LETTERS = 10_000
MAX_WHOLE = 2**63 - 1
LONGEST_LINE, LONGEST_VALUE = 116, 40  # letters of a repr, and of one value in it


class OneLine:
    """A dataclass whose repr is one short line: its numbers and words, and of tensors and lists the size.

    The repr that `dataclass` would make of an audit has 30,000 letters.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__repr__" not in cls.__dict__:  # in the class itself, where `dataclass` leaves it alone
            cls.__repr__ = OneLine.__repr__  # type: ignore[method-assign]

    def __repr__(self) -> str:
        assert is_dataclass(self)
        text = f"{type(self).__name__}("
        for number, field in enumerate(fields(self)):
            part = f"{', ' if number else ''}{field.name}={_brief(getattr(self, field.name))}"
            if len(text) + len(part) > LONGEST_LINE:
                return f"{text}, …)"
            text += part
        return f"{text})"


def _brief(value: Any) -> str:
    """A value in a line with others."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if value is None or isinstance(value, bool | int | str):
        text = ascii(value)
        return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"
    if hasattr(value, "shape"):
        return "×".join(map(str, value.shape)) or "a number"
    if isinstance(value, tuple | list | Mapping):
        return f"[{len(value)}]"
    return type(value).__name__


class Result(Shown, OneLine):
    """A frozen dataclass that shows itself: `plot()`, `to_frame()` and, in a notebook, a table."""


class Record(Result):
    """A result that can be written as JSON.

    `checks` is what types cannot say and the display of a record relies on: (what is expected, test).
    """

    checks: ClassVar[tuple[tuple[str, Callable[[Any], bool]], ...]] = ()
    renamed: ClassVar[Mapping[str, str]] = {}  # fields of older files: their name then, their name now
    derived: ClassVar[tuple[str, ...]] = ()  # properties that are written too, and not read: they follow

    def to_dict(self) -> dict[str, Any]:
        assert is_dataclass(self)
        names = [*(field.name for field in fields(self)), *self.derived]
        return {name: _simple(getattr(self, name)) for name in names}

    def __dir__(self) -> list[str]:
        """For tab completion: without what only readers of files need."""
        return [name for name in super().__dir__() if name not in ("checks", "renamed", "derived")]


Kind = TypeVar("Kind", bound=Record)


def _simple(value: Any) -> Any:
    if isinstance(value, Record):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {str(key): _simple(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_simple(item) for item in value]
    return value


def record_text(record: Record, version: int) -> str:
    """The record as JSON on one line: `indent` would make long lists of numbers three times as long."""
    return json.dumps({"format": version, **record.to_dict()}, allow_nan=False) + "\n"


def versions() -> dict[str, str]:
    """Of what a result was computed with."""
    import platform

    import torch

    from .. import __version__

    return {"obverse": __version__, "torch": torch.__version__, "python": platform.python_version()}


def read_record(path: Path, kind: type[Kind], what: str, version: int) -> Kind:
    """The record in a file; anything out of order is refused by name. `what` is a noun without article."""
    return record_of(read_json(path, f"{_article(what)} {what}"), kind, what, version, path)


def read_long_record(
    path: Path, kind: type[Kind], what: str, version: int, *, key: str, items: type[Record]
) -> Kind:
    """The same for a file that may be far longer, by the list at `key`, whose records are read one by one."""
    if path.is_file() and path.stat().st_size <= MAX_JSON:
        return read_record(path, kind, what, version)
    found: list[Record] = []

    def take(one: Any) -> None:
        if not isinstance(one, dict):
            got = f"{_shown(one)} in {path}"
            raise BadInput(f"objects as {key} of {_article(what)} {what}", got=got, do="restore it")
        found.append(as_record(one, items, what, path))

    try:
        rest = read_long_json(path, f"{_article(what)} {what}", key, take)
    except FileNotFoundError:
        raise NoSuchFile(path if path.parent.exists() else path.parent) from None
    except OSError as error:
        raise BadInput(f"to read {path}", got=error.strerror or error, do="check the path") from None
    whole = record_of({**rest, key: []}, kind, what, version, path)
    return replace(whole, **{key: tuple(found)})  # type: ignore[type-var]


def _article(what: str) -> str:
    return "an" if what[0] in "aeiou" else "a"


def record_of(found: dict[str, Any], kind: type[Kind], what: str, version: int, path: Path) -> Kind:
    """The record that an object is, with its format."""
    article = _article(what)
    said = found.pop("format", None)
    if type(said) is not int or said != version:
        raise BadInput(
            f"{article} {what} of format {version}",
            got=f"format {_shown(said)} in {path}",
            do="use the version of obverse that wrote it",
        )
    return as_record(found, kind, what, path)


def as_record(found: dict[str, Any], kind: type[Kind], what: str, place: object) -> Kind:
    """A JSON object as a record; anything out of order is refused by name. `place` is where it was found."""
    try:
        record: Kind = _decode(found, kind, f"the {what}")
    except _Wrong as wrong:
        raise BadInput(f"{wrong.expected} in {place}", got=wrong.got, do=f"make the {what} again") from None
    return record


class _Wrong(Exception):
    def __init__(self, where: str, expected: str, got: object) -> None:
        self.expected, self.got = f"{expected} for {where}", _shown(got)


def _shown(value: object) -> str:
    """A value of any size in a sentence: at most 60 letters, none of them a control character."""
    if isinstance(value, list | dict):
        return f"a {'list' if isinstance(value, list) else 'mapping'} of {len(value)}"
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _decode(value: Any, hint: Any, where: str) -> Any:
    """`value` as the type that `hint` names: what `Record.to_dict` wrote, and no more."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        (wanted,) = (one for one in arguments if one is not type(None))
        return None if value is None else _decode(value, wanted, where)
    if origin is Literal:
        if value not in arguments:
            raise _Wrong(where, " or ".join(map(repr, arguments)), value)
        return value
    if origin is tuple:
        return _tuple(value, arguments, where)
    if origin is dict:
        return _mapping(value, arguments[1], where)
    if isinstance(hint, type) and issubclass(hint, Record):
        return _record(value, hint, where)
    return _SCALARS[hint](value, where)


def _tuple(value: Any, arguments: tuple[Any, ...], where: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise _Wrong(where, "a list", value)
    if arguments[-1] is not Ellipsis:
        if len(value) != len(arguments):
            raise _Wrong(where, f"a list of {len(arguments)}", value)
        hints = arguments
    else:
        if len(value) > MAX_ITEMS:
            raise _Wrong(where, f"at most {MAX_ITEMS:,} items", value)
        hints = arguments[:1] * len(value)
    return tuple(
        _decode(item, hint, f"{where}[{index}]")
        for index, (item, hint) in enumerate(zip(value, hints, strict=True))
    )


def _mapping(value: Any, hint: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict) or len(value) > MAX_ITEMS:
        raise _Wrong(where, f"a mapping of at most {MAX_ITEMS:,} names", value)
    return {
        _text(key, f"a name in {where}"): _decode(item, hint, f"{where}.{_shown(key)}")
        for key, item in value.items()
    }


@cache
def _hints(kind: Any) -> dict[str, Any]:
    """The fields of a record and their types, in order."""
    found = get_type_hints(kind)
    return {field.name: found[field.name] for field in fields(kind)}


def _record(value: Any, kind: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise _Wrong(where, "a mapping", value)
    hints = _hints(kind)
    names = list(hints)
    value = {kind.renamed.get(n, n): item for n, item in value.items() if n not in kind.derived}
    later = {field.name: field.default for field in fields(kind) if field.default is not MISSING}
    for missing in names:
        if missing not in value and missing not in later:
            raise _Wrong(where, f"the field {missing}", "none of that name")
    for unknown in value:
        if unknown not in names:
            raise _Wrong(where, f"no fields but {', '.join(names)}", unknown)
    # A field with a default is one that older files do not have.
    record = kind(**{n: _decode(value[n], hints[n], f"{where}.{n}") for n in names if n in value})
    for expected, holds in kind.checks:
        if not holds(record):
            raise _Wrong(where, expected, "another")
    return record


def _whole(value: Any, where: str) -> int:
    if type(value) is not int or abs(value) > MAX_WHOLE:
        raise _Wrong(where, "a whole number", value)
    return value


def _number(value: Any, where: str) -> float:
    """A float, or a whole number in its place; the parser has refused NaN and infinity."""
    if type(value) is not float and (type(value) is not int or abs(value) > MAX_WHOLE):
        raise _Wrong(where, "a number", value)
    return value


def _truth(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise _Wrong(where, "true or false", value)
    return value


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or len(value) > MAX_LETTERS:
        raise _Wrong(where, f"a text of at most {MAX_LETTERS:,} letters", value)
    if any("\ud800" <= letter <= "\udfff" for letter in value):  # JSON can hold them, UTF-8 cannot
        raise _Wrong(where, "a text without lone surrogates", value)
    return value


def _setting(value: Any, where: str) -> Any:
    """What a mapping of Any may hold: a plain value, or a list of them; nothing deeper."""
    if isinstance(value, list):
        return _tuple(value, (object, ...), where)
    return _plain(value, where)


def _plain(value: Any, where: str) -> Any:
    if value is None:
        return None
    if type(value) not in (bool, int, float, str):
        raise _Wrong(where, "a number, a text, true, false or null", value)
    return _SCALARS[type(value)](value, where)


_SCALARS: dict[Any, Callable[[Any, str], Any]] = {
    int: _whole,
    float: _number,
    bool: _truth,
    str: _text,
    Any: _setting,
    object: _plain,
}
