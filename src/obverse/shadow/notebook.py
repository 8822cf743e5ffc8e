"""What surveys, calibrations and recovery errors look like in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._core import counted, named
from ..present import Look, Panel, Table, plots, show
from ._calibrate import Calibration, LayerCalibration
from ._recovery import Recovery
from ._words import cosine, digits, percent, summary
from .charts import panels
from .results import Survey

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

KINDS = ("agreement", "error", "cosine")
FORMS = (
    ("error", "at the net's own offsets"),
    ("theory_error", "at the theory's scale"),
    ("threshold_error", "best uniform threshold"),
)


def _survey(name: str) -> Panel:
    """One quantity over the layers: the net, and the same net with its weights shuffled."""

    def draw(found: Survey, axes: Axes, ink: plots.Ink) -> None:
        (one,) = (panel for panel in panels(found) if panel.name == name)
        places = range(1, len(one.own) + 1)
        plots.curve(axes, ink, places, one.own, 0, label="this net")
        plots.curve(axes, ink, places, one.shuffled, 1, label="weights shuffled", dashed=True)
        axes.set(xlabel="layer, from the lowest", ylabel=one.title)
        plots.whole_ticks(axes)
        plots.legend(axes, ink)

    return Panel(name, draw, (4.4, 3.2), lambda it: any(panel.name == name for panel in panels(it)))


def _survey_table(found: Survey) -> Table:
    lines = []
    for one in found.layers:
        pairs = [
            f"{say(getattr(one.own, kind))} ({say(getattr(one.shuffled, kind))})"
            for kind, say in (("agreement", percent), ("error", digits), ("cosine", cosine))
        ]
        lines.append((named(one.name, "(no name)"), *pairs))
    return Table(("layer (shuffled weights)", "same label, %", "recovery error", "cosine"), lines)


def _errors(found: Calibration | LayerCalibration, axes: Axes, ink: plots.Ink) -> None:
    layers: Sequence[LayerCalibration] = (found,) if isinstance(found, LayerCalibration) else found.layers
    for at, (_, label) in enumerate(FORMS):
        plots.fill_swatch(axes, ink.series(at), label)
    rows = [(one.layer, [getattr(one, name) for name, _ in FORMS]) for one in layers]
    plots.bar_rows(axes, ink, rows, "recovery error", "layers")
    plots.legend(axes, ink)


def _fits(found: Calibration, axes: Axes, ink: plots.Ink) -> None:
    """What each step of a fitted reverse leaves of the variation of held-out inputs, from the top down."""
    rows = [(one.tensor, [one.error]) for one in found.fits]
    plots.bar_rows(axes, ink, rows, "held-out variation that is left, share", "steps")


def _layer_line(one: LayerCalibration) -> tuple[str, ...]:
    names = ("scale", "error", "theory_scale", "theory_error")
    more = ("threshold", "threshold_scale", "threshold_error")
    return (named(one.layer), *(digits(getattr(one, name)) for name in (*names, *more)))


HEADINGS = ("layer", "scale", "error", "theory’s scale", "error", "threshold", "its scale", "error")


def _calibration_table(found: Calibration) -> Table:
    if found.inputs is None:
        return Table(HEADINGS, [_layer_line(one) for one in found.layers])
    return Table(
        ("step to", "rows", "features", "targets", "held-out error"),
        [
            (named(one.tensor), f"{one.rows:,}", f"{one.features:,}", f"{one.targets:,}", digits(one.error))
            for one in found.fits
        ],
    )


def _calibration_words(found: Calibration) -> str:
    if found.inputs is not None:
        return f"fitted on {found.inputs:,} inputs, from the top down"
    return f"{counted(len(found.layers), 'layer')} with a scale"


def _recovery(found: Recovery, axes: Axes, ink: plots.Ink) -> None:
    rows = [(name, [error]) for name, error in found.errors.items()]
    plots.bar_rows(axes, ink, rows, "recovery error", "layers")


show(
    Look(Survey, tuple(map(_survey, KINDS)), _survey_table, lambda it: it.layers, summary),
    Look(
        Calibration,
        (
            Panel(
                "errors",
                _errors,
                lambda it: (6.4, 1.5 + 0.45 * min(len(it.layers) + 1, plots.MOST_ROWS)),
                lambda it: bool(it.layers),
            ),
            Panel("fits", _fits, lambda it: plots.rows_size(len(it.fits)), lambda it: bool(it.fits)),
        ),
        _calibration_table,
        lambda it: it.layers if it.inputs is None else it.fits,
        _calibration_words,
    ),
    Look(
        LayerCalibration,
        (Panel("errors", _errors, (6.4, 1.9)),),
        lambda it: Table(HEADINGS, [_layer_line(it)]),
        words=lambda it: f"{named(it.layer)}: scale {digits(it.scale)}, recovery error {digits(it.error)}",
    ),
    Look(
        Recovery,
        (Panel("errors", _recovery, lambda it: plots.rows_size(len(it.errors)), lambda it: bool(it.errors)),),
        lambda it: Table(("layer", "recovery error"), [(named(n), digits(e)) for n, e in it.errors.items()]),
        lambda it: [{"layer": name, "error": error} for name, error in it.errors.items()],
        lambda it: f"recovery errors over {it.samples:,} inputs",
    ),
)
