"""The page of a difference: what changed from base to tuned, layer by layer. Not for measuring anything.

What a record says is untrusted text: it goes through the template's escaping, of bounded length.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath

from ..._core import FIXED, NONE, at_most, listed, named, number, pairs, plain, seconds, whole
from ...present import ResultType, registry, render_page
from ..results import LayerAudit
from .results import FORMAT, NAME, UNCHANGED, Difference, LayerDifference, read_difference

MOST = 1000
_NAMED = 20


@dataclass(frozen=True)
class Row:
    """A layer in words; `before` and `after` are of its audits, `anchor` leads to its card."""

    name: str
    shape: str
    moved: str
    size: str
    rank: str
    share: str
    change: str
    sentence: str
    before: str = ""
    after: str = ""
    anchor: int | None = None


def rows_of(
    found: Difference,
    base: Mapping[str, LayerAudit] | None = None,
    tuned: Mapping[str, tuple[int | None, LayerAudit]] | None = None,
) -> tuple[list[Row], int]:
    """The layers, those that changed before the others, and how many are not shown."""
    ordered = sorted(found.layers, key=lambda one: one.change in UNCHANGED)
    shown, more = at_most(ordered, MOST)
    return [_row(one, base or {}, tuned or {}) for one in shown], more


def _row(
    one: LayerDifference, base: Mapping[str, LayerAudit], tuned: Mapping[str, tuple[int | None, LayerAudit]]
) -> Row:
    anchor, after = tuned.get(one.name, (None, None))
    rank = NONE if one.rank is None else f"{'≥' if one.rank_is_bound else ''}{whole(one.rank)}"
    moved = None if one.changed is None else one.changed / max(1, one.base_rows * one.columns)
    return Row(
        name=named(one.name, "(no name)"),
        shape=f"{whole(one.rows)} × {whole(one.columns)}",
        moved=_percent(moved),
        size=NONE if one.size is None else number(one.size),
        rank=rank,
        share=_percent(one.share),
        change=one.change,
        sentence=plain(one.sentence.removeprefix(one.change).removeprefix(": "), 600),
        before=_audited(base.get(one.base_name)),
        after=_audited(after),
        anchor=anchor,
    )


def _percent(share: float | None) -> str:
    if share is None:
        return NONE
    if 0.999 < share < 1:
        return f"> 99.9{FIXED}%"
    return f"{100 * share:.1f}{FIXED}%" if share >= 0.001 or share == 0 else f"< 0.1{FIXED}%"


def _audited(layer: LayerAudit | None) -> str:
    if layer is None:
        return NONE
    share = layer.random_share
    if share is None:
        return layer.verdict
    return f"{'≤' if share.is_bound else ''}{100 * share.value:.0f}{FIXED}%, {layer.verdict}"


def sentence(text: str, most: int = 600) -> str:
    """As one that begins a paragraph."""
    return plain(f"{text[:1].upper()}{text[1:]}.", most)


def render_difference(found: Difference) -> str:
    """The page as text."""
    rows, more = rows_of(found)
    names = [PurePath(one).parts[-1:] for one in (found.tuned, found.base)]
    if names[0] == names[1]:
        names = [PurePath(one).parts[-2:] for one in (found.tuned, found.base)]
    return render_page(
        "weights/_difference/page.html.j2",
        names=[named("/".join(one), "a net") for one in names],
        summary=sentence(found.summary),
        lineage=sentence(found.lineage.sentence),
        notes=[sentence(note) for note in found.notes[:_NAMED]],
        rows=rows,
        more=more,
        only=[
            (side, listed([named(name, "(no name)") for name in alone], most=_NAMED) if alone else "")
            for side, alone in (("base", found.only_base), ("tuned", found.only_tuned))
        ],
        settings=pairs({"seconds": seconds(found.seconds), **found.settings}),
        versions=pairs(found.versions),
    )


def difference_page(path: Path) -> str:
    """The page of a directory, or of its difference.json."""
    return render_difference(read_difference(path))


RESULT = registry.register(
    ResultType(NAME, Difference, FORMAT, read_difference, difference_page, html="difference.html", rank=11)
)
