"""Lemma B.1: mean and second moment of w·r(wh + ξ), the term that ĥ_i is a sum of."""

from __future__ import annotations

from math import log

import numpy as np
import torch

from ..._core import BadInput
from .._claim import Claim, grid, measurement, per_trial
from .._registry import register
from .._rules import Equal, MeanBelow
from ..results import Setting
from ._stratified import normal_points, widened

SOURCE = "Arora, Liang & Ma 2015, Lemma B.1"


def check_noise(setting: Setting) -> None:
    if not setting["sigma"] > 0:
        raise BadInput("σ > 0, the spread of the noise ξ (Lemma B.1)", got=setting["sigma"], do="raise sigma")
    if not setting["h"] >= 0:
        raise BadInput("h ≥ 0: it stands behind a ReLU (eq. 8)", got=setting["h"], do="raise h")


def check_lemma(setting: Setting) -> None:
    check_noise(setting)
    if setting["h"] > log(setting["sigma"]) + 1e-4:  # settings give h to four digits
        raise BadInput(
            "h ≤ log σ (the condition of Lemma B.1)",
            got=f"h = {setting['h']}, log σ = {log(setting['sigma']):.4g}",
            do="lower h or raise sigma",
        )


def _moment(setting: Setting, power: int, generator: torch.Generator) -> float:
    """E[(w·r(wh + ξ))^power], over one Latin hypercube.

    w and ξ are independent and symmetric, so that all four combinations of their signs are averaged over.
    Plain draws would need about (σ⁴)² of them to see σ⁻³.
    """
    h, sigma = setting["h"], setting["sigma"]
    points = normal_points(setting["points"], 2, generator)
    w, weights = widened(points[:, 0])
    noise = sigma * points[:, 1]
    four = [(a * np.maximum(a * h + b, 0.0)) ** power for a in (w, -w) for b in (noise, -noise)]
    return float((weights * sum(four)).mean() / 4)


@measurement("alm.lemma_b1.measure_mean")
@per_trial
def measure_mean(setting: Setting, generator: torch.Generator) -> float:
    check_noise(setting)
    return _moment(setting, 1, generator)


@measurement("alm.lemma_b1.measure_deviation")
@per_trial
def measure_deviation(setting: Setting, generator: torch.Generator) -> float:
    """|E[w·r(wh + ξ)] − h/2|; the error of each estimate adds to it."""
    check_lemma(setting)
    return float(abs(_moment(setting, 1, generator) - setting["h"] / 2))


@measurement("alm.lemma_b1.measure_square")
@per_trial
def measure_square(setting: Setting, generator: torch.Generator) -> float:
    check_noise(setting)
    return _moment(setting, 2, generator)


def third_power(setting: Setting) -> float:
    check_lemma(setting)
    return float(setting["sigma"] ** -3)


def half(setting: Setting) -> float:
    """Stein's lemma: E[w·r(wh + ξ)] = h·P(wh + ξ > 0)."""
    check_noise(setting)
    return float(setting["h"] / 2)


def square_bound(setting: Setting) -> float:
    check_lemma(setting)
    return float(3 * setting["h"] ** 2 + setting["sigma"] ** 2)


def square(setting: Setting) -> float:
    """r(s)² + r(−s)² = s² and −s is distributed as s: half of the moment without ReLU."""
    check_noise(setting)
    return float((3 * setting["h"] ** 2 + setting["sigma"] ** 2) / 2)


def _within(sigmas: tuple[int, ...], points: int, trials: int) -> tuple[Setting, ...]:
    """h = ½ log σ and log σ, as far as the lemma goes, to four digits."""
    return tuple(
        {
            "sigma": sigma,
            "h": round(share * log(sigma), 4),
            "share": share,
            "points": points,
            "trials": trials,
        }
        for sigma in sigmas
        for share in ((0.5, 1.0) if sigma > 1 else (1.0,))
    )


ANYWHERE = grid(sigma=(1, 2, 5, 10, 20, 50, 100), h=(0.2, 1.0, 4.0, 20.0), points=2**12, trials=50)
ANYWHERE_QUICK = grid(sigma=(1, 10, 100), h=(0.2, 1.0, 4.0), points=2**12, trials=20)

register(
    Claim(
        id="alm.lemmaB.1.mean",
        title="Mean of one term: bound",
        statement=(
            "For w ~ N(0, 1), ξ ~ N(0, σ²) and 0 ≤ h ≤ log σ, |E[w·r(wh + ξ)] − h/2| ≤ σ⁻³ "
            "(the paper's Õ(σ⁻³), with constant 1)."
        ),
        source=SOURCE,
        place="“E[w·r(wh + ξ)] = h/2 ± Õ(1/σ³)”, Appendix B, Lemma B.1, line 364",
        grid=_within((1, 2, 5, 10, 20), 2**13, 100) + _within((50, 100), 2**17, 100),  # σ⁻³ asks for them
        quick=_within((1, 10), 2**13, 60) + _within((100,), 2**17, 40),
        predict=third_power,
        measure=measure_deviation,
        rule=MeanBelow(),
        quantity="|E[w·r(wh + ξ)] − h/2|",
        axis="sigma",
        series="share",
        twin="alm.lemmaB.1.mean.exact",
        remark=(
            "The deviation is exactly 0: what is measured is the error of the simulation, which must be "
            "below the bound."
        ),
    )
)

register(
    Claim(
        id="alm.lemmaB.1.mean.exact",
        title="Mean of one term",
        statement=(
            "For w ~ N(0, 1) and ξ ~ N(0, σ²), E[w·r(wh + ξ)] = h/2 exactly, for every σ and every h ≥ 0."
        ),
        source=f"{SOURCE}; by Stein's lemma",
        grid=ANYWHERE,
        quick=ANYWHERE_QUICK,
        predict=half,
        measure=measure_mean,
        rule=Equal(),
        quantity="E[w·r(wh + ξ)]",
        axis="sigma",
        series="h",
        reading="exact",
        twin="alm.lemmaB.1.mean",
        remark="Neither σ = Ω(1) nor h ≤ log σ is needed.",
    )
)

register(
    Claim(
        id="alm.lemmaB.1.square",
        title="Second moment of one term: bound",
        statement="For w ~ N(0, 1), ξ ~ N(0, σ²) and 0 ≤ h ≤ log σ, E[w²·r(wh + ξ)²] ≤ 3h² + σ².",
        source=SOURCE,
        place="“E[w²·r(wh + ξ)²] ≤ 3h² + σ²”, Appendix B, Lemma B.1, line 364",
        grid=_within((1, 2, 5, 10, 20, 50, 100), 2**13, 50),
        quick=_within((1, 10, 100), 2**12, 20),
        predict=square_bound,
        measure=measure_square,
        rule=MeanBelow(),
        quantity="E[w²·r(wh + ξ)²]",
        axis="sigma",
        series="share",
        twin="alm.lemmaB.1.square.exact",
        remark="True, and twice too large.",
    )
)

register(
    Claim(
        id="alm.lemmaB.1.square.exact",
        title="Second moment of one term",
        statement=(
            "For w ~ N(0, 1) and ξ ~ N(0, σ²), E[w²·r(wh + ξ)²] = (3h² + σ²)/2 exactly, for every σ and "
            "every h ≥ 0."
        ),
        source=f"{SOURCE}; half of the printed bound",
        grid=ANYWHERE,
        quick=ANYWHERE_QUICK,
        predict=square,
        measure=measure_square,
        rule=Equal(),
        quantity="E[w²·r(wh + ξ)²]",
        axis="sigma",
        series="h",
        reading="exact",
        twin="alm.lemmaB.1.square",
    )
)
