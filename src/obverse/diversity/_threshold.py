"""How close two pictures must be to count as one: calibrated on real data. Not for judging a generator.

Among real pictures some are close by chance. The threshold is where a batch of real pictures of the same
size holds `level` such pairs on average, so that at most so large a share of real batches shows any.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, floor, inf, nextafter, sqrt
from typing import Literal

import torch
from torch import Tensor

from .._core import BadInput, Progress, Record
from ._pairs import close_pairs, closest_pairs
from ._sources import flat_points

LEVEL = 0.05
_MOST = 20_000  # pairs that are looked at: a larger share of all pairs needs fewer real points
_STEPS = 2000  # of the sum over what the share of real pairs may be


@dataclass(frozen=True)
class Threshold(Record):
    """Pairs at a distance of at most `distance` are duplicates.

    `level`: such a share of real batches of the size it was made for shows one by chance, at most, averaged
    over real data sets of this size. `real_pairs` of the real data are within; `real_support` is about the
    effective support of the real data at this distance, known no better than so few pairs allow.
    """

    distance: float
    origin: Literal["given", "calibrated", "exact"]
    level: float | None = None
    real_points: int | None = None
    real_pairs: int | None = None
    real_support: float | None = None

    def __str__(self) -> str:
        if self.origin == "exact":
            return "exact duplicates only: there was no real data to calibrate a threshold on"
        if self.origin == "given":
            return f"distance ≤ {self.distance:.4g}, as given"
        return (
            f"distance ≤ {self.distance:.4g}: at most {100 * (self.level or 0):.3g} % of real batches show "
            f"such a pair ({self.real_points:,} real points)"
        )


def largest_batch(real: int, level: float = LEVEL) -> int:
    """The largest M that so many real points can calibrate: C(M, 2) ≤ level · C(real, 2)."""
    return floor((1 + sqrt(1 + 8 * level * comb(real, 2))) / 2)


def calibrated(
    real: Tensor, batch_size: int, level: float = LEVEL, *, progress: Progress | None = None
) -> Threshold:
    """Real batches of this size show a pair within the threshold with probability `level` at most.

    By Markov's inequality: the mean number of such pairs is C(M, 2) times the chance F that two real
    pictures are so close. Of the C(n, 2) pairs of the real data, the threshold is below the (r+1)-th closest,
    where F is (r+1)/C(n, 2) on average.
    """
    real = flat_points(real, "the real data")
    if batch_size < 2 or not 0 < level < 1:
        raise BadInput(
            "batches of at least two and a level in (0, 1)", got=f"{batch_size}, {level}", do="correct them"
        )
    real = _some(real, batch_size, level)
    pairs, asked = comb(len(real), 2), comb(batch_size, 2)
    rank = floor(level * pairs / asked) - 1
    if rank < 0:
        raise BadInput(
            f"enough held-out real data to calibrate batches of {batch_size:,} on",
            got=f"{len(real):,} points, good for batches of {largest_batch(len(real), level):,}",
            do="add real data, use smaller batches, or give a threshold",
        )
    above = float(closest_pairs(real, rank + 1, progress=progress).distance[-1])
    if above == 0:  # more equal real pictures than the level allows: equal is as strict as it gets
        rank = close_pairs(real, 0.0, 0).count
        level = min(1.0, (rank + 1) * asked / pairs)
    distance = max(0.0, nextafter(above, -inf))
    return Threshold(distance, "calibrated", level, len(real), rank, pairs / (rank + 1))


def _some(real: Tensor, batch_size: int, level: float) -> Tensor:
    """All real points, or as many as need no more than `_MOST` pairs, at equal steps: a file may be in the
    order of its classes."""
    points = len(real)
    while level * comb(points, 2) / comb(batch_size, 2) > _MOST:
        points //= 2
    if points == len(real):
        return real
    return real[torch.linspace(0, len(real) - 1, points).round().long()]


def chance_of_collisions(
    collisions: int, batches: int, batch_size: int, threshold: Threshold
) -> float | None:
    """So many batches with a collision, or more, if the generator were as diverse as the real data.

    A batch has one with probability C(M, 2)·F at most. F is not known but bounded by r real pairs within and
    the next one beyond: as a share of C(n, 2) pairs it is Gamma(r + 1)/C(n, 2), and the binomial tail is
    averaged over it. So the chance is right on average over real data too, however few pairs there are.
    """
    if threshold.real_pairs is None or threshold.real_points is None:
        return None
    from scipy import stats

    shares = (torch.arange(_STEPS, dtype=torch.float64) + 0.5) / _STEPS
    rates = stats.gamma.ppf(shares.numpy(), threshold.real_pairs + 1) / comb(threshold.real_points, 2)
    each = (comb(batch_size, 2) * rates).clip(max=1.0)
    return float(stats.binom.sf(collisions - 1, batches, each).mean())
