"""Section 7.7.1: what backpropagation does to disentangled gradients, and what many parents can mend."""

from __future__ import annotations

import torch
from torch import Tensor

from ..._core import BadInput
from ...ladder import (
    gradient_of,
    kron,
    nearest_gradient,
    product_conditional,
)
from .._claim import Claim, grid, measurement, per_trial
from .._registry import register
from .._rules import Equal, HoldsIn
from ..results import Setting
from ._disentangled import HALF, ROUNDING, check_factors, separable_weights
from ._draws import PAPER, chances, check_counts, normal, one


@measurement("ladder.disentangled.measure_eq104")
@per_trial
def measure_eq104(setting: Setting, generator: torch.Generator) -> float:
    """How far PᵀG̃Wᵀ is from eq. 104, as a share of it: blocks P_Sᵀg̃w_Sᵀ between the p[S] of the others."""
    count = setting["factors"]
    sizes = torch.randint(1, 3, (count,), generator=generator).tolist()
    sets = [list(range(sum(sizes[:i]), sum(sizes[: i + 1]))) for i in range(count)]
    marginals = list(chances(count, 2, generator=generator))
    parts = [chances(2, 2**size, generator=generator) for size in sizes]
    pulls = list(normal(count, 2, generator=generator))
    weights = separable_weights(sets, generator)
    conditional = product_conditional(parts, sets, [2] * sum(sizes))
    message = conditional.mT @ gradient_of(pulls, marginals) @ weights.mT
    below = [part.mT @ chance for part, chance in zip(parts, marginals, strict=True)]
    blocks = []
    for i, own in enumerate(sets):
        block = torch.outer(parts[i].mT @ pulls[i], weights[own, i])
        before, after = below[:i], below[i + 1 :]
        blocks.append(kron([*(p.unsqueeze(1) for p in before), block, *(p.unsqueeze(1) for p in after)]))
    printed = torch.cat(blocks, 1)
    return float((message - printed).norm() / printed.norm())


def check_copies(setting: Setting) -> None:
    check_factors(setting)
    if not 0 <= setting["flip"] < 0.5:
        raise BadInput("flips in [0, 1/2), else the copies say nothing", got=setting["flip"], do="lower flip")


def _shares(gradient: Tensor) -> Tensor:
    """How much of the square of each column the nearest disentangled one has, with p[k] = (1/2, 1/2)."""
    factors = gradient.shape[1]
    nearest = nearest_gradient(gradient, [HALF] * factors)
    return nearest.square().sum(0) / gradient.square().sum(0)


def _back_from_copies(setting: Setting, generator: torch.Generator) -> Tensor:
    """Shares of the columns of PᵀG̃Wᵀ, with G̃ disentangled and centred and W separable, both at random.

    α has two fair bits, β noisy copies: `copies` of the first bit, one of the second.
    """
    copies, flip = setting["copies"], setting["flip"]
    copy = torch.tensor([[1 - flip, flip], [flip, 1 - flip]], dtype=torch.float64)
    first = torch.stack([kron([copy[bit]] * copies) for bit in (0, 1)])
    sets = [list(range(copies)), [copies]]
    conditional = product_conditional([first, copy], sets, [2] * (copies + 1))
    pull = torch.tensor([-1.0, 1.0], dtype=torch.float64)
    gradient = gradient_of([size * pull for size in normal(2, generator=generator)], [HALF, HALF])
    return _shares(conditional.mT @ gradient @ separable_weights(sets, generator).mT)


@measurement("ladder.disentangled.measure_own_copies")
@per_trial
def measure_own_copies(setting: Setting, generator: torch.Generator) -> float:
    """Of a node among the copies."""
    return float(_back_from_copies(setting, generator)[0])


@measurement("ladder.disentangled.measure_beside_copies")
@per_trial
def measure_beside_copies(setting: Setting, generator: torch.Generator) -> float:
    """Of the node beside the copies, which meets p[S_1] in place of a product."""
    return float(_back_from_copies(setting, generator)[-1])


def _overlaps(setting: Setting) -> tuple[float, float]:
    """A = ⟨v, v⟩ and B = ⟨v₊, v₋⟩ of one copy; A + B = 1."""
    check_copies(setting)
    across = 2 * setting["flip"] * (1 - setting["flip"])
    return 1 - across, across


def own_share(setting: Setting) -> float:
    """2^{1−k}(A − B)/(A^k − B^k): of v₊^{⊗k} − v₋^{⊗k} only what depends on one copy."""
    (own, across), copies = _overlaps(setting), setting["copies"]
    return float(2 ** (1 - copies) * (own - across) / (own**copies - across**copies))


def beside_share(setting: Setting) -> float:
    """2^{1−k}/(A^k + B^k): of p[S_1] = (v₊^{⊗k} + v₋^{⊗k})/2 only the uniform part."""
    (own, across), copies = _overlaps(setting), setting["copies"]
    return float(2 ** (1 - copies) / (own**copies + across**copies))


def check_parents(setting: Setting) -> None:
    check_factors(setting)
    if setting["parents"] > 2 ** setting["shared"] - 1:
        raise BadInput(
            "at most 2^|S| − 1 parents: from there on every c is at hand",
            got=setting["parents"],
            do="lower parents or raise shared",
        )


def _differences(size: int, count: int, generator: torch.Generator) -> Tensor:
    """v₊ − v₋ of so many parents with a fair bit each, 2^|S| × parents, for uniform p[S] = (v₊ + v₋)/2.

    The order of events means nothing to their law. It is skewed, not normal.
    """
    drawn = -torch.log1p(-torch.rand(2**size, count, generator=generator, dtype=torch.float64))
    drawn = drawn - drawn.mean(0)
    inside = torch.rand(count, generator=generator, dtype=torch.float64)
    changes = inside * drawn / (drawn.abs().amax(0) * 2**size)  # |change| ≤ p, so that v₊ and v₋ are ≥ 0
    above, below = 2.0**-size + changes, 2.0**-size - changes
    apart: Tensor = above - below
    return apart


@measurement("ladder.disentangled.measure_parents")
@per_trial
def measure_parents(setting: Setting, generator: torch.Generator) -> float:
    """How much of Σ_α c_α(v₊ − v₋) is disentangled, for the best c, of a node in S: mean of some draws."""
    size = setting["shared"]
    pull = torch.tensor([-1.0, 1.0], dtype=torch.float64)
    wanted = gradient_of([pull] * size, [HALF] * size)
    shares = []
    for _ in range(setting["draws"]):
        spanned = _differences(size, setting["parents"], generator)
        weights = torch.linalg.lstsq(spanned, wanted).solution  # parents × nodes of S
        shares.append(_shares(spanned @ weights).mean())
    return float(torch.stack(shares).mean())


def spanned_share(setting: Setting) -> float:
    return float(setting["parents"] / (2 ** setting["shared"] - 1))


@measurement("ladder.disentangled.measure_two_parents")
def measure_two_parents(setting: Setting, generator: torch.Generator) -> list[float]:
    """1 less the second singular value over the first, of c₁D₁ + c₂D₂, c for rows or columns of sum 0."""
    found = []
    for trial in range(setting["trials"]):
        first, second = _differences(2, 2, generator).mT.reshape(2, 2, 2)
        along = trial % 2
        sums = [float(one.sum(along)[0]) for one in (first, second)]
        values = torch.linalg.svdvals(sums[1] * first - sums[0] * second)
        found.append(1 - float(values[1] / values[0]))
    return found


register(
    Claim(
        id="ladder.eq104",
        title="The gradient that comes back",
        statement="PᵀG̃Wᵀ has the blocks p[S_1]⊗…⊗P_{S_i}ᵀg̃_i w_{S_i}ᵀ⊗…⊗p[S_n].",
        source=f"{PAPER}, eqs. 98–104",
        place=(
            "“For general cases, G̃_β^raw takes the following form”, Section 7.7.1, eq. 104, lines 1232 to "
            "1275"
        ),
        grid=grid(factors=(2, 3, 4), trials=110),
        quick=grid(factors=(2, 3), trials=30),
        predict=ROUNDING,
        measure=measure_eq104,
        domain=check_factors,
        rule=HoldsIn(),
        quantity="‖PᵀG̃Wᵀ − eq. 104‖/‖eq. 104‖",
        axis="factors",
    )
)


eq101 = register(
    Claim(
        id="ladder.eq101",
        title="Backpropagation breaks disentanglement",
        statement=(
            "Where k child bits copy one parent bit with flips ε, a node of theirs receives a gradient of "
            "which the share 2^{1−k}(A − B)/(A^k − B^k) is disentangled, B = 2ε(1 − ε), A = 1 − B: one half "
            "for k = 2, whatever ε, G̃_α and W are."
        ),
        source=f"{PAPER}, §7.7.1, eq. 101; the share is derived here",
        grid=grid(copies=(1, 2, 3, 4), flip=(0.0, 0.1, 0.3), trials=10),
        quick=grid(copies=(1, 2, 3), flip=(0.1, 0.3), trials=5),
        predict=own_share,
        measure=measure_own_copies,
        domain=check_copies,
        rule=Equal(tolerance=ROUNDING),
        quantity="share of the gradient's square that is disentangled",
        axis="copies",
        series="flip",
        reading="exact",
        remark="The paper says that G̃ is no longer disentangled, not how far. One copy (k = 1) is harmless.",
    )
)


register(
    eq101.also(
        id="ladder.eq103",
        title="Independence is not carried down",
        statement=(
            "Beside k such copies, a node of another bit receives a gradient of which the share "
            "2^{1−k}/(A^k + B^k) is disentangled: p[S] of the copies is no product."
        ),
        source=f"{PAPER}, §7.7.1, eqs. 102 and 103; the share is derived here",
        predict=beside_share,
        measure=measure_beside_copies,
    )
)


def _parents(shared: int, parents: tuple[int, ...], draws: int, trials: int) -> tuple[Setting, ...]:
    return grid(shared=shared, parents=parents, draws=draws, trials=trials)


register(
    Claim(
        id="ladder.eq105",
        title="Many parents can mend it",
        statement=(
            "If the v₊ − v₋ of the parents span all of dimension 2^|S| − 1, there are weights with which "
            "Σ_α P_{α,S}ᵀg̃w is disentangled."
        ),
        source=f"{PAPER}, §7.7.1, eq. 105",
        place=(
            "“we can always find c (or equivalently, weights) so that Eqn. 105 becomes rank-1 tensor (or "
            "disentangled)”, Section 7.7.1, lines 1277 to 1300"
        ),
        grid=(*_parents(1, (1,), 5, 20), *_parents(2, (3,), 5, 20), *_parents(3, (7,), 5, 20)),
        quick=(*_parents(2, (3,), 3, 5), *_parents(3, (7,), 3, 5)),
        predict=spanned_share,
        measure=measure_parents,
        domain=check_parents,
        rule=Equal(tolerance=1e-9),  # least squares with condition numbers up to 1e5 or so
        quantity="share of the gradient's square that is disentangled, for the best weights",
        axis="shared",
        remark=(
            "It takes 2^|S| − 1 parents, 15 for the paper's example of |S| = 4. That such weights exist does "
            "not say that descent finds them."
        ),
    )
)


register(
    Claim(
        id="ladder.eq105.fewer",
        title="Fewer parents mend a part of it",
        statement=(
            "With K < 2^|S| − 1 parents, whose v₊ − v₋ do not favour any event, the best weights make the "
            "share K/(2^|S| − 1) of the gradient disentangled, on average."
        ),
        source=f"{PAPER}, §7.7.1, eq. 105; the share is derived here",
        grid=(
            *_parents(2, (1, 2), 25, 50),
            *_parents(3, (2, 4, 6), 25, 50),
            *_parents(4, (3, 8, 14), 25, 50),
        ),
        quick=(*_parents(2, (1, 2), 25, 20), *_parents(3, (4,), 10, 20)),
        predict=spanned_share,
        measure=measure_parents,
        domain=check_parents,
        rule=Equal(),
        quantity="share of the gradient's square that is disentangled, for the best weights",
        axis="parents",
        series="shared",
        reading="exact",
    )
)


register(
    Claim(
        id="ladder.eq105.rank-one",
        title="Two parents make it rank one",
        statement=(
            "For |S| = 2 and any two parents there are weights, not all 0, with which Σ_α P_{α,S}ᵀg̃w is a "
            "product of two vectors."
        ),
        source=f"{PAPER}, §7.7.1, eq. 105, with rank one for disentangled",
        grid=grid(parents=2, trials=100),
        quick=grid(parents=2, trials=20),
        predict=one,
        measure=measure_two_parents,
        domain=check_counts,
        rule=Equal(tolerance=1e-9),  # c₁D₁ + c₂D₂ may be small against its terms
        quantity="1 − σ₂/σ₁",
        axis="parents",
        reading="beyond the paper",
        remark=(
            "A 2 × 2 matrix of sum 0 has the determinant −(row sum)(column sum): weights that make one of "
            "them 0 do it. But the product is g⊗q with any q, and Definition 4 asks for q = p[2]: rank one "
            "is less than disentangled."
        ),
    )
)
