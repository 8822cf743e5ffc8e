"""The figures of a diversity test: values with their intervals on one axis. SVG by hand, from numbers alone.

Every coordinate is clipped to its frame, so that nothing a file says can leave it. Not for words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..present.axis import Axis
from ..weights.charts import coordinate

LENGTH, ROW = 340, 44  # of the axis, and of a line with its words above
LEFT, RIGHT, TOP, BELOW = 8, 8, 4, 26
TICKS = 5


class Line(NamedTuple):
    """A value, an interval, or a limit on one side; `words` and `said` are never text from a file."""

    words: str
    said: str
    kind: str  # of letters: a class of the stylesheet
    value: float | None = None
    low: float | None = None
    high: float | None = None
    open_low: bool = False  # the interval has no lower end: at most `high`
    open_high: bool = False  # … no upper end: at least `low`


def lines(name: str, title: str, shown: Sequence[Line], axis: Axis) -> str:
    """Lines below each other, each with its words above; the axis at the bottom."""
    height = ROW * len(shown)
    parts = [
        f'<svg viewBox="{-LEFT} {-TOP} {LEFT + LENGTH + RIGHT} {TOP + height + BELOW}" role="img" '
        f'aria-labelledby="plot-{name}"><title id="plot-{name}">{title}</title>'
    ]
    for value, label in axis.ticks(TICKS):
        x = _at(axis, value)
        side = "start" if x < 16 else "end" if x > LENGTH - 16 else "middle"
        # beside the marks alone: a line through words would make them hard to read
        marks = "".join(f"M{coordinate(x)} {ROW * row + 20}v18" for row in range(len(shown)))
        parts.append(f'<path class="axis" d="{marks}"/>')
        parts.append(f'<text class="{side}" x="{coordinate(x)}" y="{height + 18}">{label}</text>')
    for row, line in enumerate(shown):
        parts += _line(line, axis, ROW * row)
    return "".join(parts) + "</svg>"


def _at(axis: Axis, value: float) -> float:
    return LENGTH * axis.share(value)


def _line(line: Line, axis: Axis, top: float) -> list[str]:
    middle = top + 29
    parts = [
        f'<text class="start" x="0" y="{top + 14}">{line.words}</text>',
        f'<text class="end" x="{LENGTH}" y="{top + 14}">{line.said}</text>',
    ]
    low = 0.0 if line.open_low else None if line.low is None else _at(axis, line.low)
    high = float(LENGTH) if line.open_high else None if line.high is None else _at(axis, line.high)
    if low is not None and high is not None:
        end = coordinate(max(high, low + 1))
        parts.append(f'<path class="span {line.kind}" d="M{coordinate(low)} {middle}H{end}"/>')
        for tip, is_open, turn in ((low, line.open_low, 1), (high, line.open_high, -1)):
            mark = (
                f"M{coordinate(tip + 5 * turn)} {middle - 4}L{coordinate(tip)} {middle}"
                f"L{coordinate(tip + 5 * turn)} {middle + 4}"
                if is_open
                else f"M{coordinate(tip)} {middle - 5}V{middle + 5}"
            )
            parts.append(f'<path class="span {line.kind}" d="{mark}"/>')
    if line.value is not None:
        x = coordinate(_at(axis, line.value))
        parts.append(f'<circle class="dot {line.kind}" cx="{x}" cy="{middle}" r="4.5"/>')
    return parts
