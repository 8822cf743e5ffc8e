"""With high probability: Markov's step of Lemma 2.5's proof, and Theorem 2.3 for all but a few h and x.

The powers n⁻¹⁰ and n⁻⁵ themselves are beyond simulation.
"""

from __future__ import annotations

from math import log

import torch
from torch import Tensor

from ..._core import BadInput
from .._claim import Claim, grid, measurement, per_trial
from .._registry import register
from .._rules import HoldsIn, MeanBelow
from ..results import Setting
from ._conditions import check_layer
from ._one_weight import recover_with_one_offset
from ._slips import PAPER

LAWS = ("worst", "Beta", "two values")


def check_law(setting: Setting) -> None:
    if setting["law"] not in LAWS or not 0 < setting["epsilon"] < 1:
        raise BadInput(f"a law out of {', '.join(LAWS)}, 0 < ε < 1", got=dict(setting), do="correct it")


@measurement("alm.high_probability.measure_markov")
@per_trial
def measure_markov(setting: Setting, generator: torch.Generator) -> float:
    """P(p(W) ≥ ε)/ε over so many W whose chance of failure p(W) has the mean ε² by its law."""
    check_law(setting)
    epsilon, count = setting["epsilon"], setting["weights"]
    even = torch.rand(count, generator=generator, dtype=torch.float64)
    if setting["law"] == "worst":  # all that fails, fails for the same few W, which just reach ε
        chance = epsilon * (even < epsilon).double()
    elif setting["law"] == "Beta":  # of shape (a, 1), whose mean is a/(a + 1)
        shape = epsilon**2 / (1 - epsilon**2)
        chance = even ** (1 / shape)
    else:
        chance = 2 * epsilon * (even < epsilon / 2).double()
    return float((chance >= epsilon).double().mean() / epsilon)


def at_most_one(setting: Setting) -> float:
    """With room for four standard errors of so many weights at the worst law, where the bound is reached."""
    check_law(setting)
    return float(1 + 0.05)


def check_n(setting: Setting) -> None:
    if not setting["n"] >= 1:
        raise BadInput("n ≥ 1", got=setting["n"], do="raise n")


@measurement("alm.high_probability.measure_printed")
@per_trial
def measure_printed(setting: Setting, generator: torch.Generator) -> float:
    """2 − (1 − n^power): how much of a probability the bound 1 − n^power leaves, which is at most 2."""
    check_n(setting)
    return float(1 + float(setting["n"]) ** setting["power"])


def of_a_probability(setting: Setting) -> float:
    check_n(setting)
    return 2.0


POWERS = grid(n=(2, 10, 100), power=(5, 10), trials=2)
stated = register(
    Claim(
        id="alm.markov.printed",
        title="The probabilities of eq. 17, as printed",
        statement="1 − n¹⁰ and 1 − n⁵ are lower bounds of a probability that say something: at least 0.",
        source=f"{PAPER}, eq. 17 and below",
        place="“Pr_{x,h,W}[equation (9) holds] ≥ 1 − n^{10}”, Appendix A, eq. 17, lines 282 to 286",
        grid=POWERS,
        quick=POWERS[:2],
        predict=of_a_probability,
        measure=measure_printed,
        rule=MeanBelow(),
        quantity="1 + n^power",
        axis="n",
        series="power",
        expected="failed",
        remark=(
            "The minus signs of the exponents are lost, here and in Section 2.2: 1 − n¹⁰ is below 0 for n ≥ "
            "2, and every probability is above it. With 1 − n⁻¹⁰ and 1 − n⁻⁵ see alm.markov."
        ),
    )
)

register(
    Claim(
        id="alm.markov",
        title="Markov's step",
        statement=(
            "If something fails with probability ε² over W, h and x together, then only for a share ε of W "
            "does it fail with probability ε or more over h and x: with ε = n⁻⁵, the step from eq. 17 to "
            "the theorem."
        ),
        source=f"{PAPER}, below eq. 17, with n^(−10) and n^(−5)",
        grid=grid(law=LAWS, epsilon=(0.03, 0.1, 0.3), weights=20_000, trials=60),
        quick=grid(law=LAWS, epsilon=(0.1, 0.3), weights=10_000, trials=30),
        predict=at_most_one,
        measure=measure_markov,
        rule=MeanBelow(),
        quantity="P(p(W) ≥ ε)/ε",
        axis="epsilon",
        series="law",
        reading="corrected",
        remark="The worst law reaches 1; the bound is 1.05, to leave room for the error of the simulation.",
    )
)


@measurement("alm.high_probability.measure_each")
def measure_each(setting: Setting, generator: torch.Generator) -> Tensor:
    """‖r(Wᵀx − θ) − h‖²/‖h‖² of each of so many h and x under one W, at the θ that is best on other h."""
    return recover_with_one_offset(setting, generator)


def every_bound(setting: Setting) -> float:
    """4(k/t)·ln m: a third above what alm.notes.narrower.corrected allows the mean."""
    check_layer(setting)
    return float(4 * setting["k"] / setting["t"] * log(setting["m"]))


def _inside(law: str, *shapes: tuple[int, int, int], trials: int) -> tuple[Setting, ...]:
    return tuple({"n": 2 * t, "m": m, "k": k, "t": t, "law": law, "trials": trials} for k, t, m in shapes)


SHAPES = ((10, 60, 100), (20, 200, 300), (40, 800, 400), (80, 3000, 400))
register(
    Claim(
        id="alm.thm2.3.each",
        title="Theorem 2.3 for nearly every h and x",
        statement=(
            "For k < t < k², under one W and at the best uniform offset, ‖r(Wᵀx − θ) − h‖² ≤ "
            "4(k/t)·ln m·‖h‖² for at least 0.99 of h and x: not only on average."
        ),
        source=f"{PAPER}, Theorem 2.3, “with high probability over the choice of (h, x)”, with a constant",
        place="“with high probability over the choice of (h, x)”, Section 2.2, Theorem 2.3, line 115",
        grid=(*_inside("equal", *SHAPES, trials=600), *_inside("half-normal", *SHAPES, trials=600)),
        quick=_inside("equal", *SHAPES[:2], trials=540),
        predict=every_bound,
        measure=measure_each,
        rule=HoldsIn(share=0.99),
        quantity="‖r(Wᵀx − θ) − h‖²/‖h‖², each",
        axis="t",
        series="law",
        remark="One W for each setting. What is beyond simulation is the printed probability 1 − n⁻⁵ of W.",
    )
)
