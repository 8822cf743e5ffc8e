"""Is one matrix the other one rounded? And what of their difference rounding cannot have made.

Rounding is checked number by number, not by its statistics: where each number of the coarser matrix is the
nearest that its format (or grid) has to that of the finer one, there is nothing left to explain. Where that
fails, the coarser matrix minus the finer one rounded holds what is more than rounding. An update d far below
a step s changes a rounded number with the chance |d| / s only, and then by a whole step: the mean is still d,
with the variance |d| s − d², while the difference itself has s²/12 + d² of rounding in every entry.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from .grids import (
    Format,
    cut_off,
    format_of,
    nearest,
    rows_of_a_band,
    steps,
)
from .levels import on_grids_of

_PLENTY = 23  # bits of float32
SCALE_ERROR = 2.0**-10  # relative, of two levels: a scale stored in float16 is off by half of that


@dataclass(frozen=True)
class Rounded:
    """What rounding does to the difference of two matrices."""

    how: str  # "each number is that of base rounded to bfloat16"; empty where rounding does not explain all
    beyond: Tensor  # float64: from base to tuned, both on the coarser grid
    step: Tensor  # float64: how far rounding can have moved each entry, at most
    grid: str  # that of the coarser one: "bfloat16"
    one_side: bool  # the other one is finer
    fewer_bits: bool = True  # than float32, whose steps are far below any update
    quantized: str = ""  # the side whose numbers lie on few levels: "tuned"


def rounding(tuned: Tensor, base: Tensor) -> Rounded:
    """The two in the precision in which they are stored, of one shape, and not equal."""
    formats = format_of(tuned), format_of(base)
    found = None
    for fine, coarse, kind, names, sign in _ways(tuned, base, formats):
        found = _to_format(fine, coarse, kind, names, sign)
        if found.how:
            return found
    for fine, coarse, names, sign in (
        (base, tuned, ("base", "tuned"), 1.0),
        (tuned, base, ("tuned", "base"), -1.0),
    ):
        for grid in _to_grids(fine, coarse, names, sign):
            if grid.how:
                return grid
            if found is None or grid.beyond.square().sum() < found.beyond.square().sum():
                found = grid
    if found is not None:
        return found
    coarser = min(formats, key=lambda one: one.bits)
    largest = torch.maximum(tuned.double().abs(), base.double().abs())
    return Rounded(
        "",
        tuned.double() - base.double(),
        steps(largest, coarser),
        coarser.name,
        False,
        coarser.bits < _PLENTY,
    )


def rounded_to_a_format(tuned: Tensor, base: Tensor) -> str:
    """What `rounding` can say from a few rows at a time: how one is the other in a coarser format."""
    formats = format_of(tuned), format_of(base)
    for fine, coarse, kind, names, sign in _ways(tuned, base, formats):
        height = rows_of_a_band(base)
        said = {
            _to_format(some, other, kind, names, sign).how
            for some, other in zip(fine.split(height), coarse.split(height), strict=True)
        }
        if len(said) == 1:
            return said.pop()
    return ""


def _ways(
    tuned: Tensor, base: Tensor, formats: tuple[Format, Format]
) -> Iterator[tuple[Tensor, Tensor, Format, tuple[str, str], float]]:
    if formats[0].bits < formats[1].bits:
        yield base, tuned, formats[0], ("base", "tuned"), 1.0
    if formats[1].bits < formats[0].bits:
        yield tuned, base, formats[1], ("tuned", "base"), -1.0


def _to_format(fine: Tensor, coarse: Tensor, kind: Format, names: tuple[str, str], sign: float) -> Rounded:
    there, here, put = coarse.double(), fine.double(), nearest(fine, kind)
    step = steps(fine, kind)
    # a number half-way between two goes to either, by the rule that was followed
    as_near = ((there - here).abs() <= step / 2) | (put == there)
    how = ""
    if bool(as_near.all()):
        how = f"each number of {names[1]} is that of {names[0]} rounded to {kind.name}"
    elif bool((cut_off(fine, kind) == there).all()):
        how = f"each number of {names[1]} is that of {names[0]} cut off to {kind.name}"
    return Rounded(
        how,
        sign * torch.where(as_near, 0.0, there - put),
        step,
        kind.name,
        True,
        kind.bits < _PLENTY,
    )


def _to_grids(fine: Tensor, coarse: Tensor, names: tuple[str, str], sign: float) -> Iterator[Rounded]:
    """Levels have errors: of a scale in float16, and of the format. Those of two neighbours count."""
    stored = 2.0 ** -format_of(coarse).bits
    error = SCALE_ERROR + stored
    there, here = coarse.double(), fine.double()
    for grid in on_grids_of(coarse, fine, stored=stored, level=error):
        slack = grid.size * error
        as_near = (there - here).abs() <= (grid.rounded - here).abs() + slack
        how = f"each number of {names[1]}, on {grid.title}, is the one nearest to that of {names[0]}"
        beyond = torch.where(as_near, 0.0, there - grid.rounded)
        yield Rounded(
            how if bool(as_near.all()) else "",
            sign * beyond,
            grid.step + slack,
            grid.title,
            True,
            quantized=names[1],
        )
