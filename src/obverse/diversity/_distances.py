"""Squared distances of two blocks of points: fast with a known margin of error, or exact. Not for searching.

‖a − b‖² = ‖a‖² + ‖b‖² − 2a·b is a matrix product, and in float32 wrong in the digits that matter for
near-duplicates. So it only chooses candidates, and those are measured by their differences in float64.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

BLOCK = 2048  # rows: a block of distances takes 16 MB, and the product still has its full speed
_CHUNK = 2**20  # values of differences held at a time, in float64: 8 MB


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of the points less a common centre, with their squared norms."""

    values: Tensor  # n × d
    norms: Tensor  # n


def centre(points: Tensor) -> Tensor:
    """About the mean, in float64, from some of the rows: it keeps the norms small, and so the margin."""
    some = points[:: -(-len(points) // BLOCK)]
    return some.mean(0, dtype=torch.float64)


def rows(points: Tensor, middle: Tensor, dtype: torch.dtype) -> Rows:
    # In the precision of the points at least: far from the origin no digit is lost before the difference.
    wide = torch.promote_types(points.dtype, dtype)
    values = (points.to(wide) - middle.to(wide)).to(dtype)
    return Rows(values, torch.linalg.vector_norm(values, dim=1).square_())


def approximate(a: Rows, b: Rows) -> Tensor:
    """‖a − b‖² for each pair of rows, within `margin`; may be negative by as much."""
    product = torch.addmm(b.norms, a.values, b.values.T, beta=1, alpha=-2)
    return product.add_(a.norms[:, None])


def margin(a: Rows, b: Rows) -> float:
    """What `approximate` can be off by, at most: the error of sums of d products, and of the centring.

    The standard bound n·u·Σ|terms| with Σ|terms| ≤ (‖a‖ + ‖b‖)²; twice, for the rounding of the centring.
    """
    size = float(a.norms.max()) ** 0.5 + float(b.norms.max()) ** 0.5
    return float(2 * (a.values.shape[1] + 8) * torch.finfo(a.values.dtype).eps * size**2)


def exact(points: Tensor, others: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """‖points[first] − others[second]‖² in float64, from the differences, pair by pair."""
    step = max(1, _CHUNK // points.shape[1])
    # Written in place: a list of small results between freed chunks would pin the heap.
    found = torch.empty(len(first), dtype=torch.float64)
    for start in range(0, len(first), step):
        some = slice(start, start + step)
        apart = points[first[some]].to(torch.float64)
        apart -= others[second[some]]
        found[some] = torch.linalg.vecdot(apart, apart)
    return found
