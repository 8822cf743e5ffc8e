"""How a block moves its points and leaves the others: some points in a net of width 2, to be drawn."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import torch
from torch import Tensor

from .._core import Record
from ..nets import ResidualMemory
from ._memorize import NotMemorized, memorize

WALKED, CLASSES = 24, 10  # points and classes: more of them would look alike in an image
WALKS = 32  # nets to choose from
MOST_WALKED = 40  # points in a file

Point = tuple[float, float]


def _fits(walk: Walk) -> bool:
    count = len(walk.labels)
    return (
        1 <= count <= MOST_WALKED
        and len(walk.positions) == len(walk.moved) + 1 == len(walk.units) + 1 > 1
        and all(len(stage) == count for stage in walk.positions)
        and all(0 <= one < count for block in walk.moved for one in block)
        and all(len(block) <= count for block in walk.moved)
        and len(walk.moved) <= count
        and all(len(block) <= 2 for block in walk.units)
        and len(walk.classes) == len(walk.targets)
        and set(walk.labels) <= set(walk.classes)
        and len(walk.classes) <= count + 1
    )


@dataclass(frozen=True)
class Walk(Record):
    """Some of the points on their way through a net of width 2, built from these points alone.

    `positions[i]` is where they are after i blocks, `moved[i]` which of them block i moves. `units[i]` are
    the (u₁, u₂, s) of block i: a unit answers where u₁h₁ + u₂h₂ + s > 0.
    """

    labels: tuple[int, ...]
    classes: tuple[int, ...]  # the labels that occur, ascending
    targets: tuple[Point, ...]  # one a class
    positions: tuple[tuple[Point, ...], ...]
    moved: tuple[tuple[int, ...], ...]
    units: tuple[tuple[tuple[float, float, float], ...], ...]

    checks: ClassVar[Any] = (("blocks, points and classes that fit together", _fits),)


def walk(x: Tensor, y: Tensor, generator: torch.Generator) -> Walk | None:
    """Some points through a net of width 2: of several nets the one whose targets are easiest to see.

    None where none of them tells the points apart.
    """
    order = torch.randperm(len(x), generator=generator)
    kept = torch.tensor(list(dict.fromkeys(y[order].tolist()))[:CLASSES])
    chosen = order[torch.isin(y[order], kept)][:WALKED].sort().values
    x, y = x[chosen], y[chosen]
    present, index = y.unique(return_inverse=True)
    best: tuple[float, ResidualMemory] | None = None
    for _ in range(WALKS):
        try:
            net = memorize(x, index, width=2, generator=generator)
        except NotMemorized:
            continue
        norms = net.project(x).norm(dim=1)
        room = float(norms.min() / norms.max())  # targets are half as far from 0 as the nearest point
        if best is None or room > best[0]:
            best = room, net
    return None if best is None else _walked(best[1], x, y, present)


@torch.no_grad()
def _walked(net: ResidualMemory, x: Tensor, y: Tensor, present: Tensor) -> Walk:
    stages = [net.project(x)]
    for block in range(len(net.inner)):
        stages.append(net.block(stages[-1], block))
    moved = [(after != before).any(1).nonzero().squeeze(1) for before, after in pairwise(stages)]
    targets = net.head / net.head.square().sum(1).max()  # the head is q/radius²
    units = torch.cat([net.inner, net.shift.unsqueeze(2)], 2)
    used = net.inner.abs().sum(2) > 0  # the last block may be filled up with units of weight 0
    return Walk(
        labels=tuple(y.tolist()),
        classes=tuple(present.tolist()),
        targets=_points(targets[: len(present)]),
        positions=tuple(map(_points, stages)),
        moved=tuple(tuple(one.tolist()) for one in moved),
        units=tuple(
            tuple((a, b, s) for a, b, s in block[kept].tolist())
            for block, kept in zip(units, used, strict=True)
        ),
    )


def _points(z: Tensor) -> tuple[Point, ...]:
    return tuple((a, b) for a, b in z.tolist())
