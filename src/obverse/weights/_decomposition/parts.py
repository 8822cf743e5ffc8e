"""`decompose`: a matrix as profile × (signal + bulk), and matrices rebuilt from these parts."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from ..._core import BadInput, Result, as_tensor, or_global
from .._controls import shuffled
from ..results import ALPHA, Decomposition, Grade, Interval
from .grade import MIN_SIDE, nothing_to_tell, summarize
from .live import live_part
from .marchenko_pastur import Array
from .split import Split, scale_by, split_exactly, without
from .split_bands import Bands, left_by, split_bands
from .split_fast import ROUNDING, split_fast

SHOWN = 200  # singular values kept for charts
SAFE = 1e9  # entries up to this, and from its inverse on, have squares and sums of squares in float32
TOO_UNEVEN = "rows or columns differ too much in scale for signal and noise to be separated"
ALWAYS_EXACT_BELOW = 64  # shorter side of two blocks of the search: it would have no room
EXACT_UP_TO = 1536  # shorter side up to which all singular values are computed
EXACT_IF_MANY_UP_TO = 4096  # and where so many directions carry signal that the search cannot count them


@dataclass(frozen=True, eq=False, repr=False)
class Parts(Result):
    """A matrix W = D_r (S + N) D_c taken apart: profile D, signal S of low rank, bulk N.

    `summary` holds every number as a plain value. The methods build matrices of W's shape, in float32
    (float64 where W is): `signal() + bulk()` is W again.
    """

    matrix: Tensor
    summary: Decomposition
    row_scales: Tensor  # of the bulk's entries: the profile; 0 where a row is empty
    column_scales: Tensor  # about 1 on average
    left: Tensor = field(default_factory=lambda: torch.zeros(0, 0))  # (rows, rank) orthonormal, unscaled
    right: Tensor = field(default_factory=lambda: torch.zeros(0, 0))  # (columns, rank)
    values: tuple[float, ...] = ()  # singular values without the profile, ascending; at most a few hundred

    @property
    def rank(self) -> int:
        """The number of directions that carry signal."""
        return self.summary.rank

    @property
    def grade(self) -> Grade:
        return self.summary.grade

    @property
    def sentence(self) -> str:
        """What a person would say."""
        return self.summary.sentence

    @property
    def random_share(self) -> Interval | None:
        """How much of the energy is like random numbers, to sort layers by; None where it cannot be told.

        Where `is_bound`, no more is known than that it is at most its value.
        """
        return self.summary.random_share

    def __repr__(self) -> str:
        grade = "" if self.sentence.startswith(self.grade) else f" {self.grade}:"
        return f"Parts({self.summary.rows}×{self.summary.columns}:{grade} {self.sentence})"

    def directions(self) -> tuple[Tensor, Tensor]:
        """Of the signal, left (rows × rank) and right (columns × rank); orthonormal without the profile."""
        return self.left, self.right

    def signal(self) -> Tensor:
        """The signal with its profile: the best estimate, each direction shrunk by what noise added to it."""
        return self._in_the_directions([one.shrunk for one in self.summary.directions])

    def bulk(self) -> Tensor:
        """What the signal leaves of the matrix."""
        return self._whole() - self.signal()

    def without_signal(self) -> Tensor:
        """The matrix with the signal's directions taken out whole, the noise in them too."""
        return self._whole() - self._in_the_directions([one.value for one in self.summary.directions])

    def resample(self, generator: torch.Generator | None = None) -> Tensor:
        """The signal in a fresh bulk: normal numbers of the same profile and scale."""
        generator = or_global(generator)
        fresh = torch.empty(self.matrix.shape, device=generator.device).normal_(generator=generator)
        fresh = fresh.to(self._whole()).mul_(self.summary.scale)
        return self.signal() + self._with_profile(fresh)

    def shuffled(self, generator: torch.Generator | None = None) -> Tensor:
        """The signal in a bulk whose entries, taken without the profile, change places at random."""
        generator = or_global(generator)
        rows, columns = (scales > 0 for scales in (self.row_scales, self.column_scales))
        bulk = self.bulk()[rows][:, columns]
        bulk = bulk / self.row_scales[rows][:, None].to(bulk) / self.column_scales[columns].to(bulk)
        places = torch.zeros_like(self._whole())
        at = torch.outer(rows, columns)
        if bulk.numel():
            places[at] = shuffled(bulk, generator).flatten()
        return self.signal() + self._with_profile(places)

    def _whole(self) -> Tensor:
        return self.matrix.to(torch.promote_types(self.matrix.dtype, torch.float32))

    def _with_profile(self, scaled: Tensor) -> Tensor:
        return scaled * self.row_scales[:, None].to(scaled) * self.column_scales.to(scaled)

    def _in_the_directions(self, values: list[float]) -> Tensor:
        whole = self._whole()
        if not values:
            return torch.zeros_like(whole)
        left = (self.left * self.row_scales[:, None]).to(whole)
        right = (self.right * self.column_scales[:, None]).to(whole)
        return (left * torch.tensor(values).to(whole)) @ right.T


@torch.no_grad()
def decompose(
    matrix: Tensor,
    *,
    alpha: float = ALPHA,
    exact: bool | None = None,
    generator: torch.Generator | None = None,
) -> Parts:
    """Take a matrix apart: profile of rows and columns × (signal of low rank + bulk).

    `alpha` is the chance that a matrix of noise shows a false direction at an edge. `exact=True` computes all
    singular values, False the largest ones and the density of the rest; None decides by the size, and by
    whether the directions of the signal are few. `generator` is for the random starts of the latter.
    """
    generator = or_global(generator)
    matrix = as_tensor(matrix, "a matrix")
    _check(matrix, alpha)
    matrix = matrix.detach()
    rows, columns = matrix.shape
    live = live_part(matrix)
    inner, empty = live.matrix, (live.dead_rows, live.dead_columns)
    if reason := _too_little(matrix, inner):
        return _untold(matrix, matrix.shape, empty, alpha, reason)
    high, low = float(inner.max()), float(inner.min())
    largest = max(high, -low)
    if low == high or min(inner.shape) < ALWAYS_EXACT_BELOW:
        exact = True  # of equal entries a search finds rounding errors
    if inner.dtype == torch.float32 and 1 / SAFE < largest < SAFE:
        even, largest = inner, 1.0
    else:
        even = (inner.to(torch.promote_types(inner.dtype, torch.float32)) / largest).float()
    turned = even.shape[0] > even.shape[1]
    even = even.T if turned else even
    split = _split(even, alpha, exact, generator)
    if split.scale <= 0 and _left_by(split, even) > ROUNDING:
        return _untold(matrix, matrix.shape, empty, alpha, TOO_UNEVEN)
    by_rows, by_columns = (split.of_columns, split.of_rows) if turned else (split.of_rows, split.of_columns)
    left, right = (split.right, split.left) if turned else (split.left, split.right)
    row_scales, column_scales = largest / by_rows.sqrt(), 1 / by_columns.sqrt()
    typical = float(column_scales.square().mean().sqrt())
    return Parts(
        matrix,
        summarize(split, (rows, columns), empty, alpha),
        spread_out(row_scales * typical, live.rows),
        spread_out(column_scales / typical, live.columns),
        spread_out(left, live.rows),
        spread_out(right, live.columns),
        thinned(split.values),
    )


@torch.no_grad()
def decompose_bands(
    matrix: Bands, *, turned: bool, sample: Tensor, lines: Tensor, empty: tuple[int, int], alpha: float
) -> Parts:
    """The same for a matrix that is read by bands, beside a sample of it in memory.

    The bands run along its rows or, `turned`, along its columns; no line is empty, `empty` ones are left out.
    What the parts say is of the whole matrix; their tensors are those of the `sample`, at these `lines`.
    """
    split = split_bands(matrix, alpha)
    of_long, of_short = 1 / split.of_columns.sqrt()[lines], 1 / split.of_rows.sqrt()
    long, short = split.right[lines], split.left
    whole = (matrix.width, matrix.length) if turned else (matrix.length, matrix.width)
    rows, columns = (count + more for count, more in zip(whole, empty, strict=True))
    if split.scale <= 0 and left_by(matrix, split) > ROUNDING:
        return _untold(sample, (rows, columns), empty, alpha, TOO_UNEVEN)
    scales, directions = (of_long, of_short), (long, short)
    if turned:
        scales, directions = scales[::-1], directions[::-1]
    typical = float((of_short if not turned else 1 / split.of_columns.sqrt()).square().mean().sqrt())
    return Parts(
        sample,
        summarize(split, (rows, columns), empty, alpha),
        scales[0] * typical,
        scales[1] / typical,
        directions[0],
        directions[1],
        thinned(split.values),
    )


def _untold(
    matrix: Tensor, shape: tuple[int, ...], empty: tuple[int, int], alpha: float, reason: str
) -> Parts:
    """One scale for all lines of the matrix, or of a sample of one of this shape, that are not empty."""
    live = live_part(matrix)
    scale = float(torch.linalg.vector_norm(live.matrix.double())) / math.sqrt(max(live.matrix.numel(), 1))
    summary = nothing_to_tell(shape[0], shape[1], empty, alpha, reason)
    return Parts(matrix, summary, live.rows.double() * scale, live.columns.double())


def thinned(values: Array) -> tuple[float, ...]:
    """At most `SHOWN` of the values, equally spaced in rank, both ends among them."""
    if len(values) > SHOWN:
        values = values[np.linspace(0, len(values) - 1, SHOWN).round().astype(int)]
    return tuple(values.tolist())


def _split(matrix: Tensor, alpha: float, exact: bool | None, generator: torch.Generator) -> Split:
    if exact or (exact is None and matrix.shape[0] <= EXACT_UP_TO):
        return split_exactly(matrix, alpha, generator)
    split = split_fast(matrix, alpha, generator)
    unsure = split.at_least or split.scale <= 0
    if exact is None and unsure and matrix.shape[0] <= EXACT_IF_MANY_UP_TO:
        return split_exactly(matrix, alpha, generator)
    return split


def _left_by(split: Split, matrix: Tensor) -> float:
    """The share of the matrix's own energy that is not in the directions."""
    rest = without(scale_by(matrix, split.of_rows, split.of_columns), split.left)
    rest = rest / split.of_rows.sqrt().to(matrix)[:, None] / split.of_columns.sqrt().to(matrix)
    return float(torch.linalg.vector_norm(rest) / torch.linalg.vector_norm(matrix)) ** 2


def spread_out(lines: Tensor, where: Tensor) -> Tensor:
    """Lines at the places where `where` is true, zeros elsewhere."""
    result = lines.new_zeros(len(where), *lines.shape[1:])
    result[where] = lines
    return result


def _too_little(matrix: Tensor, inner: Tensor) -> str:
    """Why there is nothing to tell; empty where there is."""
    rows, columns = inner.shape
    if inner.numel() == 0:
        return "all entries are 0" if matrix.numel() else "there are no entries"
    if min(matrix.shape) == 1:
        return "a matrix of one row or column has a single singular value"
    if min(rows, columns) == 1:
        return "all entries that are not 0 are in one row or column: there is a single singular value"
    if float(inner.min()) == float(inner.max()) or min(rows, columns) >= MIN_SIDE:
        return ""
    left = " that are not empty" if inner.shape != matrix.shape else ""
    return f"{rows} rows and {columns} columns{left}, at least {MIN_SIDE} of each are needed"


def _check(matrix: Tensor, alpha: float) -> None:
    if not isinstance(matrix, Tensor) or matrix.ndim != 2 or not matrix.is_floating_point():
        got = (
            f"{str(matrix.dtype).removeprefix('torch.')} of shape {tuple(matrix.shape)}"
            if isinstance(matrix, Tensor)
            else type(matrix).__name__
        )
        raise BadInput(
            "a matrix: a floating-point tensor of two dimensions",
            got=got,
            do="reshape a convolution's weight with flatten(1)",
        )
    # a sum is finite only where all entries are, and takes a fraction of the time of looking at each
    if not math.isfinite(float(matrix.sum())) and not bool(torch.isfinite(matrix).all()):
        wrong = int((~torch.isfinite(matrix)).sum())
        raise BadInput(
            "finite entries",
            got=f"{wrong:,} NaN or infinite of {matrix.numel():,}",
            do="look for where training diverged",
        )
    if not 0 < alpha < 1:
        raise BadInput("alpha between 0 and 1", got=alpha, do=f"{ALPHA:g} is the default")
