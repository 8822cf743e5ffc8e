"""What a collision probability says of how many points there are: printed bound, N*, popular estimate.

The collision probability is known here, or as good as known. Not for what a few batches say of it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import exp, expm1, log

import torch

from ...diversity import Collisions, effective_support_bound
from .._claim import Claim, measurement, per_trial
from .._registry import register
from .._rules import Equal, MeanBelow
from ..results import Setting
from ._birthday import DIFFERENT, measure_different
from ._points import BIRTHDAY, all_different, check, draw, equal_pairs, masses, rooms

INVERSE = f"{BIRTHDAY}, the bound on N from γ"
WHOLE = 36.0  # of ln 1/(1 − γ): beyond it γ is 1 in float64


@measurement("gan.birthday_inverse.measure_lost")
def measure_lost(setting: Setting, generator: torch.Generator) -> list[float]:
    """ln 1/(1 − γ), γ the share of so many batches that have a collision."""
    return [-log(share) for share in measure_different(setting, generator)]


def where_equal(bound: Callable[[float], float], points: int) -> float:
    """ln 1/(1 − γ) for the γ at which a bound on N that falls with γ is N, by bisection.

    N ≤ bound(γ) says that ln 1/(1 − γ) is at most this. A bound of 0 or less says nothing.
    """
    low, high = 0.0, WHOLE
    for _ in range(60):
        middle = (low + high) / 2
        if 0 < bound(-expm1(-middle)) < points:
            high = middle
        else:
            low = middle
    return low


def at_printed(setting: Setting) -> float:
    check(setting)
    samples, mass = setting["samples"], setting.get("rho", 1.0)
    return where_equal(lambda chance: Collisions(chance, samples).printed_bound(mass), setting["points"])


def at_popular(setting: Setting) -> float:
    check(setting)
    samples = setting["samples"]
    return where_equal(lambda chance: Collisions(chance, samples).popular_estimate(), setting["points"])


def different_at_exact(setting: Setting) -> float:
    check(setting)
    bound = partial(effective_support_bound, samples=setting["samples"])
    return exp(-where_equal(bound, setting["points"]))


stated = Claim(
    id="gan.birthday.inverse",
    title="N from the collision probability",
    statement=(
        "If M samples of the uniform law on N points collide with probability γ, then "
        "N ≤ 2M / (−3 + √(9 + (24/M) ln 1/(1 − γ))), the printed bound at ρ = 1, for M³ well below 6N²."
    ),
    source=f"{INVERSE}, at ρ = 1",
    place=(
        "“under realistic assumptions on parameters … N ≤ 2Mρ²/((−3 + √(9 + (24/M) log 1/(1 − γ))) − 2M(1 − "
        "ρ)²)”, at ρ = 1, Generative adversarial networks, 3, lines 196 to 198"
    ),
    grid=rooms((20, 6), (50, 9), (100, 12), (365, 23), (2000, 53), batches=20_000, trials=20),
    quick=rooms((20, 6), (50, 9), batches=5000, trials=10),
    predict=at_printed,
    measure=measure_lost,
    rule=MeanBelow(),
    quantity="ln 1/(1 − γ)",
    axis="points",
    remark=(
        "Predicted is ln 1/(1 − γ) for the γ at which the bound is N; as it falls with γ, no other γ may be "
        "larger. Σ_{k<M} −ln(1 − k/N) ≤ M²/2N + M³/6N² is what it says, and what it needs of M and N."
    ),
)
register(stated)
register(
    stated.other(
        id="gan.birthday.inverse.close",
        twin="",
        title="N from the collision probability: how close",
        statement=(
            "At ρ = 1, N ≥ 2,000 and γ near ½ the printed bound is close: it is N where ln 1/(1 − γ) is "
            "within 2 % of what it is for N points."
        ),
        grid=rooms((2000, 53), (10_000, 118), (40_000, 236), batches=10_000, trials=40),
        quick=rooms((2000, 53), (10_000, 118), batches=4000, trials=20),
        rule=Equal(tolerance=0.02),  # 1.9 % at N = 2,000, less above
        reading="beyond the paper",
        remark="ln 1/(1 − γ) falls as 1/N: the bound is as much above N.",
    )
)
register(
    stated.other(
        id="gan.birthday.inverse.edge",
        twin="gan.birthday.inverse.exact",
        title="N from the collision probability, M near N",
        statement=(
            "Read without “realistic assumptions on parameters”: if M samples of the uniform law on N points "
            "collide with probability γ, then N ≤ 2M / (−3 + √(9 + (24/M) ln 1/(1 − γ))), where M³ > 6N² too."
        ),
        grid=rooms((8, 8), (10, 9), (10, 10), (15, 13), batches=50_000, trials=20),
        quick=rooms((8, 8), (10, 9), batches=20_000, trials=10),
        reading="beyond the paper",
        expected="failed",
        remark=(
            "The next term of the logarithm, M⁴/12N³, is left out: from about M³ = 6N² on, where γ is nearly "
            "1, the printed bound is too small. The assumptions of the notes exclude this."
        ),
    )
)
register(
    stated.other(
        id="gan.birthday.inverse.exact",
        twin="gan.birthday.inverse.edge",
        title="N from the collision probability, exactly",
        statement=("N* with Π_{k<M}(1 − k/N*) = 1 − γ is N for the uniform law on N points, for all M ≤ N."),
        source=f"{INVERSE}, at ρ = 1, by bisection in place of a closed form",
        grid=rooms((8, 8), (10, 9), batches=20_000, trials=100)
        + rooms((20, 6), (50, 9), (100, 12), (365, 23), batches=20_000, trials=20)
        + rooms((10_000, 118), batches=2000, trials=20),
        quick=rooms((20, 6), (50, 9), (365, 23), batches=8000, trials=10),
        predict=different_at_exact,
        measure=measure_different,
        quantity=DIFFERENT,
        rule=Equal(),
        reading="exact",
        remark="Predicted is 1 − γ for the γ at which N* is N.",
    )
)
register(
    stated.other(
        id="gan.birthday.popular",
        twin="gan.birthday.inverse.exact",
        title="The popular estimate as a bound",
        statement=(
            "If M samples of the uniform law on N points collide with probability γ, then "
            "N ≤ M(M − 1) / (2 ln 1/(1 − γ))."
        ),
        source=f"{INVERSE}; the estimate is the forward bound at ρ = 1 solved for N, as often used",
        grid=rooms((20, 6), (50, 9), (100, 12), (365, 23), batches=20_000, trials=20),
        quick=rooms((20, 6), (50, 9), batches=5000, trials=10),
        predict=at_popular,
        reading="beyond the paper",
        expected="failed",
        remark=(
            "The forward bound is a lower bound on γ: solved for N it bounds N from below. It is 0.90 of N "
            "at N = 20, M = 6 and 0.98 at N = 365, M = 23."
        ),
    )
)
register(
    stated.other(
        id="gan.birthday.inverse.part",
        twin="gan.birthday.inverse.negative",
        title="N from the collision probability, mass ρ uniform on N points",
        statement=(
            "If mass ρ is uniform on N points, and M samples collide with probability γ, then "
            "N ≤ 2Mρ² / (−3 + √(9 + (24/M) ln 1/(1 − γ)) − 2M(1 − ρ)²), where the denominator is positive."
        ),
        source=f"{INVERSE}, where it applies",
        place=(
            "“under realistic assumptions on parameters … N ≤ 2Mρ²/((−3 + √(9 + (24/M) log 1/(1 − γ))) − "
            "2M(1 − ρ)²)”, Generative adversarial networks, 3, lines 196 to 198"
        ),
        grid=rooms((100, 12), rho=(0.95, 0.99), rest=("diffuse", "atom"), batches=20_000, trials=20)
        + rooms((365, 23), rho=(0.98, 0.99), rest=("diffuse", "atom"), batches=20_000, trials=20),
        quick=rooms((100, 12), rho=(0.95, 0.99), rest=("diffuse", "atom"), batches=5000, trials=10),
        axis="rho",
        series="rest",
        remark=(
            "The rest 1 − ρ may be one more point or diffuse. The denominator is positive only for "
            "1 − ρ < √(2L)/M, L = ln 1/(1 − γ): about 0.012 at M = 100 and γ = ½."
        ),
    )
)


@measurement("gan.birthday_inverse.measure_seen")
@per_trial
def measure_seen(setting: Setting, generator: torch.Generator) -> float:
    """How many of the N points were seen among many samples: N, or a little less."""
    chances = masses(setting)[: setting["points"]]
    drawn = draw(chances, (setting["draws"],), generator)
    return float(drawn[drawn >= 0].unique().numel())


def support_printed(setting: Setting) -> float:
    """The printed bound, from the exact probability of a collision."""
    mass = setting.get("rho", 1.0)
    return Collisions(1 - all_different(setting), setting["samples"]).printed_bound(mass)


@measurement("gan.birthday_inverse.measure_effective")
@per_trial
def measure_effective(setting: Setting, generator: torch.Generator) -> float:
    """1/q̂, where q̂ is the share of equal pairs in so many batches."""
    samples = setting["samples"]
    drawn = draw(masses(setting), (setting["batches"], samples), generator)
    pairs = int(equal_pairs(drawn).sum()) / setting["batches"]
    return float(samples * (samples - 1) / 2 / pairs)


def effective_bound(setting: Setting) -> float:
    return effective_support_bound(1 - all_different(setting), setting["samples"])


ATOMS = rooms((1000, 10), (10_000, 10), law="atom", heavy=(0.1, 0.3), draws=200_000, batches=5000, trials=10)
FEW_ATOMS = rooms((1000, 10), law="atom", heavy=(0.1, 0.3), draws=50_000, batches=2000, trials=5)

stated = Claim(
    id="gan.birthday.support",
    twin="gan.birthday.effective",
    title="A bound on the support",
    statement=(
        "If M samples collide with probability γ, the support has at most "
        "2M / (−3 + √(9 + (24/M) ln 1/(1 − γ))) points, for any law on them."
    ),
    source=f"{INVERSE}: “an upper bound on the support size of the distribution”",
    place=(
        "“This gives an upper bound on the support size of the distribution learned by the generator”, "
        "Generative adversarial networks, 3, line 200"
    ),
    grid=ATOMS,
    quick=FEW_ATOMS,
    predict=support_printed,
    measure=measure_seen,
    rule=MeanBelow(),
    quantity="points seen",
    axis="points",
    series="heavy",
    expected="failed",
    remark=(
        "One heavy point makes the collisions, and the others may be as many as they like: the bound is "
        "about the same, the support is not. Only the effective support 1/Σ p_i² is bounded; the support is "
        "(1 + cv²) times as large, cv the standard deviation over the mean of the probabilities."
    ),
)
register(stated)
register(
    stated.other(
        title="A bound on the effective support",
        statement=(
            "If M samples collide with probability γ, then 1/Σ p_i² ≤ N* with Π_{k<M}(1 − k/N*) = 1 − γ, for "
            "every discrete law."
        ),
        source=f"{INVERSE}, for the effective support",
        grid=ATOMS + rooms((100, 6), (1000, 10), law="zipf", heavy=0.0, batches=5000, trials=20),
        quick=FEW_ATOMS + rooms((100, 6), law="zipf", heavy=0.0, batches=2000, trials=10),
        predict=effective_bound,
        measure=measure_effective,
        quantity="1/Σ p_i², from equal pairs",
        series="law",
        reading="corrected",
    )
)
register(
    stated.other(
        id="gan.birthday.inverse.negative",
        twin="gan.birthday.inverse.part",
        title="A bound that is negative",
        statement=(
            "Read without “realistic assumptions on parameters”: if mass ρ is uniform on N points and M "
            "samples collide with probability γ, then N ≤ 2Mρ² / (−3 + √(9 + (24/M) ln 1/(1 − γ)) − "
            "2M(1 − ρ)²), for all ρ."
        ),
        source=INVERSE,
        grid=rooms((100, 12), (365, 23), rho=(0.5, 0.8, 0.9), draws=20_000, trials=10),
        quick=rooms((100, 12), rho=(0.5, 0.9), draws=5000, trials=5),
        axis="rho",
        series="points",
        reading="beyond the paper",
        expected="failed",
        remark=(
            "The denominator is negative for 1 − ρ > √(2L)/M, L = ln 1/(1 − γ): what is outside the N points "
            "could then make all the collisions alone, and they say nothing of N."
        ),
    )
)
