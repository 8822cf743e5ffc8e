"""What is left of a layer when signal and norms are taken off: correlations and blocks."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from ._decomposition.marchenko_pastur import ks_distance
from ._decomposition.parts import Parts
from .results import Correlations, Histogram, Number

COMPARED = 512  # rows or columns compared with each other: 130,000 cosines
CELLS = 8  # blocks a side
CELL_SIDE = 8  # rows and columns a block has at least
KOLMOGOROV = (0.8687, 0.2603)  # mean and standard deviation of Kolmogorov's law


@torch.no_grad()
def without_signal(matrix: Tensor, parts: Parts, generator: torch.Generator) -> Tensor:
    """A copy with noise of the same profile in place of the signal's directions.

    Left out without replacement, the directions would be missed: of 40 long rows without their common part,
    any two have the cosine −1/39, far more than chance has.
    """
    if parts.rank == 0 or parts.summary.scale <= 0:
        return matrix.clone()
    left, right = (one.to(matrix) for one in parts.directions())
    # of a matrix of noise, what lies in the directions on either side: the two parts are independent
    inside = left @ _normal(left.shape[1], matrix.shape[1], generator).to(matrix)
    beside = _normal(matrix.shape[0], right.shape[1], generator).to(matrix)
    inside.addmm_(beside - left @ (left.T @ beside), right.T).mul_(parts.summary.scale)
    rows, columns = matrix.shape
    inside *= _without_chance(parts.row_scales, columns).to(matrix)[:, None]
    inside *= _without_chance(parts.column_scales, rows).to(matrix)
    return parts.without_signal().to(matrix) + inside


def _without_chance(scales: Tensor, length: int) -> Tensor:
    """Scales measured on lines of so many entries, less what chance makes them vary."""
    squares = scales.square()
    mean = squares.mean()
    varied = float(squares.var() / mean**2)
    kept = max(0.0, 1 - 2 / length / varied) if varied > 0 else 0.0
    return (mean + kept * (squares - mean)).sqrt()


def _normal(rows: int, columns: int, generator: torch.Generator) -> Tensor:
    return torch.empty(rows, columns).normal_(generator=generator)


@dataclass(frozen=True)
class Arrangement:
    """How the entries of a matrix are arranged: norms, cosines and blocks, each beside its null."""

    row_norms: Number
    column_norms: Number
    cosines: tuple[Correlations, Correlations]
    blocks: Number
    kurtosis: float  # excess, once rows and columns have equal norms

    @property
    def least_likely(self) -> float:
        """The smallest p-value of cosines and blocks."""
        return min(_p(one) for one in (*(side.rms for side in self.cosines), self.blocks))

    def doubted(self, other: Arrangement) -> Arrangement:
        """Cosines and blocks beside whichever of two nulls is less surprised by them."""
        rows, columns = (
            max(pair, key=lambda one: _p(one.rms)) for pair in zip(self.cosines, other.cosines, strict=True)
        )
        blocks = max(self.blocks, other.blocks, key=_p)
        return replace(self, cosines=(rows, columns), blocks=blocks)


@torch.no_grad()
def arranged_values(matrix: Tensor, kurtosis: float, generator: torch.Generator) -> dict[str, float]:
    """The numbers of `arrangement` alone, by name; a third of its work. Rows and columns get equal norms."""
    row_norms, column_norms = (norm_spread(matrix, dim, kurtosis).value for dim in (1, 0))
    even = fourth_moment(equalize_(matrix)) - 3
    return {
        "row_norms": row_norms,
        "column_norms": column_norms,
        "rows": _rms_cosine(matrix, generator),
        "columns": _rms_cosine(matrix.T, generator),
        "blocks": block_contrast(matrix, even).value,
    }


def _p(number: Number) -> float:
    return 1.0 if number.p is None else number.p


@torch.no_grad()
def arrangement(matrix: Tensor, kurtosis: float, generator: torch.Generator) -> Arrangement:
    """Measured on `matrix`, whose rows and columns get equal norms in place."""
    rows, columns = (norm_spread(matrix, dim, kurtosis) for dim in (1, 0))
    even = fourth_moment(equalize_(matrix)) - 3
    cosines = (
        correlations(matrix, "rows", even, generator),
        correlations(matrix, "columns", even, generator),
    )
    return Arrangement(rows, columns, cosines, block_contrast(matrix, even), even)


def norms(matrix: Tensor, dim: int) -> Tensor:
    """Norms of the rows (dim 1) or columns (dim 0), the other dimension kept.

    Columns by bands of rows that stay in the cache: ten times as fast as torch's own norm along dim 0.
    """
    if dim == 1:
        lengths: Tensor = torch.linalg.vector_norm(matrix, dim=1, keepdim=True)
        return lengths
    total = torch.zeros(1, matrix.shape[1], dtype=torch.float64, device=matrix.device)
    for band in matrix.split(max(1, 2**20 // matrix.shape[1])):
        total += band.square().sum(0, keepdim=True)
    return total.sqrt().to(matrix.dtype)


@torch.no_grad()
def equalize_(matrix: Tensor) -> Tensor:
    """Give all rows and all columns mean square 1, in place; rows and columns of zeros stay."""
    rows, columns = matrix.shape
    for _ in range(2):  # rows, columns, rows, columns: what is left of unequal rows is of second order
        for dim, length in ((1, columns), (0, rows)):
            sizes = norms(matrix, dim) / math.sqrt(length)
            matrix.div_(torch.where(sizes > 0, sizes, torch.ones_like(sizes)))
    return matrix


def norm_spread(matrix: Tensor, dim: int, kurtosis: float) -> Number:
    """Coefficient of variation of the squared norms of rows (dim 1) or columns (dim 0).

    Independent entries give √((2 + excess kurtosis) / length), give or take the spread of a variance.
    """
    from scipy.stats import chi2

    squares = norms(matrix, dim).flatten().double().cpu().numpy() ** 2
    count, length = len(squares), matrix.shape[dim]
    mean = squares.mean()
    if not mean > 0:
        return Number(0.0)
    value = float(squares.std(ddof=1) / mean)
    null = math.sqrt(max(2 + kurtosis, 1e-6) / length)
    # a sum of `length` squares is itself skewed: its kurtosis widens the spread of the variance
    excess = 12 / length if kurtosis <= 0 else 12 / length + 4 * kurtosis**2 / length
    widening = math.sqrt(1 + excess / 2)
    degrees = (count - 1) / widening**2
    p = float(chi2.sf(degrees * (value / null) ** 2, degrees))
    return Number(value, null * widening / math.sqrt(2 * (count - 1)), null, p)


def _chosen(vectors: Tensor, generator: torch.Generator) -> Tensor:
    """Up to `COMPARED` of them at random, of norm 1."""
    chosen = torch.randperm(len(vectors), generator=generator)[:COMPARED].sort().values.to(vectors.device)
    vectors = vectors[chosen]
    sizes = torch.linalg.vector_norm(vectors, dim=1, keepdim=True)
    return vectors / torch.where(sizes > 0, sizes, torch.ones_like(sizes))


def _rms_cosine(vectors: Tensor, generator: torch.Generator) -> float:
    """Root mean square of √length · cosine, as `correlations` measures it."""
    chosen = _chosen(vectors, generator)
    cosines = (chosen @ chosen.T).fill_diagonal_(0.0)
    pairs = len(chosen) * (len(chosen) - 1)
    return math.sqrt(vectors.shape[1] * float(cosines.square().sum(dtype=torch.float64)) / pairs)


@torch.no_grad()
def correlations(
    equalized: Tensor, side: Literal["rows", "columns"], kurtosis: float, generator: torch.Generator
) -> Correlations:
    """Cosines between rows (or columns), up to `COMPARED` of them, chosen at random.

    For independent entries, cosine² is Beta(1/2, (length − 1)/2), with mean 1/length whatever the entries;
    that the other side has been given equal norms takes (2 + kurtosis) / count off it.
    """
    from scipy.special import ndtr
    from scipy.stats import beta

    vectors = equalized if side == "rows" else equalized.T
    count, length = vectors.shape
    vectors = _chosen(vectors, generator)
    used = len(vectors)
    above = torch.triu_indices(used, used, 1, device=vectors.device)
    cosines = (vectors @ vectors.T)[above[0], above[1]].double().cpu().numpy()
    scaled = math.sqrt(length) * cosines
    pairs = len(scaled)
    square = float(np.mean(scaled**2))
    null = max(count - 3 - kurtosis, 0.5) / (count - 1)
    square_spread = math.sqrt(2 * (length - 1) / (length + 2) / pairs)
    largest = float(np.abs(cosines).max())
    tail = float(beta.sf(min(largest, 1.0) ** 2, 0.5, (length - 1) / 2))
    typical = math.sqrt(float(beta.isf(-math.expm1(math.log(0.5) / pairs), 0.5, (length - 1) / 2)))
    ks = ks_distance(ndtr(np.sort(scaled)))
    edges = np.linspace(-5, 5, 41)
    counts, _ = np.histogram(np.clip(scaled, -4.999, 4.999), edges)
    return Correlations(
        side=side,
        used=used,
        length=length,
        rms=Number(
            math.sqrt(square),
            square_spread / 2,
            math.sqrt(null),
            float(2 * ndtr(-abs(square - null) / square_spread)),
        ),
        largest=Number(largest, None, typical, -math.expm1(pairs * math.log1p(-tail)) if tail < 1 else 1.0),
        ks=Number(ks, KOLMOGOROV[1] / math.sqrt(pairs), KOLMOGOROV[0] / math.sqrt(pairs)),
        histogram=Histogram(tuple(edges.tolist()), tuple(counts.tolist())),
    )


@torch.no_grad()
def fourth_moment(equalized: Tensor) -> float:
    """Mean fourth power of the entries, in float64, by bands of rows."""
    total = 0.0
    for band in equalized.split(max(1, 2**20 // equalized.shape[1])):
        total += float(torch.linalg.vector_norm(band.square(), dtype=torch.float64)) ** 2
    return total / equalized.numel()


@torch.no_grad()
def block_contrast(equalized: Tensor, kurtosis: float) -> Number:
    """Coefficient of variation of the energy of a grid of blocks of neighbouring rows and columns.

    Rows and columns have equal norms already, so that only their interplay is left.
    """
    from scipy.stats import chi2

    grid = [max(1, min(CELLS, side // CELL_SIDE)) for side in equalized.shape]
    energies = torch.zeros(*grid, dtype=torch.float64)
    for row, band in enumerate(equalized.tensor_split(grid[0])):
        means = norms(band, 0)[0].double().square().div(len(band)).cpu()
        energies[row] = torch.stack([part.mean() for part in means.tensor_split(grid[1])])
    degrees = (grid[0] - 1) * (grid[1] - 1)
    if degrees == 0 or not float(energies.mean()) > 0:
        return Number(0.0)
    cells = energies / energies.mean()
    # equal norms leave (rows − 1)(columns − 1) of the squares free, and the kurtosis that much too small
    free = (equalized.shape[0] - 1) * (equalized.shape[1] - 1)
    null = math.sqrt(max(2 + kurtosis, 0.0) * cells.numel() / free)  # of ±1, −2 but for rounding
    value = math.sqrt(float((cells - 1).square().sum()) / degrees)
    p = float(chi2.sf(degrees * (value / null) ** 2, degrees)) if null > 0 else 1.0
    return Number(value, null / math.sqrt(2 * degrees), null, p)
