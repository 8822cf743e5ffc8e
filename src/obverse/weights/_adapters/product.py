"""Singular values of scaling · B · A without forming it, and what random factors would have. No sentences.

With B = Q_B R_B and Aᵀ = Q_A R_A the product is Q_B (R_B R_Aᵀ) Q_Aᵀ, and the core between is rank × rank. Of
independent normal numbers R is known (Bartlett 1933): normal above the diagonal, χ on it. So products of
random factors of any size cost no more than their cores.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from .._decomposition.marchenko_pastur import Array

MOST_DRAWS, LARGE_DRAWS = 999, 99
LARGE, LARGEST = 64, 256  # ranks: above these fewer products are drawn, or none
FEWEST = 4  # of two or three values a median says nothing
_USED = 2**16  # entries compared with their first distribution
_SLACK = 1 + 2**-8  # a first value may have been rounded to bfloat16


@dataclass(frozen=True)
class Standing:
    """How many of the largest values random factors would not have, in `draws` products of such."""

    count: int
    p: float  # of the largest one
    draws: int


def core(left: Tensor, right: Tensor, scaling: float) -> Tensor:
    """What is between orthonormal columns and rows in scaling · left · right."""
    outer, inner = torch.linalg.qr(left, mode="r")[1], torch.linalg.qr(right.T, mode="r")[1]
    between: Tensor = scaling * outer @ inner.T
    return between


def singular_values(left: Tensor, right: Tensor, scaling: float = 1.0) -> Array:
    """Of scaling · left (rows × rank) · right (rank × columns), descending."""
    values: Array = torch.linalg.svdvals(core(left, right, scaling)).numpy()
    return values


def directions_for(values: Array, share: float) -> int:
    """The fewest directions that carry this share of the energy."""
    energy = np.cumsum(values**2)
    return int(np.searchsorted(energy, share * energy[-1] * (1 - 1e-12)) + 1)


def effective_rank(values: Array) -> float:
    """exp of the entropy of the shares of energy: r where r directions are alike."""
    shares = values**2 / (values**2).sum()
    shares = shares[shares > 0]
    return float(np.exp(-(shares * np.log(shares)).sum()))


def standing(values: Array, rows: int, columns: int) -> Standing | None:
    """Which values are too far above their median for factors of independent normal numbers.

    Where many directions stand out the median is one of theirs: then the count is too small.
    """
    rank = len(values)
    if not FEWEST <= rank <= min(rows, columns, LARGEST):
        return None
    null = largest_ratios(rows, columns, rank)
    middle = float(np.median(values))
    count = int((values > null[-1] * middle).sum())
    beyond = int((null * middle >= values[0]).sum())
    return Standing(count, (1 + beyond) / (len(null) + 1), len(null))


@lru_cache(maxsize=64)
def largest_ratios(rows: int, columns: int, rank: int) -> Array:
    """Largest value over median in products of two normal factors, ascending; the same whenever asked."""
    draws = MOST_DRAWS if rank <= LARGE else LARGE_DRAWS
    numbers = np.random.default_rng((rows, columns, rank))
    found = []
    for start in range(0, draws, 100):
        count = min(100, draws - start)
        cores = _triangles(numbers, count, rows, rank) @ _triangles(numbers, count, columns, rank).mT
        values = torch.linalg.svdvals(cores).numpy()
        found.append(values[:, 0] / np.median(values, axis=1))
    return np.sort(np.concatenate(found))


def _triangles(numbers: np.random.Generator, count: int, long: int, rank: int) -> Tensor:
    """R of the QR decompositions of normal matrices, long × rank."""
    made = np.triu(numbers.standard_normal((count, rank, rank)), 1)
    made[:, range(rank), range(rank)] = np.sqrt(numbers.chisquare(long - np.arange(rank), (count, rank)))
    return torch.from_numpy(made)


def initial_p(factor: Tensor, inputs: int) -> float | None:
    """The chance that uniform numbers within ±1/√inputs, with which PEFT begins A, look so little like it.

    None where an entry lies outside.
    """
    entries = factor.flatten()
    bound = 1 / math.sqrt(inputs)
    if float(entries.abs().max()) > bound * _SLACK:
        return None
    some = entries[:: max(1, len(entries) // _USED)].numpy()
    return float(stats.kstest(some, stats.uniform(-bound, 2 * bound).cdf).pvalue)
