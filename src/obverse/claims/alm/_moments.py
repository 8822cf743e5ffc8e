"""Mean, variance and covariance of ĥ = Wᵀx over W and masks: eq. 19, Claim A.2, Lemmas B.4 and B.5.

Scaled as the paper's appendix has it, ‖h‖² = k. Not for tails (tail) nor for the largest error (infinity).
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..._core import BadInput
from .._claim import Claim, grid, measurement
from .._rates import Along, NotGrowing
from .._registry import register
from .._rules import Equal, MeanBelow
from ..results import Setting
from ._conditions import check_layer
from ._layer import fresh_weights

PAPER = "Arora, Liang & Ma 2015"


def check_moments(setting: Setting) -> None:
    check_layer(setting)
    if setting.get("where") == "off" and not setting["m"] > setting["k"]:
        raise BadInput(
            "m > k: coordinates off the support", got=f"k = m = {setting['m']}", do="raise m or lower k"
        )


def _estimates(h: Tensor, setting: Setting, generator: torch.Generator) -> Tensor:
    """ĥ for batches of W and masks: trials × batch × m."""
    trials, batch = setting["trials"], setting["batch"]
    found = fresh_weights(h, setting["n"], setting["t"] / setting["n"], trials * batch, generator)
    return found.view(trials, batch, len(h))


def _equal(setting: Setting) -> Tensor:
    """k ones: ‖h‖² = k, and all coordinates on the support are alike."""
    check_moments(setting)
    h = torch.zeros(setting["m"], dtype=torch.float64)
    h[: setting["k"]] = 1.0
    return h


def _ramp(setting: Setting) -> Tensor:
    """Non-zeros from least to greatest, 1 : 3, with ‖h‖² = k."""
    check_moments(setting)
    values = torch.linspace(1, 3, setting["k"], dtype=torch.float64)
    h = torch.zeros(setting["m"], dtype=torch.float64)
    h[: setting["k"]] = values * setting["k"] ** 0.5 / values.norm()
    return h


def _part(where: str, k: int) -> slice:
    """The coordinates that `where` names in h as made above."""
    return {"on": slice(k), "off": slice(k, None), "least": slice(1), "greatest": slice(k - 1, k)}[where]


@measurement("alm.moments.measure_mean")
def measure_mean(setting: Setting, generator: torch.Generator) -> Tensor:
    """Mean of ĥ_i over a batch, averaged over the support."""
    return _estimates(_equal(setting), setting, generator)[..., : setting["k"]].mean((1, 2))


@measurement("alm.moments.measure_bias")
def measure_bias(setting: Setting, generator: torch.Generator) -> Tensor:
    """|mean of ĥ_i − h_i| over a batch, averaged over like coordinates first; its own error adds to it."""
    h = _equal(setting)
    part = _part(setting["where"], setting["k"])
    return (_estimates(h, setting, generator) - h)[..., part].mean((1, 2)).abs()


@measurement("alm.moments.measure_variance")
def measure_variance(setting: Setting, generator: torch.Generator) -> Tensor:
    """Unbiased sample variance of ĥ_i over a batch, averaged over the coordinates that `where` names."""
    found = _estimates(_ramp(setting), setting, generator)
    return found[..., _part(setting["where"], setting["k"])].var(1).mean(1)


@measurement("alm.moments.measure_covariance")
def measure_covariance(setting: Setting, generator: torch.Generator) -> Tensor:
    """Unbiased sample covariance of ĥ_i and ĥ_j over a batch, averaged over pairs i ≠ j of the support."""
    k = setting["k"]
    if k < 2:
        raise BadInput("k ≥ 2: a pair of coordinates on the support", got=f"k = {k}", do="raise k")
    found = _estimates(_equal(setting), setting, generator)[..., :k]
    pairs: Tensor = (found.sum(2).var(1) - found.var(1).sum(1)) / (k * (k - 1))
    return pairs


@measurement("alm.moments.measure_form")
def measure_form(setting: Setting, generator: torch.Generator) -> Tensor:
    """Unbiased sample variance of u_Kᵀĥ_K over a batch, u_i = ±1."""
    found = _estimates(_equal(setting), setting, generator)[..., : setting["k"]]
    u = torch.ones(setting["k"], dtype=torch.float64)
    if setting["u"] == "alternating":
        u[1::2] = -1.0
    return (found @ u).var(1)


def variance(setting: Setting) -> float:
    """v_i = (2/t)(‖h‖² + 2h_i²) − h_i²/n, averaged where several coordinates are named."""
    part = _ramp(setting)[_part(setting["where"], setting["k"])]
    square = float(part.square().mean())
    return float(2 / setting["t"] * (setting["k"] + 2 * square) - square / setting["n"])


def covariance(setting: Setting) -> float:
    """(4/t − 1/n)·h_i·h_j with h_i = h_j = 1."""
    check_moments(setting)
    return float(4 / setting["t"] - 1 / setting["n"])


def form(setting: Setting) -> float:
    """(2/t)‖h‖²‖u‖² + (4/t − 1/n)(uᵀh)²."""
    check_moments(setting)
    k, along = setting["k"], setting["k"] if setting["u"] == "aligned" else setting["k"] % 2
    return float(2 / setting["t"] * k * k + covariance(setting) * along**2)


def variance_rate(setting: Setting) -> float:
    check_moments(setting)
    return float(setting["k"] / setting["t"])


def covariance_rate(setting: Setting) -> float:
    check_moments(setting)
    return float(1 / setting["t"])


def form_rate(setting: Setting) -> float:
    check_moments(setting)
    return float(setting["k"] ** 2 / setting["t"])


def bias_rate(setting: Setting) -> float:
    check_moments(setting)
    return float(setting["k"] ** -1.5)


def one(setting: Setting) -> float:
    check_moments(setting)
    return 1.0


# k < t < k², and so many draws that the bias could be seen if it were k^(−3/2)
BIAS = tuple(
    {"n": 2 * t, "m": k + 12, "k": k, "t": t, "where": where, "trials": 80, "batch": batch}
    for k, t, batch in ((4, 14, 100), (9, 70, 200), (16, 240, 250), (25, 600, 300))
    for where in ("on", "off")
)
register(
    Claim(
        id="alm.eq19",
        title="Mean of ĥ: bound",
        statement=(
            "For ‖h‖² = k and k < t < k², |E ĥ_i − h_i| ≤ k^(−3/2), on and off the support (Õ with "
            "constant 1)."
        ),
        source=f"{PAPER}, proof of Lemma 2.5, eq. 19",
        place="“E[ĥ_i|h] … = h_i ± Õ(1/(k^{3/2}))”, Appendix A, proof of Lemma 2.5, eq. 19, line 308",
        grid=BIAS,
        quick=BIAS[:4],
        predict=bias_rate,
        measure=measure_bias,
        rule=MeanBelow(),
        quantity="|mean of ĥ_i − h_i|",
        axis="k",
        series="where",
        twin="alm.eq19.exact",
        remark=(
            "The bias is exactly 0: what is measured is the error of the simulation, which must be below "
            "the bound."
        ),
    )
)

MEANS = grid(n=(50, 500), m=4, k=(1, 4), t=(5, 50), trials=50, batch=300)
register(
    Claim(
        id="alm.eq19.exact",
        title="Mean of ĥ",
        statement="E ĥ_i = h_i exactly for normal W, for every k, t and n (here h_i = 1 on the support).",
        source=f"{PAPER}, eq. 19; by Stein's lemma",
        grid=MEANS,
        predict=one,
        measure=measure_mean,
        rule=Equal(),
        quantity="mean of ĥ_i, h_i = 1",
        axis="t",
        series="k",
        reading="exact",
        twin="alm.eq19",
        remark="The condition t < k², which the paper needs to drown the bias, is not needed.",
    )
)

VARIANCE = tuple(
    {"n": 2 * t, "m": k, "k": k, "t": t, "where": "on", "trials": 40, "batch": batch}
    for k, t, batch in ((10, 30, 80), (22, 100, 40), (45, 300, 20), (100, 1000, 10), (208, 3000, 5))
)
register(
    Claim(
        id="alm.claimA.2",
        title="Variance of ĥ: rate",
        statement=(
            "For ‖h‖² = k, Var ĥ_i = O(k/t): the ratio to k/t does not grow with t, where k grows as t^(2/3) "
            "(k < t < k²), averaged over the support."
        ),
        source=f"{PAPER}, Claim A.2",
        place="“Var[ĥ_i|h] ≤ O(k/t)”, Appendix A, Claim A.2, line 343",
        grid=VARIANCE,
        quick=VARIANCE[:4],
        predict=variance_rate,
        measure=measure_variance,
        rule=NotGrowing(Along("t")),
        quantity="variance of ĥ_i",
        axis="t",
        twin="alm.claimA.2.exact",
    )
)

register(
    Claim(
        id="alm.claimA.2.exact",
        title="Variance of ĥ",
        statement=(
            "For normal W, Var ĥ_i = (2/t)(‖h‖² + 2h_i²) − h_i²/n exactly: off the support, and for the "
            "least and the greatest of k non-zeros (1 : 3)."
        ),
        source=f"{PAPER}, Claim A.2, with its constants",
        grid=(
            *grid(
                n=(200, 400),
                m=12,
                k=(2, 6),
                t=(20, 200),
                where=("off", "least", "greatest"),
                trials=80,
                batch=400,
            ),
        ),
        quick=grid(n=100, m=12, k=2, t=(20, 100), where=("off", "least", "greatest"), trials=80, batch=120),
        predict=variance,
        measure=measure_variance,
        rule=Equal(),
        quantity="variance of ĥ_i",
        axis="t",
        series="where",
        reading="exact",
        twin="alm.claimA.2",
    )
)

COVARIANCE = tuple(
    {"n": 2 * t, "m": k, "k": k, "t": t, "trials": 80, "batch": 700}
    for k in (2, 4)
    for t in (20, 60, 200, 600, 2000)
)
COVARIANCE_QUICK = tuple({**setting, "batch": 120} for setting in COVARIANCE if setting["t"] <= 600)
stated = register(
    Claim(
        id="alm.lemmaB.4",
        title="Covariance of ĥ: rate",
        statement=(
            "For h of k ones, |E[ĥ_i ĥ_j] − E ĥ_i · E ĥ_j| = Õ(1/t) for i ≠ j on the support: its ratio "
            "to 1/t does not grow with t."
        ),
        source=f"{PAPER}, Lemma B.4",
        place="“|E[ĥ_i ĥ_j] − E[ĥ_i] E[ĥ_j]| ≤ Õ(1/t)”, Appendix B, Lemma B.4, line 472",
        grid=COVARIANCE,
        quick=COVARIANCE_QUICK,
        predict=covariance_rate,
        measure=measure_covariance,
        rule=NotGrowing(Along("t")),
        quantity="covariance of ĥ_i and ĥ_j",
        axis="t",
        series="k",
        twin="alm.lemmaB.4.exact",
    )
)

register(
    stated.other(
        title="Covariance of ĥ",
        statement="For normal W, Cov(ĥ_i, ĥ_j) = (4/t − 1/n)·h_i·h_j exactly for i ≠ j (here h_i = h_j = 1).",
        source=f"{PAPER}, Lemma B.4, with its constants",
        predict=covariance,
        rule=Equal(),
        reading="exact",
    )
)

FORM = tuple(
    {"n": 2 * t, "m": k, "k": k, "t": t, "u": "aligned", "trials": 80, "batch": batch}
    for k, t, batch in (
        *((8, 23, 300), (11, 36, 300), (16, 64, 250), (22, 103, 200), (32, 181, 150)),
        *((45, 302, 120), (64, 512, 120), (90, 854, 60), (128, 1448, 40)),
    )
)
ALTERNATING = tuple({**setting, "u": "alternating"} for setting in FORM[:7:2])
stated = register(
    Claim(
        id="alm.lemmaB.5",
        title="Quadratic form: rate",
        statement=(
            "For h of k ones with support K and u_K = 1, E|u_Kᵀ(ĥ_K − E ĥ_K)|² = Õ(k²/t): its ratio to "
            "k²/t does not grow with t, where k grows as t^(2/3)."
        ),
        source=f"{PAPER}, Lemma B.5",
        place="“E[|u_Kᵀ(ĥ_K − E ĥ_K)|²] ≤ Õ(k²/t)”, Appendix B, Lemma B.5, lines 488 to 490",
        grid=FORM,
        quick=FORM[:6],
        predict=form_rate,
        measure=measure_form,
        rule=NotGrowing(Along("t")),
        quantity="E|u_Kᵀ(ĥ_K − E ĥ_K)|²",
        axis="t",
        series="u",
        twin="alm.lemmaB.5.exact",
        remark="u along h is the worst direction there is: 6/t − 1/n against 2/t across h, in units of k².",
    )
)

register(
    stated.other(
        title="Quadratic form",
        statement=(
            "For normal W, E|u_Kᵀ(ĥ_K − E ĥ_K)|² = (2/t)‖h‖²‖u‖² + (4/t − 1/n)(uᵀh)² exactly, for u along h "
            "and for u of alternating signs."
        ),
        source=f"{PAPER}, Lemma B.5, with its constants",
        grid=FORM[:7:2] + ALTERNATING,
        quick=FORM[:5:2] + ALTERNATING[:2],
        predict=form,
        rule=Equal(),
        reading="exact",
    )
)
