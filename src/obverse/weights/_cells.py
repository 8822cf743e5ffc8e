"""The small multiples of one layer, each with its key numbers. Not for the drawing itself: see small."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..present.template import plain
from ..training._words import FIXED
from . import charts as small
from ._numbers import Line, number
from ._page_tables import interval
from ._recovery_chart import recovery_bars
from .results import LayerAudit

if TYPE_CHECKING:
    from markupsafe import Markup


@dataclass(frozen=True)
class Key:
    """A number below a picture; `other` and `change` where two nets are compared."""

    label: str
    value: str
    other: str = ""
    change: str = ""


@dataclass(frozen=True)
class Cell:
    """One small multiple; without a picture, `missing` says why."""

    title: str
    picture: Markup | None
    keys: tuple[Key, ...] = ()
    missing: str = "not measured"


@dataclass(frozen=True)
class Pair:
    """A layer, the layer of the same name in the other net if there is one, and the first one's numbers."""

    this: LayerAudit
    other: LayerAudit | None
    lines: Mapping[str, Line]

    def keys(self, **labels: str) -> tuple[Key, ...]:
        """Key numbers by their names in `quantities`, under shorter labels."""
        found = [(self.lines.get(name.replace("_", " ")), label) for name, label in labels.items()]
        return tuple(
            Key(label, one.value) if self.other is None else Key(label, one.value, one.other, one.change)
            for one, label in found
            if one is not None
        )


def cells(pair: Pair) -> tuple[Cell, ...]:
    """In the order of the page's legend."""
    return (
        _entries(pair),
        _quantiles(pair),
        _offsets(pair),
        _spectrum(pair),
        _cosines(pair),
        _recovery(pair),
    )


def _drawn(svg: str) -> Markup:
    from markupsafe import Markup

    return Markup(svg)


def _entries(pair: Pair) -> Cell:
    if pair.this.entries is None:
        return Cell("Entries", None)
    there = None if pair.other is None else pair.other.entries
    svg = small.entry_histogram(pair.this.entries, there)
    return Cell("Entries", _drawn(svg), pair.keys(ks="KS distance", kurtosis="kurtosis"))


def _quantiles(pair: Pair) -> Cell:
    entries = pair.this.entries
    if entries is None:
        return Cell("Quantiles", None)
    there = None if pair.other is None else pair.other.entries
    best = Key("best law", plain(entries.best_law, 20), "" if there is None else plain(there.best_law, 20))
    svg = small.quantile_plot(entries, there)
    return Cell("Quantiles", _drawn(svg), (*pair.keys(skew="skew"), best))


def _offsets(pair: Pair) -> Cell:
    offsets = pair.this.offsets
    if offsets is None:
        return Cell("Offsets", None, missing="none")
    there = None if pair.other is None else pair.other.offsets
    svg = small.offset_histogram(offsets, number(offsets.mean), there)
    return Cell(
        "Offsets", _drawn(svg), pair.keys(offset_ratio="|mean| / std", near_mean=f"within ±10{FIXED}%")
    )


def _spectrum(pair: Pair) -> Cell:
    if pair.this.spectrum is None:
        return Cell("Singular values", None)
    keys = pair.keys(distance="KS distance", spikes="spikes", stable_rank="stable rank")
    return Cell("Singular values", _drawn(small.spectrum_plot(pair.this, pair.other)), keys)


def _cosines(pair: Pair) -> Cell:
    if not pair.this.correlations:
        return Cell("Cosines", None)
    there = () if pair.other is None else pair.other.correlations
    svg = small.cosine_histogram(pair.this.correlations, there)
    return Cell("Cosines", _drawn(svg), pair.keys(rows_rms="rows, rms", columns_rms="columns, rms"))


def _recovery(pair: Pair) -> Cell:
    if not pair.this.reversal:
        return Cell("Recovery error", None)
    svg = recovery_bars(pair.this.reversal, () if pair.other is None else pair.other.reversal)
    here, there = pair.this.worst(), None if pair.other is None else pair.other.worst()
    keys = pair.keys(ratio="÷ shuffled")
    if here is not None:
        keys += (Key(f"95{FIXED}%", interval(here), "" if there is None else interval(there)),)
    return Cell("Recovery error", _drawn(svg), keys)
