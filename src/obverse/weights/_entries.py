"""The law of a layer's entries, and from which size on it would matter. Not for how they are arranged."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from .._core import BadInput
from ._distributions import best_law, kurtosis_p, normal_distances, normal_p, skew_p
from .results import Entries, Histogram, Number

_CHUNK = 2**15  # float64 copies of so many entries stay in the cache, and torch starts no threads for them
_MANY = 4096  # more levels than that are no grid
_EDGES = np.linspace(-6, 6, 61)
_NORMAL_QUANTILES = np.linspace(-3.5, 3.5, 41)


def entries(
    matrix: Tensor,
    *,
    sparsity: int,
    kept: float,
    error: float,
    most: int = 2**20,
    generator: torch.Generator,
) -> Entries:
    """Measure the entries of a weight matrix.

    Moments and zeros are those of all entries; distances, likelihoods, levels, histogram and quantiles those
    of at most `most`, one drawn from each of so many equal blocks. `sparsity`, `kept` and `error` (the
    recovery error of random entries) say how the layer is used: see `matters_from`.

    The likelihoods leave out exact zeros, which have no density: a normal layer pruned at random is normal
    with many zeros. A constant matrix has scale, skew and kurtosis 0, the distances of a point mass from the
    middle of a normal law (D = 1/2), no p-values of its moments and, as a tie, the normal law.
    """
    if not matrix.is_floating_point() or matrix.numel() < 4:
        got = f"{matrix.dtype} of shape {tuple(matrix.shape)}"
        raise BadInput("a floating-point matrix of at least 4 entries", got=got, do="leave this layer out")
    flat = matrix.detach().reshape(-1)
    count, moments = flat.numel(), measure_moments(flat)
    values = _sorted_subset(flat, most, generator)
    ks, anderson = normal_distances(values)
    law, likelihoods, freedom = best_law(values[values != 0])
    distinct, step = levels(values)
    mean_error = moments.scale / math.sqrt(count)
    varies = moments.scale > 0
    return Entries(
        count=count,
        used=len(values),
        mean=Number(moments.mean, mean_error, 0.0, normal_p(moments.mean / mean_error) if varies else None),
        scale=Number(moments.scale, mean_error * math.sqrt(max(moments.kurtosis + 2, 0.0)) / 2),
        skew=Number(moments.skew, math.sqrt(6 / count), 0.0, skew_p(moments.skew, count) if varies else None),
        kurtosis=Number(
            moments.kurtosis,
            math.sqrt(24 / count),
            0.0,
            kurtosis_p(moments.kurtosis, count) if varies else None,
        ),
        ks=ks,
        anderson=anderson,
        best_law=law,
        likelihoods=likelihoods,
        freedom=freedom,
        matters_from=matters_from(sparsity, kept, error),
        zeros=moments.zeros,
        distinct=distinct,
        step=step,
        histogram=_histogram(values, moments),
        quantiles=_quantiles(values, moments),
    )


def matters_from(sparsity: int, kept: float, error: float) -> dict[str, float]:
    """|mean|/scale, |skew| and |excess kurtosis| of the entries that change the recovery error by 10 %.

    For h with k half-normal non-zeros, t inputs kept, e the error of normal entries, at the best uniform
    threshold. Within a factor of about 2 (simulated; the mean and the skew of the less favourable sign):
    - a mean μ shifts every pre-activation by μ‖h‖₁: the slope grows from 1 to 2Φ(u) = 1 + δ, u = μ√(2k/π),
      and the noise with it, so that ĥ grows by δ (a uniform shift of ĥ goes into the threshold). What
      counts is not δ² but the product with the shrinkage by the threshold, 2δ⟨h − ĥ, ĥ⟩, and ⟨h − ĥ, ĥ⟩ is
      about ⅜·√e(1 − √e)‖h‖²;
    - a skew γ adds the bias γφ(0)h_i²/‖h‖ (Stein's lemma to third order), squared 0.48γ²/k of ‖h‖²; its
      first-order effects, on the shrinkage, the slope and the noise, partly cancel;
    - an excess kurtosis κ adds (2/t)κh_i² to the variance of ĥ_i: 2κ/t of ‖h‖².
    """
    if sparsity < 1 or not kept > 0 or not error > 0:
        raise BadInput(
            "sparsity ≥ 1, kept > 0 and error > 0",
            got=f"{sparsity}, {kept} and {error}",
            do="take error from shadow.recovery_error",
        )
    root = math.sqrt(error)
    left = max(1 - root, 0.1)  # as error nears 1, recovery is lost and nothing changes it any more
    gain = 0.1 * error / (2 * 0.375 * root * left)  # δ
    shift = gain * math.sqrt(math.pi / 2)  # u, from 2Φ(u) − 1 ≈ u·√(2/π)
    return {
        "mean": shift / math.sqrt(2 * sparsity / math.pi),
        "skew": math.sqrt(0.1 * error * sparsity / 0.48),
        "kurtosis": 0.1 * error * kept / 2,
    }


@dataclass(frozen=True)
class Moments:
    mean: float
    scale: float
    skew: float
    kurtosis: float
    zeros: float


def measure_moments(flat: Tensor) -> Moments:
    """Over all entries, in float64 about the mean; 0 beyond the mean where all entries are equal."""
    count, chunks = flat.numel(), flat.split(_CHUNK)
    total, filled, low, high = 0.0, 0, math.inf, -math.inf
    for chunk in chunks:
        total += float(chunk.sum(dtype=torch.float64))
        filled += int(torch.count_nonzero(chunk))
        ends = torch.aminmax(chunk)
        low, high = min(low, float(ends.min)), max(high, float(ends.max))
    mean, zeros = total / count, 1 - filled / count
    if not math.isfinite(mean) or not math.isfinite(high - low):  # NaN reaches the sum
        raise BadInput("finite entries", got="NaN, infinity or overflow", do="find where the weights broke")
    if low == high:
        return Moments(low, 0.0, 0.0, 0.0, zeros)
    reach = max(high - mean, mean - low)  # in units of it no power overflows
    second = third = fourth = 0.0
    for chunk in chunks:
        centred = (chunk.double() - mean).div_(reach)  # a new tensor: float64 chunks are the matrix itself
        square = centred * centred
        second += float(square.sum()) / count  # not a dot product: BLAS would start threads for each
        third += float(centred.mul_(square).sum()) / count
        fourth += float(square.mul_(square).sum()) / count
    return Moments(mean, reach * math.sqrt(second), third / second**1.5, fourth / second**2 - 3, zeros)


def levels(values: npt.NDArray[Any]) -> tuple[int | None, float | None]:
    """How many different values a sorted sample has where they repeat, and the step of the grid they lie on.

    Few is at most 4,096, and at most one for every two entries that are not 0 (a pruned layer is no grid).
    The step is the smallest difference; every value must be a whole number of steps from the first, to
    float32 precision, over at most 4,096 levels.
    """
    starts = np.flatnonzero(values[1:] != values[:-1]) + 1
    distinct = len(starts) + 1
    if distinct > _MANY or len(starts) > np.count_nonzero(values) / 2:
        return None, None
    if distinct == 1:
        return 1, None
    different = values[np.concatenate(([0], starts))].astype(np.float64)
    gaps = np.diff(different)
    smallest = gaps[gaps < 1.5 * gaps.min()].mean()
    places = np.concatenate(([0.0], np.cumsum(np.rint(gaps / smallest))))
    if places[-1] >= _MANY:
        return distinct, None
    step = (different[-1] - different[0]) / places[-1]
    rounding = 4 * np.finfo(np.float32).eps * np.abs(different).max()
    fits = np.abs(different[0] + step * places - different).max() <= rounding
    return distinct, float(step) if fits else None


def _sorted_subset(flat: Tensor, most: int, generator: torch.Generator) -> npt.NDArray[Any]:
    width = -(-flat.numel() // most)
    if width > 1:
        blocks = flat[: flat.numel() // width * width].view(-1, width)
        # Never the same entry twice: repeated ones would widen the distances beyond their nulls.
        drawn = torch.randint(width, (len(blocks), 1), generator=generator, device=generator.device)
        flat = blocks.gather(1, drawn.to(flat.device)).flatten()
    flat = flat.float() if flat.dtype in (torch.float16, torch.bfloat16) else flat
    return np.sort(flat.cpu().numpy())


def _histogram(values: npt.NDArray[Any], moments: Moments) -> Histogram:
    unit = moments.scale or abs(moments.mean) or 1.0  # equal values all lie at 0
    inner = np.searchsorted(values, moments.mean + _EDGES[1:-1] * unit)
    counts = np.diff(np.concatenate(([0], inner, [len(values)])))
    return Histogram(tuple(_EDGES.tolist()), tuple(counts.tolist()))


def _quantiles(values: npt.NDArray[Any], moments: Moments) -> tuple[tuple[float, float], ...]:
    """(normal, observed) at those normal quantiles that lie within the sample's own plotting positions."""
    from scipy.special import ndtr

    last = len(values) - 1
    places = ndtr(_NORMAL_QUANTILES) * len(values) - 0.5  # the i-th of n values stands at (i + ½)/n
    inside = (places >= 0) & (places <= last)
    below = np.floor(places[inside]).astype(np.int64)
    ends = values[np.stack((below, np.minimum(below + 1, last)))].astype(np.float64)
    lower, upper = (ends - moments.mean) / (moments.scale or 1.0)
    observed = lower + (places[inside] - below) * (upper - lower)
    return tuple(zip(_NORMAL_QUANTILES[inside].tolist(), observed.tolist(), strict=True))
