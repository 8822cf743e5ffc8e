"""A Q of high capacity: the divergence that is left goes to 0, unless Q stays Gaussian.

The decoder is x = z² + σε with one z ~ N(0, 1), whose posterior has two humps. Everything is a sum over a
fine grid of z.
"""

from __future__ import annotations

from math import log

import torch
from torch import Tensor

from ..._core import BadInput
from .._claim import Claim, grid, measurement, per_trial
from .._rates import Along, Exponent
from .._registry import register
from .._rules import Equal
from ..results import Setting
from ._inverse_cdf import NOTES

REACH, POINTS = 4.0, 64_000  # the grid of z, whose steps divide every number of pieces below
COARSE = 4000  # of the grid for Gaussians, which are wider than a hundred of its steps
PLACES = 24  # starts of the search for the best Gaussian


def check_capacity(setting: Setting) -> None:
    if not setting["sigma"] > 0 or POINTS % setting.get("pieces", 1):
        raise BadInput(
            f"σ > 0, and pieces that divide {POINTS:,}", got=dict(setting), do="change one of them"
        )


def _grid(points: int) -> Tensor:
    return (torch.arange(points, dtype=torch.float64) + 0.5) / points * (2 * REACH) - REACH


def _posterior(x: float, sigma: float, points: int = POINTS) -> Tensor:
    """log p(z|x) on the grid, a density."""
    z = _grid(points)
    logs = -z.square() / 2 - (x - z.square()).square() / (2 * sigma**2)
    step = 2 * REACH / points
    found: Tensor = logs - torch.logsumexp(logs, 0) - log(step)
    return found


@measurement("vae.capacity.measure_pieces")
@per_trial
def measure_pieces(setting: Setting, generator: torch.Generator) -> float:
    """KL[q ‖ p(z|x)] of the q that is constant on so many pieces and has their masses; x from 0.9 to 1.1."""
    check_capacity(setting)
    x = 0.9 + 0.2 * float(torch.rand((), generator=generator, dtype=torch.float64))
    logs = _posterior(x, setting["sigma"])
    step = 2 * REACH / POINTS
    inside = logs.view(setting["pieces"], -1)
    # the best constant of ∫ q log(q/p) under the masses of p: of a piece, log q − the mean of log p on it
    mass = inside.exp().sum(1) * step
    width = inside.shape[1] * step
    left = mass * (mass.clamp(min=1e-300).log() - log(width) - inside.mean(1))
    return float(left[mass > 0].sum())


def pieces_rate(setting: Setting) -> float:
    check_capacity(setting)
    return float(setting["pieces"] ** -2)


register(
    Claim(
        id="vae.capacity",
        title="A Q of high capacity",
        statement=(
            "KL[Q(z|x) ‖ P(z|x)] goes to 0 with the capacity of Q: for densities that are constant on K "
            "pieces it falls as K⁻², though the posterior has two humps."
        ),
        source=f"{NOTES}, how ∫dz is dealt with; the power is that of pieces",
        place=(
            "“a sufficiently high-capacity model for Q, the D_KL term will approximate 0”, How do we deal "
            "with ∫dz?, line 98"
        ),
        grid=grid(pieces=(160, 320, 640, 1280, 3200, 6400), sigma=0.5, trials=60),
        quick=grid(pieces=(160, 320, 640, 1280, 3200), sigma=0.5, trials=40),
        predict=pieces_rate,
        measure=measure_pieces,
        rule=Exponent(Along("pieces")),
        quantity="KL[Q ‖ P(z|x)], in nats",
        axis="pieces",
    )
)


@measurement("vae.capacity.measure_gaussian")
@per_trial
def measure_gaussian(setting: Setting, generator: torch.Generator) -> float:
    """The least KL[q ‖ p(z|x)] of all Gaussian q, at x = 1; random starts a trial, each refined."""
    check_capacity(setting)
    logs, z = _posterior(1.0, setting["sigma"], COARSE), _grid(COARSE)
    step = 2 * REACH / COARSE
    means = 1.5 * torch.randn(PLACES, generator=generator, dtype=torch.float64)
    spreads = 0.05 + torch.rand(PLACES, generator=generator, dtype=torch.float64)

    def divergence(mean: Tensor, spread: Tensor) -> Tensor:
        inside = -(z - mean.unsqueeze(1)).square() / (2 * spread.unsqueeze(1) ** 2)
        own = inside - torch.logsumexp(inside, 1, keepdim=True) - log(step)
        found: Tensor = (own.exp() * (own - logs)).sum(1) * step
        return found

    best = divergence(means, spreads)
    size = 0.3
    for _ in range(150):  # each start takes a random step where it is better
        moves = size * torch.randn(2, PLACES, generator=generator, dtype=torch.float64)
        near, near_spread = means + moves[0], spreads * moves[1].exp()
        found = divergence(near, near_spread)
        better = found < best
        means, spreads = torch.where(better, near, means), torch.where(better, near_spread, spreads)
        best = torch.minimum(best, found)
        size *= 0.96
    return float(best.min())


def one_hump(setting: Setting) -> float:
    """ln 2: a Gaussian on one of two equal humps."""
    check_capacity(setting)
    return log(2)


register(
    Claim(
        id="vae.capacity.gaussian",
        title="A Gaussian Q on a posterior with two humps",
        statement=(
            "Where P(z|x) has two equal humps far apart, the best Gaussian Q leaves KL = ln 2, however its "
            "mean and variance are computed: capacity of the net that gives them does not help."
        ),
        source=f"{NOTES}, how ∫dz is dealt with, with the usual Gaussian Q; not in it",
        grid=grid(sigma=(0.1, 0.15, 0.2), trials=8),
        quick=grid(sigma=0.15, trials=5),
        predict=one_hump,
        measure=measure_gaussian,
        rule=Equal(tolerance=0.02),  # the humps are no Gaussians: their skewness leaves up to 0.01 nats
        quantity="least KL[Q ‖ P(z|x)], in nats",
        axis="sigma",
        reading="beyond the paper",
    )
)
