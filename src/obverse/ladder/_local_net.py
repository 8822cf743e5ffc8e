"""The real net of `obverse ladder`: windows that fit the images, and its training. No flags."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from .._core import BATCHES, INITIAL, BadInput, derive_generator
from ..data import Dataset
from ..nets import LocalNet, Norm, local

BATCH = 100
AT_ONCE = 1000  # test images
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


def train_local(
    net: LocalNet,
    data: Dataset,
    *,
    epochs: int,
    lr: float,
    seed: int,
    on_step: Callable[[int, int, float], None] | None = None,
    on_record: Callable[[Mapping[str, Any]], None] | None = None,
) -> None:
    """Train by SGD with momentum on cross entropy. The callbacks are those of `training.fit`."""
    optimizer = torch.optim.SGD(net.parameters(), lr, momentum=MOMENTUM)
    total = epochs * -(-len(data.train_y) // BATCH)
    step = 0
    for epoch in range(epochs):
        order = torch.randperm(len(data.train_y), generator=derive_generator(seed, BATCHES, epoch))
        net.train()
        for rows in order.split(BATCH):
            loss = F.cross_entropy(net(data.train_x[rows]), data.train_y[rows])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            step += 1
            if not isfinite(loss.item()):
                raise BadInput(
                    "a training whose loss stays finite",
                    got=f"{loss.item()} at step {step} of {total}",
                    do=f"use a smaller --lr than {lr:g}",
                )
            if on_step:
                on_step(step, total, loss.item())
        if on_record:
            on_record({"epoch": epoch + 1, "test_error": test_error(net, data)})


@torch.no_grad()
def test_error(net: LocalNet, data: Dataset) -> float:
    net.eval()
    parts = zip(data.test_x.split(AT_ONCE), data.test_y.split(AT_ONCE), strict=True)
    wrong = sum(int((net(x).argmax(1) != y).sum()) for x, y in parts)
    return wrong / len(data.test_y)
