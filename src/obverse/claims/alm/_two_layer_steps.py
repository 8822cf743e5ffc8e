"""Two steps of the proof of Theorem C.2: eq. 24, and that h̃ − ĥ is constant on the support."""

from __future__ import annotations

from math import sqrt

import torch
from torch import Tensor

from .._claim import Claim, grid, measurement, per_trial
from .._registry import register
from .._rules import Equal, HoldsIn
from ..results import Setting
from ._conditions import check_layer
from ._hidden import draw_hidden
from ._layer import reverse_and_infer
from ._slips import PAPER
from ._stream import Weights, draw_seed

ROUNDING = 1e-12  # of sums of a few hundred products in float64, relative to their size
DRAWS = 50  # of h under each W


@measurement("alm.two_layer_steps.measure_split")
@per_trial
def measure_split(setting: Setting, generator: torch.Generator) -> float:
    """|uᵀh̃ − the right-hand side of eq. 24| by ‖u‖‖h̃ − h‖, for random u, h and h̃."""
    check_layer(setting)
    u, noise = torch.randn(2, setting["m"], generator=generator, dtype=torch.float64)
    h = draw_hidden(1, setting["m"], setting["k"], "half-normal", generator)[0]
    inferred = (h + 0.1 * noise).relu()
    rest = h - inferred if setting["sign"] == "printed" else inferred - h
    size = u.norm() * (inferred - h).norm()
    return float((u @ inferred - (u @ h + u @ rest)).abs() / size)


def rounding(setting: Setting) -> float:
    check_layer(setting)
    return ROUNDING


SPLITS = grid(m=(20, 200), k=10, sign="printed", trials=110)
stated = register(
    Claim(
        id="alm.eq24",
        title="Eq. 24, as printed",
        statement="ĝ_r = uᵀh̃ = uᵀh + uᵀ(h − h̃).",
        source=f"{PAPER}, proof of Theorem C.2, eq. 24",
        place="“= uᵀh̃ = uᵀh + uᵀ(h − h̃)”, Appendix C, proof of Theorem C.2, eq. 24, line 537",
        grid=SPLITS,
        predict=rounding,
        measure=measure_split,
        rule=HoldsIn(),
        quantity="difference of the two sides ÷ ‖u‖‖h̃ − h‖",
        axis="m",
        twin="alm.eq24.corrected",
        expected="failed",
        remark=(
            "The sign of the second term is the other one: the right-hand side is uᵀ(2h − h̃). Eq. 25 and "
            "what follows are about its size alone, so that nothing depends on it."
        ),
    )
)

register(
    stated.other(
        title="Eq. 24, with its sign",
        statement="ĝ_r = uᵀh̃ = uᵀh + uᵀ(h̃ − h).",
        source=f"{PAPER}, proof of Theorem C.2, eq. 24, with the sign changed",
        grid=tuple({**setting, "sign": "corrected"} for setting in SPLITS),
        reading="corrected",
    )
)


def _cut(setting: Setting, generator: torch.Generator) -> Tensor:
    """Where on the support ĥ_i − θ is below 0, so that h̃_i − ĥ_i is not −θ: rows × k, one W."""
    check_layer(setting)
    h = draw_hidden(DRAWS, setting["m"], setting["k"], "half-normal", generator)
    weights = Weights(setting["n"], setting["m"], draw_seed(generator))
    estimate = reverse_and_infer(weights, h, setting["t"] / setting["n"])
    theta = setting["theta"] / sqrt(setting["t"])
    moved = (estimate - theta).relu() - estimate
    apart: Tensor = (moved + theta).abs() > 1e-9
    return apart[h > 0]


@measurement("alm.two_layer_steps.measure_constant")
@per_trial
def measure_constant(setting: Setting, generator: torch.Generator) -> float:
    """1 + the share of coordinates on the support at which h̃_i − ĥ_i is not the offset; a W a trial."""
    return 1 + float(_cut(setting, generator).double().mean())


def nowhere(setting: Setting) -> float:
    check_layer(setting)
    return 1.0


def cut_share(setting: Setting) -> float:
    """1 + E Φ((θ − h_i)/√v_i) for half-normal h_i with ‖h‖ = 1, v_i = (2/t)(1 + 2h_i²) − h_i²/n."""
    import numpy as np
    from scipy import special, stats

    check_layer(setting)
    t, n, k = setting["t"], setting["n"], setting["k"]
    # h_i² of k half-normal entries scaled to norm 1 is Beta(½, (k − 1)/2)
    places = (np.arange(20_000) + 0.5) / 20_000
    square = stats.beta.ppf(places, 0.5, (k - 1) / 2)
    spread = np.sqrt(2 / t * (1 + 2 * square) - square / n)
    return float(1 + special.ndtr((setting["theta"] / sqrt(t) - np.sqrt(square)) / spread).mean())


SHAPES = tuple(
    {"n": 2 * t, "m": 2 * k, "k": k, "t": t, "theta": theta, "trials": 100}
    for k, t in ((20, 300), (60, 2000))
    for theta in (1.0, 2.5)
)
stated = register(
    Claim(
        id="alm.thmC.2.constant",
        title="h̃ − ĥ is constant on the support, as printed",
        statement=(
            "On the support of h, h̃_i − ĥ_i is the offset for every i: the share of coordinates where it is "
            "not is 0."
        ),
        source=f"{PAPER}, proof of Theorem C.2",
        place="“is a constant vector”, Appendix C, proof of Theorem C.2, line 551",
        grid=SHAPES,
        quick=tuple({**setting, "trials": 30} for setting in SHAPES[:2]),
        predict=nowhere,
        measure=measure_constant,
        rule=Equal(tolerance=0.01),  # so that a share below 1 % would count as none
        quantity="1 + share of coordinates",
        axis="t",
        series="theta",
        twin="alm.thmC.2.constant.corrected",
        expected="failed",
        remark=(
            "The ReLU cuts ĥ_i off where h_i is small, as some entries of a layer that was itself generated "
            "always are; there h̃_i − ĥ_i = −ĥ_i."
        ),
    )
)

register(
    stated.other(
        title="How much of the support the offset cuts off",
        statement=(
            "On the support of a half-normal h the ReLU cuts off E Φ((θ − h_i)/√v_i) of the coordinates, v_i "
            "= (2/t)(‖h‖² + 2h_i²) − h_i²/n: elsewhere h̃_i − ĥ_i is the offset."
        ),
        source=f"{PAPER}, proof of Theorem C.2, with the ReLU",
        predict=cut_share,
        rule=Equal(tolerance=0.005),  # ĥ_i is taken for normal: off by some 1/√t of the share
        reading="corrected",
    )
)
