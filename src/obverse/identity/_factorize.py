"""Near-identity factorization: an invertible linear map as many small steps, R = (I + A_l)⋯(I + A_1).

R = QP with Q orthogonal and P positive definite. A step turns by a part of Q and stretches by a part of P:
I + A_i = Q^{i/l} P^{1/l} Q^{−(i−1)/l}. Not for training such steps: see landscape.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, expm1, inf, log, pi, sin, sqrt
from numbers import Integral
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._core import BadInput, ObverseError, Result
from ._decompositions import svd
from ._rotation import NEGLIGIBLE, Rotation

EPS = torch.finfo(torch.float64).eps
RANGE = 1e300  # of the largest singular value, either way: beyond it, products overflow or vanish
SMALLEST_STEP = 1e-8  # of ‖I + A_i‖: it is rounded beside 1, and this costs half of the digits
SMALLEST_BOUND = 1e-300  # that a number of layers in float64 can keep
BATCH = 2**16  # entries of small matrices that are worked on together
MOST_NUMBERS = 2**30  # 8 GiB
OVERHEAD = 100  # of a tensor, counted in numbers
PROBES = 8  # random vectors that a check is made on
UNSEEN = 10  # times what they show is less than the Frobenius norm once in 10⁷ at most: χ² of 8 below 0.08


@dataclass(frozen=True, eq=False)
class Factorization(Result):
    """R as small steps: (I + A_l)⋯(I + A_1), what was guaranteed of them, and what they are."""

    factors: tuple[Tensor, ...]  # A_1, …, A_l, in the order in which they act
    gamma: float  # γ = max |log σ| over the singular values of R: how far its stretching is from none
    bound: float  # 2 sin(π/2l) + e^{γ/l} − 1, which no ‖A_i‖ exceeds
    distance: float  # ‖A_i‖, from the identity to a step: the same for all of them, up to rounding

    @property
    def product(self) -> Tensor:
        """(I + A_l)⋯(I + A_1): R, up to rounding."""
        return product(self.factors)

    def to_dict(self) -> dict[str, Any]:
        return {
            "factors": [factor.tolist() for factor in self.factors],
            "gamma": self.gamma,
            "bound": self.bound,
            "distance": self.distance,
        }

    def __str__(self) -> str:
        size, count = len(self.factors[0]), len(self.factors)
        steps = "1 step" if count == 1 else f"{count} steps"
        return f"{size} × {size} in {steps} I + A: ‖A‖ {self.distance:.3g}, guaranteed {self.bound:.3g}"


@torch.no_grad()
def factorize(matrix: Any, layers: int) -> Factorization:
    """A_1, …, A_l with (I + A_l)⋯(I + A_1) = R and ‖A_i‖ ≤ 2 sin(π/2l) + e^{γ/l} − 1 (Theorem 2, sharper).

    All A_i are one matrix, turned: they share their singular values. Near R = −I no other factors do much
    better: those with ‖A_i‖ ≤ a < 1 turn a vector by at most l·arcsin a.

    The product is R up to an error of about 2e-15·√d·σ_max, whatever the condition number κ, which is at most
    1/(d·eps). Relative to σ_min it is more, by up to κ: at κ = 1e12 the direction that R nearly forgets keeps
    4 digits, as many as rounding leaves it in R. Where σ_max^(1/l) is far below 1 the error grows by its
    inverse, for the factors are stored without their identity. The bound and the product are checked on every
    call. Costs a singular value and an eigenvalue decomposition and two products a layer.

    Args:
        matrix: R, square, with det > 0; a tensor, an array or a list of rows.
        layers: l. Any number is allowed; only a bound below 1 makes all I + A_i invertible by itself.

    Returns:
        l matrices in float64 on the device of `matrix`, with the guarantee and their distance from I.

    >>> found = factorize([[-1.0, 0.0], [0.0, -1.0]], 2)  # half a turn is two quarters of a turn
    >>> print(found)
    2 × 2 in 2 steps I + A: ‖A‖ 1.41, guaranteed 1.41
    >>> (found.factors[0] + torch.eye(2)).abs().round(decimals=12)
    tensor([[0., 1.],
            [1., 0.]], dtype=torch.float64)
    """
    _check_layers(layers)
    given = _read(matrix)
    if layers * (given.numel() + OVERHEAD) > MOST_NUMBERS:
        raise BadInput(
            f"at most {MOST_NUMBERS:,} numbers in all factors, which must fit into memory",
            got=f"{layers:,} of {len(given)} × {len(given)}",
            do="use fewer layers",
        )
    polar = _Polar.of(given)
    polar.check_step(layers)
    rotation = Rotation.of(polar.rotation)

    small = rotation.less_identity(1 / layers)
    stretch = torch.expm1(polar.logs / layers)
    axes = rotation.basis.T @ polar.axes
    batches, turned = [], polar.axes.unsqueeze(0)
    for times in (torch.arange(1, layers + 1).to(given) / layers).split(max(1, BATCH // given.numel())):
        last = turned[-1:]
        # Q^{i/l} times the axes of P. Then I + A_i = Q^{1/l} + (Q^{i/l} V)(Σ^{1/l} − I)(Q^{(i−1)/l} V)ᵀ, the
        # identity taken from its first term: what is small is computed as such.
        turned = rotation.turned(axes, times)
        before = torch.cat((last, turned[:-1])) if len(turned) > 1 else last
        batches.append(torch.baddbmm(small, turned * stretch, before.mT))
    _check(given, polar, rotation, batches, layers)
    factors = tuple(one if len(batch) == 1 else one.clone() for batch in batches for one in batch)
    return Factorization(factors, polar.gamma, bound(polar.gamma, layers), _norm(factors[0]))


def product(factors: Sequence[Tensor]) -> Tensor:
    """(I + A_l)⋯(I + A_1) in float64.

    >>> product([torch.zeros(2, 2), torch.eye(2)])
    tensor([[2., 0.],
            [0., 2.]], dtype=torch.float64)
    """
    shapes = {tuple(factor.shape) for factor in factors if isinstance(factor, Tensor)}
    shapes |= {() for factor in factors if not isinstance(factor, Tensor)}
    shape = next(iter(shapes), ())
    if len(shapes) != 1 or len(shape) != 2 or shape[0] != shape[1]:
        raise BadInput(
            "one square matrix or several of one size",
            got=" and ".join(map(str, sorted(shapes))) or "none",
            do="pass the factors of what factorize returned",
        )
    result = torch.eye(shape[0], dtype=torch.float64, device=factors[0].device)
    for factor in factors:
        result = torch.addmm(result, factor.double(), result)
    return result


@torch.no_grad()
def gamma(matrix: Any) -> float:
    """γ = max |log σ| over the singular values of R: how far its stretching is from none.

    R/√(σ_max σ_min) has the smallest γ of all multiples of R, half the logarithm of its condition number.

    >>> gamma([[2.0, 0.0], [0.0, 0.25]]) / log(2)
    2.0
    """
    values = torch.linalg.svdvals(_read(matrix))
    _check_values(values)
    return float(values.log().abs().max())


def bound(gamma: float, layers: int, angle: float = pi) -> float:
    """2 sin(θ/2l) + e^{γ/l} − 1, which ‖A_i‖ does not exceed; θ = π holds for every R.

    >>> round(bound(0.0, 6), 6)  # a twelfth of a turn, twice the sine of half of it
    0.517638
    """
    _check_layers(layers)
    if not isinstance(gamma, int | float) or not 0 <= gamma < inf:
        raise BadInput("γ ≥ 0", got=repr(gamma), do="pass max |log σ| over the singular values")
    if not 0 <= angle <= pi:
        raise BadInput("an angle between 0 and π", got=angle, do="leave it out for the bound of every matrix")
    growth = gamma / layers
    return 2 * sin(angle / 2 / layers) + (expm1(growth) if growth < 700 else inf)


@torch.no_grad()
def min_layers(matrix: Any, bound: float, *, turning: bool = False) -> int:
    """The fewest layers for which the guarantee of `factorize` is at most `bound`.

    So many suffice. Fewer may do: the guarantee supposes that Q turns some plane by π. With `turning` the
    largest angle of Q stands in its place, which is a guarantee too, at the price of one more decomposition.

    >>> min_layers([[2.0, 0.0], [0.0, 2.0]], 0.1), min_layers([[2.0, 0.0], [0.0, 2.0]], 0.1, turning=True)
    (39, 8)
    """
    if not isinstance(bound, int | float) or not SMALLEST_BOUND <= bound < inf:
        raise BadInput(
            f"a finite bound of at least {SMALLEST_BOUND:g}",
            got=repr(bound),
            do="ask for more than 0, which no number of layers reaches",
        )
    polar = _Polar.of(_read(matrix))
    angle = Rotation.of(polar.rotation).largest if turning else pi
    low, high = 0, 1
    while _guarantee(polar.gamma, high, angle) > bound:
        low, high = high, 2 * high
    while high - low > 1:  # the guarantee falls with every layer
        middle = (low + high) // 2
        low, high = (middle, high) if _guarantee(polar.gamma, middle, angle) > bound else (low, middle)
    return high


_guarantee = bound  # where an argument has its name


@torch.no_grad()
def angle(matrix: Any) -> float:
    """The largest angle by which Q, the orthogonal part of R, turns a plane: 0 for a positive definite R."""
    return Rotation.of(_Polar.of(_read(matrix)).rotation).largest


@dataclass(frozen=True)
class _Polar:
    """R = QP of a matrix that can be factored, P = V exp(logs) Vᵀ."""

    rotation: Tensor  # Q
    axes: Tensor  # V, in columns
    logs: Tensor  # of the singular values, descending

    @staticmethod
    def of(matrix: Tensor) -> _Polar:
        left, values, right = svd(matrix)
        _check_values(values)
        rotation = left @ right
        # The sign of det R. That of det Q is never in doubt: its singular values are 1.
        if float(torch.linalg.slogdet(rotation).sign) < 0:
            raise BadInput(
                "det R > 0, for I + A with ‖A‖ < 1 has det > 0, and so has every product of such",
                got=f"det R < 0, log|det R| = {float(values.log().sum()):.6g}",
                do="change the sign of one row, factor that, and change it back behind the last layer",
            )
        return _Polar(rotation, right.T.contiguous(), values.log())

    @property
    def gamma(self) -> float:
        return float(self.logs.abs().max())

    @property
    def largest(self) -> float:
        return float(self.logs[0].exp())

    def check_step(self, layers: int) -> None:
        """I + A_i is stored as A_i, so that what is far below 1 is lost."""
        size = float(self.logs[0])
        if size / layers < log(SMALLEST_STEP):
            raise BadInput(
                f"layers enough for ‖I + A_i‖ = σ_max^(1/l) ≥ {SMALLEST_STEP:g}: less is lost beside I",
                got=f"{layers} for σ_max = {self.largest:.3g}",
                do=f"use at least {ceil(size / log(SMALLEST_STEP))} layers, or rescale the matrix",
            )


def _check(given: Tensor, polar: _Polar, rotation: Rotation, batches: Sequence[Tensor], layers: int) -> None:
    """‖A_i‖ is within the guarantee for every i, and the product is R, both up to rounding.

    Exactly, A_i = Q^{(i−1)/l} A_1 Q^{−(i−1)/l}. So ‖A_1‖ is computed, and for the others the difference of
    the two sides is bounded by what it does to random vectors. On these the product is followed as well.
    """
    size = len(given)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(size, PROBES, generator=generator, dtype=torch.float64).to(given.device)
    first = batches[0][0]
    norm = _norm(first)
    both = rotation.basis.T @ torch.cat((x, first @ x), 1)
    followed, strayed = x, 0.0
    times = (torch.arange(layers).to(given) / layers).split(len(batches[0]))
    for batch, when in zip(batches, times, strict=True):
        where, expected = rotation.turned(both, when).split(PROBES, dim=2)
        off = (batch @ where - expected) / (norm or 1.0)
        strayed = max(strayed, float(off.square().sum((1, 2)).max()))
        for factor in batch:
            followed = torch.addmm(followed, factor, followed)
    # Rounding: a sum of d products is off by at most d·eps of their sizes, and Q is split with errors of at
    # most NEGLIGIBLE·eps an entry. Each layer adds its own, and γ·eps is the rounding of log σ.
    rounding = (NEGLIGIBLE + layers + polar.gamma) * size * EPS
    found = norm * (1 + UNSEEN * sqrt(strayed / PROBES))
    limit = bound(polar.gamma, layers, rotation.largest)
    allowed = limit + (1 + limit) * rounding
    if not found <= allowed:
        raise ObverseError(format_violation("‖A_i‖", found, f"the guarantee {limit:.6g}", allowed))
    error = float(((followed - given @ x) / polar.largest).norm()) / sqrt(PROBES)
    allowed = rounding * max(1.0, polar.largest ** (-1 / layers))
    if not error <= allowed:
        raise ObverseError(format_violation("‖(I + A_l)⋯(I + A_1) − R‖/‖R‖", error, "rounding", allowed))


def format_violation(what: str, found: float, limit: str, allowed: float) -> str:
    return (
        f"expected {what} within {limit}, at most {allowed:.6g}; got {found:.6g}; "
        "the matrix is not at fault, for its condition was checked: please report it"
    )


def _norm(matrix: Tensor) -> float:
    """The largest singular value, half as dear as by a singular value decomposition."""
    peak = float(matrix.abs().max())
    if peak == 0:
        return 0.0
    scaled = matrix / peak
    return peak * sqrt(float(torch.linalg.eigvalsh(scaled.T @ scaled)[-1]))


def _read(matrix: Any) -> Tensor:
    """The matrix in float64, if it is one."""
    if not isinstance(matrix, Tensor):
        try:
            array = np.asarray(matrix)
        except (TypeError, ValueError) as error:
            raise BadInput(
                "a square matrix", got=f"no array: {error}", do="give all rows one length"
            ) from None
        if array.dtype.kind not in "biuf":
            raise BadInput("real numbers", got=f"an array of {array.dtype}", do="convert it first")
        matrix = torch.from_numpy(np.array(array, dtype=np.float64))
    if matrix.is_complex() or matrix.layout != torch.strided:
        raise BadInput("a dense real matrix", got=f"{matrix.dtype}, {matrix.layout}", do="convert it first")
    if matrix.dim() != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.numel():
        raise BadInput(
            "a square matrix: a product of square steps is square",
            got=f"shape {tuple(matrix.shape)}",
            do="pad it to a square, with ones on the diagonal",
        )
    exact: Tensor = matrix.detach().double()
    if not bool(exact.isfinite().all()):
        raise BadInput("finite entries", got="NaN or infinity", do="find out where they come from")
    return exact


def _check_values(values: Tensor) -> None:
    """Singular values, descending, of a matrix that is invertible beyond rounding."""
    largest, smallest, count = float(values[0]), float(values[-1]), len(values)
    if not smallest > count * EPS * largest:
        rank = int((values > count * EPS * largest).sum())
        raise BadInput(
            "an invertible matrix: steps I + A with ‖A‖ < 1 are invertible, and so is their product",
            got=f"σ_min = {smallest:.3g} beside σ_max = {largest:.3g}, rank {rank} of {count} to rounding",
            do="raise its small singular values, e.g. add a small multiple of the identity",
        )
    if not 1 / RANGE < largest < RANGE:
        raise BadInput(
            f"a largest singular value between {1 / RANGE:g} and {RANGE:g}",
            got=f"{largest:.3g}",
            do="rescale the matrix",
        )


def _check_layers(layers: int) -> None:
    if isinstance(layers, bool) or not isinstance(layers, Integral) or int(layers) < 1:
        raise BadInput("a whole number of layers, at least 1", got=repr(layers), do="use l ≥ 1")
