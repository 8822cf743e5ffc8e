"""The offsets with the least squared error on given draws, exactly: "there exists an offset" in print."""

from __future__ import annotations

import torch
from torch import Tensor


def one_offset(inferred: Tensor, h: Tensor) -> float:
    """The θ, of either sign, that is best for all coordinates and all draws together."""
    return float(best_offsets(inferred.double().reshape(-1, 1), h.double().reshape(-1, 1)))


def best_offsets(inferred: Tensor, h: Tensor) -> Tensor:
    """For each column the θ with the least Σ(r(ĥ − θ) − h)² over its rows, exactly.

    Between two neighbouring ĥ the same rows are alive, and the sum is a parabola in θ: the best point of
    each such interval comes from running sums, and the best of them all is the answer.
    """
    above, order = inferred.sort(dim=0, descending=True)
    target = h.gather(0, order)
    gap = above - target
    alive = torch.arange(1, len(h) + 1, dtype=h.dtype).unsqueeze(1)
    below = torch.cat((above[1:], torch.full_like(above[:1], -torch.inf)))
    theta = (gap.cumsum(0) / alive).clamp(min=below, max=above)
    silent = target.square().sum(0) - target.square().cumsum(0)
    error = gap.square().cumsum(0) - 2 * theta * gap.cumsum(0) + alive * theta.square() + silent
    return theta.gather(0, error.argmin(0, keepdim=True)).squeeze(0)
