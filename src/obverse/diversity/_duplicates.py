"""Samples that are equal in every value, counted, beside those of real data. Not for near-duplicates.

Real data may hold equal images too, so with some at hand the count is judged by permutation: were the samples
like real data, which of all images are samples would be a draw without replacement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from .._core import Record, or_global
from ._pairs import equal_rows

SHUFFLES = 999


@dataclass(frozen=True)
class Duplicates(Record):
    """`distinct` of `examined` samples are not equal to an earlier one; so of real data.

    `p`: that the samples hold so many duplicates by chance; None without real data, and where no two of all
    images are equal, as no dealing of them could then show any.
    """

    examined: int
    distinct: int
    real: int | None = None
    distinct_real: int | None = None
    p: float | None = None

    checks: ClassVar[Any] = (
        (
            "as many different samples as there are samples at most",
            lambda one: 1 <= one.distinct <= one.examined,
        ),
        ("a p-value", lambda one: one.p is None or 0 <= one.p <= 1),
    )


def duplicates(
    samples: Tensor,
    real: Tensor | None = None,
    *,
    shuffles: int = SHUFFLES,
    generator: torch.Generator | None = None,
) -> Duplicates:
    """Of n × … samples, and real data of the same shape."""
    own, count = samples.flatten(1), len(samples)
    if real is None:
        return Duplicates(count, distinct(own))
    other = real.flatten(1).to(own.dtype)
    found = Duplicates(count, distinct(own), len(other), distinct(other))
    _, kind, sizes = torch.unique(
        equal_rows(torch.cat([own, other])), return_inverse=True, return_counts=True
    )
    shared = (sizes[kind] > 1).nonzero().flatten()  # the others are different wherever they are dealt
    if not len(shared):
        return found
    generator = or_global(generator)
    kind, total = kind[shared], count + len(other)
    as_many = 0
    for _ in range(shuffles):
        mine = torch.randperm(total, generator=generator)[: len(shared)] < count
        as_many += _repeats(kind, mine, len(sizes)) >= found.examined - found.distinct
    return Duplicates(
        found.examined, found.distinct, found.real, found.distinct_real, (1 + as_many) / (1 + shuffles)
    )


def distinct(points: Tensor) -> int:
    return len(equal_rows(points).unique())


def _repeats(kind: Tensor, mine: Tensor, kinds: int) -> int:
    """How many of the chosen points are equal to another chosen one, less one of each kind."""
    count = torch.bincount(kind[mine], minlength=kinds)
    return int((count - 1).clamp(min=0).sum())
