"""Weights as bitsandbytes stores them: eight bits and a scale a row, or four bits in blocks. Not for others.

Four bits are places in a table of 16 numbers, two of them in a byte, the first one in its upper half; each
block of the flattened weight has a largest value. Those may be eight bits in blocks themselves ("nested").
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ..._core import BadInput, parse_json
from .stored import Packed, Stored, printable

_EIGHT = 127.0  # what the largest entry of a row is stored as
_STATE = ".quant_state.bitsandbytes__"
_PARTS = ("absmax", "quant_map", "nested_absmax", "nested_quant_map")
_TABLE, _NESTED_TABLE = 16, 256
_LONGEST_STATE = 4096  # bytes of JSON
_CHUNK = 2**20  # bytes that are unpacked at a time
_DO = "save the quantized model again"


def state_of(name: str, tensors: Mapping[str, Stored]) -> str | None:
    """The tensor that says how this one's four bits are packed."""
    return next(
        (f"{name}{_STATE}{kind}" for kind in ("nf4", "fp4") if f"{name}{_STATE}{kind}" in tensors), None
    )


def eight_bits(name: str, tensors: Mapping[str, Stored]) -> tuple[Stored | Packed, set[str]]:
    """int8 numbers with SCB, the largest entry of each row."""
    stored, module = tensors[name], name.removesuffix("weight")
    scale, form = tensors[f"{module}SCB"], tensors.get(f"{module}weight_format")
    taken = {f"{module}SCB", f"{module}weight_format"}
    rowwise = form is None or (
        form.dtype in ("uint8", "u8") and math.prod(form.shape) == 1 and not form.load().any()
    )
    if not rowwise or not scale.floating or math.prod(scale.shape) != stored.shape[0]:
        return Packed(stored.shape, "int8 numbers of bitsandbytes, not stored row by row"), taken

    def load() -> Tensor:
        by = scale.load().detach().float().reshape(-1, *(1 for _ in stored.shape[1:]))
        return stored.load().detach().float().mul_(by / _EIGHT)

    return Stored(stored.shape, "float32", load), taken


def four_bits(name: str, state: str, tensors: Mapping[str, Stored], origin: str) -> tuple[Stored, set[str]]:
    """What nf4 and fp4 stand for, every count checked before anything is unpacked."""
    where = f"{printable(name)} of {origin}"
    about = _read_state(tensors[state], where)
    shape, block = _sides(about.get("shape"), where), _length(about.get("blocksize"), where)
    count, parts = math.prod(shape), {part: tensors.get(f"{name}.{part}") for part in _PARTS}
    largest, table = _needed(parts, "absmax", where), _needed(parts, "quant_map", where)
    packed = tensors[name]
    room = math.prod(packed.shape) * _size(packed.dtype)
    blocks = -(-count // block)
    _equal(room, -(-count // 2), f"bytes of four-bit numbers in {where}")
    _equal(math.prod(largest.shape), blocks, f"values of absmax for {where}")
    _equal(math.prod(table.shape), _TABLE, f"values of quant_map for {where}")
    nested = parts["nested_absmax"]
    outer, offset = 1, 0.0
    if nested is not None:
        outer = _length(about.get("nested_blocksize"), where)
        offset = _number(about.get("nested_offset"), where)
        inner = _needed(parts, "nested_quant_map", where)
        _equal(math.prod(nested.shape), -(-blocks // outer), f"values of nested_absmax for {where}")
        _equal(math.prod(inner.shape), _NESTED_TABLE, f"values of nested_quant_map for {where}")

    def load() -> Tensor:
        scale = largest.load().detach().flatten()
        if nested is not None:
            values = _needed(parts, "nested_quant_map", where).load().float().flatten()
            by = nested.load().float().flatten().repeat_interleave(outer)[:blocks]
            scale = values[scale.view(torch.uint8).int()] * by + offset
        return _unpacked(
            packed.load().detach(), table.load().float().flatten(), scale.float(), block, count
        ).view(shape)

    return Stored(shape, "float32", load), {state, *(f"{name}.{part}" for part in _PARTS)}


def _unpacked(packed: Tensor, table: Tensor, scale: Tensor, block: int, count: int) -> Tensor:
    content = packed.contiguous().flatten().view(torch.uint8)
    values = torch.empty(2 * len(content))
    for start in range(0, len(content), _CHUNK):
        some = content[start : start + _CHUNK]
        places = torch.stack((some >> 4, some & 15), 1).flatten()
        values[2 * start : 2 * start + len(places)] = table[places.int()]
    values = values[:count]
    whole = count - count % block
    values[:whole].view(-1, block).mul_(scale[: whole // block, None])
    if whole < count:
        values[whole:].mul_(scale[-1])
    return values


def _read_state(stored: Stored, where: str) -> dict[str, Any]:
    length = math.prod(stored.shape)
    if stored.dtype not in ("uint8", "u8") or not 0 < length <= _LONGEST_STATE:
        raise BadInput(f"the quant_state of {where}: a few bytes", got=f"{length:,} {stored.dtype}", do=_DO)
    try:
        about = parse_json(bytes(stored.load().flatten().tolist()).decode())
    except (ValueError, RecursionError):
        about = None
    if not isinstance(about, dict):
        raise BadInput(f"JSON as the quant_state of {where}", got="something else", do=_DO)
    return about


def _needed(parts: Mapping[str, Stored | None], name: str, where: str) -> Stored:
    found = parts[name]
    if found is None:
        raise BadInput(f"{name} beside {where}", got="none", do=_DO)
    return found


def _equal(got: int, expected: int, what: str) -> None:
    if got != expected:
        raise BadInput(f"{expected:,} {what}", got=f"{got:,}", do=_DO)


def _sides(shape: object, where: str) -> tuple[int, ...]:
    if not isinstance(shape, list) or not 1 <= len(shape) <= 8 or not all(_is_count(one) for one in shape):
        raise BadInput(f"the shape of {where} in its quant_state", got=repr(shape)[:200], do=_DO)
    return tuple(shape)


def _length(value: object, where: str) -> int:
    if not isinstance(value, int) or not _is_count(value):
        raise BadInput(f"a block size for {where} in its quant_state", got=repr(value)[:200], do=_DO)
    return value


def _number(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise BadInput(f"nested_offset for {where} in its quant_state", got=repr(value)[:200], do=_DO)
    return float(value)


def _is_count(value: object) -> bool:
    return type(value) is int and 1 <= value < 2**48


def _size(dtype: str) -> int:
    """Bytes of one number; the four bits may be stored under the name of any type."""
    found = {"u8": torch.uint8, "i8": torch.int8}.get(dtype, getattr(torch, dtype, None))
    return found.itemsize if isinstance(found, torch.dtype) else 0
