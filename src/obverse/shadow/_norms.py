"""Rules of the normalisations: each becomes y = gain·x + shift with statistics that no sample decides.

Batch norm has them in its running statistics; group, layer and instance norm get the mean over reference
inputs (see Shadow: noise, or what it was calibrated on).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ._reversal import Norm, register_all, register_rule

Affine = tuple[Tensor, Tensor]


def _channels(vector: Tensor, dimensions: int) -> Tensor:
    """One number a channel, shaped to broadcast with one input of so many dimensions."""
    return vector.reshape(-1, *[1] * (dimensions - 1))


def _fold(mean: Tensor, variance: Tensor, eps: float, weight: Tensor | None, bias: Tensor | None) -> Affine:
    gain = (variance + eps).rsqrt()
    gain = gain if weight is None else gain * weight
    shift = -gain * mean
    return gain, shift if bias is None else shift + bias


def batch_norm(module: Any, x: Tensor) -> Affine:
    if module.running_mean is not None:
        mean, variance = module.running_mean, module.running_var
    else:
        rest = [d for d in range(x.dim()) if d != 1]
        mean, variance = x.mean(rest), x.var(rest, unbiased=False)
    gain, shift = _fold(mean, variance, module.eps, module.weight, module.bias)
    return _channels(gain, x.dim() - 1), _channels(shift, x.dim() - 1)


def group_norm(module: Any, x: Tensor) -> Affine:
    """Mean and variance of each group, averaged over the reference inputs."""
    groups = x.unflatten(1, (module.num_groups, -1)).flatten(2)
    each = x.shape[1] // module.num_groups
    mean = groups.mean(2).mean(0).repeat_interleave(each)
    variance = groups.var(2, unbiased=False).mean(0).repeat_interleave(each)
    gain, shift = _fold(mean, variance, module.eps, module.weight, module.bias)
    return _channels(gain, x.dim() - 1), _channels(shift, x.dim() - 1)


def instance_norm(module: Any, x: Tensor) -> Affine:
    if module.running_mean is not None:
        mean, variance = module.running_mean, module.running_var
    else:
        flat = x.flatten(2)
        mean, variance = flat.mean((0, 2)), flat.var(2, unbiased=False).mean(0)
    gain, shift = _fold(mean, variance, module.eps, module.weight, module.bias)
    return _channels(gain, x.dim() - 1), _channels(shift, x.dim() - 1)


def layer_norm(module: Any, x: Tensor) -> Affine:
    rest = tuple(range(-len(module.normalized_shape), 0))
    mean, variance = x.mean(rest).mean(), x.var(rest, unbiased=False).mean()
    gain, shift = _fold(mean, variance, module.eps, module.weight, module.bias)
    return gain.expand(module.normalized_shape), shift.expand(module.normalized_shape)


def response_norm(module: Any, x: Tensor) -> Affine:
    """A norm without statistics of its own as one factor: how much it shrinks the reference inputs."""
    size = torch.linalg.vector_norm(x)
    gain = torch.linalg.vector_norm(module(x)) / size if size > 0 else torch.ones_like(size)
    return gain, torch.zeros_like(gain)


def rms_norm(module: Any, x: Tensor) -> Affine:
    rest = tuple(range(-len(module.normalized_shape), 0))
    eps = torch.finfo(x.dtype).eps if module.eps is None else module.eps
    gain = (x.square().mean(rest).mean() + eps).rsqrt()
    gain = (gain if module.weight is None else gain * module.weight).expand(module.normalized_shape)
    return gain, torch.zeros_like(gain)


class NormCall(nn.Module):
    """A norm that the net writes as a function call, with its current weight and bias."""

    eps: float

    def __init__(self, fetch: Mapping[str, Callable[[], Tensor | None]], **settings: Any) -> None:
        super().__init__()
        self._fetch = fetch
        for name, value in settings.items():
            setattr(self, name, value)

    @property
    def weight(self) -> Tensor | None:
        return self._fetch["weight"]()

    @property
    def bias(self) -> Tensor | None:
        return self._fetch["bias"]()


class LayerNormCall(NormCall):
    """F.layer_norm."""

    normalized_shape: tuple[int, ...]

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)


class GroupNormCall(NormCall):
    """F.group_norm."""

    num_groups: int

    def forward(self, x: Tensor) -> Tensor:
        return F.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)


class UnitNorm(nn.Module):
    """F.normalize: each row by its norm."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


def _has_no_running_statistics(module: Any) -> bool:
    return module.running_mean is None


register_all(
    (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm),
    Norm(batch_norm, from_data=_has_no_running_statistics),
)
register_all(
    (nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d),
    Norm(instance_norm, from_data=_has_no_running_statistics),
)
register_all((nn.GroupNorm, GroupNormCall), Norm(group_norm))
register_all((nn.LayerNorm, LayerNormCall), Norm(layer_norm))
register_rule(nn.RMSNorm, Norm(rms_norm))
register_all((nn.LocalResponseNorm, UnitNorm), Norm(response_norm))
