"""The figures of the page, each an inline SVG with its caption. Not for reading results.

Means over seeds with bands of one standard error; error on images solid, on their shadows dashed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..._core import mean_and_se
from ...present import INK, PAGE, drawing, marker, sentinel
from .. import RunRecord
from .._shown import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Pick = Callable[[Mapping[str, Any]], float | None]
SIZE = (400, 280)
SMALL = {2: SIZE, 3: (300, 225)}  # small multiples, by how many stand in a row
SMALLEST = (240, 200)  # four or more: their text still has 11 pixels in a row of four
LOG_FROM = 3.0  # the ratio of largest to smallest error from which a logarithmic axis reads better


@dataclass(frozen=True)
class Curve:
    """A mean over seeds at each epoch that all of them have; `spread` is None for a single run."""

    epochs: tuple[int, ...]
    mean: tuple[float, ...]
    spread: tuple[float, ...] | None

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """One standard error below and above the mean."""
        spread = self.spread or (0.0,) * len(self.mean)
        return [(mean - se, mean + se) for mean, se in zip(self.mean, spread, strict=True)]


@dataclass(frozen=True)
class Panel:
    """One SVG; `heading` is text of its own because it may come from a run directory."""

    svg: str
    heading: str = ""
    variant: str | None = None


@dataclass(frozen=True)
class Shown:
    """A figure of the page: one panel or small multiples, a title, a caption, and what its lines mean."""

    title: str
    caption: str
    panels: tuple[Panel, ...]
    variants: tuple[str, ...] = ()  # for the legend; none where headings say it
    dashes: bool = False
    layout: str = ""  # "lead": beside its caption; "wide": the whole width


def curve(runs: Sequence[RunRecord], pick: Pick, *, from_epoch: int = 0) -> Curve:
    """The mean over runs of one number a record."""
    tables = [
        {
            int(record["epoch"]): value
            for record in run.metrics
            if record["epoch"] >= from_epoch and (value := pick(record)) is not None
        }
        for run in runs
    ]
    epochs = sorted(set.intersection(*(set(table) for table in tables))) if tables else []
    pairs = [mean_and_se([table[epoch] for table in tables]) for epoch in epochs]
    spread = None if len(tables) < 2 else tuple(se or 0.0 for _, se in pairs)
    return Curve(tuple(epochs), tuple(mean for mean, _ in pairs), spread)


def percent(name: str) -> Pick:
    """Picks a fraction as a percentage."""

    def pick(record: Mapping[str, Any]) -> float | None:
        value = record.get(name)
        return None if value is None else 100 * float(value)

    return pick


def layer_error(layer: str) -> Pick:
    return lambda record: (record.get("recovery_error") or {}).get(layer)


def figures(results: Results) -> list[Shown]:
    """Everything there is to draw, in reading order."""
    shadowed = results.shadowed
    made = [_errors(results)] if results.is_comparison or not shadowed else []
    if not shadowed:
        return made
    made.append(_real_and_shadow(results))
    if results.is_comparison:
        made.append(_scatter(results))
    made.append(_agreement(results))
    layers = _layers(results)
    if layers:
        made.append(_recovery(results, layers))
    return made


def _errors(results: Results) -> Shown:
    start = _first_epoch(results)
    curves = {
        place: curve(runs, percent("test_error"), from_epoch=start)
        for place, runs in _placed(results, results.runs)
    }
    name = results.error_name
    lines = ", one line a variant" if results.is_comparison else ""
    with drawing("errors", f"{name.capitalize()} by epoch{lines}", SIZE) as figure:
        scale = _error_axis(figure.axes, list(curves.values()))
        for place, one in curves.items():
            _draw(figure.axes, one, place, len(curves))
        _label(figure.axes, f"{name}, %")
    return Shown(
        f"{name.capitalize()} by epoch",
        f"{_mean_words(results)} {_from_words(start)}{scale}",
        (Panel(figure.svg),),
        tuple(results.runs) if results.is_comparison else (),
        layout="lead",
    )


def _placed(
    results: Results, runs: Mapping[str, Sequence[RunRecord]]
) -> list[tuple[int, Sequence[RunRecord]]]:
    """Each variant's runs with its place in the plan, which decides its colour and marker everywhere."""
    order = list(results.plan)
    return [(order.index(variant), found) for variant, found in runs.items()]


def _real_and_shadow(results: Results) -> Shown:
    start = _first_epoch(results)
    pairs = {
        variant: [curve(runs, percent(key), from_epoch=start) for key in ("test_error", "shadow_error")]
        for variant, runs in results.shadowed.items()
    }
    everything = [one for pair in pairs.values() for one in pair]
    panels, scale = [], ""
    for variant, pair in pairs.items():
        index = list(results.plan).index(variant)
        words = f"{variant}: error on images (solid) and on their shadows (dashed) by epoch"
        with drawing(f"pair-{index}", words, _size(len(pairs))) as figure:
            scale = _error_axis(figure.axes, everything)
            for dashed, one in enumerate(pair):
                _draw(figure.axes, one, index, 1, dashed=bool(dashed))
            _label(figure.axes, "error, %")
        heading = variant if results.is_comparison else ""
        panels.append(Panel(figure.svg, heading, variant if heading else None))
    return Shown(
        "Error on images and on their shadows",
        "Where the two lines meet, the net treats what it generates as it treats the real thing. "
        f"{_mean_words(results)} {_from_words(start)}{scale}",
        tuple(panels),
        dashes=True,
        layout="wide" if len(panels) > 1 else "",
    )


def _scatter(results: Results) -> Shown:
    from matplotlib.ticker import MaxNLocator

    name = results.error_name
    points = {
        place: [(100 * run.final["test_error"], 100 * run.final["shadow_error"]) for run in runs]
        for place, runs in _placed(results, results.shadowed)
    }
    flat = [point for found in points.values() for point in found]
    low, high = min(min(point) for point in flat), max(max(point) for point in flat)
    reals = [real for real, _ in flat]
    margin = 0.06 * (high - low) or 0.5
    side = max(0.25 * (high - low), max(reals) - min(reals)) or 1.0
    middle = (max(reals) + min(reals)) / 2
    title = (
        f"{name.capitalize()} of each run against its error on shadows, with the line where both are equal"
    )
    with drawing("scatter", title, SIZE) as figure:
        axes = figure.axes
        axes.set_ylim(max(low - margin, -margin), high + margin)
        axes.set_xlim(max(middle - 0.6 * side, -margin), middle + 0.6 * side)
        axes.axline((low, low), slope=1, color=INK, linewidth=1, linestyle=(0, (1, 2)))
        for index, found in points.items():
            axes.plot(
                [real for real, _ in found],
                [twin for _, twin in found],
                linestyle="none",
                marker=marker(index),
                color=sentinel(index),
                markersize=9,
                markeredgecolor=PAGE,
                markeredgewidth=0.8,
                alpha=0.9,
            )
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10]))
        axes.set_xlabel(f"{name}, %")
        axes.set_ylabel("error on shadows, %")
    return Shown(
        "Real error against shadow error",
        "One point a run, at the last epoch. On the dotted line both errors are equal; above it, shadows "
        "are harder for the net than images.",
        (Panel(figure.svg),),
        tuple(results.shadowed),
    )


def _agreement(results: Results) -> Shown:
    curves = {
        place: curve(runs, percent("label_agreement")) for place, runs in _placed(results, results.shadowed)
    }
    words = "Share of images that get the same label as their shadow, by epoch"
    with drawing("agreement", words, SIZE) as figure:
        for index, one in curves.items():
            _draw(figure.axes, one, index, len(curves))
        lowest = min((low for one in curves.values() for low, _ in one.bounds), default=0.0)
        figure.axes.set_ylim(max(-1.0, lowest - 2), 101)
        _label(figure.axes, "same label, %")
    return Shown(
        "Same label for image and shadow",
        f"How often the net gives an image and its shadow the same label. {_mean_words(results)}",
        (Panel(figure.svg),),
        tuple(results.shadowed) if results.is_comparison else (),
    )


def _recovery(results: Results, layers: Sequence[str]) -> Shown:
    panels = []
    placed = _placed(results, results.shadowed)
    grid = {layer: {place: curve(runs, layer_error(layer)) for place, runs in placed} for layer in layers}
    everything = [one for row in grid.values() for one in row.values()]
    scale = ""
    for place, (layer, row) in enumerate(grid.items()):
        words = "Relative recovery error of one layer by epoch"
        with drawing(f"recovery-{place}", words, _size(len(grid))) as figure:
            for index, one in row.items():
                _draw(figure.axes, one, index, len(row))
            scale = _error_axis(figure.axes, everything)
            _label(figure.axes, "recovery error")
        panels.append(Panel(figure.svg, f"layer {layer}"))
    return Shown(
        "Recovery error of each layer",
        "From a layer's values h down to an input and up again: squared error relative to the square of h. "
        f"0 is perfect recovery; 1 is as far off as answering zero. {_mean_words(results)}{scale}",
        tuple(panels),
        tuple(results.shadowed) if results.is_comparison else (),
        layout="wide",
    )


def _size(panels: int) -> tuple[int, int]:
    return SIZE if panels == 1 else SMALL.get(panels, SMALLEST)


def _layers(results: Results) -> list[str]:
    """The layers that every run reports at its end, in forward order."""
    reported = [run.final.get("recovery_error") or {} for runs in results.shadowed.values() for run in runs]
    return [layer for layer in reported[0] if all(layer in other for other in reported)]


def _first_epoch(results: Results) -> int:
    """Leave out the untrained net, whose error of nearly 100 % would flatten everything else."""
    ends = [run.final["epoch"] for runs in results.runs.values() for run in runs]
    return 1 if min(ends) > 0 else 0


def _draw(axes: Axes, one: Curve, index: int, count: int, *, dashed: bool = False) -> None:
    if not one.epochs:
        return
    colour = sentinel(index)
    if one.spread is not None:
        low, high = zip(*one.bounds, strict=True)
        axes.fill_between(
            one.epochs, low, high, color=colour, alpha=0.16 if count <= 4 else 0.08, linewidth=0
        )
    # About seven markers a line, each variant's at other epochs, so that they do not hide each other.
    step = max(1, round(len(one.epochs) / 7))
    axes.plot(
        one.epochs,
        one.mean,
        color=colour,
        linestyle=(0, (4, 2)) if dashed else "-",
        marker=marker(index),
        markevery=((index * step // max(1, count)) % len(one.epochs), step),
        markerfacecolor=PAGE if dashed else colour,
        markeredgecolor=colour,
        markeredgewidth=1.2 if dashed else 0,
    )


def _label(axes: Axes, words: str) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.set_xlabel("epoch")
    axes.set_ylabel(words)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, min_n_ticks=1))


def _error_axis(axes: Axes, curves: Sequence[Curve]) -> str:
    """Limits and ticks for errors; returns what the caption has to say about the scale."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

    means = [value for one in curves for value in one.mean]
    bounds = [bound for one in curves for bound in one.bounds]
    # A band may reach below what a logarithm can show; half the lowest mean is far enough.
    low = max(min((low for low, _ in bounds), default=0.0), 0.5 * min(means, default=0.0))
    high = max((high for _, high in bounds), default=1.0)
    if low <= 0 or high / low < LOG_FROM:
        margin = 0.08 * (high - low) or 0.5
        axes.set_ylim(max(low - margin, -margin), high + margin)
        axes.yaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10]))
        return ""
    axes.set_yscale("log")
    axes.set_ylim(low / 1.08, high * 1.08)
    ratio = high / low
    steps = (1, 2, 3, 5, 7) if ratio < 12 else (1, 2, 5) if ratio < 150 else (1,)
    ticks = [step * 10.0**power for power in range(-9, 10) for step in steps]
    axes.yaxis.set_major_locator(FixedLocator(ticks))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    return " Logarithmic scale."


def _mean_words(results: Results) -> str:
    counts = [len(runs) for runs in results.runs.values()]
    if max(counts) < 2:
        return "One run." if not results.is_comparison else "One run a variant."
    return "Mean over seeds; the band is ± 1 standard error."


def _from_words(start: int) -> str:
    return "From the first epoch on; the untrained net is left out." if start else ""
