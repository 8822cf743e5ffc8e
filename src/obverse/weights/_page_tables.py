"""Spikes and recoveries of an audited layer as tables of text. Not for single numbers: see audit_numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..training._words import FIXED, p_value
from ._numbers import brief, number
from .results import LayerAudit, Number, Recovered, Reversal

MOST_SPIKES = 12
MOST_SPARSITIES = 8


def interval(one: Reversal) -> str:
    low, high = one.interval
    return f"{number(low)}–{number(high)}"


def counterpart(one: Reversal, others: Sequence[Reversal]) -> Reversal | None:
    """The measurement of another net that compares with this one: same source, same sparsity if drawn."""
    for two in others:
        if one.source == two.source and (one.source == "data" or one.sparsity == two.sparsity):
            return two
    return None


def spike_table(layer: LayerAudit) -> tuple[tuple[tuple[str, ...], ...], int]:
    """The first spikes in words, and how many more there are."""
    if layer.spectrum is None:
        return (), 0
    spikes, upper = layer.spectrum.spikes, layer.spectrum.upper
    rows = tuple(
        (
            number(one.value),
            number(one.value / upper) if upper > 0 else "—",
            number(one.strength),
            f"{number(100 * one.share)}{FIXED}%",
            p_value(one.p),
        )
        for one in spikes[:MOST_SPIKES]
    )
    return rows, max(0, len(spikes) - MOST_SPIKES)


def reversal_table(
    this: Sequence[Reversal], other: Sequence[Reversal] = ()
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """One row a quantity, one column a sparsity; empty where nothing was measured."""
    shown = this[:MOST_SPARSITIES]
    if not shown:
        return ()
    rows: dict[str, Callable[[Reversal], str]] = {
        "non-zeros k": lambda one: ("data, " if one.source == "data" else "") + brief(one.sparsity),
        "inputs kept t": lambda one: brief(one.kept),
        "draws of h": lambda one: number(one.samples),
        "error: layer": lambda one: _spread(one.layer.error),
        "error: shuffled": lambda one: _spread(one.shuffled.error),
        "error: Gaussian": lambda one: _spread(one.gaussian.error),
        "error: predicted": lambda one: number(one.predicted.error.value),
        "error: at its own bias": lambda one: "—" if one.own_bias is None else _spread(one.own_bias),
        "layer ÷ shuffled": lambda one: _spread(one.ratio),
        "95 % interval": interval,
        "threshold / ‖h‖": lambda one: _all_four([each.threshold for each in _matrices(one)]),
        "deviation ‖Wᵀx − h‖∞ / ‖h‖": lambda one: _all_four([two.deviation.value for two in _matrices(one)]),
        "peak ‖h‖∞ / ‖h‖ (√(log k / k))": lambda one: f"{number(one.peak)} ({number(one.peak_bound)})",
        "k < t < k²": _conditions,
    }
    if other:
        rows["in B, error: layer"] = _of_other(other, lambda two: _spread(two.layer.error))
        rows["in B, layer ÷ shuffled"] = _of_other(other, lambda two: _spread(two.ratio))
        rows["in B, 95 % interval"] = _of_other(other, interval)
    return tuple((label, tuple(write(one) for one in shown)) for label, write in rows.items())


def _of_other(other: Sequence[Reversal], write: Callable[[Reversal], str]) -> Callable[[Reversal], str]:
    def there(one: Reversal) -> str:
        two = counterpart(one, other)
        return "—" if two is None else write(two)

    return there


def _matrices(one: Reversal) -> tuple[Recovered, ...]:
    return one.layer, one.shuffled, one.gaussian, one.predicted


def _all_four(values: Sequence[float]) -> str:
    return " · ".join(number(value) for value in values)


def _conditions(one: Reversal) -> str:
    if one.sparse_enough and one.dense_enough:
        return "holds"
    return "t ≥ k²" if one.sparse_enough else "k ≥ t"


def _spread(measured: Number) -> str:
    text = number(measured.value)
    return text if measured.spread is None else f"{text}{FIXED}±{FIXED}{brief(measured.spread)}"
