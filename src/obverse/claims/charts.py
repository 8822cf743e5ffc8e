"""The plot of a claim: measured points with their bars over the predicted curve, as SVG by hand.

Not for what belongs to which curve: see claims_series. Text of unknown origin is escaped here, and every
coordinate lies inside the frame. A category has a line of its own, its name at the left.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from .._core import plain, short
from ..present import DECADE, OCTAVE, Axis, axis_for, coordinate, palette, path
from ._series import MOST_SERIES, Curves, Series, curves
from .results import Outcome

TOTAL = 404  # CSS pixels at its natural size, of which the labels at the left take some
RIGHT = 14
HEIGHT = 190
LINE = 30  # of a category
LABELS, NAMES = 54, 132  # width of the numbers or of the names at the left
LONGEST_LABEL = 20
ROOM = 40  # between two labels along the axis
SIZE = 8  # of a marker
PREDICTED = {
    "value": "predicted",
    "bound": "bound",
    "rate": "stated rate",
    "exponent": "predicted rate",
}

Place = Callable[[float, float], tuple[str, str]]


@dataclass(frozen=True)
class Plot:
    """A drawing and what its caption must say."""

    svg: str
    names: tuple[str, ...]  # of the series, for the legend; empty where there is one
    predicted: str  # what the line is
    constant: str
    fitted: bool
    failed: bool  # some points are ringed
    left_out: int


def shared() -> str:
    """The markers and the ring, once a page."""
    marks = "".join(
        f'<path id="mark-{index}" d="{palette.shape(index, SIZE)}"/>' for index in range(MOST_SERIES)
    )
    ring = '<circle id="ring" r="8"/>'
    return f'<svg class="shared" aria-hidden="true"><defs>{marks}{ring}</defs></svg>'


def plot(outcome: Outcome, beside: Sequence[Outcome] = ()) -> Plot | None:
    """None where there is nothing to draw. What stands beside it and measures the same has the same axes."""
    found = curves(outcome)
    if not found.series:
        return None
    same = [found] + [
        curves(one)
        for one in beside
        if one is not outcome and (one.quantity, one.axis) == (outcome.quantity, outcome.axis)
    ]
    # the slope of a rate is what counts: it is drawn on logarithmic axes if at all possible
    span = OCTAVE if outcome.kind in ("rate", "exponent") else DECADE
    values = _values(same, span)
    title = f"{plain(outcome.quantity)}, measured and {PREDICTED[outcome.kind]}, along {plain(outcome.axis)}"
    if found.categories:
        svg = _by_category(outcome.axis, found, values, title)
    else:
        places = [place for one in same if not one.categories for part in one.series for place in part.places]
        svg = _by_number(outcome.axis, found, axis_for(places, span=span), values, title)
    return Plot(
        svg=svg,
        names=tuple(one.name for one in found.series) if len(found.series) > 1 else (),
        predicted=PREDICTED[outcome.kind],
        constant=found.constant,
        fitted=bool(found.fitted),
        failed=any(point.verdict == "failed" for one in found.series for point in one.points),
        left_out=found.left_out,
    )


def _values(same: Sequence[Curves], span: float) -> Axis:
    """The axis of what is measured. Bars that reach far do not choose it, nor squeeze the points."""
    parts = [part for one in same for part in one.series]
    points = [point for part in parts for point in part.points]
    heights = [height for one in same for _, height in one.fitted]
    heights += [height for part in parts for height in (*part.predicted, *(one.mean for one in part.points))]
    ends = [end for one in points for end in (one.low, one.high)]
    near = [end for one in points for end in (one.low, one.high) if abs(end - one.mean) < 0.7 * abs(one.mean)]
    axis = axis_for([*heights, *near], span=span, from_zero=True)
    if axis.logarithmic:
        return axis
    reach = 2 * max(map(abs, heights))
    cut = [min(max(end, -reach), reach) for end in ends]
    return axis_for([*heights, *cut], span=math.inf, from_zero=True)


def _by_number(name: str, found: Curves, along: Axis, values: Axis, title: str) -> str:
    places = sorted({place for one in found.series for place in one.places})
    width = TOTAL - LABELS - RIGHT

    def place(where: float, value: float) -> tuple[str, str]:
        return coordinate(along.share(where) * width), coordinate((1 - values.share(value)) * HEIGHT)

    lines, labels = [], []
    for value, label in values.ticks(6):
        y = coordinate((1 - values.share(value)) * HEIGHT)
        lines.append(f"M0 {y}H{width}")
        labels.append(_text("-7", y, label, "end middle"))
    # the settings themselves, where there is room for all of them
    shares = [along.share(where) * width for where in places]
    roomy = all(right - left > ROOM for left, right in pairwise(shares))
    for value, label in [(where, short(where)) for where in places] if roomy else along.ticks(7):
        x = coordinate(along.share(value) * width)
        lines.append(f"M{x} {HEIGHT}v4")
        labels.append(_text(x, str(HEIGHT + 17), label))
    labels.append(_text(str(width // 2), str(HEIGHT + 36), plain(name, 60), "name"))
    parts = [path("axis", f"{''.join(lines)}M0 {HEIGHT}H{width}"), *labels]
    parts += [_curve(index, one, place, len(found.series)) for index, one in enumerate(found.series)]
    parts += _fitted(found, place)
    parts += [_points(index, one, place, upright=True) for index, one in enumerate(found.series)]
    return _picture(title, LABELS, HEIGHT + 44, parts)


def _by_category(axis: str, found: Curves, values: Axis, title: str) -> str:
    count, rows = len(found.series), len(found.categories)
    line = max(LINE, 14 * count)
    width, height = TOTAL - NAMES - RIGHT, rows * line
    lines, labels = [], []
    for value, label in values.ticks(5):
        x = coordinate(values.share(value) * width)
        lines.append(f"M{x} 0V{height + 4}")
        labels.append(_text(x, str(height + 17), label))
    for index, name in enumerate(found.categories):
        shown = plain(name if rows > 1 else f"{axis} = {name}", LONGEST_LABEL)
        labels.append(_text("-9", coordinate((index + 0.5) * line), shown, "end middle category"))
    parts = [path("axis", "".join(lines)), *labels]
    for index, one in enumerate(found.series):
        shift = (index + 0.5) / count  # curves beside each other, not on top

        def place(where: float, value: float, shift: float = shift) -> tuple[str, str]:
            return coordinate(values.share(value) * width), coordinate((where + shift) * line)

        marks = (place(*pair) for pair in zip(one.places, one.predicted, strict=True))
        reach = min(11.0, 0.45 * line / count)
        d = "".join(f"M{x} {coordinate(float(y) - reach)}v{coordinate(2 * reach)}" for x, y in marks)
        parts += [path(_colour(index, count), d), _points(index, one, place, upright=False)]
    return _picture(title, NAMES, height + 24, parts)


def _colour(index: int, count: int) -> str:
    """One curve of predictions is drawn in ink; of several, each in the colour of its points."""
    return "curve" if count == 1 else f"curve s{index % len(palette.LIGHT)}"


def _curve(index: int, one: Series, place: Place, count: int) -> str:
    spots = [" ".join(place(*pair)) for pair in zip(one.places, one.predicted, strict=True)]
    # a single point has a prediction, too: a dash
    d = f"M{spots[0]}m-9 0h18" if len(spots) == 1 else f"M{'L'.join(spots)}"
    return path(_colour(index, count), d)


def _fitted(found: Curves, place: Place) -> list[str]:
    """Dashed; where the fit is no function of the axis alone, a dash at each setting."""
    if not found.fitted:
        return []
    spots = [" ".join(place(*pair)) for pair in found.fitted]
    if len({where for where, _ in found.fitted}) == len(found.fitted):
        return [path("fitted", f"M{'L'.join(spots)}")]
    return [path("fitted apart", "".join(f"M{spot}m-7 0h14" for spot in spots))]


def _points(index: int, one: Series, place: Place, *, upright: bool) -> str:
    bars, marks, rings = [], [], []
    for where, point in zip(one.places, one.points, strict=True):
        x, y = place(where, point.mean)
        marks.append(f'<use href="#mark-{index}" x="{x}" y="{y}"/>')
        if point.verdict == "failed":
            rings.append(f'<use href="#ring" x="{x}" y="{y}"/>')
        if point.high > point.low:
            (left, bottom), (right, top) = place(where, point.low), place(where, point.high)
            bars.append(f"M{x} {bottom}V{top}" if upright else f"M{left} {y}H{right}")
    drawn = path("whisker", "".join(bars)) if bars else ""
    ringed = f'<g class="ring">{"".join(rings)}</g>' if rings else ""
    return f'<g class="s{index % len(palette.LIGHT)}">{drawn}{"".join(marks)}</g>{ringed}'


def _text(x: str, y: str, text: str, kind: str = "") -> str:
    from markupsafe import escape

    place = f' class="{kind}"' if kind else ""
    return f'<text x="{x}" y="{y}"{place}>{escape(text)}</text>'


def _picture(title: str, left: int, height: int, parts: list[str]) -> str:
    from markupsafe import escape

    box = f"{-left} -10 {TOTAL} {height + 10}"
    return f'<svg viewBox="{box}" role="img" aria-label="{escape(title)}">{"".join(parts)}</svg>'
