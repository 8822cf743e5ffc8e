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
from ._samples import Sample
from ._windows import cell_of, cells, convolve, join_cells, look, views_of


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
    features: Sequence[Tensor], reaches: Sequence[Reach], sample: Sample, targets: Tensor, held: Tensor
) -> tuple[Windows, Ridge]:
    """A tensor from features, with one reach each, on a sample of its rows; `held` marks inputs held out."""
    cell, groups, (image, places) = sample.cell, sample.groups, sample.cells
    image, places = image.to(held.device), places.to(held.device)
    views = [views_of(reach, cell) for reach in reaches]
    means = [one.mean([0, *range(2, one.dim())], keepdim=True) for one in features]
    taps = [prod(view.count for view in each) for each in views]
    columns = [
        look(one - mean, each, image, places).unflatten(2, (groups, -1)).movedim(2, 0).flatten(2)
        for one, mean, each in zip(features, means, views, strict=True)
    ]
    targets = targets.unflatten(2, (groups, -1)).movedim(2, 0).flatten(2)
    found = ridge(columns[0] if len(columns) == 1 else torch.cat(columns, 2), targets, held[image])
    whole = found.whole
    intercept = found.intercept - (found.mean[:, None] @ whole)[:, 0]
    weights = []
    for part, k in zip(whole.split([one.shape[2] for one in columns], 1), taps, strict=True):
        # group × (tap, channel) × target → (group, target) × channel × tap
        weights.append(part.unflatten(1, (k, -1)).permute(0, 3, 2, 1).flatten(0, 1).contiguous())
    flat = intercept.reshape(-1, *[1] * len(cell))
    shape = sample.shape
    return Windows(tuple(reaches), tuple(means), tuple(weights), flat, groups, shape), found


def fit_rows(features: Sequence[Tensor], sample: Sample, targets: Tensor, held: Tensor) -> tuple[Rows, Ridge]:
    """A tensor from features along the last dimension, or all of it from all of them."""
    whole = sample.layout == "whole"
    index = sample.index.to(held.device)
    columns = _flat(features, whole)
    columns = columns if len(columns) == len(index) else columns[index]
    found = ridge(columns[None], targets[None], held[sample.image.to(held.device)])
    return Rows(found, sample.shape, whole), found


def _flat(tensors: Sequence[Tensor], whole: bool) -> Tensor:
    parts = [one.flatten(1) if whole else one.reshape(-1, one.shape[-1]) for one in tensors]
    return parts[0] if len(parts) == 1 else torch.cat(parts, 1)
