"""The residual net of Theorem 3, from given weights: projection, blocks h + V r(Uh + s), class scores.

Not for finding the weights: see obverse.identity.memorize.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from .._core import BadInput

# Each tensor by the letters of its sizes: d inputs, k units, l blocks, r classes.
SHAPES = {
    "centre": "d",
    "projection": "kd",
    "offset": "k",
    "inner": "lkk",
    "shift": "lk",
    "outer": "lkk",
    "head": "rk",
    "head_bias": "r",
}
RESTORE = "use what obverse.identity.memorize built"
TYPES = {torch.float16, torch.bfloat16, torch.float32, torch.float64}


class ResidualMemory(nn.Module):
    """h = P(x − centre) + offset, then h + V r(Uh + s) block after block, then scores of the classes.

    The blocks are stacked: `inner` (U), `shift` (s) and `outer` (V) have one slice a block. Inputs of any
    shape are flattened and take the type of the weights. The weights ask for no gradient, as they were not
    found by one: call `requires_grad_()` to train them.
    """

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        super().__init__()
        check_memory(tensors)
        self.facts: Any = None  # what its builder says of it
        self.register_buffer("centre", tensors["centre"])
        for name in list(SHAPES)[1:]:
            self.register_parameter(name, nn.Parameter(tensors[name], requires_grad=False))

    centre: Tensor
    projection: Tensor
    offset: Tensor
    inner: Tensor
    shift: Tensor
    outer: Tensor
    head: Tensor
    head_bias: Tensor

    @property
    def width(self) -> int:
        return self.projection.shape[0]

    @property
    def classes(self) -> int:
        return self.head.shape[0]

    def project(self, x: Tensor) -> Tensor:
        """The points as the first block sees them, rows of `width` numbers."""
        if x.dim() < 2 or x.shape[1:].numel() != len(self.centre):
            raise BadInput(
                f"a batch of inputs with {len(self.centre)} numbers each",
                got=f"a tensor of shape {tuple(x.shape)}",
                do="give it inputs like those it was built from",
            )
        return (x.flatten(1).to(self.centre) - self.centre) @ self.projection.T + self.offset

    def block(self, h: Tensor, index: int) -> Tensor:
        """h + V r(Uh + s) of one block."""
        return _block(h, self.inner[index].T, self.shift[index], self.outer[index].T)

    def forward(self, x: Tensor) -> Tensor:
        h = self.project(x)
        for inner, shift, outer in zip(self.inner.mT, self.shift, self.outer.mT, strict=True):
            h = _block(h, inner, shift, outer)
        return torch.addmm(self.head_bias, h, self.head.T)

    def extra_repr(self) -> str:
        return (
            f"inputs={len(self.centre)}, width={self.width}, blocks={len(self.inner)}, classes={self.classes}"
        )


def _block(h: Tensor, inner: Tensor, shift: Tensor, outer: Tensor) -> Tensor:
    return torch.addmm(h, torch.addmm(shift, h, inner).relu(), outer)


def check_memory(tensors: Mapping[str, Tensor]) -> None:
    """Refuse tensors that are not those of such a net: names, sizes, one type, finite."""
    missing, more = sorted(set(SHAPES) - set(tensors)), sorted(set(tensors) - set(SHAPES))
    if missing or more:
        got = [f"none named {', '.join(missing)}"] * bool(missing) + [f"{', '.join(more)} too"] * bool(more)
        raise BadInput(f"the tensors {', '.join(SHAPES)}", got=" and ".join(got), do=RESTORE)
    kinds = {tensor.dtype for tensor in tensors.values()}
    if len(kinds) != 1 or not kinds <= TYPES:
        raise BadInput(
            "one floating type for all tensors", got=", ".join(sorted(map(str, kinds))), do=RESTORE
        )
    sizes: dict[str, int] = {}
    for name, letters in SHAPES.items():
        shape = tuple(tensors[name].shape)
        known = tuple(sizes.get(letter, size) for letter, size in zip(letters, shape, strict=False))
        if len(shape) != len(letters) or shape != known or min(shape) < 1:
            wanted = " × ".join(str(sizes.get(letter, letter)) for letter in letters)
            raise BadInput(f"{name} of {wanted} numbers", got=f"a tensor of shape {shape}", do=RESTORE)
        sizes |= dict(zip(letters, shape, strict=True))
        if not torch.isfinite(tensors[name]).all():
            raise BadInput(f"finite numbers in {name}", got="others", do=RESTORE)
    if sizes["r"] < 2:
        raise BadInput("at least two classes in head", got="one", do=RESTORE)
