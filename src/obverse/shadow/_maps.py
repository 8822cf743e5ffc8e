"""Rules of the maps with weights: linear, convolution, transposed convolution. Adjoint and energy of each.

The energy of a convolution counts the weights that really meet an input: fewer at the border with zero
padding, several on the same pixel with the other padding modes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.prune import BasePruningMethod
from torch.nn.utils.spectral_norm import SpectralNorm
from torch.nn.utils.weight_norm import WeightNorm

from ._reversal import Form, Reach, Rule, Shape, adjoint, each_dimension, register_all

_CONVOLVE = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
_TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


class MapCall(nn.Module):
    """A map that the net writes as a function call, F.linear(x, w) or F.conv2d(x, w, …): its current weight
    and its settings, under the names that the module has."""

    def __init__(
        self, fetch: Callable[[], Tensor], bias: Callable[[], Tensor] | None, **settings: Any
    ) -> None:
        super().__init__()
        self._fetch, self._bias = fetch, bias
        for name, value in settings.items():
            setattr(self, name, value)

    @property
    def weight(self) -> Tensor:
        return self._fetch()

    @property
    def bias(self) -> Tensor | None:
        return None if self._bias is None else self._bias()


class LinearCall(MapCall):
    """F.linear."""

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)


class ConvCall(MapCall):
    """F.conv1d, F.conv2d, F.conv3d."""

    stride: Any
    padding: Any
    dilation: Any
    groups: int

    def forward(self, x: Tensor) -> Tensor:
        convolve = _CONVOLVE[self.weight.dim() - 2]
        return convolve(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


def weight_of(module: Any) -> Tensor:
    """The weight that the next forward pass in evaluation mode would use, as data."""
    return live_weight(module).detach()


def live_weight(module: Any) -> Tensor:
    """The same with its gradient.

    The old forms of weight norm, spectral norm and pruning fill it in at each pass; until then it is stale.
    """
    weight: Tensor | None = None
    for hook in module._forward_pre_hooks.values():
        if isinstance(hook, WeightNorm) and hook.name == "weight":
            weight = hook.compute_weight(module)
        elif isinstance(hook, SpectralNorm) and hook.name == "weight":
            weight = hook.compute_weight(module, do_power_iteration=False)
        elif isinstance(hook, BasePruningMethod) and hook._tensor_name == "weight":
            weight = hook.apply_mask(module)
    return module.weight if weight is None else weight


def adjoint_linear(module: Any, h: Tensor, input_shape: Shape) -> Tensor:
    weight = live_weight(module)
    return h.to(weight.dtype) @ weight


def linear_energy(module: Any, input_shape: Shape) -> Tensor:
    """The squared norm of each unit's weights."""
    return _norms(weight_of(module)).square()


def _norms(weight: Tensor) -> Tensor:
    """Norms over the inputs, without a temporary of the weight's size; in float32 where half overflows."""
    norms: Tensor = torch.linalg.vector_norm(weight, dim=1, dtype=_exact(weight))
    return norms


def _exact(weight: Tensor) -> torch.dtype:
    return torch.float32 if weight.dtype.itemsize < 4 else weight.dtype


def adjoint_conv(module: Any, h: Tensor, input_shape: Shape) -> Tensor:
    """The transposed convolution, and the adjoint of the padding where that is no zero padding."""
    weight = live_weight(module)
    spatial = weight.dim() - 2
    pads = _pads(module)
    if module.padding_mode == "zeros" and all(left == right for left, right in pads):
        return _transposed(weight, h, module, [left for left, _ in pads], input_shape[1:])
    padded = _padded_shape(module, input_shape)
    down = _transposed(weight, h, module, [0] * spatial, padded[1:])
    if module.padding_mode != "zeros":
        sides = [side for pair in reversed(pads) for side in pair]
        return adjoint(lambda x: F.pad(x, sides, mode=module.padding_mode), down, input_shape)
    # "same" with an even kernel: one more on the right
    for dimension, ((left, _), size) in enumerate(zip(pads, input_shape[1:], strict=True), start=2):
        down = down.narrow(dimension, left, size)
    return down


def _transposed(weight: Tensor, h: Tensor, module: Any, padding: list[int], size: Sequence[int]) -> Tensor:
    spatial = weight.dim() - 2
    extra = [
        want - ((have - 1) * stride - 2 * pad + dilation * (kernel - 1) + 1)
        for want, have, stride, pad, dilation, kernel in zip(
            size,
            h.shape[2:],
            each_dimension(module.stride, spatial),
            padding,
            each_dimension(module.dilation, spatial),
            weight.shape[2:],
            strict=True,
        )
    ]
    return _TRANSPOSED[spatial](
        h.to(weight.dtype), weight, None, module.stride, padding, extra, module.groups, module.dilation
    )


def conv_energy(module: Any, input_shape: Shape) -> Tensor:
    """Mean squared norm of the rows of each output channel, as the matrix of the convolution has them.

    Taps k and l of a unit at position o meet the same pixel where their sources agree; summed over o this
    splits into one count matrix a dimension: ‖A_c‖² = Σ_{k,l} ⟨w_ck, w_cl⟩ Π_d C_d[k_d, l_d].
    """
    weight = weight_of(module)
    spatial = weight.dim() - 2
    settings = zip(
        input_shape[1:],
        weight.shape[2:],
        each_dimension(module.stride, spatial),
        each_dimension(module.dilation, spatial),
        _pads(module),
        strict=True,
    )
    kind = _exact(weight)
    counts = [_meetings(*setting, module.padding_mode).to(weight.device, kind) for setting in settings]
    if module.padding_mode == "zeros":  # every tap has a pixel of its own: only k = l counts
        return (_norms(weight).square() * _outer([count.diagonal() for count in counts])).flatten(1).sum(1)
    flat = weight.flatten(2).to(kind)
    gram = torch.einsum("oik,oil->okl", flat, flat)
    for depth, count in enumerate(counts):
        gram = gram * _spread(count, [len(each) for each in counts], depth)
    return gram.sum((1, 2))


@lru_cache(maxsize=1024)
def _meetings(size: int, kernel: int, stride: int, dilation: int, pads: tuple[int, int], mode: str) -> Tensor:
    """C_d over the number of outputs: how often two taps meet the same pixel of one dimension, tap × tap."""
    source = _sources(size, *pads, mode)
    first = torch.arange(0, len(source) - dilation * (kernel - 1), stride)
    taps = source[first[:, None] + dilation * torch.arange(kernel)]  # output position × tap → pixel or −1
    same = (taps[:, :, None] == taps[:, None, :]) & (taps >= 0)[:, :, None]
    return same.double().mean(0)


def _outer(vectors: list[Tensor]) -> Tensor:
    result = vectors[0]
    for vector in vectors[1:]:
        result = result.unsqueeze(-1) * vector
    return result


def _spread(count: Tensor, kernels: list[int], depth: int) -> Tensor:
    """C_d as a matrix over flattened taps."""
    index = torch.arange(prod(kernels), device=count.device)
    digit = index // prod(kernels[depth + 1 :]) % kernels[depth]
    return count[digit[:, None], digit[None, :]]


def _sources(size: int, left: int, right: int, mode: str) -> Tensor:
    """The pixel behind each padded position, −1 for a zero."""
    if mode == "zeros":
        inner = torch.arange(-left, size + right)
        return torch.where((inner >= 0) & (inner < size), inner, -1)
    pixels = torch.arange(size, dtype=torch.float64)[None, None]
    return F.pad(pixels, (left, right), mode=mode)[0, 0].long()


def adjoint_transposed(module: Any, h: Tensor, input_shape: Shape) -> Tensor:
    """The convolution, cut to the input's size where output padding left a rest."""
    weight = live_weight(module)
    down = _CONVOLVE[weight.dim() - 2](
        h.to(weight.dtype), weight, None, module.stride, module.padding, module.dilation, module.groups
    )
    for dimension, size in enumerate(input_shape[1:], start=2):
        down = down.narrow(dimension, 0, size)
    return down


def transposed_energy(module: Any, input_shape: Shape) -> Tensor:
    """Mean squared norm of the rows of each output channel: a tap counts unless the padding cuts it off."""
    weight = weight_of(module)
    spatial = weight.dim() - 2
    shares, positions = [], 1
    for size, kernel, stride, dilation, pad, extra in zip(
        input_shape[1:],
        weight.shape[2:],
        each_dimension(module.stride, spatial),
        each_dimension(module.dilation, spatial),
        each_dimension(module.padding, spatial),
        each_dimension(module.output_padding, spatial),
        strict=True,
    ):
        length = (size - 1) * stride - 2 * pad + dilation * (kernel - 1) + extra + 1
        target = stride * torch.arange(size)[:, None] + dilation * torch.arange(kernel) - pad
        shares.append(((target >= 0) & (target < length)).sum(0).to(weight))
        positions *= length
    squares = weight.square().unflatten(0, (module.groups, -1)).sum(1).flatten(0, 1)  # out × taps
    energy: Tensor = (squares * (_outer(shares) / positions)).flatten(1).sum(1)
    return energy


def _pads(module: Any) -> list[tuple[int, int]]:
    """(left, right) of each dimension."""
    spatial = len(module.weight.shape) - 2
    if module.padding == "valid":
        return [(0, 0)] * spatial
    if module.padding == "same":
        totals = [
            dilation * (kernel - 1)
            for dilation, kernel in zip(
                each_dimension(module.dilation, spatial), module.weight.shape[2:], strict=True
            )
        ]
        return [(total // 2, total - total // 2) for total in totals]
    return [(pad, pad) for pad in each_dimension(module.padding, spatial)]


def _padded_shape(module: Any, input_shape: Shape) -> Shape:
    pads = _pads(module)
    return (
        input_shape[0],
        *(size + left + right for size, (left, right) in zip(input_shape[1:], pads, strict=True)),
    )


def linear_fit(module: Any, input_shape: Shape, output_shape: Shape) -> Form:
    return "rows"


def conv_reach(module: Any, input_shape: Shape, output_shape: Shape) -> Form:
    spatial = len(input_shape) - 1
    stride, dilation = (
        tuple(each_dimension(getattr(module, one), spatial)) for one in ("stride", "dilation")
    )
    padding = tuple(left for left, _ in _pads(module))
    return Reach(tuple(module.weight.shape[2:]), stride, padding, dilation, module.groups)


def transposed_reach(module: Any, input_shape: Shape, output_shape: Shape) -> Form:
    spatial = len(input_shape) - 1
    stride, padding, dilation = (
        tuple(each_dimension(getattr(module, one), spatial)) for one in ("stride", "padding", "dilation")
    )
    return Reach(tuple(module.weight.shape[2:]), stride, padding, dilation, module.groups, up=True)


register_all((nn.Linear, LinearCall), Rule(reverse=adjoint_linear, energy=linear_energy, fitted=linear_fit))
register_all(
    (nn.Conv1d, nn.Conv2d, nn.Conv3d, ConvCall),
    Rule(reverse=adjoint_conv, energy=conv_energy, fitted=conv_reach),
)
register_all(
    (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d),
    Rule(reverse=adjoint_transposed, energy=transposed_energy, fitted=transposed_reach),
)
