"""What the plain deep linear net has and the residual one has not near its zero weights: strict saddles."""

from __future__ import annotations

import torch
from torch import Tensor

from ..._core import BadInput
from ...identity import Landscape
from .._claim import Claim, grid, measurement, per_trial
from .._registry import register
from .._rules import Equal
from ..results import Setting
from ._landscape import PAPER


def check_saddle(setting: Setting) -> None:
    if not (setting["d"] >= 1 and setting["size"] > 0 and setting["sigma"] > 0):
        raise BadInput("d ≥ 1, a size and a σ above 0", got=dict(setting), do="raise them")


def _orthogonal(d: int, generator: torch.Generator) -> Tensor:
    axes: Tensor = torch.linalg.qr(torch.randn(d, d, generator=generator, dtype=torch.float64)).Q
    return axes


@measurement("identity.saddles.measure_curvature")
@per_trial
def measure_curvature(setting: Setting, generator: torch.Generator) -> float:
    """−λ_min of the Hessian at a critical point of A_2 A_1 of low rank: the best approximation of R, less its
    `missing` largest directions. R is `size` times an orthogonal matrix, and Σ has eigenvalues up to σ.
    """
    d = setting["d"]
    axes = _orthogonal(d, generator)
    values = setting["sigma"] * torch.linspace(0.3, 1.0, d, dtype=torch.float64)
    target, covariance = setting["size"] * _orthogonal(d, generator), (axes * values) @ axes.T
    kept = axes[:, : d - setting["missing"]]  # R is learned on these directions of x, and not on the others
    weights = torch.stack([kept @ kept.T, target @ kept @ kept.T])
    landscape = Landscape(target, covariance, residual=False)
    slope = float(landscape.gradient(weights).norm())
    if slope > 1e-12 * setting["size"] * setting["sigma"] * d:  # rounding of d products
        raise BadInput("a critical point", got=f"a gradient of {slope:.2g}", do="change the setting")
    return -float(torch.linalg.eigvalsh(landscape.hessian(weights))[0])


def steepest(setting: Setting) -> float:
    """2·size·σ: along A_1 and A_2 that begin to learn the direction of x with the largest variance.

    To second order f loses 2⟨ΔA_2 ΔA_1, RΣ⟩ there, at most σ_max(RΣ)·(‖ΔA_1‖² + ‖ΔA_2‖²).
    """
    return float(2 * setting["size"] * setting["sigma"])


register(
    Claim(
        id="identity.saddles",
        title="Strict saddles of the plain net",
        statement=(
            "In a plain net of two layers, A_2 A_1, points that have learned R on all but some directions of "
            "x are critical and no minima: the Hessian has the eigenvalue −2‖R‖·σ there, σ the largest "
            "variance among these directions (R a multiple of an orthogonal matrix)."
        ),
        source=f"{PAPER}, Section 2: what the identity parametrization avoids; the eigenvalue is not in it",
        grid=grid(d=(2, 3, 5), missing=(1, 2), size=(0.5, 2.0), sigma=(0.1, 1.0, 10.0), trials=10),
        quick=grid(d=(2, 3), missing=(1, 2), size=(0.5, 2.0), sigma=(0.1, 10.0), trials=3),
        predict=steepest,
        measure=measure_curvature,
        domain=check_saddle,
        rule=Equal(tolerance=1e-9),  # rounding of an eigenvalue
        quantity="−λ_min of the Hessian",
        axis="sigma",
        series="missing",
        reading="beyond the paper",
        remark=(
            "From three layers on A = 0 is flat: its whole Hessian is zero. The residual net has no critical "
            "point with ‖A‖ < 1 but minima (identity.thm1)."
        ),
    )
)
