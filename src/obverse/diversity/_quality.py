"""Precision, recall, density and coverage: is each sample near real data, and is all real data near samples?

Around each point of a set is the ball that reaches to its k-th nearest other point; their union stands for
where the distribution lives (Kynkäänniemi et al. 2019; Naeem et al. 2020). Not for copies of the training
set: a memorizing generator has the best marks here. See memorization.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import torch
from torch import Tensor

from .._core import BadInput, Progress, Record
from ._distances import BLOCK, approximate, centre, margin, rows
from ._estimates import Estimate, one_pass
from ._neighbours import nearest
from ._sources import flat_points

K = 5  # real data covers 1 − 2⁻ᵏ of as much real data: 5 is the least k with more than 95 %
GROUPS = 10  # that are left out in turn, for standard errors
SPARE = 10  # neighbours beyond k: enough of them remain when a tenth of all points is left out


@dataclass(frozen=True)
class Quality(Record):
    """`precision`: samples in a ball of the real data. `recall`: real data in a ball of the samples.

    `density`: in how many balls of the real data a sample is, divided by k; of real data itself 1 on average,
    and more where samples crowd where real data does. `coverage`: balls of the real data with a sample in
    them; `coverage_expected` for samples of the same distribution. Precision and recall of real data against
    itself are below 1 and depend on the numbers of points and on the dimension: measure held-out data too.

    Standard errors are of the delete-a-tenth jackknife over samples and over real data, added in squares.
    They err on the safe side (Efron and Stein 1981), in simulations by up to twice; binomial ones would be
    too small by as much, as points share their balls.
    """

    samples: int
    real: int
    k: int
    precision: Estimate
    recall: Estimate
    density: Estimate
    coverage: Estimate
    coverage_expected: float

    checks: ClassVar[Any] = (
        (
            "shares from 0 to 1",
            lambda one: all(0 <= part.value <= 1 for part in (one.precision, one.recall, one.coverage)),
        ),
    )

    def __str__(self) -> str:
        return (
            f"precision {self.precision}, recall {self.recall}, density {self.density}, "
            f"coverage {self.coverage} (real data: {self.coverage_expected:.3f})"
        )


def expected_coverage(samples: int, real: int, k: int) -> float:
    """Of samples that come from the distribution of the real data.

    Seen from a real point, the other real points and the samples come in random order; its ball is empty if
    the first k of them are real: 1 − Π_{i=1..k} (N − i)/(N + M − i), N real points and M samples.
    """
    return 1 - prod((real - i) / (real + samples - i) for i in range(1, k + 1))


def quality(samples: Tensor, real: Tensor, k: int = K, *, progress: Progress | None = None) -> Quality:
    """All four from two sets of features, one row a picture; a ball contains its border."""
    samples, real = flat_points(samples, "the samples", constant=True), flat_points(real, "the real data")
    if samples.shape[1] != real.shape[1]:
        raise BadInput(
            f"samples of {real.shape[1]} features, as the real data",
            got=samples.shape[1],
            do="use the same map",
        )
    least = min(len(samples), len(real))
    if type(k) is not int or not 1 <= k < least:
        raise BadInput(f"k from 1 to {least - 1}", got=k, do="use more points, or a smaller k")
    own, other = _groups(len(samples)), _groups(len(real))
    of_real = _radii(real, other, k, one_pass(progress, 0, 5))
    of_samples = _radii(samples, own, k, one_pass(progress, 1, 5))
    inside = _inside(samples, real, of_real, one_pass(progress, 2, 5))
    back = _inside(real, samples, of_samples, one_pass(progress, 3, 5))
    found = nearest(real, samples, min(SPARE, len(samples)), progress=one_pass(progress, 4, 5))
    closest = _without(*found, own, 1)
    hits = torch.cat([closest[:1] <= of_real, closest[1:] <= of_real[:1]]).double()
    return Quality(
        len(samples),
        len(real),
        k,
        _estimate((inside > 0).double(), own),
        _estimate((back > 0).double(), other),
        _estimate(inside / k, own),
        _coverage(hits, other),
        expected_coverage(len(samples), len(real), k),
    )


def _groups(count: int) -> Tensor:
    """Points dealt to groups of the same size, at random: they may come in an order."""
    order = torch.randperm(count, generator=torch.Generator().manual_seed(0))
    return order % min(GROUPS, count)


def _without(distance: Tensor, index: Tensor, groups: Tensor, k: int) -> Tensor:
    """The k-th nearest distance of each point, then the same with each group of neighbours left out.

    Where fewer than k of the neighbours that were found are left, the last of them stands in.
    """
    found = [distance[:, k - 1]]
    of = groups[index]
    for group in range(int(groups.max()) + 1):
        enough = ((of != group).cumsum(1) >= k).double()
        enough[:, -1] = 1
        found.append(distance.gather(1, enough.argmax(1, keepdim=True))[:, 0])
    return torch.stack(found)


def _radii(points: Tensor, groups: Tensor, k: int, progress: Progress | None) -> Tensor:
    """(1 + groups) × n: of all balls, and with each group left out; points of that group have no ball: −1."""
    distance, index = nearest(points, points, min(k + SPARE, len(points) - 1), same=True, progress=progress)
    radii = _without(distance, index, groups, k)
    radii[1:][groups == torch.arange(len(radii) - 1)[:, None]] = -1
    return radii


def _inside(points: Tensor, centres: Tensor, radii: Tensor, progress: Progress | None) -> Tensor:
    """(1 + groups) × n: in how many balls each point is.

    The product is in float64, and its rounding is added to each radius: a point on the border is inside.
    """
    middle = centre(centres)
    reach = torch.where(radii < 0, -torch.inf, radii.square())
    found = torch.zeros(len(radii), len(points), dtype=torch.float64)
    starts = range(0, len(points), BLOCK)
    for done, start in enumerate(starts, start=1):
        a = rows(points[start : start + BLOCK], middle, torch.float64)
        for at in range(0, len(centres), BLOCK):
            b = rows(centres[at : at + BLOCK], middle, torch.float64)
            around, off = approximate(a, b), margin(a, b)
            for kind, limit in enumerate(reach[:, at : at + BLOCK] + off):
                found[kind, start : start + BLOCK] += (around <= limit).sum(1)
        if progress:
            progress(done, len(starts), "quality")
    return found


def _estimate(values: Tensor, own: Tensor) -> Estimate:
    """The mean over points. Row 0: of all balls; the others: with one group of balls left out."""
    base = values[0]
    left = [base[own != group].mean() for group in range(int(own.max()) + 1)]
    return Estimate(float(base.mean()), (_spread(left) + _spread(list(values[1:].mean(1)))) ** 0.5)


def _coverage(hits: Tensor, other: Tensor) -> Estimate:
    """Row 0: all. Then one group of real data left out in turn, then one of the samples."""
    groups = int(other.max()) + 1
    left = [hits[1 + group][other != group].mean() for group in range(groups)]
    error = (_spread(left) + _spread(list(hits[1 + groups :].mean(1)))) ** 0.5
    return Estimate(float(hits[0].mean()), error)


def _spread(left: list[Tensor]) -> float:
    """The variance by the jackknife, from the values with each group left out."""
    return float((len(left) - 1) * torch.stack(left).var(correction=0))
