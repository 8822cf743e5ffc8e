"""A matrix taken apart into profile, signal and bulk: W = D_r (S + N) D_c. Not for what to make of it: parts.

The profile (scales of rows and columns) is taken off, the singular values of what is left that noise would
not have are the signal, and since a signal lengthens the rows and columns it lies in, the profile is then
found again without it, until the number of directions settles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..results import Number
from . import marchenko_pastur as law
from .crowding import crowd, is_open, most
from .edges import bulk_distance, bulk_scale, count_above, count_below
from .marchenko_pastur import Array
from .profile import BAND, TOLERANCE, sinkhorn
from .reduction import reduce
from .repulsion import cdf, distances
from .signs import Flipped, flip, is_sparse

ROUNDS = 12  # profile and signal in turn; two to four settle it
MOST = 0.75  # of the singular values may be signal: the law needs a bulk to be fitted to
STRONG = 1.5  # times the edge: weaker directions leave the profile nearly as it is
SURE = 1e-6  # a chance that a profile distorted by weaker directions does not make of noise
MORE = 1.25  # times as many known directions: what fewer distort is left to the next round
STEP = 2.0  # how far below the strongest new direction others are believed at once
FLOOR = 0.1  # of a row's noise must be outside the signal's directions for its scale to be found there
_NOTHING: Array = np.zeros(0)


@dataclass(frozen=True)
class Split:
    """A matrix without empty rows and columns, taken apart. Values are in units of the scaled matrix."""

    of_rows: Tensor  # factors on squared entries (float64): the scaled matrix is √(of_rows) W √(of_columns)
    of_columns: Tensor
    left: Tensor  # (rows, k) directions of the signal, in the scaled matrix
    right: Tensor  # (columns, k)
    above: Array  # k singular values of the signal, descending
    above_p: tuple[float, ...]  # of these; and of the first that is not counted
    below: Array  # singular values below the law, ascending
    below_p: tuple[float, ...] | None  # None: not measured
    count_low: int  # an interval for k
    count_high: int
    scale: float  # of the bulk's entries
    kurtosis: float  # excess, of the bulk's entries
    distance: Number | None  # of the bulk to the law; None where there is no bulk
    values: Array  # singular values, ascending: all of them, or quantiles of their density
    zeros: int  # singular values that are zero to float32 precision
    energy: float  # of the scaled matrix
    settled: bool  # the number of directions was the same twice
    at_least: bool  # there may be more directions than were looked for
    is_open: bool  # no gap below the weakest direction: there may be more that cannot be seen
    exact: bool


@torch.no_grad()
def split_exactly(matrix: Tensor, alpha: float, generator: torch.Generator) -> Split:
    """From all singular values. `matrix` is float32 with rows ≤ columns, none of them empty."""
    rows, columns = matrix.shape
    of_rows, of_columns = sinkhorn(matrix)
    scaled = scale_by(matrix, of_rows, of_columns)
    left, right = matrix.new_zeros(rows, 0), matrix.new_zeros(columns, 0)
    settled = False
    probabilities: list[float] = []
    for turn in range(ROUNDS):
        if turn:
            rest = without(scaled, left)
            of_rows, of_columns = profile_beside_(rest, (of_rows, of_columns), left, right)
            scaled = scale_by(matrix, of_rows, of_columns)
        kurtosis = moments(scaled, left)[1]
        reduced = reduce(scaled)
        values = reduced.values
        zeros = law.count_zeros(values, columns)
        count, scale, now = settle(values, rows, columns, zeros, kurtosis, alpha, left.shape[1])
        probabilities = first_seen(probabilities, now, min(left.shape[1], count))
        settled = count == left.shape[1] or scale <= 0
        if not settled:
            count = to_protect(values[::-1], count, probabilities, left.shape[1], rows, columns, scale)
        left = reduced.leading(count).to(matrix)
        right = image_of(scaled, left) / torch.from_numpy(values[rows - count :][::-1].copy()).to(matrix)
        if settled:
            break

    def flipped() -> Flipped | None:
        return flip(without(scaled, left), alpha, generator) if is_sparse(scaled) else None

    kurtosis = 0.0 if scale <= 0 else moments(scaled, left)[1]
    return described(
        values, of_rows, of_columns, left, right, scale, kurtosis, alpha, probabilities, settled, flipped
    )


def described(
    values: Array,
    of_rows: Tensor,
    of_columns: Tensor,
    left: Tensor,
    right: Tensor,
    scale: float,
    kurtosis: float,
    alpha: float,
    probabilities: list[float],
    settled: bool,
    flipped: Callable[[], Flipped | None],
) -> Split:
    """From all singular values (ascending); `flipped` is the noise with random signs, if it is sparse."""
    rows, columns = len(left), len(right)
    count, zeros = left.shape[1], law.count_zeros(values, columns)
    size = (rows - zeros - count, columns - count)
    no_bulk = scale <= 0
    top, bulk = values[::-1][:count].copy(), values[: rows - count]
    low = high = count
    below, distance = _NOTHING, None
    below_p: list[float] = []
    goes_on = False
    if not no_bulk:
        solid = values[::-1][: int(MOST * (rows - zeros))]
        full = rows - zeros
        low, _ = count_above(solid, full, columns, scale, kurtosis, min(alpha, 0.025))
        high, _ = count_above(solid, full, columns, scale, kurtosis, 0.975, count)
        many = crowd(bulk[zeros:], np.ones(len(bulk) - zeros), size, scale, kurtosis, top)
        high = most(count, high, many, size)
        goes_on = is_open(tuple(probabilities), count, many, alpha)
        smallest, below_p = count_below(bulk[: rows // 2], rows - count, columns - count, scale, alpha, top)
        zetas = distances(top, *size, scale)
        off = law.ks_distance(cdf(bulk[zeros:], *size, scale, zetas))
        distance = bulk_distance(off, len(bulk) - zeros, kurtosis)
        if (smallest or (distance.p or 0.0) < alpha) and (signs := flipped()) is not None:
            if smallest:
                smallest, below_p = signs.below(bulk, alpha, (smallest, below_p))
            distance = signs.distance(off)
        below = bulk[:smallest]
    return Split(
        of_rows=of_rows,
        of_columns=of_columns,
        left=left,
        right=right,
        above=top,
        above_p=tuple(probabilities),
        below=below,
        below_p=tuple(below_p),
        count_low=min(low, count),
        count_high=max(high, count),
        scale=scale,
        kurtosis=kurtosis,
        distance=distance,
        values=values,
        zeros=zeros,
        energy=float(values @ values),
        settled=settled,
        at_least=count >= int(MOST * (rows - zeros)) and not no_bulk,
        is_open=goes_on,
        exact=True,
    )


def scale_by(matrix: Tensor, of_rows: Tensor, of_columns: Tensor, out: Tensor | None = None) -> Tensor:
    """The matrix with its profile taken off; factors are those of squared entries."""
    return torch.mul(matrix, of_rows.sqrt().to(matrix)[:, None], out=out).mul_(of_columns.sqrt().to(matrix))


def settle(
    values: Array, rows: int, columns: int, zeros: int, kurtosis: float, alpha: float, known: int
) -> tuple[int, float, list[float]]:
    """How many singular values (ascending) are signal, and the scale of the rest: each decides the other.

    With the probabilities of these values, and of the first that is not signal.
    """
    if zeros >= rows / 2:  # more than half of the directions are empty: what is not is the signal
        return rows - zeros, 0.0, [0.0] * (rows - zeros)
    solid, rows = values[zeros:], rows - zeros

    def scale_without(count: int) -> float:
        return bulk_scale(solid[: rows - count], rows - count, columns - count, solid[rows - count :])

    most = solid[::-1][: int(MOST * rows)]
    return count_signal(most, rows, columns, scale_without, kurtosis, alpha, known)


def count_signal(
    values: Array,
    rows: int,
    columns: int,
    scale_without: Callable[[int], float],
    kurtosis: float,
    alpha: float,
    known: int,
) -> tuple[int, float, list[float]]:
    """Of the largest singular values (descending); `scale_without` so many of them decides, and follows.

    A heavy-tailed kurtosis moves the edge inwards only where no more than the `known` directions are seen
    without it: it may be that of a signal in few rows.
    """
    result = (0, 0.0, [1.0])
    for heavy in (min(kurtosis, 0.0), kurtosis):
        count, scale = 0, scale_without(0)
        probabilities: list[float] = []
        while scale > 0:
            found, now = count_above(values, rows, columns, scale, heavy, alpha)
            probabilities = first_seen(probabilities, now, count)
            if found <= count:
                break
            count, scale = found, scale_without(found)
        result = count, scale, probabilities
        if count > known or kurtosis <= 0:
            break
    return result


def to_protect(
    values: Array, count: int, probabilities: list[float], known: int, rows: int, columns: int, scale: float
) -> int:
    """How many of the `count` directions found (values descending) the next profile leaves out.

    A signal distorts the profile, and a distorted profile shows directions that are none. So beside those
    `known` before, the strongest go first, then all that are sure in spite of it, and the others must show
    again without them.
    """
    if count <= known:
        return count
    clear = STRONG * law.edges(rows - count, columns - count, scale)[1]
    strong = int((values[:count] >= max(clear, values[known] / STEP)).sum())
    sure = sum(p < SURE for p in probabilities[:count])
    for first in (strong, sure):
        if first > known * MORE:
            return first
    return count


def first_seen(before: list[float], now: list[float], known: int) -> list[float]:
    """Each direction's probability from the round that found it: later ones have made room for it."""
    return before[:known] + now[known:]


def image_of(scaled: Tensor, left: Tensor) -> Tensor:
    """A few directions (rows × k) under the matrix (columns × k): few rows from the left, which is faster."""
    image: Tensor = (left.T @ scaled).T
    return image


@torch.no_grad()
def moments(scaled: Tensor, left: Tensor, image: Tensor | None = None) -> tuple[float, float]:
    """Energy and excess kurtosis of the entries without what lies in some directions, given their image.

    By bands of rows, which stay in the cache.
    """
    image = (image_of(scaled, left) if image is None else image).T
    if scaled.stride(0) < scaled.stride(1):  # it lies by columns
        scaled, left, image = scaled.T, image.T, left.T
    second = fourth = 0.0
    height = max(1, BAND // scaled.shape[1])
    for band, beside in zip(scaled.split(height), left.split(height), strict=True):
        squares = (band - beside @ image if len(image) else band).square()
        second += float(squares.sum())
        fourth += float(squares.square_().sum())
    return second, fourth * scaled.numel() / second**2 - 3 if second > 0 else 0.0


def without(scaled: Tensor, left: Tensor) -> Tensor:
    """The scaled matrix without what lies in the signal's directions."""
    return scaled - left @ (left.T @ scaled) if left.shape[1] else scaled


def profile_beside_(
    rest: Tensor,
    profile: tuple[Tensor, Tensor],
    left: Tensor,
    right: Tensor,
    tolerance: float = TOLERANCE,
) -> tuple[Tensor, Tensor]:
    """The profile of the noise alone: of `rest`, what the signal's directions leave; changed in place.

    They take from row i the share Σ left² of its noise with them; that is put back. A row that is nearly all
    signal leaves too little noise to measure its scale by: it keeps the one it has, which is that of its
    signal too, so that its noise is made smaller than it is, not larger.
    """
    rest *= put_back(left)[:, None]
    rest *= put_back(right)
    more_rows, more_columns = sinkhorn(rest, tolerance=tolerance)
    more_rows = torch.where(more_rows > 0, more_rows, 1.0)
    more_columns = torch.where(more_columns > 0, more_columns, 1.0)
    return profile[0] * more_rows, profile[1] * more_columns


def put_back(directions: Tensor) -> Tensor:
    share = 1 - directions.square().sum(1)
    return torch.where(share > FLOOR, share.clamp_min(FLOOR).rsqrt(), 0.0)
