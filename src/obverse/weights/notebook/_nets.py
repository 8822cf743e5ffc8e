"""Whole nets: audits, two of them beside each other, ablations and compressions. Not for one matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..._core import NONE, named, number
from ...present import Look, Panel, Table, plots, show
from .._ablation.charts import ORDER
from .._ablation.results import Ablation, Kept, LayerAblation
from .._ablation.results import show as as_score
from .._ablation.words import CONTROLS, scaled, unit
from .._against import Change, Comparison
from .._compression.results import Compression
from ..results import Audit, Interval, LayerAudit, rows
from ._layers import shares_bar, shares_legend

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

SOUGHT = 10_000  # layers of a figure that numbers them


def _with_shares(audit: Audit) -> list[LayerAudit]:
    return [layer for layer in audit.layers if layer.random_share is not None]


def _shares(audit: Audit, axes: Axes, ink: plots.Ink, *, sort: bool = False) -> None:
    """A bar per layer; a dot each where there are too many to name."""
    layers = _with_shares(audit)
    if sort:
        layers.sort(key=lambda one: -one.random_share.value if one.random_share else 0.0)
    shares = [one.random_share for one in layers if one.random_share is not None]
    if len(layers) <= plots.MOST_ROWS:
        for y, layer in enumerate(layers):
            shares_bar(axes, ink, y, layer.parts)
        plots.name_rows(axes, [layer.name for layer in layers], ink)
        shares_legend(axes, ink, shares)
        return
    for is_bound, label in ((False, "random share"), (True, "at most so much")):
        spots = [
            (at, 100 * one.value) for at, one in enumerate(shares[:SOUGHT], 1) if one.is_bound is is_bound
        ]
        if spots:
            options: dict[str, Any] = {"markerfacecolor": "none"} if is_bound else {}
            axes.plot(
                *zip(*spots, strict=True),
                "o",
                color=ink.series(4),
                markersize=4,
                label=label,
                **options,
            )
    axes.set(ylim=(-3, 103), xlabel="layer, from the first" if not sort else "layer, sorted")
    axes.set_ylabel("like random numbers, %")
    plots.whole_ticks(axes)
    plots.legend(axes, ink)


def _percent(share: Interval | None) -> str:
    if share is None:
        return NONE
    return f"{'≤ ' if share.is_bound else ''}{100 * share.value:.1f} %"


def _audit_table(audit: Audit) -> Table:
    return Table(
        ("layer", "size", "verdict", "directions", "random share", "in words"),
        [
            (
                named(one.name, "(no name)"),
                f"{one.rows} × {one.columns}",
                one.verdict,
                NONE if one.parts is None else f"{'≥ ' if one.parts.rank_is_bound else ''}{one.parts.rank}",
                _percent(one.random_share),
                one.deciding,
            )
            for one in audit.layers
        ],
    )


# --- before and after ---


def _changes(name: str, found: Comparison) -> list[tuple[str, Change]]:
    pairs = [(one.name, getattr(one, name)) for one in found.layers]
    return [(layer, change) for layer, change in pairs if change is not None]


def _dumbbells(
    found: Comparison, axes: Axes, ink: plots.Ink, name: str, label: str, factor: float = 1.0
) -> None:
    """Hollow before, filled after; a strong line where the change is more than chance gives."""
    pairs = _changes(name, found)
    shown = pairs[: plots.MOST_ROWS]
    for y, (_, change) in enumerate(shown):
        ends = [factor * change.before, factor * change.after]
        width, colour = (2.6, ink.series(0)) if change.clear else (1.0, ink.soft)
        axes.plot(ends, [y, y], color=colour, linewidth=width, zorder=1)
        axes.plot(ends[:1], [y], "o", color=ink.series(0), markerfacecolor=ink.page)
        axes.plot(ends[1:], [y], "o", color=ink.series(0))
    plots.swatch(axes, ink.series(0), "before", marker="o", linestyle="none", markerfacecolor=ink.page)
    plots.swatch(axes, ink.series(0), "after", marker="o", linestyle="none")
    plots.name_rows(axes, [layer for layer, _ in shown], ink)
    plots.along(axes, label, len(pairs) - len(shown), "layers")
    plots.legend(axes, ink)


def _random_share(found: Comparison, axes: Axes, ink: plots.Ink) -> None:
    _dumbbells(found, axes, ink, "random_share", "like random numbers, % of the energy", 100.0)


def _rank(found: Comparison, axes: Axes, ink: plots.Ink) -> None:
    _dumbbells(found, axes, ink, "rank", "directions of the signal")
    plots.whole_ticks(axes)


def _comparison_table(found: Comparison) -> Table:
    def said(change: Change | None) -> str:
        if change is None:
            return NONE
        return f"{number(change.before)} → {number(change.after)}{'*' if change.clear else ''}"

    return Table(
        ("layer", "verdict", "random share", "directions"),
        [
            (named(one.name, "(no name)"), one.verdict, said(one.random_share), said(one.rank))
            for one in found.layers
        ],
    )


# --- ablation ---


def _treatments(found: Ablation, axes: Axes, ink: plots.Ink) -> None:
    """A row per layer, a mark per treatment; the line is the untreated net."""
    lines = [("all layers at once", found.together)]
    lines += [(f"{one.name} · k = {one.rank}", one.effects) for one in found.treated]
    shown = lines[: plots.MOST_ROWS]
    for index, treatment in enumerate(ORDER):
        hollow = treatment in CONTROLS
        spots = [
            (scaled(found.measure, one.score.value), y)
            for y, (_, effects) in enumerate(shown)
            for one in effects
            if one.treatment == treatment and one.score.value is not None
        ]
        if spots:
            axes.plot(
                *zip(*spots, strict=True),
                marker=plots.palette.marker(index),
                linestyle="none",
                color=ink.series(index),
                markerfacecolor="none" if hollow else ink.series(index),
                label=treatment,
            )
    plots.reference(axes, ink, scaled(found.measure, found.untreated.value), "untreated")
    plots.name_rows(axes, [name for name, _ in shown], ink)
    plots.along(axes, unit(found.measure), len(lines) - len(shown), "layers")
    plots.legend(axes, ink)


def _kept(axes: Axes, ink: plots.Ink, points: Sequence[Kept], factor: float) -> None:
    known = [(one.directions, factor * one.score.value) for one in points if one.score.value is not None]
    plots.curve(axes, ink, [x for x, _ in known], [y for _, y in known])


def _joint(found: Ablation, axes: Axes, ink: plots.Ink) -> None:
    _kept(axes, ink, found.together_curve, scaled(found.measure, 1.0))
    plots.reference(axes, ink, scaled(found.measure, found.untreated.value), "untreated", across=True)
    plots.reference(axes, ink, 1.0, "k", index=1)
    axes.set(xlabel="directions kept in all layers, in multiples of k", ylabel=unit(found.measure))
    plots.legend(axes, ink)


def _layer_curve(found: LayerAblation, axes: Axes, ink: plots.Ink) -> None:
    _kept(axes, ink, found.curve, 1.0)
    plots.reference(axes, ink, float(found.rank), f"k = {found.rank}", index=1)
    if found.needed is not None:
        plots.reference(axes, ink, found.needed, "the curve bends")
    axes.set_xscale("symlog", linthresh=1, base=2)
    axes.set_xlim(left=0)
    axes.set(xlabel="directions kept", ylabel="score")
    plots.legend(axes, ink)


def _layer_effects(found: LayerAblation, axes: Axes, ink: plots.Ink) -> None:
    rows = [
        (one.treatment, [plots.Mark(one.score.value, series=ORDER.index(one.treatment))])
        for one in found.effects
    ]
    plots.interval_rows(axes, ink, rows, "score")


def _ablation_table(found: Ablation) -> Table:
    treatments = [one.treatment for one in found.together]

    def score(layer: Any, treatment: Any) -> str:
        effect = layer.effect(treatment)
        return NONE if effect is None else as_score(found.measure, effect.score.value)

    lines = [("all layers at once", *(score(found, one) for one in treatments))] if found.together else []
    lines += [(named(one.name), *(score(one, each) for each in treatments)) for one in found.layers]
    return Table((f"{found.measure} with", *treatments), lines)


def _layer_ablation_table(found: LayerAblation) -> Table:
    def text(value: float | None) -> str:
        return NONE if value is None else number(value)

    return Table(
        ("treatment", "score", "change", "standard error"),
        [
            (one.treatment, text(one.score.value), text(one.score.change), text(one.score.error))
            for one in found.effects
        ],
    )


# --- compression ---


def _weights(found: Compression, axes: Axes, ink: plots.Ink) -> None:
    shown = found.layers[: plots.MOST_ROWS]
    for y, one in enumerate(shown):
        axes.barh(y, one.before, height=0.66, facecolor="none", edgecolor=ink.soft, linewidth=1)
        axes.barh(y, one.after, height=0.66, color=ink.series(0), linewidth=0)
    axes.fill_between([], [], facecolor="none", edgecolor=ink.soft, label="before")
    plots.fill_swatch(axes, ink.series(0), "after")
    plots.name_rows(axes, [one.name for one in shown], ink)
    plots.along(axes, "weights", len(found.layers) - len(shown), "layers")
    plots.legend(axes, ink)


def _compression_table(found: Compression) -> Table:
    return Table(
        ("layer", "size", "rank", "weights before", "after", "note"),
        [
            (
                named(one.name, "(no name)"),
                f"{one.rows} × {one.columns}",
                NONE if one.rank is None else str(one.rank),
                f"{one.before:,}",
                f"{one.after:,}",
                one.note,
            )
            for one in found.layers
        ],
    )


show(
    Look(
        Audit,
        (
            Panel(
                "shares",
                _shares,
                lambda it: (
                    (6.4, 3.6)
                    if len(_with_shares(it)) > plots.MOST_ROWS
                    else plots.rows_size(len(_with_shares(it)))
                ),
                lambda it: bool(_with_shares(it)),
            ),
        ),
        _audit_table,
        rows,
        lambda it: it.summary,
    ),
    Look(
        Comparison,
        tuple(
            Panel(
                name,
                draw,
                lambda it: plots.rows_size(len(it.layers), 5.6),
                lambda it, name=name: bool(_changes(name, it)),  # type: ignore[misc]
            )
            for name, draw in (("random_share", _random_share), ("rank", _rank))
        ),
        _comparison_table,
        lambda it: it.layers,
        lambda it: it.summary,
    ),
    Look(
        Ablation,
        (
            Panel(
                "treatments",
                _treatments,
                lambda it: (6.8, 1.2 + plots.rows_size(1 + len(it.treated))[1]),
                lambda it: bool(it.together or it.treated),
            ),
            Panel("curve", _joint, (5.0, 3.4), lambda it: bool(it.together_curve)),
        ),
        _ablation_table,
        lambda it: it.layers,
        lambda it: it.summary,
    ),
    Look(
        LayerAblation,
        (
            Panel(
                "treatments",
                _layer_effects,
                lambda it: plots.rows_size(len(it.effects)),
                lambda it: bool(it.effects),
            ),
            Panel("curve", _layer_curve, (5.0, 3.0), lambda it: bool(it.curve)),
        ),
        _layer_ablation_table,
        lambda it: it.effects,
        lambda it: f"{named(it.name)} (k = {it.rank}): {it.sentence}",
    ),
    Look(
        Compression,
        (Panel("weights", _weights, lambda it: plots.rows_size(len(it.layers)), lambda it: bool(it.layers)),),
        _compression_table,
        lambda it: it.layers,
        lambda it: it.summary,
    ),
)
