"""The template engine and the way text from files gets into a page. Not for what a page says.

Escaping is the engine's, for every value that is not `Markup`; `plain` bounds what there is to escape.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

LONGEST_TEXT = 200
MOST_PAIRS = 60


def environment() -> Environment:
    """Templates by their path in the library: everything escaped, a missing value an error."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("obverse", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def spell(value: Any) -> str:
    """A JSON value as a person would write it."""
    if value is None:
        return "—"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {item}" for key, item in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(str(item) for item in value)
    return str(value)


def plain(text: str, longest: int = LONGEST_TEXT) -> str:
    """Text of any origin on one line and of bounded length."""
    text = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return text if len(text) <= longest else text[: longest - 1] + "…"


def pairs(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Names and values of any origin as text, of bounded number and length."""
    return [(plain(key), plain(spell(value))) for key, value in list(values.items())[:MOST_PAIRS]]


def script(*names: str) -> tuple[Markup, str]:
    """The scripts at these paths in the library as one, and the digest by which a page's policy allows it and no other."""
    from markupsafe import Markup

    code = "".join(files("obverse").joinpath(name).read_text(encoding="utf-8") for name in names)
    return Markup(code), base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
