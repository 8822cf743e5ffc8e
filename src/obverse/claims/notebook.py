"""What verdicts and measured claims look like in a notebook."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .._core import NONE, named, number, plain, spell
from ..present import DECADE, OCTAVE, Look, Panel, Table, axis_for, plots, show
from ._series import curves
from .charts import PREDICTED
from .results import VERDICTS, Judged, Outcome, Sweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {"held": 2, "failed": 1, "inconclusive": 4, "crashed": 6}
LONGEST = 30
FULL = 1e300  # no axis of matplotlib's has room for more


def _measured(found: Outcome, axes: Axes, ink: plots.Ink) -> None:
    """Points with their intervals over the curve of predictions; rings where the verdict failed."""
    all_curves = curves(found)
    several = len(all_curves.series) > 1
    values = []
    for index, one in enumerate(all_curves.series):
        count = len(all_curves.series)
        shift = (index + 0.5) / count - 0.5 if all_curves.categories else 0.0  # beside each other
        places = [place + 0.6 * shift for place in one.places]
        colour = ink.series(index)
        means = [_bounded(point.mean) for point in one.points]
        values += [*means, *map(_bounded, one.predicted)]
        marker = plots.palette.marker(index)
        axes.plot(
            places,
            means,
            linestyle="none",
            marker=marker,
            color=colour,
            label=plots.drawable(one.name, 48) or "measured",
        )
        for place, point in zip(places, one.points, strict=True):
            if point.high > point.low and plots.finite(point.low, point.high):
                axes.plot(
                    [place, place], [_bounded(point.low), _bounded(point.high)], color=colour, linewidth=1.2
                )
        failed = [
            (at, mean)
            for at, mean, it in zip(places, means, one.points, strict=True)
            if it.verdict == "failed"
        ]
        if failed:
            axes.plot(
                *zip(*failed, strict=True),
                "o",
                markersize=13,
                color=ink.ink,
                markerfacecolor="none",
                label="_",
            )
        predicted = [_bounded(value) for value in one.predicted]
        line: dict[str, Any] = {"color": colour if several else ink.ink, "linewidth": 1.3, "label": "_"}
        if all_curves.categories or len(places) == 1:
            axes.plot(places, predicted, "_", markersize=18, markeredgewidth=1.6, **line)
        else:
            axes.plot(places, predicted, **line)
    plots.swatch(axes, ink.ink, PREDICTED[found.kind])
    if all_curves.fitted:
        fitted = sorted(all_curves.fitted)
        axes.plot(*zip(*fitted, strict=True), color=ink.soft, linestyle=(0, (4, 2)), label="fitted")
    span = OCTAVE if found.kind in ("rate", "exponent") else DECADE
    places = [place for one in all_curves.series for place in one.places]
    if all_curves.categories:
        names = [plots.drawable(name, LONGEST) for name in all_curves.categories]
        axes.set_xticks(range(len(names)), names, rotation=30, ha="right", parse_math=False)
    else:
        _scale(axes, "x", places, span)
    _scale(axes, "y", values, span)
    axes.set_xlabel(plots.drawable(found.axis, 40), parse_math=False)
    axes.set_ylabel(plots.drawable(found.quantity, 40), parse_math=False)
    plots.legend(axes, ink)


def _size(found: Outcome) -> tuple[float, float]:
    """Room for the legend."""
    return 5.8, 3.5 + 0.2 * len(curves(found).series)


def _bounded(value: float) -> float:
    return min(max(value, -FULL), FULL) if math.isfinite(value) else value


def _scale(axes: Axes, which: str, values: list[float], span: float) -> None:
    """Logarithmic where the page has it so, for positive values."""
    axis = axis_for(values, span=span)
    if axis.logarithmic and not axis.zero:
        axes.set(**{f"{which}scale": "log"})


def _outcome_table(found: Outcome) -> Table:
    return Table(
        ("setting", "predicted", "measured", "verdict", "note"),
        [
            (
                ", ".join(
                    f"{plain(name, 40)} = {plain(spell(value), 40)}" for name, value in one.setting.items()
                ),
                number(one.predicted),
                number(one.mean),
                one.verdict or NONE,
                plain(one.note),
            )
            for one in found.points
        ],
    )


def _judged(found: Judged, axes: Axes, ink: plots.Ink) -> None:
    lines = [
        ("measured", [plots.Mark(_bounded(found.mean), _bounded(found.low), _bounded(found.high))]),
        ("predicted", [plots.Mark(_bounded(found.predicted), series=1, hollow=True)]),
    ]
    plots.interval_rows(axes, ink, lines)


def _judged_table(found: Judged) -> Table:
    values = (
        ("predicted", number(found.predicted)),
        ("measured", number(found.mean)),
        ("standard error", NONE if found.error is None else number(found.error)),
        ("trials", f"{found.count:,}"),
        ("verdict", found.verdict or "judged with the whole grid"),
    )
    return Table(("", "value"), values)


def _verdicts(found: Sweep, axes: Axes, ink: plots.Ink) -> None:
    """How many claims of each paper have each verdict."""
    papers = list(dict.fromkeys(one.id.partition(".")[0] for one in found.outcomes))
    shown = papers[: plots.MOST_ROWS]
    starts = [0] * len(shown)
    for verdict in VERDICTS:
        counts = [
            sum(one.verdict == verdict and one.id.partition(".")[0] == paper for one in found.outcomes)
            for paper in shown
        ]
        if any(counts):
            axes.barh(
                range(len(shown)),
                counts,
                left=starts,
                height=0.66,
                color=ink.series(COLOURS[verdict]),
                label=verdict,
                linewidth=0,
            )
        starts = [start + count for start, count in zip(starts, counts, strict=True)]
    plots.name_rows(axes, shown, ink)
    plots.whole_ticks(axes)
    plots.along(axes, "claims", len(papers) - len(shown), "papers")
    plots.legend(axes, ink)


def _sweep_words(found: Sweep) -> str:
    counts = [f"{found.count(verdict)} {verdict}" for verdict in VERDICTS if found.count(verdict)]
    quick = " (a quick run: a first look, not a result)" if found.quick else ""
    return f"{len(found.outcomes):,} claims: {', '.join(counts)}{quick}" if counts else "no claims"


show(
    Look(
        Outcome,
        (Panel("measured", _measured, _size, lambda it: bool(curves(it).series)),),
        _outcome_table,
        lambda it: it.points,
        lambda it: f"{named(it.id)}: {it.verdict}; {it.sentence}",
    ),
    Look(
        Judged,
        (Panel("measured", _judged, (5.4, 1.7)),),
        _judged_table,
        words=lambda it: f"predicted {number(it.predicted)}, measured {number(it.mean)}",
    ),
    Look(
        Sweep,
        (
            Panel(
                "verdicts",
                _verdicts,
                lambda it: plots.rows_size(len({one.id.partition(".")[0] for one in it.outcomes})),
                lambda it: bool(it.outcomes),
            ),
        ),
        lambda it: Table(
            ("claim", "verdict", "in words"),
            [(named(one.id), one.verdict, one.sentence) for one in it.outcomes],
        ),
        lambda it: it.outcomes,
        _sweep_words,
    ),
)
