"""A few steps from a shadow towards an input with exactly the wanted h: gradient on ‖h(x) − h‖². Pure.

Conjugate directions (Polak–Ribière) with Polyak's step length: the least value, 0, is known, so that there is
no step size to tune. Every row is on its own.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def refine_towards(
    features: Callable[[Tensor], Tensor],
    x: Tensor,
    h: Tensor,
    steps: int,
    project: Callable[[Tensor], Tensor],
) -> Tensor:
    """x after `steps` gradient steps on ½‖features(x) − h‖², `project` (the input's ReLU) after each."""
    with torch.inference_mode(False), torch.enable_grad():
        target = h.detach().clone().flatten(1)
        point = x.detach().clone()
        direction = old = torch.zeros_like(point)
        for _ in range(steps):
            point.requires_grad_(True)
            distance = (features(point).flatten(1) - target).square().sum(1) / 2
            (gradient,) = torch.autograd.grad(distance.sum(), point)
            with torch.no_grad():
                size = _dot(old, old)
                turn = (_dot(gradient, gradient - old) / size.clamp(min=_TINY)).clamp(0, 1) * (size > 0)
                direction = direction * _rows(turn, x) - gradient
                downhill = _dot(direction, gradient) < 0
                direction = torch.where(_rows(downhill, x), direction, -gradient)
                slope = -_dot(direction, gradient)
                length = distance.detach() / slope.clamp(min=_TINY) * (slope > 0)
                point = project(point.detach() + direction * _rows(length, x))
                old = gradient
        return point.detach()


_TINY = 1e-30


def _dot(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).flatten(1).sum(1)


def _rows(values: Tensor, like: Tensor) -> Tensor:
    return values.reshape(-1, *[1] * (like.dim() - 1))
