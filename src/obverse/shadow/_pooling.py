"""Rules of pooling. Average pooling is linear: its adjoint. Maximum pooling has an exact reverse of its own.

The reverse of y is the greatest x whose pooled maxima are nowhere above y: each pixel gets the least of the
maxima of the windows it lies in. Pooling it gives back y, for every y that pooling can give. It needs no
record of where the maxima were: that would be the forward pass of x leaking into its shadow.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import inf, prod
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ._reversal import Form, Reach, Rule, Shape, adjoint, each_dimension, register_all


def spread_maximum(y: Tensor, size: Sequence[int], starts: list[list[int]], ends: list[list[int]]) -> Tensor:
    """x of spatial `size` from maxima y; windows by their first and last-plus-one pixel in each dimension.

    The windows of max pooling are boxes, so the least over all windows that hold a pixel is taken one
    dimension at a time. A pixel in no window is 0.
    """
    for dimension, (length, first, last) in enumerate(zip(size, starts, ends, strict=True)):
        y = _spread_one(y, y.dim() - len(size) + dimension, length, first, last)
    return y.masked_fill(y == inf, 0)


def _spread_one(y: Tensor, dimension: int, length: int, first: list[int], last: list[int]) -> Tensor:
    shape = list(y.shape)
    shape[dimension] = length
    x = y.new_full(shape, inf)
    for window, (begin, end) in enumerate(zip(first, last, strict=True)):
        part = x.narrow(dimension, begin, end - begin)
        torch.minimum(part, y.narrow(dimension, window, 1), out=part)
    return x


def reverse_max_pool(module: Any, h: Tensor, input_shape: Shape) -> Tensor:
    """The same for windows of one form, tap by tap; these may have holes (dilation)."""
    size = input_shape[1:]
    dimensions = len(size)
    kernel, stride, padding, dilation = (
        each_dimension(getattr(module, name), dimensions)
        for name in ("kernel_size", "stride", "padding", "dilation")
    )
    if kernel == stride and not any(padding) and all(step == 1 for step in dilation):
        return _side_by_side(h, size, kernel)
    x = h.new_full((*h.shape[:-dimensions], *size), inf)
    for tap in product(*map(range, kernel)):
        pixels: list[Any] = [...]
        windows: list[Any] = [...]
        for d, k in enumerate(tap):
            offset = k * dilation[d] - padding[d]
            low = max(0, -(offset // stride[d]))  # the first window whose tap lies inside
            high = min(h.shape[-dimensions + d], (size[d] - 1 - offset) // stride[d] + 1)
            count = max(0, high - low)
            begin = low * stride[d] + offset
            windows.append(slice(low, low + count))
            pixels.append(slice(begin, begin + count * stride[d], stride[d]) if count else slice(0, 0))
        part = x[tuple(pixels)]
        torch.minimum(part, h[tuple(windows)], out=part)
    return x.masked_fill_(x == inf, 0)


def _side_by_side(h: Tensor, size: Sequence[int], kernel: Sequence[int]) -> Tensor:
    """The same for windows that do not overlap: each maximum, repeated; zeros where none reaches."""
    rest: list[int] = []
    for dimension, (length, repeats) in enumerate(zip(size, kernel, strict=True), start=h.dim() - len(size)):
        h = h.repeat_interleave(repeats, dimension).narrow(
            dimension, 0, min(length, h.shape[dimension] * repeats)
        )
        rest = [0, length - h.shape[dimension], *rest]
    return F.pad(h, rest) if any(rest) else h


def reverse_adaptive_max(module: Any, h: Tensor, input_shape: Shape) -> Tensor:
    size = input_shape[1:]
    counts = h.shape[-len(size) :]
    starts = [[w * n // m for w in range(m)] for n, m in zip(size, counts, strict=True)]
    ends = [[-(-(w + 1) * n // m) for w in range(m)] for n, m in zip(size, counts, strict=True)]
    return spread_maximum(h, size, starts, ends)


def unpool_at(h: Tensor, positions: Tensor, input_shape: Shape) -> Tensor:
    """Each maximum put back where it stood (`switches`): for pictures, since the positions come from x."""
    flat = h.new_zeros(*h.shape[:2], *input_shape[1:]).flatten(2)
    flat.scatter_(2, positions.flatten(2), h.flatten(2))
    return flat.reshape(len(h), *input_shape)


MAX_POOLS = (nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d)
ADAPTIVE_MAX_POOLS = (nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d, nn.AdaptiveMaxPool3d)

register_all(MAX_POOLS, Rule(reverse=reverse_max_pool, exact=True))
register_all(ADAPTIVE_MAX_POOLS, Rule(reverse=reverse_adaptive_max, exact=True))


def collapsed(module: nn.Module, input_shape: Shape, output_shape: Shape) -> Form | None:
    """Where little of the input's size is left, every place has a fit of its own, on all that is left."""
    return "whole" if prod(input_shape) >= MUCH * prod(output_shape) else None


def mean_reach(module: Any, input_shape: Shape, output_shape: Shape) -> Form:
    """Average pooling: channel by channel; all of it where one place is left."""
    if all(size == 1 for size in output_shape[1:]):
        return "whole"
    kernel, stride, padding = (
        tuple(each_dimension(getattr(module, name), len(input_shape) - 1))
        for name in ("kernel_size", "stride", "padding")
    )
    return Reach(kernel, stride, padding, (1,) * len(kernel), groups=input_shape[0])


MUCH = 8  # times as many numbers before as after
_MEANS = (nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d)
_LINEAR = (
    nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d,
    nn.Upsample, nn.ConstantPad1d, nn.ConstantPad2d, nn.ConstantPad3d,  # zero padding is one of these
    nn.ReflectionPad1d, nn.ReflectionPad2d, nn.ReflectionPad3d, nn.ReplicationPad1d, nn.ReplicationPad2d,
    nn.ReplicationPad3d, nn.CircularPad1d, nn.CircularPad2d, nn.CircularPad3d,
)  # fmt: skip
register_all(_MEANS, Rule(reverse=adjoint, fitted=mean_reach))
register_all(_LINEAR, Rule(reverse=adjoint, fitted=collapsed))
