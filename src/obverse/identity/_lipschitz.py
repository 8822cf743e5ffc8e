"""How fast a memorizing net changes: its Jacobian at points, and the bound from the norms of its weights."""

from __future__ import annotations

from math import log
from typing import Any

import torch
from torch import Tensor

from ..nets import ResidualMemory


@torch.no_grad()
def local_lipschitz(net: ResidualMemory, x: Tensor, rows: int = 500) -> Tensor:
    """‖Jacobian of the scores with respect to the input‖₂ at each point: how fast the net changes there."""
    return torch.cat([_steepness(net, part) for part in x.split(rows)])


def _steepness(net: ResidualMemory, x: Tensor) -> Any:
    h = net.project(x)
    # of h by the projected input
    jacobians = torch.eye(net.width, dtype=h.dtype).expand(len(h), -1, -1).clone()
    for inner, shift, outer in zip(net.inner, net.shift, net.outer, strict=True):
        answers = h @ inner.T + shift
        moved = (answers > 0).any(1)
        if moved.any():
            active = (answers[moved] > 0).to(h)
            step = outer @ (active.unsqueeze(2) * inner)
            jacobians[moved] += step @ jacobians[moved]
            h[moved] += answers[moved].relu() @ outer.T
    # ‖J P‖ = ‖J Rᵀ‖ for Pᵀ = Q R: the projection has as many columns as an image has pixels
    root = torch.linalg.qr(net.projection.T).R.T
    return torch.linalg.matrix_norm(net.head @ jacobians @ root, 2)


@torch.no_grad()
def log10_lipschitz_bound(net: ResidualMemory) -> float:
    """log₁₀ of ‖head‖·∏(1 + ‖V‖‖U‖)·‖P‖, which no change of the scores can exceed."""
    norms = 1 + torch.linalg.matrix_norm(net.outer, 2) * torch.linalg.matrix_norm(net.inner, 2)
    ends = torch.linalg.matrix_norm(net.head, 2) * torch.linalg.matrix_norm(net.projection, 2)
    return float(norms.double().log().sum() + ends.double().log()) / log(10)
