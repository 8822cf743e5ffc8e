"""How fast a memorizing net changes: its Jacobian at points, and the bound from the norms of its weights."""

from __future__ import annotations

from math import log

import torch
from torch import Tensor

from ..nets.memory import ResidualMemory


@torch.no_grad()
def local_lipschitz(net: ResidualMemory, x: Tensor) -> Tensor:
    """‖Jacobian of the scores with respect to the input‖₂ at each point: how fast the net changes there."""
    h = net.project(x)
    jacobians = (
        torch.eye(net.width, dtype=h.dtype).expand(len(h), -1, -1).clone()
    )  # of h by the projected input
    for inner, shift, outer in zip(net.inner, net.shift, net.outer, strict=True):
        answers = h @ inner.T + shift
        moved = (answers > 0).any(1)
        if moved.any():
            active = (answers[moved] > 0).to(h)
            step = outer @ (active.unsqueeze(2) * inner)
            jacobians[moved] += step @ jacobians[moved]
            h[moved] += answers[moved].relu() @ outer.T
    # ‖J P‖ = ‖J L‖ for P Pᵀ = L Lᵀ: the projection has as many columns as an image has pixels
    gram = net.projection @ net.projection.T
    values, vectors = torch.linalg.eigh(gram)
    root = vectors * values.clamp(min=0).sqrt()
    found: Tensor = torch.linalg.matrix_norm(net.head @ jacobians @ root, 2)
    return found


@torch.no_grad()
def log10_lipschitz_bound(net: ResidualMemory) -> float:
    """log₁₀ of ‖head‖·∏(1 + ‖V‖‖U‖)·‖P‖, which no change of the scores can exceed."""
    norms = 1 + torch.linalg.matrix_norm(net.outer, 2) * torch.linalg.matrix_norm(net.inner, 2)
    ends = torch.linalg.matrix_norm(net.head, 2) * torch.linalg.matrix_norm(net.projection, 2)
    return float(norms.double().log().sum() + ends.double().log()) / log(10)
