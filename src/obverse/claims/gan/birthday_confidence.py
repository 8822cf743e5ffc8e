"""The birthday test as it is done: a few batches, and what may be concluded from them with confidence.

And the mistakes that take the confidence away: no limit at all, a pool drawn with replacement or used again.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from ...diversity.bounds import effective_support_bound, lower_limit, support_at_least
from ..claim import Claim, grid
from ..registry import register
from ..results import Setting
from ..rules import HoldsIn, MeanBelow
from .points import BIRTHDAY, check, collided, draw, masses, rooms

CONFIDENCE = 0.95
SOURCE = f"{BIRTHDAY}, the bound on N from γ, at a lower limit of γ"


def one(setting: Setting) -> float:
    check(setting)
    return 1.0


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


def measure_coverage(setting: Setting, generator: torch.Generator) -> list[float]:
    """The true 1/Σ p_i² over its bound from the collisions in B batches: covered where it is at most 1."""
    chances = masses(setting)
    size, values = float(1 / chances.square().sum()), []
    for _ in range(setting["trials"]):
        seen = int(collided(drawn_batches(setting, chances, generator)).sum())
        values.append(size / bound_from(seen, setting["batches"], setting["samples"], setting["limit"]))
    return values


@lru_cache(maxsize=10_000)
def bound_from(collisions: int, batches: int, samples: int, limit: str) -> float:
    gamma = lower_limit(collisions, batches, CONFIDENCE) if limit == "lower" else collisions / batches
    return effective_support_bound(gamma, samples)


COVERED = "1/Σ p_i² ÷ its bound"
UNIFORM = ((100, 13), (1000, 38), (10_000, 118))  # γ near ½


def fresh(settings: tuple[Setting, ...]) -> tuple[Setting, ...]:
    """Tests as they should be: fresh batches, and the lower limit."""
    return tuple({**each, "source": "fresh", "limit": "lower"} for each in settings)


stated = Claim(
    id="gan.birthday.observed",
    twin="gan.birthday.confidence",
    title="The observed collision probability as γ",
    statement=(
        "If c of B batches had a collision, the bound at γ = c/B is at least 1/Σ p_i² in 95 % of such tests."
    ),
    source=f"{BIRTHDAY}: “suppose we have empirically found this minimum probability”",
    grid=rooms(*UNIFORM, law="uniform", source="fresh", limit="observed", batches=(10, 50), trials=1000),
    quick=rooms((100, 13), law="uniform", source="fresh", limit="observed", batches=(10, 50), trials=300),
    predict=one,
    measure=measure_coverage,
    rule=HoldsIn(share=CONFIDENCE),
    quantity=COVERED,
    axis="points",
    series="batches",
    expected="failed",
    remark="The observed share is above γ in half of all tests, and the bound too small in these.",
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
        reading="corrected",
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


def measure_none_seen(setting: Setting, generator: torch.Generator) -> list[float]:
    """How often B batches pass without a collision though the law is smaller than what is then concluded.

    `size` says what is `share` of the concluded number: the support, or 1/Σ p_i² of a law with one atom in a
    diffuse rest.
    """
    chances = none_seen_law(setting)
    batches, tests = setting["batches"], setting["tests"]
    shares = []
    for _ in range(setting["trials"]):
        seen = collided(draw(chances, (tests * batches, setting["samples"]), generator))
        shares.append(float((~seen.reshape(tests, batches).any(-1)).double().mean()))
    return shares


def none_seen_law(setting: Setting) -> Tensor:
    least = support_at_least(setting["samples"], setting["batches"], CONFIDENCE)
    if setting["size"] == "effective":
        return torch.tensor([(setting["share"] * least) ** -0.5], dtype=torch.float64)
    points = max(1, int(setting["share"] * least))
    return masses({"points": points, "samples": setting["samples"], "law": setting["law"], "heavy": 0.01})


def by_chance(setting: Setting) -> float:
    return 1 - CONFIDENCE


register(
    Claim(
        id="gan.birthday.none-seen.effective",
        twin="gan.birthday.none-seen",
        title="No collision seen: a limit for the effective support",
        statement=(
            "If 1/Σ p_i² is below the N_low with Π_{k<M}(1 − k/N_low) = 0.05^{1/B}, then B batches of M pass "
            "without a collision with probability at most 5 %."
        ),
        source=f"{BIRTHDAY}: the test the other way round, which the notes leave out",
        grid=grid(
            samples=(20, 100, 400),
            batches=(1, 5),
            law="one atom",
            size="effective",
            share=0.9,
            tests=400,
            trials=20,
        ),
        quick=grid(
            samples=(20, 100),
            batches=(1, 5),
            law="one atom",
            size="effective",
            share=0.9,
            tests=100,
            trials=10,
        ),
        predict=by_chance,
        measure=measure_none_seen,
        rule=MeanBelow(),
        reading="beyond the paper",
        expected="failed",
        remark=(
            "One atom of mass a in a diffuse rest has 1/Σ p_i² = 1/a², and is seen twice much less often "
            "than two of 1/a² equal points are: no collision says nothing of 1/Σ p_i²."
        ),
        axis="samples",
        series="batches",
        quantity="share of tests without a collision",
    )
)
register(
    Claim(
        id="gan.birthday.none-seen",
        twin="gan.birthday.none-seen.effective",
        title="No collision seen: a limit for the support",
        statement=(
            "On fewer than N_low points, Π_{k<M}(1 − k/N_low) = 0.05^{1/B}, B batches of M pass without a "
            "collision with probability at most 5 %: no collision means a support of at least N_low, with 95 "
            "% confidence."
        ),
        source=f"{BIRTHDAY}: the test the other way round, which the notes leave out",
        grid=grid(
            samples=(20, 100, 400),
            batches=(1, 5),
            law="uniform",
            size="support",
            share=0.85,
            tests=400,
            trials=20,
        )
        + grid(
            samples=(20, 100, 400),
            batches=(1, 5),
            law="atom",
            size="support",
            share=0.85,
            tests=400,
            trials=20,
        ),
        quick=grid(
            samples=(20, 100), batches=1, law="uniform", size="support", share=0.8, tests=400, trials=20
        ),
        predict=by_chance,
        measure=measure_none_seen,
        rule=MeanBelow(),
        reading="beyond the paper",
        axis="samples",
        series="batches",
        quantity="share of tests without a collision",
        remark="The uniform law collides least among all on as many points, so that it decides.",
    )
)
