"""Hoeffding's step in the proof that generalization depends on the size of the discriminator."""

from __future__ import annotations

from math import exp

import torch
from torch import Tensor

from ..._core import BadInput
from .._claim import Claim, grid, measurement, per_trial
from .._registry import register
from .._rules import MeanBelow
from ..results import Setting

SOURCE = (
    "Theory of Deep Learning: Generative Models (2018), “Generalization depends on discriminator size”, proof"
)
MEAN = {"coin": 0.5, "rare": 0.1, "uniform": 0.5}
ROUNDING = 1e-9  # a mean of m numbers at ε/4 exactly counts as a deviation


def check(setting: Setting) -> None:
    if not (setting["epsilon"] > 0 and setting["m"] >= 1):
        raise BadInput("ε > 0 and m ≥ 1", got=dict(setting), do="raise them")


def mean_values(setting: Setting, generator: torch.Generator) -> Tensor:
    """The mean of D over m samples, in so many runs: D a coin (0 or 1), a rare 1, or uniform in [0, 1]."""
    runs, m = setting["runs"], setting["m"]
    if setting["values"] == "uniform":
        return torch.rand(runs, m, generator=generator, dtype=torch.float64).mean(1)
    chances = torch.full((runs,), MEAN[setting["values"]], dtype=torch.float64)
    means: Tensor = torch.binomial(torch.full_like(chances, m), chances, generator=generator) / m
    return means


@measurement("gan.hoeffding.measure_deviation")
@per_trial
def measure_deviation(setting: Setting, generator: torch.Generator) -> float:
    """The share of runs in which the mean of D is ε/4 or more away from its expectation."""
    limit = setting["epsilon"] / 4 - ROUNDING
    return float((mean_values(setting, generator) - MEAN[setting["values"]]).abs().ge(limit).double().mean())


def printed(setting: Setting) -> float:
    return 2 * exp(-(setting["epsilon"] ** 2) * setting["m"] / 2)


def corrected(setting: Setting) -> float:
    return 2 * exp(-(setting["epsilon"] ** 2) * setting["m"] / 8)


stated = Claim(
    id="gan.hoeffding",
    twin="gan.hoeffding.corrected",
    title="Hoeffding's step, as printed",
    statement=(
        "The mean of D ∈ [0, 1] over m samples is ε/4 or more away from its expectation with probability at "
        "most 2 exp(−ε²m/2)."
    ),
    source=SOURCE,
    place="“≥ ε/4] ≤ 2 exp(−ε²m/2)”, Generative adversarial networks, 1, proof, line 159",
    grid=(
        *grid(values="coin", epsilon=1.0, m=(8, 16, 32, 48), runs=20_000, trials=20),
        *grid(values="coin", epsilon=0.5, m=(64, 128, 192), runs=20_000, trials=20),
        *grid(values="coin", epsilon=0.2, m=(400, 800), runs=20_000, trials=20),
        *grid(values="rare", epsilon=1.0, m=(4, 8, 16), runs=20_000, trials=20),
        *grid(values="uniform", epsilon=1.0, m=(4, 8, 12), runs=20_000, trials=20),
    ),
    quick=(
        *grid(values="coin", epsilon=1.0, m=(8, 16, 24), runs=2000, trials=10),
        *grid(values="uniform", epsilon=1.0, m=4, runs=2000, trials=10),
    ),
    predict=printed,
    measure=measure_deviation,
    domain=check,
    rule=MeanBelow(),
    quantity="share of runs ε/4 or more away",
    axis="m",
    series="values",
    expected="failed",
    remark=(
        "Hoeffding's bound for a deviation of t is 2 exp(−2mt²), and t = ε/4 makes it 2 exp(−ε²m/8). At ε = "
        "1, m = 16 a fair coin is that far away with probability 0.077; 0.0007 is printed. The sample "
        "complexity keeps its form: only the constant changes. The notes do not say the range of D; for D ∈ "
        "[0, ½] the printed exponent would be right."
    ),
)
register(stated)
register(
    stated.other(
        title="Hoeffding's step, corrected",
        statement=(
            "The mean of D ∈ [0, 1] over m samples is ε/4 or more away from its expectation with probability "
            "at most 2 exp(−ε²m/8)."
        ),
        source=f"{SOURCE}, with the exponent 2m(ε/4)²",
        predict=corrected,
        reading="corrected",
    )
)
