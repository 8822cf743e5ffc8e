"""The Vendi score: how many different pictures there are, counted by similarity (Friedman and Dieng 2023).

exp of the entropy of the eigenvalues of K/n, K the similarities of n samples with 1 on the diagonal: n for n
samples with nothing in common, 1 for n times the same. Sets of equal size can be compared, by the same
features and the same kernel; the score grows with n and is no estimate of a number of pictures: see birthday.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from .._core import BadInput, Progress, Record
from ._distances import BLOCK, approximate, centre, rows
from ._sources import flat_points

LARGEST = 5000  # rows of a matrix whose eigenvalues are taken: 200 MB and under a minute
ASKED = 1000  # points whose median distance is the bandwidth

Kernel = Literal["cosine", "rbf"]


@dataclass(frozen=True)
class Vendi(Record):
    """`bandwidth` of the RBF kernel exp(−‖a − b‖²/2h²); None for the cosine."""

    score: float
    samples: int
    kernel: Kernel
    bandwidth: float | None

    checks: ClassVar[Any] = (("a score of at least 0", lambda one: one.score >= 0),)

    def __str__(self) -> str:
        return f"Vendi score {self.score:.4g} of {self.samples:,} ({self.kernel})"


def vendi(
    points: Tensor,
    kernel: Kernel = "cosine",
    *,
    bandwidth: float | None = None,
    progress: Progress | None = None,
) -> Vendi:
    """The score of n × d features. `bandwidth`: the median distance, or one for all sets to be compared.

    The cosine has its eigenvalues from the smaller of the n × n and the d × d matrix, which share all that
    are not 0; the RBF kernel has only the first.
    """
    points = flat_points(points, constant=True)
    if kernel not in ("cosine", "rbf"):
        raise BadInput("the kernel 'cosine' or 'rbf'", got=repr(kernel), do="choose one of them")
    size = min(points.shape) if kernel == "cosine" else len(points)
    if size > LARGEST:
        raise BadInput(
            f"at most {LARGEST:,} samples" + (" or features" if kernel == "cosine" else ""),
            got=f"{len(points):,} samples of {points.shape[1]:,} features",
            do="take some of the samples, as many of each set",
        )
    if kernel == "cosine":
        matrix, bandwidth = _cosine(points, progress), None
    else:
        bandwidth = median_distance(points) if bandwidth is None else bandwidth
        if not 0 < bandwidth < float("inf"):
            raise BadInput("a bandwidth above 0", got=bandwidth, do="give one; equal samples have none")
        matrix = _rbf(points, bandwidth, progress)
    return Vendi(score(matrix), len(points), kernel, bandwidth)


def score(matrix: Tensor) -> float:
    """exp(−Σ λ ln λ) over the eigenvalues of a symmetric matrix of trace 1."""
    values = torch.linalg.eigvalsh(matrix)
    return float(torch.special.entr(values.clamp(min=0)).sum().exp())  # rounding leaves some just below 0


def median_distance(points: Tensor) -> float:
    """Of the pairs of at most 1,000 points, evenly picked from all: the usual bandwidth."""
    some = points[:: -(-len(points) // ASKED)].double()
    return float(torch.pdist(some).median())


def _cosine(points: Tensor, progress: Progress | None) -> Tensor:
    """K/n, or where it is smaller XᵀX/n of the normalized rows."""
    count, width = points.shape
    if width >= count:
        unit = _unit(points)
        return unit @ unit.T / count
    total = torch.zeros(width, width, dtype=torch.float64)
    blocks = points.split(BLOCK)
    for done, block in enumerate(blocks, start=1):
        unit = _unit(block)
        total += unit.T @ unit
        if progress:
            progress(done, len(blocks), "similarities")
    return total / count


def _unit(block: Tensor) -> Tensor:
    block = block.double()
    norms = block.norm(dim=1, keepdim=True)
    if not bool((norms > 0).all()):
        raise BadInput(
            "features that are not all 0 for the cosine", got="a row of zeros", do="use kernel='rbf'"
        )
    unit: Tensor = block / norms
    return unit


def _rbf(points: Tensor, bandwidth: float, progress: Progress | None) -> Tensor:
    """K/n."""
    count = len(points)
    matrix = torch.empty(count, count, dtype=torch.float64)
    middle = centre(points)
    starts = range(0, count, BLOCK)
    every = [rows(points[start : start + BLOCK], middle, torch.float64) for start in starts]
    for number, (start, a) in enumerate(zip(starts, every, strict=True), start=1):
        for at, b in zip(starts, every, strict=True):
            squared = approximate(a, b).clamp_(min=0)
            matrix[start : start + BLOCK, at : at + BLOCK] = squared.div_(-2 * bandwidth**2).exp_()
        if progress:
            progress(number, len(starts), "similarities")
    found: Tensor = matrix.fill_diagonal_(1).div_(count)
    return found
