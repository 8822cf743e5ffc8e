"""What tests of a generator look like in a notebook: numbers, their intervals, what to compare with."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .._core import named
from ..present import Look, Panel, Table, plots, show
from ._birthday import Birthday
from ._dimension import Dimension
from ._discrepancy import Discrepancy
from ._memorization import Memorization
from ._moments import Moments
from ._numbers import estimate
from ._quality import Quality
from ._quality_test import QualityTest
from ._smoothness import PathLength
from ._vendi import Vendi
from ._words import birthday_rows, dimension_said, memorization_rows, rows
from .results import Diversity

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FOUR = ("precision", "recall", "density", "coverage")
Rows = list[tuple[str, list[plots.Mark]]]


def _support(found: Birthday, axes: Axes, ink: plots.Ink, *, train: int | None = None) -> None:
    """How many different pictures there are, on a logarithmic axis; arrows are bounds."""
    e = found.effective
    lines: Rows = []
    bounds: list[tuple[int, float, int]] = []  # row, where, which way
    if found.support_bound is not None:
        bounds.append((len(lines), found.support_bound, -1))
        lines.append(("effective support, at most", [plots.Mark(found.support_bound)]))
    if found.support_at_least is not None:
        bounds.append((len(lines), found.support_at_least, 1))
        lines.append(("different pictures, at least", [plots.Mark(found.support_at_least)]))
    if e.value is not None:
        lines.append(("effective support, estimated", [plots.Mark(e.value, e.low, e.high)]))
    if found.threshold.real_support is not None:
        lines.append(("the real data", [plots.Mark(found.threshold.real_support, series=1, hollow=True)]))
    if train is not None:
        lines.append(("training images", [plots.Mark(float(train), series=1, hollow=True)]))
    axes.set_xscale("log")
    plots.interval_rows(axes, ink, lines, "pictures")
    for row, value, way in bounds:
        axes.annotate(
            "",
            xy=(value, row),
            xytext=(26 * way, 0),
            textcoords="offset points",
            arrowprops={"arrowstyle": "<-", "color": ink.series(0), "linewidth": 1.6},
        )
    axes.margins(x=0.12)


def _has_support(found: Birthday) -> bool:
    return found.support_bound is not None or found.support_at_least is not None


def _collisions(found: Birthday, axes: Axes, ink: plots.Ink) -> None:
    marks = [plots.Mark(found.collision_probability, *found.interval)]
    said = f"share of batches with a collision, {100 * found.confidence:g} % interval"
    plots.interval_rows(axes, ink, [(f"batches of {found.batch_size:,}", marks)], said)
    axes.set_xlim(-0.02, 1.02)


def _copies(found: Memorization, axes: Axes, ink: plots.Ink) -> None:
    """Shares of samples, in percent: filled as measured, hollow as expected without copying."""
    pairs: list[tuple[str, float, float | None]] = []
    if found.sides is not None:
        pairs.append(("nearest to a training image", found.sides.share, found.sides.expected))
    pairs.append(("authentic (AuthPct)", found.authentic.share, found.authentic.held_out))
    if found.close is not None:
        pairs.append(("very close to training", found.close.share, found.close.expected))
    lines: Rows = []
    for name, share, expected in pairs:
        marks = [plots.Mark(100 * share)]
        if expected is not None:
            marks.append(plots.Mark(100 * expected, series=1, hollow=True))
        lines.append((name, marks))
    plots.swatch(axes, ink.series(0), "samples", marker="o", linestyle="none")
    if any(expected is not None for _, _, expected in pairs):
        options = {"marker": "s", "linestyle": "none", "markerfacecolor": "none"}
        plots.swatch(axes, ink.series(1), "without copying", **options)
    plots.interval_rows(axes, ink, lines, "of samples, %")
    axes.set_xlim(-3, 103)
    plots.legend(axes, ink)


def _quality(found: Quality, axes: Axes, ink: plots.Ink) -> None:
    lines: Rows = []
    for name in FOUR:
        one = getattr(found, name)
        marks = [plots.Mark(one.value, one.value - one.error, one.value + one.error)]
        if name == "coverage":
            marks.append(plots.Mark(found.coverage_expected, series=1, hollow=True))
        lines.append((name, marks))
    plots.swatch(axes, ink.series(0), "± 1 standard error", marker="o")
    options = {"marker": "s", "linestyle": "none", "markerfacecolor": "none"}
    plots.swatch(axes, ink.series(1), "of the same distribution", **options)
    plots.interval_rows(axes, ink, lines)
    axes.set_xlim(left=min(-0.02, axes.get_xlim()[0]))
    plots.legend(axes, ink)


def _quality_test(found: QualityTest, axes: Axes, ink: plots.Ink) -> None:
    lines: Rows = [(name, [plots.Mark(getattr(found, name).p)]) for name in FOUR]
    plots.interval_rows(axes, ink, lines, "p: so low by chance, were samples like real data")
    axes.set_xlim(-0.02, 1.02)


def _moments(found: Moments, axes: Axes, ink: plots.Ink) -> None:
    lines = [
        ("samples", [found.at_floor]),
        ("real data against itself", [found.floor]),
        ("all samples, all real data", [found.fid]),
    ]
    plots.bar_rows(axes, ink, lines, f"FID, {found.size:,} points on either side of the first two")


def _discrepancy(found: Discrepancy, axes: Axes, ink: plots.Ink) -> None:
    """Beside what chance does: two deviations to either side of 0."""
    d = found.deviation
    lines: Rows = [
        ("samples", [plots.Mark(found.value)]),
        ("by chance", [plots.Mark(0.0, -2 * d, 2 * d, series=1, hollow=True)]),
    ]
    plots.interval_rows(axes, ink, lines, f"squared discrepancy, p = {found.p:.2g}")


def _vendi(found: Vendi, axes: Axes, ink: plots.Ink) -> None:
    lines = [("Vendi score", [found.score]), ("samples", [float(found.samples)])]
    plots.bar_rows(axes, ink, lines, "as many different pictures")


def _dimension(found: Dimension, axes: Axes, ink: plots.Ink) -> None:
    lines: Rows = [("all points", [plots.Mark(found.value, found.low, found.high)])]
    if found.at_half is not None:
        lines.append(("half of them", [plots.Mark(found.at_half, series=1, hollow=True)]))
    plots.interval_rows(axes, ink, lines, f"intrinsic dimension, {100 * found.confidence:g} % interval")
    axes.set_xlim(left=0)


def _path(found: PathLength, axes: Axes, ink: plots.Ink) -> None:
    share = found.jumping / max(1, found.walked)
    ends = (found.ratio - found.ratio_error, found.ratio + found.ratio_error)
    lines: Rows = [
        ("÷ a straight path, ± 1 std. error", [plots.Mark(found.ratio, *ends)]),
        ("share of paths that jump", [plots.Mark(share, *found.interval)]),
    ]
    plots.interval_rows(axes, ink, lines)
    plots.reference(axes, ink, 1.0)
    axes.set_xlim(left=min(-0.02, axes.get_xlim()[0]))


def _part(name: str, draw: Callable[..., None], size: Any, there: Callable[[Any], bool]) -> Panel:
    """A part of the whole test, drawn as it is alone."""

    def draw_part(found: Diversity, axes: Axes, ink: plots.Ink) -> None:
        more = {"train": found.train} if name == "birthday" else {}
        draw(getattr(found, name), axes, ink, **more)

    return Panel(name, draw_part, size, lambda it: getattr(it, name) is not None and there(getattr(it, name)))


def _always(found: Any) -> bool:
    return True


def _three(lines: Any) -> Table:
    return Table(("", "value", "how to read it"), [tuple(line) for line in lines])


def _fields(**said: Callable[[Any], str]) -> Callable[[Any], Table]:
    return lambda found: Table(
        ("", "value"), [(name.replace("_", " "), say(found)) for name, say in said.items()]
    )


SUPPORT, WIDE = (6.2, 2.3), (6.2, 2.2)
show(
    Look(
        Birthday,
        (Panel("support", _support, SUPPORT, _has_support), Panel("collisions", _collisions, (5.0, 1.8))),
        lambda it: _three(birthday_rows(it)),
    ),
    Look(Memorization, (Panel("copies", _copies, WIDE),), lambda it: _three(memorization_rows(it))),
    Look(
        Quality,
        (Panel("quality", _quality, (5.6, 2.5)),),
        lambda it: Table(
            ("", "samples ± standard error"), [(name, estimate(getattr(it, name))) for name in FOUR]
        ),
    ),
    Look(
        QualityTest,
        (Panel("tests", _quality_test, (5.6, 2.2)),),
        lambda it: Table(("", "p, lower than real data"), [(n, f"{getattr(it, n).p:.3g}") for n in FOUR]),
    ),
    Look(
        Moments,
        (Panel("fid", _moments, WIDE),),
        _fields(
            FID=lambda it: f"{it.at_floor:.4g}",
            FID_of_real_data=lambda it: f"{it.floor:.4g}",
            FID_with_all=lambda it: f"{it.fid:.4g}",
            KID=lambda it: estimate(it.kid),
            inception_score=lambda it: estimate(it.inception_score),
        ),
    ),
    Look(
        Discrepancy,
        (Panel("discrepancy", _discrepancy, (5.6, 1.8)),),
        _fields(
            squared_discrepancy=lambda it: f"{it.value:.4g}",
            deviation_by_chance=lambda it: f"{it.deviation:.2g}",
            p=lambda it: f"{it.p:.3g}",
        ),
    ),
    Look(
        Vendi,
        (Panel("vendi", _vendi, (5.6, 1.8)),),
        _fields(
            score=lambda it: f"{it.score:.4g}",
            samples=lambda it: f"{it.samples:,}",
            kernel=lambda it: it.kernel,
        ),
    ),
    Look(
        Dimension,
        (Panel("dimension", _dimension, (5.6, 1.8)),),
        _fields(dimension=dimension_said, points=lambda it: f"{it.points:,}", method=lambda it: it.method),
    ),
    Look(
        PathLength,
        (Panel("paths", _path, (6.2, 1.9)),),
        _fields(
            length=lambda it: f"{it.length:.4g} ± {it.error:.2g}",
            compared_with_a_straight_path=lambda it: f"{it.ratio:.3g} ± {it.ratio_error:.2g}",
            paths_that_jump=lambda it: f"{it.jumping} of {it.walked}",
        ),
    ),
    Look(
        Diversity,
        (
            _part("birthday", _support, SUPPORT, _has_support),
            _part("memorization", _copies, WIDE, _always),
            _part("quality", _quality, (5.6, 2.5), _always),
            _part("dimension", _dimension, (5.6, 1.8), _always),
        ),
        lambda it: _three(rows(it)),
        words=lambda it: f"{named(it.subject)}: {it.verdict}",
    ),
)
