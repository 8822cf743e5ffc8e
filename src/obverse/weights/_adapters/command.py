"""`obverse audit ADAPTER [--base MODEL]`: hands over from the audit's command. Not for measuring."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..._core import NONE, number, plain
from ...present import (
    Column,
    check_seed,
    deliver,
    layer_progress,
    make_folder,
    open_console,
    print_grid,
    say,
    select,
)
from .results import AdaptedLayer, AdapterAudit, OnBase
from .words import turn, uneven

ALL_SAID = 10  # layers; of more only the numbers are printed


def run_adapter(
    model: str, base: str | None, layers: str | None, *, seed: int | None, out: Path | None, as_json: bool
) -> None:
    """Measure, print, and write adapter.json and its page."""
    import torch

    from .._readers.open import settled
    from .audit import adapter_names, audit_adapter
    from .page import RESULT

    model = settled(model)  # of a hub's, the commit and the file
    seed = 0 if seed is None else seed
    check_seed(seed)
    wanted = None if layers is None else frozenset(select(list(adapter_names(model)), layers))
    make_folder(out)
    with layer_progress(Path(model).name) as progress:
        found = audit_adapter(
            model,
            base=base,
            names=wanted,
            model=model,
            base_name=base or "",
            generator=torch.Generator().manual_seed(seed),
            progress=progress,
        )
    deliver(found, RESULT, print_adapter, out=out, as_json=as_json)


def print_adapter(found: AdapterAudit) -> None:
    """A sentence a layer where they are few, the table, what is in no product, the summary."""
    console = open_console()
    if len(found.layers) <= ALL_SAID:
        for layer in found.layers:
            say(console, f"{layer.name}: {layer.sentence}")
    if found.layers:
        print_grid(console, adapter_columns(found), "random factors are not so uneven")
    for note in found.notes:
        say(console, f"note: {plain(note, 600)}")
    say(console, found.summary, "bold")


def adapter_columns(found: AdapterAudit) -> list[Column]:
    """All there is to show; `print_grid` leaves out what has no room."""
    layers = found.layers

    def column(
        title: str,
        cell: Callable[[AdaptedLayer], str | None],
        meaning: str = "",
        drop: int = 0,
        *,
        marked: frozenset[int] = frozenset(),
        left: bool = False,
    ) -> Column:
        cells = tuple(cell(layer) or NONE for layer in layers)
        return Column(title, cells, meaning, marked, drop, left)

    def beside(cell: Callable[[OnBase], str | None]) -> Callable[[AdaptedLayer], str | None]:
        return lambda layer: None if layer.on_base is None else cell(layer.on_base)

    marked = frozenset(at for at, layer in enumerate(layers) if layer.standing)
    return [
        column("layer", lambda layer: layer.name, left=True),
        column("shape", lambda layer: f"{layer.rows}×{layer.columns}", drop=4),
        column("rank", lambda layer: str(layer.rank), "at most, by construction"),
        column(
            "90 %",
            lambda layer: None if layer.for_90 is None else str(layer.for_90),
            "directions that carry so much of the update's energy",
        ),
        column("99 %", lambda layer: None if layer.for_99 is None else str(layer.for_99), drop=3),
        column(
            "effective",
            lambda layer: None if layer.effective_rank is None else f"{layer.effective_rank:.1f}",
            "rank by the entropy of the energy",
            5,
        ),
        column(
            "uneven",
            uneven,
            "directions that exceed the median one by more than random factors would have it",
            2,
            marked=marked,
        ),
        column("norm", lambda layer: number(layer.norm), "of the update", 1),
        column(
            "of base", beside(lambda one: f"{number(100 * one.relative)} %"), "norm ÷ that of the base layer"
        ),
        column(
            "above",
            beside(lambda one: None if one.above is None else str(one.above)),
            "directions strong enough to show in the base's bulk",
        ),
        column("signal", beside(turn), "directions of the base → of base + adapter"),
    ]
