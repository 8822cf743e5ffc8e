"""What changed between two checkpoints, layer by layer; what an audit decides. Not for audits: see _nets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..._core import NONE, counted, named, number
from ...present import Look, Panel, Table, plots, show
from .._decisions.results import Decision
from .._difference.results import Difference, LayerDifference, Lineage

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def _sizes(found: Difference, axes: Axes, ink: plots.Ink) -> None:
    rows = [(one.name, [None if one.size is None else 100 * one.size]) for one in found.layers]
    plots.bar_rows(axes, ink, rows, "‖tuned − base‖ ÷ ‖base‖, %", "layers")


def _ranks(found: Difference, axes: Axes, ink: plots.Ink) -> None:
    rows = [
        (one.name, [plots.Mark(None if one.rank is None else float(one.rank), hollow=one.rank_is_bound)])
        for one in found.layers
    ]
    if any(one.rank_is_bound and one.rank is not None for one in found.layers):
        options = {"marker": "o", "linestyle": "none", "markerfacecolor": "none"}
        plots.swatch(axes, ink.series(0), "at least so many", **options)
    plots.interval_rows(axes, ink, rows, "directions of the change", "layers")
    plots.whole_ticks(axes)
    plots.legend(axes, ink)


def _strengths(found: LayerDifference, axes: Axes, ink: plots.Ink) -> None:
    places = range(1, len(found.strengths) + 1)
    axes.vlines(places, 0, found.strengths, color=ink.series(0), linewidth=1.4)
    axes.plot(places, found.strengths, "o", color=ink.series(0), markersize=5)
    plots.reference(axes, ink, found.visible_from, "visible from here on", across=True)
    axes.set(xlabel="directions of the change, the largest first", ylabel="singular value")
    axes.set_ylim(bottom=0)
    plots.whole_ticks(axes)
    plots.legend(axes, ink)


def _change(found: LayerDifference, axes: Axes, ink: plots.Ink) -> None:
    """Where numbers differ: of all numbers, rows and columns."""
    numbers = found.rows * found.columns
    counts = (
        ("numbers", found.changed, numbers),
        ("rows", found.changed_rows, found.rows),
        ("columns", found.changed_columns, found.columns),
    )
    rows = [(name, [None if count is None else 100 * count / of]) for name, count, of in counts]
    plots.bar_rows(axes, ink, rows, "changed, %")
    axes.set_xlim(0, 100)


def _cosines(found: Lineage, axes: Axes, ink: plots.Ink) -> None:
    rows = [(one.name, [plots.Mark(one.cosine)]) for one in found.layers]
    plots.interval_rows(axes, ink, rows, "mean cosine of matching rows", "layers")
    plots.reference(axes, ink, 0.0)


def _chosen(found: Decision, axes: Axes, ink: plots.Ink) -> None:
    rows = [(name, [float(found.ranks[name])]) for name in found.chosen if name in found.ranks]
    plots.bar_rows(axes, ink, rows, "rank", "layers", said=lambda value: f"{value:.0f}")
    plots.whole_ticks(axes)


def _decision_rows(found: Decision) -> list[dict[str, Any]]:
    return [{"layer": name, "rank": found.ranks.get(name)} for name in found.chosen]


def _layer_line(one: LayerDifference) -> tuple[str, ...]:
    return (
        named(one.name, "(no name)"),
        f"{one.rows} × {one.columns}",
        one.change,
        NONE if one.size is None else f"{100 * one.size:.3g} %",
        NONE if one.rank is None else f"{'≥ ' if one.rank_is_bound else ''}{one.rank}",
        one.sentence,
    )


HEADINGS = ("layer", "size", "change", "of its norm", "directions", "in words")

show(
    Look(
        Difference,
        (
            Panel(
                "size",
                _sizes,
                lambda it: plots.rows_size(len(it.layers), 5.6),
                lambda it: any(one.size is not None for one in it.layers),
            ),
            Panel(
                "rank",
                _ranks,
                lambda it: plots.rows_size(len(it.layers), 5.6),
                lambda it: any(one.rank is not None for one in it.layers),
            ),
        ),
        lambda it: Table(HEADINGS, [_layer_line(one) for one in it.layers]),
        lambda it: it.layers,
        lambda it: it.summary,
    ),
    Look(
        LayerDifference,
        (
            Panel("change", _change, (5.0, 2.0), lambda it: it.changed is not None),
            Panel("strengths", _strengths, (5.0, 2.9), lambda it: bool(it.strengths)),
        ),
        lambda it: Table(HEADINGS, [_layer_line(it)]),
        words=str,
    ),
    Look(
        Decision,
        (
            Panel(
                "ranks",
                _chosen,
                lambda it: plots.rows_size(len(it.chosen)),
                lambda it: any(name in it.ranks for name in it.chosen),
            ),
        ),
        lambda it: Table(
            ("layer", "rank"),
            [(named(name), f"{it.ranks[name]:,}" if name in it.ranks else NONE) for name in it.chosen],
        ),
        _decision_rows,
        lambda it: f"{counted(len(it.chosen), 'layer')} chosen, as {it.file}",
    ),
    Look(
        Lineage,
        (Panel("cosines", _cosines, lambda it: plots.rows_size(len(it.layers)), lambda it: bool(it.layers)),),
        lambda it: Table(
            ("layer", "rows", "cosine", "p"),
            [(named(one.name), f"{one.rows:,}", f"{one.cosine:.2f}", number(one.p)) for one in it.layers],
        ),
        lambda it: it.layers,
        lambda it: it.sentence,
    ),
)
