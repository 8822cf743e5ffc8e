"""Boltzmann machines: reversible with one hidden layer, not with two. Small ones, all states enumerated.

Units are 0 or 1, as in a Boltzmann machine; nothing is trained.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..._core import BadInput
from .._claim import Claim, grid, measurement, per_trial
from .._registry import register
from .._rules import Equal, HoldsIn
from ..results import Setting
from ._slips import NOTES, PAPER

MOST = 16  # units: all states of them are enumerated
ROUNDING = 1e-12  # of probabilities that are sums of a few hundred positive terms, relative to 1
APART = 1e-3  # a total variation distance that no rounding makes


def check_machine(setting: Setting) -> None:
    units = setting["x"] + setting["h"] + setting.get("top", 0)
    if min(setting["x"], setting["h"], setting.get("top", 1)) < 1 or units > MOST:
        raise BadInput(f"a unit in each layer, and at most {MOST} in all", got=units, do="change the sizes")


def _states(count: int) -> Tensor:
    """All 2^count states, one a row."""
    numbers = torch.arange(2**count)
    return ((numbers.unsqueeze(1) >> torch.arange(count)) & 1).double()


def _law(setting: Setting, generator: torch.Generator) -> Tensor:
    """P(x, h) ∝ exp(−xᵀAh − bᵀx − cᵀh), or with a further layer above, summed over that."""
    check_machine(setting)
    x, h = _states(setting["x"]), _states(setting["h"])

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    energy = x @ normal(setting["x"], setting["h"]) @ h.T
    energy = energy + (x @ normal(setting["x"])).unsqueeze(1) + h @ normal(setting["h"])
    weight = torch.exp(-energy)
    if "top" in setting:
        top = _states(setting["top"])
        above = torch.exp(-(h @ normal(setting["h"], setting["top"]) @ top.T) - top @ normal(setting["top"]))
        weight = weight * above.sum(1)
    law: Tensor = weight / weight.sum()
    return law


def _from_product(conditional: Tensor) -> float:
    """The largest total variation distance of a row, a law of binary units, from the product of its units."""
    states = _states(conditional.shape[1].bit_length() - 1)
    each = conditional @ states  # P(h_i = 1 | x)
    product = torch.ones_like(conditional)
    for unit in range(states.shape[1]):
        on, one = states[:, unit], each[:, unit : unit + 1]
        product = product * (on * one + (1 - on) * (1 - one))
    return float((conditional - product).abs().sum(1).max() / 2)


@measurement("alm.boltzmann.measure_apart")
@per_trial
def measure_apart(setting: Setting, generator: torch.Generator) -> float:
    """How far P(h|x) and P(x|h) are from independent units; a machine a trial."""
    law = _law(setting, generator)
    down = _from_product(law.T / law.sum(0).unsqueeze(1))
    return max(_from_product(law / law.sum(1, keepdim=True)), down)


@measurement("alm.boltzmann.measure_lost")
@per_trial
def measure_lost(setting: Setting, generator: torch.Generator) -> float:
    """1 where the units of P(h|x) are not independent, else 0; a machine a trial."""
    law = _law(setting, generator)
    return float(_from_product(law / law.sum(1, keepdim=True)) > APART)


def rounding(setting: Setting) -> float:
    check_machine(setting)
    return ROUNDING


def always(setting: Setting) -> float:
    check_machine(setting)
    return 1.0


register(
    Claim(
        id="alm.notes.boltzmann",
        title="A Boltzmann machine of one hidden layer is reversible",
        statement=(
            "In P(x, h) ∝ exp(−xᵀAh + bᵀx + cᵀh) with binary units, both P(h|x) and P(x|h) are products over "
            "units: each is drawn in one step."
        ),
        source=f"{NOTES}, Boltzmann machine; {PAPER}, Section 1.1",
        place=(
            "“It is reversible because P(x|h), P(h|x) are both easy to calculate”, notes, Boltzmann machine, "
            "line 34"
        ),
        grid=grid(x=(2, 4, 8), h=(2, 4, 8), trials=110),
        quick=grid(x=(2, 4), h=(2, 4), trials=110),
        predict=rounding,
        measure=measure_apart,
        rule=HoldsIn(),
        quantity="distance of P(h|x) and P(x|h) from independent units",
        axis="x",
        series="h",
        remark="By enumeration; the bound 10⁻¹² is for rounding in float64.",
    )
)

register(
    Claim(
        id="alm.notes.deep_boltzmann",
        title="A deep Boltzmann machine is not",
        statement=(
            "With a second hidden layer above h the units of P(h|x) are no longer independent, in every "
            "random machine."
        ),
        source=f"{NOTES}, Boltzmann machine; {PAPER}, Section 1.1",
        place=(
            "“Deep Boltzmann machines are much less nice---they lose reversibility”, notes, Boltzmann "
            "machine, line 35"
        ),
        grid=grid(x=(2, 4), h=(3, 6), top=(2, 4), trials=60),
        quick=grid(x=2, h=(3, 6), top=2, trials=40),
        predict=always,
        measure=measure_lost,
        rule=Equal(),
        quantity="share of machines whose P(h|x) is no product",
        axis="h",
        series="top",
        remark="Weights are normal; P(h|x) counts as no product from a total variation distance of 0.001 on.",
    )
)
