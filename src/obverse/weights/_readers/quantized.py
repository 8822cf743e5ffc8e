"""Layouts of quantized weights: read where numbers and scales say all, else refused by name. Not for GGUF's.

What is read looks like any other weight from here on, as what its numbers and scales stand for. What is not
read is listed with the reason, and its scales and zero points are taken for no weights of their own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from .bitsandbytes import eight_bits, four_bits, state_of
from .scaled import scaled, scales_of
from .stored import Packed, Stored

_GPTQ = ("qzeros", "scales", "g_idx")
_COMPRESSED = ("weight_scale", "weight_zero_point", "weight_shape", "weight_g_idx", "weight_global_scale")
_HQQ = ("scale", "zero", "meta")
_BYTES, _WORDS = {"uint8", "u8"}, {"int32", "i32"}


def dequantized(tensors: Mapping[str, Stored], origin: str) -> dict[str, Stored | Packed]:
    """The same tensors; of quantized ones the weight as `Stored` or `Packed`, without what belongs to it."""
    result: dict[str, Stored | Packed] = dict(tensors)
    for name, stored in tensors.items():
        found, others = _weight(name, stored, tensors, origin)
        if found is not None:
            result[name] = found
            for other in others:
                result.pop(other, None)
    return result


def _weight(
    name: str, stored: Stored, tensors: Mapping[str, Stored], origin: str
) -> tuple[Stored | Packed | None, set[str]]:
    module, dot, last = name.rpartition(".")
    beside = module + dot
    if state := state_of(name, tensors):
        return four_bits(name, state, tensors, origin)
    if last == "weight" and stored.dtype in ("int8", "i8") and f"{beside}SCB" in tensors and stored.shape:
        return eight_bits(name, tensors)
    if scales := scales_of(name, tensors):
        return scaled(name, scales, tensors)
    if last == "qweight" and f"{beside}scales" in tensors and len(stored.shape) == 2:
        return _gptq(stored, beside, tensors), {beside + one for one in _GPTQ}
    if len(stored.shape) < 2:
        return None, set()
    if last == "weight_packed":
        return _compressed(stored, beside, tensors), {beside + one for one in _COMPRESSED}
    if last == "weight" and stored.dtype in _BYTES and f"{beside}weight_scale_2" in tensors:
        return _four(stored, "NVFP4", 16), {f"{beside}weight_scale", f"{beside}weight_scale_2"}
    if last.endswith("_blocks") and f"{name.removesuffix('_blocks')}_scales" in tensors:
        return _four(stored, "MXFP4", 32), {f"{name.removesuffix('_blocks')}_scales"}
    if last == "W_q" and f"{beside}scale" in tensors:
        return Packed(stored.shape, "HQQ: packed whole numbers"), {beside + one for one in _HQQ}
    if last == "_data" and f"{beside}_scale" in tensors:
        reason = "optimum-quanto: whole numbers with scales"
        return Packed(stored.shape, reason), {f"{beside}_scale", f"{beside}_shift"}
    return None, set()


def _gptq(stored: Stored, beside: str, tensors: Mapping[str, Stored]) -> Packed:
    """GPTQ packs along the inputs, AWQ along the outputs: the scales know how many outputs there are."""
    scales, places = tensors[f"{beside}scales"].shape, tensors.get(f"{beside}g_idx")
    rows, columns = stored.shape
    if stored.dtype not in _WORDS or len(scales) != 2:
        return Packed(stored.shape, "qweight and scales of a layout that is not known here")
    if columns != scales[1] and scales[1] % max(columns, 1) == 0:
        bits = 32 * columns // scales[1]
        return Packed((scales[1], rows), f"AWQ: {bits}-bit whole numbers packed into int32")
    inputs = math.prod(places.shape) if places is not None else 0
    bits = 32 * rows // inputs if inputs and 32 * rows % inputs == 0 else 0
    size = f"{bits}-bit whole" if bits else "whole"
    return Packed((columns, inputs or rows), f"GPTQ: {size} numbers packed into int32")


def _compressed(stored: Stored, beside: str, tensors: Mapping[str, Stored]) -> Packed:
    scale = tensors.get(f"{beside}weight_scale")
    if stored.dtype in _BYTES:
        powers = scale is not None and not scale.floating
        return _four(stored, "MXFP4" if powers else "NVFP4", 32 if powers else 16)
    return Packed(stored.shape, "compressed-tensors: whole numbers packed into int32")


def _four(stored: Stored, name: str, block: int) -> Packed:
    """Two numbers in a byte."""
    shape = (*stored.shape[:-1], 2 * stored.shape[-1])
    return Packed(shape, f"{name}: 4-bit floats packed into bytes, a scale for every {block} of them")
