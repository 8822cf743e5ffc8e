"""The smallest fault that a test of these sizes finds in 8 of 10 cases. Not for what was found.

Each at the strictest level of Holm's correction, so that it would be found whatever the other tests say.
"""

from __future__ import annotations

from math import isfinite

import numpy as np

from ._bounds import effective_support_bound
from ._memorization import HEAVIEST, Sides
from ._threshold import Threshold, chance_of_collisions

POWER = 0.8  # with which a fault of that size is found


def least_difference(error: float, alpha: float, groups: int) -> float:
    """Of a share with this standard error, of a jackknife over so many groups."""
    from scipy import stats

    law = stats.t(groups - 1)
    return float(error * (law.isf(alpha) + law.ppf(POWER)))


def least_drop(deviation: float, alpha: float) -> float:
    """Of a share whose permutations have this standard deviation, by the normal law."""
    from scipy import stats

    return float(deviation * (stats.norm.isf(alpha) + stats.norm.ppf(POWER)))


def least_support(batch_size: int, batches: int, threshold: Threshold, alpha: float) -> float | None:
    """So many equally likely images, or fewer, collide often enough; None if no count of collisions is.

    c of B batches is the least number with p ≤ alpha; c or more come with probability 0.8 where the chance
    of one is the 0.8 quantile of Beta(c, B − c + 1). Exact duplicates need one.
    """
    from scipy import stats

    needed = 1
    if threshold.origin == "calibrated":
        for needed in range(1, batches + 1):
            p = chance_of_collisions(needed, batches, batch_size, threshold)
            if p is not None and p <= alpha:
                break
        else:
            return None
    chance = float(stats.beta.ppf(POWER, needed, batches - needed + 1))
    return effective_support_bound(chance, batch_size)


def least_copies(sides: Sides, samples: int, alpha: float) -> float | None:
    """The share of samples that are equal to different training images; None if all of them are too few.

    Of samples without copies, the weight on the side of the training set is normal around `expected` with the
    deviation `spread`. k copies, of the weight of an equal point each, are all on that side; dealt anew, as
    many of them are as a binomial number has it. Found: the chance of what 8 of 10 cases reach is at most
    alpha.
    """
    from scipy import stats

    if sides.spread is None or sides.weight is None or not 0 < sides.expected < 1:
        return None
    own = sides.spread * samples * sides.weight  # in units of weight
    if not isfinite(own) or own < 0 or samples < 1:
        return None
    usual = float(stats.norm.ppf(POWER))

    def found(count: int) -> bool:
        spread = max(own * (1 - count / samples) ** 0.5, 1e-9)
        dealt = np.arange(count + 1)
        beyond = stats.norm.sf((count - dealt) * (HEAVIEST / spread) - usual)
        return bool(stats.binom.pmf(dealt, count, sides.expected) @ beyond <= alpha)

    if not found(samples):
        return None
    low, high = 0, samples
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if found(middle) else (middle, high)
    return high / samples
