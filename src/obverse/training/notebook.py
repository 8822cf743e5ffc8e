"""What comparisons of variants, runs and searches look like in a notebook."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .._core import NONE, named, p_value, percent, signed
from ..present import Look, Panel, Table, plots, show
from ._compare import Comparison
from ._rundir import RunRecord
from ._search.results import SearchResult, verdict
from ._search.results import value as as_value
from ._search.words import ordered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

MOST_CURVES = 200
SMALL = (4.6, 3.2)
WORST = 4.0  # times the best error: from there on the palest colour


# --- variants ---


def _variants(found: Comparison, axes: Axes, ink: plots.Ink) -> None:
    """Errors with one standard error, on images filled and on their shadows hollow."""
    shadows = any(row.shadow_error is not None for row in found.rows)
    lines = []
    for row in found.rows:
        marks = [_mark(row.test_error, row.test_error_se, 0)]
        if row.shadow_error is not None:
            marks.append(_mark(row.shadow_error, row.shadow_error_se, 1, hollow=True))
        lines.append((row.variant, marks))
    plots.swatch(axes, ink.series(0), "images", marker="o")
    if shadows:
        options = {"marker": "s", "linestyle": "-", "markerfacecolor": "none"}
        plots.swatch(axes, ink.series(1), "their shadows", **options)
    plots.interval_rows(axes, ink, lines, "error, % (± 1 standard error)", "variants")
    plots.legend(axes, ink)


def _mark(value: float, se: float | None, index: int, *, hollow: bool = False) -> plots.Mark:
    low, high = (None, None) if se is None else (100 * (value - se), 100 * (value + se))
    return plots.Mark(100 * value, low, high, index, hollow)


def _differences(found: Comparison, axes: Axes, ink: plots.Ink) -> None:
    lines = [
        (row.variant, [_mark(row.difference, row.difference_se, 0)])
        for row in found.rows
        if row.difference is not None
    ]
    first = named(found.rows[0].variant)
    plots.interval_rows(
        axes,
        ink,
        lines,
        f"error minus that of {plots.drawable(first, 16)}, points (± 1 standard error)",
        "variants",
    )
    plots.reference(axes, ink, 0.0)


def _comparison_table(found: Comparison) -> Table:
    return Table(
        ("variant", "runs", "test error, %", "on shadows, %", "minus the first", "p"),
        [
            (
                named(row.variant),
                f"{row.runs:,}",
                percent(row.test_error, row.test_error_se),
                percent(row.shadow_error, row.shadow_error_se),
                NONE if row.difference is None else signed(row.difference, row.difference_se),
                NONE if row.p_value is None else p_value(row.p_value),
            )
            for row in found.rows
        ],
    )


# --- one run ---


def _run_errors(found: RunRecord, axes: Axes, ink: plots.Ink) -> None:
    for at, (name, label) in enumerate((("test_error", "images"), ("shadow_error", "their shadows"))):
        points = [(one["epoch"], 100 * one[name]) for one in found.metrics if one.get(name) is not None]
        if points:
            epochs, errors = zip(*points, strict=True)
            plots.curve(axes, ink, epochs, errors, at, label=label, dashed=bool(at), marked=False)
    axes.set(xlabel="epoch", ylabel="error, %")
    axes.set_ylim(bottom=0)
    plots.whole_ticks(axes)
    plots.legend(axes, ink)


def _has_errors(found: RunRecord) -> bool:
    return any(one.get("test_error") is not None for one in found.metrics)


def _run_table(found: RunRecord) -> Table:
    last = found.metrics[-1] if found.metrics else {}
    lines = [
        (label, percent(last.get(name)))
        for name, label in (("test_error", "test error, %"), ("shadow_error", "error on shadows, %"))
        if last.get(name) is not None
    ]
    return Table(("", "value"), [("epochs", f"{last.get('epoch', 0):,}"), *lines])


# --- searches ---


def _shade(error: float | None, best: float | None) -> float:
    """From 0, pale, to 1: how near an error is to the best, on a logarithmic scale."""
    if error is None or best is None:
        return 0.0
    floor = 1e-4  # a best error of 0 has no logarithm
    return 1 - min(max(math.log(max(error, floor) / max(best, floor)) / math.log(WORST), 0.0), 1.0)


def _landscape(found: SearchResult, axes: Axes, ink: plots.Ink) -> None:
    """A point per trial, the nearer to the best the stronger; crosses did not come to their end."""
    best = found.best
    for trial in found.trials[-2000:]:
        place = [trial.lr], [trial.weight]
        if trial.state == "complete":
            strength = 0.15 + 0.85 * _shade(trial.error, best.error if best else None)
            axes.plot(*place, "o", markersize=9, color=ink.series(0), alpha=strength, linewidth=0)
        else:
            axes.plot(*place, "x", markersize=5, color=ink.soft)
    if best is not None:
        axes.plot(
            [best.lr],
            [best.weight],
            "o",
            markersize=14,
            color=ink.series(1),
            markerfacecolor="none",
            label="best",
        )
    if any(trial.state != "complete" for trial in found.trials):
        plots.swatch(axes, ink.soft, "stopped, failed or running", marker="x", linestyle="none")
    axes.set_xscale("log")
    positive = [one for one in found.weights if one > 0]
    if positive and max(found.weights) > 10 * min(positive):
        axes.set_yscale("symlog", linthresh=min(positive))
    axes.margins(0.12)
    axes.set(xlabel="lr", ylabel="weight")
    plots.legend(axes, ink)


def _curves(found: SearchResult, axes: Axes, ink: plots.Ink) -> None:
    best = found.best
    shown = sorted(found.trials, key=lambda it: (it is best, -(2.0 if it.error is None else it.error)))
    for trial in [it for it in shown if it.curve][-MOST_CURVES:]:
        epochs, errors = zip(*((epoch, 100 * error) for epoch, error in trial.curve), strict=True)
        own = trial is best
        axes.plot(
            epochs,
            errors,
            color=ink.series(0) if own else ink.soft,
            alpha=1.0 if own else 0.45,
            linewidth=2.0 if own else 0.9,
            marker="o" if len(epochs) == 1 or trial.state == "pruned" else None,
            markevery=[-1],
            markersize=4,
            label="best" if own else "_",
        )
    axes.set(xlabel="epoch", ylabel="held-out error, %")
    plots.whole_ticks(axes)
    plots.legend(axes, ink)


def _history(found: SearchResult, axes: Axes, ink: plots.Ink) -> None:
    done: Sequence[tuple[int, float]] = [
        (trial.number, 100 * trial.error) for trial in found.complete if trial.error is not None
    ]
    least = [min(error for _, error in done[: at + 1]) for at in range(len(done))]
    numbers = [number + 1 for number, _ in done]
    axes.plot(numbers, [error for _, error in done], ".", color=ink.soft, label="trials")
    axes.step(numbers, least, where="post", color=ink.series(0), label="best so far")
    axes.set(xlabel="trial", ylabel="held-out error, %")
    plots.whole_ticks(axes)
    plots.legend(axes, ink)


def _search_table(found: SearchResult) -> Table:
    return Table(
        ("trial", "lr", "weight", "held-out error, %", "state"),
        [
            (f"{it.number + 1}", as_value(it.lr), as_value(it.weight), percent(it.error), it.state)
            for it in ordered(found)
        ],
    )


show(
    Look(
        Comparison,
        (
            Panel(
                "errors",
                _variants,
                lambda it: (6.0, 1.3 + 0.4 * min(len(it.rows) + 1, plots.MOST_ROWS)),
                lambda it: bool(it.rows),
            ),
            Panel(
                "differences",
                _differences,
                lambda it: (6.0, 1.3 + 0.4 * min(len(it.rows) + 1, plots.MOST_ROWS)),
                lambda it: any(row.difference is not None for row in it.rows),
            ),
        ),
        _comparison_table,
        lambda it: it.rows,
        lambda it: f"{len(it.rows):,} variants; errors at the last epoch, means over seeds",
    ),
    Look(
        RunRecord,
        (Panel("errors", _run_errors, SMALL, _has_errors),),
        _run_table,
        lambda it: it.metrics,
        lambda it: (
            f"a run {'that is finished' if it.finished else 'that is not finished'}: {named(it.path.name)}"
        ),
    ),
    Look(
        SearchResult,
        (
            Panel("landscape", _landscape, SMALL, lambda it: bool(it.trials)),
            Panel("curves", _curves, SMALL, lambda it: any(trial.curve for trial in it.trials)),
            Panel("history", _history, SMALL, lambda it: bool(it.complete)),
        ),
        _search_table,
        lambda it: it.trials,
        verdict,
    ),
)
