"""The small multiples of an audit: SVG by hand, a few hundred bytes each. Not for large figures: see figures.

Only numbers go in and every coordinate is clipped to its frame, so that nothing an audit file says can
leave it. What all layers have in common (axes, the normal curve) is drawn once, in `SHARED`. Where two nets
are compared, the first is filled and the second an outline.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..present import HEIGHT, WIDTH, Array, across, coordinate, dots, line, path, steps, svg_frame, tick, up
from ._decomposition.marchenko_pastur import density, edges
from ._numbers import counterpart
from .results import Correlations, Entries, Histogram, LayerAudit, Number, Offsets, Reversal

ENTRIES = 6.0  # standard deviations to either side, as far as the histograms go
HIGHEST = 0.56  # of the density of entries: the normal curve's peak of 0.4 fills most of the frame
QUANTILES = 4.0
FURTHEST = 2.0  # times the law's edge: spikes beyond are drawn as an arrow
MOST_SPIKES = 60


def _axis(name: str, ticks: dict[float, str], more: str = "") -> str:
    marks = "".join(f"M{coordinate(x)} {HEIGHT}v-4" for x in ticks)
    labels = "".join(tick(x, label) for x, label in ticks.items())
    return f'<g id="{name}">{path("axis", f"M0 {HEIGHT}H{WIDTH}{marks}")}{labels}{more}</g>'


def _normal() -> str:
    z = np.linspace(-ENTRIES, ENTRIES, 41)
    heights = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    return f'<path id="normal" class="curve" d="{line(across(z, -ENTRIES, ENTRIES), up(heights, HIGHEST))}"/>'


def shared() -> str:
    """What the small multiples refer to, once a page."""
    entry = {float(across(z, -ENTRIES, ENTRIES)): f"{z:g}".replace("-", "−") for z in (-3.0, 0.0, 3.0)}
    quantile = {float(across(z, -QUANTILES, QUANTILES)): f"{z:g}".replace("-", "−") for z in (-2.0, 0.0, 2.0)}
    diagonal = path("curve", f"M0 {HEIGHT}L{WIDTH} 0")
    return (
        '<svg class="shared" aria-hidden="true"><defs>'
        f"{_axis('axis-entries', entry)}{_axis('axis-quantiles', quantile, diagonal)}{_normal()}</defs></svg>"
    )


def _heights(histogram: Histogram) -> Array:
    """Shares by width; none where the edges do not ascend."""
    counts = np.clip(np.asarray(histogram.counts, dtype=np.float64), 0.0, None)
    with np.errstate(all="ignore"):
        heights = counts / (counts.sum() * np.diff(np.asarray(histogram.edges, dtype=np.float64)))
    result: Array = np.clip(np.nan_to_num(heights, nan=0.0, posinf=0.0), 0.0, None)
    return result


def entry_histogram(this: Entries, other: Entries | None = None) -> str:
    parts = ['<use href="#axis-entries"/>']
    for kind, one in (("bars", this), ("other", other)):
        if one is not None and one.histogram.counts:
            x = across(one.histogram.edges, -ENTRIES, ENTRIES)
            parts.append(path(kind, steps(x, up(_heights(one.histogram), HIGHEST))))
    return svg_frame("Histogram of the entries and the normal curve", [*parts, '<use href="#normal"/>'])


def cosine_histogram(this: Sequence[Correlations], other: Sequence[Correlations] = ()) -> str:
    """Rows filled, columns dashed; of a second net the rows only, so that it stays readable."""
    sides = [("bars" if one.side == "rows" else "second", one) for one in this if one.histogram.counts]
    sides += [("other", one) for one in other if one.histogram.counts and one.side == "rows"]
    parts = ['<use href="#axis-entries"/>']
    for kind, one in sides[:4]:
        x = across(one.histogram.edges, -ENTRIES, ENTRIES)
        parts.append(path(kind, steps(x, up(_heights(one.histogram), HIGHEST))))
    return svg_frame("Histogram of cosines and the normal curve", [*parts, '<use href="#normal"/>'])


def quantile_plot(this: Entries, other: Entries | None = None) -> str:
    parts = ['<use href="#axis-quantiles"/>']
    for kind, one in (("other dots", other), ("dots", this)):
        if one is not None and one.quantiles:
            z, observed = np.asarray(one.quantiles, dtype=np.float64).T
            y = HEIGHT - across(observed, -QUANTILES, QUANTILES, HEIGHT)
            parts.append(path(kind, dots(across(z, -QUANTILES, QUANTILES), y)))
    return svg_frame("Quantiles of the entries against those of a normal law", parts)


def offset_histogram(this: Offsets, label: str, other: Offsets | None = None) -> str:
    """On an axis with 0 in it: nearly constant offsets are a narrow peak away from 0."""
    both = [one for one in (this, other) if one is not None and one.histogram.counts]
    low = min([0.0, *(one.histogram.edges[0] for one in both)])
    high = max([0.0, *(one.histogram.edges[-1] for one in both)])
    zero = float(across(0.0, low, high))
    parts = [path("axis", f"M0 {HEIGHT}H{WIDTH}M{coordinate(zero)} {HEIGHT}V0"), tick(zero, "0", _side(zero))]
    for kind, one in zip(("bars", "other"), both, strict=False):
        heights = _heights(one.histogram)
        x = across(one.histogram.edges, low, high)
        parts.append(path(kind, steps(x, up(heights, 1.08 * float(heights.max())))))
    middle = float(across(this.mean, low, high))
    if abs(middle - zero) > 30:  # room for both labels
        parts.append(tick(middle, label, _side(middle)))
    return svg_frame("Histogram of the offsets", parts)


def _side(x: float) -> str:
    """Labels near the ends of the frame are anchored there."""
    return "start" if x < 20 else "end" if x > WIDTH - 20 else "middle"


def _singular_shares(values: Sequence[float], edge: float, bins: Array) -> Array:
    """The density, in units of the law's edge, from quantiles: shares between bins by interpolation."""
    with np.errstate(all="ignore"):
        ascending = np.sort(np.nan_to_num(np.asarray(values, dtype=np.float64) / np.float64(edge)))
    ranks = (np.arange(len(ascending)) + 0.5) / len(ascending)
    below = np.interp(bins, ascending, ranks, left=0.0, right=1.0)
    below[0] = 0.0  # what lies below the frame, and zeros, belong to the first bin
    result: Array = np.diff(below) / np.diff(bins)
    return result


def _reach(layer: LayerAudit) -> float:
    """The largest singular value, in units of the law's edge."""
    if layer.parts is None or not layer.parts.upper > 0:
        return 0.0
    largest = [*layer.values, *(one.value for one in layer.parts.directions)]
    return max((value / layer.parts.upper for value in largest), default=0.0)


def parts_bar(this: LayerAudit, other: LayerAudit | None = None) -> str:
    """The energy without the profile from left to right: signal, then the random rest; its interval below."""
    rows = [(one, one.random_share) for one in (this, other) if one is not None]
    parts = [path("axis", f"M0 {HEIGHT}H{WIDTH}"), tick(0, "0", "start"), tick(WIDTH, "100 %", "end")]
    height = 0.3 * HEIGHT
    for at, (kind, (one, share)) in enumerate(zip(("bars", "other"), rows, strict=False)):
        if share is None:
            continue
        top = 0.14 * HEIGHT + at * 1.5 * height
        x = [float(across(1 - part, 0.0, 1.0)) for part in (1.0, share.value, share.high, share.low)]
        if share.is_bound:  # what is not signal may be random, or not
            signal = one.parts.signal_share if one.parts else None
            x[1] = float(across(signal.value if signal else 0.0, 0.0, 1.0))
        box = f"M0 {coordinate(top)}H{coordinate(x[1])}V{coordinate(top + height)}H0Z"
        rest = f"M{coordinate(x[1])} {coordinate(top)}H{WIDTH}V{coordinate(top + height)}H{coordinate(x[1])}Z"
        middle = coordinate(top + height / 2)
        parts += [path(kind, box)] if share.is_bound else [path(kind, box), path("gaussian", rest)]
        parts.append(path("whisker", f"M{coordinate(x[2])} {middle}H{coordinate(x[3])}"))
    return svg_frame("Shares of the energy: signal at the left, random numbers at the right", parts)


def spectrum_plot(this: LayerAudit, other: LayerAudit | None = None) -> str:
    """Without the profile, in units of the law's upper edge, so that layers of all scales share an axis."""
    both = [one for one in (this, other) if one is not None]
    grid, law = _law(this.rows, this.columns)
    # a long and narrow matrix has its law close to the edge: there the axis need not begin at 0
    low = max(0.0, 1 - 3 * (1 - float(grid[0])))
    high = 1.05 * min(max([1.1, *map(_reach, both)]), FURTHEST)
    edge = float(across(1.0, low, high))
    parts = [
        path("axis", f"M0 {HEIGHT}H{WIDTH}M{coordinate(edge)} {HEIGHT}V0"),
        tick(0, f"{low:.2g}", "start"),
        tick(edge, "edge", "end" if edge > WIDTH - 14 else "middle"),
    ]
    bins = np.linspace(low, high, 37)
    top = 1.3 * float(law.max()) or 2.0
    for kind, one in zip(("bars", "other"), both, strict=False):
        if one.parts is not None and one.values and one.parts.upper > 0:
            shares = _singular_shares(one.values, one.parts.upper, bins)
            parts.append(path(kind, steps(across(bins, low, high), up(shares, top))))
    if law.any():
        parts.append(path("curve", line(across(grid, low, high), up(law, top))))
    for kind, one in zip(("spike", "spike other"), both, strict=False):
        parts += _spikes(one, kind, low, high)
    return svg_frame("Singular values without the profile over the law of random matrices", parts)


def _law(rows: int, columns: int) -> tuple[Array, Array]:
    """Singular values in units of the upper edge, and their density; none for a shape that is none."""
    if not (0 < rows < 2**53 and 0 < columns < 2**53):
        return np.array([0.0, 1.0]), np.zeros(2)
    lower, upper = edges(rows, columns)
    # close together at both edges, where the density is steep
    grid = (lower / upper + 1) / 2 - (1 - lower / upper) / 2 * np.cos(np.linspace(0.0, math.pi, 33))
    return grid, density(grid, rows, columns, 1 / upper)


def _spikes(layer: LayerAudit, kind: str, low: float, high: float) -> list[str]:
    """A line from the axis to each; an arrow at the right for those beyond it."""
    if layer.parts is None or not layer.parts.upper > 0:
        return []
    found = [one.value / layer.parts.upper for one in layer.parts.directions[:MOST_SPIKES]]
    marks = sorted({coordinate(x) for x in across([one for one in found if one < high], low, high)})
    parts = [path(kind, "".join(f"M{x} {HEIGHT}v-26" for x in marks))] if marks else []
    if any(one >= high for one in found):
        parts.append(path(kind, f"M{WIDTH - 14} {HEIGHT - 30}h14m-6 -5l6 5l-6 5"))
    return parts


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
    return svg_frame("Recovery error of the layer and of its controls", parts)


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
