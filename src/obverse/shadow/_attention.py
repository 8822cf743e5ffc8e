"""Attention, which has no adjoint of its own: rules for the fitted reverse alone.

A block of tokens is mapped back row by row: each token from the token at its place. Within a block that
torch.fx sees into, what attention returns goes down the path of the values; queries and keys are not asked.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from .._core import BadInput
from ._reversal import Form, Reach, Rule, Shape, register_all, register_rule, unchanged


class Attention(nn.Module):
    """A call of attention, as a step from its values."""


class Block(nn.Module):
    """A module of the net as one step, whatever it does within: fitted as a whole."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.inner = (module,)  # a tuple: it belongs to the net

    def forward(self, x: Tensor) -> Any:
        return self.inner[0](x)


class PairBlock(Block):
    """The same where it returns several things, of which the first is taken."""


PAIRS = (nn.MultiheadAttention, PairBlock)


def _none(module: nn.Module, h: Tensor, input_shape: Shape) -> Tensor:
    raise BadInput(
        "the fitted reverse for attention", got="the transpose", do='use Shadow(net, reverse="fitted")'
    )


def _tokens(module: Any, input_shape: Shape, output_shape: Shape) -> Form:
    return "rows" if input_shape[:-1] == output_shape[:-1] else "whole"


def _places(module: Any, input_shape: Shape, output_shape: Shape) -> Form:
    """Tokens to tokens; images place by place, whether their channels stand first or last."""
    if len(input_shape) == len(output_shape) >= 3 and input_shape[1:] == output_shape[1:]:
        ones, zeros = (1,) * (len(input_shape) - 1), (0,) * (len(input_shape) - 1)
        if input_shape[:-1] != output_shape[:-1] or input_shape[0] >= input_shape[-1]:
            return Reach(ones, ones, zeros, ones)
    return _tokens(module, input_shape, output_shape)


def _size(module: nn.Module, input_shape: Shape) -> Tensor:
    """No energy of its own: one, which makes it a layer to generate from."""
    return torch.ones(())


register_all(
    (nn.TransformerEncoderLayer, nn.TransformerEncoder),
    Rule(reverse=_none, energy=_size, fitted=_tokens, adjoint=False),
)
register_rule(Block, Rule(reverse=_none, energy=_size, fitted=_places, adjoint=False))
register_rule(PairBlock, Rule(reverse=_none, fitted=_places, adjoint=False))
register_rule(nn.MultiheadAttention, Rule(reverse=_none, fitted=_tokens, adjoint=False))
register_rule(Attention, Rule(reverse=unchanged, exact=True, adjoint=False))
