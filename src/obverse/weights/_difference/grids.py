"""The numbers that a format can hold: steps, nearest numbers, grids of few levels. Not for differences.

A binary format with p bits after the leading one has the step 2^(⌊log₂|w|⌋ − p) at w; numbers below its
smallest exponent have that of the smallest. Quantized matrices lie on a few levels for each row, column,
block of a row, or for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor


@dataclass(frozen=True)
class Format:
    """A binary floating-point format."""

    name: str
    dtype: torch.dtype
    bits: int  # of the mantissa, after the leading one
    smallest: int  # exponent of a normal number


FORMATS = (  # the coarser ones first
    Format("float8_e5m2", torch.float8_e5m2, 2, -14),
    Format("float8_e5m2fnuz", torch.float8_e5m2fnuz, 2, -15),
    Format("float8_e4m3fn", torch.float8_e4m3fn, 3, -6),
    Format("float8_e4m3fnuz", torch.float8_e4m3fnuz, 3, -7),
    Format("bfloat16", torch.bfloat16, 7, -126),
    Format("float16", torch.float16, 10, -14),
    Format("float32", torch.float32, 23, -126),
    Format("float64", torch.float64, 52, -1022),
)
_BY_DTYPE = {one.dtype: one for one in FORMATS}
BAND = 2**22  # entries
PROBE = 4096  # entries looked at before all of them are
LEVELS = 256  # of a grid: eight bits
BLOCKS = (256, 128, 64, 32)
CROWDED = 0.75  # a grid has fewer levels in use than this share of its numbers
PROBED = 16  # rows of a grouping

Turn = Callable[[Tensor], Tensor]


def format_of(values: Tensor) -> Format:
    """The coarsest format that holds all these numbers: a file may keep bfloat16 numbers in float32."""
    stored = _BY_DTYPE[values.dtype]
    few = values.flatten()[:: max(1, values.numel() // PROBE)]
    for one in FORMATS:
        if one.bits >= stored.bits:
            break
        if _holds(one, few) and _holds(one, values):
            return one
    return stored


def _holds(one: Format, values: Tensor) -> bool:
    return all(
        bool((nearest(band, one) == band.double()).all()) for band in values.split(rows_of_a_band(values))
    )


def rows_of_a_band(values: Tensor) -> int:
    """So many rows at a time keep what is computed of them small beside the matrix."""
    return max(1, BAND // max(1, values[:1].numel()))


def nearest(values: Tensor, one: Format) -> Tensor:
    """Rounded to a format, ties to even, in float64; what is too large becomes its largest number."""
    most = torch.finfo(one.dtype).max
    return values.double().clamp(-most, most).to(one.dtype).double()


def cut_off(values: Tensor, one: Format) -> Tensor:
    """Rounded towards 0, as dropping the last bits does, in float64."""
    values = values.double()
    step = steps(values, one)
    return (values / step).trunc_().mul_(step)


def steps(values: Tensor, one: Format) -> Tensor:
    """The distance between neighbouring numbers of a format at these, in float64."""
    _, exponent = torch.frexp(values.double())  # |w| = m · 2^e with ½ ≤ m < 1
    exponent = torch.where(values == 0, one.smallest, exponent - 1).clamp_min_(one.smallest)
    return torch.ldexp(torch.ones(values.shape, dtype=torch.float64), exponent - one.bits)


@dataclass(frozen=True)
class OnGrid:
    """Numbers put on the levels that others use."""

    title: str  # "few levels for each row"
    rounded: Tensor  # float64
    step: Tensor  # float64: between the levels on either side


def on_grids_of(values: Tensor, other: Tensor, slack: float) -> Iterator[OnGrid]:
    """`other` on the levels of `values`, where these are few: in all, of each row, column or block of a row.

    `slack` is the relative error of the levels, which are stored in a format of their own.
    """
    for title, there, back in _groupings(values):
        grouped = there(values).double()
        few = grouped[:: max(1, len(grouped) // PROBED)][:PROBED]
        for is_grid, put in (
            (_few_levels, _on_levels),
            (_even_levels, _on_even_levels),
        ):
            if is_grid(few, slack) and is_grid(grouped, slack):
                rounded, step = put(grouped, there(other).double())
                yield OnGrid(title, back(rounded), back(step))


def _groupings(values: Tensor) -> Iterator[tuple[str, Turn, Turn]]:
    """Each as rows of numbers that share their levels, and back."""
    shape = values.shape
    columns = shape[1]

    def as_it_was(one: Tensor) -> Tensor:
        return one.reshape(shape)

    yield "few levels in all", lambda one: one.reshape(1, -1), as_it_was
    yield "few levels for each row", lambda one: one, as_it_was
    yield (
        "few levels for each column",
        lambda one: one.T.contiguous(),
        lambda one: one.T.contiguous(),
    )
    for block in BLOCKS:
        if columns % block == 0 and columns > block:
            yield (
                f"few levels for each {block} numbers of a row",
                partial(_in_blocks, block=block),
                as_it_was,
            )


def _in_blocks(values: Tensor, block: int) -> Tensor:
    return values.reshape(-1, block)


def _few_levels(grouped: Tensor, slack: float) -> bool:
    """Far fewer different numbers than numbers, and fewer than the format itself has between 1 and 2."""
    if grouped.shape[1] > PROBE and not _few_levels(grouped[:, :PROBE], slack):
        return False
    ordered = grouped.sort(1).values
    distinct = (ordered[:, 1:] > ordered[:, :-1]).sum(1) + 1
    return bool((distinct <= min(LEVELS, CROWDED * grouped.shape[1], 1 / (2 * slack))).all())


def _on_levels(levels: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """The nearest of each row's levels, and the distance between those on either side."""
    ordered = levels.sort(1).values
    at, last = torch.searchsorted(ordered, values.contiguous()), ordered.shape[1] - 1
    above, below = (
        ordered.gather(1, at.clamp(max=last)),
        ordered.gather(1, (at - 1).clamp(min=0)),
    )
    return torch.where(values - below < above - values, below, above), above - below


def _even_levels(grouped: Tensor, slack: float) -> bool:
    """Whole multiples of 1/127 of the largest: eight bits, one of them the sign."""
    if grouped.shape[1] < BLOCKS[-1]:
        return False
    step = _even_step(grouped)
    for part in (grouped[:, :PROBE], grouped):  # most are found out by a few
        times = part / step
        if not bool(((times - times.round()).abs() <= times.abs() * slack).all()):
            return False
    return True


def _on_even_levels(levels: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    step = _even_step(levels)
    return (values / step).round_().clamp_(-LEVELS // 2, LEVELS // 2).mul_(step), step.expand_as(values)


def _even_step(grouped: Tensor) -> Tensor:
    most = grouped.abs().amax(1, keepdim=True)
    return torch.where(most > 0, most, 1.0) / (LEVELS // 2 - 1)
