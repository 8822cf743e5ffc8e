"""Lemma 1, Theorems 8 and 9: nodes that stand for one factor each, and the step of their weights.

Algebra of P, F, G̃ and W: there are no inputs, and nothing is trained. Factors are binary, as in the paper.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..._core import BadInput
from ...ladder import (
    activation_gap,
    activation_of,
    gradient_of,
    kron,
    normalize,
    off_block,
    product_conditional,
)
from .._claim import Claim, grid, measurement, per_trial
from .._registry import register
from .._rules import Equal
from ..results import Setting
from ._draws import PAPER, chances, check_choice, check_counts, normal

ROUNDING = 1e-12  # of shares that are 1 but for a few dozen operations in float64
HALF = torch.full((2,), 0.5, dtype=torch.float64)
FACTORS = 10  # at most: events are 2 to that power
# What node j may do to its activation, each node its own (Lemma 1).
FUNCTIONS = (torch.relu, torch.tanh, torch.square, torch.sin)


def check_factors(setting: Setting) -> None:
    check_counts(setting)
    for name in ("factors", "copies", "shared"):
        if setting.get(name, 1) > FACTORS:
            raise BadInput(
                f"{name} ≤ {FACTORS}: events are 2 to that power", got=setting[name], do=f"lower {name}"
            )


def pure(setting: Setting) -> float:
    check_factors(setting)
    return 1.0


def _disentangled(count: int, generator: torch.Generator) -> Tensor:
    """F of so many factors, at random."""
    return activation_of(list(normal(count, 2, generator=generator)))


def _per_column(activation: Tensor, generator: torch.Generator) -> Tensor:
    """A function of its own, at random, for every column."""
    chosen = torch.randint(len(FUNCTIONS), (activation.shape[1],), generator=generator).tolist()
    return torch.stack([FUNCTIONS[kind](activation[:, j]) for j, kind in enumerate(chosen)], 1)


@measurement("ladder.disentangled.measure_lemma1")
@per_trial
def measure_lemma1(setting: Setting, generator: torch.Generator) -> float:
    """How disentangled a sum, a function per column, or a product of these is, of disentangled F^(i)."""
    check_factors(setting)
    check_choice(setting, "made", "sum", "function", "product")
    count = setting["factors"]
    terms = [_disentangled(count, generator) for _ in range(setting["terms"])]
    if setting["made"] == "sum":
        weights = normal(len(terms), generator=generator)
        made = torch.stack([weight * term for weight, term in zip(weights, terms, strict=True)]).sum(0)
    elif setting["made"] == "function":
        made = _per_column(terms[0], generator)
    else:
        made = torch.stack([_per_column(term, generator) for term in terms]).prod(0)
    return 1 - activation_gap(made, [2] * count)


def _partition(count: int, largest: int, generator: torch.Generator) -> list[list[int]]:
    """Sets S_1 to S_count of 1 to `largest` of the child's factors, in random order, each factor in one."""
    sizes = torch.randint(1, largest + 1, (count,), generator=generator)
    order = torch.randperm(int(sizes.sum()), generator=generator)
    return [part.tolist() for part in order.split(sizes.tolist())]


def _conditional(sets: list[list[int]], generator: torch.Generator) -> Tensor:
    """P_αβ = ⊗ P(z_β[S_i] | z_α[i]) at random."""
    parts = [chances(2, 2 ** len(own), generator=generator) for own in sets]
    return product_conditional(parts, sets, [2] * sum(map(len, sets)))


def separable_weights(sets: list[list[int]], generator: torch.Generator) -> Tensor:
    """W_βα, child nodes × parent nodes, with all but the blocks [S_j, j] zero."""
    weights = torch.zeros(sum(map(len, sets)), len(sets), dtype=torch.float64)
    for j, own in enumerate(sets):
        weights[own, j] = normal(len(own), generator=generator)
    return weights


@measurement("ladder.disentangled.measure_forward")
@per_trial
def measure_forward(setting: Setting, generator: torch.Generator) -> float:
    """How disentangled F_α is, of children with sets S of their own, under any P(z_α)."""
    check_factors(setting)
    check_choice(setting, "layer", "linear", "relu", "norm, relu", "relu, norm")
    count = setting["factors"]
    active = normal(count, generator=generator).repeat(2**count, 1)  # biases
    for _ in range(setting["children"]):
        sets = _partition(count, 2, generator)
        below = _disentangled(sum(map(len, sets)), generator)
        active = active + _conditional(sets, generator) @ below @ separable_weights(sets, generator)
    prior = chances(2**count, generator=generator)
    for step in setting["layer"].split(", "):
        if step == "relu":
            active = torch.relu(active)
        elif step == "norm":
            active = normalize(active, prior)[0] + 0.5  # a shift, so that some stays after the ReLU
    return 1 - activation_gap(active, [2] * count)


@measurement("ladder.disentangled.measure_update")
@per_trial
def measure_update(setting: Setting, generator: torch.Generator) -> float:
    """How separable ΔW = (PF)ᵀG̃ is: 1 less its share outside the blocks [S_j, j]."""
    check_factors(setting)
    check_choice(setting, "centred", "gradient", "activation", "neither")
    count = setting["factors"]
    sets = _partition(count, 2, generator)
    marginals = list(chances(count, 2, generator=generator))
    conditional = _conditional(sets, generator)
    below = _disentangled(sum(map(len, sets)), generator)
    pulls = normal(count, 2, generator=generator)
    if setting["centred"] == "gradient":
        pulls = pulls - pulls.mean(1, keepdim=True)
    elif setting["centred"] == "activation":
        below = below - (kron(marginals) @ conditional) @ below
    step = (conditional @ below).mT @ gradient_of(list(pulls), marginals)
    return 1 - off_block(step, sets)


for made, number, title, statement, printed in (
    (
        "sum",
        1,
        "Sums of disentangled activations",
        "If all F^(i) are disentangled, so is Σ_i w_i F^(i).",
        "F = Σ_i w_i F^(i) is also disentangled",
    ),
    (
        "function",
        2,
        "Functions of disentangled activations",
        "If F is disentangled, so is h(F) for any function h_j of each column, entry by entry.",
        "h is any per-column element-wise function, then h(F) is disentangled",
    ),
    (
        "product",
        3,
        "Products of disentangled activations",
        "If all F^(i) are disentangled, so is the entrywise product of functions of them, as in (2).",
        "h_i are per-column element-wise function",
    ),
):
    register(
        Claim(
            id=f"ladder.lemma1.{number}",
            title=title,
            statement=statement,
            source=f"{PAPER}, Lemma 1 ({number})",
            place=f"“{printed}”, Section 7.7, Lemma 1, line {1096 + number}",
            grid=grid(made=made, factors=(1, 2, 4, 6), terms=(2, 4), trials=30),
            quick=grid(made=made, factors=(1, 3), terms=3, trials=10),
            predict=pure,
            measure=measure_lemma1,
            rule=Equal(tolerance=ROUNDING),
            quantity="1 − ‖F − nearest disentangled F‖/‖F‖",
            axis="factors",
            series="terms",
        )
    )

LAYERS = ("linear", "relu", "norm, relu", "relu, norm")
register(
    Claim(
        id="ladder.thm8",
        title="Disentangled forward",
        statement=(
            "If every P_αβ = ⊗_i P(z_β[S_i] | z_α[i]), W_βα is separable with respect to its S_i and F_β is "
            "disentangled, so is F_α: with and without ReLU and batch norm."
        ),
        source=f"{PAPER}, Theorem 8",
        place="“F_α is also disentangled (with/without ReLU /Batch Norm)”, Section 5.2, Theorem 8, line 361",
        grid=grid(factors=(2, 4), children=(1, 3), layer=LAYERS, trials=30),
        quick=grid(factors=3, children=2, layer=LAYERS, trials=10),
        predict=pure,
        measure=measure_forward,
        rule=Equal(tolerance=ROUNDING),
        quantity="1 − ‖F_α − nearest disentangled F_α‖/‖F_α‖",
        axis="factors",
        series="layer",
        remark="P(z_α) need not be a product: batch norm changes a column by one scale and one shift.",
    )
)

thm9 = register(
    Claim(
        id="ladder.thm9",
        title="Separable weight update",
        statement=(
            "If P_αβ = ⊗_i P(z_β[S_i] | z_α[i]), F_β and G̃_α are disentangled and 1ᵀG̃_α = 0, then ΔW_βα is "
            "separable with respect to the S_i."
        ),
        source=f"{PAPER}, Theorem 9",
        place=(
            "“the gradient update ΔW_βα is separable with respect to {S_i}”, Section 5.2, Theorem 9, line 363"
        ),
        grid=grid(factors=(1, 2, 4), centred="gradient", trials=30),
        quick=grid(factors=(2, 3), centred="gradient", trials=10),
        predict=pure,
        measure=measure_update,
        rule=Equal(tolerance=ROUNDING),
        quantity="1 − ‖ΔW outside its blocks‖/‖ΔW‖",
        axis="factors",
    )
)

thm9_activation = register(
    thm9.also(
        id="ladder.thm9.activation",
        title="Separable weight update by centred activations",
        statement="Theorem 9 with E[f_k] = 0 for every node of F_β, and G̃_α not centred.",
        source=f"{PAPER}, Theorem 9; the condition is given here",
        grid=grid(factors=(1, 2, 4), centred="activation", trials=30),
        quick=grid(factors=(2, 3), centred="activation", trials=10),
        reading="beyond the paper",
        remark=(
            "Outside the blocks ΔW has E[f_k]·1ᵀg̃_j: either of the two will do, and batch norm without a "
            "shift, after the child's ReLU, gives this one."
        ),
    )
)

register(
    thm9_activation.also(
        id="ladder.thm9.uncentred",
        title="Separable weight update without centring",
        statement="Theorem 9 without 1ᵀG̃_α = 0.",
        source=f"{PAPER}, Theorem 9, without its last condition",
        grid=grid(factors=(2, 4), centred="neither", trials=30),
        quick=grid(factors=(2, 3), centred="neither", trials=10),
        expected="failed",
        remark="More than half of ‖ΔW‖ lies outside the blocks, the more the more factors there are.",
    )
)
