"""How one layer runs backwards: pure functions, and the registry of rules by kind of module.

Not for whole nets (see trace and shadow) nor for gradients: generation is data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal

import torch
from torch import Tensor, nn

from .._core import BadInput, Source, mask_like

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Reach:
    """How a step connects positions, each field one number a dimension.

    Output o sees inputs o·stride − padding + dilation·k for k < kernel; with `up` (a transposed convolution)
    input p reaches the outputs p·stride − padding + dilation·k.
    """

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int = 1
    up: bool = False


Form = Reach | Literal["rows", "whole"]


def theory_scale(energy: Tensor | float, keep: float = 1.0) -> Tensor | float:
    """α = 2 / (ρ n s²), the scale of eq. 1, from `energy` = n s².

    `energy` is the mean squared norm of a unit's incoming weights: for a Linear of shape out × in with
    entries of variance s², that is n s² with n = in. A layer of zeros generates zeros at any scale; its
    scale is 1, which keeps 0·∞ out of the shadow.
    """
    if energy == 0:
        return 1.0
    return 2.0 / (keep * energy)


def weight_energy(weight: Tensor) -> Tensor:
    """n s² of a weight of shape out × in: the mean squared norm of its rows."""
    # The norm needs no temporary of the weight's size; squaring the entries would.
    size: Tensor = torch.linalg.vector_norm(weight.detach())
    return size.square() / weight.shape[0]


def check_keep(keep: float) -> float:
    if not 0 < keep <= 1:
        raise BadInput("keep in (0, 1]", got=keep, do="use keep=1.0 for no sampling")
    return keep


def drop(x: Tensor, keep: float, generator: Source = None) -> Tensor:
    """x ⊙ mask, mask ~ Bernoulli(keep) (the dropout noise of eq. 1). Works in place; nothing is rescaled."""
    if check_keep(keep) == 1.0:
        return x
    return x.mul_(mask_like(x, keep, generator))


@torch.no_grad()
def reverse_linear(
    weight: Tensor,
    h: Tensor,
    *,
    scale: float | Tensor = 1.0,
    keep: float = 1.0,
    relu: bool = True,
    generator: Source = None,
) -> Tensor:
    """One draw of x = r(αWh) ⊙ mask (eq. 1) for a batch of h.

    `weight` is shaped as in nn.Linear (out × in, the transpose of the paper's W); `scale` is α, `keep`
    is ρ. With `relu=False` the input may be negative (the layer below has no ReLU).
    """
    x = h @ weight
    if not (isinstance(scale, (int, float)) and scale == 1.0):
        x = x.mul_(scale)
    if relu:
        x = x.relu_()
    return drop(x, keep, generator)


@dataclass(frozen=True)
class Rule:
    """How one kind of module with one input runs backwards.

    `reverse(module, h, input_shape)` is the adjoint of the module's linear part, without scale, ReLU or mask;
    `input_shape` is the shape of one input of this module. A rule with an `energy` is a *layer*, a map with
    weights that one can generate from: energy(module, input_shape) is the mean squared norm of a unit's
    incoming weights, one number or one a channel. Without `energy` the module only passes through, and its
    energy is found by probing `reverse`; `exact=True` says that `reverse` undoes the module and is taken as
    it is.

    `fitted(module, input_shape, output_shape)` says what the fitted reverse regresses an input on: a `Reach`
    (each place on the outputs that saw it), "rows" (along the last dimension), "whole" (everything on
    everything). Where it is missing or says None, the fitted reverse goes down by `reverse`, too.
    `adjoint=False` is for what has no adjoint (attention): only the fitted reverse knows a way down.
    """

    reverse: Callable[[nn.Module, Tensor, Shape], Tensor]
    energy: Callable[[nn.Module, Shape], Tensor] | None = None
    exact: bool = False
    fitted: Callable[[nn.Module, Shape, Shape], Form | None] | None = None
    adjoint: bool = True


@dataclass(frozen=True)
class Activation:
    """An activation: what is generated behind it passes through the module itself, as the ReLU of eq. 1.

    Exact for ReLU. `slope(module)` is how steep it is below 0: the share 1 − slope of the negative half is
    lost on the way, which makes the scale 2/((1 + slope) n s²). `bounds(module)` are the least and the
    greatest value that it can have, to which the fitted reverse cuts.
    """

    slope: Callable[[nn.Module], float] = lambda module: 0.0
    bounds: Callable[[nn.Module], tuple[float, float]] = lambda module: (-inf, inf)


@dataclass(frozen=True)
class Norm:
    """A normalisation, folded into the map before it: y = gain·x + shift, fixed for all inputs.

    `affine(module, x)` is (gain, shift), each shaped to broadcast with one input. `x` is a batch of what
    enters the module on reference inputs, never the sample that is being reversed; it has no rows, and only
    its shape counts, where `from_data(module)` says that no statistics are needed.
    """

    affine: Callable[[nn.Module, Tensor], tuple[Tensor, Tensor]]
    from_data: Callable[[nn.Module], bool] = lambda module: True


AnyRule = Rule | Activation | Norm

_RULES: dict[type[nn.Module], AnyRule] = {}


def register_rule(kind: type[nn.Module], rule: AnyRule) -> None:
    """Teach every Shadow how to run modules of this kind (and its subclasses) backwards."""
    _RULES[kind] = rule


def register_all(kinds: Iterable[type[nn.Module]], rule: AnyRule) -> None:
    """One rule for several kinds."""
    _RULES.update(dict.fromkeys(kinds, rule))


def find_rule(module: nn.Module) -> AnyRule | None:
    """The rule of the nearest base class that has one, unless the module computes something else than that.

    A subclass with a forward of its own has the rule only if it was registered for itself.
    """
    for kind in type(module).__mro__:
        if kind in _RULES:
            own = [
                name
                for name in ("forward", "_conv_forward")  # a convolution computes in the second
                if getattr(type(module), name, None) is not getattr(kind, name, None)
            ]
            return _RULES[kind] if kind is type(module) or not own else None
    return None


def unchanged(module: nn.Module, h: Tensor, input_shape: Shape) -> Tensor:
    """The reverse of what does nothing in inference."""
    return h


def adjoint(module: Callable[[Tensor], Tensor], h: Tensor, input_shape: Shape) -> Tensor:
    """The adjoint of any module or function that is affine in its input, by automatic differentiation."""
    with torch.inference_mode(False), torch.enable_grad():
        x = torch.zeros(len(h), *input_shape, dtype=h.dtype, device=h.device, requires_grad=True)
        y = module(x)
    if y.requires_grad is False:  # no input reaches the output
        return torch.zeros_like(x)
    return torch.autograd.grad(y, x, h.to(y.dtype))[0]


def each_dimension(value: int | Sequence[int], dimensions: int) -> list[int]:
    """A setting of convolution or pooling, spelled out for every dimension."""
    if isinstance(value, int):
        return [value] * dimensions
    return list(value) * (dimensions if len(value) == 1 else 1)
