"""The optimizer of a Settings value, and its state as plain tensors. Not for the learning rate of a step."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from ._settings import Settings


def make_optimizer(settings: Settings, net: nn.Module) -> torch.optim.Optimizer:
    if settings.optimizer == "adam":
        return torch.optim.Adam(net.parameters(), settings.lr, weight_decay=settings.weight_decay)
    return torch.optim.SGD(
        net.parameters(), settings.lr, momentum=settings.momentum, weight_decay=settings.weight_decay
    )


def state_names(optimizer: torch.optim.Optimizer) -> tuple[str, ...]:
    """What an optimizer remembers of each parameter."""
    if isinstance(optimizer, torch.optim.Adam):
        return ("step", "exp_avg", "exp_avg_sq")
    return ("momentum_buffer",) if optimizer.defaults["momentum"] > 0 else ()


def optimizer_tensors(optimizer: torch.optim.Optimizer, net: nn.Module) -> dict[str, Tensor]:
    """Its state by parameter; zeros, which mean the same, before the first step."""
    result = {}
    for name, parameter in net.named_parameters():
        state = optimizer.state.get(parameter, {})
        for key in state_names(optimizer):
            value = state.get(key)
            fresh = torch.zeros(()) if key == "step" else torch.zeros_like(parameter)
            result[f"optimizer.{name}.{key}"] = fresh if value is None else value
    return result


def restore_optimizer(
    optimizer: torch.optim.Optimizer, net: nn.Module, tensors: Mapping[str, Tensor]
) -> None:
    """Take back what `optimizer_tensors` gave; names and shapes were checked."""
    names = state_names(optimizer)
    for name, parameter in net.named_parameters():
        if names:
            optimizer.state[parameter] = {
                key: tensors[f"optimizer.{name}.{key}"].to("cpu" if key == "step" else parameter.device)
                for key in names
            }
