"""Does a generator repeat its training set? Distances to it, beside those of held-out real data.

Two questions, each with p-values that are exact for any numbers of points:
1. Are samples closer to the training set than held-out real data is? AuthPct (Alaa et al. 2022), the C_T test
   (Meehan, Chaudhuri and Dasgupta 2020) and the share of very close samples. If samples were like held-out
   data, both could change places. But smooth or typical samples are close to everything, copied or not.
2. Are samples closer to the training set than to held-out data, more often than by chance? If the
   generator knew no more of one than of the other, whatever else is wrong with it, both could change places.
   So this one says `copied`.
Both take held-out data to be drawn as the training set was. Not for near-copies among the samples themselves:
see birthday.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, log
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from .._core import BadInput, Progress, Record, or_global
from ._estimates import one_pass
from ._neighbours import nearest
from ._sources import flat_points

LEVEL = 0.01  # of held-out distances, below which a sample is very close
SHUFFLES = 999  # of a permutation test: the smallest p-value is 1 in 1,000
CELLS = 20  # of C_T, at most
SMALLEST = 20  # samples, and held-out points, that a cell needs: fewer have no Z to speak of
CELL = 50  # points a cell should have on average, of the smaller set
CLUSTERED = 10_000  # training points from which the cells are found
NEAR = 10  # neighbours whose distance is the yardstick of how close the nearest is
CLOSEST = 0.1  # of the yardstick: what is closer is as good as equal, and weighs no more
HEAVIEST = log(CLOSEST) ** 2  # the weight of a sample that is equal to a real point
SHOWN = 16  # of the closest samples that are kept
_AT_ONCE = 2**22  # random numbers held at a time


@dataclass(frozen=True)
class Authentic(Record):
    """AuthPct: the share of samples farther from their nearest training point than that one from its own.

    `held_out`: the same of held-out data, which is not 1. `p`: exact, that samples have fewer by chance.
    """

    share: float
    held_out: float | None
    p: float | None


@dataclass(frozen=True)
class CloseShare(Record):
    """The share of samples closer to training than the `rank`-th closest of the held-out points is.

    `expected` if samples are like held-out data. `p`: exact, that so many are by chance.
    """

    level: float
    rank: int
    distance: float
    share: float
    expected: float
    p: float


@dataclass(frozen=True)
class Copying(Record):
    """C_T: far below 0 samples are closer to training than held-out data (copying), far above farther.

    `deviation`: of C_T if there is no difference. `p_closer`, `p_farther`: by permutation within the cells;
    `p_normal`: of "closer", from the normal law. `cells`: how many were large enough to count; `mass`: the
    share of held-out data in them.
    """

    value: float
    deviation: float
    p_closer: float
    p_farther: float
    p_normal: float
    cells: int
    mass: float

    def reading(self, confidence: float = 0.95) -> str:
        """Which of the two it is, if any: each side has half of what may go wrong."""
        half = (1 - confidence) / 2
        if self.p_closer <= half:
            return "closer than real data"
        return "farther than real data" if self.p_farther <= half else "as real data"


@dataclass(frozen=True)
class Sides(Record):
    """The share of samples whose nearest real point is a training one, not a held-out one.

    `expected` by the sizes of both. `weighted`: each sample counts by how close that point is compared with
    the 10th: copies weigh most. `p`: by permutation, that the weighted share is so high by chance; `spread`:
    its standard deviation over the permutations; `weight`: the mean of a sample's.
    """

    share: float
    expected: float
    weighted: float
    p: float
    spread: float | None = None
    weight: float | None = None


@dataclass(frozen=True)
class Closest(Record):
    """A sample and its nearest training point, by their numbers."""

    sample: int
    training: int
    distance: float


@dataclass(frozen=True)
class Memorization(Record):
    """What was found. All but AuthPct needs held-out data; `copying` is None with too few points, too."""

    samples: int
    training: int
    held_out: int
    confidence: float
    median: float  # distance from a sample to training
    median_held_out: float | None
    authentic: Authentic
    close: CloseShare | None
    copying: Copying | None
    sides: Sides | None
    closest: tuple[Closest, ...]

    checks: ClassVar[Any] = (
        ("a confidence in (0, 1)", lambda one: 0 < one.confidence < 1),
        ("finite distances", lambda one: isfinite(one.median)),
    )

    @property
    def copied(self) -> bool | None:
        """Training images come back: samples know them better than held-out ones. None: can't be told."""
        return None if self.sides is None else self.sides.p <= 1 - self.confidence

    @property
    def closer(self) -> bool | None:
        """Samples are closer to training than held-out data is: one of three tests, corrected for three."""
        if self.close is None or self.authentic.p is None:
            return None
        found = [self.close.p, self.authentic.p] + ([self.copying.p_closer] if self.copying else [])
        return min(found) * len(found) <= 1 - self.confidence

    def __str__(self) -> str:
        authentic = f"{100 * self.authentic.share:.3g}% authentic"
        if self.sides is None or self.close is None:
            return f"{authentic}; no held-out data to compare with"
        found = "training images come back" if self.copied else "no sign of copying"
        if self.closer and not self.copied:
            found += ", but samples are closer to everything than real data is"
        return (
            f"{found} (p = {self.sides.p:.2g}); {100 * self.close.share:.3g}% of samples very close to "
            f"training, {100 * self.close.expected:.2g}% expected; {authentic}"
        )


def memorization(
    samples: Tensor,
    training: Tensor,
    held_out: Tensor | None = None,
    *,
    level: float = LEVEL,
    cells: int | None = None,
    confidence: float = 0.95,
    shuffles: int = SHUFFLES,
    generator: torch.Generator | None = None,
    progress: Progress | None = None,
) -> Memorization:
    """All of it, from features with one row a picture. `generator`: torch's global one if None."""
    samples, training = flat_points(samples, constant=True), flat_points(training, "the training set")
    real = None if held_out is None else flat_points(held_out, "the held-out data")
    for other, name in ((samples, "samples"), (real, "held-out data")):
        if other is not None and other.shape[1] != training.shape[1]:
            raise BadInput(
                f"{name} of {training.shape[1]} features, as the training set",
                got=other.shape[1],
                do="use the same map",
            )
    _check_share(confidence, "a confidence")
    _check_share(level, "a level")
    if type(shuffles) is not int or shuffles < 1:
        raise BadInput("at least one shuffle", got=shuffles, do=f"use {SHUFFLES}")
    generator = or_global(generator)
    passes = 2 if real is None else 5
    near = min(NEAR, len(training))
    distance, index = nearest(samples, training, near, progress=one_pass(progress, 0, passes))
    order = distance[:, 0].argsort(stable=True)[:SHOWN].tolist()
    closest = tuple(Closest(i, int(index[i, 0]), float(distance[i, 0])) for i in order)
    mine = authentic(distance[:, 0], index[:, 0], training, progress=one_pass(progress, 1, passes))
    counts = len(samples), len(training), 0 if real is None else len(real), confidence
    median = float(distance[:, 0].median())
    if real is None:
        share = Authentic(float(mine.double().mean()), None, None)
        return Memorization(*counts, median, None, share, None, None, None, closest)
    far, where = nearest(real, training, progress=one_pass(progress, 2, passes))
    theirs = authentic(far[:, 0], where[:, 0], training, progress=one_pass(progress, 3, passes))
    away, place = nearest(samples, real, min(NEAR, len(real)), progress=one_pass(progress, 4, passes))
    asked = _cells(min(len(samples), len(real)), cells)
    middles = centres(training, asked, generator)
    return Memorization(
        *counts,
        median,
        float(far.median()),
        compare_authentic(mine, theirs),
        close_share(distance[:, 0], far[:, 0], level),
        data_copying(
            distance[:, 0], far[:, 0], cell_of(samples, middles), cell_of(real, middles), shuffles, generator
        ),
        sides((distance, index), (away, place), (len(training), len(real)), shuffles, generator),
        closest,
    )


def authentic(
    distance: Tensor, index: Tensor, training: Tensor, *, progress: Progress | None = None
) -> Tensor:
    """Which points are farther from their nearest training point (`index`) than that from any other."""
    asked, back = torch.unique(index, return_inverse=True)
    found, which = nearest(training[asked], training, 2, progress=progress)
    # A point finds itself first; where equal ones push it out, the nearest other is at 0 all the same.
    own = torch.where(which[:, 0] == asked, found[:, 1], found[:, 0])
    return distance > own[back]


def compare_authentic(samples: Tensor, held_out: Tensor) -> Authentic:
    """AuthPct of both, and Fisher's exact test of fewer authentic ones among the samples.

    With the training set given, points are independent; if samples are like held-out data, which of all
    authentic ones are samples is a draw without replacement.
    """
    from scipy import stats

    mine, theirs = int(samples.sum()), int(held_out.sum())
    law = stats.hypergeom(len(samples) + len(held_out), mine + theirs, len(samples))
    return Authentic(mine / len(samples), theirs / len(held_out), float(law.cdf(mine)))


def close_share(samples: Tensor, held_out: Tensor, level: float = LEVEL) -> CloseShare:
    """How many samples are closer than the r-th closest of n held-out points, r = ⌊level·(n + 1)⌋ or 1.

    That border is itself estimated. Put samples and held-out points in one row by distance: if they are
    alike, each order is as likely. At least K samples come before the r-th held-out point where at most r − 1
    of the first K + r − 1 in the row are held out, a hypergeometric chance: exact for any continuous
    distance, and with ties no less than it should be. On average r/(n + 1) of the samples come before.
    """
    from scipy import stats

    _check_share(level, "a level")
    rank = max(1, int(level * (len(held_out) + 1) + 1e-9))
    border = held_out.double().sort().values[rank - 1]
    count = int((samples.double() < border).sum())
    law = stats.hypergeom(len(samples) + len(held_out), len(held_out), count + rank - 1)
    return CloseShare(
        level,
        rank,
        float(border),
        count / len(samples),
        rank / (len(held_out) + 1),
        float(law.cdf(rank - 1)) if count else 1.0,
    )


def centres(training: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """Centres of the cells: k-means of at most 10,000 training points."""
    import warnings

    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    some = training[torch.randperm(len(training), generator=generator)[:CLUSTERED]]
    if count <= 1 or len(some) <= count:
        return some.mean(0, keepdim=True)
    seed = int(torch.randint(2**31, (), generator=generator))
    with warnings.catch_warnings():  # with fewer different points than cells, some cells stay empty
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = KMeans(count, n_init=1, random_state=seed).fit(some.numpy())
    return torch.from_numpy(found.cluster_centers_).to(training.dtype)


def cell_of(points: Tensor, middles: Tensor) -> Tensor:
    """The number of the nearest centre."""
    if len(middles) == 1:
        return torch.zeros(len(points), dtype=torch.int64)
    return nearest(points, middles)[1][:, 0]


def data_copying(
    samples: Tensor,
    held_out: Tensor,
    cell: Tensor,
    cell_held_out: Tensor,
    shuffles: int = SHUFFLES,
    generator: torch.Generator | None = None,
) -> Copying | None:
    """C_T from distances to the training set and the cells the points are in; None if all cells are small.

    In each cell the Mann–Whitney Z of samples against held-out distances, negative where samples are closer;
    C_T is their mean, weighted by held-out mass. Cells with fewer than 20 of either do not count. Within a
    cell samples and held-out points are dealt anew for the p-values: this is exact for any numbers of points,
    and a generator that fills cells in other proportions than real data is not called a copier for it.
    """
    from scipy import stats

    generator = or_global(generator)
    weights, values, dealt = [], [], []
    for number in torch.unique(cell).tolist():
        mine, theirs = samples[cell == number], held_out[cell_held_out == number]
        if min(len(mine), len(theirs)) < SMALLEST:
            continue
        ranks = stats.rankdata(torch.cat([mine, theirs]).double().numpy())
        centre, scale = _rank_sum_law(ranks, len(mine))
        if not scale > 0:  # all distances equal: no evidence either way
            continue
        weights.append(len(theirs) / len(held_out))
        values.append((ranks[: len(mine)].sum() - centre) / scale)
        dealt.append((_dealt_sums(torch.from_numpy(ranks), len(mine), shuffles, generator) - centre) / scale)
    if not weights:
        return None
    share = np.array(weights) / sum(weights)
    value = float(share @ np.array(values))
    chance = torch.from_numpy(share) @ torch.stack(dealt)
    deviation = float(np.sqrt(np.square(share).sum()))
    return Copying(
        value,
        deviation,
        _p(chance <= value + _tie(value)),
        _p(chance >= value - _tie(value)),
        float(stats.norm.cdf(value / deviation)),
        len(weights),
        float(sum(weights)),
    )


def _rank_sum_law(ranks: np.ndarray[Any, Any], count: int) -> tuple[float, float]:
    """Mean and deviation of the sum of `count` of the ranks, drawn at random: with ties, exactly."""
    total = len(ranks)
    return count * (total + 1) / 2, float(np.sqrt(count * (total - count) / (total - 1) * ranks.var()))


def _dealt_sums(ranks: Tensor, count: int, shuffles: int, generator: torch.Generator) -> Tensor:
    """Sums of `count` of the ranks, drawn anew each time."""
    found = []
    for start in range(0, shuffles, max(1, _AT_ONCE // len(ranks))):
        rows = min(max(1, _AT_ONCE // len(ranks)), shuffles - start)
        keys = torch.rand(rows, len(ranks), generator=generator)
        found.append(ranks[keys.argsort(1)[:, :count]].sum(1))
    return torch.cat(found)


def sides(
    to_training: tuple[Tensor, Tensor],
    to_held_out: tuple[Tensor, Tensor],
    sizes: tuple[int, int],
    shuffles: int = SHUFFLES,
    generator: torch.Generator | None = None,
) -> Sides:
    """On which side a sample's nearest real point is, from its neighbours (distance, index) on both.

    The nearest of all real points, and its weight ln²(r_10/r_1), know nothing of sides. If training and
    held-out points are alike to the generator, sides can be dealt to the real points anew: exact for any
    samples, also where many share a nearest point. Points that are equally near share a sample.
    """
    generator = or_global(generator)
    distance = torch.cat([to_training[0], to_held_out[0]], 1)
    index = torch.cat([to_training[1], to_held_out[1] + sizes[0]], 1)
    ranked = distance.sort(1).values
    yardstick = ranked[:, min(NEAR, ranked.shape[1]) - 1]
    near = ranked[:, 0]
    # 0/0 where ten real points are equal to the sample: then the nearest tells nothing
    ratio = torch.where(yardstick > 0, near / yardstick, 1.0).clamp(min=CLOSEST)
    weight = ratio.log().square()
    tied = (distance == near[:, None]).double()
    tied /= tied.sum(1, keepdim=True)
    total = sum(sizes)
    counts = torch.zeros(2, total, dtype=torch.float64)  # of samples, and of weights, by real point
    for row, values in enumerate((tied, tied * weight[:, None])):
        counts[row].index_add_(0, index.flatten(), values.flatten())
    share, weighted = (float(row[: sizes[0]].sum() / row.sum()) if row.sum() > 0 else 0.0 for row in counts)
    asked = counts[1][counts[1] > 0]
    if not len(asked):
        return Sides(share, sizes[0] / total, sizes[0] / total, 1.0)
    # Which of the points that matter are training ones: the first of a random order of all.
    chance = (
        torch.stack(
            [
                asked @ (torch.randperm(total, generator=generator)[: len(asked)] < sizes[0]).double()
                for _ in range(shuffles)
            ]
        )
        / asked.sum()
    )
    return Sides(
        share,
        sizes[0] / total,
        weighted,
        _p(chance >= weighted - _tie(weighted)),
        float(chance.std(correction=0)),
        float(weight.mean()),
    )


def _p(as_far: Tensor) -> float:
    """Of a permutation test: what was seen counts as one of the permutations."""
    return (1 + int(as_far.sum())) / (1 + len(as_far))


def _tie(value: float) -> float:
    """Sums of the same numbers in another order differ by this at most: they are ties."""
    return 1e-9 * max(1.0, abs(value))


def _cells(points: int, asked: int | None) -> int:
    if asked is None:
        return max(1, min(CELLS, points // CELL))
    if type(asked) is not int or not 1 <= asked <= 1000:
        raise BadInput("from 1 to 1,000 cells", got=asked, do="leave it out")
    return asked


def _check_share(value: float, what: str) -> None:
    if not 0 < value < 1:
        raise BadInput(f"{what} in (0, 1)", got=value, do="0.95 is usual for a confidence, 0.01 for a level")
