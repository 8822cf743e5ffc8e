"""The deep linear net, with the identity in every layer or without. Not for nets with ReLUs."""

from __future__ import annotations

from math import inf

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .._core import BadInput


class LinearResidual(nn.Module):
    """x → (I + A_l)⋯(I + A_1)x, the linear residual net of eq. 2 of Hardt & Ma.

    `weights` holds A_1 to A_l, layers × dim × dim. They start as N(0, scale²); with scale 0 the net is the
    identity. With `residual=False` it is the plain deep linear net A_l⋯A_1 x, for contrast.

    >>> LinearResidual(2, 5)(torch.tensor([3.0, 4.0])).tolist()
    [3.0, 4.0]
    """

    def __init__(
        self,
        dim: int,
        layers: int,
        *,
        residual: bool = True,
        scale: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        for name, value in (("dim", dim), ("layers", layers)):
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise BadInput(f"{name} as a whole number of at least 1", got=repr(value), do=f"check {name}")
        if isinstance(scale, bool) or not isinstance(scale, int | float) or not 0 <= scale < inf:
            raise BadInput("a finite scale ≥ 0", got=repr(scale), do="use 0 to start at the identity")
        super().__init__()
        self.residual = residual
        start = torch.zeros(layers, dim, dim)
        if scale:
            start.normal_(0.0, scale, generator=generator)
        self.weights = nn.Parameter(start)

    def forward(self, x: Tensor) -> Tensor:
        """x of shape (…, dim), and the result too."""
        layers, dim, _ = self.weights.shape
        if x.shape[-1:] != (dim,):
            raise BadInput(
                f"inputs of {dim} numbers each", got=f"shape {tuple(x.shape)}", do="check dim or reshape them"
            )
        for layer in range(layers):
            change = F.linear(x, self.weights[layer])
            x = x + change if self.residual else change
        return x

    def matrix(self) -> Tensor:
        """The product of all layers, dim × dim: what the net multiplies x with."""
        columns: Tensor = self(torch.eye(self.weights.shape[1]).to(self.weights))
        return columns.mT

    def extra_repr(self) -> str:
        layers, dim, _ = self.weights.shape
        return f"dim={dim}, layers={layers}, residual={self.residual}"
