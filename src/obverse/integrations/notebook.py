"""How signal and random share go along a training, as a figure. Not for measuring."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._core import NONE, named, number
from ..present import Look, Panel, Table, plots, show
from .results import History, LayerPoint, Point, read_history

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_LINES = 14  # layers that have a colour and marker of their own; the others are thin lines


def plot_history(history: History | Path | str, ax: Any = None, what: Any = None, **options: Any) -> Any:
    """Directions of the signal, random share and recovery errors over training: `history.plot()`.

    `history` may be the file, or the directory that it is in.
    """
    found = history if isinstance(history, History) else read_history(history)
    return found.plot(ax, what, **options)


def _values(found: History, layer: str, what: str) -> tuple[list[int], list[float]]:
    pairs = [
        (point.step, getattr(one, what))
        for point in found.points
        for one in point.layers
        if one.name == layer and getattr(one, what) is not None
    ]
    return [step for step, _ in pairs], [value for _, value in pairs]


def _has(what: str) -> Any:
    return lambda it: any(getattr(one, what) is not None for point in it.points for one in point.layers)


def _lines(what: str, label: str, factor: float = 1.0) -> Any:
    def draw(found: History, axes: Axes, ink: plots.Ink) -> None:
        shown = [layer for layer in found.layers if _values(found, layer, what)[0]]
        for at, layer in enumerate(shown):
            steps, values = _values(found, layer, what)
            scaled = [factor * value for value in values]
            if len(shown) <= MOST_LINES:
                plots.curve(axes, ink, steps, scaled, at, label=plots.drawable(layer, 30))
            else:
                axes.plot(steps, scaled, color=ink.series(0), alpha=0.4, linewidth=0.9)
        label_of = f"{label}, one line per layer" if len(shown) > MOST_LINES else label
        axes.set(xlabel="step", ylabel=label_of)
        axes.set_ylim(bottom=0)
        plots.whole_ticks(axes)
        plots.legend(axes, ink)

    return Panel(what, draw, lambda it: (4.8, 3.0 + 0.2 * min(len(it.layers), MOST_LINES)), _has(what))


def _layer_lines(layers: tuple[LayerPoint, ...]) -> Table:
    return Table(
        ("layer", "verdict", "directions", "random share", "recovery error"),
        [
            (
                named(one.name, "(no name)"),
                named(one.verdict) or NONE,
                NONE if one.rank is None else f"{'≥ ' if one.rank_is_bound else ''}{one.rank}",
                NONE
                if one.random_share is None
                else f"{'≤ ' if one.random_share_is_bound else ''}{100 * one.random_share:.1f} %",
                NONE if one.recovery is None else number(one.recovery),
            )
            for one in layers
        ],
    )


def _point_bars(what: str, label: str, factor: float = 1.0) -> Panel:
    def draw(found: Point, axes: Axes, ink: plots.Ink) -> None:
        values = [(one.name, getattr(one, what)) for one in found.layers]
        rows = [(name, [None if value is None else factor * value]) for name, value in values]
        plots.bar_rows(axes, ink, rows, label, "layers")

    return Panel(
        what,
        draw,
        lambda it: plots.rows_size(len(it.layers), 5.0),
        lambda it: any(getattr(one, what) is not None for one in it.layers),
    )


def _one_layer(found: LayerPoint, axes: Axes, ink: plots.Ink) -> None:
    shares = (("random share", found.random_share), ("recovery error", found.recovery))
    plots.interval_rows(axes, ink, [(name, [plots.Mark(value)]) for name, value in shares])


def _rows(found: History) -> list[dict[str, Any]]:
    return [
        {"step": point.step, "epoch": point.epoch, **one.to_dict()}
        for point in found.points
        for one in point.layers
    ]


WHAT = (
    ("rank", "directions of the signal", 1.0),
    ("random_share", "like random numbers, %", 100.0),
    ("recovery", "recovery error", 1.0),
)

show(
    Look(
        History,
        tuple(_lines(*one) for one in WHAT),
        lambda it: _layer_lines(it.points[-1].layers if it.points else ()),
        _rows,
    ),
    Look(
        Point,
        tuple(_point_bars(*one) for one in WHAT),
        lambda it: _layer_lines(it.layers),
        lambda it: it.layers,
    ),
    Look(
        LayerPoint,
        (
            Panel(
                "shares",
                _one_layer,
                (5.0, 1.7),
                lambda it: it.random_share is not None or it.recovery is not None,
            ),
        ),
        lambda it: _layer_lines((it,)),
        words=lambda it: f"{named(it.name)}: {named(it.verdict) or NONE}",
    ),
)
