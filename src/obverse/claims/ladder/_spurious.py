"""Eqs 14 to 17, over-fitting to a factor that has nothing to do with the label, and SGD as a noisy P.

Counts of binary events in samples; nets on them are experiments (docs/ladder.md).
"""

from __future__ import annotations

from math import comb

import torch
from torch import Tensor

from .._claim import Claim, grid, measurement, per_trial
from .._rates import Along, Exponent
from .._registry import register
from .._rules import Equal, HoldsIn
from ..results import Setting
from ._draws import PAPER, chances, check_choice, check_counts
from ._ladders import ROUNDING, TRIALS


def _labels(count: int) -> Tensor:
    """As many of either label, in order."""
    return (torch.arange(count) % 2).double()


def check_samples(setting: Setting) -> None:
    check_counts(setting)


def _epsilon(noisy: Tensor, labels: Tensor) -> Tensor:
    """(P̃(z″ = 1 | z = 1) − P̃(z″ = 1 | z = 0))/2: the ε of eq. 15, each trial."""
    of_one = (noisy * labels).sum(-1) / labels.sum()
    of_zero = (noisy * (1 - labels)).sum(-1) / (1 - labels).sum()
    return (of_one - of_zero) / 2


@measurement("ladder.spurious.measure_epsilon")
def measure_epsilon(setting: Setting, generator: torch.Generator) -> Tensor:
    """|ε| of a fair coin beside so many samples with balanced labels, each trial."""
    check_samples(setting)
    labels = _labels(2 * setting["pairs"])
    noisy = (torch.rand(setting["trials"], len(labels), generator=generator) < 0.5).double()
    return _epsilon(noisy, labels).abs()


def mean_epsilon(setting: Setting) -> float:
    """E|X − Y|/2n of two binomials: X − Y + n is Bin(2n, ½), whose mean distance from n is n·C(2n, n)/4ⁿ."""
    check_samples(setting)
    n = setting["pairs"]
    return float(n * comb(2 * n, n) / 4**n / (2 * n))


def root(setting: Setting) -> float:
    check_samples(setting)
    return float(setting["pairs"] ** -0.5)


PAIRS = grid(pairs=(10, 40, 160), trials=20_000)
stated = register(
    Claim(
        id="ladder.eq15",
        title="How large a spurious correlation is",
        statement=(
            "With n samples of each label, a factor that is a fair coin has E|ε| = C(2n, n)/(2·4ⁿ) in eq. "
            "15: about 1/√(4πn)."
        ),
        source=f"{PAPER}, Section 5.3, eq. 15; the size of ε is derived here",
        grid=PAIRS,
        quick=grid(pairs=(10, 40), trials=4000),
        predict=mean_epsilon,
        measure=measure_epsilon,
        rule=Equal(),
        quantity="|ε|",
        axis="pairs",
        reading="exact",
    )
)

register(
    stated.also(
        id="ladder.eq15.rate",
        title="With more data the correlation goes",
        statement="With more data P̃ becomes more accurate and ε → 0, as n^(−½).",
        source=f"{PAPER}, Section 5.3, “with more data”",
        grid=grid(pairs=(10, 40, 160, 640, 2560), trials=1500),
        quick=grid(pairs=(10, 40, 160, 640), trials=1500),
        predict=root,
        rule=Exponent(Along("pairs")),
        reading="exact",
    )
)


@measurement("ladder.spurious.measure_signal")
@per_trial
def measure_signal(setting: Setting, generator: torch.Generator) -> float:
    """|E[g | factor] − what eqs 16 and 17 say|, over both values; a sample with balanced labels a trial.

    The label is the meaningful factor; g is +1 and −1 for the two labels, the signal from the top.
    """
    check_choice(setting, "factor", "meaningful", "spurious")
    labels = _labels(2 * setting["pairs"])
    if setting["factor"] == "meaningful":
        factor, height = labels, 1.0
    else:  # as often 1 as 0, as eq. 15 has it
        ones = labels[torch.randperm(len(labels), generator=generator)]
        factor, height = ones, float(2 * _epsilon(ones, labels))
    signal = 2 * labels - 1
    found = [float(signal[factor == value].mean()) for value in (1, 0)]
    return max(abs(found[0] - height), abs(found[1] + height))


register(
    Claim(
        id="ladder.eq17",
        title="The signal at a meaningful factor, and at a spurious one",
        statement=(
            "With both labels and both values of the factor equally often, E[g_0 | z = 1] and E[g_0 | z = 0] "
            "are ±1 for the factor that is the label, and ±2ε for one with the ε of eq. 15."
        ),
        source=f"{PAPER}, Section 5.3, eqs 16 and 17",
        place="“g_0(z_β″) = E[g_0(z_ω)] = 2ε, −2ε”, Section 5.3, below eq. 17, lines 405 to 425",
        grid=grid(factor=("meaningful", "spurious"), pairs=(4, 20, 100), trials=TRIALS),
        quick=grid(factor=("meaningful", "spurious"), pairs=(4, 20), trials=TRIALS),
        predict=ROUNDING,
        measure=measure_signal,
        rule=HoldsIn(),
        quantity="largest difference from ±1 or ±2ε",
        axis="pairs",
        series="factor",
    )
)


@measurement("ladder.spurious.measure_update")
@per_trial
def measure_update(setting: Setting, generator: torch.Generator) -> float:
    """|Δw − its value| for a node that tells the values of a factor apart by `contrast`; a sample a trial.

    Δw = E[f g_0] with f = contrast or 0; eq. 16 is contrast 0, where f is the same for both values.
    """
    labels = _labels(2 * setting["pairs"])
    factor = labels[torch.randperm(len(labels), generator=generator)]
    contrast = setting["contrast"]
    active = 1 + contrast * factor
    step = float((active * (2 * labels - 1)).mean())
    return float(abs(step - contrast * float(_epsilon(factor, labels))))


register(
    Claim(
        id="ladder.eq16",
        title="What a node that cannot tell learns",
        statement=(
            "Δw = contrast·ε for a node whose activation differs by `contrast` between the values of a "
            "factor, and 0 for one that is constant, whatever the signal from the top."
        ),
        source=f"{PAPER}, Section 5.3, eqs 16 and 17, with their size",
        grid=grid(contrast=(0.0, 0.5, 2.0), pairs=(4, 20, 100), trials=TRIALS),
        quick=grid(contrast=(0.0, 2.0), pairs=(4, 20), trials=TRIALS),
        predict=ROUNDING,
        measure=measure_update,
        rule=HoldsIn(),
        quantity="|Δw − contrast·ε|",
        axis="pairs",
        series="contrast",
        reading="exact",
        remark="So over-fitting to the factor has the speed ε: ε² of the loss is all there is to win.",
    )
)


@measurement("ladder.spurious.measure_batch")
def measure_batch(setting: Setting, generator: torch.Generator) -> Tensor:
    """B·‖P̃ − P‖² of the joint law of two events in a batch of B, P the same law in every trial."""
    check_counts(setting)
    joint, batch, trials = _joint(setting["events"]).flatten(), setting["batch"], setting["trials"]
    drawn = torch.multinomial(joint, trials * batch, replacement=True, generator=generator)
    own = drawn.view(trials, batch) + len(joint) * torch.arange(trials).unsqueeze(1)  # a law for each trial
    counts = torch.bincount(own.flatten(), minlength=trials * len(joint)).view(trials, -1)
    found: Tensor = batch * (counts / batch - joint).square().sum(1)
    return found


def _joint(events: int) -> Tensor:
    """P(z_α, z_β) of so many events each, the same at every call."""
    return chances(events * events, generator=torch.Generator().manual_seed(events)).view(events, events)


def spread(setting: Setting) -> float:
    """1 − Σ P², of a multinomial."""
    check_counts(setting)
    return float(1 - _joint(setting["events"]).square().sum())


register(
    Claim(
        id="ladder.sgd",
        title="A batch as a noisy P",
        statement=(
            "A step on a batch of B is a step under a perturbed P̃(z_α, z_β), whose squared distance from P "
            "is (1 − Σ P²)/B on average."
        ),
        source=f"{PAPER}, Section 5.3, “stochastic or not”; the size is that of a multinomial",
        grid=grid(events=(2, 4, 8), batch=(1, 10, 100), trials=20_000),
        quick=grid(events=(2, 4), batch=(1, 10), trials=8000),
        predict=spread,
        measure=measure_batch,
        rule=Equal(),
        quantity="B·‖P̃ − P‖²",
        axis="batch",
        series="events",
        reading="exact",
        remark="Whether such noise leads to flat minima is an experiment: docs/ladder.md, batch size.",
    )
)
