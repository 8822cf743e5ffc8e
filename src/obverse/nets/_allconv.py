"""The all-convolutional residual net of the identity paper (Hardt & Ma 2016). Not for training it.

Convolutions, one ReLU a block, and the identity: no batch norm, dropout, max pooling or bias. The last layer
is a random projection that stays as it is drawn. What a contest takes away or adds, the identity shortcuts
and batch norm, are switches here.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from itertools import pairwise
from math import isfinite
from typing import Any, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .._core import BadInput, Init

# Images of 224 × 224 pixels. This configuration is ours, and it is not trained here: what we know of the
# paper is its net for small images. A stem of stride 4 stands where others have stride 2 and a max pooling.
IMAGENET: dict[str, Any] = {
    "classes": 1000,
    "input_shape": (3, 224, 224),
    "widths": (64, 128, 256, 512),
    "blocks": 3,
    "stem": (64, 7, 4),
}


def plain_shortcut(x: Tensor, extra: int, stride: int) -> Tensor:
    """x at another shape, without weights: means of stride × stride pixels, zeros in `extra` new channels."""
    if stride > 1:  # an odd side's last window is the mean of what is there
        x = F.avg_pool2d(x, stride, ceil_mode=True)
    return F.pad(x, (0, 0, 0, 0, 0, extra)) if extra else x


class IdentityBlock(nn.Module):
    """x + C2(r(C1 x)), with `plain_shortcut` for x where shapes change; no ReLU after the sum.

    `norm` puts batch norm behind each convolution, so before the ReLU and before the sum; `shortcut=False`
    leaves the x out.
    """

    def __init__(
        self, channels: int, filters: int, stride: int = 1, *, norm: bool = False, shortcut: bool = True
    ) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, filters, 3, stride=stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(filters) if norm else nn.Identity()
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2d(filters, filters, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(filters) if norm else nn.Identity()
        self.shortcut = shortcut
        self.extra, self.stride = filters - channels, stride

    def forward(self, x: Tensor) -> Tensor:
        inner: Tensor = self.norm2(self.conv2(self.relu(self.norm1(self.conv1(x)))))
        return plain_shortcut(x, self.extra, self.stride) + inner if self.shortcut else inner


class Centre(nn.Module):
    """x − mean, one number a channel: a buffer, saved with the net, so that it takes pixels as they come."""

    mean: Tensor

    def __init__(self, mean: Sequence[float]) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean, dtype=torch.float32))

    def forward(self, x: Tensor) -> Tensor:
        return x - self.mean[:, None, None]


class FixedProjection(nn.Module):
    """A linear map without bias that is never trained: a buffer, saved with the net."""

    weight: Tensor

    def __init__(self, features: int, classes: int, generator: torch.Generator | None = None) -> None:
        super().__init__()
        drawn = torch.empty(classes, features).normal_(std=features**-0.5, generator=generator)
        self.register_buffer("weight", drawn)

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight)


def allconv_residual(
    classes: int,
    input_shape: Sequence[int] = (3, 32, 32),
    widths: Sequence[int] = (64, 128, 256),
    blocks: int = 9,
    *,
    stem: Sequence[int] = (16, 3, 1),
    norm: bool = False,
    shortcut: bool = True,
    init: Init = "identity",
    mean: Sequence[float] | None = None,
    generator: torch.Generator | None = None,
) -> nn.Sequential:
    """Stem, `blocks` identity blocks a width (each further width halves the image), mean, fixed projection.

    The defaults are the paper's net for CIFAR: 13,538,736 parameters in 55 convolutions. `IMAGENET` has the
    arguments for 224 × 224 pixels. Names: stem, stage1.0.conv1, …, output.

    Args:
        widths: channels of each stage; they do not shrink.
        stem: channels, kernel and stride of the first convolution, which no ReLU follows.
        norm: batch norm behind each convolution, the stem's too.
        shortcut: False leaves the identity out of every block.
        init: "identity", the paper's: N(0, σ²) with σ = 1/(k²c) for the convolutions of blocks, which starts
            them near zero, and 1/(k√c) for the stem; k is the kernel and c the number of output channels.
            "he" keeps the size of what passes: variance 2/fan_in behind a ReLU, 1/fan_in elsewhere. Without
            shortcuts the first one lets the signal vanish, so a fair contest has both.
        mean: subtracted from the channels of the input, if given.
        generator: makes the weights repeatable, the projection's too. Its entries are N(0, 1/features).
    """
    _check(classes, input_shape, widths, blocks, stem, init)
    modules: OrderedDict[str, nn.Module] = OrderedDict()
    if mean is not None:
        _check_mean(mean, input_shape[0])
        modules["centre"] = Centre(mean)
    channels, kernel, stride = stem
    modules["stem"] = nn.Conv2d(
        input_shape[0], channels, kernel, stride=stride, padding=kernel // 2, bias=False
    )
    if norm:
        modules["norm"] = nn.BatchNorm2d(channels)
    for stage, filters in enumerate(widths, start=1):
        row = nn.Sequential()
        for block in range(blocks):
            stride = 2 if stage > 1 and block == 0 else 1
            row.append(IdentityBlock(channels, filters, stride, norm=norm, shortcut=shortcut))
            channels = filters
        modules[f"stage{stage}"] = row
    modules["pool"] = nn.AdaptiveAvgPool2d(1)
    modules["flatten"] = nn.Flatten()
    modules["output"] = FixedProjection(channels, classes, generator)
    net = nn.Sequential(modules)
    for name, module in net.named_modules():
        if isinstance(module, nn.Conv2d):
            nn.init.normal_(module.weight, std=_std(name, module, init), generator=generator)
    return net


def _std(name: str, layer: nn.Conv2d, init: Init) -> float:
    kernel, filters = layer.kernel_size[0], layer.out_channels
    if init == "identity":
        return float(1 / (kernel * filters**0.5) if name == "stem" else 1 / (kernel**2 * filters))
    gain = 2 if name.endswith("conv2") else 1
    return float((gain / (kernel**2 * layer.in_channels)) ** 0.5)


def _check(
    classes: int,
    input_shape: Sequence[int],
    widths: Sequence[int],
    blocks: int,
    stem: Sequence[int],
    init: Init,
) -> None:
    sizes = {
        "classes": (classes,),
        "blocks": (blocks,),
        "stem": stem,
        "widths": widths,
        "input_shape": input_shape,
    }
    for name, given in sizes.items():
        if not isinstance(given, Sequence) or not all(isinstance(one, int) for one in given):
            raise BadInput(f"whole numbers for {name}", got=repr(given), do="correct it")
    if len(input_shape) != 3 or min(input_shape) < 1:
        raise BadInput(
            "images of shape channels × height × width",
            got=tuple(input_shape),
            do="use relu_mlp for what is no image",
        )
    if len(stem) != 3 or min(stem) < 1 or stem[1] % 2 == 0:
        raise BadInput("a stem of channels, odd kernel and stride", got=tuple(stem), do="e.g. (16, 3, 1)")
    if not widths or min(classes, blocks) < 1 or any(a > b for a, b in pairwise([stem[0], *widths])):
        raise BadInput(
            "at least one class, block and width, and widths that do not shrink from the stem on",
            got=f"classes={classes}, blocks={blocks}, stem {stem[0]}, widths={tuple(widths)}",
            do="check these",
        )
    if init not in get_args(Init):
        raise BadInput(f"init out of {', '.join(get_args(Init))}", got=repr(init), do="pass one of these")


def _check_mean(mean: Sequence[float], channels: int) -> None:
    if len(mean) != channels or not all(map(isfinite, mean)):
        raise BadInput(
            f"a finite mean for each of {channels} channels",
            got=tuple(mean),
            do="pass x.mean((0, 2, 3)).tolist()",
        )
