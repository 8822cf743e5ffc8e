"""Products of two tensors that are both computed: attention, gates, and what is neither.

In softmax(q kᵀ) v the weights of the sum come out of a softmax, on whichever side they stand: the step is one
from the values. A factor that comes out of an activation gates the other. Of any other product neither factor
can be known from the result alone; the fitted reverse fits both to it, the transpose has no way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, fx, nn

from .._core import BadInput
from . import _structure as st
from ._activations import SelfGate
from ._graph import Stage
from ._reversal import Activation, Form, Rule, Shape, register_rule


class Product(nn.Module):
    """a · b or a @ b, neither of which weighs or gates the other."""


def _none(module: nn.Module, h: Tensor, input_shape: Shape) -> Tensor:
    raise BadInput(
        "the fitted reverse for a product of two computed tensors",
        got="the transpose",
        do='use Shadow(net, reverse="fitted")',
    )


def _factor(module: Any, input_shape: Shape, output_shape: Shape) -> Form:
    return "rows" if input_shape[:-1] == output_shape[:-1] else "whole"


register_rule(Product, Rule(reverse=_none, fitted=_factor, adjoint=False))

_SQUASHING = (nn.Sigmoid, nn.Hardsigmoid, nn.Softmax, nn.Tanh, st.Clamp)
_PASSING = (st.Reshape, st.Call, nn.Identity, st.Factor, nn.Dropout)


def comes_from(
    kinds: tuple[type[nn.Module], ...], node: Any, of: Mapping[fx.Node, int], stages: Sequence[Stage]
) -> bool:
    """Whether a tensor comes out of one of some kinds of modules, reshaped or not."""
    stage = stages[of[node]] if isinstance(node, fx.Node) and node in of else None
    while stage is not None:
        if isinstance(stage.module, kinds):
            return True
        passes = isinstance(stage.module, _PASSING) and bool(stage.inputs)
        stage = stages[stage.inputs[0]] if passes else None
    return False


def is_gate(node: fx.Node, of: Mapping[fx.Node, int], stages: Sequence[Stage]) -> bool:
    return comes_from(_SQUASHING, node, of, stages)


def is_activated(node: fx.Node, of: Mapping[fx.Node, int], stages: Sequence[Stage]) -> bool:
    """Whether a factor comes out of any activation, as that of SwiGLU does."""
    kinds = tuple(
        {type(one.module) for one in stages if isinstance(one.rule, Activation)} - {nn.Identity, SelfGate}
    )
    return bool(kinds) and comes_from(kinds, node, of, stages)


def value_of(node: fx.Node, of: Mapping[fx.Node, int], stages: Sequence[Stage]) -> fx.Node | None:
    """Of a matrix product, the factor that the other weighs; None where no weights come from a softmax."""
    left, right = (*node.args, *node.kwargs.values())[:2]
    for weights, value in ((left, right), (right, left)):
        if comes_from((nn.Softmax, nn.Sigmoid), weights, of, stages):
            return value if isinstance(value, fx.Node) else None
    return None


def entrywise(
    value: fx.Node, gate: fx.Node, of: Mapping[fx.Node, int], stages: Sequence[Stage]
) -> tuple[nn.Module, ...] | None:
    """The chain of modules that makes the gate from the value entry by entry, None where there is none."""
    chain: list[nn.Module] = []
    stage = stages[of[gate]] if gate in of else None
    while stage is not None and stage.node is not value:
        if not isinstance(stage.rule, Activation) and not isinstance(stage.module, st.Shift | st.Factor):
            return None
        chain.append(stage.module)
        stage = stages[stage.inputs[0]]
    return tuple(reversed(chain)) if chain else None
