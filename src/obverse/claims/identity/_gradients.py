"""Gradients near zero weights: with depth they vanish in the plain net, and not in the residual one.

Exact, for weights that are normal and independent. Not for what descent makes of such a start.
"""

from __future__ import annotations

from math import sqrt

import torch
from torch import Tensor

from ..._core import BadInput
from ...identity import Landscape
from .._claim import Claim, grid, measurement, per_trial
from .._registry import register
from .._rules import Equal
from ..results import Setting
from ._landscape import PAPER, check_net


def check_start(setting: Setting) -> None:
    check_net(setting)
    if not setting["spread"] > 0:
        raise BadInput("s²d > 0, the spread of the weights", got=setting["spread"], do="raise spread")


def problem(d: int) -> tuple[Tensor, Tensor]:
    """One R and one Σ for each d, of no special symmetry."""
    sizes = torch.linspace(0.5, 1.5, d, dtype=torch.float64)
    target = torch.diag(sizes) + 0.5 * torch.diag(sizes).roll(1, 0)
    return target, torch.diag(sizes.flip(0)) + 0.5 / d


@measurement("identity.gradients.measure_gradient")
@per_trial
def measure_gradient(setting: Setting, generator: torch.Generator) -> float:
    """‖∇f‖²/l at random weights, each N(0, s²)."""
    landscape = Landscape(*problem(setting["d"]), residual=setting["net"] == "residual")
    shape = (setting["layers"], setting["d"], setting["d"])
    weights = torch.randn(shape, generator=generator, dtype=torch.float64)
    weights *= sqrt(setting["spread"] / setting["d"])
    return float(landscape.gradient(weights).square().sum() / setting["layers"])


def expected_squares(
    target: Tensor, covariance: Tensor, layers: int, deviation: float, residual: bool
) -> list[float]:
    """E‖∂f/∂A_i‖²_F for every layer i, where all entries of all A_i are N(0, s²): exact.

    ∂f/∂A_i = 2 Sᵀ(M − R)ΣPᵀ, P the product of the layers before i and S of those after it, M = S(cI + A_i)P
    with c = 1 for the residual net and 0 for the plain one. A_i is independent of P and S, and the law of S
    does not change with the axes: E[SSᵀ], E[(SᵀS)²] and E[SSᵀS] are multiples of I. What is left is

        4(c + s²d)^{l−1}‖RΣ‖² + 4(c/d + s²)·E‖SᵀS‖²·E‖PΣPᵀ‖² − 8c·tr(E[SSᵀS]·E[PΣPᵀP]·ΣRᵀ).
    """
    d, c, v = len(target), float(residual), deviation**2
    behind = _products(torch.eye(d).to(target), layers, v, c)
    before = _products(covariance, layers, v, c)
    pulled = float((target @ covariance).square().sum())
    squares = []
    for i in range(layers):
        (after_square, after_cube), (square, cube) = behind[layers - 1 - i], before[i]
        mixed = c * float((after_cube @ cube @ covariance * target).sum())
        own = (c / d + v) * after_square * square
        squares.append(4 * (c + v * d) ** (layers - 1) * pulled + 4 * own - 8 * mixed)
    return squares


def _products(matrix: Tensor, count: int, v: float, c: float) -> list[tuple[float, Tensor]]:
    """E‖PBPᵀ‖²_F and E[PBPᵀP] for P a product of 0, 1, … layers cI + G, G normal of variance v.

    One layer more takes X = PBPᵀ to (cI + G)X(cI + G)ᵀ. Wick's rule gives the means over G from those before
    it: of (tr X)² and tr X² together, and of XP and tr(X)P together. What is odd in G vanishes.
    """
    d = len(matrix)
    trace_square, square = float(matrix.trace()) ** 2, float(matrix.square().sum())
    cube, trace_cube = matrix, matrix.trace() * torch.eye(d).to(matrix)
    found = [(square, cube)]
    for _ in range(count - 1):
        trace_square, square = (
            (c + d * v) ** 2 * trace_square + (4 * c * v + 2 * d * v**2) * square,
            (2 * c * v + d * v**2) * trace_square + (c + 2 * c * (d + 1) * v + d * (d + 1) * v**2) * square,
        )
        cube, trace_cube = (
            c * ((1 + (d + 1) * v) * cube + v * trace_cube),
            c * ((1 + d * v) * trace_cube + 2 * v * cube),
        )
        found.append((square, cube))
    return found


def expected_gradient(setting: Setting) -> float:
    deviation = sqrt(setting["spread"] / setting["d"])
    squares = expected_squares(
        *problem(setting["d"]), setting["layers"], deviation, setting["net"] == "residual"
    )
    return sum(squares) / len(squares)


@measurement("identity.gradients.measure_at_zero")
@per_trial
def measure_at_zero(setting: Setting, generator: torch.Generator) -> float:
    """‖∂f/∂A_i‖/‖(I − R)Σ‖ at A = 0 for one layer i; R normal, Σ of normal data."""
    d, layers = setting["d"], setting["layers"]
    target = torch.randn(d, d, generator=generator, dtype=torch.float64)
    data = torch.randn(d, 2 * d, generator=generator, dtype=torch.float64)
    covariance = data @ data.mT / (2 * d)
    slope = Landscape(target, covariance).gradient(torch.zeros(layers, d, d, dtype=torch.float64))
    one = int(torch.randint(layers, (), generator=generator))
    size = torch.linalg.matrix_norm((torch.eye(d).to(target) - target) @ covariance)
    return float(torch.linalg.matrix_norm(slope[one]) / size)


def two(setting: Setting) -> float:
    return 2.0


def _starts(net: str, d: int, layers: tuple[int, ...], trials: int) -> tuple[Setting, ...]:
    return grid(net=net, d=d, layers=layers, spread=(0.01, 0.25), trials=trials)


gradients_plain = register(
    Claim(
        id="identity.gradients.plain",
        title="Gradient of the plain net near zero weights",
        statement=(
            "In the plain net A_l⋯A_1 with all weights N(0, s²), E‖∂f/∂A_i‖²_F = 4(s²d)^{l−1}‖RΣ‖²_F + "
            "4s²·E‖SᵀS‖²_F·E‖PΣPᵀ‖²_F, S the product of the layers after i and P of those before: for s²d "
            "< 1 it vanishes with depth as (s²d)^l."
        ),
        source=f"{PAPER}, Section 1; the exact mean is derived here",
        grid=_starts("plain", 32, (2, 4, 8, 12), 2000),
        quick=_starts("plain", 16, (2, 4), 600),
        predict=expected_gradient,
        measure=measure_gradient,
        domain=check_start,
        rule=Equal(),
        quantity="‖∇f‖²/l",
        axis="layers",
        series="spread",
        reading="exact",
    )
)

register(
    gradients_plain.also(
        id="identity.gradients.residual",
        title="Gradient of the residual net near zero weights",
        statement=(
            "In the residual net (I + A_l)⋯(I + A_1) with all weights N(0, s²), E‖∂f/∂A_i‖²_F = "
            "4(1 + s²d)^{l−1}‖RΣ‖²_F + 4(1/d + s²)·E‖SᵀS‖²_F·E‖PΣPᵀ‖²_F − 8 tr(E[SSᵀS]·E[PΣPᵀP]·ΣRᵀ): it "
            "does not vanish with depth."
        ),
        grid=_starts("residual", 32, (2, 4, 8, 12), 2000),
        quick=_starts("residual", 16, (2, 4), 600),
    )
)

register(
    Claim(
        id="identity.gradients.zero",
        title="Gradient of the residual net at zero weights",
        statement=(
            "At A = 0 every layer of the residual net has ‖∂f/∂A_i‖_F = 2‖(I − R)Σ‖_F, whatever their number."
        ),
        source=f"{PAPER}, Section 1; by eq. 4",
        grid=grid(d=(2, 5), layers=(1, 2, 8, 32, 128), trials=50),
        quick=grid(d=2, layers=(1, 8, 64), trials=20),
        predict=two,
        measure=measure_at_zero,
        domain=check_net,
        rule=Equal(tolerance=1e-12),  # every trial is the same number, to rounding
        quantity="‖∂f/∂A_i‖/‖(I − R)Σ‖",
        axis="layers",
        series="d",
        reading="exact",
        remark="In the plain net of two layers or more the gradient at A = 0 is 0.",
    )
)
