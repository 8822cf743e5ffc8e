"""Where the curve of kept directions bends, and whether that is where the decomposition puts the rank."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..results import Number
from .results import Kept, LayerAblation, Measure

SHARE = 0.95  # of the way from no direction to the untreated net: there the curve has bent
CLEAR = 3.0  # standard errors that removing all directions must cost for a curve to have a bend
FEWEST = 4  # layers for a rank correlation


def counts(rank: int, side: int) -> list[int]:
    """How many directions to keep: none, two numbers per octave, the rank, all."""
    steps = {factor * 2**power for power in range(side.bit_length()) for factor in (1, 3)}
    return sorted({0, rank, side} | {step for step in steps if step < side})


def bend(curve: Sequence[Kept], untreated: float, measure: Measure) -> float | None:
    """The fewest directions from which on 95 % of what all of them add is there.

    Between two points of the curve it is interpolated over log₂(1 + directions). None where the layer can
    lose all directions at no clear cost, or where a loss is not finite.
    """
    points = sorted((one.directions, one.score) for one in curve) if curve else []
    known = [(count, score.value) for count, score in points if score.value is not None]
    if len(known) < len(points) or len(points) < 2:
        return None
    none = points[0][1]
    sign = -1.0 if measure == "loss" else 1.0
    assert none.value is not None
    gain = sign * (untreated - none.value)
    if gain <= CLEAR * (none.error or 0.0) or gain <= 0:
        return None
    shares = [(count, sign * (value - none.value) / gain) for count, value in known]
    below = [at for at, (_, share) in enumerate(shares) if share < SHARE]
    last = below[-1]  # the first point, of no direction, is always below
    if last + 1 == len(shares):
        return None
    (before, low), (after, high) = shares[last], shares[last + 1]
    part = (SHARE - low) / (high - low)
    return 2 ** (math.log2(1 + before) + part * (math.log2(1 + after) - math.log2(1 + before))) - 1


def rank_correlation(layers: Sequence[LayerAblation]) -> Number | None:
    """Spearman's, of rank and bend; None with fewer than four layers that have both, or all alike."""
    from scipy import stats

    pairs = [(layer.rank, layer.needed) for layer in layers if layer.needed is not None]
    if len(pairs) < FEWEST or any(len({pair[side] for pair in pairs}) < 2 for side in (0, 1)):
        return None
    found = stats.spearmanr([rank for rank, _ in pairs], [needed for _, needed in pairs])
    return Number(float(found.statistic), p=float(found.pvalue))
