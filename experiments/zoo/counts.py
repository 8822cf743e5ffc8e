"""Shares and means over layers of many nets, whose layers are not independent: every interval is over nets.

Nothing here knows of weights: it counts numbers that belong to clusters (nets, or families of nets).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

LEVEL = 0.95
FEWEST = 4  # clusters from which on there is an interval


@dataclass(frozen=True)
class Estimate:
    """A mean or a share with its interval; without one where the clusters are too few."""

    value: float
    low: float | None
    high: float | None
    clusters: int
    layers: int


def pooled_share(clusters: Mapping[str, Sequence[bool]]) -> Estimate:
    """The share over all layers together. Its interval knows that whole clusters were drawn, not layers.

    The ratio of two sums over clusters has, by linearization, the variance C/(C−1)·Σ(y_c − p·n_c)²/N²; on the
    logit scale with C − 1 degrees of freedom. Where all layers say the same, a cluster counts as one trial.
    """
    sums = [(sum(one), len(one)) for one in clusters.values() if one]
    count, total = len(sums), sum(size for _, size in sums)
    value = sum(yes for yes, _ in sums) / total if total else float("nan")
    if count < FEWEST:
        return Estimate(value, None, None, count, total)
    if value in (0.0, 1.0):
        most = 1 - ((1 - LEVEL) / 2) ** (1 / count)
        low, high = (0.0, most) if value == 0 else (1 - most, 1.0)
        return Estimate(value, low, high, count, total)
    scatter = sum((yes - value * size) ** 2 for yes, size in sums)
    error = math.sqrt(count / (count - 1) * scatter) / total
    centre, half = math.log(value / (1 - value)), quantile(count - 1) * error / (value * (1 - value))
    low, high = (1 / (1 + math.exp(-max(-700.0, min(700.0, end)))) for end in (centre - half, centre + half))
    return Estimate(value, low, high, count, total)


def mean_of_clusters(
    clusters: Mapping[str, Sequence[float]], low: float = -math.inf, high: float = math.inf
) -> Estimate:
    """The mean over clusters of their means, each cluster counting the same; Student's interval, clipped."""
    means = [sum(one) / len(one) for one in clusters.values() if one]
    count, layers = len(means), sum(map(len, clusters.values()))
    value = sum(means) / count if count else float("nan")
    if count < FEWEST:
        return Estimate(value, None, None, count, layers)
    if len(set(means)) == 1 and value in (low, high):
        share = (1 - ((1 - LEVEL) / 2) ** (1 / count)) * (high - low)
        first, last = (low, low + share) if value == low else (high - share, high)
        return Estimate(value, first, last, count, layers)
    error = math.sqrt(sum((one - value) ** 2 for one in means) / (count - 1) / count)
    half = quantile(count - 1) * error
    return Estimate(value, max(low, value - half), min(high, value + half), count, layers)


def quantile(freedom: int) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + LEVEL) / 2))


def rank_correlation(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Spearman's; None where either is constant or there are fewer than four."""
    if len(x) < 4:
        return None
    a, b = ranks(x), ranks(y)
    middle = (len(x) - 1) / 2
    over = [
        sum((u - middle) * (v - middle) for u, v in zip(*pair, strict=True))
        for pair in ((a, b), (a, a), (b, b))
    ]
    return over[0] / math.sqrt(over[1] * over[2]) if over[1] > 0 and over[2] > 0 else None


def ranks(values: Sequence[float]) -> list[float]:
    """From 0 on; ties share their mean."""
    order = sorted(range(len(values)), key=lambda at: values[at])
    result = [0.0] * len(values)
    start = 0
    while start < len(order):
        stop = start
        while stop < len(order) and values[order[stop]] == values[order[start]]:
            stop += 1
        for at in order[start:stop]:
            result[at] = (start + stop - 1) / 2
        start = stop
    return result


def middle(values: Sequence[float]) -> tuple[float, float, float]:
    """Lower quartile, median, upper quartile."""
    import numpy as np

    low, half, high = np.quantile(values, (0.25, 0.5, 0.75))
    return float(low), float(half), float(high)
