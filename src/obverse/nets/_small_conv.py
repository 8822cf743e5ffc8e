"""Two small image nets of the usual parts, to have something real to point the instruments at."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from .._core import BadInput
from ._dropout import SampleDropout


def small_cnn(
    input_shape: Sequence[int],
    classes: int,
    widths: Sequence[int] = (16, 32, 64),
    *,
    dropout: float = 0.0,
    generator: torch.Generator | None = None,
) -> nn.Sequential:
    """(3×3 convolution → ReLU → 2×2 max pooling) for each width, then one linear layer; no norm.

    The convolutions carry the names conv1, conv2, …, the linear layer is `output`. `dropout` stands before
    the output. Weights start Gaussian, N(0, 2/fan_in), biases at 0.
    """
    channels, height, width = _image(input_shape, 2 ** len(widths))
    modules: OrderedDict[str, nn.Module] = OrderedDict()
    for depth, filters in enumerate(widths, start=1):
        modules[f"conv{depth}"] = nn.Conv2d(channels, filters, 3, padding=1)
        modules[f"relu{depth}"] = nn.ReLU()
        modules[f"pool{depth}"] = nn.MaxPool2d(2)
        channels, height, width = filters, height // 2, width // 2
    modules["flatten"] = nn.Flatten()
    if dropout > 0:
        modules["dropout"] = SampleDropout(dropout)
    modules["output"] = nn.Linear(channels * height * width, classes)
    return _started(nn.Sequential(modules), generator)


class ResidualBlock(nn.Module):
    """r(shortcut(x) + norm(conv(r(norm(conv x))))), the basic block; a 1×1 convolution if shapes change."""

    def __init__(self, channels: int, filters: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, filters, 3, stride=stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(filters)
        self.conv2 = nn.Conv2d(filters, filters, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(filters)
        self.relu = nn.ReLU()
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or channels != filters:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels, filters, 1, stride=stride, bias=False), nn.BatchNorm2d(filters)
            )

    def forward(self, x: Tensor) -> Tensor:
        inner = self.relu(self.norm1(self.conv1(x)))
        result: Tensor = self.relu(self.norm2(self.conv2(inner)) + self.shortcut(x))
        return result


def small_resnet(
    input_shape: Sequence[int],
    classes: int,
    widths: Sequence[int] = (16, 32, 64),
    blocks: int = 1,
    *,
    dropout: float = 0.0,
    generator: torch.Generator | None = None,
) -> nn.Sequential:
    """A residual net with batch norm: stem, `blocks` basic blocks a width (halving the image), mean, linear.

    Names: stem, stage1.0, stage2.0, …, output. widths (64, 128, 256, 512) with 2 blocks is the ResNet-18 of
    small images.
    """
    channels, _, _ = _image(input_shape, 2 ** (len(widths) - 1))
    stem = nn.Sequential(
        nn.Conv2d(channels, widths[0], 3, padding=1, bias=False), nn.BatchNorm2d(widths[0]), nn.ReLU()
    )
    modules: OrderedDict[str, nn.Module] = OrderedDict(stem=stem)
    channels = widths[0]
    for depth, filters in enumerate(widths, start=1):
        stage = nn.Sequential()
        for block in range(blocks):
            stage.append(ResidualBlock(channels, filters, stride=2 if depth > 1 and block == 0 else 1))
            channels = filters
        modules[f"stage{depth}"] = stage
    modules["pool"] = nn.AdaptiveAvgPool2d(1)
    modules["flatten"] = nn.Flatten()
    if dropout > 0:
        modules["dropout"] = SampleDropout(dropout)
    modules["output"] = nn.Linear(channels, classes)
    return _started(nn.Sequential(modules), generator)


def _started(net: nn.Sequential, generator: torch.Generator | None) -> nn.Sequential:
    for module in net.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            nn.init.normal_(module.weight, std=(2 / module.weight[0].numel()) ** 0.5, generator=generator)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    return net


def _image(input_shape: Sequence[int], smallest: int) -> tuple[int, int, int]:
    if len(input_shape) != 3 or min(input_shape) < 1 or min(input_shape[1:]) < smallest:
        raise BadInput(
            f"images of shape channels × height × width, at least {smallest} × {smallest} pixels",
            got=tuple(input_shape),
            do="use fewer widths for small images, relu_mlp for what is no image",
        )
    channels, height, width = input_shape
    return channels, height, width
