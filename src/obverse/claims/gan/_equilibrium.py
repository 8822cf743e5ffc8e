"""Existence of equilibrium: how near to one T generators come, in games with exact best responses.

F(u, v) = E_real D_v − E_{G_u} D_v, D ∈ [0, 1]. The gap of a generator is what the best discriminator is paid:
the value of these games is 0, since D ≡ ½ is paid nothing. Generators are point masses or Gaussians. Not for
nets that are trained against each other.
"""

from __future__ import annotations

from dataclasses import replace
from math import log, pi, sqrt

import torch
from torch import Tensor

from ..._core import BadInput
from .._claim import Claim, grid, measurement, per_trial
from .._rates import Along, Exponent, NotGrowing
from .._registry import register
from .._rules import Equal, HoldsIn
from ..results import Setting
from ._critics import arcs_distance
from ._generalization import DELTA, NOTES, TRIALS, net_bound, samples_needed
from ._matrix_game import best_rows, hedge, pure_gap

PART = f"{NOTES}, Generative adversarial networks, 2"
PLACES = 128  # pictures in a random game
ARC = 2  # parameters: where an arc begins and ends
LINE = torch.linspace(-0.2, 1.2, 701, dtype=torch.float64)  # where distribution functions are compared
ROUND = torch.linspace(0, 1, 257, dtype=torch.float64)
TURNS = torch.arange(-2, 3, dtype=torch.float64)  # that a Gaussian on the circle is wrapped by


def check_game(setting: Setting) -> None:
    for name, value in setting.items():
        if isinstance(value, int) and value < 1:
            raise BadInput(f"{name} ≥ 1", got=value, do=f"raise {name}")
    if setting.get("discriminators", 2) % 2:
        raise BadInput("each D with its 1 − D", got=setting["discriminators"], do="take an even number")
    if not 0 < setting.get("sigma", 0.1) <= 0.3:
        raise BadInput("σ in (0, 0.3]", got=setting["sigma"], do="change sigma")


# A circle of pictures, and arcs


def circle_payoff(places: int) -> Tensor:
    """Rows: each picture alone. Columns: the indicator of every arc of the circle, and of nothing."""
    start, length = torch.meshgrid(torch.arange(places), torch.arange(places + 1), indexing="ij")
    behind = (torch.arange(places)[:, None, None] - start) % places  # of a picture from an arc's start
    inside = (behind < length).to(torch.float64)
    return (inside.mean(0) - inside).flatten(1)


@measurement("gan.equilibrium.measure_pure")
@per_trial
def measure_pure(setting: Setting, generator: torch.Generator) -> float:
    """min max − max min over single generators and discriminators; the pictures in a random order."""
    payoff = circle_payoff(setting["places"])
    return pure_gap(payoff[torch.randperm(setting["places"], generator=generator)])


def pure(setting: Setting) -> float:
    return 1 - 1 / float(setting["places"])


def arcs_payoff(points: Tensor) -> Tensor:
    """F of point masses on a circle of length 1 (rows, in order) against every arc that begins and ends at
    points, with them (paid for mass in excess) or without (paid for a lack of it)."""
    count = len(points)
    first, last = torch.meshgrid(torch.arange(count), torch.arange(count), indexing="ij")
    place = torch.arange(count)[:, None, None]
    closed = ((place - first) % count <= (last - first) % count).to(points.dtype)
    length = (points[last] - points[first]) % 1.0
    opened = ((place - first) % count < (last - first) % count).to(points.dtype) * (place != first)
    whole = torch.where(first == last, torch.ones_like(length), length)  # from a point round to itself
    inner = torch.where(first == last, (place != first).to(points.dtype), opened)
    return torch.cat([(closed - length).flatten(1), (whole - inner).flatten(1)], 1)


@measurement("gan.equilibrium.measure_weights")
@per_trial
def measure_weights(setting: Setting, generator: torch.Generator) -> float:
    """The gap of T random point masses with the best weights, by linear programming over all arcs."""
    points = torch.rand(setting["generators"], generator=generator, dtype=torch.float64)
    return best_rows(arcs_payoff(points.sort().values))[0]


def longest_spacing(setting: Setting) -> float:
    """The mean of the longest of T spacings on a circle: (1 + ½ + … + 1/T)/T."""
    count = int(setting["generators"])
    return sum(1 / k for k in range(1, count + 1)) / count


@measurement("gan.equilibrium.measure_circle")
def measure_circle(setting: Setting, generator: torch.Generator) -> list[float]:
    """The gap of T random point masses of equal weight, over all arcs."""
    points = torch.rand(setting["trials"], setting["generators"], generator=generator, dtype=torch.float64)
    return arcs_distance(points, torch.full_like(points, 1 / setting["generators"])).tolist()


# Random games


def random_payoff(discriminators: int, generator: torch.Generator) -> Tensor:
    """Pictures × discriminators: half of these say 0 or 1 of every picture at random, half the contrary."""
    said = torch.rand(PLACES, discriminators // 2, generator=generator, dtype=torch.float64) < 0.5
    both = torch.cat([said, ~said], 1).to(torch.float64)
    return both.mean(0) - both


@measurement("gan.equilibrium.measure_sampled")
@per_trial
def measure_sampled(setting: Setting, generator: torch.Generator) -> float:
    """The gap of T pictures drawn from the real law with equal weights, each time in another game."""
    payoff = random_payoff(setting["discriminators"], generator)
    drawn = torch.randint(PLACES, (setting["generators"],), generator=generator)
    return float(payoff[drawn].mean(0).max())


def sampled(setting: Setting) -> float:
    return sqrt(log(setting["discriminators"] / DELTA) / (2 * setting["generators"]))


def sampled_rate(setting: Setting) -> float:
    return sqrt(log(setting["discriminators"]) / setting["generators"])


@measurement("gan.equilibrium.measure_hedge")
@per_trial
def measure_hedge(setting: Setting, generator: torch.Generator) -> float:
    """What both sides could still win after T rounds of multiplicative weights against the best generator."""
    payoff = random_payoff(setting["discriminators"], generator)
    return hedge(payoff, setting["generators"]).gap(payoff)


def regret(setting: Setting) -> float:
    return sqrt(2 * log(setting["discriminators"]) / setting["generators"])


# Gaussians


def half_lines_gap(centres: Tensor, sigma: float) -> float:
    """What the best half-line, or its complement, is paid by equally many N(u, σ²), for a law uniform on
    [0, 1]: the largest distance of distribution functions, on a grid."""
    below = torch.special.ndtr((LINE[:, None] - centres) / sigma).mean(1)
    return float((below - LINE.clamp(0, 1)).abs().max())


@measurement("gan.equilibrium.measure_gaussians")
@per_trial
def measure_gaussians(setting: Setting, generator: torch.Generator) -> float:
    """The gap of T Gaussians with uniform centres and σ = 0.2·T^{−narrowing}."""
    count = setting["generators"]
    sigma = 0.2 * count ** -setting["narrowing"]
    return half_lines_gap(torch.rand(count, generator=generator, dtype=torch.float64), sigma)


def root(setting: Setting) -> float:
    return 1 / sqrt(setting["generators"])


def wrapped_gap(centres: Tensor, sigma: float) -> float:
    """What the best arc is paid by equally many Gaussians that are wrapped round a circle of length 1, for a
    law uniform on it; arcs begin and end on a grid."""
    away = (ROUND[:, None, None] - centres[:, None] + TURNS) / sigma
    covered = torch.special.ndtr(away).sum(2).mean(1)
    excess = covered - covered[0] - ROUND
    return float(excess.max() - excess.min())


@measurement("gan.equilibrium.measure_wrapped")
@per_trial
def measure_wrapped(setting: Setting, generator: torch.Generator) -> float:
    """The gap of T such Gaussians with uniform centres."""
    return wrapped_gap(
        torch.rand(setting["generators"], generator=generator, dtype=torch.float64), setting["sigma"]
    )


def slope_of(sigma: float) -> float:
    """L of an arc's payoff in its two ends, each of which moves it by the largest density."""
    return 2 * (1 / (sigma * sqrt(2 * pi)) + 1)


def enough(setting: Setting) -> float:
    return net_bound(ARC, setting["generators"], slope_of(setting["sigma"]))


stated = register(
    Claim(
        id="gan.equilibrium.pure",
        title="No equilibrium of single generators and discriminators",
        statement=(
            "On a circle of N pictures, all real, with one picture a generator and arcs as discriminators, "
            "switching min and max changes the payoff by 1 − 1/N."
        ),
        source=f"{PART}: what a mixture is needed for",
        grid=grid(places=(4, 16, 64), trials=3),
        quick=grid(places=(4, 16), trials=3),
        predict=pure,
        measure=measure_pure,
        domain=check_game,
        rule=Equal(tolerance=1e-9),  # every trial is the same number, to rounding
        quantity="min max F − max min F",
        axis="places",
        reading="exact",
        remark=(
            "A counting argument: an arc that leaves out the one picture is paid 1 − 1/N; D that is constant "
            "is paid nothing. The order of the pictures, which is all that trials change, has no part in it."
        ),
    )
)

stated = register(
    Claim(
        id="gan.equilibrium.sampled",
        title="Generators drawn at random are an approximate equilibrium",
        statement=(
            "T generators drawn from an optimal mixture, with equal weights, lose at most ε to any of n "
            "discriminators, except with chance n·exp(−2ε²T)."
        ),
        source=f"{PART}: the proof by sampling, for finitely many discriminators",
        grid=grid(discriminators=(16, 256, 1024), generators=(16, 64, 256), trials=300),
        quick=grid(discriminators=(16, 256), generators=(16, 64), trials=300),
        predict=sampled,
        measure=measure_sampled,
        domain=check_game,
        rule=HoldsIn(share=1 - DELTA),
        quantity="payoff of the best D",
        axis="generators",
        series="discriminators",
        reading="corrected",
        remark=f"ε is that at which the stated chance is {DELTA:g}: T = ln(n/δ)/2ε² generators suffice.",
    )
)

register(
    replace(
        stated,
        id="gan.equilibrium.rate",
        title="The gap falls with the root of the number of generators",
        statement="The gap of T generators drawn at random falls as T^{−1/2}.",
        grid=grid(discriminators=256, generators=(16, 32, 64, 128, 256, 512), trials=200),
        quick=grid(discriminators=256, generators=(16, 32, 64, 128, 256), trials=100),
        predict=sampled_rate,
        rule=Exponent(Along("generators")),
        reading="exact",
        remark="",
    )
)

register(
    replace(
        stated,
        id="gan.equilibrium.sizes",
        title="The gap grows with the log of the number of discriminators",
        statement="The gap of T generators drawn at random is at most C√(ln n/T), for n discriminators.",
        grid=grid(discriminators=(16, 64, 256, 1024, 4096), generators=64, trials=200),
        quick=grid(discriminators=(16, 32, 64, 128, 256, 512), generators=64, trials=200),
        predict=sampled_rate,
        rule=NotGrowing(Along("discriminators")),
        axis="discriminators",
        series="generators",
        reading="beyond the paper",
        remark="ln n is what p log(p/ε) becomes for a finite class.",
    )
)

register(
    replace(
        stated,
        id="gan.equilibrium.hedge",
        title="An approximate equilibrium by playing",
        statement=(
            "If n discriminators are mixed by multiplicative weights, and each time the best generator is "
            "added, then after T rounds neither side can win: their gap is at most √(2 ln n/T)."
        ),
        source=f"{PART}: a mixture that is found, not only known to exist",
        grid=grid(discriminators=(16, 256, 1024), generators=(16, 64, 256), trials=TRIALS),
        quick=grid(discriminators=(16, 256), generators=(16, 64), trials=TRIALS),
        predict=regret,
        measure=measure_hedge,
        rule=HoldsIn(),
        quantity="max F − min F, of the best answers to both mixtures",
        remark=(
            "The T generators have equal weights; the bound is that of the regret, and holds without "
            "exception."
        ),
    )
)

register(
    Claim(
        id="gan.equilibrium.circle",
        title="Random generators of equal weight, on a circle",
        statement=(
            "The gap of T random point masses with equal weights, over all arcs of a circle, falls as "
            "T^{−1/2}."
        ),
        source=f"{PART}: a game with a continuum of discriminators and exact best responses",
        grid=grid(generators=(64, 128, 256, 512, 1024, 2048), trials=2000),
        quick=grid(generators=(64, 128, 256, 512), trials=1000),
        predict=root,
        measure=measure_circle,
        domain=check_game,
        rule=Exponent(Along("generators")),
        quantity="payoff of the best arc",
        axis="generators",
        reading="exact",
    )
)

register(
    Claim(
        id="gan.equilibrium.weights",
        title="Trained weights, on a circle",
        statement=(
            "With the best weights in place of equal ones the gap of T random point masses is the longest "
            "of their T spacings, (1 + ½ + … + 1/T)/T on average."
        ),
        source=f"{PART}: mixture weights that train",
        grid=grid(generators=2, trials=700) + grid(generators=(4, 8, 16, 32), trials=120),
        quick=grid(generators=(2, 4, 8), trials=150),
        predict=longest_spacing,
        measure=measure_weights,
        domain=check_game,
        rule=Equal(resolution=0.12),
        quantity="payoff of the best arc, by linear programming",
        axis="generators",
        reading="beyond the paper",
        remark=(
            "Generators at equal distances would have a gap of 1/T. The power −½ belongs to generators "
            "drawn at random with equal weights; trained weights win most of it back."
        ),
    )
)

stated = register(
    Claim(
        id="gan.equilibrium.gaussian",
        title="Generators that can generate a Gaussian",
        statement=(
            "Read as Gaussians of one fixed width: if a generator is able to generate them, T of them have a "
            "gap of at most C/√T against half-lines."
        ),
        source=f"{PART}, the statement and its proof",
        grid=grid(narrowing=0.0, generators=(16, 32, 64, 128, 256, 512), trials=100),
        quick=grid(narrowing=0.0, generators=(16, 32, 64, 128, 256), trials=60),
        predict=root,
        measure=measure_gaussians,
        domain=check_game,
        rule=NotGrowing(Along("generators")),
        quantity="payoff of the best half-line",
        axis="generators",
        series="narrowing",
        twin="gan.equilibrium.narrowing",
        reading="beyond the paper",
        expected="failed",
        remark=(
            "The gap stays above σ/√(2π): a mixture of Gaussians of one width is smooth, and the uniform "
            "law is not. The notes let σ² → 0, in the proof."
        ),
    )
)

register(
    stated.other(
        title="Generators that can generate ever narrower Gaussians",
        statement="If σ falls as 1/T, the gap of T Gaussians against half-lines is at most C/√T.",
        grid=grid(narrowing=1.0, generators=(32, 64, 128, 256, 512, 1024), trials=500),
        quick=grid(narrowing=1.0, generators=(16, 32, 64, 128, 256), trials=100),
        reading="exact",
    )
)


def _formula(sigma: tuple[float, ...], epsilon: tuple[float, ...]) -> tuple[Setting, ...]:
    """Each σ and ε with the T of the formula."""
    return tuple(
        {"sigma": width, "generators": samples_needed(ARC, gap, slope_of(width)), "trials": TRIALS}
        for width in sigma
        for gap in epsilon
    )


register(
    Claim(
        id="gan.equilibrium.count",
        title="How many generators",
        statement=(
            "Against discriminators of p parameters whose payoffs are L-Lipschitz in them, T = (8/ε²)(p "
            "ln(1 + 4L/ε) + ln(2/δ)) generators are an ε/2-approximate equilibrium, except with chance δ."
        ),
        source=f"{PART}: a generator of capacity O(n log n/ε²)",
        grid=_formula((0.05, 0.2), (0.3, 0.5)),
        quick=_formula((0.2,), (0.5,)),
        predict=enough,
        measure=measure_wrapped,
        domain=check_game,
        rule=HoldsIn(share=1 - DELTA),
        quantity="payoff of the best arc",
        axis="generators",
        series="sigma",
        reading="corrected",
        remark=(
            "Arcs of a circle, p = 2, against Gaussians on it. What is counted is generators: the mixture "
            "has as many parameters as all of them together."
        ),
    )
)
