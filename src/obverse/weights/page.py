"""The page of an audit: one card a layer, small multiples and numbers, sortable. Not for measuring anything.

Names and sentences of an audit are untrusted text: they go through the template's escaping, and only the
SVG that `small` draws from numbers is put in as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from .._core import FIXED, at_most, brief, listed, named, number, p_value, pairs, plain, seconds, whole
from ..present import ResultType, markup, registry, render_page
from . import charts as small
from ._against import Comparison, LayerChange, compare_audits
from ._blocks import Square, map_of
from ._difference.page import Row, rows_of, sentence
from ._difference.results import NAME as DIFFERENCE
from ._difference.results import Difference, read_difference
from ._numbers import Line, counterpart, interval, line, quantities
from ._readers.address import is_address, spoken
from .charts import recovery_bars
from .results import (
    AGAINST,
    FORMAT,
    NAME,
    RECORD,
    VERDICTS,
    Audit,
    Decomposition,
    Entries,
    Interval,
    LayerAudit,
    Number,
    Recovered,
    Reversal,
    Verdict,
    read_audit,
)

if TYPE_CHECKING:
    from markupsafe import Markup

# A class of the stylesheet for each; the colour never says it alone.
TONES: dict[Verdict, str] = {
    "untouched": "good",
    "signal in a random bulk": "mixed",
    "mostly signal": "signal",
    "structured otherwise": "bad",
    "cannot tell": "unsure",
    "not judged": "none",
}
MOST_CARDS = 600  # 8 MB of page
ORDER = ("bad", "signal", "mixed", "unsure", "good", "none")


@dataclass(frozen=True)
class Card:
    """One layer of the page; `sort` holds what it can be sorted by, None for last."""

    at: int  # its number in the net, from 1
    layer: LayerAudit
    twin: LayerAudit | None
    tone: str
    sort: dict[str, float | None]
    cells: tuple[Cell, ...]
    lines: tuple[Line, ...]
    facts: tuple[str, ...]
    directions: tuple[tuple[str, ...], ...]
    more_directions: int
    reversal: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def changed(self) -> bool:
        return self.twin is not None and self.twin.verdict != self.layer.verdict


def render_audit(audit: Audit, other: Audit | None = None, difference: Difference | None = None) -> str:
    """The page as text; with `other` (base), each layer beside the one of the same name there.

    With `difference`, what changed in the weights stands before all cards.
    """
    comparison = None if other is None else compare_audits(other, audit)
    twins = {} if other is None else {layer.name: layer for layer in other.layers}
    clear = {} if comparison is None else {one.name: _clear(one) for one in comparison.layers}
    shown = with_cards(audit)
    return render_page(
        "weights/page.html.j2",
        scripts=("present/list.js", "weights/page.js"),
        audit=audit,
        other=other,
        names=model_names(audit.model, "" if other is None else other.model),
        change=[] if comparison is None else changes(comparison),
        difference=None if difference is None else _changed(difference, audit, twins, shown),
        map=shades(audit, shown),
        cards=[
            card(layer, audit.thresholds, twins.get(layer.name), clear.get(layer.name, frozenset()), at + 1)
            for at, layer in enumerate(audit.layers)
            if at in shown
        ],
        without_card=len(audit.layers) - len(shown),
        only_other=[] if comparison is None else [twins[name] for name in comparison.only_before],
        verdicts=[(verdict, TONES[verdict], audit.count(verdict)) for verdict in VERDICTS],
        tones=TONES,
        tables={
            "Thresholds": pairs(audit.thresholds),
            "Settings": pairs(audit.settings),
            "Versions": pairs(audit.versions),
        },
        seconds=seconds(audit.seconds),
        shared=markup(small.shared()),
    )


def with_cards(audit: Audit) -> set[int]:
    """The places of the layers that get a card; of very many, what a browser can show.

    In every square of the map the layer that is least random, then whatever is least random in all.
    """
    layers = audit.layers
    if len(layers) <= MOST_CARDS:
        return set(range(len(layers)))

    def least_random(at: int) -> tuple[int, float, int]:
        share = layers[at].random_share
        return ORDER.index(TONES[layers[at].verdict]), 2.0 if share is None else share.value, at

    found = map_of(audit)
    squares = [] if found is None else [one for row in found.squares for one in row if one is not None]
    first = sorted((min(one.layers, key=least_random) for one in squares), key=least_random)
    chosen = dict.fromkeys([*first, *sorted(range(len(layers)), key=least_random)])
    return set(list(chosen)[:MOST_CARDS])


@dataclass(frozen=True)
class Changed:
    """What changed in the weights, in words."""

    summary: str
    lineage: str
    notes: tuple[str, ...]
    rows: tuple[Row, ...]
    more: int


def _changed(found: Difference, audit: Audit, base: Mapping[str, LayerAudit], shown: set[int]) -> Changed:
    tuned = {layer.name: (at + 1 if at in shown else None, layer) for at, layer in enumerate(audit.layers)}
    rows, more = rows_of(found, base, tuned)
    notes = tuple(sentence(note) for note in found.notes[:20])
    return Changed(sentence(found.summary), sentence(found.lineage.sentence), notes, tuple(rows), more)


@dataclass(frozen=True)
class Shade:
    """A cell of the map: `step` of ten is its colour, `anchor` the card of its layer where it has one."""

    text: str
    title: str
    step: int | None
    anchor: int | None


@dataclass(frozen=True)
class Shades:
    """The map of a net of blocks, in words and steps of a colour."""

    blocks: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Shade | None, ...]], ...]


def shades(audit: Audit, shown: set[int]) -> Shades | None:
    found = map_of(audit)
    if found is None:
        return None
    rows = zip(found.kinds, found.squares, strict=True)
    return Shades(
        found.blocks,
        tuple(
            (kind, tuple(one if one is None else _shade(audit, one, shown) for one in squares))
            for kind, squares in rows
        ),
    )


def _shade(audit: Audit, square: Square, shown: set[int]) -> Shade:
    layers = [audit.layers[at] for at in square.layers]
    name = named(layers[0].name)
    anchor = next((at + 1 for at in square.layers if at in shown), None)
    if len(layers) > 1:
        name = f"{name} and {len(layers) - 1} more, their median"
    if square.share is None:
        return Shade("·", f"{name}: {layers[0].verdict}", None, anchor)
    least = "≤" if square.is_bound else ""
    text = f"{least}{100 * square.share:.0f}"
    return Shade(text, f"{name}: {layers[0].verdict}", round(10 * square.share), anchor)


def model_names(this: str, other: str) -> tuple[str, str]:
    """What the nets are called, without the folders they lie in unless these tell them apart."""
    parts = [(spoken(one),) if is_address(one) else PurePath(one).parts for one in (this, other)]
    same = parts[0][-1:] == parts[1][-1:]
    one, two = (named("/".join(part[-2:] if same else part[-1:])) for part in parts)
    return one or "this net", two or "another net"


def _clear(change: LayerChange) -> frozenset[str]:
    """The numbers that changed by more than chance gives."""
    numbers = {
        "random share": change.random_share,
        "rank": change.rank,
        "ratio": change.ratio,
        "excess": change.distance,
        "ks": change.ks,
    }
    return frozenset(name for name, one in numbers.items() if one is not None and one.clear)


def card(
    layer: LayerAudit,
    thresholds: Mapping[str, float],
    twin: LayerAudit | None = None,
    clear: frozenset[str] = frozenset(),
    at: int = 1,
) -> Card:
    """What the page says about one layer; `clear` are the numbers whose change gets a mark."""
    there = {} if twin is None else quantities(twin, thresholds)
    found = quantities(layer, thresholds)
    lines = {name: line(one, there.get(name), clear=name in clear) for name, one in found.items()}
    directions, more_directions = direction_table(layer)
    parts, tone = layer.parts, TONES[layer.verdict]
    share, distance = layer.random_share, None if parts is None else parts.distance
    return Card(
        at=at,
        layer=layer,
        twin=twin,
        tone=tone,
        sort={
            "verdict": ORDER.index(tone),
            "random": None if share is None else -share.value,
            "rank": None if parts is None else parts.rank,
            "ratio": None if layer.ratio is None else layer.ratio.value,
            "distance": None if distance is None else distance.excess,
            "size": layer.rows * layer.columns,
        },
        cells=() if layer.verdict == "not judged" else cells(Pair(layer, twin, lines)),
        lines=tuple(lines.values()),
        facts=(*_about_dead(layer), *_about_entries(layer.entries), *_about_parts(layer.parts)),
        directions=directions,
        more_directions=more_directions,
        reversal=reversal_table(layer.reversal, () if twin is None else twin.reversal),
    )


def _about_entries(entries: Entries | None) -> list[str]:
    if entries is None:
        return []
    part = "" if entries.used == entries.count else f"; {whole(entries.used)} of them in distances and fits"
    laws = list(entries.likelihoods.items())[:8]
    fits = ", ".join(f"{plain(law, 20)} {number(nats)}" for law, nats in laws if law != "normal")
    freedom = "" if entries.freedom is None else f" Student t: {number(entries.freedom)} degrees of freedom."
    facts = [
        f"{whole(entries.count)} entries{part}.",
        f"Best law: {plain(entries.best_law, 20)}. Log-likelihood an entry beyond the normal’s, in nats: "
        f"{fits}.{freedom}",
    ]
    if entries.distinct is not None:
        grid = "" if entries.step is None else f", on a grid of step {number(entries.step)}"
        facts.append(f"Only {whole(entries.distinct)} different values{grid}.")
    return facts


def _about_dead(layer: LayerAudit) -> list[str]:
    counts = ((layer.dead_rows, layer.rows, "rows"), (layer.dead_columns, layer.columns, "columns"))
    parts = [f"{whole(dead)} of {whole(of)} {name}" for dead, of, name in counts if dead]
    return [f"All zero, and left out of all numbers: {', '.join(parts)}."] if parts else []


def _about_parts(parts: Decomposition | None) -> list[str]:
    if parts is None or parts.random_share is None:
        return []
    share, signal = parts.random_share, parts.signal_share
    low, high = parts.rank_interval
    more = " or more" if parts.rank_is_bound else f" to {whole(high)}" if high > low else ""
    facts = [
        f"Directions of the signal: {whole(parts.rank)} (95{FIXED}% interval {whole(low)}{more}).",
        f"Random share: {_interval(share)} of the energy without the profile"
        + (f", signal {_interval(signal)}." if signal else "."),
    ]
    if parts.method == "krylov":
        facts.append(
            "Not all singular values were computed: the largest ones come from block Lanczos, the rest is a "
            "density. A few very small ones can be missed; --exact computes all of them."
        )
    if not parts.settled:
        facts.append("Profile and number of directions did not settle: take them as approximate.")
    if parts.heavy_tails:
        facts.append("Heavy-tailed or sparse entries: chances at the edges are upper bounds only.")
    return facts


def _interval(share: Interval) -> str:
    if share.is_bound:
        return f"at most {_percent(share.value)}"
    return f"{_percent(share.value)} ({_percent(share.low)} to {_percent(share.high)})"


def _percent(share: float) -> str:
    return f"{brief(round(100 * share, 1))}{FIXED}%"


def changes(comparison: Comparison) -> list[str]:
    """What differs between two nets, in sentences; from base to tuned."""
    both = len(comparison.layers)
    turns: dict[tuple[Verdict, Verdict], list[str]] = {}
    for one in comparison.layers:
        if one.verdict_before != one.verdict_after:
            turns.setdefault((one.verdict_before, one.verdict_after), []).append(one.name)
    changed = sum(map(len, turns.values()))
    if not both:
        said = ["No layer of tuned has the name of a layer of base, so no audits of layers can be compared."]
    elif not changed:
        said = [f"Layers that both have: {both}, each with the same verdict in tuned as in base."]
    else:
        said = [f"Of {both} layers that both have, {changed} got another verdict in tuned than in base."]
    said += [
        f"{old.capitalize()} in base, {new} in tuned: {_some(names)}." for (old, new), names in turns.items()
    ]
    shares = [one.random_share for one in comparison.layers if one.random_share and one.random_share.clear]
    if shares:
        more = sum(share.after > share.before for share in shares)
        said.append(
            f"From base to tuned the random share got clearly larger in {more} of them and clearly smaller "
            f"in {len(shares) - more}."
        )
    for side, alone in (("tuned", comparison.only_after), ("base", comparison.only_before)):
        if alone:
            said.append(f"Only in {side}: {_some(alone)}.")
    return said + [f"Beware: they were {plain(note)}." for note in comparison.notes]


def _some(names: Sequence[str]) -> str:
    return listed([named(name, "(no name)") for name in names], most=20)


MOST_SPARSITIES = 8


def direction_table(layer: LayerAudit) -> tuple[tuple[tuple[str, ...], ...], int]:
    """The first directions of the signal in words, and how many more there are."""
    if layer.parts is None:
        return (), 0
    directions, more = at_most(layer.parts.directions, 12)
    upper = layer.parts.upper
    rows = tuple(
        (
            number(one.value),
            number(one.value / upper) if upper > 0 else "—",
            number(one.strength),
            number(one.shrunk),
            p_value(one.p),
        )
        for one in directions
    )
    return rows, more


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
        rows["in base, error: layer"] = _of_other(other, lambda two: _spread(two.layer.error))
        rows["in base, layer ÷ shuffled"] = _of_other(other, lambda two: _spread(two.ratio))
        rows["in base, 95 % interval"] = _of_other(other, interval)
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
        _parts(pair),
        _spectrum(pair),
        _entries(pair),
        _quantiles(pair),
        _offsets(pair),
        _cosines(pair),
        _recovery(pair),
    )


def _entries(pair: Pair) -> Cell:
    if pair.this.entries is None:
        return Cell("Entries", None)
    there = None if pair.other is None else pair.other.entries
    svg = small.entry_histogram(pair.this.entries, there)
    return Cell("Entries", markup(svg), pair.keys(ks="KS distance", kurtosis="kurtosis"))


def _quantiles(pair: Pair) -> Cell:
    entries = pair.this.entries
    if entries is None:
        return Cell("Quantiles", None)
    there = None if pair.other is None else pair.other.entries
    best = Key("best law", plain(entries.best_law, 20), "" if there is None else plain(there.best_law, 20))
    svg = small.quantile_plot(entries, there)
    return Cell("Quantiles", markup(svg), (*pair.keys(skew="skew"), best))


def _offsets(pair: Pair) -> Cell:
    offsets = pair.this.offsets
    if offsets is None:
        return Cell("Biases", None, missing="none")
    there = None if pair.other is None else pair.other.offsets
    svg = small.offset_histogram(offsets, number(offsets.mean), there)
    return Cell(
        "Biases", markup(svg), pair.keys(offset_ratio="|mean| / std", near_mean=f"within ±10{FIXED}%")
    )


def _parts(pair: Pair) -> Cell:
    if pair.this.random_share is None:
        return Cell("Signal and bulk", None)
    keys = pair.keys(random_share="random share", signal_share="signal", profile_share="profile")
    return Cell("Signal and bulk", markup(small.parts_bar(pair.this, pair.other)), keys)


def _spectrum(pair: Pair) -> Cell:
    if pair.this.parts is None or not pair.this.values:
        return Cell("Singular values", None)
    keys = pair.keys(rank="directions", excess="bulk, off by")
    return Cell("Singular values", markup(small.spectrum_plot(pair.this, pair.other)), keys)


def _cosines(pair: Pair) -> Cell:
    if not pair.this.correlations:
        return Cell("Cosines", None)
    there = () if pair.other is None else pair.other.correlations
    svg = small.cosine_histogram(pair.this.correlations, there)
    return Cell("Cosines", markup(svg), pair.keys(rows_rms="rows, rms", columns_rms="columns, rms"))


def _recovery(pair: Pair) -> Cell:
    if not pair.this.reversal:
        return Cell("Recovery error", None)
    svg = recovery_bars(pair.this.reversal, () if pair.other is None else pair.other.reversal)
    here, there = pair.this.worst(), None if pair.other is None else pair.other.worst()
    keys = pair.keys(ratio="÷ shuffled")
    if here is not None:
        keys += (Key(f"95{FIXED}%", interval(here), "" if there is None else interval(there)),)
    return Cell("Recovery error", markup(svg), keys)


def audit_page(path: Path) -> str:
    """The page of an audit; an against.json beside it is the audit that it is compared with.

    A difference.json beside both says what changed in the weights.
    """
    folder = path if path.is_dir() else path.parent
    against, changed = folder / AGAINST, folder / DIFFERENCE
    if not against.is_file():
        return render_audit(read_audit(path))
    difference = read_difference(changed) if changed.is_file() else None
    return render_audit(read_audit(path), read_audit(against), difference)


RESULT = registry.register(
    ResultType(
        NAME,
        Audit,
        FORMAT,
        read_audit,
        audit_page,
        html="audit.html",
        rank=3,
        any_file=True,
        unfinished=RECORD,
    )
)
