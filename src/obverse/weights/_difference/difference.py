"""`difference`: what changed from base to tuned, layer by layer, and whether they are of one lineage."""

from __future__ import annotations

import time
import zlib
from collections.abc import Collection
from pathlib import Path

import torch
from torch import Tensor, nn

from ..._core import BadInput, Progress, or_global, versions
from .._readers.open import WeightSource, open_weights
from .._readers.stored import Weight
from ..results import ALPHA
from .lineage import hidden_layers, lineage
from .matrices import compare
from .pairing import paired
from .results import Difference, LayerDifference


@torch.no_grad()
def difference(
    tuned: WeightSource,
    base: WeightSource,
    *,
    layers: Collection[str] | None = None,
    alpha: float = ALPHA,
    exact: bool | None = None,
    names: tuple[str, str] = ("", ""),
    generator: torch.Generator | None = None,
    progress: Progress | None = None,
) -> Difference:
    """What changed from base to tuned: nothing, rounding, a few directions, or everything?

    Both are modules, state dicts, paths, or what `open_weights` returns; layers are paired by name. Each pair
    is loaded, its difference taken apart with rounding as its null, and let go before the next. `layers`
    names those of tuned that are compared [all]; the test of lineage asks whichever it can. `alpha` is the
    chance of a false direction in a layer, and the level of the test of lineage. `exact` is that of
    `decompose`. `names` (of tuned and base) are for the result.
    """
    if not 0 < alpha < 1:
        raise BadInput("alpha between 0 and 1", got=alpha, do=f"{ALPHA:g} is the default")
    began = time.perf_counter()
    sides = open_weights(tuned), open_weights(base)
    seed = int(torch.randint(2**31, (1,), generator=or_global(generator)))
    found = paired(*sides)
    asked_for = [pair for pair in found.pairs if layers is None or pair[0].name in layers]
    compared = []
    for at, (one, other) in enumerate(asked_for):
        if progress:
            progress(at, len(asked_for), one.name)
        compared.append(_layer(one, other, alpha, exact, _generator(seed, one.name)))
    if progress:
        progress(len(asked_for), len(asked_for), "")
    by_name = {one.name: other for one, other in found.pairs}
    asked = [
        (one.name, one.load, by_name[one.name].load)
        for one in hidden_layers(sides[0])
        if one.name in by_name and _shape(by_name[one.name]) == _shape(one) and not one.left_out
    ]
    related = lineage(asked, alpha=alpha, generator=_generator(seed, "lineage"))
    return Difference(
        base=names[1] or _name(base),
        tuned=names[0] or _name(tuned),
        layers=tuple(compared),
        only_base=found.only_base if layers is None else (),
        only_tuned=tuple(name for name in found.only_tuned if layers is None or name in layers),
        notes=found.notes,
        lineage=related,
        settings={"seed": seed, "alpha": alpha, "exact": exact},
        versions=versions(),
        seconds=time.perf_counter() - began,
    )


def _layer(
    tuned: Weight, base: Weight, alpha: float, exact: bool | None, generator: torch.Generator
) -> LayerDifference:
    about = {
        "name": tuned.name,
        "base_name": base.name,
        "kind": tuned.kind,
        "rows": tuned.rows,
        "columns": tuned.columns,
        "base_rows": base.rows,
        "base_columns": base.columns,
    }
    for side, one in (("tuned", tuned), ("base", base)):
        if one.left_out:
            said = f"not comparable: {side} has {one.left_out}"
            return LayerDifference(**about, change="not comparable", sentence=said)  # type: ignore[arg-type]
    added = tuned.rows - base.rows
    if tuned.columns != base.columns or added < 0:
        said = (
            f"not comparable: {base.rows:,} × {base.columns:,} in base, "
            f"{tuned.rows:,} × {tuned.columns:,} in tuned"
        )
        return LayerDifference(**about, change="not comparable", sentence=said)  # type: ignore[arg-type]
    here, there = tuned.as_stored(), base.as_stored()
    stored = _format(there), _format(here)
    found = compare(here[: base.rows], there, alpha=alpha, exact=exact, generator=generator)
    said = found.sentence
    if added:
        more = "one row more" if added == 1 else f"{added:,} rows more"
        said = f"{more} than base; the first {base.rows:,}: {said}"
    return LayerDifference(
        **about,  # type: ignore[arg-type]
        change=found.change,
        sentence=said,
        stored=stored,
        added_rows=added,
        **found.numbers,
    )


def _shape(one: Weight) -> tuple[int, int]:
    return one.rows, one.columns


def _format(values: Tensor) -> str:
    return str(values.dtype).removeprefix("torch.")


def _generator(seed: int, name: str) -> torch.Generator:
    return torch.Generator().manual_seed(zlib.crc32(f"{seed}/{name}".encode()))


def _name(net: WeightSource) -> str:
    if isinstance(net, nn.Module):
        return type(net).__name__
    return Path(net).name if isinstance(net, Path | str) else "weights"
