"""One matrix: the figures of an audited layer's card, drawn with matplotlib. Not for whole nets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..._core import NONE, brief, named, number, p_value
from ...present import Look, Panel, Table, plots, show
from .._decomposition.marchenko_pastur import density, edges
from .._decomposition.parts import Parts
from .._numbers import line, quantities
from ..results import Correlations, Decomposition, Histogram, Interval, LayerAudit, Number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_SPIKES = 60
FURTHEST = 2.0  # edges: spikes beyond are counted, not drawn to scale
SIZE = (4.4, 2.9)


def shares_bar(axes: Axes, ink: plots.Ink, y: float, parts: Decomposition | None) -> None:
    """Signal from the left, the random rest at the right, the interval of the border; a bound has no rest."""
    if parts is None or parts.random_share is None:
        return
    share = parts.random_share
    signal = parts.signal_share.value if parts.signal_share is not None else 0.0
    end = signal if share.is_bound else 1 - share.value
    axes.barh(y, 100 * end, height=0.6, color=ink.series(0), linewidth=0)
    if share.is_bound:  # what is not signal may be random, or not
        axes.barh(
            y, 100 * (1 - end), left=100 * end, height=0.6, facecolor="none", edgecolor=ink.soft, hatch="///"
        )
    else:
        axes.barh(y, 100 * (1 - end), left=100 * end, height=0.6, color=ink.series(4), linewidth=0)
        axes.plot([100 * (1 - share.high), 100 * (1 - share.low)], [y, y], color=ink.ink, linewidth=1.6)


def shares_legend(axes: Axes, ink: plots.Ink, shares: list[Interval]) -> None:
    plots.fill_swatch(axes, ink.series(0), "signal")
    if any(not one.is_bound for one in shares):
        plots.fill_swatch(axes, ink.series(4), "like random numbers")
    if any(one.is_bound for one in shares):
        axes.fill_between([], [], facecolor="none", edgecolor=ink.soft, hatch="///", label="not known")
    plots.legend(axes, ink)
    axes.set_xlim(0, 100)
    axes.set_xlabel("share of the energy without the profile, %")


def _parts(found: Any, axes: Axes, ink: plots.Ink) -> None:
    parts = _decomposition(found)
    shares_bar(axes, ink, 0, parts)
    plots.name_rows(axes, [f"{parts.rows} × {parts.columns}"], ink)
    shares_legend(axes, ink, [one for one in (parts.random_share,) if one is not None])


def _decomposition(found: Any) -> Decomposition:
    if isinstance(found, LayerAudit):
        assert found.parts is not None
        return found.parts
    return found.summary if isinstance(found, Parts) else found


def _shape(found: Any) -> tuple[int, int]:
    """Of what was taken apart."""
    parts = _decomposition(found)
    return max(1, parts.rows - parts.empty_rows), max(1, parts.columns - parts.empty_columns)


def _spectrum(found: Any, axes: Axes, ink: plots.Ink) -> None:
    """The density of the singular values over the law, in units of its upper edge."""
    parts = _decomposition(found)
    values = () if isinstance(found, Decomposition) else found.values
    rows, columns = _shape(found)
    lower, upper = edges(rows, columns)
    grid = (lower / upper + 1) / 2 - (1 - lower / upper) / 2 * np.cos(np.linspace(0.0, np.pi, 129))
    law = density(grid, rows, columns, 1 / upper)
    spikes = [one.value / parts.upper for one in parts.directions] if parts.upper > 0 else []
    seen = np.sort(np.asarray(values, dtype=np.float64) / parts.upper) if parts.upper > 0 else np.zeros(0)
    low = max(0.0, 1 - 3 * (1 - float(grid[0])))
    high = 1.05 * min(max([1.1, *spikes, *seen[-1:]]), FURTHEST)
    if len(seen):
        bins = np.linspace(low, high, 49)
        below = np.interp(bins, seen, (np.arange(len(seen)) + 0.5) / len(seen), left=0.0, right=1.0)
        below[0] = 0.0
        axes.stairs(np.diff(below) / np.diff(bins), bins, fill=True, color=ink.series(0), alpha=0.45)
    axes.plot(grid, law, color=ink.ink, linewidth=1.4, label="law of random matrices")
    top = 1.3 * float(law.max()) or 2.0
    near = [one for one in spikes if one < high][:MOST_SPIKES]
    if near:
        axes.vlines(near, 0, 0.33 * top, color=ink.series(1), linewidth=1.6, label="signal")
    beyond = len(spikes) - len([one for one in spikes if one < high])
    label = "singular values, without profile, ÷ edge"
    axes.set_xlabel(f"{label}\n{beyond:,} more of the signal lie beyond" if beyond else label)
    axes.set(xlim=(low, high), ylim=(0, top), yticks=[])
    plots.legend(axes, ink)


def _normal(axes: Axes, ink: plots.Ink) -> None:
    z = np.linspace(-6, 6, 121)
    axes.plot(z, np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi), color=ink.ink, linewidth=1.4, label="normal")
    axes.set(xlim=(-6, 6), ylim=(0, 0.56), yticks=[])


def _stairs(axes: Axes, found: Histogram, colour: str, label: str, *, fill: bool) -> None:
    widths = np.diff(np.asarray(found.edges, dtype=np.float64))
    counts = np.asarray(found.counts, dtype=np.float64)
    with np.errstate(all="ignore"):
        heights = np.nan_to_num(counts / (counts.sum() * widths), nan=0.0, posinf=0.0)
    options = {"alpha": 0.45} if fill else {"linewidth": 1.4, "linestyle": (0, (4, 2))}
    axes.stairs(heights, found.edges, fill=fill, color=colour, label=label, **options)


def _entries(found: LayerAudit, axes: Axes, ink: plots.Ink) -> None:
    assert found.entries is not None
    _stairs(axes, found.entries.histogram, ink.series(0), "entries", fill=True)
    _normal(axes, ink)
    axes.set_xlabel("entries, in standard deviations from their mean")
    plots.legend(axes, ink)


def _quantiles(found: LayerAudit, axes: Axes, ink: plots.Ink) -> None:
    assert found.entries is not None
    z, seen = np.clip(np.asarray(found.entries.quantiles, dtype=np.float64).T, -4, 4)
    axes.plot([-4, 4], [-4, 4], color=ink.ink, linewidth=1.2)
    axes.plot(z, seen, ".", color=ink.series(0))
    axes.set(xlim=(-4, 4), ylim=(-4, 4), xlabel="quantiles of a normal law", ylabel="of the entries")


def _offsets(found: LayerAudit, axes: Axes, ink: plots.Ink) -> None:
    assert found.offsets is not None
    axes.stairs(
        found.offsets.histogram.counts,
        found.offsets.histogram.edges,
        fill=True,
        color=ink.series(0),
        alpha=0.45,
    )
    plots.reference(axes, ink, found.offsets.mean, "mean")
    axes.axvline(0, color=ink.ink, linewidth=1)
    axes.set(xlabel="biases; 0 is marked", yticks=[])
    axes.locator_params(axis="x", nbins=5)
    plots.legend(axes, ink)


def _cosines(found: LayerAudit, axes: Axes, ink: plots.Ink) -> None:
    sides: list[Correlations] = [one for one in found.correlations if one.histogram.counts]
    for one in sides[:2]:
        is_rows = one.side == "rows"
        _stairs(axes, one.histogram, ink.series(0 if is_rows else 1), f"of {one.side}", fill=is_rows)
    _normal(axes, ink)
    axes.set_xlabel("cosines × √length")
    plots.legend(axes, ink)


def _recovery(found: LayerAudit, axes: Axes, ink: plots.Ink) -> None:
    """At each sparsity: the layer, its shuffled entries, fresh normal ones; a dash at the prediction."""
    shown = found.reversal[:5]
    kinds = (
        ("layer", "the layer"),
        ("shuffled", "its entries shuffled"),
        ("gaussian", "fresh normal entries"),
    )
    for at, (name, label) in enumerate(kinds):
        values = [getattr(one, name).error for one in shown]
        places = [place + 0.26 * (at - 1) for place in range(len(shown))]
        axes.bar(
            places,
            [one.value for one in values],
            width=0.24,
            yerr=[one.spread or 0.0 for one in values],
            color=ink.series(at),
            ecolor=ink.ink,
            label=label,
        )
    predicted = [one.predicted.error.value for one in shown]
    spots = range(len(shown))
    axes.hlines(
        predicted, [at - 0.42 for at in spots], [at + 0.42 for at in spots], color=ink.ink, label="predicted"
    )
    axes.set_xticks(
        spots, ["data" if one.source == "data" else brief(one.sparsity) for one in shown], fontsize="small"
    )
    axes.set(xlabel="non-zeros in h", ylabel="recovery error")
    plots.legend(axes, ink)


def _has_parts(found: Any) -> bool:
    return (found.parts is not None if isinstance(found, LayerAudit) else True) and _decomposition(
        found
    ).random_share is not None


def _has_spectrum(found: Any) -> bool:
    if isinstance(found, LayerAudit) and found.parts is None:
        return False
    parts = _decomposition(found)
    values = () if isinstance(found, Decomposition) else found.values
    return parts.upper > 0 and bool(values or parts.directions) and min(_shape(found)) < 2**53


def _layer_table(found: LayerAudit) -> Table:
    lines = [line(one) for one in quantities(found, {}).values()]
    return Table(
        ("", "measured", "of random numbers", "p"), [(one.label, one.value, one.null, one.p) for one in lines]
    )


def _parts_table(found: Any) -> Table:
    parts = _decomposition(found)

    def share(one: Interval | None) -> str:
        if one is None:
            return NONE
        text = f"{100 * one.value:.1f} %"
        return f"at most {text}" if one.is_bound else f"{text} ({100 * one.low:.1f} to {100 * one.high:.1f})"

    least = "at least " if parts.rank_is_bound else ""
    profile = NONE if parts.profile_share is None else f"{100 * parts.profile_share.value:.1f} %"
    rows = [
        ("directions of the signal", f"{least}{parts.rank}"),
        ("signal, of the energy without the profile", share(parts.signal_share)),
        ("like random numbers", share(parts.random_share)),
        ("profile, of the energy", profile),
        ("scale of the bulk’s entries", number(parts.scale)),
        ("law of its singular values", f"{number(parts.lower)} to {number(parts.upper)}"),
    ]
    return Table(("", "value"), rows)


def _number(found: Number, axes: Axes, ink: plots.Ink) -> None:
    spread = found.spread or 0.0
    of_null = found.null is not None
    middle = found.null if found.null is not None else found.value
    rows = [("measured", [plots.Mark(found.value, *(() if of_null else (middle - spread, middle + spread)))])]
    if of_null:
        rows.append(("random", [plots.Mark(middle, middle - spread, middle + spread, 1, True)]))
    said = "± 1 standard deviation" if of_null else "± 1 standard error"
    plots.interval_rows(axes, ink, rows, said if spread else "")


def _number_table(found: Number) -> Table:
    values = [
        number(found.value),
        *(NONE if one is None else number(one) for one in (found.null, found.spread)),
    ]
    names = (
        "measured",
        "of random numbers",
        "standard deviation" if found.null is not None else "standard error",
    )
    return Table(("", "value"), [*zip(names, values, strict=True), ("p", p_value(found.p))])


PARTS = Panel("parts", _parts, (6.0, 1.9), _has_parts)
SPECTRUM = Panel("spectrum", _spectrum, (6.0, 2.9), _has_spectrum)

show(
    Look(
        LayerAudit,
        (
            Panel("parts", _parts, SIZE, _has_parts),
            Panel("spectrum", _spectrum, SIZE, _has_spectrum),
            Panel("entries", _entries, SIZE, lambda it: it.entries is not None),
            Panel(
                "quantiles",
                _quantiles,
                SIZE,
                lambda it: it.entries is not None and bool(it.entries.quantiles),
            ),
            Panel(
                "offsets",
                _offsets,
                SIZE,
                lambda it: it.offsets is not None and bool(it.offsets.histogram.counts),
            ),
            Panel("cosines", _cosines, SIZE, lambda it: any(one.histogram.counts for one in it.correlations)),
            Panel("recovery", _recovery, SIZE, lambda it: bool(it.reversal)),
        ),
        _layer_table,
        words=lambda it: f"{named(it.name)} ({it.rows} × {it.columns}), {it.verdict}: {it.deciding}",
    ),
    Look(Decomposition, (PARTS, SPECTRUM), _parts_table, words=lambda it: it.sentence),
    Look(Parts, (PARTS, SPECTRUM), _parts_table, lambda it: (it.summary,), lambda it: it.sentence),
    Look(Number, (Panel("number", _number, (5.6, 1.7)),), _number_table, words=lambda it: number(it.value)),
)
