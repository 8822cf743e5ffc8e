"""The fully connected ReLU net of the reversibility paper. Not for convolutions."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from itertools import pairwise
from math import prod

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .._core import BadInput
from ._dropout import SampleDropout


class UniformBiasLinear(nn.Linear):
    """A linear layer whose units share one bias: the constant offset vector of Theorem 2.3."""

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__(in_features, out_features)
        self.bias = nn.Parameter(self.bias.detach()[:1].clone())

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight) + self.bias


def relu_mlp(
    input_shape: Sequence[int],
    hidden: Sequence[int] | int,
    classes: int,
    *,
    dropout: float = 0.0,
    uniform_bias: bool = False,
    generator: torch.Generator | None = None,
) -> nn.Sequential:
    """A net `flatten → (linear → ReLU → dropout)… → linear` with the paper's names h1, h2, ….

    The linear layers carry the names h1, h2, … (the last one is the output), so that
    `Shadow(net).layers` reads like the paper; `hidden=50` is one hidden layer. With `uniform_bias` each
    hidden layer has one constant bias (the output layer keeps one a class). Weights start Gaussian,
    N(0, 2/fan_in), as the theory has them and ReLUs like them, biases at 0; `generator` makes them
    repeatable.
    """
    hidden = (hidden,) if isinstance(hidden, int) else tuple(hidden)
    sizes = [prod(input_shape), *hidden, classes]
    if min([*input_shape, *hidden, classes]) < 1:
        raise BadInput(
            "sizes of at least 1",
            got=f"input_shape={tuple(input_shape)}, hidden={hidden}, classes={classes}",
            do="check these",
        )
    if not 0 <= dropout < 1:
        raise BadInput("dropout in [0, 1)", got=dropout, do="use 0 for no dropout")
    modules: OrderedDict[str, nn.Module] = OrderedDict(flatten=nn.Flatten())
    for depth, (fan_in, fan_out) in enumerate(pairwise(sizes), start=1):
        is_output = depth == len(sizes) - 1
        kind = UniformBiasLinear if uniform_bias and not is_output else nn.Linear
        layer = kind(fan_in, fan_out)
        nn.init.normal_(layer.weight, std=(2 / fan_in) ** 0.5, generator=generator)
        nn.init.zeros_(layer.bias)
        modules[f"h{depth}"] = layer
        if not is_output:
            modules[f"relu{depth}"] = nn.ReLU()
            if dropout > 0:
                modules[f"dropout{depth}"] = SampleDropout(dropout)
    return nn.Sequential(modules)
