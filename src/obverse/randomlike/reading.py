"""audit.json, written and read back with every field checked. Not for measuring, nor for other files."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from ..errors import BadInput
from ..files import read_json, write_text
from .results import Audit, Histogram, LayerAudit, Record

FORMAT = 1
NAME = "audit.json"
MAX_ITEMS = 2**16  # layers, bins, singular values, names of a mapping
MAX_LETTERS = 10_000
MAX_WHOLE = 2**63 - 1


def audit_text(audit: Audit) -> str:
    """The audit as JSON on one line: `indent` would make long lists of numbers three times as long."""
    return json.dumps({"format": FORMAT, **audit.to_dict()}, allow_nan=False) + "\n"


def write_audit(audit: Audit, path: Path) -> None:
    """Write audit.json, whole or not at all."""
    write_text(path, audit_text(audit))


def read_audit(path: Path) -> Audit:
    """The audit in a file, or in the audit.json of a directory; anything out of order is refused by name."""
    file = Path(path)
    file = file / NAME if file.is_dir() else file
    found = read_json(file, "an audit")
    version = found.pop("format", None)
    if type(version) is not int or version != FORMAT:
        raise BadInput(
            f"an audit of format {FORMAT}",
            got=f"format {_shown(version)} in {file}",
            do="use the version of obverse that wrote it",
        )
    try:
        audit: Audit = _decode(found, Audit, "the audit")
    except _Wrong as wrong:
        raise BadInput(f"{wrong.expected} in {file}", got=wrong.got, do="make the audit again") from None
    return audit


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
    for missing in names:
        if missing not in value:
            raise _Wrong(where, f"the field {missing}", "none of that name")
    for unknown in value:
        if unknown not in names:
            raise _Wrong(where, f"no fields but {', '.join(names)}", unknown)
    record = kind(**{name: _decode(value[name], hints[name], f"{where}.{name}") for name in names})
    for expected, holds in _RULES.get(kind, ()):
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
# What the types cannot say and whoever shows an audit relies on.
_RULES: dict[type[Record], tuple[tuple[str, Callable[[Any], bool]], ...]] = {
    Histogram: (
        ("one more edge than counts", lambda record: len(record.edges) == len(record.counts) + 1),
        ("edges in ascending order", lambda record: record.edges == tuple(sorted(record.edges))),
        ("counts ≥ 0", lambda record: min(record.counts, default=0) >= 0),
    ),
    LayerAudit: (("rows and columns ≥ 1", lambda record: min(record.rows, record.columns) >= 1),),
}
