"""Changes that are seen without taking them apart: how much, where, by a factor, in another order."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from .grids import rows_of_a_band
from .rounding import Rounded

FEW_LINES = 0.1  # of the rows or columns, and fewer: a change in a few of them


def counts(tuned: Tensor, base: Tensor) -> dict[str, Any]:
    """What differs, and by how much; a band of rows at a time."""
    entries = rows = 0
    columns = torch.zeros(base.shape[1], dtype=torch.bool)
    energy = length = 0.0
    height = rows_of_a_band(base)
    for here, there in zip(tuned.split(height), base.split(height), strict=True):
        before = there.double()
        moved = here.double() - before
        other = moved != 0
        entries += int(other.sum())
        rows += int(other.any(1).sum())
        columns |= other.any(0)
        energy += float(moved.square_().sum())
        length += float(before.square().sum())  # not in place: it may be base itself
    return {
        "changed": entries,
        "changed_rows": rows,
        "changed_columns": int(columns.sum()),
        "size": math.sqrt(energy / length) if length else None,
    }


def scaled(tuned: Tensor, base: Tensor, rounded: Rounded) -> float | None:
    """The factor by which all of base was multiplied, up to a step of the coarser format."""
    here, there = tuned.double(), base.double()
    energy = float((there * there).sum())
    if energy == 0:
        return None
    factor = float((here * there).sum()) / energy
    if factor == 0:
        return None
    rest = (here - factor * there).abs_()
    wide = rounded.step * max(1.0, abs(factor))
    small = (
        wide.square().sum() * 2**10 < (here - there).square().sum()
    )  # a step is too coarse to tell otherwise
    return factor if bool(small) and bool((rest <= wide).all()) else None


def reordered(tuned: Tensor, base: Tensor) -> int | None:
    """How many rows stay where they are, if all are the same rows."""
    rows, columns = base.shape
    if rows < 2:
        return None
    weights = torch.rand(columns, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    here, there = tuned.double() @ weights, base.double() @ weights
    if not torch.allclose(here.sort().values, there.sort().values, rtol=1e-9, atol=0):
        return None
    ways = here.argsort(), there.argsort()
    if not bool((tuned[ways[0]].double() == base[ways[1]].double()).all()):
        return None
    return int((ways[0] == ways[1]).sum())


def lines(rows: int, columns: int, change: Tensor) -> str:
    """Where a change lies that is in few rows, or few columns, only."""
    sides = ((rows, change.shape[0], "row"), (columns, change.shape[1], "column"))
    for found, of, name in sorted(sides, key=lambda side: side[0] / side[1]):
        if found <= FEW_LINES * of:
            return f"all in {found:,} of {of:,} {name}s"
    return ""
