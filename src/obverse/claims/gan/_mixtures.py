"""Any law as a mixture of ever narrower Gaussians: in which distance, how fast, and where it is not so.

The mixture with weights P(x) at every x is the law of X + σZ, X ~ P and Z ~ N(0, 1): the convolution
P ∗ N(0, σ²). On the line, with distances by quadrature or by drawing. Not for networks that generate.
"""

from __future__ import annotations

from dataclasses import replace
from math import erf, erfc, exp, log, pi, sqrt

import torch
from torch import Tensor

from ..._core import BadInput
from .._claim import Claim, grid, measurement, per_trial
from .._rates import Along, Exponent, NotGrowing
from .._registry import register
from .._rules import Equal, HoldsIn
from ..results import Setting
from ._generalization import NOTES, TRIALS

PART = f"{NOTES}, Generative adversarial networks, 2, the proof"
CELLS = 16  # of a random histogram on [0, 1]
ATOMS = 5  # of a random law without density
LEVEL = 8  # of the Cantor law where it is enumerated: within 3^−8 of it
DIGITS = 30  # of base 3, where it is drawn: what float64 can distinguish
STEP = 0.04  # of quadrature, in units of σ
QUADRATURE = 1e-3  # relative error that this leaves: STEP² and a kink or two
DRAWN = 400  # points of p at which a distance is averaged, one from each of as many equal parts
MEAN_SIZE = sqrt(2 / pi)  # E|Z|


def check_width(setting: Setting) -> None:
    for name, value in setting.items():
        if isinstance(value, int) and value < 1:
            raise BadInput(f"{name} ≥ 1", got=value, do=f"raise {name}")
    for name in ("sigma", "spacing"):
        if not 1e-3 <= setting.get(name, 0.1) <= 1:
            raise BadInput(f"{name} from 0.001 to 1", got=setting[name], do=f"change {name}")
    for name, choices in (
        ("density", ("normal", "uniform")),
        ("law", ("atoms", "cantor")),
        ("distance", ("total variation", "Wasserstein")),
        ("weights", ("P(x)", "P(x)dx")),
    ):
        if setting.get(name, choices[0]) not in choices:
            raise BadInput(
                f"{name} out of {', '.join(choices)}", got=repr(setting[name]), do="take one of these"
            )


def _normal(*shape: int, generator: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def _uniform(*shape: int, generator: torch.Generator) -> Tensor:
    return torch.rand(shape, generator=generator, dtype=torch.float64)


def _weights(count: int, generator: torch.Generator) -> Tensor:
    """Uniform over all that sum to one."""
    drawn = -torch.log1p(-_uniform(count, generator=generator))
    return drawn / drawn.sum()


def _strata(generator: torch.Generator) -> Tensor:
    """Uniform on (0, 1), one in each of DRAWN equal parts."""
    return (torch.arange(DRAWN) + _uniform(DRAWN, generator=generator)).clamp(min=1e-12) / DRAWN


def bell(x: Tensor) -> Tensor:
    """The standard normal density."""
    return (-x.square() / 2).exp() / sqrt(2 * pi)


def _width_of(setting: Setting) -> float:
    return 1 / float(setting["sigma"])


# Densities: ∫|p − p ∗ N(0, σ²)|


def histogram_distance(heights: Tensor, sigma: float) -> float:
    """For a density on [0, 1] that is constant on equal cells. Midpoints of steps that fit the cells."""
    cells = len(heights)
    per_cell = int(1 / (cells * STEP * sigma)) + 1
    reach = int(10 * sigma * cells) + 1  # cells on either side, where only the mixture is
    places = torch.arange(-reach * per_cell, (cells + reach) * per_cell, dtype=torch.float64)
    places = (places + 0.5) / per_cell  # in cells
    own = torch.zeros_like(places)
    own[reach * per_cell : (reach + cells) * per_cell] = heights.repeat_interleave(per_cell)
    edges = torch.special.ndtr((places[:, None] - torch.arange(cells + 1)) / (cells * sigma))
    mixed = (edges[:, :-1] - edges[:, 1:]) @ heights
    return float((own - mixed).abs().sum() / (cells * per_cell))


def variation(heights: Tensor) -> float:
    """The sum of all jumps, up and down, those to 0 at the ends included."""
    outside = heights.new_zeros(1)
    return float(torch.cat([outside, heights, outside]).diff().abs().sum())


@measurement("gan.mixtures.measure_histograms")
@per_trial
def measure_histograms(setting: Setting, generator: torch.Generator) -> float:
    """Distance ÷ (σ · variation), for random histograms."""
    heights = CELLS * _weights(CELLS, generator)
    distance = histogram_distance(heights, setting["sigma"])
    return float(distance / (setting["sigma"] * variation(heights)))


def bells_distance(centres: Tensor, widths: Tensor, weights: Tensor, sigma: float) -> float:
    """For p = Σ w N(c, s²), and p ∗ N(0, σ²) = Σ w N(c, s² + σ²)."""
    wide = (widths.square() + sigma**2).sqrt()
    low, high = float((centres - 10 * wide).min()), float((centres + 10 * wide).max())
    step = 0.01 * float(widths.min())
    places = torch.arange(low, high, step, dtype=torch.float64)[:, None]
    own = bell((places - centres) / widths) @ (weights / widths)
    mixed = bell((places - centres) / wide) @ (weights / wide)
    return float((own - mixed).abs().sum() * step)


@measurement("gan.mixtures.measure_closed")
@per_trial
def measure_closed(setting: Setting, generator: torch.Generator) -> float:
    """The distance for N(c, s²), by σ ÷ s, or for the uniform law, by quadrature."""
    if setting["density"] == "uniform":
        return histogram_distance(torch.ones(CELLS, dtype=torch.float64), setting["sigma"])
    centre = _normal(1, generator=generator)
    width = 0.5 + _uniform(1, generator=generator)
    relative = setting["sigma"] * float(width)
    return bells_distance(centre, width, torch.ones_like(width), relative)


def closed_form(setting: Setting) -> float:
    sigma = float(setting["sigma"])
    if setting["density"] == "uniform":  # 2P(U + σZ is not in [0, 1])
        return 4 * (erfc(1 / sigma / sqrt(2)) / 2 + sigma * (1 - exp(-1 / (2 * sigma**2))) / sqrt(2 * pi))
    wide = sqrt(1 + sigma**2)
    crossing = wide * sqrt(2 * log(wide)) / sigma
    return 2 * (erf(crossing / sqrt(2)) - erf(crossing / wide / sqrt(2)))


@measurement("gan.mixtures.measure_smooth")
@per_trial
def measure_smooth(setting: Setting, generator: torch.Generator) -> float:
    """The distance for random mixtures of three normal densities, of widths 0.5 to 1."""
    centres, widths = 2 * _normal(3, generator=generator), 0.5 + 0.5 * _uniform(3, generator=generator)
    return bells_distance(centres, widths, _weights(3, generator), setting["sigma"])


def square(setting: Setting) -> float:
    return float(setting["sigma"] ** 2)


@measurement("gan.mixtures.measure_arcsine")
@per_trial
def measure_arcsine(setting: Setting, generator: torch.Generator) -> float:
    """The distance for p = 1/(π√(x(1 − x))), which is infinite at both ends; x = sin² t, at random t."""
    sigma, count = setting["sigma"], 2000
    spread = (torch.arange(count) + 0.5) * (pi / 2 / count)
    centres = spread.sin().square()  # each with the same weight
    t = _strata(generator) * (pi / 2)
    mixed = bell((t.sin().square()[:, None] - centres) / sigma).mean(1) / sigma
    # p dx = 2/π dt. Both have mass 1, so that the distance is twice where the mixture is too small.
    return 2 * float((1 - mixed * (2 * t).sin() * (pi / 2)).clamp(min=0).mean())


def half_power(setting: Setting) -> float:
    return sqrt(setting["sigma"])


# Laws without a density


def draw_law(law: str, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Places in [0, 1] and weights: a few atoms, or the Cantor law with a coin of a random bias, by level."""
    if law == "atoms":
        return _uniform(ATOMS, generator=generator), _weights(ATOMS, generator)
    bias = 0.2 + 0.6 * _uniform(1, generator=generator)
    places, weights = torch.tensor([0.5], dtype=torch.float64), torch.ones(1, dtype=torch.float64)
    for _ in range(LEVEL):
        places = torch.cat([places / 3, places / 3 + 2 / 3])
        weights = torch.cat([weights * (1 - bias), weights * bias])
    return places, weights


def wasserstein(places: Tensor, weights: Tensor, sigma: float) -> float:
    """∫|F − F ∗ N(0, σ²)|: the Wasserstein distance on the line."""
    order = places.argsort()
    places, weights = places[order], weights[order]
    steps = torch.arange(-6 * sigma, 1 + 6 * sigma, STEP * sigma, dtype=torch.float64)
    steps = torch.cat([steps, places]).sort().values  # F is constant between two of these
    middles = (steps[1:] + steps[:-1]) / 2
    below = torch.cat([weights.new_zeros(1), weights.cumsum(0)])[torch.searchsorted(places, middles)]
    mixed = [torch.special.ndtr((x[:, None] - places) / sigma) @ weights for x in middles.split(2000)]
    return float((below - torch.cat(mixed)).abs() @ steps.diff())


def in_cantor_set(x: Tensor) -> Tensor:
    """No digit 1 among the first DIGITS of base 3."""
    inside = (x >= 0) & (x <= 1)
    for _ in range(DIGITS):
        x = 3 * x
        digit = x.floor().clamp(0, 2)
        inside &= digit != 1
        x = x - digit
    return inside


@measurement("gan.mixtures.measure_singular")
@per_trial
def measure_singular(setting: Setting, generator: torch.Generator) -> float:
    """The distance of P and P ∗ N(0, σ²). In total variation: 1 less the share of the mixture's draws that
    fall into a set of which P has all."""
    sigma = setting["sigma"]
    places, weights = draw_law(setting["law"], generator)
    if setting["distance"] == "Wasserstein":
        return wasserstein(places, weights, sigma)
    at = places[torch.multinomial(weights, DRAWN, replacement=True, generator=generator)]
    drawn = at + sigma * _normal(DRAWN, generator=generator)
    inside = torch.isin(drawn, places) if setting["law"] == "atoms" else in_cantor_set(drawn)
    return 1 - float(inside.to(torch.float64).mean())


def coupled(setting: Setting) -> float:
    """E|σZ|."""
    return float(setting["sigma"]) * MEAN_SIZE * (1 + QUADRATURE)


# Finitely many Gaussians, and what "P(x)N(x, σ²) at every x" adds up to


@measurement("gan.mixtures.measure_finite")
@per_trial
def measure_finite(setting: Setting, generator: torch.Generator) -> float:
    """∫|p − f| for f with a Gaussian of width ½T^{−power} at each of T draws of p, which is normal.

    Both have mass 1: the distance is 2E(1 − f(X)/p(X))₊, over X drawn from p.
    """
    sigma = 0.5 * setting["components"] ** -setting["power"]
    centres = _normal(setting["components"], generator=generator)
    places = torch.special.ndtri(_strata(generator))
    mixed = bell((places[:, None] - centres) / sigma).mean(1) / sigma
    return 2 * float((1 - mixed / bell(places)).clamp(min=0).mean())


def two_fifths(setting: Setting) -> float:
    return float(setting["components"] ** -0.4)


@measurement("gan.mixtures.measure_mass")
@per_trial
def measure_mass(setting: Setting, generator: torch.Generator) -> float:
    """The mass of Σ w N(x, σ²) over a grid of x with a random offset, for a normal law P."""
    spacing = setting["spacing"]
    offset = spacing * _uniform(1, generator=generator)
    places = torch.arange(-10, 10, spacing, dtype=torch.float64) + offset
    each = spacing if setting["weights"] == "P(x)dx" else 1.0
    return float(each * bell(places).sum())


stated = register(
    Claim(
        id="gan.mixture.sum",
        title="A Gaussian P(x)N(x, σ²) at every x",
        statement="Read as a sum, the mixture of P(x)N(x, σ²) at every x has mass 1.",
        source=PART,
        grid=grid(weights="P(x)", spacing=(0.5, 0.25, 0.125), trials=5),
        quick=grid(weights="P(x)", spacing=(0.5, 0.25), trials=5),
        predict=1.0,
        measure=measure_mass,
        domain=check_width,
        rule=Equal(tolerance=1e-9),  # rounding: a sum over such a grid is the integral to e^{−2π²/0.25}
        quantity="mass of the mixture",
        axis="spacing",
        twin="gan.mixture.integral",
        reading="beyond the paper",
        expected="failed",
        remark=(
            "There are uncountably many x: taken ever denser, the masses add up to 1 ÷ spacing. What the "
            "notes mean is the integral ∫P(x)N(x, σ²)dx, the convolution P ∗ N(0, σ²)."
        ),
    )
)

register(
    stated.other(
        title="A Gaussian P(x)dx·N(x, σ²) at every x",
        statement="The mixture of P(x)dx·N(x, σ²) has mass 1: it is the convolution P ∗ N(0, σ²).",
        grid=grid(weights="P(x)dx", spacing=(0.5, 0.25, 0.125), trials=5),
        quick=grid(weights="P(x)dx", spacing=(0.5, 0.25), trials=5),
        reading="exact",
    )
)

register(
    Claim(
        id="gan.mixture.closed",
        title="The distance of two laws from their mixtures",
        statement=(
            "∫|p − p ∗ N(0, σ²)| is 4(Φ(a) − Φ(a/s)) for the standard normal law, s² = 1 + σ², a = s√(2 ln "
            "s)/σ, and 2P(U + σZ ∉ [0, 1]) for the uniform one: of orders σ² and σ."
        ),
        source=f"{PART}: two densities in closed form",
        grid=grid(density=("normal", "uniform"), sigma=(0.01, 0.03, 0.1, 0.3), trials=4),
        quick=grid(density=("normal", "uniform"), sigma=(0.03, 0.3), trials=4),
        predict=closed_form,
        measure=measure_closed,
        domain=check_width,
        rule=Equal(tolerance=QUADRATURE),
        quantity="∫|p − p ∗ N(0, σ²)|",
        axis="sigma",
        series="density",
        reading="exact",
    )
)

register(
    Claim(
        id="gan.mixture.jumps",
        title="Any density of bounded variation",
        statement="∫|p − p ∗ N(0, σ²)| ≤ √(2/π)·σ·V(p), with V(p) the variation of the density: → 0 with σ.",
        source=f"{PART}, for densities",
        grid=grid(sigma=(0.003, 0.01, 0.03, 0.1), trials=TRIALS),
        quick=grid(sigma=(0.03, 0.1), trials=TRIALS),
        predict=MEAN_SIZE * (1 + QUADRATURE),
        measure=measure_histograms,
        domain=check_width,
        rule=HoldsIn(),
        quantity="∫|p − p ∗ N(0, σ²)| ÷ σV(p)",
        axis="sigma",
        reading="corrected",
        remark=f"Random histograms with {CELLS} cells. For small σ the bound is attained.",
    )
)

stated = register(
    Claim(
        id="gan.mixture.smooth",
        title="Smooth densities",
        statement="∫|p − p ∗ N(0, σ²)| falls as σ² where p is smooth.",
        source=f"{PART}, for densities",
        grid=grid(sigma=(0.01, 0.02, 0.04, 0.08, 0.16), trials=2000),
        quick=grid(sigma=(0.01, 0.02, 0.04, 0.08, 0.16), trials=100),
        predict=square,
        measure=measure_smooth,
        domain=check_width,
        rule=Exponent(Along("sigma")),
        quantity="∫|p − p ∗ N(0, σ²)|",
        axis="sigma",
        reading="corrected",
    )
)

register(
    replace(
        stated,
        id="gan.mixture.rough",
        title="A density with two poles",
        statement="For p = 1/(π√(x(1 − x))) the distance ∫|p − p ∗ N(0, σ²)| falls as √σ.",
        grid=grid(sigma=(0.002, 0.004, 0.008, 0.016, 0.032), trials=5),
        quick=grid(sigma=(0.004, 0.008, 0.016), trials=3),
        predict=half_power,
        measure=measure_arcsine,
        remark="Every density has its rate, and → 0 holds for all; no rate holds for all.",
    )
)

stated = register(
    Claim(
        id="gan.mixture.any",
        title="Any probability distribution, in total variation",
        statement=(
            "Read as in total variation: any law is approximated by its mixtures P ∗ N(0, σ²), if no faster "
            "than √σ."
        ),
        source=PART,
        grid=grid(law=("atoms", "cantor"), distance="total variation", sigma=(0.01, 0.03, 0.1), trials=20),
        quick=grid(law=("atoms", "cantor"), distance="total variation", sigma=(0.01, 0.03, 0.1), trials=5),
        predict=half_power,
        measure=measure_singular,
        domain=check_width,
        rule=NotGrowing(Along("1/σ", _width_of)),
        quantity="distance of P and P ∗ N(0, σ²)",
        axis="sigma",
        series="law",
        twin="gan.mixture.weakly",
        reading="beyond the paper",
        expected="failed",
        remark=(
            "The notes do not say in which distance. A law without a density lies on a set of length 0, of "
            "which no mixture of Gaussians has anything: the distance is 1 for every σ. A discriminator that "
            "may be any function sees it."
        ),
    )
)

register(
    stated.other(
        title="Any probability distribution, weakly",
        statement="Any law P is within √(2/π)·σ of its mixture P ∗ N(0, σ²) in the Wasserstein distance.",
        grid=grid(law=("atoms", "cantor"), distance="Wasserstein", sigma=(0.01, 0.03, 0.1), trials=TRIALS),
        quick=grid(law="atoms", distance="Wasserstein", sigma=(0.01, 0.1), trials=TRIALS),
        predict=coupled,
        rule=HoldsIn(),
        reading="exact",
        remark="So Lipschitz discriminators, those of the Wasserstein objective, are fooled as σ → 0.",
    )
)

stated = register(
    Claim(
        id="gan.mixture.hasty",
        title="Finitely many Gaussians, narrowing at will",
        statement=(
            "Read as σ² → 0 at will, here as σ = 1/2T: a Gaussian at each of T draws of a smooth law comes "
            "within C·T^{−2/5} of it in ∫|p − f|."
        ),
        source=PART,
        grid=grid(power=1.0, components=(128, 256, 512, 1024, 2048), trials=20),
        quick=grid(power=1.0, components=(32, 64, 128, 256, 512), trials=20),
        predict=two_fifths,
        measure=measure_finite,
        domain=check_width,
        rule=NotGrowing(Along("components")),
        quantity="∫|p − f|",
        axis="components",
        series="power",
        twin="gan.mixture.finite",
        reading="beyond the paper",
        expected="failed",
        remark=(
            "The distance does not fall at all: T spikes of width 1/2T. The notes have infinitely many "
            "Gaussians before σ² → 0; of finitely many there must be ever more: Tσ → ∞."
        ),
    )
)

register(
    stated.other(
        title="Finitely many Gaussians, narrowing slowly",
        statement=(
            "With σ = ½T^{−1/5}, a Gaussian at each of T draws of a smooth law comes within C·T^{−2/5} of "
            "it in ∫|p − f|."
        ),
        grid=grid(power=0.2, components=(128, 256, 512, 1024, 2048), trials=400),
        quick=grid(power=0.2, components=(32, 64, 128, 256, 512), trials=60),
        reading="beyond the paper",
    )
)
