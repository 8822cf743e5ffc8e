"""Are precision, recall, density or coverage lower than those of real data? Exact p-values, by permutation.

Samples and other real points are measured against one reference. If samples were like real data, which of
both are samples would be a draw without replacement, whatever the balls: so they are dealt anew. The
jackknife of `quality` says how far a number may be off, and errs on the safe side: a test by it finds less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from .._core import BadInput, Progress, Record, or_global
from ._neighbours import nearest
from ._quality import K, _inside
from ._sources import flat_points

SHUFFLES = 999  # the smallest p-value is 1 in 1,000
LARGEST = 2500  # points of each set
REACH = 8  # times k neighbours are looked at: about half of them are of one's own set, and k are needed
_TELL = 100  # dealings between two words of progress


@dataclass(frozen=True)
class Lower(Record):
    """`p`: that the samples' value is so low by chance; `deviation`: of the value over the permutations."""

    p: float
    deviation: float

    checks: ClassVar[Any] = (("a p-value", lambda one: 0 <= one.p <= 1),)


@dataclass(frozen=True)
class QualityTest(Record):
    """One test for each of the four numbers of `quality`."""

    samples: int
    other: int
    reference: int
    precision: Lower
    recall: Lower
    density: Lower
    coverage: Lower

    def __str__(self) -> str:
        parts = (f"{name} p = {getattr(self, name).p:.2g}" for name in NAMES)
        return f"lower than real data? {', '.join(parts)}"


NAMES = ("precision", "recall", "density", "coverage")


def quality_test(
    samples: Tensor,
    other: Tensor,
    reference: Tensor,
    k: int = K,
    *,
    shuffles: int = SHUFFLES,
    generator: torch.Generator | None = None,
    progress: Progress | None = None,
) -> QualityTest:
    """Of features with one row an image; `other` and `reference` are real data, none of them in both.

    Of more than 2,500 rows so many are taken at random. `generator`: torch's global one if None.
    """
    names = ("the samples", "the other real data", "the reference")
    given = (samples, other, reference)
    sets = [flat_points(one, name, constant=True) for one, name in zip(given, names, strict=True)]
    least = min(map(len, sets))
    if len({one.shape[1] for one in sets}) > 1 or type(k) is not int or not 1 <= k < least:
        raise BadInput(
            f"points of one number of features, and k from 1 to {least - 1}",
            got=f"{', '.join(str(one.shape[1]) for one in sets)} and k = {k}",
            do="use the same map, and more points or a smaller k",
        )
    if type(shuffles) is not int or shuffles < 1:
        raise BadInput("at least one shuffle", got=shuffles, do=f"use {SHUFFLES}")
    generator = or_global(generator)
    own, real, base = (one[torch.randperm(len(one), generator=generator)[:LARGEST]] for one in sets)
    deal = _Deal(torch.cat([own, real.to(own.dtype)]), base.to(own.dtype), k)
    count, total = len(own), len(own) + len(real)
    value = deal(torch.arange(total) < count)
    dealt = torch.empty(shuffles, len(NAMES), dtype=torch.float64)
    for number in range(shuffles):
        chosen = torch.zeros(total, dtype=torch.bool)
        chosen[torch.randperm(total, generator=generator)[:count]] = True
        dealt[number] = deal(chosen)
        if progress and (number + 1) % _TELL == 0:
            progress(number + 1, shuffles, "quality beside real data")
    as_low = (dealt <= value + 1e-9).sum(0)  # sums of the same numbers in another order are ties
    tests = [
        Lower((1 + int(low)) / (1 + shuffles), float(spread))
        for low, spread in zip(as_low, dealt.std(0, correction=0), strict=True)
    ]
    return QualityTest(count, total - count, len(base), *tests)


class _Deal:
    """The four numbers of any choice of the points, from their neighbours alone.

    Balls of the points are bounded by their 8k nearest, of which at least k are chosen but for freak
    dealings: there the ball ends at the last. Any rule that treats all points alike keeps the p-value exact.
    """

    def __init__(self, points: Tensor, reference: Tensor, k: int) -> None:
        self.k, self.size = k, len(reference)
        self.near, self.near_index = nearest(points, points, min(REACH * k, len(points) - 1), same=True)
        self.away, self.away_index = nearest(points, reference, min(REACH * k, len(reference)))
        self.back, self.back_index = nearest(reference, points, min(REACH * k, len(points)))
        self.radii = nearest(reference, reference, k, same=True)[0][:, -1]
        self.inside = _inside(points, reference, self.radii[None], None)[0]

    def __call__(self, chosen: Tensor) -> Tensor:
        """(precision, recall, density, coverage)."""
        enough = (chosen[self.near_index].cumsum(1) >= self.k).int()
        enough[:, -1] = 1
        radii = self.near.gather(1, enough.argmax(1, keepdim=True))
        covered = torch.zeros(self.size, dtype=torch.bool)
        covered[self.away_index[chosen[:, None] & (self.away <= radii)]] = True
        hit = chosen[self.back_index] & (self.back <= self.radii[:, None])
        mine = self.inside[chosen]
        return torch.stack(
            [
                (mine > 0).double().mean(),
                covered.double().mean(),
                mine.mean() / self.k,
                hit.any(1).double().mean(),
            ]
        )
