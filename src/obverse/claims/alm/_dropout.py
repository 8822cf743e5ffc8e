"""Theorem 2.4: the same with half of x dropped. In closed form it is Theorem 2.3 with half of t."""

from __future__ import annotations

from math import sqrt

import torch
from torch import Tensor

from .._claim import Claim, measurement, per_trial
from .._rates import Along, NotGrowing
from .._registry import register
from ..results import Setting
from ._closed_form import DRAWS, NORMAL_ENOUGH, at_thresholds, expected_error
from ._one_weight import errors_at, infer_many, recover_with_one_offset
from ._reversibility import inside, rate

SOURCE = "Arora, Liang & Ma 2015, Theorem 2.4, eq. 10"
ERROR = "‖r(2Wᵀx_drop − θ) − h‖² / ‖h‖²"


@measurement("alm.dropout.recover_from_half")
def recover_from_half(setting: Setting, generator: torch.Generator) -> Tensor:
    """Relative error of fresh h under one W from half of x, with the θ found on other h under that W."""
    return recover_with_one_offset(setting, generator, drop=0.5)


@measurement("alm.dropout.error_from_half")
@per_trial
def error_from_half(setting: Setting, generator: torch.Generator) -> float:
    """Mean relative error from half of x at θ = `theta`·‖h‖/√t, for each of so many W (`trials`)."""
    threshold = setting["theta"] / sqrt(setting["t"])
    h, inferred = infer_many(setting, generator, DRAWS, drop=0.5)
    return float(errors_at(inferred, h, threshold).mean())


def expected_from_half(setting: Setting) -> float:
    return expected_error({**setting, "t": setting["t"] / 2, "theta": setting["theta"] / sqrt(2)})


register(
    Claim(
        id="alm.thm2.4",
        title="Reversible with half of x dropped",
        statement=(
            "For k < t < k² and each of several W there is one offset −θ for all h such that half of x is "
            "enough: ‖r(2Wᵀx_drop − θ) − h‖² ≤ Õ(k/t)·‖h‖², read as: the mean over fresh h, divided by "
            "(k/t)·ln m, does not grow with t."
        ),
        source=SOURCE,
        place="“‖r(2Wᵀx^drop + b') − h‖² ≤ Õ(k/t)·‖h‖²”, Section 2.2, Theorem 2.4, eq. 10, lines 122 to 124",
        grid=inside((900, 2_800, 9_000, 28_000, 90_000), 3, 100),
        quick=inside((900, 2_800, 9_000), 3, 100),
        predict=rate,
        measure=recover_from_half,
        rule=NotGrowing(Along("t"), confidence=0.999),
        quantity=ERROR,
        axis="t",
        series="weights",
    )
)

# t/2 is what the normal approximation must be good for: from 500 on as in Theorem 2.3
register(
    Claim(
        id="alm.thm2.4.closed",
        title="Half of x is half of t",
        statement=(
            "With half of x dropped, the expected error at every θ ≥ 0 is that of Theorem 2.3's closed form "
            "with t/2 in place of t, within 3 % for t ≥ 1000."
        ),
        source=SOURCE,
        grid=at_thresholds([(20, 1_000), (80, 1_000), (60, 4_000)], (0.0, 1.5, 3.0, 5.0), 120),
        quick=at_thresholds([(20, 1_000)], (0.0, 3.0), 40),
        predict=expected_from_half,
        measure=error_from_half,
        rule=NORMAL_ENOUGH,
        quantity=ERROR,
        axis="theta",
        series="law",
        reading="beyond the paper",
        remark="theta is θ√t/‖h‖, t before dropping.",
    )
)
