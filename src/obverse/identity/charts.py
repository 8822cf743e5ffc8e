"""The figures of a memorizing net: SVG by hand, from numbers alone. Not for words.

Every coordinate is clipped to its frame, so that nothing a file says can leave it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .._core import number
from ..present import LIGHT, Axis, across, axis_for, coordinate
from ._memorize import QUANTILES
from ._recall import Recall
from ._walk import Point, Walk
from ._words import PROMISED, percent, standard_error

SIDE = 240  # of the frame of a walk
MARK = 7.5  # radius of a point
EDGE = 0.05  # of the walk, left free around it
CLEAR = 1  # around the frame, for its line
WIDTH, HEIGHT = 250, 130  # of the frame of quantiles
LEFT, RIGHT, TOP, BELOW = 52, 12, 8, 22
LENGTH, ROW = 300, 38  # of a bar with its words above
TICKS = 6


@dataclass(frozen=True)
class Panel:
    """One stage of the walk."""

    title: str
    svg: str


class Bar(NamedTuple):
    words: str
    value: float
    said: str
    kind: str  # of letters: a class of the stylesheet
    spread: float = 0.0


# --- the walk ---


def walk_panels(walk: Walk) -> list[Panel]:
    """The points before the first block, behind it, half way and at the end."""
    last = len(walk.moved)
    stages = {0: "before the first block"}
    for stage, words in ((1, "after block 1"), (last // 2, f"after block {last // 2}"), (last, "at the end")):
        stages.setdefault(stage, words)
    frame = _frame([*walk.targets, *(point for stage in walk.positions for point in stage)])
    return [Panel(words, _stage(walk, stage, frame)) for stage, words in sorted(stages.items())]


class _Frame(NamedTuple):
    """A square of the plane, by its lower left corner."""

    x: float
    y: float
    size: float

    def place(self, point: Sequence[float]) -> Point:
        """Where a point is drawn: never outside the frame."""
        return (
            float(across(point[0], self.x, self.x + self.size, SIDE)),
            SIDE - float(across(point[1], self.y, self.y + self.size, SIDE)),
        )

    def corners(self) -> list[Point]:
        right, top = self.x + self.size, self.y + self.size
        return [(self.x, self.y), (right, self.y), (right, top), (self.x, top)]


def _frame(points: Sequence[Point]) -> _Frame:
    lows = [min(point[axis] for point in points) for axis in (0, 1)]
    highs = [max(point[axis] for point in points) for axis in (0, 1)]
    size = (1 + 2 * EDGE) * max(high - low for low, high in zip(lows, highs, strict=True)) or 1.0
    middle = [low / 2 + high / 2 for low, high in zip(lows, highs, strict=True)]
    return _Frame(middle[0] - size / 2, middle[1] - size / 2, size)


def _stage(walk: Walk, stage: int, frame: _Frame) -> str:
    """Points that were moved are filled, the others hollow; what the last block did is shown with arrows."""
    name = f"walk-{stage}"
    index = {label: place for place, label in enumerate(walk.classes)}
    done = {point for block in walk.moved[:stage] for point in block}
    now = list(walk.moved[stage - 1]) if stage else []
    outer = SIDE + 2 * CLEAR
    parts = [
        f'<svg viewBox="{-CLEAR} {-CLEAR} {outer} {outer}" role="img" aria-labelledby="{name}">'
        f'<title id="{name}">{len(done)} of {len(walk.labels)} points at their targets after {stage} of '
        f"{len(walk.moved)} blocks</title>",
        f'<rect class="frame" width="{SIDE}" height="{SIDE}"/>'
        f'<path class="origin" d="M{_at(frame.place((0.0, 0.0)))}m-5 0h10m-5 -5v10"/>',
    ]
    if stage:
        parts += [_half_plane(unit, frame) for unit in walk.units[stage - 1]]
    parts += [
        _mark("target", label, index, frame.place(target))
        for label, target in zip(walk.classes, walk.targets, strict=True)
    ]
    for point, label in enumerate(walk.labels):
        if point not in done:
            parts.append(_mark("open", label, index, frame.place(walk.positions[stage][point])))
    for point in now:
        start, end = (frame.place(walk.positions[at][point]) for at in (stage - 1, stage))
        parts.append(_mark("left", walk.labels[point], index, start))
        parts.append(_arrow(start, end))
    for point in sorted(done):
        parts.append(_mark("full", walk.labels[point], index, frame.place(walk.positions[stage][point])))
    return "".join(parts) + "</svg>"


def _mark(kind: str, label: int, index: dict[int, int], place: Point) -> str:
    """A point or target with its class, which is a colour and a number."""
    x, y = map(coordinate, place)
    return (
        f'<circle class="{kind} class-{index[label] % len(LIGHT)}" cx="{x}" cy="{y}" r="{MARK}"/>'
        f'<text class="mark" x="{x}" y="{y}">{str(label)[-3:]}</text>'
    )


def _arrow(start: Point, end: Point) -> str:
    """Between the rims of two marks; nothing where they touch."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = math.hypot(dx, dy)
    if length < 2 * MARK + 6:
        return ""
    dx, dy = dx / length, dy / length
    tail = start[0] + MARK * dx, start[1] + MARK * dy
    tip = end[0] - (MARK + 1) * dx, end[1] - (MARK + 1) * dy
    barbs = [(tip[0] - 6 * dx + side * 3 * dy, tip[1] - 6 * dy - side * 3 * dx) for side in (-1, 1)]
    return f'<path class="arrow" d="M{_at(tail)}L{_at(tip)}M{_at(barbs[0])}L{_at(tip)}L{_at(barbs[1])}"/>'


def _at(place: Point) -> str:
    return f"{coordinate(place[0])} {coordinate(place[1])}"


def _half_plane(unit: tuple[float, float, float], frame: _Frame) -> str:
    """Where a unit answers, as far as the frame goes."""
    corners = frame.corners()
    values = [unit[0] * x + unit[1] * y + unit[2] for x, y in corners]
    inside: list[Point] = []
    for here in range(4):
        before = here - 1
        if (values[here] > 0) != (values[before] > 0):
            share = values[before] / (values[before] - values[here])
            (ax, ay), (bx, by) = corners[before], corners[here]
            inside.append((ax + share * (bx - ax), ay + share * (by - ay)))
        if values[here] > 0:
            inside.append(corners[here])
    path = "L".join(_at(frame.place(corner)) for corner in inside)
    return f'<path class="answers" d="M{path}Z"/>' if path else ""


# --- quantiles ---


def margins(found: Recall) -> str:
    values = found.facts.margins
    axis = axis_for([*values, found.facts.ideal_margin], from_zero=True)
    return _quantiles("margins", "Quantiles of the margin", values, axis, found.facts.ideal_margin)


def lipschitz(found: Recall) -> str:
    axis = axis_for(found.lipschitz, from_zero=True)
    return _quantiles("lipschitz", "Quantiles of the local Lipschitz constant", found.lipschitz, axis)


def _quantiles(
    name: str, title: str, values: Sequence[float], axis: Axis, reference: float | None = None
) -> str:
    """Values over the shares of points that have less."""
    parts = [_open(name, title, LEFT + WIDTH + RIGHT, TOP + HEIGHT + BELOW, -LEFT, -TOP)]
    for value, label in axis.ticks(TICKS):
        y = coordinate(_up(axis, value))
        parts.append(
            f'<path class="axis" d="M0 {y}H{WIDTH}"/><text class="end" x="-6" y="{y}">{label}</text>'
        )
    if reference is not None:
        parts.append(f'<path class="reference" d="M0 {coordinate(_up(axis, reference))}H{WIDTH}"/>')
    places = [WIDTH * (0.04 + 0.92 * at / (len(QUANTILES) - 1)) for at in range(len(QUANTILES))]
    points = [_at((x, _up(axis, value))) for x, value in zip(places, values, strict=True)]
    parts.append(f'<path class="curve" d="M{"L".join(points)}"/>')
    parts.append(f'<path class="dots" d="{"".join(f"M{point}h0" for point in points)}"/>')
    for x, share in zip(places, QUANTILES, strict=True):
        parts.append(f'<text x="{coordinate(x)}" y="{HEIGHT + 15}">{100 * share:.0f}</text>')
    return "".join(parts) + "</svg>"


def _up(axis: Axis, value: float) -> float:
    return HEIGHT * (1 - axis.share(value))


# --- bars ---


def parameters(found: Recall) -> str:
    """What was built beside what the theorem counts with."""
    facts = found.facts
    n = facts.distinct
    return _bars(
        "parameters",
        "Parameters beside the budget",
        [
            Bar("n, the distinct points", n, f"{n:,}", "beside"),
            Bar("n ln n", n * math.log(n), f"{n * math.log(n):,.0f}", "beside"),
            Bar("built", facts.parameters, f"{facts.parameters:,}", "own"),
            Bar(
                f"{PROMISED}·(n ln n + r²)",
                PROMISED * facts.budget,
                number(PROMISED * facts.budget),
                "beside",
            ),
            Bar("the projection, not counted", facts.projection, f"{facts.projection:,}", "open"),
        ],
    )


def accuracies(found: Recall) -> str:
    """Of test inputs, in percent; nothing where none were tested."""
    if found.test_accuracy is None or found.chance is None or found.nearest_accuracy is None:
        return ""
    spread = 100 * standard_error(found)
    rows = (
        ("this net", found.test_accuracy, "own", 0.0),
        ("by chance: the largest class", found.chance, "beside", spread),
        ("nearest training point behind the projection", found.nearest_accuracy, "beside", 0.0),
    )
    bars = [Bar(words, 100 * share, f"{percent(share)} %", kind, se) for words, share, kind, se in rows]
    return _bars("accuracies", "Test inputs labelled right", bars, 100.0)


def _bars(name: str, title: str, bars: Sequence[Bar], most: float | None = None) -> str:
    """Bars from 0, each with its words above."""
    high = most or max(bar.value for bar in bars) or 1.0
    parts = [_open(name, title, LENGTH, ROW * len(bars))]
    for row, bar in enumerate(bars):
        top = ROW * row
        end = float(across(bar.value, 0.0, high, LENGTH))
        parts.append(f'<text class="start" x="0" y="{top + 9}">{bar.words}</text>')
        parts.append(f'<text class="end" x="{LENGTH}" y="{top + 9}">{bar.said}</text>')
        size = f'width="{coordinate(max(end, 1.0))}" height="12"'
        parts.append(f'<rect class="bar {bar.kind}" x="0" y="{top + 17}" {size}/>')
        if bar.spread > 0:
            ends = [float(across(bar.value + side * bar.spread, 0.0, high, LENGTH)) for side in (-1, 1)]
            parts.append(
                f'<path class="whisker" d="M{coordinate(ends[0])} {top + 23}H{coordinate(ends[1])}"/>'
            )
    return "".join(parts) + "</svg>"


def _open(name: str, title: str, width: float, height: float, x: float = 0, y: float = 0) -> str:
    return (
        f'<svg viewBox="{x} {y} {width} {height}" role="img" aria-labelledby="plot-{name}">'
        f'<title id="plot-{name}">{title}</title>'
    )
