"""The birthday test as it is done: a few batches, and what may be concluded from them with confidence.

And the mistakes that take the confidence away: no limit at all, a pool drawn with replacement or used again.
"""

from __future__ import annotations

from functools import lru_cache
from math import exp, log

import torch
from torch import Tensor

from ..._core import lower_limit
from ...diversity import effective_support_bound, support_at_least
from .._claim import Claim, grid, measurement, per_trial
from .._registry import register
from .._rules import Equal, HoldsIn, MeanBelow
from ..results import Setting
from ._points import BIRTHDAY, check, collided, draw, masses, rooms

CONFIDENCE = 0.95
SOURCE = f"{BIRTHDAY}, the bound on N from γ, at a lower limit of γ"


def equal_pair(setting: Setting) -> float:
    """Σ p_i², the chance that two samples are equal."""
    check(setting)
    return float(masses(setting).square().sum())


def drawn_batches(setting: Setting, chances: Tensor, generator: torch.Generator) -> Tensor:
    """B batches of M: fresh ones, or from a pool of samples, with replacement or a fresh order every time."""
    samples, batches, source = setting["samples"], setting["batches"], setting["source"]
    if source == "fresh":
        return draw(chances, (batches, samples), generator)
    pool = draw(chances, (setting["pool"] * samples,), generator)
    if source == "replacement":
        return pool[torch.randint(len(pool), (batches, samples), generator=generator)]
    order = torch.rand(batches, len(pool), generator=generator).argsort(-1)
    return pool[order[:, :samples]]


@measurement("gan.birthday_confidence.measure_coverage")
@per_trial
def measure_coverage(setting: Setting, generator: torch.Generator) -> float:
    """1 over the bound that a test of B batches ends with: covered where it is at most Σ p_i²."""
    chances = masses(setting)
    seen = int(collided(drawn_batches(setting, chances, generator)).sum())
    return 1 / bound_from(seen, setting["batches"], setting["samples"], setting["limit"])


@lru_cache(maxsize=10_000)
def bound_from(collisions: int, batches: int, samples: int, limit: str) -> float:
    gamma = lower_limit(collisions, batches, CONFIDENCE) if limit == "lower" else collisions / batches
    return effective_support_bound(gamma, samples)


COVERED = "1 ÷ the bound on 1/Σ p_i²"
UNIFORM = ((100, 13), (1000, 38), (10_000, 118))  # γ near ½


def fresh(settings: tuple[Setting, ...]) -> tuple[Setting, ...]:
    """Tests as they should be: fresh batches, and the lower limit."""
    return tuple({**each, "source": "fresh", "limit": "lower"} for each in settings)


stated = Claim(
    id="gan.birthday.observed",
    twin="gan.birthday.confidence",
    title="The observed collision probability as γ",
    statement=(
        "If γ is read as the observed share c/B of batches with a collision, the bound at γ is at least "
        "1/Σ p_i² in 95 % of such tests."
    ),
    source=f"{BIRTHDAY}: “suppose we have empirically found this minimum probability”",
    grid=rooms(*UNIFORM, law="uniform", source="fresh", limit="observed", batches=(10, 50), trials=1000),
    quick=rooms((100, 13), law="uniform", source="fresh", limit="observed", batches=(10, 50), trials=300),
    predict=equal_pair,
    measure=measure_coverage,
    rule=HoldsIn(share=CONFIDENCE),
    quantity=COVERED,
    axis="points",
    series="batches",
    reading="beyond the paper",
    expected="failed",
    remark=(
        "The observed share is above γ in half of all tests, and the bound too small in these. It comes from "
        "random data and is part of the measurement; predicted is Σ p_i²."
    ),
)
register(stated)
register(
    stated.other(
        title="A bound that holds with 95 % confidence",
        statement=(
            "If c of B fresh batches had a collision, the bound at the one-sided 95 % lower limit of Clopper "
            "and Pearson is at least 1/Σ p_i² in 95 % of such tests."
        ),
        source=SOURCE,
        # Where whole numbers of collisions make the coverage more than 95 % by a little: 96 to 98 %.
        grid=fresh(rooms((100, 12), (10_000, 118), law="uniform", batches=(20, 50), trials=4000))
        + fresh(rooms((1000, 38), law="uniform", batches=(20, 40), trials=4000))
        + fresh(rooms((100, 6), (1000, 8), (10_000, 10), law="zipf", batches=(20, 50), trials=1500)),
        quick=fresh(rooms((100, 12), law="uniform", batches=(20, 50), trials=1500))
        + fresh(rooms((100, 6), law="zipf", batches=50, trials=1000)),
        series="law",
        reading="beyond the paper",
        remark="The bound comes from random data and is part of the measurement; predicted is Σ p_i².",
    )
)
register(
    stated.other(
        id="gan.birthday.confidence.replacement",
        twin="gan.birthday.confidence",
        title="Batches drawn with replacement from a pool",
        statement=("The bound holds in 95 % of tests whose batches are drawn with replacement from a pool."),
        source=f"{SOURCE}; a mistake of programs in use",
        grid=rooms(
            *UNIFORM, law="uniform", source="replacement", pool=(2, 10), limit="lower", batches=50, trials=300
        ),
        quick=rooms(
            (100, 13),
            law="uniform",
            source="replacement",
            pool=(2, 10),
            limit="lower",
            batches=50,
            trials=100,
        ),
        series="pool",
        reading="beyond the paper",
        expected="failed",
        remark=(
            "A sample that is drawn twice collides with itself: a pool of n samples that all differ looks "
            "like n pictures. `pool` is its size in batches."
        ),
    )
)
register(
    stated.other(
        id="gan.birthday.confidence.reused",
        twin="gan.birthday.confidence",
        title="The same samples in every batch",
        statement=(
            "The bound holds in 95 % of tests whose batches are drawn, each without replacement, from one "
            "pool of samples that is used again for every batch."
        ),
        source=f"{SOURCE}; a mistake of programs in use",
        grid=rooms(
            *UNIFORM, law="uniform", source="reused", pool=(1, 2, 4), limit="lower", batches=50, trials=500
        ),
        quick=rooms(
            (100, 13), law="uniform", source="reused", pool=(1, 2), limit="lower", batches=50, trials=300
        ),
        series="pool",
        reading="beyond the paper",
        expected="failed",
        remark=(
            "Batches that share samples share collisions: B of them are not B independent trials. `pool` is "
            "its size in batches; at 1 every batch is the same."
        ),
    )
)


@measurement("gan.birthday_confidence.measure_none_seen")
@per_trial
def measure_none_seen(setting: Setting, generator: torch.Generator) -> float:
    """The share of tests in which B batches pass without a collision, one number for so many tests."""
    chances, batches, tests = none_seen_law(setting), setting["batches"], setting["tests"]
    seen = collided(draw(chances, (tests * batches, setting["samples"]), generator))
    return float((~seen.reshape(tests, batches).any(-1)).double().mean())


def none_seen_law(setting: Setting) -> Tensor:
    """Uniform on N points; or one atom in a diffuse rest, 1/Σ p_i² = N."""
    if setting["law"] == "one atom":
        return torch.tensor([setting["points"] ** -0.5], dtype=torch.float64)
    return masses(setting)


def doubt(setting: Setting) -> float:
    """α at which the limit of confidence 1 − α is N: it rises with α, by bisection on ln α."""
    check(setting)
    low, high = log(1e-12), log(1 - 1e-12)
    for _ in range(50):
        middle = (low + high) / 2
        if support_at_least(setting["samples"], setting["batches"], 1 - exp(middle)) < setting["points"]:
            low = middle
        else:
            high = middle
    return exp(high)


def tests_of(*sizes: tuple[int, int, int], **more: object) -> tuple[Setting, ...]:
    """Settings for N points, M samples and B batches."""
    return tuple(
        {"points": points, "samples": samples, "batches": batches, **rest}
        for points, samples, batches in sizes
        for rest in grid(**more)  # type: ignore[arg-type]
    )


stated = Claim(
    id="gan.birthday.none-seen",
    twin="gan.birthday.none-seen.effective",
    title="No collision seen: a limit for the support",
    statement=(
        "On N equal points B batches of M pass without a collision with probability α, where N is the limit "
        "N_low with Π_{k<M}(1 − k/N_low) = α^{1/B}: no collision means a support of at least N_low, with "
        "confidence 1 − α."
    ),
    source=f"{BIRTHDAY}: the test the other way round, which the notes leave out",
    # N on both sides of N_low for α = 5 %: 70.3, 324, 1,686 and 8,295.
    grid=tests_of((60, 20, 1), (80, 20, 1), (300, 20, 5), (380, 20, 5), law="uniform", tests=1500, trials=40)
    + tests_of((1500, 100, 1), (1900, 100, 1), law="uniform", tests=1500, trials=40)
    + tests_of((7500, 100, 5), (9500, 100, 5), law="uniform", tests=750, trials=40),
    quick=tests_of((60, 20, 1), (80, 20, 1), (380, 20, 5), law="uniform", tests=1500, trials=40),
    predict=doubt,
    measure=measure_none_seen,
    rule=Equal(resolution=0.15),  # of α: a limit 15 % too large has α^{1.15}, 0.64 of it at 5 %
    reading="beyond the paper",
    axis="points",
    series="batches",
    quantity="share of tests without a collision",
    remark=(
        "The uniform law collides least among all on as many points (gan.birthday.forward.least), so that it "
        "decides."
    ),
)
register(stated)
register(
    stated.other(
        title="No collision seen: a limit for the effective support",
        statement=(
            "If 1/Σ p_i² is the limit N_low with Π_{k<M}(1 − k/N_low) = α^{1/B}, then B batches of M pass "
            "without a collision with probability at most α."
        ),
        grid=tests_of(
            (60, 20, 1), (300, 20, 5), (1500, 100, 1), (7500, 100, 5), law="one atom", tests=400, trials=20
        ),
        quick=tests_of((60, 20, 1), (300, 20, 5), law="one atom", tests=100, trials=10),
        rule=MeanBelow(),
        expected="failed",
        remark=(
            "One atom of mass a in a diffuse rest has 1/Σ p_i² = 1/a², and is seen twice much less often "
            "than two of 1/a² equal points are: no collision says nothing of 1/Σ p_i²."
        ),
    )
)
