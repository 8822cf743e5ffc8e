"""Inversion by optimization, the peer that shadows are measured against. Not a part of obverse.

Mahendran and Vedaldi (*Understanding deep image representations by inverting them*, 2015): from noise,
minimize over x

    ‖φ(x) − φ₀‖² / ‖φ₀‖²  +  norm · mean |2x − 1|⁶  +  tv · mean (squared differences of neighbouring pixels)

by gradient descent with momentum, theirs with α = 6 and β = 2; pixels lie in [0, 1], so that 2x − 1 is their
centred image over half its range. Adam in place of momentum is offered too: on some layers it is far better.
The images of a batch do not see each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from typing import Literal

import torch
from torch import Tensor

Method = Literal["adam", "momentum"]
OnIteration = Callable[[int, Tensor], None]  # the number of iterations done, x after them

ALPHA = 6
MOMENTUM = 0.9
SQUARES = 0.999  # momentum of Adam's mean square
TINY = 1e-12
LARGEST = 10.0  # a pixel beyond it is astray: images lie in [0, 1]


def invert(
    features: Callable[[Tensor], Tensor],
    target: Tensor,
    shape: Sequence[int],
    iterations: int,
    *,
    tv: float = 0.1,
    norm: float = 0.001,
    rate: float = 0.1,
    method: Method = "adam",
    spread: float = 0.1,
    start: Tensor | None = None,
    generator: torch.Generator | None = None,
    on_iteration: OnIteration | None = None,
) -> Tensor:
    """Images whose `features` are near `target`, one for each of its rows; `shape` is that of one image.

    Starts at `start`, or at ½ plus Gaussian noise of deviation `spread`. An image whose step goes astray
    stays where it was, without momentum, and takes steps half as long from then on. `target` and `start` are
    not changed, nor is what `on_iteration` is given.
    """
    if start is None:
        noise = torch.empty(len(target), *shape, dtype=target.dtype, device=target.device)
        x = noise.normal_(generator=generator).mul_(spread).add_(0.5)
    else:
        x = start.detach()
    step, square = torch.zeros_like(x), torch.zeros_like(x)
    caution = torch.ones(len(x), *[1] * (x.dim() - 1), dtype=x.dtype, device=x.device)
    for done in range(1, iterations + 1):
        before = x
        slope = feature_slope(features, x, target) + regularizer_slope(x, tv, norm)
        if method == "momentum":
            step.mul_(MOMENTUM).add_(slope)
            x = x - rate * caution * step
        else:
            step.lerp_(slope, 1 - MOMENTUM)
            square.lerp_(slope.square(), 1 - SQUARES)
            size = (square.sqrt() / sqrt(1 - SQUARES**done)).add_(TINY)
            x = x - (rate / (1 - MOMENTUM**done)) * caution * step / size
        lost = ~(x.flatten(1).abs().amax(1) < LARGEST).reshape(-1, *[1] * (x.dim() - 1))  # NaN is lost too
        x = torch.where(lost, before, x)
        step, caution = step.masked_fill(lost, 0), torch.where(lost, caution / 2, caution)
        if on_iteration is not None:
            on_iteration(done, x)
    return x


def feature_slope(features: Callable[[Tensor], Tensor], x: Tensor, target: Tensor) -> Tensor:
    """The gradient of ‖φ(x) − φ₀‖² / ‖φ₀‖² of each image; a target of zeros is not divided by."""
    size = target.flatten(1).square().sum(1)
    weight = torch.where(size > 0, 1 / size, torch.ones_like(size)).reshape(-1, *[1] * (target.dim() - 1))
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        loss = ((features(x) - target).square() * weight).sum()
        (slope,) = torch.autograd.grad(loss, x)
    return slope


def regularizer_slope(x: Tensor, tv: float, norm: float) -> Tensor:
    """The gradient of both regularizers: means over the pixels and channels of each image, N×C×H×W."""
    down, right = x.diff(dim=2), x.diff(dim=3)
    rough = torch.zeros_like(x)
    rough[:, :, 1:] += down
    rough[:, :, :-1] -= down
    rough[:, :, :, 1:] += right
    rough[:, :, :, :-1] -= right
    count = x[0].numel()
    return rough.mul_(2 * tv / count).add_((2 * x - 1) ** (ALPHA - 1), alpha=2 * ALPHA * norm / count)
