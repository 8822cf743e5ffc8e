"""What `obverse audit --against` says of the weights themselves: a table of what changed, and the lineage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..._core import NONE, counted, listed
from ...present import Column, layer_progress, open_console, print_grid, say, select
from .._difference.results import UNCHANGED, Change, Difference, LayerDifference
from ..results import Audit
from ._subject import Subject

COLOURS: dict[Change, str] = {
    "identical": "dim",
    "nothing but rounding": "green",
    "directions": "cyan",
    "dense": "magenta",
    "cannot tell": "yellow",
    "not comparable": "yellow",
}
ALL_SAID = 10  # layers; of more the table alone
MOST_NAMED = 8


def measure_difference(
    tuned: Subject, base: Subject, *, pattern: str | None, seed: int, alpha: float, exact: bool | None
) -> Difference | None:
    """None where one of the two is an audit made before: it holds no weights."""
    if isinstance(tuned.net, Audit) or isinstance(base.net, Audit):
        return None
    import torch

    from .._difference.difference import difference
    from .._readers.open import open_weights

    weights = open_weights(tuned.net), open_weights(base.net)
    names = select([one.name for one in weights[0]], pattern) if pattern is not None else None
    with layer_progress(f"{Path(tuned.name).name} − {Path(base.name).name}") as progress:
        return difference(
            *weights,
            layers=names,
            alpha=alpha,
            exact=exact,
            names=(tuned.name, base.name),
            generator=torch.Generator().manual_seed(seed),
            progress=progress,
        )


def print_difference(found: Difference) -> None:
    """The summary first, the lineage, the table of what changed, and what is not in both."""
    console = open_console()
    say(console, f"from {found.base} to {found.tuned}")
    say(console, found.summary, "bold")
    say(console, found.lineage.sentence)
    for note in found.notes:
        say(console, f"note: {note}")
    shown = [layer for layer in found.layers if layer.change not in UNCHANGED]
    if len(shown) <= ALL_SAID:
        for layer in shown:
            say(console, f"{layer.name}: {layer.sentence}")
    if shown:
        print_grid(console, difference_columns(shown), "")
    if len(shown) > ALL_SAID:
        say(console, f"--out DIR writes a sentence about each of {counted(len(shown), 'layer')}")
    for side, names in (("base", found.only_base), ("tuned", found.only_tuned)):
        if names:
            say(console, f"only in {side}: {listed(list(names), MOST_NAMED)}")


def difference_columns(layers: Sequence[LayerDifference]) -> list[Column]:
    def column(title: str, cell: Callable[[LayerDifference], str], meaning: str = "", **look: Any) -> Column:
        return Column(title, tuple(map(cell, layers)), meaning, **look)

    return [
        column("layer", lambda one: one.name, left=True),
        column("shape", lambda one: f"{one.rows}×{one.columns}", drop=2),
        column("moved", _moved, "share of its numbers that changed", drop=3),
        column("size", _size, "norm of the change over that of base", drop=1),
        column("directions", _rank, "that stand out of the change"),
        column("share", _share, "of the energy of the change in them", drop=4),
        column(
            "from base to tuned",
            lambda one: one.change,
            left=True,
            styles=tuple(COLOURS.get(one.change, "") for one in layers),
        ),
    ]


def _moved(one: LayerDifference) -> str:
    if one.changed is None:
        return NONE
    share = one.changed / (one.base_rows * one.columns)
    if 0.995 <= share < 1:
        return ">99 %"
    return "<1 %" if 0 < share < 0.005 else f"{share:.0%}"


def _size(one: LayerDifference) -> str:
    return NONE if one.size is None else f"{one.size:.2g}"


def _rank(one: LayerDifference) -> str:
    if one.rank is None:
        return NONE
    return f"{'≥' if one.rank_is_bound else ''}{one.rank:,}"


def _share(one: LayerDifference) -> str:
    return NONE if one.share is None else f"{one.share:.0%}"
