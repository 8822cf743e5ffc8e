"""Lemmas B.2 and B.3: two units behind one ReLU, and the remainder of a Taylor expansion."""

from __future__ import annotations

from math import log, pi, sqrt

import numpy as np
import torch
from torch import Tensor

from ..._core import BadInput
from .._claim import Claim, grid, measurement, per_trial
from .._rates import Along, Exponent, NotGrowing
from .._registry import register
from .._rules import Equal
from ..results import Setting
from ._stratified import normal_points

PAPER = "Arora, Liang & Ma 2015"


def check_pair(setting: Setting) -> None:
    if not setting["sigma"] > 0:
        raise BadInput("σ > 0, the spread of the noise ξ (Lemma B.2)", got=setting["sigma"], do="raise sigma")
    for name in ("a", "b"):
        if not setting[name] >= 0:
            raise BadInput(f"{name} ≥ 0 (Lemma B.2)", got=setting[name], do=f"raise {name}")


def check_pair_lemma(setting: Setting) -> None:
    check_pair(setting)
    largest = 5 * log(setting["sigma"]) + 1e-4  # settings give a and b to four digits
    if max(setting["a"], setting["b"]) > largest:
        raise BadInput(
            "a, b ≤ 5 log σ (the condition of Lemma B.2)",
            got=f"a = {setting['a']}, b = {setting['b']}, 5 log σ = {largest:.4g}",
            do="lower a and b or raise sigma",
        )


@measurement("alm.lemma_b23.measure_pair")
@per_trial
def measure_pair(setting: Setting, generator: torch.Generator) -> float:
    """|E[uv·r(s)²] − E[u·r(s)]·E[v·r(s)]|, s = au + bv + ξ, one Latin hypercube a trial.

    u, v, ξ are independent and symmetric: all combinations of their signs are averaged over.
    """
    check_pair(setting)
    points = normal_points(setting["points"], 3, generator)
    together, first, second = [], [], []
    for u in (points[:, 0], -points[:, 0]):
        for v in (points[:, 1], -points[:, 1]):
            for noise in (points[:, 2], -points[:, 2]):
                alive = np.maximum(setting["a"] * u + setting["b"] * v + setting["sigma"] * noise, 0.0)
                together.append(np.mean(u * v * alive**2))
                first.append(np.mean(u * alive))
                second.append(np.mean(v * alive))
    return float(abs(np.mean(together) - np.mean(first) * np.mean(second)))


def pair(setting: Setting) -> float:
    """Stein's lemma twice: E[uv·r²] = 2ab·P(s > 0) = ab, and E[ur]·E[vr] = ab/4."""
    check_pair(setting)
    return float(0.75 * setting["a"] * setting["b"])


def pair_rate(setting: Setting) -> float:
    check_pair_lemma(setting)
    return log(setting["sigma"]) ** 2


def check_remainder(setting: Setting) -> None:
    if not setting["sigma"] > 1 or not 0 < setting["r"] <= 10 * log(setting["sigma"]):
        raise BadInput(
            "0 < r ≤ 10 log σ (the condition of Lemma B.3)",
            got=f"r = {setting['r']}, σ = {setting['sigma']}",
            do="lower r or raise sigma",
        )


@measurement("alm.lemma_b23.measure_remainder")
def measure_remainder(setting: Setting, generator: torch.Generator) -> Tensor:
    """Mean of |H(z)| over a batch of z ~ N(0, 1), H(z) = (z² − 1)·G(z)."""
    check_remainder(setting)
    z = torch.randn(setting["trials"], setting["batch"], generator=generator, dtype=torch.float64)
    return ((z**2 - 1) * _integral(setting["r"] * z, setting["sigma"])).abs().mean(1)


def _integral(end: Tensor, sigma: float) -> Tensor:
    """G = ∫₀^end (end − y)² φ(y) dy for the density φ of N(0, σ²), by 16 Gauss–Legendre nodes."""
    nodes, weights = np.polynomial.legendre.leggauss(16)
    total = torch.zeros_like(end)
    for node, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
        total += weight * (1 - node) ** 2 * torch.exp(-0.5 * (end * node / sigma) ** 2)
    return end**3 * total / (sigma * sqrt(2 * pi))


def remainder_rate(setting: Setting) -> float:
    """r³/σ: where r = log σ, a power of the logarithm over σ."""
    check_remainder(setting)
    return float(setting["r"] ** 3 / setting["sigma"])


def _pairs(sigmas: tuple[int, ...], points: int, trials: int) -> tuple[Setting, ...]:
    largest = {sigma: round(5 * log(sigma), 4) for sigma in sigmas}
    return tuple(
        {"sigma": sigma, "a": largest[sigma], "b": largest[sigma], "points": points, "trials": trials}
        for sigma in sigmas
    )


register(
    Claim(
        id="alm.lemmaB.2",
        title="Two units behind one ReLU: bound",
        statement=(
            "For u, v ~ N(0, 1), ξ ~ N(0, σ²), s = au + bv + ξ and a = b = 5 log σ, "
            "|E[uv·r(s)²] − E[u·r(s)]·E[v·r(s)]| = Õ(1): its ratio to log²σ does not grow with σ."
        ),
        source=f"{PAPER}, Lemma B.2",
        place=(
            "“|E[uv·r(au + bv + ξ)²] − E[ur(au + bv + ξ)] E[vr(au + bv + ξ)]| = Õ(1)”, Appendix B, Lemma "
            "B.2, line 421"
        ),
        grid=_pairs((2, 5, 10, 20, 50, 100, 200), 2**13, 80),
        quick=_pairs((2, 5, 20, 50, 200), 2**12, 30),
        predict=pair_rate,
        measure=measure_pair,
        rule=NotGrowing(Along("sigma")),
        quantity="|E[uv·r²] − E[ur]·E[vr]|",
        axis="sigma",
        twin="alm.lemmaB.2.exact",
        remark="At fixed a and b it does not depend on σ at all: see the exact form.",
    )
)

register(
    Claim(
        id="alm.lemmaB.2.exact",
        title="Two units behind one ReLU",
        statement=(
            "For u, v ~ N(0, 1), ξ ~ N(0, σ²) and s = au + bv + ξ, E[uv·r(s)²] − E[u·r(s)]·E[v·r(s)] = ¾ab "
            "exactly, for every σ and all a, b ≥ 0."
        ),
        source=f"{PAPER}, Lemma B.2; by Stein's lemma",
        grid=grid(sigma=(1, 5, 20, 100), a=(1.0, 3.0), b=(1.0, 3.0, 9.0), points=2**13, trials=50),
        quick=grid(sigma=(1, 10, 100), a=1.0, b=(1.0, 3.0), points=2**12, trials=40),
        predict=pair,
        measure=measure_pair,
        rule=Equal(),
        quantity="|E[uv·r²] − E[ur]·E[vr]|",
        axis="sigma",
        series="b",
        reading="exact",
        twin="alm.lemmaB.2",
    )
)

stated = register(
    Claim(
        id="alm.lemmaB.3",
        title="Taylor remainder: bound",
        statement=(
            "For z ~ N(0, 1), φ the density of N(0, σ²), G(z) = ∫₀^{rz} (rz − y)² φ(y) dy, H(z) = (z² − "
            "1)G(z) and "
            "r = log σ, E|H(z)| = Õ(1/σ): its ratio to log³σ/σ does not grow with σ."
        ),
        source=f"{PAPER}, Lemma B.3",
        place="“E[|H(z)|] ≤ Õ(1/σ)”, Appendix B, Lemma B.3, line 450",
        grid=tuple(
            {"sigma": sigma, "r": round(log(sigma), 4), "trials": 100, "batch": 4000}
            for sigma in (10, 20, 50, 100, 200, 500, 1000)
        ),
        quick=tuple(
            {"sigma": sigma, "r": round(log(sigma), 4), "trials": 50, "batch": 2000}
            for sigma in (10, 30, 100, 300, 1000)
        ),
        predict=remainder_rate,
        measure=measure_remainder,
        rule=NotGrowing(Along("sigma")),
        quantity="E|H(z)|",
        axis="sigma",
        twin="alm.lemmaB.3.exponent",
        remark=(
            "The lemma allows r up to 10 log σ. There r exceeds σ for all σ below about 36, G is no "
            "longer cubic in r, "
            "and the ratio only settles for σ in the thousands."
        ),
    )
)

register(
    stated.other(
        title="Taylor remainder: power of σ",
        statement="At fixed r = 1, E|H(z)| falls as 1/σ over two decades of σ.",
        grid=grid(sigma=(30, 60, 100, 200, 400, 1000, 3000), r=1.0, trials=100, batch=4000),
        quick=grid(sigma=(30, 100, 300, 1000, 3000), r=1.0, trials=50, batch=2000),
        rule=Exponent(Along("sigma")),
        reading="exact",
    )
)
