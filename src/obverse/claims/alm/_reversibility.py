"""Theorem 2.3 with its quantifiers: one W and one offset for many h. Not its closed form, nor its proof."""

from __future__ import annotations

from math import log, sqrt

import torch
from torch import Tensor

from .._claim import Claim, measurement
from .._rates import Along, Exponent, NotGrowing
from .._registry import register
from ..results import Setting
from ._conditions import check_layer
from ._one_weight import recover_with_one_offset

SOURCE = "Arora, Liang & Ma 2015, Theorem 2.3, eq. 9"
ERROR = "‖r(Wᵀx − θ) − h‖² / ‖h‖²"


def sparsity_ratio(setting: Setting) -> float:
    check_layer(setting)
    return float(setting["k"] / setting["t"])


def rate(setting: Setting) -> float:
    """Õ(k/t) with the logarithm that the proof's δ² brings."""
    return sparsity_ratio(setting) * log(setting["m"])


@measurement("alm.reversibility.recover")
def recover(setting: Setting, generator: torch.Generator) -> Tensor:
    """Relative error of fresh h under one W, with the θ found on other h under that W."""
    return recover_with_one_offset(setting, generator)


def inside(kept: tuple[int, ...], weights: int, trials: int) -> tuple[Setting, ...]:
    """k = 2√t, so that k < t < k² while k/t falls; m = 5k, so that W grows with them; ρ = 0.8."""
    return tuple(
        {"n": 5 * t // 4, "m": 5 * k, "k": k, "t": t, "law": "half-normal", "weights": at, "trials": trials}
        for t in kept
        for k in [round(2 * sqrt(t))]
        for at in range(weights)
    )


def at_sparsity(
    k: int, m: int, kept: tuple[int, ...], law: str, weights: int, trials: int
) -> tuple[Setting, ...]:
    return tuple(
        {"n": 5 * t // 4, "m": m, "k": k, "t": t, "law": law, "weights": at, "trials": trials}
        for t in kept
        for at in range(weights)
    )


DECADES = (2_000, 6_000, 20_000, 60_000, 200_000)

thm2_3 = register(
    Claim(
        id="alm.thm2.3",
        title="One layer is reversible",
        statement=(
            "For k < t < k² and each of several W ~ N(0, 1)^{n×m} there is one offset −θ for all h such that "
            "‖r(Wᵀx − θ) − h‖² ≤ Õ(k/t)·‖h‖², read as: the mean over fresh h, divided by (k/t)·ln m, does "
            "not grow with t."
        ),
        source=SOURCE,
        place="“‖r(Wᵀx + b) − h‖² ≤ Õ(k/t)·‖h‖²”, Section 2.2, Theorem 2.3, eq. 9, lines 115 to 117",
        grid=inside((900, 2_800, 9_000, 28_000, 90_000), 3, 100),
        quick=inside((900, 2_800, 9_000), 3, 100),
        predict=rate,
        measure=recover,
        rule=NotGrowing(Along("t"), confidence=0.999),
        quantity=ERROR,
        axis="t",
        series="weights",
        remark=(
            "θ is found by search on 40 other draws of h under the same W; k = 2√t, so that the condition "
            "k < t < k² holds all along."
        ),
    )
)

thm2_3_exponent = register(
    thm2_3.also(
        id="alm.thm2.3.exponent",
        title="The error falls as k/t",
        statement=(
            "With k equal non-zeros and the best uniform offset, the mean of ‖r(Wᵀx − θ) − h‖² / ‖h‖² is "
            "proportional to the first power of k/t, over two decades of t below k/t = 0.02."
        ),
        grid=at_sparsity(40, 400, DECADES, "equal", 3, 100),
        quick=at_sparsity(40, 400, (2_000, 6_000, 20_000), "equal", 3, 100),
        predict=sparsity_ratio,
        rule=Exponent(Along("k/t", of=sparsity_ratio), confidence=0.999),
        reading="beyond the paper",
        remark=(
            "The theorem is a bound; that it is sharp shows where every non-zero of h stands above the "
            "noise: then the best θ√t/‖h‖ is a constant of m/k alone."
        ),
    )
)

register(
    thm2_3_exponent.also(
        id="alm.thm2.3.exponent.gaussian",
        title="The error falls as k/t, for half-normal non-zeros",
        statement=(
            "With k half-normal non-zeros and the best uniform offset, the mean of ‖r(Wᵀx − θ) − h‖² / ‖h‖² "
            "is proportional to the first power of k/t, over two decades of t below k/t = 0.02."
        ),
        grid=at_sparsity(40, 400, DECADES, "half-normal", 6, 100),
        quick=at_sparsity(40, 400, (2_000, 6_000, 20_000), "half-normal", 3, 100),
        rule=Exponent(Along("k/t", of=sparsity_ratio), confidence=0.999, resolution=0.02),
        expected="failed",
        remark=(
            "The entries of h below the noise are lost, and cost less than the threshold would: their share "
            "falls as √(k/t), so that the local exponent creeps up to 1 from below. The bound is untouched."
        ),
    )
)
