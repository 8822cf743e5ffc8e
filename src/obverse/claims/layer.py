"""Simulation of one layer, down and up again, with explicit random W. Knows no closed form."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from .conditions import check_hidden, check_keep
from .stream import Weights, draw_seed


@torch.no_grad()
def reverse_and_infer(
    weights: Weights,
    h: Tensor,
    keep: float,
    *,
    drop: float = 0.0,
    relu: bool = True,
    masks: int = 0,
) -> Tensor:
    """ĥ = Wᵀx, before offset and ReLU, for x = r(αWh) ⊙ mask, α = 2/(ρn): one W, a mask for each row of h.

    Args:
        weights: W, streamed; with unit variance of its entries.
        h: hidden vectors, batch × m.
        keep: ρ.
        drop: the share of x that is dropped once more, and made up for by a factor (Theorem 2.4).
        relu: without it x = αWh is linear, α = 1/(ρn).
        masks: another number gives other masks for the same W.
    """
    check_keep(keep)
    check_hidden(h)
    scale = (2 if relu else 1) / (keep * weights.inputs)
    kept = keep * (1 - drop)
    rows = h.to(torch.float32)
    total = torch.zeros(h.shape, dtype=torch.float64)
    for block, generators in weights.blocks(masks):
        x = (block @ rows.T).mul_(scale)
        if relu:
            x.relu_()
        if kept < 1:
            x.mul_(_mask(generators, x.shape, kept))
        total += (x.T @ block).double()
    return total / (1 - drop)


def _mask(generators: list[np.random.Generator], shape: torch.Size, keep: float) -> Tensor:
    rows, columns = shape
    each = -(-rows // len(generators))
    parts = [
        random.random((min(each, rows - at * each), columns), dtype=np.float32) < keep
        for at, random in enumerate(generators)
    ]
    return torch.from_numpy(np.concatenate(parts))


@torch.no_grad()
def fresh_weights(
    h: Tensor, inputs: int, keep: float, draws: int, generator: torch.Generator, *, relu: bool = True
) -> Tensor:
    """ĥ = Wᵀx for one h and so many independent W and masks: draws × m, in float64."""
    check_keep(keep)
    check_hidden(h)
    m = len(h)
    scale = (2 if relu else 1) / (keep * inputs)
    random = np.random.Generator(np.random.Philox(draw_seed(generator)))
    each = max(1, 2**22 // (inputs * m))
    found = []
    for start in range(0, draws, each):
        count = min(each, draws - start)
        weights = torch.from_numpy(random.standard_normal((count, inputs, m), dtype=np.float32))
        x = (weights @ h.to(torch.float32)).mul_(scale)
        if relu:
            x.relu_()
        if keep < 1:
            x.mul_(torch.from_numpy(random.random((count, inputs), dtype=np.float32) < keep))
        found.append((x.unsqueeze(1) @ weights).squeeze(1).double())
    return torch.cat(found)
