"""The figures of an ablation: SVG by hand, from numbers, and from names that are escaped. Not for words.

Every coordinate is clipped to its frame, so that nothing a file says can leave it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

from ..._core import named
from ...present import Axis, axis_for, coordinate, shape
from .results import Ablation, Effect, Kept, LayerAblation, Measure, Treatment
from .treatments import TREATMENTS
from .words import CONTROLS, scaled

WIDTH, HEIGHT = 230, 120  # of the frame of a curve
LEFT, RIGHT, TOP, BELOW = 40, 12, 16, 30
STRIP, ROW, NAMES = 520, 24, 190  # the strip chart: its frame's width, a row, room for names
MOST_ROWS = 60
MOST_POINTS = 100
ORDER: tuple[Treatment, ...] = tuple(TREATMENTS)


def swatch(treatment: Treatment) -> str:
    """The marker of a treatment, for a legend."""
    return f'<svg class="swatch" viewBox="-9 -7 18 14" aria-hidden="true">{_mark(treatment, 0, 0)}</svg>'


def strips(found: Ablation) -> str:
    """A row per layer, a mark per treatment along the axis of the score; the line is the untreated net."""
    rows: list[tuple[str, Sequence[Effect]]] = [("all layers at once", found.together)]
    rows += [(f"{layer.name} · k = {layer.rank}", layer.effects) for layer in found.treated[:MOST_ROWS]]
    values = [one.score.value for _, effects in rows for one in effects if one.score.value is not None]
    axis = _axis(found.measure, [*values, found.untreated.value])
    height = ROW * len(rows)
    parts = [
        f'<svg viewBox="{-NAMES} -6 {NAMES + STRIP + 14} {height + 34}" role="img" aria-labelledby="strips">'
        '<title id="strips">The score under each treatment, layer by layer</title>'
    ]
    for value, label in axis.ticks(7):
        x = coordinate(STRIP * axis.share(value))
        parts.append(
            f'<path class="axis" d="M{x} 0V{height}"/><text x="{x}" y="{height + 16}">{label}</text>'
        )
    own = coordinate(STRIP * axis.share(scaled(found.measure, found.untreated.value)))
    parts.append(f'<path class="own" d="M{own} 0V{height}"/>')
    for at, (name, effects) in enumerate(rows):
        y = ROW * (at + 0.5)
        said = named(name)
        cut = said if len(said) <= 30 else f"{said[:13]}…{said[-16:]}"
        parts.append(
            f'<text class="end" x="-10" y="{coordinate(y)}">{escape(cut)}</text>'
            f'<path class="axis" d="M0 {coordinate(y)}H{STRIP}"/>'
        )
        for one in effects:
            if one.score.value is not None:
                place = STRIP * axis.share(scaled(found.measure, one.score.value))
                parts.append(_mark(one.treatment, place, y))
    return "".join(parts) + "</svg>"


def _mark(treatment: Treatment, x: float, y: float) -> str:
    """Controls are hollow."""
    at = ORDER.index(treatment)
    kind = f"mark series-{at % 7}{' control' if treatment in CONTROLS else ''}"
    place = f"translate({coordinate(x)} {coordinate(y)})"
    return f'<path class="{kind}" transform="{place}" d="{shape(at, 8)}"/>'


def layer_curve(found: Ablation, layer: LayerAblation, number: int) -> str:
    """The score over the number of directions kept; a line at k, a ring where the curve bends."""
    most = max([1.0, *(one.directions for one in layer.curve)])
    title = f"{found.measure} over directions kept, layer {number}"
    ticks = [0, *(4**power for power in range(1, 12) if 4**power < 0.7 * most), most]
    return _curve(
        found,
        layer.curve,
        title,
        f"curve-{number}",
        lambda count: math.log2(1 + count) / math.log2(1 + most),
        [(tick, f"{tick:.0f}") for tick in ticks],
        (layer.rank, f"k = {layer.rank}"),
        layer.needed,
    )


def joint_curve(found: Ablation) -> str:
    """The same of all layers at once, over the multiple of each layer's rank."""
    most = max([1.0, *(one.directions for one in found.together_curve)])
    return _curve(
        found,
        found.together_curve,
        f"{found.measure} over the multiple of k kept in all layers",
        "curve-all",
        lambda multiple: math.sqrt(multiple / most),
        [(tick, f"{tick:g} k" if tick else "0") for tick in (0.0, 0.5, 2.0, 4.0) if tick <= most],
        (1.0, "k"),
        None,
    )


def _curve(
    found: Ablation,
    points: Sequence[Kept],
    title: str,
    name: str,
    across: Callable[[float], float],
    ticks: Sequence[tuple[float, str]],
    rank: tuple[float, str],
    needed: float | None,
) -> str:
    known = [(one.directions, one.score) for one in points[:MOST_POINTS] if one.score.value is not None]
    values = [score.value for _, score in known if score.value is not None]
    axis = _axis(found.measure, [*values, found.untreated.value])

    def x_of(count: float) -> float:
        return WIDTH * min(max(across(count), 0.0), 1.0)

    def y_of(value: float) -> float:
        return HEIGHT * (1 - axis.share(scaled(found.measure, value)))

    parts = [
        f'<svg viewBox="{-LEFT} {-TOP} {LEFT + WIDTH + RIGHT} {TOP + HEIGHT + BELOW}" role="img" '
        f'aria-labelledby="{name}"><title id="{name}">{title}</title>'
    ]
    for value, label in axis.ticks(5):
        y = coordinate(HEIGHT * (1 - axis.share(value)))
        parts.append(
            f'<path class="axis" d="M0 {y}H{WIDTH}"/><text class="end" x="-6" y="{y}">{label}</text>'
        )
    for count, label in ticks:
        parts.append(f'<text x="{coordinate(x_of(count))}" y="{HEIGHT + 15}">{label}</text>')
    own = coordinate(y_of(found.untreated.value))
    parts.append(f'<path class="own" d="M0 {own}H{WIDTH}"/>')
    at = coordinate(x_of(rank[0]))
    parts.append(f'<path class="rank" d="M{at} 0V{HEIGHT}"/><text x="{at}" y="-5">{rank[1]}</text>')
    line = "".join(
        f"{'L' if place else 'M'}{coordinate(x_of(count))} {coordinate(y_of(score.value or 0.0))}"
        for place, (count, score) in enumerate(known)
    )
    dots = "".join(
        f"M{coordinate(x_of(count))} {coordinate(y_of(score.value or 0.0))}h0" for count, score in known
    )
    parts.append(f'<path class="curve" d="{line}"/><path class="dots" d="{dots}"/>' if known else "")
    if needed is not None and math.isfinite(needed):
        place = coordinate(x_of(needed))
        parts.append(f'<path class="bend" d="M{place} {HEIGHT}l-5 9h10z"/>')
    return "".join(parts) + "</svg>"


def _axis(measure: Measure, values: Sequence[float]) -> Axis:
    if measure == "loss":
        return axis_for(values, from_zero=True)
    return Axis(0.0, max(100.0, *(scaled(measure, value) for value in values)))
