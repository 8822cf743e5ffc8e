"""Profile, signal and bulk of a matrix that is too large for memory, read a few lines at a time.

All that is kept of it are the Gram matrix of its shorter side, its profile and the signal's directions: the
steps are those of `split_exactly`, each a pass over the bands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from . import marchenko_pastur as law
from .marchenko_pastur import Array
from .profile import SWEEPS, inverse
from .reduction import Reduction, reduce_gram
from .split import ROUNDS, Split, described, first_seen, put_back, settle, to_protect
from .split_fast import TOLERANCE

STRIPE = 512  # rows of the Gram matrix at a time: half of it is the other half
Profile = tuple[Tensor, Tensor]  # factors on squares along the longer side, and along the shorter one


@dataclass(frozen=True)
class Bands:
    """A matrix with its longer side first; none of its lines is empty."""

    length: int
    width: int
    read: Callable[[], Iterator[Tensor]]  # bands of lines, float32, lines × width, in order

    def scaled(self, profile: Profile) -> Iterator[tuple[slice, Tensor]]:
        """The bands without their profile, and where they are."""
        start, of_width = 0, profile[1].sqrt().float()
        for band in self.read():
            here = slice(start, start + len(band))
            yield here, band * profile[0][here].sqrt().float()[:, None] * of_width
            start = here.stop


@torch.no_grad()
def split_bands(matrix: Bands, alpha: float) -> Split:
    """`rows` of the split are the shorter side."""
    profile = _sinkhorn(matrix.length, matrix.width, matrix.read)
    short, long = torch.zeros(matrix.width, 0), torch.zeros(matrix.length, 0)
    probabilities: list[float] = []
    settled = False
    for turn in range(ROUNDS):
        if turn:
            profile = _profile_beside(matrix, profile, short, long)
        kurtosis = _kurtosis(matrix, profile, short)
        reduced = _reduced(matrix, profile)
        values = reduced.values
        zeros = law.count_zeros(values, matrix.length)
        known = short.shape[1]
        count, scale, now = settle(values, matrix.width, matrix.length, zeros, kurtosis, alpha, known)
        probabilities = first_seen(probabilities, now, min(known, count))
        settled = count == known or scale <= 0
        if not settled:
            descending = values[::-1]
            count = to_protect(descending, count, probabilities, known, matrix.width, matrix.length, scale)
        short, long = _directions(matrix, profile, reduced, count)
        if settled:
            break
    kurtosis = 0.0 if scale <= 0 else _kurtosis(matrix, profile, short)
    of_length, of_width = profile
    return described(
        values, of_width, of_length, short, long, scale, kurtosis, alpha, probabilities, settled, lambda: None
    )


@torch.no_grad()
def left_by(matrix: Bands, split: Split) -> float:
    """The share of the matrix's own energy that is not in the directions of its split."""
    of_length, of_width = split.of_columns.rsqrt().float(), split.of_rows.rsqrt().float()
    rest = energy = 0.0
    for here, band in matrix.scaled((split.of_columns, split.of_rows)):
        back = of_length[here][:, None] * of_width
        energy += float((band * back).square_().sum(dtype=torch.float64))
        left = (band - (band @ split.left) @ split.left.T).mul_(back)
        rest += float(left.square_().sum(dtype=torch.float64))
    return rest / energy


def _sinkhorn(length: int, width: int, read: Callable[[], Iterator[Tensor]]) -> Profile:
    """As `sinkhorn` does it, on bands that come anew for every sweep."""
    of_width = torch.ones(width, dtype=torch.float64)
    of_length = torch.zeros(length, dtype=torch.float64)
    for sweep in range(SWEEPS + 1):
        before, weights = of_length, of_width.float()
        factors = []
        sums = torch.zeros(width, dtype=torch.float64)
        for band in read():
            squares = band.square()
            factors.append(inverse(squares @ weights, width))
            sums += factors[-1].float() @ squares
        of_length, of_width = torch.cat(factors), inverse(sums, length)
        if sweep and bool(((of_length - before).abs_() <= TOLERANCE * of_length).all()):
            break
    return of_length, of_width


def _profile_beside(matrix: Bands, profile: Profile, short: Tensor, long: Tensor) -> Profile:
    """The profile of the noise alone, as `profile_beside_` finds it."""
    back_short, back_long = put_back(short), put_back(long)

    def rest() -> Iterator[Tensor]:
        for here, band in matrix.scaled(profile):
            yield (band - (band @ short) @ short.T) * back_long[here][:, None] * back_short

    more = _sinkhorn(matrix.length, matrix.width, rest)
    of_length, of_width = (
        old * torch.where(new > 0, new, 1.0) for old, new in zip(profile, more, strict=True)
    )
    return of_length, of_width


def _kurtosis(matrix: Bands, profile: Profile, short: Tensor) -> float:
    """Excess, of the entries without what lies in the directions."""
    second = fourth = 0.0
    for _, band in matrix.scaled(profile):
        squares = (band - (band @ short) @ short.T).square_()
        second += float(squares.sum(dtype=torch.float64))
        fourth += float(squares.square_().sum(dtype=torch.float64))
    return fourth * matrix.length * matrix.width / second**2 - 3 if second > 0 else 0.0


def _reduced(matrix: Bands, profile: Profile) -> Reduction:
    """Products in float32, their sums in float64."""
    width = matrix.width
    gram = torch.zeros(width, width, dtype=torch.float64)
    for _, band in matrix.scaled(profile):
        for top in range(0, width, STRIPE):
            gram[top : top + STRIPE, top:] += band[:, top : top + STRIPE].T @ band[:, top:]
    for top in range(STRIPE, width, STRIPE):
        gram[top : top + STRIPE, :top] = gram[:top, top : top + STRIPE].T
    return reduce_gram(gram)


def _directions(matrix: Bands, profile: Profile, reduced: Reduction, count: int) -> tuple[Tensor, Tensor]:
    """Of the `count` largest singular values: along the shorter side, and along the longer one."""
    short = reduced.leading(count).float()
    top: Array = reduced.values[::-1][:count].copy()
    long = torch.cat([band @ short for _, band in matrix.scaled(profile)])
    return short, long / torch.from_numpy(np.maximum(top, np.finfo(float).tiny)).float()
