"""The locally connected ReLU net: square windows over windows, and a top that sees the whole image.

Each window has weights of its own, or all of a level share them: then it is a small strided convolutional
net. Not for training it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .._core import BadInput

Norm = Literal["before", "after"]


@dataclass(frozen=True)
class Windows:
    """Where the windows of a level are, in units of the level below; the lowest looks at pixels."""

    size: int
    stride: int
    rows: int
    columns: int

    def covered(self, row: int, column: int) -> tuple[tuple[int, int], ...]:
        """(row, column) of everything below that the window looks at, row by row."""
        return tuple(
            (row * self.stride + down, column * self.stride + across)
            for down in range(self.size)
            for across in range(self.size)
        )


class Seen(NamedTuple):
    """What a level makes of a batch, inputs × nodes × rows × columns."""

    raw: Tensor  # the sums with the bias, before norm and ReLU
    active: Tensor  # what the level above gets


class LocalLevel(nn.Module):
    """One level: weighted sums over each window, bias, norm, ReLU.

    `weight` is windows × nodes × channels × size × size, with one slice for all windows where they share it;
    `bias` is windows × nodes alike. With windows of their own, each node has batch statistics of its own.
    """

    def __init__(
        self,
        channels: int,
        nodes: int,
        windows: Windows,
        *,
        shared: bool = False,
        bias: bool = True,
        norm: Norm | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.windows, self.nodes, self.shared, self.order = windows, nodes, shared, norm
        copies = 1 if shared else windows.rows * windows.columns
        fan_in = channels * windows.size**2
        start = torch.empty(copies, nodes, channels, windows.size, windows.size)
        self.weight = nn.Parameter(start.normal_(std=(2 / fan_in) ** 0.5, generator=generator))
        self.bias = nn.Parameter(torch.zeros(copies, nodes)) if bias else None
        self.norm = None if norm is None else nn.BatchNorm1d(copies * nodes)

    def forward(self, x: Tensor) -> Tensor:
        return self.seen(x).active

    def seen(self, x: Tensor) -> Seen:
        raw = self._sums(x)
        if self.order == "before":
            return Seen(raw, self._normed(raw).relu())
        return Seen(raw, self._normed(raw.relu()))

    def _sums(self, x: Tensor) -> Tensor:
        at = self.windows
        if self.shared:
            return F.conv2d(x, self.weight[0], None if self.bias is None else self.bias[0], stride=at.stride)
        patches = F.unfold(x, at.size, stride=at.stride).permute(2, 1, 0)  # windows × numbers × inputs
        sums = self.weight.flatten(2) @ patches  # windows × nodes × inputs
        if self.bias is not None:
            sums = sums + self.bias.unsqueeze(2)
        return sums.permute(2, 1, 0).reshape(len(x), self.nodes, at.rows, at.columns)

    def _normed(self, values: Tensor) -> Tensor:
        if self.norm is None:
            return values
        # Batch norm over inputs × (windows · nodes); shared: over all windows too, as of a feature map.
        flat = values.flatten(2)
        if self.shared:
            together: Tensor = self.norm(flat)
            return together.reshape(values.shape)
        apart: Tensor = self.norm(flat.mT.flatten(1))
        return apart.reshape(len(values), -1, self.nodes).mT.reshape(values.shape)

    def extra_repr(self) -> str:
        one = self.windows
        return (
            f"{one.rows}×{one.columns} windows of {one.size}×{one.size} every {one.stride}, "
            f"nodes={self.nodes}, shared={self.shared}, bias={self.bias is not None}, norm={self.order}"
        )


class LocalNet(nn.Module):
    """`stages`, one level above the other, and `output`, which sees all of the last one: the class scores."""

    def __init__(self, input_shape: Sequence[int], stages: Sequence[LocalLevel], output: nn.Linear) -> None:
        super().__init__()
        self.input_shape = tuple(input_shape)
        self.stages = nn.ModuleList(stages)
        self.output = output

    @property
    def levels(self) -> tuple[LocalLevel, ...]:
        """The levels from the pixels up, without the top."""
        return tuple(stage for stage in self.stages if isinstance(stage, LocalLevel))

    def seen(self, x: Tensor) -> list[Seen]:
        """What each level makes of a batch; the last one are the scores, inputs × classes × 1 × 1."""
        if x.shape[1:] != self.input_shape:
            raise BadInput(
                f"a batch of images of shape {self.input_shape}",
                got=f"a tensor of shape {tuple(x.shape)}",
                do="give it images like those it was made for",
            )
        found = []
        for stage in self.levels:
            found.append(stage.seen(x))
            x = found[-1].active
        scores = self.output(x.flatten(1))[..., None, None]
        return [*found, Seen(scores, scores)]

    def forward(self, x: Tensor) -> Tensor:
        return self.seen(x)[-1].active.flatten(1)


def local(
    input_shape: Sequence[int],
    classes: int,
    windows: Sequence[tuple[int, int]] = ((2, 2), (2, 2)),
    nodes: Sequence[int] = (8, 16),
    *,
    shared: bool = False,
    bias: bool = True,
    norm: Norm | None = None,
    generator: torch.Generator | None = None,
) -> LocalNet:
    """Levels of square windows with `nodes` ReLUs each, and a top region over all of the last one.

    Args:
        windows: (size, stride) of each level, in pixels for the lowest and in windows of the level below for
            the others; they overlap where the stride is smaller. They must cover all there is and no more.
        shared: the same weights in all windows of a level: a convolutional net without padding.
        norm: batch norm before or after the ReLU; None for none.
        generator: makes the weights repeatable: N(0, 2/fan_in), biases at 0.
    """
    channels, rows, columns = _image(input_shape)
    _check(classes, windows, nodes, norm)
    stages = []
    for level, ((size, stride), count) in enumerate(zip(windows, nodes, strict=True)):
        placed = _placed(level, size, stride, rows, columns)
        stages.append(
            LocalLevel(channels, count, placed, shared=shared, bias=bias, norm=norm, generator=generator)
        )
        channels, rows, columns = count, placed.rows, placed.columns
    output = nn.utils.skip_init(nn.Linear, channels * rows * columns, classes, bias=bias)
    assert isinstance(output, nn.Linear)
    nn.init.normal_(output.weight, std=(2 / output.in_features) ** 0.5, generator=generator)
    if bias:
        nn.init.zeros_(output.bias)
    return LocalNet(input_shape, stages, output)


def _placed(level: int, size: int, stride: int, rows: int, columns: int) -> Windows:
    if size > min(rows, columns) or (rows - size) % stride or (columns - size) % stride:
        what = "pixels" if level == 0 else f"windows of level {level - 1}"
        raise BadInput(
            f"windows of level {level} that cover all {rows} × {columns} {what} and no more",
            got=f"size {size}, stride {stride}",
            do="choose a size and a stride that divides the rest",
        )
    return Windows(size, stride, (rows - size) // stride + 1, (columns - size) // stride + 1)


def _image(input_shape: Sequence[int]) -> tuple[int, int, int]:
    if len(input_shape) != 3 or not all(type(side) is int and side >= 1 for side in input_shape):
        raise BadInput(
            "images of shape channels × height × width",
            got=tuple(input_shape),
            do="use relu_mlp for what is no image",
        )
    channels, height, width = input_shape
    return channels, height, width


def _check(classes: int, windows: Sequence[tuple[int, int]], nodes: Sequence[int], norm: str | None) -> None:
    if not windows or len(windows) != len(nodes):
        raise BadInput(
            "windows and a number of nodes for each of at least one level",
            got=f"windows for {len(windows)}, nodes for {len(nodes)}",
            do="give as many of both",
        )
    for one in windows:
        if len(one) != 2 or not all(type(part) is int for part in one) or not 1 <= one[1] <= one[0]:
            raise BadInput(
                "a size of each window and a stride from 1 to it", got=tuple(one), do="e.g. (4, 4) or (3, 2)"
            )
    if type(classes) is not int or not all(type(count) is int for count in nodes) or min(classes, *nodes) < 1:
        raise BadInput(
            "at least one class and one node a window",
            got=f"classes={classes}, nodes={tuple(nodes)}",
            do="correct these",
        )
    if norm is not None and norm not in get_args(Norm):
        raise BadInput(
            f"norm out of {', '.join(get_args(Norm))}, or None", got=repr(norm), do="pass one of these"
        )
