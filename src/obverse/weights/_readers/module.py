"""The matrices of a net to audit, each read only when asked for. Not for files: see `open_weights`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping

import torch
from torch import Tensor, nn
from torch.nn.modules.linear import NonDynamicallyQuantizableLinear
from torch.nn.utils import parametrize

from ..._core import BadInput
from .layout import weights_in
from .naming import Layer
from .state_dict import find_tensors
from .stored import Stored, Weight

__all__ = ["Weight", "weights_of"]

_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
_EMBEDDINGS = (nn.Embedding, nn.EmbeddingBag)
_ELEMENTWISE = (nn.LayerNorm, nn.RMSNorm)  # their weight may have the shape of an image and is no matrix


def weights_of(source: nn.Module | Mapping[str, Tensor]) -> tuple[Weight, ...]:
    """Every weight of a net or of a state dict, tied ones once, fused ones split.

    A module tells what its weights are; of a state dict only names and shapes are known, so that a
    transposed convolution, or one in groups, counts there as a plain one. Buffers of a module are not
    weights; weights under `torch.nn.utils.parametrize` are taken as the net uses them.
    """
    if isinstance(source, nn.Module):
        tensors: dict[str, Stored] = {}
        layers: dict[str, Layer] = {}
        for name, module in source.named_modules():
            prefix = f"{name}." if name else ""
            if isinstance(module, _ELEMENTWISE) or ".parametrizations." in f".{prefix}":
                continue
            tensors.update(_own(prefix, module))
            if layer := _layer(name, module):
                layers[f"{prefix}weight"] = layer
        return weights_in(tensors, f"the {type(source).__name__}", layers)
    if isinstance(source, Mapping):
        found = find_tensors(source, Tensor, "the state dict")
        return weights_in({name: _in_memory(name, one) for name, one in found.items()}, "the state dict")
    raise BadInput("an nn.Module or a state dict", got=type(source).__name__, do="pass the net")


def _own(prefix: str, module: nn.Module) -> Iterator[tuple[str, Stored]]:
    """A module's own parameters, with the masks of pruned ones."""
    for name, parameter in module.named_parameters(recurse=False):
        yield prefix + name, _in_memory(prefix + name, parameter)
        mask = getattr(module, f"{name.removesuffix('_orig')}_mask", None)
        if name.endswith("_orig") and isinstance(mask, Tensor):
            yield f"{prefix}{name.removesuffix('_orig')}_mask", _in_memory(prefix + name, mask)
    if parametrize.is_parametrized(module):
        for name in module.parametrizations:  # type: ignore[union-attr]

            def effective(name: str = name) -> Tensor:
                value: Tensor = getattr(module, name)
                return value.detach()

            yield prefix + name, _in_memory(prefix + name, effective(), effective)


def _in_memory(name: str, tensor: Tensor, load: Callable[[], Tensor] | None = None) -> Stored:
    if nn.parameter.is_lazy(tensor):
        raise BadInput(f"values in {name}", got="a lazy layer without a shape", do="run the net once")
    if tensor.is_meta:
        raise BadInput(f"values in {name}", got="a tensor on the meta device", do="load the weights first")
    dtype = str(tensor.dtype).removeprefix("torch.")
    if tensor.layout is not torch.strided:
        raise BadInput(f"a dense tensor as {name}", got=f"layout {tensor.layout}", do="use to_dense()")
    shape = tuple(tensor.shape)
    if load:
        return Stored(shape, dtype, load)
    # The same numbers under two names: the same place, seen the same way.
    place: Hashable = (tensor.device, tensor.data_ptr(), shape, tensor.stride()) if tensor.numel() else None
    return Stored(shape, dtype, lambda: tensor, place)


def _layer(name: str, module: nn.Module) -> Layer | None:
    if isinstance(module, nn.Linear):
        # MultiheadAttention reads the weight of its output layer without ever calling the layer.
        called = not isinstance(module, NonDynamicallyQuantizableLinear)
        return Layer("linear", name if called else None)
    if isinstance(module, _CONVOLUTIONS):
        return Layer("convolution", name, groups=module.groups)
    if isinstance(module, _TRANSPOSED):
        return Layer("convolution", inputs_first=True, groups=module.groups)
    if isinstance(module, _EMBEDDINGS):
        return Layer("embedding")
    if isinstance(module, nn.Bilinear):
        return Layer("matrix")
    return None
