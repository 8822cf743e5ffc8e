"""An update of few directions that was rounded into numbers on the grid: the fewest that explain the change.

Rounding base + D gives tuned exactly where D lies, entry by entry, within half a step of the format around
tuned − base. Most of a weak update leaves no trace, and what is left of it shows directions that it does not
have; but those intervals are known, and few matrices of low rank go through all of them. One is sought by
projecting on the intervals and on the matrices of rank k in turn. Where there is one, what is left outside
the intervals falls steadily; where the rank is too small it stops falling, far above.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .grids import Format, steps

# Of the energy outside the intervals where there is no update at all. Of updates at 1.5 to 30 times the
# threshold, the right rank left this after 20 to 200 turns; one direction less never did.
GONE = 3e-4
EVERY, TURNS = 10, 400
STUCK = 0.9  # it fell by less than this in `EVERY` turns: the rank is too small
ENOUGH = 2  # numbers that changed for each number that the directions have: fewer say too little
BEYOND = 1.6  # times the way into the interval: faster than to its edge
STARTS = 4  # products, until the directions of the change itself are known
SAMPLE = 2**20  # entries: of larger matrices the rank is sought in some of the rows and columns


@dataclass(frozen=True)
class Update:
    """Its directions, and their strengths in the update itself: more than of what rounding left of it."""

    left: Tensor  # rows × rank, orthonormal, float64
    right: Tensor
    values: Tensor  # descending


@dataclass(frozen=True)
class _Intervals:
    """In units of the typical half step, float32."""

    middle: Tensor
    half: Tensor

    def missing_(self, values: Tensor) -> Tensor:
        """What takes these values to the nearest ends of the intervals; 0 inside. Changed in place."""
        values.sub_(self.middle).neg_()
        return values.sub_(torch.minimum(torch.maximum(values, -self.half), self.half))

    @property
    def most(self) -> int:
        """Directions that as many changed numbers can tell."""
        return int((self.middle != 0).sum()) // (ENOUGH * sum(self.middle.shape))


@dataclass(frozen=True)
class _Low:
    """The matrix image · rightᵀ."""

    image: Tensor  # rows × rank
    right: Tensor  # columns × rank, orthonormal

    def whole(self) -> Tensor:
        return self.image @ self.right.T

    def leading(self, rank: int) -> _Low:
        left, values, turn = torch.linalg.svd(self.image, full_matrices=False)
        return _Low(left[:, :rank] * values[:rank], self.right @ turn[:rank].T)


@torch.no_grad()
def rounded_update(
    tuned: Tensor, base: Tensor, kind: Format, most: int, generator: torch.Generator
) -> Update | None:
    """The fewest directions, at most `most`, that rounded into base give tuned.

    None where there are no so few: rounding into base is not all that came between, or none is needed.
    """
    half = steps(tuned, kind) / 2
    unit = float(half.square().mean().sqrt())
    whole = _Intervals(((tuned.double() - base.double()) / unit).float(), (half / unit).float())
    some = _some(whole, generator)
    most = min(most, some.most)
    if most < 1 or (found := _fit(some, _start(some, most, generator))) is None:
        return None
    low, high = 0, most  # with `low` directions it is not explained
    while high - low > 1:
        middle = (low + high) // 2
        if (fewer := _fit(some, found.leading(middle))) is None:
            low = middle
        else:
            high, found = middle, fewer
    if some is not whole:
        again = _fit(whole, _start(whole, high, generator))
        if again is None:
            return None
        found = again
    left, values, turn = torch.linalg.svd(found.image.double(), full_matrices=False)
    return Update(left, found.right.double() @ turn.T, values * unit)


def _some(whole: _Intervals, generator: torch.Generator) -> _Intervals:
    """As many rows and columns, chosen at random, as make a matrix of `SAMPLE` entries."""
    rows, columns = whole.middle.shape
    if rows * columns <= SAMPLE:
        return whole
    side = int(SAMPLE**0.5)
    few = min(rows, columns, side)
    sizes = (few, SAMPLE // few) if rows <= columns else (SAMPLE // few, few)
    some_rows, some_columns = (
        torch.randperm(of, generator=generator)[:size].sort().values
        for of, size in zip((rows, columns), sizes, strict=True)
    )
    return _Intervals(whole.middle[some_rows][:, some_columns], whole.half[some_rows][:, some_columns])


def _start(known: _Intervals, rank: int, generator: torch.Generator) -> _Low:
    """About the leading directions of the change."""
    right = torch.randn(known.middle.shape[1], rank, generator=generator)
    for _ in range(STARTS):
        right = _orthonormal(known.middle.T @ _orthonormal(known.middle @ right))
    return _Low(known.middle @ right, right)


def _fit(known: _Intervals, low: _Low) -> _Low | None:
    """A matrix of this rank in all the intervals; None where it does not come nearer to them."""
    before = float("inf")
    alone = _energy(known.missing_(torch.zeros_like(known.middle)))
    for turn in range(TURNS):
        values = low.whole()
        missing = known.missing_(values.clone())
        if turn % EVERY == 0:
            outside = _energy(missing)
            if outside <= GONE * alone:
                return low
            if outside > STUCK * before:
                return None
            before = outside
        values.add_(missing, alpha=BEYOND)
        right = _orthonormal(values.T @ _orthonormal(values @ low.right))
        low = _Low(values @ right, right)
    return None


def _energy(values: Tensor) -> float:
    return float(values.square().sum(dtype=torch.float64))


def _orthonormal(columns: Tensor) -> Tensor:
    found: Tensor = torch.linalg.qr(columns).Q
    return found
