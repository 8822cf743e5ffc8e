"""Appendix D and Lemma A.1's use of it: Orlicz norms, their centring, and Bernstein's inequality.

‖X‖_ψα is the c with E exp((|X|/c)^α) = 2. Of normal variables it is found by importance sampling, since the
mean of exp(X²/c²) has an infinite variance there.
"""

from __future__ import annotations

from collections.abc import Callable
from math import asin, exp, pi, sqrt

import torch
from torch import Tensor

from ..._core import BadInput
from .._claim import Claim, grid, measurement, per_trial
from .._registry import register
from .._rules import Equal, HoldsIn, MeanBelow
from ..results import Setting
from ._slips import PAPER

WIDER = 4.0  # standard deviation of the draws that stand for N(0, 1): its tails are what the norm is made of
CONSTANT = 0.5  # the c of Bernstein's inequality that is tried


def solve(excess: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function is 0, by bisection."""
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return (low + high) / 2


def check_k(setting: Setting) -> None:
    if not setting["k"] >= 1:
        raise BadInput("k ≥ 1", got=setting["k"], do="raise k")


@measurement("alm.orlicz.measure_normal")
@per_trial
def measure_normal(setting: Setting, generator: torch.Generator) -> float:
    """‖X‖_ψ2 ÷ √k of X ~ N(0, k), or of r(X) if `relu`, from so many weighted draws."""
    check_k(setting)
    g = WIDER * torch.randn(setting["draws"], generator=generator, dtype=torch.float64)
    weight = WIDER * torch.exp(g.square() / (2 * WIDER**2) - g.square() / 2)  # of N(0, 1) to what is drawn
    value = sqrt(setting["k"]) * (g.relu() if setting["relu"] else g)
    size = sqrt(setting["k"])

    def excess(c: float) -> float:
        return float((weight * torch.exp((value / c).square().clamp(max=600))).mean()) - 2

    return solve(excess, 1.42 * size, 10 * size) / size  # below √2 of it the mean is infinite


def printed(setting: Setting) -> float:
    check_k(setting)
    return 1.0


def norm_of_weight(setting: Setting) -> float:
    """(1 − 2/c²)^(−½) = 2."""
    check_k(setting)
    return sqrt(8 / 3)


def norm_of_input(setting: Setting) -> float:
    """½ + ½(1 − 2/c²)^(−½) = 2."""
    check_k(setting)
    return 1.5


def _normals(relu: bool) -> tuple[Setting, ...]:
    return grid(k=(1, 4, 25) if relu else 1, relu=relu, draws=40_000, trials=60)


WEIGHT = grid(k=1, relu=False, draws=(20_000, 40_000), trials=60)
stated = register(
    Claim(
        id="alm.lemmaA.1.weight",
        title="ψ₂ norm of a weight, as printed",
        statement="‖W_ji‖_ψ2 = 1 for W_ji ~ N(0, 1), by Definition 1.",
        source=f"{PAPER}, proof of Lemma A.1",
        place="“we have that ‖W_ji‖_ψ2 = 1”, Appendix A, proof of Lemma A.1, line 327",
        grid=WEIGHT,
        quick=WEIGHT[:1],
        predict=printed,
        measure=measure_normal,
        rule=Equal(),
        quantity="‖W_ji‖_ψ2",
        axis="draws",
        twin="alm.lemmaA.1.weight.corrected",
        expected="failed",
        remark="Its standard deviation is 1. The proof needs no more than a constant.",
    )
)

register(
    stated.other(
        title="ψ₂ norm of a weight",
        statement="‖W_ji‖_ψ2 = √(8/3) for W_ji ~ N(0, 1), by Definition 1.",
        source=f"{PAPER}, proof of Lemma A.1, by Definition 1",
        predict=norm_of_weight,
        reading="corrected",
    )
)

stated = register(
    Claim(
        id="alm.lemmaA.1.input",
        title="ψ₂ norm of an input, as printed",
        statement="‖x_j‖_ψ2 ≤ √k for x_j = r(Σ_ℓ W_jℓ h_ℓ) and ‖h‖² = k, by Definition 1.",
        source=f"{PAPER}, proof of Lemma A.1",
        place="“‖x_j‖_ψ2 ≤ √k”, Appendix A, proof of Lemma A.1, line 327",
        grid=_normals(relu=True),
        quick=_normals(relu=True)[:1],
        predict=printed,
        measure=measure_normal,
        rule=MeanBelow(),
        quantity="‖x_j‖_ψ2 ÷ √k",
        axis="k",
        twin="alm.lemmaA.1.input.corrected",
        expected="failed",
        remark="O(√k) is what the proof needs, and what holds.",
    )
)

register(
    stated.other(
        title="ψ₂ norm of an input",
        statement="‖x_j‖_ψ2 = (3/2)√k for x_j = r(Σ_ℓ W_jℓ h_ℓ) and ‖h‖² = k, by Definition 1.",
        source=f"{PAPER}, proof of Lemma A.1, by Definition 1",
        predict=norm_of_input,
        rule=Equal(),
        reading="corrected",
    )
)


def check_law(setting: Setting) -> None:
    if not (setting["alpha"] >= 1 and setting["values"] >= 2):
        raise BadInput("α ≥ 1 and two values or more", got=dict(setting), do="raise them")


def orlicz(values: Tensor, chances: Tensor, alpha: float) -> float:
    """‖X‖_ψα of a law on finitely many values; 0 of X = 0."""
    size = values.abs()
    largest = float(size.max())
    if largest == 0:
        return 0.0

    def excess(c: float) -> float:
        return float((chances * torch.expm1((size / c).pow(alpha).clamp(max=600))).sum()) - 1

    return solve(excess, largest / 25, 10 * largest)


@measurement("alm.orlicz.measure_centred")
@per_trial
def measure_centred(setting: Setting, generator: torch.Generator) -> float:
    """‖X − E X‖_ψα ÷ ‖X‖_ψα of a random law on so many values."""
    check_law(setting)
    count = setting["values"]
    chances = torch.rand(count, generator=generator, dtype=torch.float64) ** setting["skew"]
    chances = chances / chances.sum()
    values = torch.randn(count, generator=generator, dtype=torch.float64)
    centred = values - (chances * values).sum()
    return orlicz(centred, chances, setting["alpha"]) / orlicz(values, chances, setting["alpha"])


def twice(setting: Setting) -> float:
    check_law(setting)
    return 2.0


register(
    Claim(
        id="alm.lemmaD.2",
        title="Centring a variable",
        statement="For α ≥ 1, X − E X has at most twice the ψ_α norm of X.",
        source=f"{PAPER}, Lemma D.2",
        place="“X − E[X] has ψ_α orlicz norm at most 2a”, Appendix D, Lemma D.2, line 581",
        grid=grid(alpha=(1.0, 1.5, 2.0), values=(2, 3, 10), skew=(1.0, 8.0), trials=110),
        quick=grid(alpha=(1.0, 2.0), values=3, skew=8.0, trials=110),
        predict=twice,
        measure=measure_centred,
        rule=HoldsIn(),
        quantity="‖X − E X‖_ψα ÷ ‖X‖_ψα",
        axis="values",
        series="alpha",
        remark=(
            "Random laws on a few values, some with nearly all of their mass on one. Below α = 1 the "
            "definition is not that of the lemma's proof, which needs ψ_α to be convex."
        ),
    )
)

LAWS = ("Laplace", "exponential − 1", "product of two normals")


def check_sum(setting: Setting) -> None:
    if setting["law"] not in LAWS or setting["n"] < 1 or not setting["z"] > 0:
        raise BadInput(f"a law out of {', '.join(LAWS)}, n ≥ 1, z > 0", got=dict(setting), do="correct it")


def _norm(law: str) -> float:
    """‖X‖_ψ1 of one term."""
    if law == "Laplace":  # E exp(|X|/c) = c/(c − 1)
        return 2.0
    if law == "product of two normals":

        def excess(c: float) -> float:  # E exp(|gg′|/c) = (1 − u²)^(−½)·(1 + (2/π) arcsin u), u = 1/c
            u = 1 / c
            return float((1 + 2 / pi * asin(u)) / sqrt(1 - u * u)) - 2

        return solve(excess, 1.0001, 10.0)

    def other(c: float) -> float:  # ∫₀^∞ exp(|x − 1|/c − x) dx
        below = (exp(1 / c) - exp(-1)) / (1 + 1 / c)
        return below + exp(-1) * c / (c - 1) - 2

    return solve(other, 1.0001, 10.0)


@measurement("alm.orlicz.measure_sum")
@per_trial
def measure_sum(setting: Setting, generator: torch.Generator) -> float:
    """How often |Σ X_i| > z·√n, over a batch of sums of n terms."""
    check_sum(setting)
    shape = (setting["batch"], setting["n"])

    def exponential() -> Tensor:
        return -torch.log1p(-torch.rand(shape, generator=generator, dtype=torch.float64))

    if setting["law"] == "Laplace":
        terms = exponential() - exponential()
    elif setting["law"] == "exponential − 1":
        terms = exponential() - 1
    else:
        first, second = torch.randn(2, *shape, generator=generator, dtype=torch.float64)
        terms = first * second
    return float((terms.sum(1).abs() > setting["z"] * sqrt(setting["n"])).double().mean())


def bernstein(setting: Setting) -> float:
    """2·exp(−c·min(t²/(n v̄), t/M)) with v̄ = M², M = ‖X_i‖_ψ1 and t = z√n."""
    check_sum(setting)
    norm, t = _norm(setting["law"]), setting["z"] * sqrt(setting["n"])
    return 2 * exp(-CONSTANT * min(t**2 / (setting["n"] * norm**2), t / norm))


def _sums(batch: int, trials: int) -> tuple[Setting, ...]:
    return grid(law=LAWS, n=(1, 10, 100), z=(2.0, 4.0, 6.0), batch=batch, trials=trials)


register(
    Claim(
        id="alm.thmD.1",
        title="Bernstein's inequality",
        statement=(
            "For n independent centred terms P(|Σ X_i| > t) ≤ 2·exp(−c·min(t²/(n v̄), t/M)) with M = "
            "‖X_i‖_ψ1 and v̄ = M², here with c = ½."
        ),
        source=f"{PAPER}, Theorem D.1, which leaves c open",
        place="“2 exp(−c min(t²/(n v̄), t/M))”, Appendix D, Theorem D.1, lines 577 to 579",
        grid=_sums(2000, 50),
        quick=_sums(500, 20)[:9:2],
        predict=bernstein,
        measure=measure_sum,
        rule=MeanBelow(),
        quantity="P(|Σ X_i| > z√n)",
        axis="n",
        series="law",
        remark="Of three laws: two-sided exponential, one-sided, and the products that ĥ_i is made of.",
    )
)
