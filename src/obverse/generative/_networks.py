"""Encoders, decoders and critics: small nets that turn images into numbers and back. Not for training them.

"mlp" takes any shape: it flattens it. "conv" takes images (C, H, W) with H and W multiples of 4 (8 × 8,
28 × 28, 32 × 32): two convolutions halve them, and `hidden` fully connected layers stand behind. There are no
batch norms: the gradient penalty of a critic is about one image at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod, sqrt

import torch
from torch import Tensor, nn

from .._core import BadInput, Body, or_global

FILTERS = (16, 32)  # of the two convolutions
AT_A_TIME = 1000  # images that samples are made by
LEAK = 0.2  # slope of a critic's activations below 0: a ReLU that is off would give the generator no gradient


def encoder(
    input_shape: Sequence[int],
    outputs: int,
    hidden: Sequence[int],
    body: Body = "mlp",
    *,
    slope: float = 0.0,
    generator: torch.Generator | None = None,
) -> nn.Sequential:
    """(n, *input_shape) → (n, outputs); `slope` is that of the activations below 0."""
    check_sizes(input_shape, outputs, hidden, body)
    layers: list[nn.Module] = []
    features = prod(input_shape)
    if body == "conv":
        channels, height, width = input_shape
        for entering, leaving in pairwise((channels, *FILTERS)):
            layers += [nn.utils.skip_init(nn.Conv2d, entering, leaving, 4, stride=2, padding=1)]
            layers += [_activation(slope)]
        features = FILTERS[-1] * (height // 4) * (width // 4)
    layers += [nn.Flatten(), *_dense((features, *hidden, outputs), slope)]
    return _started(nn.Sequential(*layers), slope, generator)


def decoder(
    latent: int,
    output_shape: Sequence[int],
    hidden: Sequence[int],
    body: Body = "mlp",
    *,
    generator: torch.Generator | None = None,
) -> nn.Sequential:
    """(n, latent) → (n, *output_shape), any real numbers: a sigmoid behind it makes pixels of them."""
    check_sizes(output_shape, latent, hidden, body)
    if body == "mlp":
        layers = [*_dense((latent, *hidden, prod(output_shape)), 0.0), nn.Unflatten(1, tuple(output_shape))]
        return _started(nn.Sequential(*layers), 0.0, generator)
    channels, height, width = output_shape
    small = (FILTERS[-1], height // 4, width // 4)
    layers = [*_dense((latent, *hidden, prod(small)), 0.0), _activation(0.0), nn.Unflatten(1, small)]
    for entering, leaving in pairwise((*reversed(FILTERS), channels)):
        layers += [nn.utils.skip_init(nn.ConvTranspose2d, entering, leaving, 4, stride=2, padding=1)]
        layers += [_activation(0.0)]
    return _started(nn.Sequential(*layers[:-1]), 0.0, generator)


def critic(
    input_shape: Sequence[int],
    hidden: Sequence[int],
    body: Body = "mlp",
    *,
    generator: torch.Generator | None = None,
) -> nn.Sequential:
    """(n, *input_shape) → (n,): one score per image."""
    return encoder(input_shape, 1, hidden, body, slope=LEAK, generator=generator).append(nn.Flatten(0))


def draw(shape: Sequence[int], like: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Standard normal numbers with the dtype and on the device of a tensor, wherever the generator is."""
    generator = or_global(generator)
    made = torch.randn(tuple(shape), generator=generator, dtype=like.dtype, device=generator.device)
    return made.to(like.device)


def decode_in_blocks(decode: Callable[[Tensor], Tensor], z: Tensor, shape: Sequence[int]) -> Tensor:
    """decode(z), a block of rows at a time: the memory of its layers does not grow with their number."""
    pictures = z.new_empty(len(z), *shape)
    for start in range(0, len(z), AT_A_TIME):
        pictures[start : start + AT_A_TIME] = decode(z[start : start + AT_A_TIME])
    return pictures


def check_sizes(shape: Sequence[int], other: int, hidden: Sequence[int], body: str) -> None:
    if body not in ("mlp", "conv"):
        raise BadInput("body 'mlp' or 'conv'", got=repr(body), do="choose one of them")
    sizes = [*shape, other, *hidden]
    if len(shape) == 0 or not all(isinstance(size, int) and size >= 1 for size in sizes):
        raise BadInput(
            "a shape and whole sizes of at least 1",
            got=f"shape {tuple(shape)}, {other} latent or output numbers, hidden {tuple(hidden)}",
            do="check these",
        )
    if body == "conv" and (len(shape) != 3 or shape[1] % 4 or shape[2] % 4):
        raise BadInput(
            "images of shape (C, H, W) with H and W multiples of 4 for body 'conv'",
            got=tuple(shape),
            do="use body='mlp', or pad them",
        )


def _activation(slope: float) -> nn.Module:
    return nn.LeakyReLU(slope) if slope else nn.ReLU()


def _dense(sizes: Sequence[int], slope: float) -> list[nn.Module]:
    """Linear layers with activations between them, none behind the last."""
    layers: list[nn.Module] = []
    for entering, leaving in pairwise(sizes):
        layers += [nn.utils.skip_init(nn.Linear, entering, leaving), _activation(slope)]
    return layers[:-1]


def _started(net: nn.Sequential, slope: float, generator: torch.Generator | None) -> nn.Sequential:
    """Gaussian weights that keep the size of what passes (the last layer has no activation to make up for),
    biases 0. The global generator is left alone if one is given."""
    generator = or_global(generator)
    maps = [one for one in net if isinstance(one, nn.Linear | nn.Conv2d | nn.ConvTranspose2d)]
    for layer in maps:
        if isinstance(layer, nn.ConvTranspose2d):  # in × out × 4 × 4; with stride 2 a pixel meets a quarter
            fan_in = layer.weight[:, 0].numel() // 4
        else:
            fan_in = layer.weight[0].numel()
        gain = 1.0 if layer is maps[-1] else 2 / (1 + slope**2)
        nn.init.normal_(layer.weight, std=sqrt(gain / fan_in), generator=generator)
        assert layer.bias is not None
        nn.init.zeros_(layer.bias)
    return net
