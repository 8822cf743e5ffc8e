"""Lemma 2.5: the largest entry of Wᵀx − h, many h under one W. Not for ReLU and offset on the way up."""

from __future__ import annotations

from math import erfc, expm1, log, log1p, sqrt

import torch

from .._claim import Claim, grid, measurement, per_trial
from .._rates import Along, NotGrowing
from .._registry import register
from .._rules import Equal, MeanBelow
from ..results import Setting
from ._conditions import check_layer
from ._hidden import draw_hidden
from ._layer import reverse_and_infer
from ._stream import Weights, draw_seed

SOURCE = "Arora, Liang & Ma 2015, Lemma 2.5, eq. 11"


@measurement("alm.infinity.measure_largest")
@per_trial
def measure_largest(setting: Setting, generator: torch.Generator) -> float:
    """δ√t = √t·‖Wᵀx − h‖∞/‖h‖, averaged over `draws` of (h, x) under one W; each trial has a W of its own."""
    check_layer(setting)
    n, m, k, t = (setting[name] for name in ("n", "m", "k", "t"))
    h = draw_hidden(setting["draws"], m, k, "equal", generator)
    estimate = reverse_and_infer(Weights(n, m, draw_seed(generator)), h, t / n)
    return sqrt(t) * float((estimate - h).abs().amax(1).mean())


def rate(setting: Setting) -> float:
    """√t·δ for δ = √(ln m / t)."""
    check_layer(setting)
    return sqrt(log(setting["m"]))


def constant(setting: Setting) -> float:
    """√2·√(2 ln m): the standard deviation of ĥ_i is √(2/t)·‖h‖ off the support."""
    check_layer(setting)
    return 2 * sqrt(log(setting["m"]))


def normal_largest(setting: Setting) -> float:
    """√t·E max_i |N(0, v_i)| for independent entries, h of k equal entries and ‖h‖ = 1.

    The expectation is ∫ P(max > s) ds. v_i = 2/t off the support, (2/t)(1 + 2/k) − 1/(kn) on it.
    """
    from scipy.integrate import quad

    check_layer(setting)
    n, m, k, t = (setting[name] for name in ("n", "m", "k", "t"))
    groups = ((m - k, 2.0), (k, 2 + 4 / k - t / (k * n)))  # how many, and their t·v_i

    def beyond(s: float) -> float:
        return -expm1(sum(count * log1p(-erfc(s / sqrt(2 * variance))) for count, variance in groups))

    found, _ = quad(beyond, 0.0, 20.0, limit=200)
    return float(found)


register(
    Claim(
        id="alm.lemma2.5",
        title="Largest error of ĥ: rate",
        statement=(
            "‖Wᵀx − h‖∞ ≤ δ‖h‖ with δ = Õ(1/√t): the ratio of δ√t, in the mean over many h under one W, to "
            "√(ln m) does not grow with t over two decades (k < t < k²)."
        ),
        source=SOURCE,
        place="“‖Wᵀx − h‖∞ ≤ δ‖h‖” for “δ = Õ(1/√t)”, Section 2.2, Lemma 2.5, eq. 11, lines 137 to 139",
        grid=grid(n=40000, m=500, k=160, t=(200, 500, 1000, 2000, 5000, 10000, 20000), draws=20, trials=12),
        quick=grid(n=20000, m=100, k=80, t=(100, 300, 1000, 3000, 6000), draws=20, trials=10),
        predict=rate,
        measure=measure_largest,
        rule=NotGrowing(Along("t")),
        quantity="δ√t",
        axis="t",
        twin="alm.lemma2.5.exact",
    )
)

register(
    Claim(
        id="alm.lemma2.5.constant",
        title="Largest error of ĥ: constant",
        statement="‖Wᵀx − h‖∞ ≤ ‖h‖·√(2/t)·√(2 ln m) on average over h and W: δ√t is at most 2√(ln m).",
        source=f"{SOURCE}, with a constant from the normal approximation",
        grid=grid(n=2000, m=(100, 300, 1000, 3000, 10000), k=40, t=1000, draws=20, trials=30),
        quick=grid(n=1500, m=(100, 300, 1000, 5000), k=40, t=1000, draws=10, trials=30),
        predict=constant,
        measure=measure_largest,
        rule=MeanBelow(),
        quantity="δ√t",
        axis="m",
        reading="beyond the paper",
        remark=(
            "A bound on the mean: the largest of m normal variables of variance v has a mean below √(2v "
            "ln m) for large m."
        ),
    )
)

register(
    Claim(
        id="alm.lemma2.5.exact",
        title="Largest error of ĥ",
        statement=(
            "δ√t = √t·‖Wᵀx − h‖∞/‖h‖ has the mean of the largest of m independent |N(0, t·v_i)|, "
            "v_i = (2/t)(1 + 2h_i²) − h_i²/n at ‖h‖ = 1, within 3 % from t = 500 on."
        ),
        source=f"{SOURCE}, by a normal approximation",
        grid=(
            *grid(n=2000, m=(100, 300, 1000, 3000), k=40, t=(500, 1000), draws=20, trials=30),
            *grid(n=20000, m=300, k=40, t=(5000, 20000), draws=20, trials=30),
        ),
        quick=grid(n=1500, m=(100, 300, 1000), k=40, t=1000, draws=10, trials=30),
        predict=normal_largest,
        measure=measure_largest,
        # The excess kurtosis of ĥ_i, (18 − 3ρ)/t, lifts the quantile at z standard deviations by
        # (18/t)(z² − 3)/24 of itself (Cornish and Fisher): 1.7 % at t = 500 and z = 3.8, the largest of 10⁴.
        rule=Equal(tolerance=0.03),
        quantity="δ√t",
        axis="t",
        series="m",
        reading="exact",
        twin="alm.lemma2.5",
    )
)
