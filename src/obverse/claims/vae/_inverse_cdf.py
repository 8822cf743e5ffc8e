"""Why Gaussian seeds suffice: the inverse CDF of a law after the CDF of a Gaussian, in any dimension.

Samples of the map are compared with samples of the law made another way, by the two-sample statistic of
Kolmogorov and Smirnov, whose mean is known for equal laws. Not for nets that learn such maps.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, lgamma, sqrt

import torch
from torch import Tensor

from ..._core import BadInput
from .._claim import Claim, grid, measurement, per_trial
from .._registry import register
from .._rules import Equal, MeanBelow
from ..results import Setting

NOTES = "Theory of Deep Learning: Generative Models (2018)"
ATOM = 0.3  # mass at 0 of the law "atom"
THETA = 2.0  # of the Clayton copula: Kendall's τ is ½
HALVINGS = 60  # of an interval of 2·10⁶: to 2·10⁻¹²


def check_draws(setting: Setting) -> None:
    for name in ("n", "d", "trials"):
        if not setting.get(name, 1) >= 1:
            raise BadInput(f"{name} ≥ 1", got=setting[name], do=f"raise {name}")
    for name in ("slope", "gap"):
        if not setting.get(name, 1.0) > 0:
            raise BadInput(f"{name} > 0", got=setting[name], do=f"raise {name}")


def _normal(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def _uniform(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """In (0, 1), never 0: its logarithm is taken."""
    return 1 - torch.rand(shape, generator=generator, dtype=torch.float64)


def inverse_cdf(cdf: Callable[[Tensor], Tensor], share: Tensor) -> Tensor:
    """The least x with F(x) ≥ share, by halving: all that is asked of F is that it can be evaluated."""
    low, high = torch.full_like(share, -1e6), torch.full_like(share, 1e6)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        enough = cdf(middle) >= share
        low, high = torch.where(enough, low, middle), torch.where(enough, middle, high)
    return high


def _gap_cdf(x: Tensor) -> Tensor:
    found: Tensor = (x.clamp(0, 1) + x.clamp(2, 3) - 2) / 2
    return found


def _mixed_cdf(x: Tensor) -> Tensor:
    found: Tensor = 0.3 * torch.special.ndtr((x + 2) / 0.5) + 0.7 * torch.special.ndtr(x - 1)
    return found


def _atom_cdf(x: Tensor) -> Tensor:
    return torch.where(x >= 0, ATOM + (1 - ATOM) * -torch.expm1(-x.clamp(min=0)), torch.zeros_like(x))


CDFS: dict[str, Callable[[Tensor], Tensor]] = {
    "exponential": lambda x: -torch.expm1(-x.clamp(min=0)),
    "arcsine": lambda x: 2 / torch.pi * x.clamp(0, 1).sqrt().asin(),
    "two normals": _mixed_cdf,
    "gap": _gap_cdf,
}


def draw_directly(law: str, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Samples of the laws of one dimension by what they are, without an inverse CDF."""
    first, second = _normal(shape, generator), _normal(shape, generator)
    if law == "exponential":  # half of a χ² of two degrees of freedom
        return (first.square() + second.square()) / 2
    if law == "arcsine":  # a point of the circle, by its first coordinate
        return first.square() / (first.square() + second.square())
    coin = _uniform(shape, generator)
    if law == "two normals":
        return torch.where(coin <= 0.3, 0.5 * first - 2, first + 1)
    return _uniform(shape, generator) + 2.0 * (coin <= 0.5)


def two_sample_statistic(one: Tensor, other: Tensor) -> Tensor:
    """√(n/2)·max|F₁ − F₂| of two rows of n numbers, row by row."""
    n = one.shape[-1]
    order = torch.cat([one, other], -1).argsort(-1)
    steps = torch.where(order < n, 1, -1)
    largest: Tensor = steps.cumsum(-1).abs().amax(-1)
    return largest / n * sqrt(n / 2)


@measurement("vae.inverse_cdf.measure_line")
def measure_line(setting: Setting, generator: torch.Generator) -> list[float]:
    """The statistic between n draws of F⁻¹(Φ(z)) and n of the law itself, one a trial."""
    shape = (setting["trials"], setting["n"])
    made = inverse_cdf(CDFS[setting["law"]], torch.special.ndtr(_normal(shape, generator)))
    values: list[float] = two_sample_statistic(made, draw_directly(setting["law"], shape, generator)).tolist()
    return values


def mean_statistic(setting: Setting) -> float:
    """The exact mean for equal continuous laws: P(nD ≥ k) = 2 Σ_j (−1)^{j+1} C(2n, n − jk)/C(2n, n).

    It tends to √(π/2) ln 2 = 0.869 as n grows.
    """
    n = int(setting["n"])

    def ratio(i: int) -> float:
        return exp(2 * lgamma(n + 1) - lgamma(n - i + 1) - lgamma(n + i + 1)) if i <= n else 0.0

    total = 0.0
    for k in range(1, n + 1):
        terms = range(1, n // k + 1)
        total += 2 * sum((-1) ** (j + 1) * ratio(j * k) for j in terms)
    return sqrt(n / 2) * total / n


register(
    Claim(
        id="vae.inverse-cdf",
        title="Any law of one number from a Gaussian",
        statement="F⁻¹(Φ(z)) with z ~ N(0, 1) has the law with CDF F.",
        source=f"{NOTES}, how z is defined",
        place=(
            "“the composition of the inverse cumulative distribution function (CDF) of the desired "
            "distribution with the CDF of a Gaussian”, How do we define z?, line 85"
        ),
        grid=grid(law=tuple(CDFS), n=(50, 500), trials=1000),
        quick=grid(law=("exponential", "gap"), n=100, trials=800),
        predict=mean_statistic,
        measure=measure_line,
        domain=check_draws,
        rule=Equal(),
        quantity="mean of √(n/2)·D, D the Kolmogorov–Smirnov distance to samples made another way",
        axis="n",
        series="law",
        remark=(
            "F⁻¹(u) is the least x with F(x) ≥ u, found by halving from F alone. For 'gap' it jumps, and for "
            "a law with an atom it is flat (vae.atom): 'sufficiently complicated' may mean discontinuous."
        ),
    )
)


@measurement("vae.inverse_cdf.measure_atom")
def measure_atom(setting: Setting, generator: torch.Generator) -> list[float]:
    """The share of n draws of F⁻¹(Φ(z)) that are 0 to 1e-9, F exponential but for a mass at 0."""
    share = torch.special.ndtr(_normal((setting["trials"], setting["n"]), generator))
    made = inverse_cdf(_atom_cdf, share)
    values: list[float] = (made.abs() < 1e-9).double().mean(1).tolist()
    return values


register(
    Claim(
        id="vae.atom",
        title="A law with an atom from a Gaussian",
        statement="F⁻¹(Φ(z)) with z ~ N(0, 1) takes the value of an atom of F as often as its mass says.",
        source=f"{NOTES}, how z is defined",
        grid=grid(n=(500, 2000), trials=200),
        quick=grid(n=500, trials=100),
        predict=ATOM,  # of the exponential rest 1e-9 lies as close to 0: far below the standard errors
        measure=measure_atom,
        domain=check_draws,
        rule=Equal(),
        quantity="share of samples at the atom",
        axis="n",
        reading="exact",
        remark="The map is constant on a set of seeds of that mass: it has no inverse.",
    )
)


def conditional(law: str, z: Tensor) -> Tensor:
    """Gaussian seeds (…, d) to a law of d numbers: each by the inverse CDF of it given those before."""
    u = torch.special.ndtr(z)
    d = z.shape[-1]
    made: list[Tensor] = []
    left = torch.ones_like(u[..., 0])
    for k in range(d):
        share = u[..., k]
        if law == "simplex":  # of what is left, a part with the law Beta(1, d − k)
            made.append(left * (1 - (1 - share) ** (1 / (d - k))))
            left = left - made[-1]
        elif law == "ball":  # left is the squared radius of the ball of d − k dimensions
            made.append(left.sqrt() * (2 * _symmetric_beta(share, (d - k + 1) / 2) - 1))
            left = (left - made[-1].square()).clamp(min=0)
        else:  # Clayton's copula: left is Σ u_i^{−θ} − k + 1
            power = left * (share ** (-1 / (1 / THETA + k)) - 1)
            made.append((1 + power) ** (-1 / THETA))
            left = left + power
    return torch.stack(made, -1)


def _symmetric_beta(share: Tensor, shape: float) -> Tensor:
    """The inverse CDF of Beta(a, a)."""
    from scipy import special

    return torch.from_numpy(special.betaincinv(shape, shape, share.numpy()))


def one_by_one(law: str, z: Tensor) -> Tensor:
    """The same with the CDF of each number alone: right one at a time, and independent of each other."""
    share: Tensor = torch.special.ndtr(z)
    d = z.shape[-1]
    if law == "simplex":
        share = 1 - (1 - share) ** (1 / d)
    elif law == "ball":
        share = 2 * _symmetric_beta(share, (d + 1) / 2) - 1
    return share


def draw_jointly(law: str, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Samples of the laws of d numbers by what they are."""
    d = shape[-1]
    if law == "simplex":  # exponential numbers by their sum (one more than d)
        parts = -_uniform((*shape[:-1], d + 1), generator).log()
        return parts[..., :d] / parts.sum(-1, keepdim=True)
    if law == "ball":
        towards = _normal(shape, generator)
        radius = _uniform((*shape[:-1], 1), generator) ** (1 / d)
        inside: Tensor = radius * towards / towards.norm(dim=-1, keepdim=True)
        return inside
    parts = -_uniform(shape, generator).log()  # a common frailty, Gamma(1/θ): for θ = 2 half a χ² of one
    frailty = _normal((*shape[:-1], 1), generator).square() / 2
    joint: Tensor = (1 + parts / frailty) ** (-1 / THETA)
    return joint


@measurement("vae.inverse_cdf.measure_joint")
def measure_joint(setting: Setting, generator: torch.Generator) -> list[float]:
    """The statistic of draws seen along a random direction, another one in each trial."""
    law, shape = setting["law"], (setting["trials"], setting["n"], setting["d"])
    make = conditional if setting["map"] == "conditional" else one_by_one
    made = make(law, _normal(shape, generator))
    drawn = draw_jointly(law, shape, generator)
    along = _normal((setting["trials"], setting["d"], 1), generator)
    found = two_sample_statistic((made @ along).squeeze(-1), (drawn @ along).squeeze(-1))
    values: list[float] = found.tolist()
    return values


LAWS = ("simplex", "ball", "clayton")
stated = register(
    Claim(
        id="vae.inverse-cdf.joint",
        title="Any law of d numbers, one by one",
        statement=(
            "Read coordinate by coordinate: any distribution in d dimensions is that of d Gaussian numbers, "
            "each mapped by the inverse CDF of its coordinate after Φ."
        ),
        source=f"{NOTES}, how z is defined, with its sketch of a proof taken coordinate by coordinate",
        grid=grid(law=LAWS, d=(2, 5), n=500, trials=500, map="one by one"),
        quick=grid(law=LAWS, d=3, n=500, trials=150, map="one by one"),
        predict=mean_statistic,
        measure=measure_joint,
        domain=check_draws,
        rule=Equal(),
        quantity="mean of √(n/2)·D along random directions, D the distance to samples made another way",
        axis="d",
        series="law",
        reading="beyond the paper",
        expected="failed",
        twin="vae.inverse-cdf.conditional",
        remark=(
            "A CDF of d numbers has no inverse; those of its coordinates make them independent. The notes do "
            "not say which CDFs are meant: with conditional ones their statement is right."
        ),
    )
)
register(
    stated.other(
        title="Any law of d numbers, each given those before",
        statement=(
            "Any distribution in d dimensions is that of d Gaussian numbers, each mapped by the inverse of "
            "the CDF of its coordinate given the coordinates before, after Φ."
        ),
        source=f"{NOTES}, how z is defined; the map is Rosenblatt's",
        grid=grid(law=LAWS, d=2, n=500, trials=1500, map="conditional")
        + grid(law=LAWS, d=5, n=500, trials=500, map="conditional"),
        quick=grid(law=LAWS, d=3, n=200, trials=400, map="conditional"),
        reading="exact",
        remark="All directions together determine a law (Cramér and Wold); the directions here are random.",
    )
)


def slopes_at_most_one(z: Tensor, generator: torch.Generator) -> Tensor:
    """A random map of seeds (n, d) to numbers, |f(z) − f(z')| ≤ ‖z − z'‖, with median 0: a distance, the
    larger of two coordinates, or a wave along a line."""
    d = z.shape[1]
    towards = torch.nn.functional.normalize(_normal((2, d), generator), dim=1)
    kind = int(torch.randint(3, (), generator=generator))
    made: Tensor
    if kind == 0:
        made = (z - _normal((d,), generator)).norm(dim=1)
    elif kind == 1:
        made = (z @ towards.T).amax(1) if d > 1 else (z[:, 0] + 0.5).abs()
    else:
        made = (z @ towards[0] + (3 * (z @ towards[0])).sin() / 3) / 2  # slopes from 0 to 1
    return made - made.median()


@measurement("vae.inverse_cdf.measure_gap")
@per_trial
def measure_gap(setting: Setting, generator: torch.Generator) -> float:
    """The mass of the lesser of two sides of a gap, for a random map of slope at most `slope` a trial."""
    z = _normal((setting["n"], setting["d"]), generator)
    made = setting["slope"] * slopes_at_most_one(z, generator)
    sides = (made < -setting["gap"] / 2).double().mean(), (made > setting["gap"] / 2).double().mean()
    return float(min(sides))


def side_bound(setting: Setting) -> float:
    """Φ(−g/2L): the seeds of the two sides are g/L apart, and half-spaces are the largest such sets."""
    half = torch.tensor(-setting["gap"] / 2 / setting["slope"], dtype=torch.float64)
    return float(torch.special.ndtr(half))


register(
    Claim(
        id="vae.gap",
        title="A smooth generator leaks into gaps",
        statement=(
            "If a generator has slope at most L and its pictures lie on both sides of a gap of width g, the "
            "lesser side has at most Φ(−g/2L) of them, in any number of dimensions."
        ),
        source="Not in the notes: what a continuous map cannot do, from the isoperimetry of Gaussian seeds",
        grid=grid(slope=(1.0, 2.0), gap=(2.0, 4.0), d=(1, 2, 20), n=4000, trials=100),
        quick=grid(slope=1.0, gap=(1.0, 2.0), d=2, n=2000, trials=100),
        predict=side_bound,
        measure=measure_gap,
        domain=check_draws,
        rule=MeanBelow(),
        quantity="mass on the lesser side of the gap",
        axis="gap",
        series="slope",
        reading="beyond the paper",
        remark=(
            "Reached by f(z) = L·z₁. Two modes of ½ each therefore need a jump, or leave pictures between "
            "them; the law 'gap' of vae.inverse-cdf has no such pictures, as its map jumps."
        ),
    )
)
