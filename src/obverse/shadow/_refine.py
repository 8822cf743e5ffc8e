"""A few steps from a shadow towards an input with exactly the wanted h: gradient on ‖h(x) − h‖². Pure.

Heavy ball with Polyak's step length: the least value, 0, is known, so that there is no step size to tune. A
row whose distance rose takes shorter steps from then on, without momentum. Every row is on its own.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import torch
from torch import Tensor

MOMENTUM = 0.6
SHORTER, LONGER, LONGEST = 0.6, 1.05, 1.5  # factors of Polyak's length


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
        velocity = torch.zeros_like(point)
        rate = torch.ones(len(x), dtype=x.dtype, device=x.device)
        before = torch.full_like(rate, inf)
        for _ in range(steps):
            point.requires_grad_(True)
            distance = (features(point).flatten(1) - target).square().sum(1) / 2
            (gradient,) = torch.autograd.grad(distance.sum(), point)
            with torch.no_grad():
                distance, start = distance.detach().to(rate), point.detach()
                rose = distance > before
                rate = torch.where(rose, SHORTER * rate, (LONGER * rate).clamp(max=LONGEST))
                velocity = torch.where(_rows(rose, x), torch.zeros_like(velocity), velocity)
                # what the projection would undo is no way down
                gradient = gradient.masked_fill(project(start - gradient) == start, 0)
                size = gradient.flatten(1).square().sum(1)
                length = torch.where(size > 0, rate * distance / size, torch.zeros_like(size))
                point = project(start - _rows(length, x) * gradient + MOMENTUM * velocity)
                velocity, before = point - start, distance
        return point.detach()


def _rows(values: Tensor, like: Tensor) -> Tensor:
    return values.reshape(-1, *[1] * (like.dim() - 1))
