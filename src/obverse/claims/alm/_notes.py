"""Statements of the notes that stand in no theorem of the paper: WᵀW, m < n, and what their lemmas lost.

Not for slips that only the symbols have (see slips).
"""

from __future__ import annotations

from math import log, pi, sqrt

import torch
from torch import Tensor

from .._claim import Claim, grid, measurement, per_trial
from .._rates import Along, NotGrowing
from .._registry import register
from .._rules import Equal, MeanBelow
from ..results import Setting
from ._conditions import check_layer
from ._layer import fresh_weights
from ._lemma_b1 import check_noise
from ._one_weight import recover_with_one_offset
from ._slips import NOTES, PAPER

TRACY_WIDOM = -1.2065335745820  # the mean of the law of the largest eigenvalue, real matrices


@measurement("alm.notes.measure_gram")
@per_trial
def measure_gram(setting: Setting, generator: torch.Generator) -> float:
    """‖WᵀW/s − I‖₂, s = 1 or n, one W ~ N(0, 1)^{n×m} a trial."""
    check_layer(setting)
    weights = torch.randn(setting["n"], setting["m"], generator=generator, dtype=torch.float64)
    gram = weights.T @ weights / (setting["n"] if setting["divided"] else 1)
    values: Tensor = torch.linalg.eigvalsh(gram) - 1
    return float(values.abs().max())


def small(setting: Setting) -> float:
    """Below 1, so that WᵀW is nearer to I than 0 is."""
    check_layer(setting)
    return 1.0


def spectral_edge(setting: Setting) -> float:
    """2√(m/n) + m/n, with what is finite of it: centre and width of the largest eigenvalue of WᵀW."""
    check_layer(setting)
    n, m = setting["n"], setting["m"]
    roots = sqrt(n - 1) + sqrt(m)
    width = roots * (1 / sqrt(n - 1) + 1 / sqrt(m)) ** (1 / 3)
    return float((roots**2 + TRACY_WIDOM * width) / n - 1)


stated = register(
    Claim(
        id="alm.notes.gram",
        title="WᵀW is near the identity, as the notes have it",
        statement="For W with N(0, 1) entries and m < n, ‖WᵀW − I‖₂ is small: below 1.",
        source=f"{NOTES}, one-layer model",
        place="“the transpose is like an inverse, because ‖WᵀW − I‖₂ will be small”, notes, line 72",
        grid=grid(n=(400, 1600), m=(20, 100), divided=False, trials=20),
        quick=grid(n=200, m=(10, 40), divided=False, trials=10),
        predict=small,
        measure=measure_gram,
        rule=MeanBelow(),
        quantity="‖WᵀW − I‖₂",
        axis="m",
        series="n",
        twin="alm.notes.gram.corrected",
        expected="failed",
        remark="The 1/n is missing: ‖WᵀW − I‖₂ is about n. With it, 2√(m/n) + m/n is small where m ≪ n.",
    )
)

register(
    stated.other(
        title="How near WᵀW/n is to the identity",
        statement=(
            "‖WᵀW/n − I‖₂ is 2√(m/n) + m/n on average, up to the mean −1.2065·(√n + √m)(1/√n + 1/√m)^⅓/n of "
            "the Tracy–Widom law: above 1 from m = 0.18n on."
        ),
        source=f"{NOTES}, one-layer model, with 1/n; Johnstone 2001",
        grid=grid(n=(400, 1600), m=(20, 100, 300), divided=True, trials=40),
        quick=grid(n=200, m=(20, 100), divided=True, trials=150),
        predict=spectral_edge,
        rule=Equal(tolerance=0.01),  # Johnstone's centre and width are good to about m^(−2/3) of the width
        reading="corrected",
        quantity="‖WᵀW/n − I‖₂",
    )
)


@measurement("alm.notes.measure_baby")
@per_trial
def measure_baby(setting: Setting, generator: torch.Generator) -> float:
    """‖WᵀWh/s − h‖∞ for h of m/2 ones, s = 1 or n, one W a trial."""
    check_layer(setting)
    weights = torch.randn(setting["n"], setting["m"], generator=generator, dtype=torch.float64)
    h = torch.zeros(setting["m"], dtype=torch.float64)
    h[: setting["m"] // 2] = 1.0
    found = weights.T @ (weights @ h) / (setting["n"] if setting["divided"] else 1)
    return float((found - h).abs().max())


def baby_rate(setting: Setting) -> float:
    check_layer(setting)
    n, m = setting["n"], setting["m"]
    return log(m * n) * sqrt(m / n)


LONGER = {"m": 20, "divided": False, "trials": 400}
stated = register(
    Claim(
        id="alm.notes.baby",
        title="Baby theorem, as printed",
        statement=(
            "For h ∈ {0,1}^m and W with N(0, 1) entries ‖WᵀWh − h‖∞ ≤ C·ln(mn)·√(m/n): its ratio to this "
            "rate does not grow with n."
        ),
        source=f"{NOTES}, baby theorem",
        place="“‖WᵀWh − h‖_∞ ≤ C ln(mn)√(m/n)”, notes, baby theorem, line 90",
        grid=tuple({"n": n, **LONGER} for n in (100, 200, 400, 800, 1600, 3200)),
        quick=tuple({"n": n, **LONGER} for n in (50, 100, 200, 400, 800)),
        predict=baby_rate,
        measure=measure_baby,
        rule=NotGrowing(Along("n")),
        quantity="‖WᵀWh − h‖∞",
        axis="n",
        twin="alm.notes.baby.corrected",
        expected="failed",
        remark="The model above it has x = Wh/n; without the 1/n the error grows as n, as WᵀWh does.",
    )
)

register(
    stated.other(
        title="Baby theorem, with its 1/n",
        statement=(
            "For h ∈ {0,1}^m and W with N(0, 1) entries ‖WᵀWh/n − h‖∞ ≤ C·ln(mn)·√(m/n): its ratio to this "
            "rate does not grow with n."
        ),
        source=f"{NOTES}, baby theorem, with the 1/n of the model above it",
        grid=tuple({**setting, "divided": True} for setting in stated.grid),
        quick=tuple({**setting, "divided": True} for setting in stated.quick),
        reading="corrected",
        quantity="‖WᵀWh/n − h‖∞",
    )
)


@measurement("alm.notes.measure_wider")
@per_trial
def measure_wider(setting: Setting, generator: torch.Generator) -> float:
    """‖Wᵀx − h‖∞ for ‖h‖ = 1 and t inputs kept, with m units."""
    check_layer(setting)
    h = torch.zeros(setting["m"], dtype=torch.float64)
    h[: setting["k"]] = setting["k"] ** -0.5
    found = fresh_weights(h, setting["n"], setting["t"] / setting["n"], 1, generator)
    return float((found - h).abs().max())


def by_units(setting: Setting) -> float:
    check_layer(setting)
    return sqrt(log(setting["m"]) / setting["m"])


def by_inputs(setting: Setting) -> float:
    check_layer(setting)
    return sqrt(log(setting["m"]) / setting["t"])


WIDER = tuple({"n": 200, "m": m, "k": 10, "t": 80, "trials": 400} for m in (30, 60, 120, 250, 500, 1000))
stated = register(
    Claim(
        id="alm.notes.delta",
        title="δ of Lemma 2.5, as the notes have it",
        statement=(
            "‖Wᵀx − h‖∞ ≤ δ‖h‖ with δ = Õ(1/√m): its ratio to √(ln m / m) does not grow with m, at fixed t."
        ),
        source=f"{NOTES}, Lemma 2.5, with ‖h‖ for ‖h‖²",
        place="“For δ = Õ(1/√m)”, notes, Lemma 2.5, line 118",
        grid=WIDER,
        quick=WIDER[:5],
        predict=by_units,
        measure=measure_wider,
        rule=NotGrowing(Along("m")),
        quantity="‖Wᵀx − h‖∞, ‖h‖ = 1",
        axis="m",
        twin="alm.notes.delta.corrected",
        expected="failed",
        remark="More units do not make each one more exact: only the t inputs that are kept do.",
    )
)

register(
    stated.other(
        title="δ of Lemma 2.5",
        statement=(
            "‖Wᵀx − h‖∞ ≤ δ‖h‖ with δ = Õ(1/√t): its ratio to √(ln m / t) does not grow with m, at fixed t."
        ),
        source=f"{PAPER}, Lemma 2.5, eq. 11",
        predict=by_inputs,
        reading="corrected",
    )
)


@measurement("alm.notes.measure_recovered_share")
def measure_recovered_share(setting: Setting, generator: torch.Generator) -> Tensor:
    """1 − ‖r(Wᵀx − θ) − h‖²/‖h‖² for so many h under one W, at the uniform θ that is best on other h."""
    return 1 - recover_with_one_offset(setting, generator)


def half_of_it(setting: Setting) -> float:
    check_layer(setting)
    return 0.5


@measurement("alm.notes.measure_error")
def measure_error(setting: Setting, generator: torch.Generator) -> Tensor:
    """‖r(Wᵀx − θ) − h‖²/‖h‖² for so many h under one W, at the uniform θ that is best on other h."""
    return recover_with_one_offset(setting, generator)


def sparse_rate(setting: Setting) -> float:
    """3(k/t)·ln m, for ‖h‖ = 1."""
    check_layer(setting)
    return float(3 * setting["k"] / setting["t"] * log(setting["m"]))


def _more(n: int, k: int) -> tuple[Setting, ...]:
    shared = {"k": k, "t": n, "law": "equal", "trials": 60}
    return tuple({"n": n, "m": factor * n, **shared} for factor in (1, 2, 4))


stated = register(
    Claim(
        id="alm.notes.narrower",
        title="m < n, called necessary",
        statement=(
            "h can only be recovered from x where m < n, read as: for m ≥ n less than half of ‖h‖² is "
            "recovered by r(Wᵀx − θ), at the best θ."
        ),
        source=f"{NOTES}, one-layer model",
        place=(
            "“m < n … This is necessary if we want to be able to reconstruct h from x with high "
            "probability”, notes, one-layer model, line 51"
        ),
        grid=_more(500, 8),
        quick=_more(200, 4),
        predict=half_of_it,
        measure=measure_recovered_share,
        rule=MeanBelow(),
        quantity="1 − ‖r(Wᵀx − θ) − h‖²/‖h‖²",
        axis="m",
        twin="alm.notes.narrower.corrected",
        expected="failed",
        remark=(
            "What must be small is k/t, not m/n: the paper makes “no assumptions on how large m and n are "
            "except to require that k < t”."
        ),
    )
)

register(
    stated.other(
        title="More units than inputs",
        statement=(
            "For m = n, 2n and 4n alike ‖r(Wᵀx − θ) − h‖² ≤ 3(k/t)·ln m·‖h‖² on "
            "average over h, at the best θ."
        ),
        source=f"{PAPER}, Section 2.2, below eq. 6, and Theorem 2.3",
        predict=sparse_rate,
        measure=measure_error,
        quantity="‖r(Wᵀx − θ) − h‖²/‖h‖²",
        reading="corrected",
    )
)


@measurement("alm.notes.measure_no_square")
@per_trial
def measure_no_square(setting: Setting, generator: torch.Generator) -> float:
    """Mean of w²·r(wh + ξ) over so many draws."""
    check_noise(setting)
    w, g = torch.randn(2, setting["draws"], generator=generator, dtype=torch.float64)
    return float((w.square() * (setting["h"] * w + setting["sigma"] * g).relu()).mean())


def bound_of_square(setting: Setting) -> float:
    check_noise(setting)
    return float(3 * setting["h"] ** 2 + setting["sigma"] ** 2)


def without_square(setting: Setting) -> float:
    """(2h² + σ²)/√(2π(h² + σ²)), from E r(s)³ and E r(s) of s = wh + ξ."""
    check_noise(setting)
    h, sigma = setting["h"], setting["sigma"]
    return float((2 * h**2 + sigma**2) / sqrt(2 * pi * (h**2 + sigma**2)))


LEMMA = grid(h=(0.0, 0.5, 1.5), sigma=(1.0, 5.0), draws=2000, trials=60)
stated = register(
    Claim(
        id="alm.notes.technical",
        title="Technical lemma without its square",
        statement="For σ ≥ 1, E[w²·r(wh + ξ)] ≤ 3h² + σ².",
        source=f"{NOTES}, technical lemma",
        place="“E_{w,ξ}[w²·r(wh + ξ)] ≤ 3h² + σ²”, notes, technical lemma, line 141",
        grid=LEMMA,
        quick=LEMMA[::2],
        predict=bound_of_square,
        measure=measure_no_square,
        rule=MeanBelow(),
        quantity="E[w²·r(wh + ξ)]",
        axis="h",
        series="sigma",
        twin="alm.notes.technical.exact",
        remark=(
            "True, but of the wrong thing: one side scales as σ, the other as σ². The paper's lemma has the "
            "square, E[w²·r(wh + ξ)²] (alm.lemmaB.1.square)."
        ),
    )
)

register(
    stated.other(
        title="Technical lemma without its square, exactly",
        statement="E[w²·r(wh + ξ)] = (2h² + σ²)/√(2π(h² + σ²)) for w ~ N(0, 1) and ξ ~ N(0, σ²).",
        source=f"{NOTES}, technical lemma; the value is derived here",
        grid=grid(h=(0.0, 0.5, 1.5), sigma=(1.0, 5.0), draws=40_000, trials=60),
        quick=LEMMA[::2],
        predict=without_square,
        rule=Equal(),
        reading="exact",
    )
)
