"""What nets do besides layers: shapes, constants, joins; and function calls as the modules they stand for.

Everything here either has a rule or is in KNOWN.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.nn import functional as F

from ..nets import SampleDropout
from ._pooling import ADAPTIVE_MAX_POOLS, collapsed
from ._reversal import Activation, Rule, Shape, adjoint, register_all, register_rule, unchanged


class Reshape(nn.Module):
    """view, reshape, flatten and their like: the same numbers in the same order."""


class Call(nn.Module):
    """A function that is linear in its one tensor, with the other arguments fixed."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


class Shift(nn.Module):
    """x + a constant: a bias, which generation leaves out as it does those of layers."""

    def __init__(self, constant: Callable[[], Any]) -> None:
        super().__init__()
        self.constant = constant

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = x + self.constant()
        return result


class Factor(nn.Module):
    """x times a constant."""

    def __init__(self, constant: Callable[[], Any]) -> None:
        super().__init__()
        self.constant = constant

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = x * self.constant()
        return result


class Input(nn.Module):
    """Where the net begins."""


class Constant(nn.Module):
    """What no input decides, beside what is computed: a token that is put in."""


class Maximum(nn.Module):
    """The greatest along some dimensions."""

    def __init__(self, function: Callable[[Tensor], Tensor], dimensions: tuple[int, ...]) -> None:
        super().__init__()
        self.function, self.dimensions = function, dimensions

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)

    def with_dimensions(self, h: Tensor, input_shape: Shape) -> Tensor:
        """The maxima with the dimensions that are gone from them as of length 1."""
        total = len(input_shape) + 1
        for dimension in sorted(one % total for one in self.dimensions):
            h = h.unsqueeze(dimension)
        return h


class Clamp(nn.Module):
    """torch.clamp as an activation."""

    def __init__(self, min: float | None = None, max: float | None = None) -> None:
        super().__init__()
        self.bounds = (min, max)

    def forward(self, x: Tensor) -> Tensor:
        return x.clamp(*self.bounds)


class Add(nn.Module):
    """a + b, both computed from the input: a residual connection. `signs` has −1 for what is subtracted."""

    def __init__(self, signs: tuple[int, ...]) -> None:
        super().__init__()
        self.signs = signs


class Concatenate(nn.Module):
    """Several tensors side by side along `dimension`."""

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.dimension = dimension


class Gate(nn.Module):
    """value × gate, both computed from the input (squeeze-and-excite): the gate counts as a constant, its
    mean over reference inputs."""


KNOWN = (Add, Concatenate, Gate, Factor)  # run backwards by `generate` itself, without a rule


def _reshape_back(module: nn.Module, h: Tensor, input_shape: Shape) -> Tensor:
    return h.reshape(len(h), *input_shape)


register_all((Reshape, nn.Flatten, nn.Unflatten), Rule(reverse=_reshape_back, exact=True))
register_rule(Call, Rule(reverse=adjoint, fitted=collapsed))
register_all((nn.PixelShuffle, nn.PixelUnshuffle, nn.ChannelShuffle), Rule(reverse=adjoint, exact=True))
_DROPOUTS = (
    nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout,
    SampleDropout,
)  # fmt: skip
register_all((Input, Constant, Shift, nn.Identity, *_DROPOUTS), Rule(reverse=unchanged, exact=True))


def _spread_maximum(module: Any, h: Tensor, input_shape: Shape) -> Tensor:
    """The greatest x whose maxima are these: each at all places that it was taken over."""
    if h.dim() != len(input_shape) + 1:
        h = module.with_dimensions(h, input_shape)
    return h.expand(len(h), *input_shape)


register_rule(Maximum, Rule(reverse=_spread_maximum, exact=True, fitted=collapsed))
register_rule(Clamp, Activation())

# Function calls that stand for a module, by its class; the arguments carry the same names in both.
MODULES: dict[Any, type[nn.Module]] = {
    F.relu6: nn.ReLU6, F.leaky_relu: nn.LeakyReLU, F.gelu: nn.GELU, F.silu: nn.SiLU, F.mish: nn.Mish,
    F.hardswish: nn.Hardswish, F.elu: nn.ELU, F.celu: nn.CELU, F.selu: nn.SELU, F.hardsigmoid: nn.Hardsigmoid,
    F.softplus: nn.Softplus, F.hardtanh: nn.Hardtanh,
    F.max_pool1d: nn.MaxPool1d, F.max_pool2d: nn.MaxPool2d, F.max_pool3d: nn.MaxPool3d,
    F.adaptive_max_pool1d: nn.AdaptiveMaxPool1d, F.adaptive_max_pool2d: nn.AdaptiveMaxPool2d,
    F.adaptive_max_pool3d: nn.AdaptiveMaxPool3d, F.local_response_norm: nn.LocalResponseNorm,
}  # fmt: skip
_ACTIVATIONS = {
    nn.ReLU: (F.relu, F.relu_, torch.relu, torch.relu_, "relu", "relu_"),
    nn.Sigmoid: (F.sigmoid, torch.sigmoid, torch.sigmoid_, "sigmoid", "sigmoid_"),
    nn.Tanh: (F.tanh, torch.tanh, torch.tanh_, "tanh", "tanh_"),
    nn.Softmax: (F.softmax, torch.softmax, "softmax"),
}
_NOTHING = (
    F.dropout, F.dropout1d, F.dropout2d, F.dropout3d, F.alpha_dropout, F.feature_alpha_dropout, torch.clone,
    torch.as_tensor, torch.asarray,
    torch.detach, "contiguous", "clone", "detach", "to", "float", "half", "bfloat16", "double", "type",
)  # fmt: skip
_RESHAPES = (
    torch.flatten, torch.reshape, torch.unflatten, torch.squeeze, torch.unsqueeze, torch.ravel, "flatten",
    "reshape", "unflatten", "squeeze", "unsqueeze", "view", "view_as", "reshape_as",
)  # fmt: skip
for _kind, _names in {**_ACTIVATIONS, nn.Identity: _NOTHING, Reshape: _RESHAPES}.items():
    MODULES.update(dict.fromkeys(_names, _kind))

# Linear in their tensor, whatever the other arguments are: the adjoint is found by differentiation.
LINEAR = {
    torch.mean, "mean", torch.sum, "sum", torch.permute, "permute", torch.transpose, "transpose", "t",
    torch.movedim, "movedim", torch.swapaxes, "swapaxes", torch.flip, "flip", torch.roll, "roll",
    torch.narrow, "narrow", torch.select, "select", torch.broadcast_to, "expand", "expand_as", "repeat",
    torch.neg, "neg", operator.neg, operator.getitem, F.pad, F.interpolate, F.upsample, F.fold, F.unfold,
    F.pixel_shuffle, F.pixel_unshuffle, F.channel_shuffle, F.avg_pool1d, F.avg_pool2d, F.avg_pool3d,
    F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d, torch.einsum, torch.unflatten,
    torch.index_select, "index_select", torch.rot90, torch.cumsum, "cumsum", torch.tile, "tile",
}  # fmt: skip
ADDITIONS = {operator.add, operator.iadd, torch.add, "add", "add_"}
SUBTRACTIONS = {operator.sub, operator.isub, torch.sub, "sub", "sub_"}
PRODUCTS = {operator.mul, operator.imul, torch.mul, "mul", "mul_"}
QUOTIENTS = {operator.truediv, operator.itruediv, torch.div, "div", "div_"}
ATTENTIONS = {F.scaled_dot_product_attention}
MATRIX_PRODUCTS = {torch.matmul, torch.bmm, operator.matmul, "matmul", "bmm"}
MAP_CALLS = {F.linear, F.conv1d, F.conv2d, F.conv3d}
CONCATENATIONS = {torch.cat, torch.concat, torch.concatenate, torch.hstack}
PIECES = {
    torch.chunk,
    "chunk",
    torch.split,
    "split",
    torch.unbind,
    "unbind",
    torch.tensor_split,
    "tensor_split",
}
SHAPES = {
    *("size", "dim", "numel", "ndimension", "stride", "is_contiguous", "get_device", "is_floating_point"),
    *("new_zeros", "new_ones", "new_full", "new_empty", "element_size", "__len__"),
}
LIKE = {torch.zeros_like, torch.ones_like, torch.full_like, torch.empty_like, len, torch.is_floating_point}
FACTS = (
    "shape",
    "ndim",
    "dtype",
    "device",
    "is_cuda",
    "is_quantized",
    "is_nested",
    "layout",
    "requires_grad",
)
TURNED = ("T", "mT", "data")
MAXIMA = {torch.max, "max"}
NORM_CALLS: dict[Any, tuple[str, ...]] = {
    F.layer_norm: ("normalized_shape", "weight", "bias", "eps"),
    F.group_norm: ("num_groups", "weight", "bias", "eps"),
    F.normalize: ("p", "dim", "eps"),
}
CLAMPS = {torch.clamp, torch.clip, "clamp", "clip", "clamp_"}


def module_for(node: fx.Node, settings: dict[str, Any]) -> nn.Module | None:
    """The module that a function call stands for, None where it stands for none."""
    kind = MODULES.get(node.target)
    if kind is None:
        return None
    if kind in (Reshape, nn.Identity):
        return kind()
    known = inspect.signature(kind.__init__).parameters
    return kind(**{name: value for name, value in settings.items() if name in known and name != "inplace"})


def named_arguments(node: fx.Node) -> dict[str, Any]:
    """The arguments of a call by name, without the tensor."""
    if node.op == "call_method" or not callable(node.target):
        return dict(node.kwargs)
    try:
        bound = inspect.signature(node.target).bind(*node.args, **node.kwargs).arguments
    except (ValueError, TypeError):  # a built-in that does not say
        own = ("input", *_BUILTIN_NAMES.get(node.target, ()))
        bound = dict(zip(own, node.args, strict=False)) | dict(node.kwargs)
    named = {key: value for key, value in bound.items() if key not in ("input", "args", "kwargs")}
    if bound.get("args"):  # a dispatching function such as F.max_pool2d
        adaptive = MODULES.get(node.target) in ADAPTIVE_MAX_POOLS
        names = ("output_size", "return_indices") if adaptive else _POOL_NAMES
        named |= dict(zip(names, bound["args"][1:], strict=False))
    return named | dict(bound.get("kwargs", {}))


_POOL_NAMES = ("kernel_size", "stride", "padding", "dilation", "ceil_mode", "return_indices")
_BUILTIN_NAMES: dict[Any, tuple[str, ...]] = {F.gelu: ("approximate",), F.softplus: ("beta", "threshold")}
