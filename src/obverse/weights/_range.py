"""Whether numbers can be squared and summed in float32. Not for whether they are finite: see the readers."""

from __future__ import annotations

from torch import Tensor

# Squares of these, summed over 10⁸ entries, are far from where float32 ends (3·10³⁸) and begins (10⁻³⁸).
SMALLEST, LARGEST = 1e-15, 1e15


def out_of_range(matrix: Tensor, bias: Tensor | None) -> str | None:
    """Why a layer cannot be measured; None if it can. A bias may be as small as it likes: 0 is usual."""
    size = float(matrix.abs().max())
    if not SMALLEST <= size <= LARGEST:
        return _sentence("entry", size)
    if bias is not None and (size := float(bias.abs().max())) > LARGEST:
        return _sentence("bias", size)
    return None


def _sentence(what: str, size: float) -> str:
    return f"cannot be measured in float32: the largest {what} is {size:.2g}, not {SMALLEST:g} to {LARGEST:g}"
