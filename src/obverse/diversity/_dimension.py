"""On how many dimensions do the points lie? The intrinsic dimension, from ratios of neighbours' distances.

Close to a point of a d-dimensional manifold, ln(r₂/r₁) of its two nearest neighbours is exponential with
rate d (TwoNN; Facco et al. 2017), and so are the others to the k-th (Levina and Bickel 2004, averaged as
MacKay and Ghahramani 2005 say). Not for the dimension in which a net could store the points.

Two things are off. Chance: points that share neighbours depend on each other, and the errors know it. Bias:
neighbours of few points in many dimensions are not close. With 1,000 points TwoNN is too low where these
thin out or have a border (16.6 for a Gaussian of 20 dimensions, 16.4 for a sphere, 4.6 for a cube of 5,
which is nearly all border), or too high where the manifold bends on the way to the neighbour (12.3 for a
torus of 10). Intervals allow for it by how the estimate changes with the number of points. In simulations
with 500 and 1,000 points, 95% intervals of TwoNN hold the dimension of manifolds without border in 95 of
100 cases or more up to 5 dimensions (of a cube of 5 in 90), in 8 to 10 of 10 at 10 dimensions and in 7 to 9
of 10 at 20. The likelihood has twice the bias and less chance, so that its intervals allow for more: for a
border, whose bias falls more slowly, and for not knowing how much the estimate changes. They held the
dimension in 95 of 100 cases or more of a 2-sphere, a 3-torus, a swiss roll, a Gaussian of 5 and a cube of 5
dimensions, 60 draws each; beyond 5 the result says itself that it was not measured. Points on a grid
(pixels of few grey levels) have ties and look of lower or higher dimension than they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from .._core import BadInput, Progress, Record, check_confidence, or_global
from ._estimates import one_pass
from ._neighbours import nearest
from ._pairs import equal_rows
from ._sources import flat_points

K = 10  # neighbours of the maximum likelihood estimate: more have less noise and more bias
KEEP = 0.9  # of the ratios of TwoNN; the largest are known to be no smaller than these, no more
FEWEST = 20  # different points
MEASURED = 5.0  # dimensions, up to which the coverage of intervals was simulated and found
LONGEST = 5.0  # of the allowance for bias, on a log scale: beyond, nothing is known

Method = Literal["twonn", "likelihood"]


@dataclass(frozen=True)
class Dimension(Record):
    """`error`: of chance alone; `low`, `high`: with an allowance for bias, at most the number of features.

    `at_half`: the estimate from half of the points. `duplicates`: points equal to an earlier one, left out.
    """

    method: Method
    value: float
    error: float
    low: float
    high: float
    confidence: float
    at_half: float | None
    points: int
    duplicates: int
    k: int

    checks: ClassVar[Any] = (("an interval around the value", lambda one: one.low <= one.value <= one.high),)

    def __str__(self) -> str:
        left = f"; {self.duplicates:,} duplicates left out" if self.duplicates else ""
        if self.high > MEASURED:
            left += f"; above {MEASURED:g} dimensions such intervals may hold less often than they say"
        return (
            f"{self.value:.3g} dimensions, {100 * self.confidence:g}% {self.low:.3g} to {self.high:.3g} "
            f"({self.points:,} points{left})"
        )


def intrinsic_dimension(
    points: Tensor,
    method: Method = "twonn",
    *,
    k: int | None = None,
    confidence: float = 0.95,
    generator: torch.Generator | None = None,
    progress: Progress | None = None,
) -> Dimension:
    """The dimension with its interval; `k` neighbours for "likelihood" (10), 2 for "twonn".

    `generator` (torch's global one if None) draws the half of the points of `at_half`.
    """
    points = flat_points(points, "the points")
    if method not in ("twonn", "likelihood"):
        raise BadInput("'twonn' or 'likelihood'", got=repr(method), do="choose one of them")
    k = (2 if method == "twonn" else K) if k is None else k
    if type(k) is not int or not (k == 2 if method == "twonn" else 3 <= k <= 100):
        raise BadInput("k = 2 for twonn, from 3 to 100 for likelihood", got=k, do="leave it out")
    check_confidence(confidence)
    owner = equal_rows(points)
    different = owner == torch.arange(len(points))
    duplicates = len(points) - int(different.sum())
    points = points[different] if duplicates else points
    least = max(FEWEST, 2 * k)
    if len(points) < least:
        raise BadInput(f"at least {least} different points", got=len(points), do="add some")
    generator = or_global(generator)
    value, error = estimate(*_found(points, k, one_pass(progress, 0, 3)))
    at_half = None
    if len(points) // 2 >= least:
        halves = torch.randperm(len(points), generator=generator).tensor_split(2)
        parts = [_found(points[half], k, one_pass(progress, 1 + i, 3)) for i, half in enumerate(halves)]
        at_half = sum(estimate(*part)[0] for part in parts) / 2
    low, high = interval(value, error, at_half, confidence, border=method == "likelihood")
    high = max(value, min(high, points.shape[1]))
    return Dimension(method, value, error, low, high, confidence, at_half, len(points), duplicates, k)


def _found(points: Tensor, k: int, progress: Progress | None) -> tuple[Tensor, Tensor]:
    return nearest(points, points, k, same=True, progress=progress)


def estimate(distance: Tensor, index: Tensor) -> tuple[float, float]:
    """(dimension, standard error) from the k nearest neighbours of each point, n × k; none at distance 0.

    With k = 2 the largest tenth of ln(r₂/r₁) is censored, which is exact for exponentials and keeps
    near-duplicates from counting too much. Otherwise d = 1 / mean of ln(r_k/r_j), j < k.
    """
    distance = distance.double()
    if not bool((distance[:, 0] > 0).all()):
        raise BadInput("neighbours that are not at distance 0", got="some", do="leave duplicates out")
    ratio = (distance[:, -1:] / distance[:, :-1]).log()
    if distance.shape[1] == 2:
        length = ratio[:, 0]
        limit = length.sort().values[int(np.ceil(KEEP * len(length))) - 1]
        seen, length = (length <= limit).double(), length.clamp(max=float(limit))
    else:
        length = ratio.mean(1)
        seen = torch.ones_like(length)
    total = float(length.sum())
    if not total > 0:
        raise BadInput(
            "points with neighbours at different distances", got="all the same", do="these lie on a grid"
        )
    value = float(seen.sum()) / total
    # d = Σ seen / Σ length: to first order its error is Σ (seen − d·length) / Σ length.
    return value, _norm_of_sum((seen - value * length).numpy(), index.numpy()) / total


def _norm_of_sum(parts: np.ndarray[Any, Any], index: np.ndarray[Any, Any]) -> float:
    """The standard deviation of a sum of numbers, one a point, that depend on each other near by.

    The sum of products over pairs of points that are neighbours or have one in common; at least what it would
    be without dependence.
    """
    from scipy import sparse

    count, k = index.shape
    own = np.arange(count)[:, None]
    columns = np.concatenate([own, index], axis=1).ravel()
    near = sparse.csr_array(
        (np.ones(len(columns)), columns, np.arange(0, len(columns) + 1, k + 1)), shape=(count, count)
    )
    shared = near @ near.T
    shared.data[:] = 1
    return float(np.sqrt(max(parts @ (shared @ parts), parts @ parts)))


def interval(
    value: float, error: float, at_half: float | None, confidence: float, *, border: bool = False
) -> tuple[float, float]:
    """For chance, and wider on both sides for bias; symmetric on the scale of ln d.

    Distances to neighbours shrink like n^(−1/d), and bias with their square where manifold and density are
    smooth: so what the doubling of the points has changed, times 1/(2^(2/d) − 1), is still to come. That
    change is small and noisy, so that its sign is not relied on. With `border` more is allowed: there the
    bias falls with the distance itself, 1/(2^(1/d) − 1), and the change may be larger by its own error, which
    is about that of the estimate.
    """
    from scipy import stats

    relative = error / value
    width = stats.norm.ppf((1 + confidence) / 2) * relative
    if at_half is not None:
        change, power = abs(np.log(value / at_half)), 2
        if border:
            change, power = change + relative, 1
        width += min(LONGEST, change / np.expm1(power / value * np.log(2)))
    return value * float(np.exp(-width)), value * float(np.exp(width))
