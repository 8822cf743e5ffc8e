"""Do samples differ from real data at all? A kernel two-sample test with a p-value. Not for what differs.

The squared maximum mean discrepancy (Gretton et al. 2012) with a Gaussian kernel, unbiased: 0 on average for
the same distribution. Its width is half the median distance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from .._core import BadInput, Progress, Record, or_global
from ._distances import BLOCK, approximate, centre, rows
from ._sources import flat_points
from ._vendi import median_distance

SHUFFLES = 999  # of the permutation test: the smallest p-value is 1 in 1,000
LARGEST = 2500  # points of each set: the kernel of all pairs takes 100 MB
WIDTH = 0.5  # of the median distance
_AT_ONCE = 100  # dealings in one product


@dataclass(frozen=True)
class Discrepancy(Record):
    """`value`: squared discrepancy, which may be a little below 0; `p`: that it is so large by chance.

    `deviation`: that of the value over the permutations, if samples were like real data.
    """

    value: float
    deviation: float
    p: float
    samples: int
    real: int
    width: float

    checks: ClassVar[Any] = (("a p-value", lambda one: 0 <= one.p <= 1),)

    def __str__(self) -> str:
        return f"squared discrepancy {self.value:.3g} (± {self.deviation:.2g} by chance), p = {self.p:.2g}"


def discrepancy(
    samples: Tensor,
    real: Tensor,
    *,
    width: float | None = None,
    shuffles: int = SHUFFLES,
    generator: torch.Generator | None = None,
    progress: Progress | None = None,
) -> Discrepancy:
    """Of features with one row an image: samples, and real data that the generator was not trained on.

    Of more than 2,500 rows so many are taken at random. `width` of the kernel exp(−‖a − b‖²/2h²): half the
    median distance unless given. If samples were like real data, which rows are samples is a draw without
    replacement: p is exact by permutation. `generator`: torch's global one if None.
    """
    samples, real = flat_points(samples, constant=True), flat_points(real, "the real data")
    if samples.shape[1] != real.shape[1]:
        raise BadInput(
            f"samples of {real.shape[1]} features, as the real data",
            got=samples.shape[1],
            do="use the same map",
        )
    if type(shuffles) is not int or shuffles < 1:
        raise BadInput("at least one shuffle", got=shuffles, do=f"use {SHUFFLES}")
    generator = or_global(generator)
    parts = [one[torch.randperm(len(one), generator=generator)[:LARGEST]] for one in (samples, real)]
    wide = torch.promote_types(samples.dtype, real.dtype)
    count, both = len(parts[0]), torch.cat([one.to(wide) for one in parts])
    width = WIDTH * median_distance(both) if width is None else width
    if not 0 < width < float("inf"):
        raise BadInput("a width above 0", got=width, do="give one; equal points have none")
    kernel = _kernel(both, width)
    value, dealt = _dealt(kernel, count, shuffles, generator, progress)
    as_far = int((dealt >= value - 1e-6 * abs(value)).sum())  # sums in float32: closer ones are ties
    return Discrepancy(
        value,
        float(dealt.std(correction=0)),
        (1 + as_far) / (1 + shuffles),
        count,
        len(both) - count,
        width,
    )


def _kernel(points: Tensor, width: float) -> Tensor:
    """Of all pairs, less its mean: a constant changes nothing but the rounding. 0 on the diagonal."""
    middle = centre(points)
    every = [rows(part, middle, torch.float32) for part in points.split(BLOCK)]
    kernel = torch.cat(
        [torch.cat([approximate(a, b).clamp_(min=0) for b in every], 1).div_(-2 * width**2) for a in every]
    ).exp_()
    total = len(points) * (len(points) - 1)
    kernel.fill_diagonal_(0)
    kernel -= float(kernel.double().sum() / total)
    return kernel.fill_diagonal_(0)


def _dealt(
    kernel: Tensor, count: int, shuffles: int, generator: torch.Generator, progress: Progress | None
) -> tuple[float, Tensor]:
    """The value as it is, and with the rows dealt anew: x of a row is 1 where it counts as a sample."""
    total = len(kernel)
    sums, whole = kernel.sum(1, dtype=torch.float64), float(kernel.sum(dtype=torch.float64))
    found = []
    for start in range(0, shuffles + 1, _AT_ONCE):
        chosen = torch.zeros(min(_AT_ONCE, shuffles + 1 - start), total)
        for number, row in enumerate(chosen, start=start):
            row[torch.randperm(total, generator=generator)[:count] if number else slice(count)] = 1
        within = ((chosen @ kernel) * chosen).sum(1, dtype=torch.float64)
        across = chosen.double() @ sums - within
        rest = total - count
        beside = whole - within - 2 * across
        found.append(
            within / (count * (count - 1)) + beside / (rest * (rest - 1)) - 2 * across / (count * rest)
        )
        if progress:
            progress(min(start + _AT_ONCE, shuffles + 1), shuffles + 1, "two-sample test")
    values = torch.cat(found)
    return float(values[0]), values[1:]
