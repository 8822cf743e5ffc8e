"""What `obverse audit` prints: a table of layers, or of what changed in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from ..._core import NONE, at_most, listed
from ...present import Column, open_console, print_grid, say
from .._against import CLEAR, Change, Comparison, LayerChange
from .._blocks import Group, by_block, by_kind
from ..results import QUANTIZED, Audit, Decomposition, LayerAudit, Verdict, rows

COLOURS: dict[Verdict, str] = {
    "untouched": "green",
    "signal in a random bulk": "cyan",
    "mostly signal": "magenta",
    "structured otherwise": "red",
    "cannot tell": "yellow",
    "not judged": "dim",
}
SHORT: dict[Verdict, str] = {
    "untouched": "untouched",
    "signal in a random bulk": "signal",
    "mostly signal": "mostly signal",
    "structured otherwise": "structured",
    "cannot tell": "cannot tell",
    "not judged": "not judged",
}
CONSTANT = 1e6  # |mean| / std of offsets that are all the same but for rounding
NORMAL = "distance of the entries to a normal law"
LAW = "distance of the bulk to the distribution of random numbers, beyond the distance that these have"
SHARE = "share of the energy that is like random numbers"
RANK = "directions that carry the signal, of all there are"
ALL_SAID = 10  # layers; of more only the extremes get a sentence
MOST_SAID = 5  # of each kind of extreme
MOST_NAMED = 8  # layers that were not judged
MOST_REASONS = 5  # why numbers could not be read
RATIO = "recovery error ÷ that of the same entries shuffled, at the sparsity where it is surely largest"


BY: dict[str, Callable[[Audit], tuple[Group, ...]] | None] = {
    "layer": None,
    "block": by_block,
    "type": by_kind,
}


def print_audit(audit: Audit, by: str = "layer") -> None:
    """A sentence about each layer in which there is something to say, the table, the summary.

    Of many layers only the extremes get one; those that were not judged are named, but have no row. The table
    has one line a layer, or one a block, or one a kind of matrix.
    """
    groups = BY[by]
    console = open_console()
    for line in sentences(audit):
        say(console, line)
    judged = replace(audit, layers=tuple(one for one in audit.layers if one.verdict != "not judged"))
    if judged.layers and groups:
        print_grid(console, group_columns(groups(judged), by), "")
    elif judged.layers:
        print_grid(console, audit_columns(judged), "more than noise shows: what the verdict rests on")
    if left_out := [layer for layer in audit.layers if layer.verdict == "not judged"]:
        for line in _not_judged(left_out):
            say(console, line)
    say(console, audit.summary, "bold")
    if audit.family:
        say(console, audit.family)


def sentences(audit: Audit) -> list[str]:
    """What is said of single layers, in their order, and how many have a sentence elsewhere."""
    worth = [layer for layer in audit.layers if layer.verdict not in ("untouched", "not judged")]
    shown = worth
    if len(worth) > ALL_SAID:
        otherwise = [layer for layer in worth if layer.verdict == "structured otherwise"][:MOST_SAID]
        known = [one for one in worth if one.random_share and not one.random_share.is_bound]
        least = sorted(known, key=_share)[:MOST_SAID]
        shown = [layer for layer in worth if layer in otherwise or layer in least]
    lines = [f"{layer.name}: {layer.deciding}" for layer in shown]
    if more := len(worth) - len(shown):
        lines.append(
            f"{more:,} more layers show more than noise does: --out DIR writes a sentence about each"
        )
    return lines


def _share(layer: LayerAudit) -> float:
    return layer.random_share.value if layer.random_share else 1.0


def _not_judged(layers: Sequence[LayerAudit]) -> list[str]:
    """A line for each reason; the last word is how many more reasons there are."""
    reasons: dict[str, list[str]] = {}
    for layer in layers:
        said = layer.sentence.removeprefix("not judged: ")
        if layer.kind != QUANTIZED and layer.sentence.startswith("too small"):
            said = "too small"
        word = "left out" if layer.kind == QUANTIZED else "not judged"
        reasons.setdefault(f"{word}: {{}}: {said}", []).append(layer.name)
    if len(layers) == 1 and layers[0].kind != QUANTIZED:
        return [f"not judged: {layers[0].name}: {layers[0].sentence.removeprefix('not judged: ')}"]
    told, more = at_most(list(reasons.items()), MOST_REASONS)
    lines = [reason.replace("{}", listed(names, MOST_NAMED), 1) for reason, names in told]
    return [*lines, f"not judged: more, for {more:,} other reasons"] if more else lines


def print_comparison(comparison: Comparison) -> None:
    """The table of what changed, the layers that only one audit has, the summary."""
    console = open_console()
    say(console, f"the audits, from {comparison.before} to {comparison.after}")
    if comparison.layers:
        print_grid(console, comparison_columns(comparison), f"changed by more than {CLEAR:g} standard errors")
    for side, names in (("base", comparison.only_before), ("tuned", comparison.only_after)):
        if names:
            say(console, f"only in {side}: {', '.join(names)}")
    for note in comparison.notes:
        say(console, f"note: {note}")
    say(console, comparison.summary, "bold")


def audit_columns(audit: Audit) -> list[Column]:
    """All there is to show; `grid` leaves out what has no room."""
    table = rows(audit)
    share = SHARE + (
        ", ≤ where only a bound is known" if any(row["random_share_is_bound"] for row in table) else ""
    )
    rank = RANK
    if any(row["rank_is_bound"] for row in table):
        rank += ", ≥ where there may be more"
    if any(row["values_below"] for row in table):
        rank += ", −n where n singular values are smaller than those of random numbers"

    def column(
        title: str,
        cell: Callable[[dict[str, Any]], str],
        meaning: str = "",
        *,
        needs: str = "layer",
        **look: Any,
    ) -> Column:
        """`cell` of rows with a value in the column `needs`; marked where the verdict rests on it."""
        cells = tuple(NONE if row[needs] is None else cell(row) for row in table)
        marked = frozenset(
            at for at, layer in enumerate(audit.layers) if cells[at] != NONE and title in _basis(layer)
        )
        return Column(title, cells, meaning, marked, **look)

    return [
        column("layer", lambda row: str(row["layer"]), left=True),
        column("shape", lambda row: f"{row['rows']}×{row['columns']}", drop=1),
        column("random", _random, share, needs="random_share"),
        column(
            "95 %",
            lambda row: f"{100 * row['random_share_low']:.0f}–{row['random_share_high']:.0%}",
            "interval of that share",
            needs="random_share",
            drop=4,
        ),
        column("signal", _rank, rank, needs="rank"),
        column("bulk", _distance, LAW, needs="distance", drop=3),
        column(
            "law",
            lambda row: str(row["entries_best_law"]).removeprefix("Student "),
            "that fits the entries best",
            needs="entries_best_law",
            left=True,
            drop=7,
        ),
        column(
            "KS",
            lambda row: f"{row['entries_ks']:.3f}",
            NORMAL,
            needs="entries_ks",
            drop=5,
        ),
        column(
            "offsets",
            lambda row: _ratio(row["offsets_ratio"]),
            "|mean|/std of the biases",
            needs="offsets_ratio",
            drop=8,
        ),
        column(
            "norms",
            lambda row: f"{max(row['row_norms'], row['column_norms']):.2f}",
            "spread of the squared norms of rows or columns",
            needs="row_norms",
            drop=9,
        ),
        column(
            "cosine",
            _cosine,
            "between rows or columns, over chance",
            drop=10,
        ),
        column(
            "ratio",
            lambda row: _ratio(row["recovery_ratio"]),
            RATIO,
            needs="recovery_ratio",
            drop=2,
        ),
        column(
            "verdict",
            lambda row: str(row["verdict"]),
            left=True,
            styles=tuple(COLOURS[layer.verdict] for layer in audit.layers),
            stands_in=True,
        ),
    ]


def group_columns(groups: Sequence[Group], title: str) -> list[Column]:
    """One line a group of layers: its median random share and the range, its directions, its verdicts."""

    def column(
        title: str, cell: Callable[[Group], str], meaning: str = "", drop: int = 0, **look: Any
    ) -> Column:
        return Column(title, tuple(map(cell, groups)), meaning, drop=drop, **look)

    return [
        column(title, lambda group: group.name, left=True),
        column("layers", lambda group: f"{len(group.layers):,}"),
        column("random", _median, f"{SHARE}, the median of the layers where it is known"),
        column("known", lambda group: f"{len(group.shares):,}", "in so many layers", 3),
        column("from–to", _range, "smallest and largest of these", 2),
        column("signal", _directions, "directions that carry the signal, of all there are, summed", 1),
        column("verdicts", _verdicts, left=True, folded=True),
    ]


def _median(group: Group) -> str:
    return f"{median(group.shares):.0%}" if group.shares else NONE


def _range(group: Group) -> str:
    shares = group.shares
    return f"{100 * shares[0]:.0f}–{shares[-1]:.0%}" if len(shares) > 1 else NONE


def _directions(group: Group) -> str:
    parts = [one.parts for one in group.layers if one.parts is not None]
    least = "≥" if any(one.rank_is_bound for one in parts) else ""
    return f"{least}{sum(one.rank for one in parts):,}/{sum(map(_live_side, parts)):,}" if parts else NONE


def _live_side(parts: Decomposition) -> int:
    return min(parts.rows - parts.empty_rows, parts.columns - parts.empty_columns)


def _verdicts(group: Group) -> str:
    counts = Counter(SHORT[layer.verdict] for layer in group.layers)
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())


def _basis(layer: LayerAudit) -> set[str]:
    """The columns that the verdict rests on; itself, where that is a mean or blocks, which have none."""
    parts = layer.parts
    if not layer.off or parts is None:
        return set()
    found = {"signal"} if parts.rank or parts.below else set()
    distance = None if parts.distance is None else parts.distance.p
    if layer.verdict == "structured otherwise" and distance is not None and distance < parts.alpha:
        found.add("bulk")
    return found or {"verdict"}


def comparison_columns(comparison: Comparison) -> list[Column]:
    layers = comparison.layers

    def column(
        title: str, changes: list[Change | None], digits: int, meaning: str = "", drop: int = 0
    ) -> Column:
        cells = tuple(
            NONE if one is None else f"{one.before:.{digits}f} → {one.after:.{digits}f}" for one in changes
        )
        marked = frozenset(at for at, one in enumerate(changes) if one is not None and one.clear)
        return Column(title, cells, meaning, marked, drop)

    return [
        Column("layer", tuple(one.name for one in layers), left=True),
        Column(
            "verdict",
            tuple(_turn(one) for one in layers),
            left=True,
            styles=tuple(
                COLOURS[one.verdict_after] if one.verdict_before != one.verdict_after else ""
                for one in layers
            ),
        ),
        column("random", [one.random_share for one in layers], 2, "share of the energy"),
        column("signal", [one.rank for one in layers], 0, "directions"),
        column("ratio", [one.ratio for one in layers], 2, RATIO, drop=1),
        column("bulk", [one.distance for one in layers], 3, LAW, drop=2),
        column("KS", [one.ks for one in layers], 3, NORMAL, drop=3),
    ]


def _ratio(value: float) -> str:
    if value >= CONSTANT:
        return "∞"
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def _rank(row: dict[str, Any]) -> str:
    """Of how many, with ≥ where there may be more; and the number of values below the bulk."""
    size = min(row["rows"] - row["dead_rows"], row["columns"] - row["dead_columns"])
    least = "≥" if row["rank_is_bound"] else ""
    below = f" −{row['values_below']}" if row["values_below"] else ""
    return f"{least}{row['rank']}/{size}{below}"


def _random(row: dict[str, Any]) -> str:
    return f"{'≤' if row['random_share_is_bound'] else ''}{row['random_share']:.0%}"


def _distance(row: dict[str, Any]) -> str:
    """Beyond that of noise, as the sentences have it; with ≈ where it is that of an estimated density."""
    return f"{'≈' if row['method'] == 'krylov' else ''}{row['distance_excess']:.3f}"


def _cosine(row: dict[str, Any]) -> str:
    found = [row[name] for name in ("row_cosine_rms", "column_cosine_rms") if row[name] is not None]
    return f"{max(found):.2f}" if found else NONE


def _turn(one: LayerChange) -> str:
    if one.verdict_before == one.verdict_after:
        return SHORT[one.verdict_after]
    return f"{SHORT[one.verdict_before]} → {SHORT[one.verdict_after]}"
