"""The birthday paradox as a rule of thumb: 23 people, and a batch with duplicates squared. See birthday."""

from __future__ import annotations

from math import log, sqrt

import torch

from ..._core import BadInput
from .._claim import Claim, grid, measurement, per_trial
from .._registry import register
from .._rules import Equal
from ..results import Setting
from ._points import BIRTHDAY, check, collided, draw, masses


@measurement("gan.rule_of_thumb.measure_share")
@per_trial
def measure_share(setting: Setting, generator: torch.Generator) -> float:
    """The share of batches with two equal samples."""
    chances = masses(setting)
    batches = draw(chances, (setting["batches"], setting["samples"]), generator)
    return float(collided(batches).double().mean())


def even(setting: Setting) -> float:
    check(setting)
    return 0.5


def check_support(setting: Setting) -> None:
    if not (setting["points"] >= 2 and 0 < setting["gamma"] < 1):
        raise BadInput("two points or more, 0 < γ < 1", got=dict(setting), do="change one of them")


@measurement("gan.rule_of_thumb.measure_square")
@per_trial
def measure_square(setting: Setting, generator: torch.Generator) -> float:
    """s²/N, s the smallest batch of which a share γ has duplicates, from how long batches stay without."""
    check_support(setting)
    chances = masses({"samples": 2, "points": setting["points"]})
    longest = 2 + int(1.5 * sqrt(2 * setting["points"] * log(1 / (1 - setting["gamma"]))))
    rows = draw(chances, (setting["batches"], longest), generator)
    # the first sample that has been seen before, by the order in which equal samples stand
    order = torch.argsort(rows, dim=1, stable=True)
    ordered = rows.gather(1, order)
    again = (ordered[:, 1:] == ordered[:, :-1]).double()
    place = torch.where(again > 0, order[:, 1:].double(), torch.tensor(float("inf"), dtype=torch.float64))
    first = place.amin(1) + 1  # samples drawn when the first duplicate is there
    smallest = float(torch.quantile(first, setting["gamma"]))
    return float(smallest**2 / setting["points"])


def one(setting: Setting) -> float:
    check_support(setting)
    return 1.0


def rule(setting: Setting) -> float:
    check_support(setting)
    return 2 * log(1 / (1 - setting["gamma"]))


register(
    Claim(
        id="gan.birthday.23",
        title="Twenty-three people",
        statement="Among 23 people two share a birthday with a chance of 50 %.",
        source=f"{BIRTHDAY}, the birthday paradox",
        place=(
            "“In a room of just 23 people, there's a 50% chance of finding 2 people who share their "
            "birthday”, Generative adversarial networks, 3, line 188"
        ),
        grid=grid(points=365, samples=23, batches=20_000, trials=40),
        quick=grid(points=365, samples=23, batches=2000, trials=20),
        predict=even,
        measure=measure_share,
        rule=Equal(tolerance=0.02),  # 50.7 %, of which 50 % is the rounding
        quantity="share of rooms",
        axis="samples",
    )
)

SUPPORTS = grid(points=(2000, 10_000, 40_000), gamma=(0.5, 0.9), batches=3000, trials=20)
stated = register(
    Claim(
        id="gan.birthday.square",
        title="The smallest batch with duplicates, squared",
        statement=(
            "If s is the smallest batch that has duplicates with probability γ, here ½ or 0.9, the support "
            "has s² points."
        ),
        source=f"{BIRTHDAY}, below the birthday paradox",
        place=(
            "“almost guarantees that the distribution has support s²”, Generative adversarial networks, 3, "
            "line 192"
        ),
        grid=SUPPORTS,
        quick=tuple({**setting, "batches": 1000} for setting in SUPPORTS[:1]),
        predict=one,
        measure=measure_square,
        rule=Equal(tolerance=0.02),
        quantity="s²/N",
        axis="points",
        series="gamma",
        twin="gan.birthday.square.corrected",
        expected="failed",
        remark=(
            "s² is 1.4 N at γ = ½ and 4.6 N at γ = 0.9, for equal masses; for others it says something of "
            "1/Σp², and nothing of the support (gan.birthday.support)."
        ),
    )
)

register(
    stated.other(
        title="The smallest batch with duplicates, squared, by γ",
        statement=(
            "If s is the smallest batch that has duplicates with probability γ, then s²/(2 ln 1/(1 − γ)) is "
            "N for N equal points, within 2 %, from N = 2,000 on."
        ),
        source=f"{BIRTHDAY}, below the birthday paradox, with γ",
        grid=SUPPORTS,
        predict=rule,
        rule=Equal(tolerance=0.02),  # s is whole, and s² − s is not s²: 1/s, 1.9 % at s = 53
        reading="corrected",
    )
)
