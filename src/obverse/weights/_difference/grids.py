"""The numbers that a floating-point format can hold: steps and nearest numbers. Not for differences.

A binary format with p bits after the leading one has the step 2^(⌊log₂|w|⌋ − p) at w; numbers below its
smallest exponent have that of the smallest.
"""

from __future__ import annotations

from dataclasses import dataclass

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
