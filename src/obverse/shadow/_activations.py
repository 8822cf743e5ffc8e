"""Rules of the activations. ReLU is the theory's; the others stand in for it, as documented approximations.

What is generated behind an activation passes through that activation: eq. 1 with its own r. For LeakyReLU and
PReLU the scale allows for the slope; ReLU6, GELU, SiLU and their like are scaled as the ReLU they resemble.
"""

from __future__ import annotations

from math import inf
from typing import Any

from torch import Tensor, nn

from ._reversal import Activation, register_all, register_rule


class SelfGate(nn.Module):
    """x·g(x) entry by entry, as nets write SiLU and Hardswish by hand; `gate` is a chain of such modules."""

    def __init__(self, gate: tuple[nn.Module, ...]) -> None:
        super().__init__()
        self.gate = gate  # a tuple: these modules belong to the net

    def forward(self, x: Tensor) -> Tensor:
        value = x
        for module in self.gate:
            value = module(value)
        return x * value


def _leaky_slope(module: Any) -> float:
    return float(module.negative_slope)


def _prelu_slope(module: Any) -> float:
    return float(module.weight.detach().mean())


def _rrelu_slope(module: Any) -> float:
    return float(module.lower + module.upper) / 2


def _zero_up(module: Any) -> tuple[float, float]:
    return 0.0, inf


def _unit(module: Any) -> tuple[float, float]:
    return 0.0, 1.0


def _alpha_up(module: Any) -> tuple[float, float]:
    return -abs(float(module.alpha)), inf


def _between(module: Any) -> tuple[float, float]:
    return module.min_val, module.max_val


def _odd(module: Any) -> tuple[float, float]:
    return -1.0, 1.0


register_all((nn.ReLU, nn.Softplus), Activation(bounds=_zero_up))
register_rule(nn.ReLU6, Activation(bounds=lambda module: (0.0, 6.0)))
# The least values of these, rounded down.
register_rule(nn.GELU, Activation(bounds=lambda module: (-0.171, inf)))
register_rule(nn.SiLU, Activation(bounds=lambda module: (-0.279, inf)))
register_rule(nn.Mish, Activation(bounds=lambda module: (-0.309, inf)))
register_rule(nn.Hardswish, Activation(bounds=lambda module: (-0.375, inf)))
register_all((nn.ELU, nn.CELU), Activation(bounds=_alpha_up))
register_rule(nn.SELU, Activation(bounds=lambda module: (-1.759, inf)))
register_rule(SelfGate, Activation())
register_rule(nn.LeakyReLU, Activation(slope=_leaky_slope))
register_rule(nn.PReLU, Activation(slope=_prelu_slope))
register_rule(nn.RReLU, Activation(slope=_rrelu_slope))
# Odd and bounded: nothing is lost below 0, and generation is bounded as the layer is.
register_all((nn.Tanh, nn.Softsign), Activation(slope=lambda module: 1.0, bounds=_odd))
register_rule(
    nn.Hardtanh,
    Activation(slope=lambda module: 1.0, bounds=_between),
)
register_all((nn.Sigmoid, nn.Hardsigmoid), Activation(bounds=_unit))
