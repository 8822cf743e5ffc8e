"""The birthday paradox: how often samples of a law collide. Not for what that says of the law."""

from __future__ import annotations

import numpy as np
import torch

from .._claim import Claim, measurement, per_trial
from .._registry import register
from .._rules import Equal, HoldsIn, MeanBelow
from ..results import Setting
from ._forward_bounds import forward_bound, forward_bound_printed
from ._points import (
    BIRTHDAY,
    ROUNDING,
    check,
    count_collided,
    draw,
    equal_pairs,
    exactly_different,
    masses,
    rooms,
)


@measurement("gan.birthday.measure_different")
@per_trial
def measure_different(setting: Setting, generator: torch.Generator) -> float:
    """The share of batches whose M samples are all different, one number for so many batches."""
    chances, batches = masses(setting), setting["batches"]
    return float(1 - count_collided(chances, setting["samples"], batches, generator) / batches)


def forward_printed(setting: Setting) -> float:
    check(setting)
    return 1 - forward_bound_printed(setting["samples"], setting["points"], setting["rho"])


def forward_squared(setting: Setting) -> float:
    check(setting)
    return 1 - forward_bound_printed(setting["samples"], setting["points"], setting["rho"], power=2)


def forward_corrected(setting: Setting) -> float:
    check(setting)
    return 1 - forward_bound(setting["samples"], setting["points"], setting["rho"])


DIFFERENT = "share of batches without a collision"

stated = Claim(
    id="gan.birthday.forward",
    twin="gan.birthday.forward.corrected",
    title="A collision among M samples, as printed",
    statement=(
        "If mass ρ lies on N points, M samples collide with probability at least 1 − exp(−(M² − M)ρ/2N): "
        "they are all different with probability at most exp(−(M² − M)ρ/2N)."
    ),
    source=f"{BIRTHDAY}, the forward bound",
    place=(
        "“at least one collision on drawing M i.i.d samples is at least 1 − exp(−(M² − M)ρ/2N)”, Generative "
        "adversarial networks, 3, line 194"
    ),
    grid=rooms((100, 12), (1000, 60), (10_000, 100), rho=(0.2, 0.5, 0.8), batches=2000, trials=20),
    quick=rooms((100, 12), (10_000, 100), rho=(0.2, 0.5), batches=500, trials=10),
    predict=forward_printed,
    measure=measure_different,
    rule=MeanBelow(),
    quantity=DIFFERENT,
    axis="rho",
    series="points",
    expected="failed",
    remark=(
        "Both samples of a pair must fall on the N points: a pair collides with chance ρ²/N, not ρ/N. The "
        "mass is uniform on the N points here and the rest diffuse. At ρ = 0.5, N = 10,000, M = 100 a "
        "collision has probability 0.1163; 0.2192 is printed."
    ),
)
register(stated)
register(
    stated.other(
        title="A collision among M samples, corrected",
        statement=(
            "If mass ρ is uniform on N points and the rest diffuse, M samples are all different with "
            "probability E[Π_{i<j}(1 − i/N)₊], j ~ Bin(M, ρ): how many of them fall on the points."
        ),
        source=f"{BIRTHDAY}, the forward bound with the number of samples on S drawn first",
        predict=forward_corrected,
        rule=Equal(),
        reading="corrected",
        remark="Among all laws with mass ρ on N points this one collides least: gan.birthday.forward.least.",
    )
)
register(
    stated.other(
        id="gan.birthday.forward.least",
        twin="",
        title="The uniform law collides least",
        statement=(
            "Whatever the law of the mass ρ on N points, M samples are all different with probability at "
            "most E[Π_{i<j}(1 − i/N)₊], j ~ Bin(M, ρ)."
        ),
        source=f"{BIRTHDAY}, the forward bound, corrected; the notes have no other law",
        # The last two laws are nearly uniform: there the bound has no more than 3 % to spare.
        grid=rooms((100, 12), (1000, 40), rho=(0.5, 0.8, 1.0), law="zipf", batches=2000, trials=20)
        + rooms((100, 12), (10_000, 100), rho=(0.5, 1.0), law="atom", heavy=0.1, batches=2000, trials=20)
        + rooms((100, 12), rho=(0.5, 1.0), law="atom", heavy=0.03, batches=20_000, trials=20),
        quick=rooms((100, 12), rho=(0.5, 1.0), law=("zipf", "atom"), heavy=0.2, batches=500, trials=10),
        predict=forward_corrected,
        series="law",
        reading="beyond the paper",
    )
)
register(
    stated.other(
        id="gan.birthday.forward.whole",
        twin="",
        title="A collision among M samples on N points",
        statement=(
            "If all mass lies on N points, M samples are all different with probability at most "
            "exp(−(M² − M)/2N)."
        ),
        source=f"{BIRTHDAY}, the forward bound at ρ = 1",
        place=(
            "“at least one collision on drawing M i.i.d samples is at least 1 − exp(−(M² − M)ρ/2N)”, at ρ = "
            "1, Generative adversarial networks, 3, line 194"
        ),
        grid=rooms((20, 6), (50, 9), (100, 12), (365, 23), rho=1.0, law="uniform", batches=20_000, trials=20)
        + rooms((100, 12), (365, 23), rho=1.0, law="zipf", batches=2000, trials=20),
        quick=rooms((20, 6), (50, 9), rho=1.0, law="uniform", batches=10_000, trials=10),
        predict=forward_printed,
        axis="points",
        series="law",
    )
)
register(
    stated.other(
        id="gan.birthday.forward.squared",
        twin="gan.birthday.forward.squared-close",
        title="The forward bound with ρ² in place of ρ",
        statement=(
            "If mass ρ lies on N points, M samples are all different with probability at most "
            "exp(−(M² − M)ρ²/2N)."
        ),
        source=f"{BIRTHDAY}, the forward bound with ρ² in the exponent, an obvious repair",
        grid=rooms((2, 4), (5, 5), (10, 8), (20, 10), rho=(0.3, 0.4, 0.5), batches=20_000, trials=20),
        quick=rooms((2, 4), (10, 8), rho=0.5, batches=20_000, trials=10),
        predict=forward_squared,
        reading="beyond the paper",
        expected="failed",
        remark=(
            "How many samples fall on the N points is random, which makes collisions rarer than Mρ samples "
            "on N points would (Jensen): E[exp(−j²/2N)] > exp(−(Mρ)²/2N). For large N it is hardly too large."
        ),
    )
)
register(
    stated.other(
        id="gan.birthday.forward.squared-close",
        twin="gan.birthday.forward.squared",
        title="The forward formula with ρ² is close",
        statement=(
            "If mass ρ is uniform on N ≥ 1,000 points and the rest diffuse, M ~ √N samples are all different "
            "with probability exp(−(M² − M)ρ²/2N) to within 0.2 %."
        ),
        source=f"{BIRTHDAY}, the forward bound with ρ² in the exponent",
        grid=rooms((1000, 30), (10_000, 100), rho=(0.2, 0.5, 0.8), batches=2000, trials=20),
        quick=rooms((1000, 30), rho=(0.2, 0.5), batches=1000, trials=10),
        predict=forward_squared,
        rule=Equal(tolerance=0.002),  # the formula's own distance to the corrected one: at most 0.0011 here
        reading="beyond the paper",
    )
)


@measurement("gan.birthday.measure_association")
@per_trial
def measure_association(setting: Setting, generator: torch.Generator) -> float:
    """Π_{k<M}(1 − kq)₊ over the exact probability of no collision, of random laws: one number a law."""
    check(setting)
    concentration = torch.full((setting["points"],), setting["concentration"], dtype=torch.float64)
    drawn = torch._standard_gamma(concentration, generator=generator)
    chances = (drawn / drawn.sum()).numpy()
    steps = np.arange(1, setting["samples"])
    product = float(np.prod(np.maximum(1 - steps * float(chances @ chances), 0)))
    return product / exactly_different(chances, setting["samples"])


def at_most_one(setting: Setting) -> float:
    check(setting)
    return 1 + ROUNDING


register(
    Claim(
        id="gan.birthday.any-law",
        title="Collisions of any law, by q = Σ p_i²",
        statement=(
            "For every discrete law, M samples are all different with probability at least Π_{k<M}(1 − kq)₊, "
            "q = Σ p_i²: their ratio is at most 1."
        ),
        source=f"{BIRTHDAY}: what the inverse bound needs; Chebyshev's association inequality, not in it",
        grid=rooms((5, 2), (30, 4), (200, 10), (1000, 20), concentration=(0.1, 1.0, 10.0), trials=600),
        quick=rooms((30, 4), (200, 10), concentration=(0.1, 1.0), trials=550),
        predict=at_most_one,
        measure=measure_association,
        rule=HoldsIn(share=0.99),
        quantity="Π(1 − kq)₊ ÷ P(no collision)",
        axis="points",
        series="concentration",
        reading="beyond the paper",
        remark="Laws are drawn from a Dirichlet distribution; P(no collision) is exact, not simulated.",
    )
)


@measurement("gan.birthday.measure_pairs")
@per_trial
def measure_pairs(setting: Setting, generator: torch.Generator) -> float:
    """Equal pairs among M samples, the mean of so many batches."""
    chances, samples, batches = masses(setting), setting["samples"], setting["batches"]
    return float(equal_pairs(draw(chances, (batches, samples), generator)).double().mean())


def expected_pairs(setting: Setting) -> float:
    chances, samples = masses(setting), setting["samples"]
    return float(samples * (samples - 1) / 2 * chances.square().sum())


register(
    Claim(
        id="gan.birthday.pairs",
        title="The number of equal pairs",
        statement="Among M samples M(M − 1)/2 · Σ p_i² pairs are equal in the mean, for every discrete law.",
        source=f"{BIRTHDAY}: what an estimate of 1/Σ p_i² from counts rests on; not in the notes",
        grid=rooms(
            (100, 20), (10_000, 100), law=("uniform", "zipf", "atom"), heavy=0.1, batches=2000, trials=20
        ),
        quick=rooms((100, 20), law=("uniform", "zipf", "atom"), heavy=0.1, batches=500, trials=10),
        predict=expected_pairs,
        measure=measure_pairs,
        rule=Equal(),
        quantity="equal pairs a batch",
        axis="points",
        series="law",
        reading="beyond the paper",
    )
)
