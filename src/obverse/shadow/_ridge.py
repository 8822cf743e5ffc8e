"""Ridge regression of many targets at once, its strength chosen on held-out rows. Pure functions on tensors.

Whichever is smaller is solved: the second moments of the features (features × features) or the products of
the rows (rows × rows). A map that would be larger than the rows it came from is kept as two factors.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import torch
from torch import Tensor

STRENGTHS = tuple(10.0**k for k in range(-6, 3))  # times the mean eigenvalue of what is not zero
EXACT = 2**31  # multiplications up to which products are taken in double
SKETCH = 64  # combinations of targets on which strengths are compared where there are more targets


@dataclass(frozen=True)
class Ridge:
    """y ≈ intercept + (x − mean) @ weight, for each of G groups; `weight` may be a pair of factors.

    `strength` is what was added to the diagonal of the sums of products; `error` is the share of the held-out
    rows' squares about the mean that a fit to the others leaves (1 for knowing nothing), None where nothing
    varies.
    """

    mean: Tensor  # G × features
    weight: Tensor | tuple[Tensor, Tensor]  # G × features × targets, or through G × … × rows
    intercept: Tensor  # G × targets
    strength: float
    error: float | None
    rows: int

    def __call__(self, x: Tensor) -> Tensor:
        """For x of shape G × rows × features."""
        return self.linear(x - self.mean[:, None]) + self.intercept[:, None]

    def linear(self, x: Tensor) -> Tensor:
        if isinstance(self.weight, tuple):
            return x @ self.weight[0] @ self.weight[1]
        return x @ self.weight

    @property
    def whole(self) -> Tensor:
        """The weight as one tensor."""
        return self.weight[0] @ self.weight[1] if isinstance(self.weight, tuple) else self.weight

    @property
    def size(self) -> int:
        """Bytes that it takes."""
        parts = self.weight if isinstance(self.weight, tuple) else (self.weight,)
        return sum(part.numel() * part.element_size() for part in parts)


@torch.no_grad()
def ridge(x: Tensor, y: Tensor, held: Tensor, strength: float | None = None) -> Ridge:
    """Fit y (G × rows × targets) to x (G × rows × features), with an intercept that is not penalized.

    The strength is that of `STRENGTHS` with the least squared error on the rows marked in `held`, when fitted
    to the others (from the middle one downhill); then all rows are used. One strength for all groups;
    `strength` sets it.
    """
    mean, centre = x.mean(1), y.mean(1)
    x, y = x - mean[:, None], y - centre[:, None]
    groups, rows, features = x.shape
    dual = rows < features
    exact = groups * rows * features * min(rows, features) <= EXACT
    wide = x.double() if exact else x
    products = (wide @ wide.mT if dual else wide.mT @ wide).double()
    unit = float(products.diagonal(dim1=1, dim2=2).sum()) / (groups * min(rows, features))
    if unit == 0:  # no feature varies: the mean is all there is
        nothing = x.new_zeros(groups, features, y.shape[2])
        return Ridge(mean, nothing, centre, strength or 0.0, _share(y, y), rows)
    del wide
    error = None
    if strength is None:
        chosen, error = _choose(x, y, products, held, dual, unit)
        strength = chosen * unit
    right = y.double() if dual else x.mT.double() @ y.double()
    solution = _solve(products, right, strength)
    while solution is None and strength < inf:  # rounding made the products indefinite
        strength *= 10
        solution = _solve(products, right, strength)
    assert solution is not None, "x and y have to be finite"
    solution = solution.to(x.dtype)
    weight: Tensor | tuple[Tensor, Tensor] = solution
    if dual:
        small = rows * (features + y.shape[2]) < features * y.shape[2]
        weight = (x.mT.contiguous(), solution) if small else x.mT @ solution
    return Ridge(mean, weight, centre, strength, error, rows)


def _choose(
    x: Tensor, y: Tensor, products: Tensor, held: Tensor, dual: bool, unit: float
) -> tuple[float, float | None]:
    """(strength in units of the mean eigenvalue, error on held-out rows)."""
    kept = ~held
    if not bool(held.any()) or not bool(kept.any()):
        return 1e-2, None
    target = y[:, held].double()
    if dual:
        among, across = products[:, kept][:, :, kept], products[:, held][:, :, kept]
        right = y[:, kept].double()
    else:
        part = x[:, held].double()
        among, across = products - part.mT @ part, part
        right = x[:, kept].mT.double() @ y[:, kept].double()

    def error_at(strength: float, right: Tensor, target: Tensor) -> float:
        solution = _solve(among, right, strength * unit)
        return inf if solution is None else float((across @ solution - target).square().sum())

    mix = _mixture(target)
    some = (right, target) if mix is None else (right @ mix, target @ mix)
    errors: dict[int, float] = {}

    def error_of(place: int) -> float:
        if not 0 <= place < len(STRENGTHS):
            return inf
        if place not in errors:
            errors[place] = error_at(STRENGTHS[place], *some)
        return errors[place]

    place = len(STRENGTHS) // 2
    while (step := min((0, -1, 1), key=lambda one: error_of(place + one))) != 0:  # downhill
        place += step
    best = STRENGTHS[place]
    least = error_of(place) if mix is None else error_at(best, right, target)
    size = float(target.square().sum())
    return best, least / size if size > 0 and least < inf else None


def _mixture(target: Tensor) -> Tensor | None:
    """Random signs that make a few combinations out of many targets: squares of them are unbiased for all."""
    if target.shape[2] <= 2 * SKETCH:
        return None
    generator = torch.Generator().manual_seed(0)
    signs = torch.randint(0, 2, (target.shape[2], SKETCH), generator=generator) * 2 - 1
    return signs.to(target).div_(float(SKETCH) ** 0.5)


def _share(error: Tensor, whole: Tensor) -> float | None:
    size = float(whole.double().square().sum())
    return float(error.double().square().sum()) / size if size > 0 else None


def _solve(products: Tensor, right: Tensor, strength: float) -> Tensor | None:
    shifted = products.clone()
    shifted.diagonal(dim1=1, dim2=2).add_(strength)
    factor, failed = torch.linalg.cholesky_ex(shifted)
    return None if bool(failed.any()) else torch.cholesky_solve(right, factor)
