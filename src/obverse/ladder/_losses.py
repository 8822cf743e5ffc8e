"""What the top region is told: the loss of its activations and minus its gradient, for inputs or events."""

from __future__ import annotations

import torch
from torch import Tensor

from ._student import Loss


def losses(active: Tensor, targets: Tensor, kind: Loss) -> Tensor:
    """The loss of every row."""
    if kind == "square":
        return 0.5 * (active - targets).square().sum(1)
    if kind == "softmax":
        return -(targets * torch.log_softmax(active, 1)).sum(1)
    return -(targets * active).sum(1)


def pull(active: Tensor, targets: Tensor, kind: Loss) -> Tensor:
    """g of every row, minus the gradient of its loss: I − F for the square loss and the identity."""
    if kind == "square":
        return targets - active
    if kind == "softmax":
        return targets - targets.sum(1, keepdim=True) * torch.softmax(active, 1)
    return targets.expand_as(active)
