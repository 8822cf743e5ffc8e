"""How many times the error of random weights a layer makes, with an interval. Not for measuring errors."""

from __future__ import annotations

from math import exp, log, sqrt

import torch
from torch import Tensor

from .results import Number

_NOTHING = 1e-12  # below what float32 rounding leaves: where neither errs at all, the ratio is 1


def error_ratio(layer: Tensor, shuffles: list[Tensor], normal: Tensor) -> tuple[Number, tuple[float, float]]:
    """Layer ÷ shuffled and its 95 % interval, from the squared error of each draw of h (rows) in each unit.

    The interval is that of a layer which is itself a draw of random entries: it must cover 1 for 95 % of
    those. On the log scale, by the delta method, there are two parts:

    - the draws of h, which layer and controls share: the variance of paired differences;
    - the draw of the matrix, which all h share. Given x the units err independently of each other, so that
      the sum over units varies, from one control to another, by the sum of each unit's variance. (What
      varies draw by draw within a unit is in the first part already.)

    In small layers units are few and not so independent, but there the shuffles suffice to see how their
    totals vary. The wider of the two intervals counts.
    """
    from scipy.special import stdtr, stdtrit

    draws, repeats = len(layer), len(shuffles)
    total = float(layer.double().sum()) + _NOTHING
    totals = torch.stack([one.double().sum() for one in shuffles]) + _NOTHING
    expected = float(totals.mean())
    share = torch.stack([one.double().sum(1) for one in shuffles]).mean(0) / expected
    paired = float((layer.double().sum(1) / total - share).square().sum()) * draws / (draws - 1)
    controls = torch.stack([one / (one.double().sum() + _NOTHING) for one in (*shuffles, normal)])
    shared = _variance(controls.sum(1)) - _variance(controls)
    both = 1 + 1 / repeats  # the layer is one draw of a matrix, the shuffles are `repeats`
    spreads = [(sqrt(paired + both * max(shared, 0.0)), draws - 1)]
    if repeats > 1:
        spreads.append((sqrt(both) * float(totals.log().std()), repeats - 1))
    logarithm = log(total / expected)
    ratio = exp(logarithm)
    half = max(spread * float(stdtrit(freedom, 0.975)) for spread, freedom in spreads)
    p = max(2 * float(stdtr(freedom, -abs(logarithm) / max(spread, 1e-300))) for spread, freedom in spreads)
    number = Number(ratio, ratio * max(spread for spread, _ in spreads), null=1.0, p=p)
    return number, (exp(logarithm - half), exp(logarithm + half))


def _variance(values: Tensor) -> float:
    """Σ of the variances along the first dimension; torch's own is slow across few long rows."""
    count = len(values)
    scatter = values.square().sum() - values.sum(0).square().sum() / count
    return float(scatter) / (count - 1)
