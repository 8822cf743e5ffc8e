"""Appendix E: how a shadow is generated from h̃2, as printed and as meant. Not for training: see trained."""

from __future__ import annotations

import torch

from ..._core import BadInput
from .._claim import Claim, grid, measurement, per_trial
from .._registry import register
from .._rules import Equal
from ..results import Setting
from ._conditions import check_layer
from ._kernel import relu_cosine

APPENDIX = "Arora, Liang & Ma 2015, Appendix E"


@measurement("alm.appendix_e.measure_change")
@per_trial
def measure_change(setting: Setting, generator: torch.Generator) -> float:
    """‖x′ − x″‖² / (‖x′‖² + ‖x″‖²), where x″ is x′ after some active units of h̃2 gave way to others.

    Independent W1, W2 and image in each trial; all non-zeros of h̃2 are alike.
    """
    check_change(setting)
    n, m, k, replaced = (setting[name] for name in ("n", "m", "k", "replaced"))
    first, second = torch.randn(n, m, generator=generator), torch.randn(m, m, generator=generator)
    image = torch.rand(n, generator=generator)
    inferred = (first.T @ image).relu()  # h̃1
    units = torch.randperm(m, generator=generator)
    tops = torch.zeros(2, m)
    tops[0, units[:k]] = 1.0
    tops[1, units[replaced : k + replaced]] = 1.0
    generated = (tops @ second.T).relu()  # h1 of both h̃2
    below = inferred.expand(2, m) if setting["formula"] == "printed" else generated
    one, other = (below @ first.T).relu()
    return float((one - other).square().sum() / (one.square().sum() + other.square().sum()))


def check_change(setting: Setting) -> None:
    check_layer(setting)
    if not 0 < setting["replaced"] <= min(setting["k"], setting["m"] - setting["k"]):
        raise BadInput(
            "0 < replaced ≤ k and k + replaced ≤ m: active units of h̃2 give way to silent ones",
            got=f"replaced = {setting['replaced']}, k = {setting['k']}, m = {setting['m']}",
            do="change replaced",
        )
    if setting["formula"] not in ("printed", "corrected"):
        raise BadInput("formula printed or corrected", got=repr(setting["formula"]), do="pass one of these")


def predict_change(setting: Setting) -> float:
    """1 − the cosine of two images that are generated from h̃2 through two wide random layers."""
    check_change(setting)
    cosine: float = 1 - setting["replaced"] / setting["k"]
    for _ in range(2):
        # E r(u)r(v) / E r(u)² of standard normals u, v with this correlation
        cosine = relu_cosine(cosine)
    return 1 - cosine


stated = register(
    Claim(
        id="alm.appE.printed",
        title="Shadows generated from h̃2, as printed",
        statement=(
            "x′ = r(W1 h̃1) is generated from h̃2: when active units of h̃2 give way to others, x′ changes by "
            "‖x′ − x″‖² / (‖x′‖² + ‖x″‖²) = 1 − κ(κ(c)), where c is the cosine of the two h̃2 and κ(c) = "
            "(√(1 − c²) + (π − arccos c)c)/π that of a ReLU layer's two outputs."
        ),
        source=f"{APPENDIX}, before eq. 27, and eqs 27 and 28; the size of the change is derived here",
        place=(
            "“h_1 = r(W_2 h̃_2), x' = r(W_1 h̃_1)”, Appendix E, line 618, and eqs 27 and 28, lines 630 and 636"
        ),
        grid=grid(n=1000, m=1000, k=40, replaced=(5, 10, 20, 40), formula="printed", trials=10),
        quick=grid(n=300, m=300, k=20, replaced=(5, 20), formula="printed", trials=10),
        predict=predict_change,
        measure=measure_change,
        rule=Equal(),
        quantity="change of x′ when h̃2 is replaced",
        axis="replaced",
        twin="alm.appE.printed.corrected",
        expected="failed",
        remark="h̃1 is inferred from the image: x′ as printed does not depend on the layer above at all.",
    )
)
register(
    stated.other(
        title="Shadows generated from h̃2, corrected",
        statement=(
            "x′ = r(W1 h1) with h1 = r(W2 h̃2) is generated from h̃2: when active units of h̃2 give way to "
            "others, x′ changes by ‖x′ − x″‖² / (‖x′‖² + ‖x″‖²) = 1 − κ(κ(c)), where c is the cosine of the "
            "two h̃2 and κ(c) = (√(1 − c²) + (π − arccos c)c)/π that of a ReLU layer's two outputs."
        ),
        source=f"{APPENDIX}, before eq. 27, with h1 for h̃1",
        grid=grid(n=1000, m=1000, k=40, replaced=(5, 10, 20, 40), formula="corrected", trials=100),
        quick=grid(n=300, m=300, k=20, replaced=(5, 20), formula="corrected", trials=100),
        rule=Equal(tolerance=0.01),
        reading="corrected",
    )
)
