"""Which outputs of a convolution saw an input, and the linear map from them back to it. Pure.

Inputs are taken in cells, one for each step of the stride: a cell sees every output that saw any of its
inputs, so that the map down is a convolution with one output channel for each channel and place in a cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import lcm, prod

import torch
from torch import Tensor
from torch.nn import functional as F

from ._reversal import Reach, Shape

_CONVOLVE = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}


@dataclass(frozen=True)
class View:
    """Cell q sees positions q·step + first + apart·k for k < count."""

    step: int
    first: int
    apart: int
    count: int


def views_of(reach: Reach, cell: Sequence[int]) -> list[View]:
    """Which outputs of a step a cell of its inputs sees, in each dimension."""
    found = []
    each = zip(cell, reach.kernel, reach.stride, reach.padding, reach.dilation, strict=True)
    for size, kernel, stride, pad, dilation in each:
        beyond = dilation * (kernel - 1)
        if reach.up:
            last = (size - 1) * stride - pad + beyond
            apart = dilation if size == 1 else 1
            found.append(View(size * stride, -pad, apart, (last + pad) // apart + 1))
        elif size == stride == 1:
            found.append(View(1, pad - beyond, dilation, kernel))
        else:
            first, last = -((beyond - pad) // stride), (size - 1 + pad) // stride
            found.append(View(size // stride, first, 1, last - first + 1))
    return found


def here(dimensions: int) -> Reach:
    """Every output at the place of its input."""
    ones = (1,) * dimensions
    return Reach(ones, ones, (0,) * dimensions, ones)


def cell_of(reaches: Sequence[Reach]) -> tuple[int, ...]:
    """The cell that every stride divides."""
    strides = [reach.stride for reach in reaches if not reach.up]
    dimensions = len(reaches[0].kernel)
    return tuple(lcm(1, *(stride[d] for stride in strides)) for d in range(dimensions))


def cells(size: Sequence[int], cell: Sequence[int]) -> tuple[int, ...]:
    """How many cells cover so many inputs."""
    return tuple(-(-length // side) for length, side in zip(size, cell, strict=True))


def look(features: Tensor, views: Sequence[View], image: Tensor, places: Tensor) -> Tensor:
    """What some cells see, as rows × taps × channels; zeros outside. `places` is rows × dimensions."""
    size = features.shape[2:]
    flat = features.flatten(2).mT.reshape(-1, features.shape[1])
    flat = torch.cat((flat, flat.new_zeros(1, flat.shape[1])))
    seen = flat.new_empty(len(image), prod(view.count for view in views), flat.shape[1])
    for tap, offsets in enumerate(product(*(range(view.count) for view in views))):
        index, inside = image.clone(), torch.ones_like(image, dtype=torch.bool)
        for dimension, (view, k) in enumerate(zip(views, offsets, strict=True)):
            at = places[:, dimension] * view.step + view.first + view.apart * k
            inside &= (at >= 0) & (at < size[dimension])
            index = index * size[dimension] + at
        seen[:, tap] = flat[torch.where(inside, index, len(flat) - 1)]
    return seen


def cut(x: Tensor, cell: Sequence[int], image: Tensor, places: Tensor) -> Tensor:
    """The inputs in some cells, as rows × places in the cell × channels; every cell has to be covered."""
    views = [View(side, 0, 1, side) for side in cell]
    return look(x, views, image, places)


def convolve(features: Tensor, weight: Tensor, views: Sequence[View], count: Sequence[int]) -> Tensor:
    """The map from what each of `count` cells sees; weight is out × channels/groups × taps, flat."""
    groups = features.shape[1] // weight.shape[1]
    for dimension, (view, cells_here) in enumerate(zip(views, count, strict=True), start=2):
        last = (cells_here - 1) * view.step + view.first + view.apart * (view.count - 1)
        sides = [0, 0] * (features.dim() - dimension - 1)
        features = F.pad(features, [*sides, -view.first, last + 1 - features.shape[dimension]])
    shaped = weight.unflatten(2, [view.count for view in views])
    steps, apart = ([getattr(view, name) for view in views] for name in ("step", "apart"))
    result: Tensor = _CONVOLVE[len(views)](features, shaped, None, steps, 0, apart, groups)
    return result


def join_cells(y: Tensor, cell: Sequence[int], groups: int, shape: Shape) -> Tensor:
    """From channels (group × place in the cell × channel) over cells to inputs of a shape."""
    dimensions = len(cell)
    y = y.unflatten(1, (groups, *cell, -1))
    # batch, group, *cell, channel, *cells → batch, group, channel, cells and cell of each dimension
    order = [0, 1, 2 + dimensions]
    for d in range(dimensions):
        order += [3 + dimensions + d, 2 + d]
    y = y.permute(order)
    whole = [y.shape[3 + 2 * d] * cell[d] for d in range(dimensions)]
    y = y.reshape(len(y), -1, *whole)
    for dimension, length in enumerate(shape[1:], start=2):
        y = y.narrow(dimension, 0, length)
    return y
