"""The curves of a survey over the layers of the net: SVG by hand, from numbers alone. Not for pictures.

Every coordinate is clipped to its frame, so that nothing a file says can leave it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..present.axis import Axis, axis_for
from ..weights.charts import coordinate
from .results import Survey

WIDTH, HEIGHT = 250, 130  # of the frame
LEFT, RIGHT, TOP, BELOW = 44, 10, 8, 22
MOST_DOTS = 40  # points that are marked
MOST_TICKS = 6
Values = Sequence[float | None]


@dataclass(frozen=True)
class Panel:
    """One quantity over the layers: of the net, and of the net with its weights shuffled."""

    name: str  # of letters: part of an id
    title: str
    own: Values
    shuffled: Values
    axis: Axis


def panels(survey: Survey) -> list[Panel]:
    """What can be drawn; a quantity that no layer has is left out."""
    made = []
    for name, title in (
        ("agreement", "same label, share of inputs"),
        ("error", "recovery error of h"),
        ("cosine", "cosine of input and shadow"),
    ):
        own, shuffled = (
            [getattr(getattr(layer, side), name) for layer in survey.layers] for side in ("own", "shuffled")
        )
        known = [value for value in (*own, *shuffled) if value is not None]
        if known:
            axis = axis_for(known, from_zero=True) if name == "error" else Axis(min(0.0, *known, 0.0), 1.0)
            made.append(Panel(name, title, own, shuffled, axis))
    return made


def draw(panel: Panel) -> str:
    """One panel as an SVG that the page's stylesheet colours."""
    count, name = len(panel.own), f"plot-{panel.name}"
    parts = [
        f'<svg viewBox="{-LEFT} {-TOP} {LEFT + WIDTH + RIGHT} {TOP + HEIGHT + BELOW}" role="img" '
        f'aria-labelledby="{name}"><title id="{name}">{panel.title}, layer by layer</title>'
    ]
    for value, label in panel.axis.ticks(MOST_TICKS - 1):
        y = coordinate(_up(panel.axis, value))
        parts.append(
            f'<path class="axis" d="M0 {y}H{WIDTH}"/><text class="end" x="-6" y="{y}">{label}</text>'
        )
    for place in _marks(count):
        parts.append(f'<text x="{coordinate(_across(place, count))}" y="{HEIGHT + 15}">{place + 1}</text>')
    for kind, values in (("shuffled", panel.shuffled), ("own", panel.own)):
        parts.append(_curve(kind, values, panel.axis))
    return "".join(parts) + "</svg>"


def _curve(kind: str, values: Values, axis: Axis) -> str:
    """A line through the values that are there, broken where one is missing, with dots if there are few."""
    count = len(values)
    line, dots, joined = "", "", False
    for place, value in enumerate(values):
        if value is None:
            joined = False
            continue
        point = f"{coordinate(_across(place, count))} {coordinate(_up(axis, value))}"
        line += f"{'L' if joined else 'M'}{point}"
        dots += f"M{point}h0"
        joined = True
    marked = f'<path class="dots {kind}" d="{dots}"/>' if count <= MOST_DOTS and dots else ""
    return f'<path class="curve {kind}" d="{line}"/>{marked}' if line else ""


def _across(place: int, count: int) -> float:
    return WIDTH * (0.5 if count == 1 else 0.04 + 0.92 * place / (count - 1))


def _up(axis: Axis, value: float) -> float:
    return HEIGHT * (1 - axis.share(value))


def _marks(count: int) -> list[int]:
    """Which layers are numbered: the first, the last, and some between that are far enough apart."""
    if count <= 8:
        return list(range(count))
    step = -(-(count - 1) // 6)
    apart = 0.75 * step
    inner = [place for place in range(step - 1, count, step) if apart <= place <= count - 1 - apart]
    return [0, *inner, count - 1]
