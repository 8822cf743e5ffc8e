"""What numbers and matrices of a ladder must be, said once. Not for what they mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from .._core import BadInput

SUM_TOLERANCE = 1e-9  # of probabilities that must sum to one: rounding of as many as 2^24 of them stays below


def whole(value: object, what: str, least: int, most: int) -> int:
    """A whole number between two others."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise BadInput(f"{what} between {least:,} and {most:,}", got=format_value(value), do="choose another")
    return value


def real(values: Any, what: str, shape: tuple[int, ...] | None = None) -> Tensor:
    """A finite tensor of float64, of this shape."""
    if not isinstance(values, Tensor) or values.dtype != torch.float64:
        got = values.dtype if isinstance(values, Tensor) else type(values).__name__
        raise BadInput(f"{what} as a tensor of float64", got=got, do="convert it: .double()")
    if shape is not None and tuple(values.shape) != shape:
        raise BadInput(f"{what} of shape {shape}", got=tuple(values.shape), do="correct it")
    if not bool(values.detach().isfinite().all()):
        raise BadInput(
            f"{what} without NaN or infinity", got="some", do="correct it; in training, lower the lr"
        )
    return values


def chances(values: Any, what: str) -> Tensor:
    """Numbers of at least 0 as float64: what becomes probabilities. Their sums are the caller's to check."""
    try:
        found = values if isinstance(values, Tensor) else torch.as_tensor(values, dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError):
        raise BadInput(f"{what} as a tensor", got=type(values).__name__, do="convert it") from None
    if found.is_complex() or found.dtype == torch.bool:
        raise BadInput(f"{what} as real numbers", got=found.dtype, do="convert it")
    found = found.to(torch.float64)
    if not bool((found >= 0).all()) or not bool(found.isfinite().all()):
        raise BadInput(f"{what}, none negative and all finite", got="others", do="correct them")
    return found


def named(given: object, names: tuple[str, ...], what: str) -> Mapping[str, Any]:
    """A mapping with exactly these names."""
    if not isinstance(given, Mapping) or set(given) != set(names):
        got = sorted(map(str, given))[:8] if isinstance(given, Mapping) else type(given).__name__
        raise BadInput(f"{what} of {', '.join(names[:8])}", got=got, do="name each region once")
    return given


def format_value(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 200:
        return f"a number of {value.bit_length():,} bits"
    return repr(value)[:60]
