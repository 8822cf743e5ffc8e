"""Gradient descent on the risk of a deep linear net, and the critical points near a start.

Exact gradients: nothing is sampled. Not for the formulas of the landscape, nor for training on data.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, isfinite, sqrt
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from .._core import BadInput, Record
from ._landscape import gradient, hessian, project, risk, spectral_norms

HALVINGS = 100  # of an lr, before a step is given up
STUCK = 1e-6  # a smaller share of a step, left by projection, is none: f is flat to rounding from 1e-8 on

# Relative to the problem's own scales (see _Scales). Polishing leaves gradients of about 1e-15.
CRITICAL = 1e-10  # a gradient below it is taken for zero
GLOBAL = 1e-12  # an excess risk below it too
CURVED = 1e-6  # a curvature above it is not

Kind = Literal["global minimum", "saddle", "other"]


@dataclass(frozen=True)
class Descent(Record):
    """A run of gradient descent: what held at the start and after each step, and where it ended."""

    losses: tuple[float, ...]  # f − f_opt
    gradients: tuple[float, ...]  # ‖∇f‖_F
    norms: tuple[float, ...]  # ‖A‖, the largest spectral norm of a layer
    lrs: tuple[float, ...]  # of each step: one fewer
    inside: bool  # ‖A‖ < 1 all along
    weights: Tensor = field(compare=False, repr=False)

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"weights": self.weights.tolist()}

    def __str__(self) -> str:
        return (
            f"excess risk {self.losses[0]:.3g} → {self.losses[-1]:.3g} in {len(self.lrs)} steps, "
            f"‖A‖ up to {max(self.norms):.3g}"
        )


@dataclass(frozen=True)
class CriticalPoint(Record):
    """Where polishing ended. `kind` tells by numbers what it is:

    - "global minimum": the gradient is zero and so is the excess risk, to rounding;
    - "saddle": the gradient is zero, the excess risk is not, and the Hessian has a negative eigenvalue;
    - "other": no critical point was found, or one that second derivatives cannot distinguish from a minimum
      (such as 0 in a plain net of three layers or more, where the whole Hessian is zero).
    """

    gradient: float  # ‖∇f‖_F
    excess: float  # f − f_opt
    curvature: float  # the smallest eigenvalue of the Hessian
    norm: float  # ‖A‖
    critical: bool  # the gradient is zero, to rounding
    kind: Kind
    weights: Tensor = field(compare=False, repr=False)

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"weights": self.weights.tolist()}

    def __str__(self) -> str:
        return f"{self.kind}: excess risk {self.excess:.3g}, ‖∇f‖ {self.gradient:.2g}, ‖A‖ {self.norm:.3g}"


@torch.no_grad()
def descend(
    weights: Tensor,
    target: Tensor,
    covariance: Tensor,
    *,
    steps: int,
    lr: float | None = None,
    tau: float | None = None,
    residual: bool = True,
) -> Descent:
    """Gradient descent on the risk; with `tau`, the start and every step are projected to ‖A‖ ≤ τ.

    Without `lr` each step finds its own by backtracking: twice the last one, halved until the risk falls
    as much as smoothness 1/lr promises, f(new) ≤ f + ⟨∇f, Δ⟩ + ‖Δ‖²/(2·lr) for the step Δ. Without
    projection this is f(new) ≤ f − lr/2·‖∇f‖², so that inside ‖A‖ < 1 the gradient bound (eq. 6) gives a
    linear rate.

    Ends after `steps`, or before: where the risk is zero to rounding, the gradient is zero, no lr lowers
    the risk any more, or the projection takes every step back.
    """
    if not isinstance(steps, int) or isinstance(steps, bool) or steps < 0:
        raise BadInput("steps as a whole number ≥ 0", got=repr(steps), do="check steps")
    if lr is not None and (isinstance(lr, bool) or not isinstance(lr, int | float) or not 0 < lr < inf):
        raise BadInput("a finite lr > 0", got=repr(lr), do="leave it out to have one found")
    scales = _Scales.of(weights, target, covariance)
    losses: list[float] = []
    gradients: list[float] = []
    norms: list[float] = []
    lrs: list[float] = []

    def inside(moved: Tensor) -> Tensor:
        return moved if tau is None else project(moved, tau)

    def loss_at(place: Tensor) -> float:
        return float(risk(place, target, covariance, residual=residual))

    def note(place: Tensor) -> Tensor:
        slope = gradient(place, target, covariance, residual)
        losses.append(loss_at(place))
        gradients.append(float(slope.norm()))
        norms.append(float(spectral_norms(place).max()))
        if not isfinite(losses[-1] + gradients[-1]):
            raise BadInput(
                "a finite risk and gradient",
                got=f"{losses[-1]:.3g} after {len(lrs)} steps",
                do="start nearer to the identity, and lower the lr or leave it out",
            )
        return slope

    weights = inside(weights)
    slope = note(weights)
    while len(lrs) < steps and losses[-1] > scales.rounding and gradients[-1] > 0:
        if lr is not None:
            used, moved = lr, inside(weights - lr * slope)
        else:
            # First, one over the smoothness of the risk where every layer is the identity and M = R.
            used = 2 * lrs[-1] if lrs else 1 / (2 * len(weights) * scales.spread)
            slack = sqrt(losses[-1] * scales.rounding)  # f is a square: this is how well it is known
            for _ in range(HALVINGS):
                moved = inside(weights - used * slope)
                step = moved - weights
                promised = float((slope * step).sum() + step.square().sum() / (2 * used))
                if loss_at(moved) <= losses[-1] + promised + slack:
                    break
                used /= 2
            else:
                break
        if tau is not None and float((moved - weights).norm()) <= STUCK * used * gradients[-1]:
            break
        lrs.append(used)
        weights = moved
        slope = note(weights)
    return Descent(tuple(losses), tuple(gradients), tuple(norms), tuple(lrs), max(norms) < 1, weights.clone())


@torch.no_grad()
def critical_point(
    weights: Tensor, target: Tensor, covariance: Tensor, *, residual: bool = True, steps: int = 200
) -> CriticalPoint:
    """The critical point that Levenberg–Marquardt finds from `weights`: least squares on ∇f, in float64.

    It goes to saddles as gladly as to minima, which is the point, and it need not stay near the start.
    `steps` bounds the evaluations of the gradient. For small nets: it takes the whole Hessian.
    """
    from scipy.optimize import least_squares

    if not isinstance(steps, int) or isinstance(steps, bool) or steps < 1:
        raise BadInput("steps as a whole number ≥ 1", got=repr(steps), do="check steps")
    scales = _Scales.of(weights, target, covariance)
    if weights.dtype != torch.float64:
        raise BadInput("float64, to polish gradients to zero", got=weights.dtype, do="convert with .double()")

    def place(flat: np.ndarray[Any, Any]) -> Tensor:
        return torch.from_numpy(flat).to(weights).view_as(weights)

    def slope(flat: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        found = gradient(place(flat), target, covariance, residual).flatten().cpu().numpy()
        # Below rounding there is nothing to polish, and at flat saddles it would go on for ever.
        return found if np.linalg.norm(found) > scales.epsilon * scales.gradient else np.zeros_like(found)

    def bend(flat: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return hessian(place(flat), target, covariance, residual).cpu().numpy()

    start = weights.detach().flatten().cpu().numpy()
    exact = scales.epsilon
    found = least_squares(slope, start, bend, method="lm", ftol=exact, xtol=exact, gtol=exact, max_nfev=steps)
    return _judged(place(found.x), target, covariance, residual, scales)


def _judged(
    weights: Tensor, target: Tensor, covariance: Tensor, residual: bool, scales: _Scales
) -> CriticalPoint:
    size = float(gradient(weights, target, covariance, residual).norm())
    excess = float(risk(weights, target, covariance, residual=residual))
    curvature = float(torch.linalg.eigvalsh(hessian(weights, target, covariance, residual))[0])
    critical = size <= CRITICAL * scales.gradient
    kind: Kind = "other"
    if critical and excess <= GLOBAL * scales.risk:
        kind = "global minimum"
    elif critical and curvature < -CURVED * scales.curvature:
        kind = "saddle"
    return CriticalPoint(
        size, excess, curvature, float(spectral_norms(weights).max()), critical, kind, weights
    )


@dataclass(frozen=True)
class _Scales:
    """How large things are, near the identity or near the target: with them, numbers can be called zero."""

    spread: float  # ‖Σ‖
    size: float  # √d + ‖R‖_F
    layers: int
    epsilon: float  # of the numbers' type

    @staticmethod
    def of(weights: Tensor, target: Tensor, covariance: Tensor) -> _Scales:
        risk(weights, target, covariance)  # refuses what is not a problem
        size = len(target) ** 0.5 + float(target.norm())
        spread = float(torch.linalg.matrix_norm(covariance, 2))
        return _Scales(spread, size, len(weights), torch.finfo(weights.dtype).eps)

    @property
    def curvature(self) -> float:
        return 2 * self.spread

    @property
    def gradient(self) -> float:
        return 2 * self.spread * self.size

    @property
    def risk(self) -> float:
        return self.spread * self.size**2

    @property
    def rounding(self) -> float:
        """The risk that is left where M = R, to rounding: each of the l products adds some ε."""
        return (10 * self.layers * self.epsilon) ** 2 * self.risk
