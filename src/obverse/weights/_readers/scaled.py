"""Numbers of eight bits times their scales: one per tensor, row, column or block. Not for packed ones.

Which entries a scale belongs to follows from the two shapes: side a of the scales divides side m of the
weight into blocks of one length, a power of two unless they are single lines or all of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from torch import Tensor

from ..._core import shape as spelled
from .stored import Packed, Stored, printable

_WHOLE = {"int8", "i8"}
_SMALL = {"float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"}
_POWERS = {"uint8", "u8", "f8_e8m0", "float8_e8m0fnu"}  # exponents in place of scales


def scales_of(name: str, tensors: Mapping[str, Stored]) -> str | None:
    """The tensor that has the scales of this one: as DeepSeek, compressed-tensors or ComfyUI call it."""
    stored = tensors[name]
    if stored.dtype not in _SMALL | _WHOLE or len(stored.shape) < 2:
        return None
    usual = (f"{name}_scale_inv", f"{name}_scale", f"{name.removesuffix('weight')}scale_weight")
    return next((one for one in usual if one != name and one in tensors), None)


def scaled(name: str, scales: str, tensors: Mapping[str, Stored]) -> tuple[Stored | Packed, set[str]]:
    """The weight itself, or why it cannot be read; and the other tensors that it took."""
    stored, by, zeros = tensors[name], tensors[scales], tensors.get(f"{name}_zero_point")
    taken = {scales} | ({f"{name}_zero_point"} if zeros else set())
    sides = blocks(stored.shape, by.shape)
    what = f"{stored.dtype if stored.dtype not in _WHOLE else 'int8'} numbers"
    if by.dtype in _POWERS:
        return Packed(stored.shape, f"{what} in blocks with powers of two for scales (MX formats)"), taken
    if not by.floating or sides is None or (zeros and (zeros.shape != by.shape or zeros.floating)):
        fault = f"{printable(scales.rpartition('.')[2])} of shape {spelled(by.shape)} ({printable(by.dtype)})"
        reason = f"{what} of shape {spelled(stored.shape)} whose scales are not clear: {fault}"
        return Packed(stored.shape, reason), taken

    def load() -> Tensor:
        values = stored.load().detach().float()
        if zeros is not None:
            values = _by_blocks(values, zeros.load().detach().float(), sides, subtract=True)
        return _by_blocks(values, by.load().detach().float(), sides)

    identity = None if None in (stored.identity, by.identity) else (stored.identity, by.identity)
    return Stored(stored.shape, "float32", load, identity), taken


def blocks(shape: tuple[int, ...], scales: tuple[int, ...]) -> tuple[int, ...] | None:
    """The sides of the blocks that share a scale, or None where the shapes do not say."""
    if math.prod(scales) == 1:
        return shape
    if len(scales) == 1 and len(shape) == 2:
        rows, columns = shape
        return (1, columns) if scales[0] == rows != columns else None
    if len(scales) != len(shape):
        return None
    sides = tuple(_block(side, count) for side, count in zip(shape, scales, strict=True))
    return sides if all(sides) else None


def _block(side: int, count: int) -> int:
    """How long each of `count` blocks of a side is (the last may be shorter); 0 where that is not clear."""
    if count == 1:
        return side
    if count == side or not 0 < count < side:
        return int(count == side)
    power = 1 << (-(-side // count) - 1).bit_length()
    return power if -(-side // power) == count else 0


def _by_blocks(values: Tensor, scales: Tensor, sides: tuple[int, ...], subtract: bool = False) -> Tensor:
    """`values` times the scale of each one's block, or minus its zero point; in place, by bands of rows."""
    scales = scales.reshape([-(-side // block) for side, block in zip(values.shape, sides, strict=True)])
    rows = values.ndim - 2
    for dim, (side, block) in enumerate(zip(values.shape, sides, strict=True)):
        if dim != rows and block not in (1, side):
            scales = scales.repeat_interleave(block, dim).narrow(dim, 0, side)
    bands = [values] if sides[rows] in (1, values.shape[rows]) else values.split(sides[rows], rows)
    for at, band in enumerate(bands):
        own = scales if len(bands) == 1 else scales.narrow(rows, at, 1)
        if subtract:
            band.sub_(own)
        else:
            band.mul_(own)
    return values
