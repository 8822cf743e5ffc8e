"""What people choose layers and ranks by: each rule as one function of singular values and shape.

`counts` says how many directions a rule calls signal, `scores` by how much it prefers a matrix.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import integrate, optimize
from torch import Tensor

from obverse.weights import Parts, decompose

Array = NDArray[np.float64]
GRAM_FROM = 1024  # rows and columns
NORMAL_IQR = 1.349  # of a standard normal distribution
COUNTING = ("Spectrum", "Gavish–Donoho", "spikes + √TW", "energy 90 %", "energy 99 %", "stable rank", "ours")


def singular_values(matrix: Tensor) -> Array:
    """Descending; of large matrices from W Wᵀ in float64, good to 1e-7 of the largest."""
    if min(matrix.shape) < GRAM_FROM:
        found = torch.linalg.svdvals(matrix.double())
    else:
        short = (matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T).double()
        found = torch.linalg.eigvalsh(short @ short.T).clamp(min=0).sqrt().flip(0)
    values: Array = found.numpy()
    return values


def shape_ratio(rows: int, columns: int) -> float:
    return min(rows, columns) / max(rows, columns)


def spectrum_threshold(values: Array, ratio: float) -> float:
    """σ (1 + √y), where σ is the interquartile range of the singular values over that of a normal."""
    low, high = np.quantile(values, [0.25, 0.75])
    return float((high - low) / NORMAL_IQR * (1 + np.sqrt(ratio)))


def spectrum(values: Array, ratio: float) -> int:
    return int((values > spectrum_threshold(values, ratio)).sum())


def spectrum_snr(values: Array, ratio: float) -> float:
    """Sum of the values above the threshold over the sum of the others, over the largest."""
    above = values > spectrum_threshold(values, ratio)
    return float(values[above].sum() / max(values[~above].sum(), 1e-12) / values[0])


def energy(values: Array, share: float) -> int:
    """As few directions as hold this share of the energy."""
    part = np.cumsum(values**2) / np.sum(values**2)
    return int(np.searchsorted(part, share) + 1)


def stable_rank(values: Array) -> float:
    return float(np.sum(values**2) / values[0] ** 2)


def condition(values: Array) -> float:
    return float(values[0] / max(values[-1], 1e-12))


def density(x: Array | float, ratio: float) -> Array | float:
    """Of the eigenvalues of noise of variance 1, Marchenko and Pastur 1967."""
    low, high = (1 - np.sqrt(ratio)) ** 2, (1 + np.sqrt(ratio)) ** 2
    inside = np.clip((high - np.asarray(x)) * (np.asarray(x) - low), 0, None)
    return np.sqrt(inside) / (2 * np.pi * ratio * np.maximum(x, 1e-300))


@cache
def median_of_noise(ratio: float) -> float:
    low, high = (1 - np.sqrt(ratio)) ** 2, (1 + np.sqrt(ratio)) ** 2

    # x = low + (high − low) sin² a: the density has no infinite slope left at either end
    def part(a: float) -> float:
        x = low + (high - low) * np.sin(a) ** 2
        return float(density(x, ratio)) * (high - low) * np.sin(2 * a)

    def below(a: float) -> float:
        return float(integrate.quad(part, 0, a, limit=200)[0]) - 0.5

    a = optimize.brentq(below, 1e-6, np.pi / 2)
    return float(low + (high - low) * np.sin(a) ** 2)


def gavish_donoho(values: Array, ratio: float) -> int:
    """Above λ(y) / √median of the law × the median singular value: the best hard threshold, unknown noise."""
    best = np.sqrt(2 * (ratio + 1) + 8 * ratio / (ratio + 1 + np.sqrt(ratio**2 + 14 * ratio + 1)))
    return int((values > best / np.sqrt(median_of_noise(ratio)) * np.median(values)).sum())


def spikes(values: Array, rows: int, columns: int) -> int:
    """Eigenvalues beyond the edge of a fitted Marchenko–Pastur law plus √TW: WeightWatcher's spikes.

    The matrix is scaled to eigenvalues of mean 1, as there. The margin is the square root of the scale of
    Tracy–Widom fluctuations, without a probability. The fit is ours: σ² is the mean of the eigenvalues that
    lie within the edge it implies, again until the edge stands still.
    """
    short, ratio = min(rows, columns), shape_ratio(rows, columns)
    found = values**2 / np.mean(values**2)
    bulk = found
    for _ in range(100):
        variance = float(bulk.mean())
        edge = variance * (1 + np.sqrt(ratio)) ** 2
        kept = found[found <= edge + _margin(edge, ratio, short)]
        if len(kept) == len(bulk):
            break
        bulk = kept
    return int((found > edge + _margin(edge, ratio, short)).sum())


def _margin(edge: float, ratio: float, short: int) -> float:
    return float(np.sqrt(np.sqrt(ratio) * edge ** (2 / 3) * short ** (-2 / 3)))


def counts(matrix: Tensor, parts: Parts | None = None) -> dict[str, int]:
    """How many directions each rule calls signal."""
    rows, columns = matrix.shape
    values, ratio = singular_values(matrix), shape_ratio(rows, columns)
    parts = parts or decompose(matrix, generator=torch.Generator().manual_seed(0))
    return {
        "Spectrum": spectrum(values, ratio),
        "Gavish–Donoho": gavish_donoho(values, ratio),
        "spikes + √TW": spikes(values, rows, columns),
        "energy 90 %": energy(values, 0.9),
        "energy 99 %": energy(values, 0.99),
        "stable rank": round(stable_rank(values)),
        "ours": parts.rank,
    }


def scores(matrix: Tensor) -> dict[str, float]:
    """By how much each rule prefers a matrix: the one with the largest number is trained."""
    rows, columns = matrix.shape
    values, ratio = singular_values(matrix), shape_ratio(rows, columns)
    parts = decompose(matrix, generator=torch.Generator().manual_seed(0))
    share = parts.random_share.value if parts.random_share else 1.0
    return {
        "Spectrum": spectrum_snr(values, ratio),
        "condition number": -condition(values),
        "stable rank": stable_rank(values),
        "energy 90 %": float(energy(values, 0.9)),
        "Gavish–Donoho": float(gavish_donoho(values, ratio)),
        "spikes + √TW": float(spikes(values, rows, columns)),
        "ours, most signal": 1 - share,
        "ours, most random": share,
    }
