"""Numbers, counts, names and lists as people write them; bounded text of any origin. Not for sentences.

Pages, terminals and messages all take them from here, so that the same number is spelled the same everywhere.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

T = TypeVar("T")

FIXED = "\N{NO-BREAK SPACE}"
NONE = "–"  # in a cell of a table, where there is nothing to say
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def percent(
    fraction: float | None,
    se: float | None = None,
    *,
    decimals: int = 2,
    unit: str = "",
    missing: str = "—",
) -> str:
    """A fraction in percent, with its standard error if there is one: 4.20 ± 0.12."""
    if fraction is None:
        return missing
    error = "" if se is None else f"{FIXED}±{FIXED}{100 * se:.{decimals}f}"
    return f"{100 * fraction:.{decimals}f}{error}{unit}"


def in_percent(fraction: float) -> str:
    """In percent, to a tenth: a hundred only where it is all, zero only where there is nothing."""
    if 0.999 < fraction < 1:
        return f"more than 99.9{FIXED}%"
    if 0 < fraction < 0.001:
        return f"less than 0.1{FIXED}%"
    return f"{100 * fraction:.{0 if fraction in (0, 1) else 1}f}{FIXED}%"


def signed(fraction: float, se: float | None = None) -> str:
    """A difference in points, its sign always written."""
    text = percent(abs(fraction), se)
    sign = "−" if round(100 * fraction, 2) < 0 else "+" if round(100 * fraction, 2) > 0 else ""
    return sign + text


def p_value(p: float | None) -> str:
    if p is None:
        return "—"
    return f"<{FIXED}0.001" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def seconds(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def counted(count: int, one: str, more: str | None = None) -> str:
    """A number of things: 1 layer, 1,200 layers; `more` where the plural is not one with an s."""
    return f"{count:,} {one if count == 1 else more or one + 's'}"


def shape(sides: Sequence[int]) -> str:
    """The shape of a tensor: 3×32×32; that of a number is 1."""
    return "×".join(map(str, sides)) or "1"


def unbroken(text: str, *signs: str) -> str:
    """With signs that stay beside their numbers: " %" and the like, their spaces fixed."""
    for sign in signs:
        text = text.replace(sign, sign.replace(" ", FIXED))
    return text


def at_most(items: Sequence[T], most: int) -> tuple[Sequence[T], int]:
    """The first ones, and how many more there are."""
    return items[:most], max(0, len(items) - most)


def listed(items: Sequence[str], most: int | None = None) -> str:
    """a, b and c; of more than `most` the first ones: a, b and 7 more."""
    shown, more = (items, 0) if most is None else at_most(items, most)
    *others, last = [*shown, f"{more:,} more"] if more else shown
    return f"{', '.join(others)} and {last}" if others else last


def spelled(count: int) -> str:
    return _NUMBERS[count] if count < len(_NUMBERS) else str(count)


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float) -> str:
    """Three significant digits as a person writes them: 0.0120, 4,096, 3.2·10⁻⁵; counts as they are."""
    if math.isnan(value):
        return "—"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    size = abs(value)
    if size == 0:
        return "0"
    if size < 9.995e-4 or size >= 1e9:
        return powered(value)
    is_whole = isinstance(value, int) or size >= 999.5
    text = f"{value:,.0f}" if is_whole else f"{value:#.3g}".removesuffix(".")
    return text.replace("-", "−")


def whole(value: int) -> str:
    """A count of any origin; larger ones than anything here has are not spelled out."""
    return f"{value:,}" if abs(value) < 10**15 else "more than 10¹⁵"


def powered(value: float, decimals: int = 1) -> str:
    """With a power of ten: 3.2·10⁻⁵, 4·10⁹."""
    digits, power = f"{value:.{decimals}e}".split("e")
    short = digits.rstrip("0").rstrip(".") if decimals else digits
    return f"{short.replace('-', '−')}·10{str(int(power)).translate(_RAISED)}"


def brief(value: float) -> str:
    """The same without trailing zeros: for what was chosen rather than measured."""
    text = number(value)
    return text.rstrip("0").rstrip(".") if "." in text and "·" not in text else text


LONGEST_TEXT, LONGEST_NAME = 200, 120
MOST_PAIRS = 60


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
    text = printable(" ".join(text.split()))
    return text if len(text) <= longest else text[: longest - 1] + "…"


def named(text: str, otherwise: str = "") -> str:
    """A name of any origin, of bounded length; `otherwise` where nothing is left of it."""
    return plain(text, LONGEST_NAME) or otherwise


def pairs(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Names and values of any origin as text, of bounded number and length."""
    return [(plain(key), plain(spell(value))) for key, value in list(values.items())[:MOST_PAIRS]]


# What steers a terminal, breaks a line, hides text or turns its direction, and what UTF-8 cannot write: the
# categories Cc, Cf, Zl, Zp and Cs of Unicode.
_UNSEEN = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\\xad\\u0600-\\u0605\\u061c\\u06dd\\u070f\\u0890\\u0891\\u08e2\\u180e"
    "\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u2064\\u2066-\\u206f\\ud800-\\udfff\\ufeff\\ufff9-\\ufffb"
    "\\U000110bd\\U000110cd\\U00013430-\\U0001343f\\U0001bca0-\\U0001bca3\\U0001d173-\\U0001d17a"
    "\\U000e0001\\U000e0020-\\U000e007f]"
)


def printable(text: str, keep: str = "") -> str:
    """Text of foreign origin as it can be shown, in a terminal as on a page: what is not seen is spelled out.

    `keep` are letters that may stay, such as the line breaks of a whole page.

    >>> print(printable("layer\\x1b[2J"))
    layer\\x1b[2J
    """
    return _UNSEEN.sub(lambda found: found[0] if found[0] in keep else _spelled_out(found[0]), text)


def _spelled_out(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")


def short(value: float) -> str:
    """A value that was chosen: 0.02, 500, 10⁻⁷, 2·10⁵."""
    if value == 0 or 1e-3 <= abs(value) < 99_999.5:
        return f"{value:,.5g}".replace("-", "−")
    return powered(value).removeprefix("1·")
