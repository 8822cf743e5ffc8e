"""The figures of a ladder: SVG by hand, from numbers, and from names as tooltips. Not for words.

Every coordinate is clipped to its frame, so that nothing a file says can leave it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from .._core import NONE, counted, named
from ..present import Axis, axis_for, coordinate, shape
from ._words import LIKE, PARTLY, level_name, share
from .results import EdgeFound, Ladder, Matrix, RegionFound, Training

MOST_DRAWN = 600  # edges, and regions
NARROW, BROAD = 340, 720  # of a graph, in CSS pixels at its natural width
CROWD = 20  # regions in a row from which on a graph is broad
STOREY = 58  # from one level to the next
SIDE = 34  # left of a graph, for its levels
WIDTH, HEIGHT = 230, 130  # of the frame of curves
LEFT, RIGHT, TOP, BELOW = 46, 12, 8, 34
CELL = 8  # of a matrix
FEWEST_CELLS = 10
MOST_COUNTS = 12  # numbers of events in a figure
SHADES = 8
LOWEST = -0.12  # of the axis of shares: where all that is below 0 is drawn
MESSAGES = {"forward": "what goes up", "backward": "what comes down", "weight": "ΔW"}
# (net, images, shuffled), which colour and marker, and what it is called
CURVES = (
    (("trained", "clustered", False), 0, "trained"),
    (("trained", "held out", False), 1, "trained, held-out images"),
    (("start", "clustered", False), 2, "before training"),
    (("trained", "clustered", True), 6, "control: events dealt at random"),
)
LOSSES = (
    ("loss_inputs", 0, "trained on inputs"),
    ("loss_carried", 1, "trained on events, measured on inputs"),
    ("loss_events", 2, "trained on events, as events tell it"),
)


@dataclass(frozen=True)
class Panel:
    """A figure and what stands above it; `broad` ones take a whole row."""

    title: str
    svg: str
    broad: bool = False


def grade(value: float | None) -> str:
    """Which colour: a class of the stylesheet."""
    if value is None:
        return "untold"
    return "misled" if value < 0 else "poor" if value < PARTLY else "fair" if value < LIKE else "good"


# --- the graph ---


def graph_panels(found: Ladder) -> list[Panel]:
    """The regions and their edges, once for each message, coloured by how much of it events explain."""
    places = _places(found)
    edges = [edge for edge in found.edges[-MOST_DRAWN:] if edge.parent in places and edge.child in places]
    broad = _widest(found.regions) > CROWD
    return [
        Panel(title, _graph(found, edges, places, message, title, broad), broad)
        for message, title in MESSAGES.items()
    ]


def drawn(found: Ladder) -> int:
    """How many edges are in the picture."""
    places = _places(found)
    return sum(edge.parent in places and edge.child in places for edge in found.edges[-MOST_DRAWN:])


def _widest(regions: Sequence[RegionFound]) -> int:
    return max(Counter(region.level for region in regions).values())


def _places(found: Ladder) -> dict[str, tuple[float, float]]:
    """(from 0 at the left to 1, level counted from 0): the lowest evenly, the others above their children."""
    regions = found.regions[-MOST_DRAWN:]
    known = {region.name for region in regions}
    below: dict[str, list[str]] = {}
    for edge in found.edges:
        if edge.child in known:
            below.setdefault(edge.parent, []).append(edge.child)
    storeys = {level: at for at, level in enumerate(sorted({region.level for region in regions}))}
    places: dict[str, tuple[float, float]] = {}
    for level, storey in storeys.items():
        row = [region.name for region in regions if region.level == level]
        for at, name in enumerate(row):
            under = [places[child][0] for child in below.get(name, []) if child in places]
            x = sum(under) / len(under) if under else (at + 0.5) / len(row)
            places[name] = x, storey
    return places


def _graph(
    found: Ladder,
    edges: Sequence[EdgeFound],
    places: dict[str, tuple[float, float]],
    message: str,
    title: str,
    broad: bool,
) -> str:
    width = BROAD if broad else NARROW
    storeys = 1 + max((storey for _, storey in places.values()), default=0)
    height = STOREY * storeys
    radius = min(7.0, 0.36 * (width - SIDE) / max(1, _widest(found.regions)))

    def at(name: str) -> tuple[str, str]:
        x, storey = places[name]
        return coordinate(SIDE + x * (width - SIDE)), coordinate(height - STOREY * (storey + 0.5))

    parts = [_open(f"graph-{message}", f"{title}, edge by edge", width, height)]
    levels = sorted({region.level for region in found.regions[-MOST_DRAWN:]})
    for storey, level in enumerate(levels):
        y = coordinate(height - STOREY * (storey + 0.5))
        parts.append(f'<text class="start" x="0" y="{y}">{level}</text>')
    # the worst last, so that they lie on top
    order = {"good": 0, "fair": 1, "untold": 2, "poor": 3, "misled": 4}
    by_grade: dict[str, list[str]] = {}
    for edge in edges:
        (ax, ay), (bx, by) = at(edge.child), at(edge.parent)
        value = getattr(edge.explained, message)
        tip = f"{_name(edge.child)} → {_name(edge.parent)}: {format_share(value)}"
        line = f'<path d="M{ax} {ay}L{bx} {by}"><title>{tip}</title></path>'
        by_grade.setdefault(grade(value), []).append(line)
    for kind in sorted(by_grade, key=order.__getitem__):
        parts.append(f'<g class="edge {kind}">{"".join(by_grade[kind])}</g>')
    parts.append('<g class="region">')
    for region in found.regions[-MOST_DRAWN:]:
        x, y = at(region.name)
        events = counted(region.events, "event")
        parts.append(
            f'<circle cx="{x}" cy="{y}" r="{coordinate(radius)}">'
            f"<title>{_name(region.name)}: {events}</title></circle>"
        )
    parts.append("</g>")
    return "".join(parts) + "</svg>"


def _name(name: str) -> str:
    """Text from a file: of bounded length, and escaped."""
    return escape(named(name))


def format_share(value: float | None) -> str:
    text = share(value)
    return "next to nothing to explain" if text == NONE else f"{escape(text)} %"


# --- shares against the number of events ---


def sweep_panels(found: Ladder) -> list[Panel]:
    """For each level how much of ΔW events explain, against their number."""
    counts = sorted({one.events for one in found.measured})[:MOST_COUNTS]
    panels = []
    for at, level in enumerate(found.levels):
        curves = []
        for key, colour, _ in CURVES:
            values = {
                one.events: one.levels[at].explained.weight
                for one in found.measured
                if (one.net, one.images, one.shuffled) == key and len(one.levels) == len(found.levels)
            }
            curves.append((colour, [(count, values.get(count)) for count in counts]))
        title = f"level {level_name(found, level)}"
        panels.append(Panel(title, _sweep(f"sweep-{at}", title, counts, curves)))
    return panels


def _sweep(
    name: str, title: str, counts: Sequence[int], curves: Sequence[tuple[int, list[tuple[int, float | None]]]]
) -> str:
    axis = Axis(LOWEST, 1.0)
    parts = [_frame(name, f"Share of ΔW that events explain, {title}", "events a region")]
    for value, label in ((0.0, "0"), (0.25, "25"), (0.5, "50"), (0.75, "75"), (1.0, "100 %")):
        parts.append(_rule(axis, value, label))
    parts.append(f'<text class="end" x="-6" y="{coordinate(_up(axis, LOWEST))}">&lt; 0</text>')
    places = {count: WIDTH * (at + 0.5) / len(counts) for at, count in enumerate(counts)}
    for count, x in places.items():
        parts.append(f'<text x="{coordinate(x)}" y="{HEIGHT + 15}">{count}</text>')
    for colour, values in curves:
        points = [(places[count], _up(axis, value)) for count, value in values if value is not None]
        parts.append(_curve(colour, points))
    return "".join(parts) + "</svg>"


# --- the two trainings ---


def training_panels(run: Training) -> list[Panel]:
    """The losses, and how far the parameters are apart."""
    losses = [(colour, getattr(run, name)) for name, colour, _ in LOSSES]
    return [
        Panel("loss", _steps("losses", "Losses of both trainings", run.steps, losses)),
        Panel(
            "largest difference of a parameter so far",
            _steps("apart", "How far the parameters are apart", run.steps, [(0, run.largest)]),
        ),
    ]


def _steps(name: str, title: str, steps: Sequence[int], curves: Sequence[tuple[int, Sequence[float]]]) -> str:
    axis = axis_for([value for _, values in curves for value in values], from_zero=True)
    parts = [_frame(name, title, "steps")]
    for value, label in axis.ticks(5):
        parts.append(_rule(axis, value, label))
    last = math.log1p(max(1, steps[-1]))
    ticks = [0, *(10**power for power in range(20) if 10**power <= steps[-1])]
    for tick in ticks[:: max(1, len(ticks) // 5)]:
        x = coordinate(WIDTH * math.log1p(tick) / last)
        parts.append(f'<text x="{x}" y="{HEIGHT + 15}">{tick:,}</text>')
    for colour, values in curves:
        points = [
            (min(WIDTH, WIDTH * math.log1p(step) / last), _up(axis, value))
            for step, value in zip(steps, values, strict=True)
        ]
        parts.append(_curve(colour, points, marked=False))
    return "".join(parts) + "</svg>"


# --- the matrices ---


def matrix(one: Matrix, number: int) -> str:
    """P(z_β | z_α): a row for each event of the parent, the darker the likelier."""
    height, width = len(one.rows), len(one.rows[0])
    shades: dict[int, list[str]] = {}
    for row, values in enumerate(one.rows):
        for column, value in enumerate(values):
            shade = math.ceil(min(max(value, 0.0), 1.0) * SHADES)
            if shade:
                shades.setdefault(shade, []).append(f"M{CELL * column} {CELL * row}h{CELL}v{CELL}h-{CELL}z")
    room = CELL * max(width, FEWEST_CELLS)  # so that few cells are not blown up
    parts = [_open(f"matrix-{number}", "Probabilities of events", room, CELL * height)]
    for shade, cells in sorted(shades.items()):
        parts.append(f'<path class="shade-{shade}" d="{"".join(cells)}"/>')
    parts.append(f'<rect class="frame" width="{CELL * width}" height="{CELL * height}"/>')
    return "".join(parts) + "</svg>"


# --- what they share ---


def _open(name: str, title: str, width: float, height: float, x: float = 0, y: float = 0) -> str:
    """`name` and `title` are never text from a file."""
    return (
        f'<svg viewBox="{coordinate(x)} {coordinate(y)} {coordinate(width)} {coordinate(height)}" role="img" '
        f'aria-labelledby="{name}"><title id="{name}">{title}</title>'
    )


def _frame(name: str, title: str, below: str) -> str:
    return (
        _open(name, title, LEFT + WIDTH + RIGHT, TOP + HEIGHT + BELOW, -LEFT, -TOP)
        + f'<text x="{WIDTH / 2}" y="{HEIGHT + 31}">{below}</text>'
    )


def _rule(axis: Axis, value: float, label: str) -> str:
    y = coordinate(_up(axis, value))
    return f'<path class="axis" d="M0 {y}H{WIDTH}"/><text class="end" x="-6" y="{y}">{label}</text>'


def _up(axis: Axis, value: float) -> float:
    return HEIGHT * (1 - axis.share(value))


def swatch(colour: int) -> str:
    """The line and marker of a curve, for a legend; without ids, so that it may be repeated."""
    return (
        '<svg class="swatch" viewBox="-14 -7 28 14" aria-hidden="true">'
        f'<path class="curve series-{colour}" d="M-13 0H13"/>'
        f'<path class="mark series-{colour}" d="{shape(colour, 9)}"/></svg>'
    )


def _curve(colour: int, points: Sequence[tuple[float, float]], *, marked: bool = True) -> str:
    if not points:
        return ""
    places = [f"{coordinate(x)} {coordinate(y)}" for x, y in points]
    text = f'<path class="curve series-{colour}" d="M{"L".join(places)}"/>'
    if marked:
        mark = shape(colour, 7)
        for place in places:
            text += f'<path class="mark series-{colour}" transform="translate({place})" d="{mark}"/>'
    return text
