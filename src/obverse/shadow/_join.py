"""Where paths of a net meet on the way down: one estimate out of several.

The input of a residual block is generated along two paths, M = M₁ + M₂. With rows nearly orthogonal M has the
energy E₁ + E₂, and x̃ = Mᵀh / (E₁ + E₂): the paths' own estimates Mᵢᵀh / Eᵢ, weighted by their energies. The
parts of a concatenation explain different parts of h, and their estimates add up.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

Share = tuple[tuple[float, float], ...]  # disjoint intervals of [0, 1]: which part of h


@dataclass(frozen=True)
class Estimate:
    """What one path says a stage's tensor was: the value, the path's energy, the share of h it explains."""

    value: Tensor
    energy: float = 1.0
    share: Share = ((0.0, 1.0),)


def length(share: Share) -> float:
    return sum(high - low for low, high in share)


def portion(share: Share, begin: float, end: float) -> Share:
    """From `begin` to `end` of each interval, as fractions: what one part of a concatenation explains."""
    return tuple((low + begin * (high - low), low + end * (high - low)) for low, high in share)


def union(shares: list[Share]) -> Share:
    merged: list[tuple[float, float]] = []
    for low, high in sorted(interval for share in shares for interval in share):
        if merged and low <= merged[-1][1] + 1e-9:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    # Nets that concatenate at every step make ever more pieces: then only their length is kept.
    return tuple(merged) if len(merged) <= 64 else ((0.0, length(tuple(merged))),)


def join(estimates: list[Estimate], alone: bool = False) -> Estimate:
    """One estimate from those of several paths: Σ Eᵢx̃ᵢ over the mean energy of what they explain.

    Paths into an addition explain all of h each, the parts of a concatenation their own share. With no other
    path open (`alone`) energies begin anew, so that they neither over- nor underflow in deep nets.
    """
    if len(estimates) == 1:
        one = estimates[0]
        return Estimate(one.value) if alone else one
    share = union([one.share for one in estimates])
    energy = sum(one.energy * length(one.share) for one in estimates) / length(share)
    weights = [one.energy / energy if energy > 0 else 1 / len(estimates) for one in estimates]
    value = estimates[0].value * weights[0]
    for one, weight in zip(estimates[1:], weights[1:], strict=True):
        value = torch.add(value, one.value, alpha=weight)
    return Estimate(value) if alone else Estimate(value, energy, share)
