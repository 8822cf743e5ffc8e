"""What may be done with a few labels and nothing else: each method as the loss of one batch.

Not for runs and their settings: see run.py. Every method has one knob of its own beside the learning rate;
plain training has none. Where a second batch is added with a weight w, the sum is divided
by 1 + w, so that a rate means the same step for every method.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from obverse.shadow import Shadow, ShadowLoss
from obverse.shadow._controls import noisy

BatchLoss = Callable[[Tensor, Tensor], Tensor]
WEIGHTS = (1.0, 4.0)
NOISE = (0.2, 0.5)  # standard deviation; pixels are in [0, 1]
NOISE_WEIGHT = 4.0
REFIT = 50  # batches from one fit of the fitted shadows to the next
PRETRAINING_STEPS = 200  # a layer
PRETRAINING_RATE = 0.001  # of Adam


@dataclass(frozen=True)
class Method:
    """`knob` names what `strengths` are values of; `options` go to ShadowLoss as they are."""

    knob: str = ""
    strengths: tuple[float, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    dropout: float = 0.0
    reverse: Literal["transpose", "fitted"] = "transpose"


METHODS: dict[str, Method] = {
    "plain": Method(),
    "SHADOW": Method("weight", WEIGHTS),
    "noise": Method("noise", NOISE, {"control": "noise", "weight": NOISE_WEIGHT}),
    "SHADOW consistency": Method("weight", WEIGHTS, {"labels": "consistency"}),
    "noise consistency": Method("weight", WEIGHTS, {"control": "noise", "labels": "consistency"}),
    "noise + SHADOW": Method("noise", NOISE),
    "mixup": Method("mixup", (0.2, 1.0)),
    "label smoothing": Method("smoothing", (0.1, 0.3)),
    "dropout": Method("dropout", (0.2, 0.5)),
    "SHADOW + dropout": Method("weight", WEIGHTS, dropout=0.5),
    "shuffled shadows": Method("weight", WEIGHTS, {"control": "shuffled"}),
    "shuffled consistency": Method("weight", WEIGHTS, {"control": "shuffled", "labels": "consistency"}),
    "denoising pretraining": Method("corruption", (0.25, 0.5)),
}
# Shadows by the fitted reverse: another generative model, with cells and tests of its own.
FITTED: dict[str, Method] = {
    "fitted": Method("weight", WEIGHTS, {"refit": REFIT}, reverse="fitted"),
    "fitted consistency": Method(
        "weight", WEIGHTS, {"refit": REFIT, "labels": "consistency"}, reverse="fitted"
    ),
    "fitted, shuffled weights": Method(
        "weight", WEIGHTS, {"refit": REFIT, "control": "shuffled"}, reverse="fitted"
    ),
}
EVERY = METHODS | FITTED


def dropout_of(method: str, strength: float | None) -> float:
    """The dropout rate of the method's net."""
    if EVERY[method].knob == "dropout":
        assert strength is not None
        return strength
    return EVERY[method].dropout


def batch_loss(
    method: str,
    strength: float | None,
    net: nn.Module,
    input_shape: tuple[int, ...],
    classes: int,
    generator: torch.Generator,
    numbers: np.random.Generator,
) -> BatchLoss:
    """The method's loss of a batch (x, y). `generator` and `numbers` are all its chance but dropout's."""
    chosen = EVERY[method]
    shadow = Shadow(net, input_shape=input_shape, reverse=chosen.reverse)
    if method == "noise + SHADOW":
        assert strength is not None
        return partial(noisy_shadow_loss, shadow, std=strength, weight=NOISE_WEIGHT, generator=generator)
    knob: dict[str, Any] = {} if strength is None else {chosen.knob: strength}
    if chosen.knob == "smoothing":
        assert strength is not None
        knob = {"criterion": partial(F.cross_entropy, label_smoothing=strength)}
    if chosen.knob not in ("weight", "noise"):  # the knob is not ShadowLoss's: no second batch
        knob = {"weight": 0.0} | {name: value for name, value in knob.items() if name == "criterion"}
    loss = ShadowLoss(shadow, normalize=True, generator=generator, **{**chosen.options, **knob})
    if chosen.knob == "mixup":
        assert strength is not None
        return partial(
            mixup_loss, loss, alpha=strength, classes=classes, generator=generator, numbers=numbers
        )
    return loss


def mixed(x: Tensor, y: Tensor, classes: int, share: float, order: Tensor) -> tuple[Tensor, Tensor]:
    """Mixup (Zhang et al. 2018): x and its labels blended with those of another point of the batch."""
    labels = F.one_hot(y, classes).to(x.dtype)
    return torch.lerp(x[order], x, share), torch.lerp(labels[order], labels, share)


def mixup_loss(
    loss: BatchLoss,
    x: Tensor,
    y: Tensor,
    *,
    alpha: float,
    classes: int,
    generator: torch.Generator,
    numbers: np.random.Generator,
) -> Tensor:
    """The loss of a batch mixed with itself in another order; one share a batch, from Beta(α, α)."""
    share, order = float(numbers.beta(alpha, alpha)), torch.randperm(len(x), generator=generator)
    return loss(*mixed(x, y, classes, share, order))


def noisy_shadow_loss(
    shadow: Shadow, x: Tensor, y: Tensor, *, std: float, weight: float, generator: torch.Generator
) -> Tensor:
    """The noise control with half of its weight on the *shadows* of the noisy inputs.

    (L(x) + w/2 · (L(x_noisy) + L(shadow of x_noisy))) / (1 + w): what a shadow adds to noise. For nets whose
    last module maps h to the logits.
    """
    net = shadow.net
    assert isinstance(net, nn.Sequential)
    h = net[:-1](noisy(x, std, generator))
    twin = shadow.from_hidden(x, h.detach(), match_norm=True)
    real, noise, generated = (F.cross_entropy(logits, y) for logits in (net(x), net[-1](h), net(twin)))
    return (real + weight / 2 * (noise + generated)) / (1 + weight)


def pretrained(net: nn.Sequential, x: Tensor, corruption: float, generator: torch.Generator) -> nn.Sequential:
    """A copy of a two-hidden-layer net whose hidden layers were trained as denoising autoencoders.

    Vincent et al. 2010, layer by layer: a share of the entries set to 0, the clean ones to be given back by
    the transposed weights (tied), squared error. Labels play no part.
    """
    net = deepcopy(net)
    below = x.flatten(1)
    for layer in (net.h1, net.h2):
        assert isinstance(layer, nn.Linear)
        below = _denoising_layer(layer, below, corruption, generator)
    return net


def _denoising_layer(layer: nn.Linear, x: Tensor, corruption: float, generator: torch.Generator) -> Tensor:
    """Train one layer in place; its activations of x."""
    back = torch.zeros(x.shape[1], requires_grad=True)
    optimizer = torch.optim.Adam([layer.weight, layer.bias, back], PRETRAINING_RATE)
    for _ in range(PRETRAINING_STEPS):
        rows = x[torch.randperm(len(x), generator=generator)[:100]]
        kept = torch.empty_like(rows).bernoulli_(1 - corruption, generator=generator)
        guess = F.linear(F.relu(layer(rows * kept)), layer.weight.T, back)
        optimizer.zero_grad()
        (guess - rows).square().sum(1).mean().backward()
        optimizer.step()
    with torch.no_grad():
        return F.relu(layer(x))
