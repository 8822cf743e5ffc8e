"""The real net of `obverse ladder`: windows that fit the images, and its training as a Task. No flags."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from .._core.errors import BadInput
from .._core.random import BATCHES, INITIAL, derive_generator
from .._core.tensors import load_weights
from ..data import Dataset
from ..nets._local import LocalNet, Norm, local
from ..training._classify import EVALUATION_BATCH

BATCH = 100
MOMENTUM = 0.9
NODES = 8  # of a window of the first level, and twice as many in each further one
TOP = 3  # windows a side that the top may have below it


def fitting_windows(height: int, width: int) -> tuple[tuple[int, int], ...]:
    """(size, stride) of each level: 4 × 4 or 2 × 2 pixels, then 2 × 2 or overlapping 3 × 3 windows.

    >>> fitting_windows(28, 28)
    ((4, 4), (3, 2))
    """
    found: list[tuple[int, int]] = []
    sides = (height, width)
    while max(sides) > TOP or not found:
        if not found and min(sides) >= 12 and all(side % 4 == 0 for side in sides):
            size, stride = 4, 4
        elif all(side % 2 == 0 for side in sides):
            size, stride = 2, 2
        elif all(side % 2 == 1 and side >= 3 for side in sides):
            size, stride = 3, 2
        else:
            break
        found.append((size, stride))
        sides = ((sides[0] - size) // stride + 1, (sides[1] - size) // stride + 1)
    if not found:
        raise BadInput(
            "--windows for images whose sides are neither both even nor both odd",
            got=f"{height} × {width} pixels",
            do="give them, e.g. 2/1,2/2",
        )
    return tuple(found)


def initial_local(
    data: Dataset,
    windows: tuple[tuple[int, int], ...],
    nodes: tuple[int, ...],
    *,
    shared: bool,
    norm: Norm | None,
    seed: int,
) -> LocalNet:
    """The net that training starts from."""
    generator = derive_generator(seed, INITIAL)
    return local(
        data.input_shape, len(data.classes), windows, nodes, shared=shared, norm=norm, generator=generator
    )


@torch.no_grad()
def settle(net: LocalNet, images: Tensor) -> None:
    """Set the running averages of batch norm to those of these images, as training would have them."""
    norms = [level.norm for level in net.levels if level.norm is not None]
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # the average of all batches: there is one
    net.train()
    net(images)
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum


class LocalTask:
    """Trains a locally connected net by SGD with momentum on cross entropy: a Task for `fit`."""

    def __init__(self, net: LocalNet, data: Dataset, *, rate: float, seed: int) -> None:
        self.net, self.data, self.seed = net, data, seed
        self.optimizer = torch.optim.SGD(net.parameters(), rate, momentum=MOMENTUM)
        self._batches: tuple[int, tuple[Tensor, ...]] = (-1, ())

    @property
    def steps_per_epoch(self) -> int:
        return -(-len(self.data.train_y) // BATCH)

    def step(self, epoch: int, index: int) -> float:
        if self._batches[0] != epoch:
            generator = derive_generator(self.seed, BATCHES, epoch)
            order = torch.randperm(len(self.data.train_y), generator=generator)
            self._batches = (epoch, order.split(BATCH))
        rows = self._batches[1][index]
        self.net.train()
        loss = F.cross_entropy(self.net(self.data.train_x[rows]), self.data.train_y[rows])
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def evaluate(self) -> dict[str, Any]:
        self.net.eval()
        parts = zip(
            self.data.test_x.split(EVALUATION_BATCH), self.data.test_y.split(EVALUATION_BATCH), strict=True
        )
        wrong = sum(int((self.net(x).argmax(1) != y).sum()) for x, y in parts)
        return {"test_error": wrong / len(self.data.test_y)}

    def tensors(self) -> dict[str, Tensor]:
        return self.model()

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        load_weights(self.net, tensors, "the checkpoint")

    def model(self) -> dict[str, Tensor]:
        return dict(self.net.state_dict())
