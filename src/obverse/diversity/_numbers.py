"""How a diversity test spells numbers: bounds are rounded to their own side. Not for sentences."""

from __future__ import annotations

from functools import partial
from math import ceil, floor, log10

from .._core import FIXED, NONE, number, p_value
from .._core import percent as _percent
from ._estimates import Estimate


def sure(confidence: float) -> str:
    return f"{100 * confidence:.4g} %"


def up_to(value: float, digits: int = 2) -> str:
    """Rounded upwards, as an upper bound has to be."""
    step = _step(value, digits)
    # a little slack: what is 14,000 but for rounding is 14,000
    return f"{ceil(value / step - 1e-9) * step:,.0f}"


def down_to(value: float, digits: int = 2) -> str:
    """Rounded downwards, as a lower bound has to be."""
    step = _step(value, digits)
    return f"{floor(value / step + 1e-9) * step:,.0f}"


def _step(value: float, digits: int) -> float:
    return 10.0 ** max(0, floor(log10(max(value, 1.0))) + 1 - digits)


def about(value: float | None) -> str:
    """A count that is estimated: to three digits."""
    if value is None:
        return NONE
    return f"{float(f'{value:.3g}'):,.0f}" if 100 <= value < 1e15 else number(value)


def times(ratio: float) -> str:
    """Rounded upwards, and never to 1."""
    return f"{ceil(10 * ratio - 1e-9) / 10:.1f}" if ratio < 10 else up_to(min(ratio, 1e15))


percent = partial(_percent, decimals=1, unit=" %", missing=NONE)


def chance(p: float | None) -> str:
    """p = 0.03, or p < 0.001."""
    said = p_value(p).replace(FIXED, " ")  # a terminal may not know it
    return f"p {said}" if said.startswith("<") else f"p = {said}"


def estimate(one: Estimate | None) -> str:
    return NONE if one is None else with_error(one.value, one.error)


def with_error(value: float, error: float) -> str:
    """To two digits of the error."""
    if 1e-3 <= abs(value) < 1e4 and error >= 5e-5:
        places = max(0, min(4, 1 - floor(log10(error))))
        return f"{value:.{places}f} ± {error:.{places}f}".replace("-", "−")
    return f"{number(value)} ± {number(error)}"
