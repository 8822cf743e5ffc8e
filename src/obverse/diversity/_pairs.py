"""The closest pairs among many points, and all pairs within a distance, exactly. Not for two sets of points.

Blocks of the upper triangle are searched in float32, where a block is too full of candidates in float64, and
candidates are measured from their differences in float64. Equal points are put together first, so that a
generator that repeats itself is no harder than one that does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, combinations, islice, product
from math import inf, isfinite, nan

import torch
from torch import Tensor

from .._core import BadInput, OneLine, Progress
from ._distances import BLOCK, Rows, approximate, centre, exact, margin, rows
from ._sources import flat_points

GLANCE = 16  # columns by which rows are first distinguished
KEPT = 2**26  # values of centred points that are kept for all blocks: 256 MB
_CROWDED = 16  # candidates a row from which a block is searched again in float64


@dataclass(frozen=True, eq=False)
class Pairs(OneLine):
    """Pairs of points and their distances, the closest first; `first` < `second`."""

    distance: Tensor  # float64
    first: Tensor
    second: Tensor

    def __len__(self) -> int:
        return len(self.distance)


@dataclass(frozen=True, eq=False)
class Close:
    """How many pairs are within a distance, how many others each point has there, and the closest pairs."""

    count: int
    degree: Tensor  # int64, one a point
    closest: Pairs


def closest_pairs(
    points: Tensor, k: int = 10, *, block: int = BLOCK, progress: Progress | None = None
) -> Pairs:
    """The k closest of all pairs; of pairs at the same distance any may be left out."""
    return close_pairs(points, -1.0, k, block=block, progress=progress).closest


def close_pairs(
    points: Tensor, threshold: float, k: int = 10, *, block: int = BLOCK, progress: Progress | None = None
) -> Close:
    """All pairs at a distance of at most `threshold`, counted, and the k closest of all pairs."""
    points = flat_points(points, "the points", constant=True)
    if k < 0 or not isfinite(threshold):
        raise BadInput("k ≥ 0 and a finite threshold", got=f"k = {k}, {threshold}", do="correct them")
    owner = equal_rows(points)
    kept, group = torch.unique(owner, return_inverse=True)
    # Most often nothing is equal, and the points need no copy.
    distinct = points if len(kept) == len(points) else points[kept]
    search = _Search(distinct, torch.bincount(group), threshold, k, block)
    search.run(progress)
    degree = search.degree[group]
    if threshold >= 0:
        degree = degree + search.sizes[group] - 1  # its equals
    return Close(int(degree.sum()) // 2, degree, _closest(group, search, k))


def equal_rows(points: Tensor) -> Tensor:
    """For each row the index of the first row that is equal to it, by hashing."""
    owner = torch.arange(len(points))
    # A few columns tell most rows apart; only the others are looked at as a whole.
    short = _hash(points[:, :: -(-points.shape[1] // GLANCE)], 0)
    _, group, count = torch.unique(short, return_inverse=True, return_counts=True)
    doubtful = (count[group] > 1).nonzero().flatten()
    if len(doubtful):
        owner[doubtful] = doubtful[_equal_rows(points if len(doubtful) == len(points) else points[doubtful])]
    return owner


def _equal_rows(points: Tensor) -> Tensor:
    index = torch.arange(len(points))
    for seed in range(64):
        _, group = torch.unique(_hash(points, seed), return_inverse=True)
        first = torch.full((int(group.max()) + 1,), len(points)).scatter_reduce(0, group, index, "amin")
        owner = first[group]
        moved = (owner != index).nonzero().flatten()
        if all(torch.equal(points[part], points[owner[part]]) for part in moved.split(BLOCK)):
            return owner
    raise AssertionError("64 hashes with collisions")  # 2^-64 each


def _hash(points: Tensor, seed: int) -> Tensor:
    """64 bits a row. + 0.0 makes −0 and 0 the same bits; products and sums of int64 wrap around, as a hash
    should. Words of 32 bits: whole numbers in float64 end with 50 zeros, which would be all that is left."""
    words = points.shape[1] * points.element_size() // 4
    generator = torch.Generator().manual_seed(seed)
    factors = torch.randint(-(2**62), 2**62, (words,), generator=generator) * 2 + 1
    found = [
        ((part + 0.0).contiguous().view(torch.int32).to(torch.int64) * factors).sum(1)
        for part in points.split(BLOCK)
    ]
    return torch.cat(found)


class _Search:
    """One search over the blocks of the upper triangle of different points, each `sizes` times there."""

    def __init__(self, points: Tensor, sizes: Tensor, threshold: float, k: int, block: int) -> None:
        self.points, self.sizes, self.k, self.block = points, sizes, k, block
        self.threshold = threshold
        self.limit = threshold**2 if threshold >= 0 else -inf
        self.middle = centre(points)
        self.degree = torch.zeros(len(points), dtype=torch.int64)
        self.best = torch.zeros(0, dtype=torch.float64)  # squared, ascending
        self.pairs = torch.zeros(0, 2, dtype=torch.int64)
        self._kept: dict[int, Rows] = {}

    def run(self, progress: Progress | None) -> None:
        starts = list(range(0, len(self.points), self.block))
        total, done = len(starts) * (len(starts) + 1) // 2, 0
        for i in starts:
            a = self._rows(i)
            for j in starts[starts.index(i) :]:
                self._block(i, j, a, a if i == j else self._rows(j))
                done += 1
                if progress:
                    progress(done, total, "closest pairs")

    def _rows(self, start: int) -> Rows:
        if start in self._kept:
            return self._kept[start]
        found = rows(self.points[start : start + self.block], self.middle, torch.float32)
        if self.points.numel() <= KEPT:
            self._kept[start] = found
        return found

    def _block(self, i: int, j: int, a: Rows, b: Rows) -> None:
        around = approximate(a, b)
        if i == j:
            around.masked_fill_(torch.ones_like(around, dtype=torch.bool).tril_(), nan)  # never a candidate
        off = margin(a, b)
        worst = self._worst(around, off)
        reach = max(worst, self.limit) + off
        found = (around <= reach).nonzero()
        if len(found) > _CROWDED * len(around) and a.values.dtype == torch.float32:
            # Points so close together that float32 can't tell: once more, about the block's own middle.
            near = self.points[i : i + self.block]
            middle = near.to(torch.float64).mean(0)
            a = rows(near, middle, torch.float64)
            b = rows(self.points[j : j + self.block], middle, torch.float64) if i != j else a
            self._block(i, j, a, b)
            return
        values = around[found[:, 0], found[:, 1]].to(torch.float64)
        found = found + torch.tensor([i, j])
        if self.limit >= 0:
            self._count(found, values, off)
        if self.k:
            found, values = found[values <= worst + off], values[values <= worst + off]
            if len(found) > _CROWDED * max(len(around), self.k):
                # Ties up to the rounding of float64, as of few-valued features: any k of them will do.
                found = found[values.topk(self.k, largest=False).indices]
            self._keep(found)

    def _worst(self, around: Tensor, off: float) -> float:
        """The squared distance that the k-th closest pair has at most."""
        if not self.k:
            return -inf
        if len(self.best) == self.k:
            return float(self.best[-1])
        # Not k yet: the k-th of this block is a bound, if it has as many; of its rows' smallest, a quick one.
        if around.numel() < self.k:
            return inf
        least = torch.where(around.isnan(), inf, around).amin(1)
        some = least if int(least.isfinite().sum()) >= self.k else around.flatten()
        kth = float(some.kthvalue(self.k).values)
        return kth + off if isfinite(kth) else inf

    def _count(self, found: Tensor, values: Tensor, off: float) -> None:
        """Pairs surely within count at once; those within the margin of the limit are measured."""
        sure = values <= self.limit - off
        unsure = ~sure & (values <= self.limit + off)
        doubtful = found[unsure]
        true = exact(self.points, self.points, doubtful[:, 0], doubtful[:, 1]).sqrt() <= self.threshold
        within = torch.cat([found[sure], doubtful[true]])
        first, second = within[:, 0], within[:, 1]
        self.degree.index_add_(0, first, self.sizes[second])
        self.degree.index_add_(0, second, self.sizes[first])

    def _keep(self, found: Tensor) -> None:
        squared = torch.cat([self.best, exact(self.points, self.points, found[:, 0], found[:, 1])])
        pairs = torch.cat([self.pairs, found])
        order = squared.argsort(stable=True)[: self.k]
        self.best, self.pairs = squared[order], pairs[order]


def _closest(group: Tensor, search: _Search, k: int) -> Pairs:
    """The k closest pairs of all points: equal ones first, then each pair of kinds as often as it occurs."""
    members = torch.argsort(group, stable=True).split(search.sizes.tolist())
    repeated = [members[kind].tolist() for kind in (search.sizes > 1).nonzero().flatten().tolist()]
    equal = ((0.0, *pair) for kind in repeated for pair in combinations(kind, 2))
    apart = (
        (squared, first, second)
        for squared, (one, other) in zip(search.best.tolist(), search.pairs.tolist(), strict=True)
        for first, second in product(members[one].tolist(), members[other].tolist())
    )
    found = list(islice(chain(equal, apart), k))
    pairs = torch.tensor([pair[1:] for pair in found], dtype=torch.int64).reshape(-1, 2).sort(1).values
    distance = torch.tensor([pair[0] for pair in found], dtype=torch.float64).sqrt()
    return Pairs(distance, pairs[:, 0], pairs[:, 1])
