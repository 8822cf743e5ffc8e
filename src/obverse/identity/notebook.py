"""What memorizing nets, factors and descents look like in a notebook."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .._core import number
from ..present import Look, Panel, Table, plots, show
from ._descent import CriticalPoint, Descent
from ._factorize import Factorization
from ._memorize import QUANTILES, Memorized
from ._recall import Recall
from ._words import PROMISED, rows, standard_error, verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

SMALL = (4.4, 3.0)
SHARES = [100 * share for share in QUANTILES]


def _quantiles(
    axes: Axes, ink: plots.Ink, values: Sequence[float], label: str, ideal: float | None = None
) -> None:
    """Values over the share of points that have less, every share the same step from the next."""
    plots.curve(axes, ink, range(len(values)), values)
    if ideal is not None:
        plots.reference(axes, ink, ideal, "if every point met its target", across=True)
        plots.legend(axes, ink)
    if values and min(values) > 0 and max(values) > 10 * min(values):
        axes.set_yscale("log")
    axes.set_xticks(range(len(SHARES)), [f"{share:.0f}" for share in SHARES], fontsize="small")
    axes.set(xlabel="% of the points have less", ylabel=label)


def _margins(found: Memorized, axes: Axes, ink: plots.Ink) -> None:
    _quantiles(axes, ink, found.margins, "lead of the right score", found.ideal_margin)


def _parameters(found: Memorized, axes: Axes, ink: plots.Ink) -> None:
    """What was built beside what the theorem counts with."""
    n = found.distinct
    lines = [
        ("n, the distinct points", float(n)),
        ("n ln n", n * math.log(n)),
        ("built", float(found.parameters)),
        (f"{PROMISED}·(n ln n + r²)", PROMISED * found.budget),
        ("the projection, not counted", float(found.projection)),
    ]
    plots.bar_rows(
        axes,
        ink,
        [(name, [value]) for name, value in lines],
        "parameters",
        said=lambda value: f"{value:,.0f}",
    )


def _recall_margins(found: Recall, axes: Axes, ink: plots.Ink) -> None:
    _margins(found.facts, axes, ink)


def _recall_parameters(found: Recall, axes: Axes, ink: plots.Ink) -> None:
    _parameters(found.facts, axes, ink)


def _lipschitz(found: Recall, axes: Axes, ink: plots.Ink) -> None:
    _quantiles(axes, ink, found.lipschitz, "local Lipschitz constant")


def _accuracies(found: Recall, axes: Axes, ink: plots.Ink) -> None:
    named = (
        ("this net", found.test_accuracy),
        ("by chance: the largest class", found.chance),
        ("nearest training point", found.nearest_accuracy),
    )
    lines = [(name, [None if share is None else 100 * share]) for name, share in named]
    errors = [(None,), (100 * standard_error(found),), (None,)]
    plots.bar_rows(axes, ink, lines, "test inputs labelled right, %", errors=errors)
    axes.set_xlim(0, 105)


def _memorized_table(found: Memorized) -> Table:
    return Table(
        ("", "value"),
        [
            ("labelled right", f"{found.points - found.errors:,} of {found.points:,}"),
            ("blocks, width", f"{found.blocks:,}, {found.width}"),
            ("parameters", f"{found.parameters:,}"),
            ("÷ (n ln n + r²)", f"{found.constant:.2f}"),
            ("numbers of the projection", f"{found.projection:,}"),
            ("smallest margin", number(found.margin)),
        ],
    )


# --- factors ---


def _distances(found: Factorization, axes: Axes, ink: plots.Ink) -> None:
    """Of every step beside the bound, and of R itself, which one step would be."""
    lines = [
        (f"each of {len(found.factors)} steps, ‖A‖", found.distance),
        ("guaranteed", found.bound),
    ]
    plots.bar_rows(
        axes, ink, [(name, [value]) for name, value in lines], "distance to the identity", said=number
    )


def _factors_table(found: Factorization) -> Table:
    return Table(
        ("", "value"),
        [
            ("steps", f"{len(found.factors)}"),
            ("size", f"{len(found.factors[0])} × {len(found.factors[0])}" if found.factors else "–"),
            ("distance of a step, ‖A‖", number(found.distance)),
            ("guaranteed", number(found.bound)),
            ("γ", number(found.gamma)),
        ],
    )


# --- descent ---


def _losses(found: Descent, axes: Axes, ink: plots.Ink) -> None:
    steps = range(len(found.losses))
    plots.curve(axes, ink, steps, found.losses, 0, label="excess risk", marked=False)
    plots.curve(axes, ink, steps, found.gradients, 1, label="‖∇f‖", dashed=True, marked=False)
    if any(value > 0 for value in (*found.losses, *found.gradients)):
        axes.set_yscale("log", nonpositive="mask")
    axes.set_xlabel("step")
    plots.whole_ticks(axes)
    plots.legend(axes, ink)


def _norms(found: Descent, axes: Axes, ink: plots.Ink) -> None:
    plots.curve(axes, ink, range(len(found.norms)), found.norms, marked=False)
    plots.reference(axes, ink, 1.0, "where the theorem ends", across=True)
    axes.set(xlabel="step", ylabel="‖A‖")
    plots.whole_ticks(axes)
    plots.legend(axes, ink)


def _descent_table(found: Descent) -> Table:
    ends = [
        (name, number(values[0]), number(values[-1]))
        for name, values in (("excess risk", found.losses), ("‖∇f‖", found.gradients), ("‖A‖", found.norms))
    ]
    return Table(("", "at the start", "at the end"), ends)


def _point(found: CriticalPoint, axes: Axes, ink: plots.Ink) -> None:
    """Numbers of any size and sign: linear up to 10⁻⁸, logarithmic beyond."""
    named = (
        ("‖∇f‖", found.gradient),
        ("excess risk", found.excess),
        ("smallest Hessian eigenvalue", found.curvature),
        ("‖A‖", found.norm),
    )
    axes.set_xscale("symlog", linthresh=1e-8)
    plots.interval_rows(axes, ink, [(name, [plots.Mark(value)]) for name, value in named])
    most = max([1e-4, *(abs(value) for _, value in named if math.isfinite(value))])
    axes.set_xlim(-10 * most, 10 * most)
    plots.reference(axes, ink, 0.0)


def _point_table(found: CriticalPoint) -> Table:
    values = (found.gradient, found.excess, found.curvature, found.norm)
    names = ("‖∇f‖", "excess risk", "smallest eigenvalue of the Hessian", "‖A‖")
    return Table(("", "value"), [(name, number(value)) for name, value in zip(names, values, strict=True)])


MARGINS, PARAMETERS = (
    Panel("margins", _margins, SMALL, lambda it: bool(it.margins)),
    Panel("parameters", _parameters, (6.0, 2.4)),
)
show(
    Look(Memorized, (PARAMETERS, MARGINS), _memorized_table),
    Look(
        Recall,
        (
            Panel("parameters", _recall_parameters, (6.0, 2.4)),
            Panel("accuracies", _accuracies, (5.4, 2.4), lambda it: it.test_accuracy is not None),
            Panel("margins", _recall_margins, SMALL),
            Panel("lipschitz", _lipschitz, SMALL),
        ),
        lambda it: Table(("", "value", "how to read it"), [tuple(map(str, row)) for row in rows(it)]),
        words=verdict,
    ),
    Look(Factorization, (Panel("distances", _distances, (5.6, 1.7)),), _factors_table),
    Look(
        Descent,
        (Panel("losses", _losses, SMALL, lambda it: bool(it.losses)), Panel("norms", _norms, SMALL)),
        _descent_table,
        lambda it: [
            {"step": step, "loss": loss, "gradient": gradient, "norm": norm}
            for step, (loss, gradient, norm) in enumerate(zip(it.losses, it.gradients, it.norms, strict=True))
        ],
    ),
    Look(CriticalPoint, (Panel("numbers", _point, (6.0, 2.1)),), _point_table),
)
