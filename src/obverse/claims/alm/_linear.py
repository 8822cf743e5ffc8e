"""Proposition 2.2: the linear model x = Wh, given back by Wᵀ up to noise. No ReLU: see moments."""

from __future__ import annotations

from math import log, sqrt

import torch
from torch import Tensor

from ..._core import BadInput
from .._claim import Claim, grid, measurement
from .._rates import Along, Exponent, NotGrowing
from .._registry import register
from .._rules import Equal
from ..results import Setting
from ._conditions import check_layer
from ._layer import fresh_weights

SOURCE = "Arora, Liang & Ma 2015, Proposition 2.2"


def check_linear(setting: Setting) -> None:
    check_layer(setting)
    if not setting["n"] > setting["m"]:
        raise BadInput(
            "n > m: the linear model needs more inputs than units (Proposition 2.2)",
            got=f"n = {setting['n']}, m = {setting['m']}",
            do="raise n or lower m",
        )


def _estimates(setting: Setting, generator: torch.Generator, draws: int) -> tuple[Tensor, Tensor]:
    """h ∈ {0,1}^m with k ones, and ĥ = WᵀWh/n for so many W."""
    check_linear(setting)
    h = torch.zeros(setting["m"], dtype=torch.float64)
    h[: setting["k"]] = 1.0
    return h, fresh_weights(h, setting["n"], 1.0, draws, generator, relu=False)


@measurement("alm.linear.measure_largest")
def measure_largest(setting: Setting, generator: torch.Generator) -> Tensor:
    """‖ĥ − h‖∞, one W a trial."""
    h, found = _estimates(setting, generator, setting["trials"])
    return (found - h).abs().amax(1)


@measurement("alm.linear.measure_variance")
def measure_variance(setting: Setting, generator: torch.Generator) -> Tensor:
    """Unbiased sample variance of ĥ_i over a batch of W, averaged over the i on (or off) the support."""
    if setting["where"] == "off" and setting["k"] == setting["m"]:
        raise BadInput("k < m: coordinates off the support", got=f"k = m = {setting['m']}", do="lower k")
    _, found = _estimates(setting, generator, setting["trials"] * setting["batch"])
    each = found.view(setting["trials"], setting["batch"], -1).var(1)
    return (each[:, : setting["k"]] if setting["where"] == "on" else each[:, setting["k"] :]).mean(1)


def rate(setting: Setting) -> float:
    check_linear(setting)
    return sqrt(setting["m"] * log(setting["m"]) / setting["n"])


def variance(setting: Setting) -> float:
    """Each of the n terms W_ji (Wh)_j has variance ‖h‖² + h_i²."""
    check_linear(setting)
    return float((setting["k"] + (setting["where"] == "on")) / setting["n"])


def _wider(n: int, units: tuple[int, ...], trials: int) -> tuple[Setting, ...]:
    return tuple({"n": n, "m": m, "k": m // 2, "trials": trials} for m in units)


register(
    Claim(
        id="alm.prop2.2",
        title="Linear model: largest error",
        statement=(
            "For W with N(0, 1) entries, n > m, h ∈ {0,1}^m and ĥ = WᵀWh/n, the largest error ‖ĥ − h‖∞ is "
            "Õ(√(m/n)): its ratio to √(m·ln m / n) does not grow with m at fixed n, where half of h is 1 "
            "(the power of n: alm.prop2.2.exponent)."
        ),
        source=SOURCE,
        place=(
            "“the recovered hidden variable ĥ = Wᵀx satisfies that ‖ĥ − h‖∞ ≤ Õ(√(m/n))”, up to scaling, "
            "Section 2.1, Proposition 2.2, line 90"
        ),
        grid=_wider(1600, (50, 100, 200, 400, 800, 1200), 120),
        quick=_wider(800, (50, 100, 200, 400, 600), 100),
        predict=rate,
        measure=measure_largest,
        rule=NotGrowing(Along("m")),
        quantity="‖ĥ − h‖∞",
        axis="m",
        twin="alm.prop2.2.exponent",
    )
)

register(
    Claim(
        id="alm.prop2.2.exponent",
        title="Linear model: power of n",
        statement=(
            "At fixed m and h ∈ {0,1}^m the largest error ‖ĥ − h‖∞ of ĥ = WᵀWh/n falls as n^(−½), "
            "over two decades of n."
        ),
        source=SOURCE,
        # From n = 400 on: the excess kurtosis of ĥ_i, 6/n, lifts the largest of 40 by less than 0.4 % there.
        grid=grid(n=(400, 800, 1600, 4000, 8000, 16000, 40000), m=40, k=20, trials=120),
        quick=grid(n=(400, 800, 1600, 4000, 8000, 16000, 40000), m=20, k=10, trials=80),
        predict=lambda setting: sqrt(setting["m"] / setting["n"]),
        measure=measure_largest,
        rule=Exponent(Along("n")),
        quantity="‖ĥ − h‖∞",
        axis="n",
        reading="exact",
        twin="alm.prop2.2",
    )
)

register(
    Claim(
        id="alm.prop2.2.variance",
        title="Linear model: exact variance",
        statement=(
            "For W with N(0, 1) entries and ĥ = WᵀWh/n, Var ĥ_i = (‖h‖² + h_i²)/n, on and off the support."
        ),
        source=f"{SOURCE}; the variance is not in the paper",
        grid=grid(n=(40, 400, 2000), m=20, k=(2, 10), where=("on", "off"), trials=100, batch=60),
        quick=grid(n=(40, 400), m=20, k=(2, 10), where=("on", "off"), trials=60, batch=100),
        predict=variance,
        measure=measure_variance,
        rule=Equal(),
        quantity="variance of ĥ_i",
        axis="n",
        series="where",
        reading="beyond the paper",
    )
)
