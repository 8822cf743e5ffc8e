"""How one layer runs backwards: pure functions, and the registry of rules by kind of module.

Not for whole nets (see trace and shadow) nor for gradients: generation is data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..errors import BadInput

Shape = tuple[int, ...]


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


def drop(x: Tensor, keep: float, generator: torch.Generator | None = None) -> Tensor:
    """x ⊙ mask, mask ~ Bernoulli(keep) (the dropout noise of eq. 1). Works in place; nothing is rescaled."""
    if check_keep(keep) == 1.0:
        return x
    mask = torch.empty_like(x).bernoulli_(keep, generator=generator)
    return x.mul_(mask)


@torch.no_grad()
def reverse_linear(
    weight: Tensor,
    h: Tensor,
    *,
    scale: float | Tensor = 1.0,
    keep: float = 1.0,
    relu: bool = True,
    generator: torch.Generator | None = None,
) -> Tensor:
    """One draw of x = r(αWh) ⊙ mask (eq. 1) for a batch of h.

    `weight` is shaped as in nn.Linear (out × in, the transpose of the paper's W); `scale` is α, `keep`
    is ρ. With `relu=False` the input may be negative (the layer below has no ReLU).
    """
    return finish_reverse(h @ weight, scale=scale, keep=keep, relu=relu, generator=generator)


def finish_reverse(
    x: Tensor, *, scale: float | Tensor, keep: float, relu: bool, generator: torch.Generator | None
) -> Tensor:
    """The part of eq. 1 after the adjoint: scale, ReLU, mask. Works in place on `x`."""
    if not (isinstance(scale, (int, float)) and scale == 1.0):
        x = x.mul_(scale)
    if relu:
        x = x.relu_()
    return drop(x, keep, generator)


@dataclass(frozen=True)
class Rule:
    """How one kind of module takes part in a shadow.

    `reverse(module, h, input_shape)` is the adjoint without scale, ReLU or mask; `input_shape` is the
    shape of one input of this module, or None where it is not known. A rule with an `energy` is a
    *layer* (an affine map that generation inverts); `activation=True` marks the ReLU that follows one.
    A rule with neither (dropout, flatten) only passes through. `infer` is what the module does in
    inference, by default the module itself.
    """

    reverse: Callable[[nn.Module, Tensor, Shape | None], Tensor]
    energy: Callable[[nn.Module], Tensor] | None = None
    activation: bool = False
    infer: Callable[[nn.Module, Tensor], Tensor] | None = None


_RULES: dict[type[nn.Module], Rule] = {}


def register_rule(kind: type[nn.Module], rule: Rule) -> None:
    """Teach every Shadow how to run modules of this kind (and its subclasses) backwards."""
    _RULES[kind] = rule


def rule_for(module: nn.Module, name: str) -> Rule:
    """The rule of the nearest base class that has one."""
    for kind in type(module).__mro__:
        if kind in _RULES:
            return _RULES[kind]
    known = ", ".join(sorted(kind.__name__ for kind in _RULES))
    raise BadInput(
        f"a chain of layers that can be reversed ({known})",
        got=f"layer {name!r} of type {type(module).__name__}",
        do="build the net as an nn.Sequential of these, or register a rule: "
        f"obverse.shadow.register_rule({type(module).__name__}, Rule(reverse=…))",
    )


def _unchanged(module: nn.Module, h: Tensor, input_shape: Shape | None = None) -> Tensor:
    return h


def _linear_adjoint(module: nn.Module, h: Tensor, input_shape: Shape | None) -> Tensor:
    assert isinstance(module, nn.Linear)
    return h @ module.weight


def _linear_energy(module: nn.Module) -> Tensor:
    assert isinstance(module, nn.Linear)
    return weight_energy(module.weight)


def _relu(module: nn.Module, x: Tensor) -> Tensor:
    return x.relu()  # a new tensor, also where the module works in place


def _unflatten(module: nn.Module, h: Tensor, input_shape: Shape | None) -> Tensor:
    assert isinstance(module, nn.Flatten)
    if (module.start_dim, module.end_dim) != (1, -1):
        raise BadInput(
            "Flatten(start_dim=1, end_dim=-1)",
            got=f"Flatten(start_dim={module.start_dim}, end_dim={module.end_dim})",
            do="flatten everything but the batch, or register a rule for your own module",
        )
    return h if input_shape is None else h.reshape(len(h), *input_shape)


register_rule(nn.Linear, Rule(reverse=_linear_adjoint, energy=_linear_energy))
register_rule(nn.ReLU, Rule(reverse=_unchanged, activation=True, infer=_relu))
register_rule(nn.Dropout, Rule(reverse=_unchanged, infer=_unchanged))
register_rule(nn.AlphaDropout, Rule(reverse=_unchanged, infer=_unchanged))
register_rule(nn.Identity, Rule(reverse=_unchanged, infer=_unchanged))
register_rule(nn.Flatten, Rule(reverse=_unflatten))
