"""What ladders, comparisons of both sides and races look like in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._core import named, number
from ..present import Look, Panel, Table, plots, show
from ._compare import Comparison
from ._dynamics import Race
from ._words import LEVEL_HEADINGS, level_name, level_rows, verdict
from .charts import LOSSES, MESSAGES
from .results import Ladder, Training

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SMALL = (4.6, 3.1)
EXACT = 1e-17  # gaps below are drawn there: a logarithm has no 0
GAPS = (
    ("forward", "what goes up"),
    ("backward", "what comes down"),
    ("weight", "ΔW"),
    ("recursive", "ΔW, recursive"),
)


def _explained(found: Ladder, axes: Axes, ink: plots.Ink) -> None:
    """How much of each message events explain, level by level."""
    lines = [
        (
            f"level {level_name(found, level)}",
            [
                plots.Mark(None if value is None else 100 * max(value, -0.12), series=at)
                for at, value in enumerate(getattr(level.explained, name) for name in MESSAGES)
            ],
        )
        for level in found.levels
    ]
    for at, label in enumerate(MESSAGES.values()):
        plots.swatch(axes, ink.series(at), label, marker=plots.palette.marker(at), linestyle="none")
    below = any(
        (getattr(level.explained, name) or 0.0) < -0.12 for level in found.levels for name in MESSAGES
    )
    said = "of what inputs do, events explain, %"
    plots.interval_rows(
        axes, ink, lines, f"{said}\n(less than −12 % is drawn at −12)" if below else said, "levels"
    )
    axes.set_xlim(-15, 103)
    plots.legend(axes, ink)


def _steps(found: Training | Race, axes: Axes, ink: plots.Ink) -> None:
    for at, (name, _, label) in enumerate(LOSSES):
        plots.curve(
            axes, ink, found.steps, getattr(found, name), at, label=label, dashed=at > 0, marked=False
        )
    axes.set_xscale("symlog", linthresh=1)
    axes.set_xlim(left=0)
    axes.set(xlabel="steps", ylabel="loss")
    plots.legend(axes, ink)


def _apart(found: Training | Race, axes: Axes, ink: plots.Ink) -> None:
    plots.curve(axes, ink, found.steps, found.largest, marked=False)
    if any(value > 0 for value in found.largest):
        axes.set_yscale("log", nonpositive="mask")
    axes.set_xscale("symlog", linthresh=1)
    axes.set_xlim(left=0)
    axes.set(xlabel="steps", ylabel="largest difference\nof a parameter so far")


def _training(found: Ladder, axes: Axes, ink: plots.Ink) -> None:
    assert found.training is not None
    _steps(found.training, axes, ink)


def _gaps(found: Comparison, axes: Axes, ink: plots.Ink) -> None:
    """How far both sides are apart on each edge, as a share of the larger one."""
    lines = [
        (
            f"{parent} – {child}",
            [
                plots.Mark(max(getattr(edge, name).gap.relative, EXACT), series=at)
                for at, (name, _) in enumerate(GAPS)
            ],
        )
        for (parent, child), edge in found.edges.items()
    ]
    for at, (_, label) in enumerate(GAPS):
        plots.swatch(axes, ink.series(at), label, marker=plots.palette.marker(at), linestyle="none")
    axes.set_xscale("log")
    plots.interval_rows(axes, ink, lines, "relative gap of both sides", "edges")
    plots.legend(axes, ink)


def _comparison_table(found: Comparison) -> Table:
    return Table(
        ("edge", *(label for _, label in GAPS)),
        [
            (
                named(f"{parent} – {child}"),
                *(number(getattr(edge, name).gap.relative) for name, _ in GAPS),
            )
            for (parent, child), edge in found.edges.items()
        ],
    )


def _ladder_table(found: Ladder) -> Table:
    return Table(LEVEL_HEADINGS, level_rows(found))


def _race_rows(found: Race) -> list[dict[str, Any]]:
    names = ("steps", "loss_inputs", "loss_events", "loss_carried", "largest", "apart")
    return [
        dict(zip(("step", *names[1:]), values, strict=True))
        for values in zip(*(getattr(found, name) for name in names), strict=True)
    ]


def _race_table(found: Race) -> Table:
    ends = [0, len(found.steps) - 1] if len(found.steps) > 1 else [0]
    return Table(
        ("steps", "loss, by inputs", "by events", "largest difference"),
        [
            (
                f"{found.steps[at]:,}",
                number(found.loss_inputs[at]),
                number(found.loss_carried[at]),
                number(found.largest[at]),
            )
            for at in ends
        ],
    )


show(
    Look(
        Ladder,
        (
            Panel(
                "explained",
                _explained,
                lambda it: (6.4, 1.6 + 0.4 * max(2, min(len(it.levels), plots.MOST_ROWS))),
            ),
            Panel("training", _training, SMALL, lambda it: it.training is not None),
        ),
        _ladder_table,
        lambda it: it.edges,
        lambda it: f"{named(it.subject)}: {verdict(it)}",
    ),
    Look(
        Comparison,
        (
            Panel(
                "gaps",
                _gaps,
                lambda it: (6.4, 1.5 + 0.4 * min(len(it.edges) + 1, plots.MOST_ROWS)),
                lambda it: bool(it.edges),
            ),
        ),
        _comparison_table,
        lambda it: it.to_dict()["edges"],
        lambda it: (
            f"{len(it.edges):,} edges; the largest gap of ΔW is {number(it.worst)}, "
            f"{number(it.worst_recursive)} through the whole recursion"
            if it.edges
            else "no edges"
        ),
    ),
    Look(
        Race,
        (Panel("losses", _steps, SMALL), Panel("apart", _apart, SMALL)),
        _race_table,
        _race_rows,
    ),
)
