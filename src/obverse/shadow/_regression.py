"""A tensor of a net as a linear function of what comes down to it: fitted on some rows, applied to all. Pure.

Three forms. `Windows`: images, every cell from the positions that saw it. `Rows`: entries along the last
dimension, every row (a token, or an input of a flat net) from the rows at its place. `Whole`: all of one
input from all that comes down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from ._reversal import Reach, Shape
from ._ridge import Ridge, ridge
from ._windows import cell_of, cells, convolve, cut, join_cells, look, views_of

FEWEST, MOST = 1024, 8192  # rows of a fit, where there are so many
WORK = 4 * 10**9  # multiplications for the products of a fit, which decide between the two


@dataclass(frozen=True)
class Windows:
    """x of a shape from several features; `means` and `weights` have one tensor for each of them."""

    reaches: tuple[Reach, ...]
    means: tuple[Tensor, ...]
    weights: tuple[Tensor, ...]
    intercept: Tensor
    groups: int
    shape: Shape

    def __call__(self, features: Sequence[Tensor]) -> Tensor:
        cell = cell_of(self.reaches)
        count = cells(self.shape[1:], cell)
        total = self.intercept
        for one, reach, mean, weight in zip(features, self.reaches, self.means, self.weights, strict=True):
            total = total + convolve(one - mean, weight, views_of(reach, cell), count)
        return join_cells(total, cell, self.groups, self.shape)

    @property
    def size(self) -> int:
        return sum(weight.numel() * weight.element_size() for weight in self.weights)


@dataclass(frozen=True)
class Rows:
    """Along the last dimension, or of everything at once (`whole`)."""

    fit: Ridge
    shape: Shape
    whole: bool = False

    def __call__(self, features: Sequence[Tensor]) -> Tensor:
        found = self.fit(_flat(features, self.whole)[None])[0]
        return found.reshape(len(features[0]), *self.shape)

    @property
    def size(self) -> int:
        return self.fit.size


def fit_windows(
    features: Sequence[Tensor], reaches: Sequence[Reach], x: Tensor, held: Tensor
) -> tuple[Windows, Ridge]:
    """x (N × channels × …) from features, with one reach each; `held` marks the inputs that are held out."""
    shape = tuple(x.shape[1:])
    cell = cell_of(reaches)
    count = cells(shape[1:], cell)
    groups = reaches[0].groups if len(reaches) == 1 else 1
    views = [views_of(reach, cell) for reach in reaches]
    means = [one.mean([0, *range(2, one.dim())], keepdim=True) for one in features]
    taps = [prod(view.count for view in each) for each in views]
    width = sum(one.shape[1] * k for one, k in zip(features, taps, strict=True)) // groups
    image, places = _some_cells(len(x), shape[1:], cell, affordable(width * groups), x.device)
    columns = [
        look(one - mean, each, image, places).unflatten(2, (groups, -1)).movedim(2, 0).flatten(2)
        for one, mean, each in zip(features, means, views, strict=True)
    ]
    targets = cut(_padded(x, cell, count), cell, image, places)
    targets = targets.unflatten(2, (groups, -1)).movedim(2, 0).flatten(2)
    found = ridge(torch.cat(columns, 2), targets, held[image])
    whole = found.whole
    intercept = found.intercept - (found.mean[:, None] @ whole)[:, 0]
    weights = []
    for part, k in zip(whole.split([one.shape[2] for one in columns], 1), taps, strict=True):
        # group × (tap, channel) × target → (group, target) × channel × tap
        weights.append(part.unflatten(1, (k, -1)).permute(0, 3, 2, 1).flatten(0, 1).contiguous())
    flat = intercept.reshape(-1, *[1] * len(cell))
    return Windows(tuple(reaches), tuple(means), tuple(weights), flat, groups, shape), found


def fit_rows(features: Sequence[Tensor], x: Tensor, held: Tensor, whole: bool = False) -> tuple[Rows, Ridge]:
    """x from features along the last dimension, or all of x from all of them."""
    columns, targets = _flat(features, whole), _flat([x], whole)
    each = len(targets) // len(x)
    most = affordable(columns.shape[1])
    held = held.repeat_interleave(each)
    if len(targets) > most:
        generator = torch.Generator().manual_seed(0)
        chosen = torch.randperm(len(targets), generator=generator)[:most].to(x.device)
        columns, targets, held = columns[chosen], targets[chosen], held[chosen]
    found = ridge(columns[None], targets[None], held)
    return Rows(found, tuple(x.shape[1:]), whole), found


def affordable(width: int) -> int:
    """How many rows a fit of so many features takes, at most: moments cost rows · width², products of rows
    rows² · width, and the less is done."""
    rows = WORK // width**2 if width**3 <= WORK else int((WORK / width) ** 0.5)
    return max(FEWEST, min(MOST, rows))


def _flat(tensors: Sequence[Tensor], whole: bool) -> Tensor:
    parts = [one.flatten(1) if whole else one.reshape(-1, one.shape[-1]) for one in tensors]
    return parts[0] if len(parts) == 1 else torch.cat(parts, 1)


def _some_cells(
    images: int, size: Sequence[int], cell: Sequence[int], most: int, device: torch.device
) -> tuple[Tensor, Tensor]:
    """(image, place) of so many cells, without those that the border cuts where there are others."""
    inside = [max(1, length // side) for length, side in zip(size, cell, strict=True)]
    total = images * prod(inside)
    generator = torch.Generator().manual_seed(0)
    index = torch.arange(total) if total <= most else torch.randperm(total, generator=generator)[:most]
    places = []
    for length in reversed(inside):
        places.append(index % length)
        index = index // length
    return index.to(device), torch.stack(places[::-1], 1).to(device)


def _padded(x: Tensor, cell: Sequence[int], count: Sequence[int]) -> Tensor:
    """x with its border repeated up to whole cells; what is beyond is cut off again."""
    for dimension, (side, number) in enumerate(zip(cell, count, strict=True), start=2):
        length = x.shape[dimension]
        if side * number > length:
            places = torch.arange(side * number, device=x.device).clamp(max=length - 1)
            x = x.index_select(dimension, places)
    return x
