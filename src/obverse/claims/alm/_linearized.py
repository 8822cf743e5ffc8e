"""The linearization of r(W_ji h_i + η_j), eqs 13 and 18: how often it is off, and the variance of W_ji x_j.

As in the sketch x_j = r(W_ji h_i + η_j) has no α here, and ‖h‖² = k. Not for sums over j (see moments).
"""

from __future__ import annotations

from math import atan2, pi, sqrt

import torch
from torch import Tensor

from ..._core import BadInput
from .._claim import Claim, grid, measurement, per_trial
from .._rates import Along, NotGrowing
from .._registry import register
from .._rules import Equal
from ..results import Setting
from ._slips import PAPER


def check_entry(setting: Setting) -> None:
    if not (setting["k"] >= 1 and 0 <= setting["h"] ** 2 < setting["k"]):
        raise BadInput("0 ≤ h_i² < ‖h‖² = k", got=dict(setting), do="lower h or raise k")


def _draw(setting: Setting, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """W_ji ~ N(0, 1) and η_j ~ N(0, k − h_i²), which a sum over the other units is."""
    check_entry(setting)
    w, g = torch.randn(2, setting["draws"], generator=generator, dtype=torch.float64)
    return w, sqrt(setting["k"] - setting["h"] ** 2) * g


def _wrong(w: Tensor, eta: Tensor, h: float) -> Tensor:
    """Where 1[η > 0]·(wh + r(η)) is not r(wh + η)."""
    linear = (eta > 0) * (w * h + eta.relu())
    return (linear - (w * h + eta).relu()).abs() > 1e-12 * (1 + eta.abs())  # rounding of two sums


@measurement("alm.linearized.measure_share")
@per_trial
def measure_share(setting: Setting, generator: torch.Generator) -> float:
    """How often the linearization is off."""
    w, eta = _draw(setting, generator)
    return float(_wrong(w, eta, setting["h"]).double().mean())


@measurement("alm.linearized.measure_elsewhere")
@per_trial
def measure_elsewhere(setting: Setting, generator: torch.Generator) -> float:
    """1 + the share of draws at which it is off though |η| > |wh|."""
    w, eta = _draw(setting, generator)
    off = _wrong(w, eta, setting["h"]) & (eta.abs() > (w * setting["h"]).abs())
    return 1 + float(off.double().mean())


@measurement("alm.linearized.measure_mean")
@per_trial
def measure_mean(setting: Setting, generator: torch.Generator) -> float:
    """Mean of w·1[η > 0]·(wh + r(η)); w and −w together, which have the same law."""
    w, eta = _draw(setting, generator)
    both = [sign * w * (eta > 0) * (sign * w * setting["h"] + eta.relu()) for sign in (1, -1)]
    return float(torch.stack(both).mean())


@measurement("alm.linearized.measure_variance")
@per_trial
def measure_variance(setting: Setting, generator: torch.Generator) -> float:
    """Unbiased sample variance of W_ji x_j."""
    w, eta = _draw(setting, generator)
    return float((w * (w * setting["h"] + eta).relu()).var())


def angle(setting: Setting) -> float:
    """The angle between η and wh + η, as normal variables, over π: how often their signs differ."""
    check_entry(setting)
    return atan2(setting["h"], sqrt(setting["k"] - setting["h"] ** 2)) / pi


def nowhere(setting: Setting) -> float:
    check_entry(setting)
    return 1.0


def half(setting: Setting) -> float:
    check_entry(setting)
    return float(setting["h"] / 2)


def root_rate(setting: Setting) -> float:
    check_entry(setting)
    return sqrt(setting["k"] / setting["t"])


def spread(setting: Setting) -> float:
    """(‖h‖² + 2h_i²)/2 − h_i²/4."""
    check_entry(setting)
    return float((setting["k"] + 2 * setting["h"] ** 2) / 2 - setting["h"] ** 2 / 4)


SHAPES = grid(k=(4, 25, 100), h=(0.5, 1.5), draws=4000, trials=100)
register(
    Claim(
        id="alm.eq13",
        title="Where the linearization is off",
        statement=(
            "1[η > 0]·(W_ji h_i + r(η)) differs from r(W_ji h_i + η) only where |η| ≤ |W_ji h_i|: the share "
            "of draws at which it does so elsewhere is 0."
        ),
        source=f"{PAPER}, below eqs 13 and 18",
        place=(
            "“this approximation is not accurate only when |η_j| ≤ |W_ji h_i|”, Section 2.2, below eq. 13, "
            "line 163, and Appendix A, line 298"
        ),
        grid=SHAPES,
        quick=SHAPES[:2],
        predict=nowhere,
        measure=measure_elsewhere,
        rule=Equal(),
        quantity="1 + share of draws",
        axis="k",
        series="h",
    )
)

register(
    Claim(
        id="alm.eq13.share",
        title="How often the linearization is off",
        statement=(
            "It is off with probability arctan(h_i/√(‖h‖² − h_i²))/π, half as often as |η| ≤ |W_ji h_i|: "
            "where the two have opposite signs."
        ),
        source=f"{PAPER}, below eq. 13: “relatively small probability”; the value is derived here",
        grid=tuple({**setting, "draws": 10_000} for setting in SHAPES),
        quick=SHAPES[:3],
        predict=angle,
        measure=measure_share,
        rule=Equal(),
        quantity="share of draws",
        axis="k",
        series="h",
        reading="exact",
    )
)

register(
    Claim(
        id="alm.eq13.mean",
        title="The linearization is right on average",
        statement="E[W_ji·1[η > 0]·(W_ji h_i + r(η))] = h_i/2, as without the linearization.",
        source=f"{PAPER}, below eq. 13; that it costs nothing on average is derived here",
        grid=tuple({**setting, "draws": 10_000} for setting in SHAPES),
        quick=SHAPES[:3],
        predict=half,
        measure=measure_mean,
        rule=Equal(),
        quantity="mean of the linearized W_ji x_j",
        axis="k",
        series="h",
        reading="beyond the paper",
        remark="So the bias Õ(k^(−3/2)) that the proof allows for is none (alm.eq19.exact).",
    )
)

SPREADS = tuple(
    {"k": k, "t": t, "h": 1.0, "draws": 4000, "trials": 60}
    for k, t in ((4, 10), (10, 50), (25, 250), (60, 1500), (150, 8000))
)
stated = register(
    Claim(
        id="alm.sketch.variance",
        title="Variance of W_ji x_j, as printed in the sketch",
        statement=(
            "Var[W_ji x_j] = O(√(k/t)) for x_j = r(W_ji h_i + η_j) and ‖h‖² = k: its ratio to √(k/t) does "
            "not grow with t, where k grows as t^(2/3)."
        ),
        source=f"{PAPER}, proof sketch of Lemma 2.5",
        place="“Var[W_ji x_j] = O(√(k/t))”, Section 2.2, proof sketch of Lemma 2.5, line 172",
        grid=SPREADS,
        quick=SPREADS[:4],
        predict=root_rate,
        measure=measure_variance,
        rule=NotGrowing(Along("t")),
        quantity="Var[W_ji x_j]",
        axis="t",
        twin="alm.sketch.variance.corrected",
        expected="failed",
        remark=(
            "It is about k/2. O(k/t) is the variance of the whole ĥ_i, which has t such terms and the factor "
            "α² = 4/t² (Claim A.2); √(k/t) is the square root of that."
        ),
    )
)

register(
    stated.other(
        title="Variance of W_ji x_j",
        statement="Var[W_ji x_j] = ‖h‖²/2 + ¾h_i² for x_j = r(W_ji h_i + η_j) and normal W.",
        source=f"{PAPER}, proof sketch of Lemma 2.5 and Claim A.2, with their constants",
        grid=tuple({**setting, "draws": 20_000} for setting in SPREADS),
        quick=tuple({**setting, "draws": 8000} for setting in SPREADS[:2]),
        predict=spread,
        rule=Equal(),
        reading="corrected",
    )
)
