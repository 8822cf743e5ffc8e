"""The small multiple of recovery errors: bars of a layer and of its controls. Not for measuring them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ._page_tables import counterpart
from .charts import HEIGHT, WIDTH, across, coordinate, path, picture, tick, up
from .results import Number, Reversal

LEFT = 28  # where the frame of the recovery errors begins: its axis has labels
LOG_BELOW = 0.05  # the recovery error below which a linear axis from 0 to 1 hides it
MOST_GROUPS = 5
MOST_DECADES = 6
ORDER = ("bars", "other", "shuffled", "gaussian")  # of the bars in a group
POWERS = ("1", "0.1", "10⁻²", "10⁻³", "10⁻⁴", "10⁻⁵", "10⁻⁶")


def recovery_bars(this: Sequence[Reversal], other: Sequence[Reversal] = ()) -> str:
    """At each sparsity: the layer, its shuffled entries, fresh normal ones; a line at the prediction."""
    groups = [(one, _bars(one, counterpart(one, other))) for one in this[:MOST_GROUPS]]
    errors = [error for one, bars in groups for error in (*bars.values(), one.predicted.error)]
    decades = _decades([error.value for error in errors])
    kinds = sorted({kind for _, bars in groups for kind in bars}, key=ORDER.index)
    room = (WIDTH - LEFT) / max(1, len(groups))
    width = min(10.0, 0.84 * room / max(1, len(kinds)))
    parts, drawn, whiskers, predictions = [_error_axis(decades)], dict.fromkeys(kinds, ""), "", ""
    for index, (one, bars) in enumerate(groups):
        middle = LEFT + (index + 0.5) * room
        start = middle - width * len(kinds) / 2
        for kind, error in bars.items():
            x = start + kinds.index(kind) * width
            top = coordinate(_error_place(error.value, decades))
            drawn[kind] += f"M{coordinate(x)} {HEIGHT}V{top}h{coordinate(width - 1)}V{HEIGHT}"
            whiskers += _whisker(x + (width - 1) / 2, error, decades)
        y = coordinate(_error_place(one.predicted.error.value, decades))
        predictions += f"M{coordinate(start - 2)} {y}h{coordinate(width * len(kinds) + 3)}"
        parts.append(tick(middle, "data" if one.source == "data" else _compact(one.sparsity)))
    parts += [path(kind, d) for kind, d in drawn.items()]
    parts += [path("whisker", whiskers), path("curve", predictions)]
    return picture("Recovery error of the layer and of its controls", parts)


def _bars(one: Reversal, two: Reversal | None) -> dict[str, Number]:
    """Errors by the class of their bars."""
    bars = {"bars": one.layer.error, "shuffled": one.shuffled.error, "gaussian": one.gaussian.error}
    return bars if two is None else bars | {"other": two.layer.error}


def _decades(errors: Sequence[float]) -> int:
    """How many decades below 1 a logarithmic axis needs; 0 where a linear one shows all errors."""
    smallest = min((error for error in errors if error > 0), default=1.0)
    return 0 if smallest >= LOG_BELOW else min(MOST_DECADES, math.ceil(-math.log10(smallest)))


def _error_place(value: float, decades: int) -> float:
    """Linear from 0 to 1, or logarithmic over so many decades below 1."""
    if not decades:
        return float(up(value, 1.0))
    return float(HEIGHT - across(math.log10(value) if value > 0 else -math.inf, -decades, 0.0, HEIGHT))


def _error_axis(decades: int) -> str:
    every = 2 if decades > 3 else 1
    ticks = {10.0**-power: POWERS[power] for power in range(0, decades + 1, every)}
    lines, labels = "", ""
    for value, label in (ticks if decades else {1.0: "1", 0.5: "0.5", 0.0: "0"}).items():
        y = _error_place(value, decades)
        lines += f"M{LEFT} {coordinate(y)}H{WIDTH}"
        labels += f'<text x="{LEFT - 3}" y="{coordinate(max(y + 4, 8))}" class="end">{label}</text>'
    return path("axis", lines) + labels


def _whisker(x: float, error: Number, decades: int) -> str:
    """One standard error either way, where it can be seen."""
    if error.spread is None:
        return ""
    low, high = (_error_place(error.value + sign * error.spread, decades) for sign in (-1, 1))
    return f"M{coordinate(x)} {coordinate(low)}V{coordinate(high)}" if low - high > 0.5 else ""


def _compact(value: float) -> str:
    return f"{value:.0f}" if value < 10_000 else f"{min(value, 9.99e8) / 1000:.0f}k"
