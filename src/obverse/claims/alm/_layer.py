"""Simulation of one layer, down and up again, with explicit random W. Knows no closed form."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor

from ._conditions import check_hidden, check_keep
from ._stream import DRAWN, Weights, draw_seed, draw_words, fill, scratch


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
    # ReLU lets α through. Of a long batch not all at once: x is at most four times as large as its block.
    batches = (scale * h).to(torch.float32).split(4 * weights.units)
    totals = [torch.zeros_like(rows) for rows in batches]
    with ThreadPoolExecutor(torch.get_num_threads()) as pool:
        for block, generators in weights.blocks(masks):
            for rows, total in zip(batches, totals, strict=True):
                x = rows @ block.T
                if relu:
                    x.relu_()
                if kept < 1:
                    parts = x.split(weights.rows, dim=1)
                    list(pool.map(_thin, parts, generators, [kept] * len(parts)))
                total.addmm_(x, block)
    return torch.cat(totals).double() / (1 - drop)


def _thin(x: Tensor, random: np.random.Generator, keep: float) -> None:
    """Keep each entry with this probability, in place."""
    below = np.uint32(min(round(keep * 2**32), 2**32 - 1))
    for some in x.split(max(1, DRAWN // x.shape[1])):
        kept = scratch("kept", some.numel(), np.bool_)
        np.less(draw_words(random, some.numel()), below, out=kept)
        entries = some.numpy()
        entries *= kept.reshape(some.shape)


@torch.no_grad()
def fresh_weights(
    h: Tensor, inputs: int, keep: float, draws: int, generator: torch.Generator, *, relu: bool = True
) -> Tensor:
    """ĥ = Wᵀx for one h and so many independent W and masks: draws × m, in float64."""
    check_keep(keep)
    check_hidden(h)
    scale = (2 if relu else 1) / (keep * inputs)
    row = (scale * h).to(torch.float32)
    random = np.random.Generator(np.random.Philox(draw_seed(generator)))
    together = torch.empty(min(draws, max(1, 2**22 // (inputs * len(h)))), inputs, len(h))
    found = []
    for start in range(0, draws, len(together)):
        weights = together[: draws - start]
        fill(weights.view(-1, len(h)).numpy(), random)
        x = weights @ row
        if relu:
            x.relu_()
        if keep < 1:
            _thin(x, random, keep)
        found.append((x.unsqueeze(1) @ weights).squeeze(1).double())
    return torch.cat(found)
