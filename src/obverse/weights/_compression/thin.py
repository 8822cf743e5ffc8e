"""One layer as two thin ones, with the product of two matrices in place of its weight. Not for which ones.

A linear layer becomes columns → rank → rows. A convolution becomes one with the same kernel and `rank`
channels, followed by a 1×1 convolution; its weight counts as the matrix on a patch.
"""

from __future__ import annotations

from collections import Counter

import torch
from torch import Tensor, nn

# Exactly these: a subclass may do anything with its weight.
KINDS = (nn.Linear, nn.Conv1d, nn.Conv2d)
# They read the weights of some of their layers without calling the layers.
READERS = (nn.MultiheadAttention, nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)


def pays(rank: int, rows: int, columns: int) -> bool:
    """Whether two thin layers have fewer weights than the one."""
    return rank > 0 and rank * (rows + columns) < rows * columns


def thin_layers(layer: nn.Module, rank: int) -> nn.Sequential:
    """Two layers in the place of one, their weights not yet set; the second has the bias."""
    like = {"device": layer.weight.device, "dtype": layer.weight.dtype}
    bias = layer.bias is not None
    first: nn.Module
    second: nn.Module
    if isinstance(layer, nn.Linear):
        first = nn.utils.skip_init(nn.Linear, layer.in_features, rank, bias=False, **like)
        second = nn.utils.skip_init(nn.Linear, rank, layer.out_features, bias=bias, **like)
    else:
        assert isinstance(layer, nn.Conv1d | nn.Conv2d)
        kind = type(layer)
        first = nn.utils.skip_init(
            kind,
            layer.in_channels,
            rank,
            layer.kernel_size,
            stride=layer.stride,
            padding=layer.padding,
            dilation=layer.dilation,
            padding_mode=layer.padding_mode,
            bias=False,
            **like,
        )
        second = nn.utils.skip_init(kind, rank, layer.out_channels, 1, bias=bias, **like)
    made = nn.Sequential(first, second).train(layer.training)
    return made.requires_grad_(layer.weight.requires_grad)


@torch.no_grad()
def fill(made: nn.Sequential, left: Tensor, right: Tensor, bias: Tensor | None) -> None:
    """rows × rank and rank × columns into two thin layers."""
    for layer, matrix in zip(made, (right, left), strict=True):
        weight = layer.get_parameter("weight")
        weight.copy_(matrix.reshape(weight.shape))
    if bias is not None:
        made[1].get_parameter("bias").copy_(bias)


def why_not(net: nn.Module) -> dict[str, str]:
    """Every linear layer and convolution by name: empty, or why it cannot be replaced."""
    names = Counter(id(module) for _, module in net.named_modules(remove_duplicate=False))
    uses = Counter(id(one) for module in net.modules() for one in module._parameters.values())
    read = {
        child
        for name, module in net.named_modules()
        if isinstance(module, READERS)
        for child in _below(name, module)
    }
    return {
        name: _reason(module, names[id(module)], uses, read=name in read)
        for name, module in net.named_modules()
        if isinstance(module, KINDS)
    }


def _below(name: str, module: nn.Module) -> list[str]:
    prefix = f"{name}." if name else ""
    return [f"{prefix}{child}" for child, _ in module.named_children()]


def _reason(module: nn.Module, places: int, uses: Counter[int], *, read: bool) -> str:
    weight = module._parameters.get("weight")
    if weight is None:
        return "its weight is computed from other parameters"
    if type(module) not in KINDS:
        return f"a {type(module).__name__}, which may use its weight in its own way"
    if places > 1 or uses[id(weight)] > 1:
        return "its weight is used in several places"
    if getattr(module, "groups", 1) != 1:
        return "a convolution in groups"
    if read:
        return "its parent reads the weight without calling the layer"
    if module._forward_hooks or module._forward_pre_hooks:
        return "it has hooks"
    return ""


def put(net: nn.Module, name: str, made: nn.Module) -> nn.Module:
    """The net with another module under that name."""
    if not name:
        return made
    parent, _, child = name.rpartition(".")
    setattr(net.get_submodule(parent), child, made)
    return net
