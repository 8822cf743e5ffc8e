"""Errata, each beside its correction. Not for statements that hold.

In the paper the law of the mask, the size of x and the keep probability of Section 3; in the notes on it the
norm of Lemma 2.5 and the ReLU. All settings are small: the errors are large.
"""

from __future__ import annotations

from math import sqrt

import torch
from torch import Tensor

from ..._core import BadInput
from .._claim import Claim, grid, measurement
from .._rates import Along, NotGrowing
from .._registry import register
from .._rules import Equal
from ..results import Setting
from ._conditions import check_keep, check_layer

PAPER = "Arora, Liang & Ma 2015"
NOTES = "Notes of 2016 on Arora, Liang & Ma"


def _mask(shape: tuple[int, ...], keep: float, generator: torch.Generator) -> Tensor:
    """Each entry is kept with probability ρ."""
    check_keep(keep)
    return torch.rand(shape, generator=generator, dtype=torch.float64) < keep


def _weights(setting: Setting, generator: torch.Generator) -> Tensor:
    """trials × n × m."""
    check_layer(setting)
    shape = (setting["trials"], setting["n"], setting["m"])
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def _hidden(setting: Setting) -> Tensor:
    """k equal entries, ‖h‖ = 1."""
    h = torch.zeros(setting["m"], dtype=torch.float64)
    h[: setting["k"]] = setting["k"] ** -0.5
    return h


def check_pattern(setting: Setting) -> None:
    check_keep(setting["keep"])
    if not 0 <= setting["ones"] <= setting["n"]:
        raise BadInput(
            "between 0 and n ones in the mask (eq. 2)",
            got=f"{setting['ones']} of n = {setting['n']}",
            do="change ones",
        )


@measurement("alm.slips.measure_pattern")
def measure_pattern(setting: Setting, generator: torch.Generator) -> Tensor:
    """How often, over a batch of masks, just the first `ones` of n entries are kept."""
    check_pattern(setting)
    masks = _mask((setting["trials"], setting["batch"], setting["n"]), setting["keep"], generator)
    wanted = torch.arange(setting["n"]) < setting["ones"]
    same: Tensor = masks == wanted
    return same.all(2).double().mean(1)


def pattern_printed(setting: Setting) -> float:
    check_pattern(setting)
    return float(setting["keep"] ** setting["ones"])


def pattern(setting: Setting) -> float:
    return float(pattern_printed(setting) * (1 - setting["keep"]) ** (setting["n"] - setting["ones"]))


@measurement("alm.slips.measure_nonzeros")
def measure_nonzeros(setting: Setting, generator: torch.Generator) -> Tensor:
    """‖x‖₀ for x = r(αWh) ⊙ mask, one W and mask a trial."""
    signal = (_weights(setting, generator) @ _hidden(setting)).relu()
    x = signal * _mask(tuple(signal.shape), setting["t"] / setting["n"], generator)
    return (x != 0).double().sum(1)


def kept(setting: Setting) -> float:
    check_layer(setting)
    return float(setting["t"])


def kept_half(setting: Setting) -> float:
    return kept(setting) / 2


@measurement("alm.slips.measure_kept")
def measure_kept(setting: Setting, generator: torch.Generator) -> Tensor:
    """How many of n entries a mask leaves whose keep probability is the formula `rho`."""
    check_layer(setting)
    share = setting["k"] / setting["n"]
    keep = 1 - share if setting["rho"] == "1 − k/n" else share
    return _mask((setting["trials"], setting["n"]), keep, generator).double().sum(1)


def sparsity(setting: Setting) -> float:
    check_layer(setting)
    return float(setting["k"])


@measurement("alm.slips.measure_error")
def measure_error(setting: Setting, generator: torch.Generator) -> Tensor:
    """‖Wᵀx − h‖∞ where ‖h‖ = `size`."""
    weights = _weights(setting, generator)
    h: Tensor = setting["size"] * _hidden(setting)
    signal: Tensor = (weights @ h).relu() * (2 / setting["t"])
    x = signal * _mask(tuple(signal.shape), setting["t"] / setting["n"], generator)
    return ((x.unsqueeze(1) @ weights).squeeze(1) - h).abs().amax(1)


def error_printed(setting: Setting) -> float:
    check_layer(setting)
    return float(setting["size"] ** 2 / sqrt(setting["t"]))


def error_corrected(setting: Setting) -> float:
    check_layer(setting)
    return float(setting["size"] / sqrt(setting["t"]))


@measurement("alm.slips.measure_recovered")
def measure_recovered(setting: Setting, generator: torch.Generator) -> Tensor:
    """Mean of ĥ_i/h_i over the support, with r as the notes print it or with the ReLU."""
    weights = _weights(setting, generator)
    h = _hidden(setting)
    signal = weights @ h * (2 / setting["t"])
    alive: Tensor = signal.sign() * (signal >= 0) if setting["relu"] == "sgn(x)·(x ≥ 0)" else signal.relu()
    x = alive * _mask(tuple(signal.shape), setting["t"] / setting["n"], generator)
    return ((x.unsqueeze(1) @ weights).squeeze(1) / h)[:, : setting["k"]].mean(1)


def unchanged(setting: Setting) -> float:
    check_layer(setting)
    return 1.0


PATTERNS = grid(n=5, ones=(1, 2, 4), keep=(0.3, 0.5, 0.7), trials=100, batch=10000)
PATTERNS_QUICK = grid(n=3, ones=(1, 2), keep=(0.3, 0.5), trials=50, batch=3000)
stated = register(
    Claim(
        id="alm.eq2",
        title="Law of the mask, as printed",
        statement=(
            "A mask n_drop ∈ {0,1}^n that keeps each entry with probability ρ has Pr[n_drop] = ρ^‖n_drop‖₀."
        ),
        source=f"{PAPER}, eq. 2",
        place="“Pr[n_drop] = ρ^{‖n_drop‖_0}”, Section 2, eq. 2, line 60",
        grid=PATTERNS,
        quick=PATTERNS_QUICK,
        predict=pattern_printed,
        measure=measure_pattern,
        rule=Equal(),
        quantity="probability of one mask",
        axis="ones",
        series="keep",
        twin="alm.eq2.corrected",
        expected="failed",
        remark="The factor (1 − ρ)^(n − ‖n_drop‖₀) is missing: the printed probabilities sum to (1 + ρ)^n.",
    )
)

register(
    stated.other(
        title="Law of the mask",
        statement=(
            "A mask n_drop ∈ {0,1}^n that keeps each entry with probability ρ has "
            "Pr[n_drop] = ρ^‖n_drop‖₀·(1 − ρ)^(n − ‖n_drop‖₀)."
        ),
        source=f"{PAPER}, eq. 2, normalized",
        predict=pattern,
        reading="corrected",
    )
)

SIZES = grid(n=(100, 400), m=10, k=5, t=(20, 50, 100), trials=400)
SIZES_QUICK = grid(n=100, m=10, k=5, t=(20, 50, 100), trials=400)
stated = register(
    Claim(
        id="alm.sec2.2.nonzeros",
        title="Size of x, as printed",
        statement="The expected number of non-zeros of x = r(αWh) ⊙ n_drop is t = ρn.",
        source=f"{PAPER}, Section 2.2, below eq. 6",
        place="“t is the (expected) number of non-zeros in vector x”, Section 2.2, below eq. 6, line 102",
        grid=SIZES,
        quick=SIZES_QUICK,
        predict=kept,
        measure=measure_nonzeros,
        rule=Equal(),
        quantity="‖x‖₀",
        axis="t",
        series="n",
        twin="alm.sec2.2.nonzeros.corrected",
        expected="failed",
        remark="t is the expected number of non-zeros of the mask; the ReLU zeroes half of what it keeps.",
    )
)

register(
    stated.other(
        title="Size of x",
        statement="The expected number of non-zeros of x = r(αWh) ⊙ n_drop is t/2.",
        source=f"{PAPER}, Section 2.2, below eq. 6, with the ReLU",
        predict=kept_half,
        reading="corrected",
    )
)


def _keeping(formula: str) -> tuple[Setting, ...]:
    return grid(n=(200, 2000), k=(20, 40, 80), rho=formula, trials=200)


stated = register(
    Claim(
        id="alm.sec3.keep",
        title="Keep probability of the sampling function, as printed",
        statement=(
            "Dropout noise with keep probability ρ = 1 − k/n leaves k of n entries on average, as s_k does."
        ),
        source=f"{PAPER}, Section 3, above eq. 14",
        place=(
            "“add dropout noise with ρ = 1 − k_{ℓ−1}/n^{ℓ−1}”, Section 3, above eq. 14, line 178; in Section "
            "2 coordinates are zeroed “with probability 1 − ρ”, line 54"
        ),
        grid=_keeping("1 − k/n"),
        predict=sparsity,
        measure=measure_kept,
        rule=Equal(),
        quantity="entries kept",
        axis="k",
        series="n",
        twin="alm.sec3.keep.corrected",
        expected="failed",
        remark=(
            "1 − k/n is the probability of dropping; Section 2 has ρ for that of keeping, with α = "
            "2/(ρn) = 2/k."
        ),
    )
)

register(
    stated.other(
        title="Keep probability of the sampling function",
        statement="Dropout with keep probability ρ = k/n leaves k of n entries on average, as s_k does.",
        source=f"{PAPER}, Section 3, above eq. 14, with ρ as in Section 2",
        grid=_keeping("k/n"),
        reading="corrected",
    )
)

SCALES = grid(n=200, m=50, k=10, t=80, size=(0.1, 0.3, 1.0, 3.0, 10.0), trials=400)
stated = register(
    Claim(
        id="alm.notes.lemma2.5",
        title="Largest error of ĥ, as the notes have it",
        statement=(
            "‖Wᵀx − h‖∞ ≤ δ‖h‖² with one δ for all scales of h: its ratio to ‖h‖²/√t does not grow with "
            "1/‖h‖."
        ),
        source=f"{NOTES}, Lemma 2.5",
        place="“‖Wᵀx − h‖_∞ ≤ δ‖h‖²”, notes, Lemma 2.5, lines 118 and 119",
        grid=SCALES,
        predict=error_printed,
        measure=measure_error,
        rule=NotGrowing(Along("1/‖h‖", lambda setting: 1 / setting["size"])),
        quantity="‖Wᵀx − h‖∞",
        axis="size",
        twin="alm.notes.lemma2.5.corrected",
        expected="failed",
        remark=(
            "The ReLU is homogeneous: both sides must scale as h does. The notes also have δ = Õ(1/√m) "
            "for Õ(1/√t)."
        ),
    )
)

register(
    stated.other(
        title="Largest error of ĥ at any scale",
        statement=(
            "‖Wᵀx − h‖∞ ≤ δ‖h‖ with one δ for all scales of h: its ratio to ‖h‖/√t does not grow with 1/‖h‖."
        ),
        source=f"{PAPER}, Lemma 2.5, eq. 11",
        predict=error_corrected,
        reading="corrected",
    )
)

STEPS = grid(n=(200, 400), m=8, k=4, t=(100, 200), relu="sgn(x)·(x ≥ 0)", trials=400)
stated = register(
    Claim(
        id="alm.notes.relu",
        title="ReLU, as the notes have it",
        statement="With r(x) = sgn(x)·(x ≥ 0) in x = r(αWh) ⊙ n_drop, α = 2/t, E ĥ_i = h_i on the support.",
        source=f"{NOTES}, one-layer model",
        place="“r(x) = sgn(x)·(x ≥ 0)”, notes, one-layer model, line 69",
        grid=STEPS,
        predict=unchanged,
        measure=measure_recovered,
        rule=Equal(),
        quantity="mean of ĥ_i/h_i",
        axis="t",
        series="n",
        twin="alm.notes.relu.corrected",
        expected="failed",
        remark=(
            "This r is a step, which forgets the size of its input: E ĥ_i = t·h_i/(√(2π)‖h‖), whatever α is."
        ),
    )
)

register(
    stated.other(
        title="ReLU",
        statement="With r(x) = x·(x ≥ 0) in x = r(αWh) ⊙ n_drop, α = 2/t, E ĥ_i = h_i on the support.",
        source=f"{PAPER}, eqs 1 and 19",
        grid=tuple({**setting, "relu": "x·(x ≥ 0)"} for setting in STEPS),
        reading="corrected",
    )
)
