"""Where in a net a weight matrix lies, and another matrix put there for a while. Not for which matrix.

It is the inverse of the readers: what they cut out of a tensor is written back by the same cut, so that
convolutions, groups, transposed ones, gates, fused projections and inputs-first layers need no code here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from .._readers.stored import Weight


@dataclass(frozen=True)
class Place:
    """A tensor that a module uses as a weight: a parameter, or what it computes from parameters."""

    module: nn.Module
    name: str

    def read(self) -> Tensor:
        """As the net uses it."""
        value: Tensor = getattr(self.module, self.name)
        return value.detach()


def place_of(net: nn.Module, weight: Weight) -> Place:
    module, _, name = weight.tensor.rpartition(".")
    return Place(net.get_submodule(module), name)


def matrix_of(net: nn.Module, weight: Weight) -> Tensor:
    """A copy of the matrix as the net uses it, in float32 (float64 stays).

    For weights that a hook computes (pruning, the older weight norm) it is that of the last run.
    """
    assert weight.cut is not None
    cut = weight.cut(place_of(net, weight).read()).reshape(weight.rows, weight.columns)
    return cut.to(torch.promote_types(cut.dtype, torch.float32), copy=True)


def with_matrix(whole: Tensor, weight: Weight, matrix: Tensor) -> Tensor:
    """A copy of a stored tensor in which `matrix` stands where the reader takes the weight from."""
    assert weight.cut is not None
    result = whole.clone(memory_format=torch.contiguous_format)
    part = weight.cut(result)
    if part.untyped_storage().data_ptr() == result.untyped_storage().data_ptr():  # a view
        part.copy_(matrix.reshape(part.shape))
    else:
        places = weight.cut(torch.arange(whole.numel(), device=whole.device).reshape(whole.shape))
        result.view(-1)[places.flatten()] = matrix.to(result).flatten()
    return result


@contextmanager
def replaced(net: nn.Module, matrices: Iterable[tuple[Weight, Tensor]]) -> Iterator[None]:
    """Inside, the net has these matrices; afterwards its own, bit by bit, whatever happened.

    Weights that are tied change together.
    """
    tensors: dict[str, tuple[Place, Tensor]] = {}
    for weight, matrix in matrices:
        place = place_of(net, weight)
        whole = tensors[weight.tensor][1] if weight.tensor in tensors else place.read()
        tensors[weight.tensor] = place, with_matrix(whole, weight, matrix)
    with ExitStack() as stack:
        for place, tensor in tensors.values():
            stack.enter_context(_holding(place, tensor))
        yield


@contextmanager
def _holding(place: Place, tensor: Tensor) -> Iterator[None]:
    module, name = place.module, place.name
    if parametrize.is_parametrized(module, name):
        with _in_place_of_the_parametrization(module, name, tensor):
            yield
    elif name in module._parameters:
        parameter = getattr(module, name).data  # .data: graphs that use it must not see a change
        own = parameter.clone(memory_format=torch.preserve_format)
        try:
            parameter.copy_(tensor)
            yield
        finally:
            parameter.copy_(own)
    else:
        with _after_the_hooks(module, name, tensor):
            yield


class _Constant(nn.Module):
    def __init__(self, tensor: Tensor) -> None:
        super().__init__()
        self.register_buffer("tensor", tensor, persistent=False)

    def forward(self) -> Tensor:
        tensor: Tensor = self.tensor  # type: ignore[assignment]
        return tensor


@contextmanager
def _in_place_of_the_parametrization(module: nn.Module, name: str, tensor: Tensor) -> Iterator[None]:
    """`torch.nn.utils.parametrize` asks `parametrizations[name]()` for the weight."""
    kept: nn.ModuleDict = module.parametrizations  # type: ignore[assignment]
    own = kept[name]
    try:
        kept[name] = _Constant(tensor)
        yield
    finally:
        kept[name] = own


@contextmanager
def _after_the_hooks(module: nn.Module, name: str, tensor: Tensor) -> Iterator[None]:
    """Pruning and the older norms compute the weight in hooks before each run: a hook after them wins."""
    own = getattr(module, name)

    def put(*_: object) -> None:
        setattr(module, name, tensor)

    handle = module.register_forward_pre_hook(put)
    try:
        put()
        yield
    finally:
        handle.remove()
        setattr(module, name, own)
