"""Theorem 3: a residual net of n ln n parameters for any labels: as built here, and by the paper's steps.

The paper's steps are done here with its constants; what works is `identity.memorize`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, log, sqrt

import torch
from torch import Tensor

from ..._core import BadInput
from ...identity import memorize, random_projection
from .._claim import Claim, grid, measurement, per_trial
from .._rates import Along, NotGrowing
from .._registry import register
from .._rules import Equal, HoldsIn, MeanBelow
from ..results import Setting

PAPER = "Hardt & Ma 2016"
REVIEW = "Review of 2018 of Hardt & Ma"
RELAXED = (1 / 10, 1 / 6, 1 / 3)  # ρ'/ρ: the printed steps get the one of these that serves them best
THERE = 1e-6  # a point that is so close to its target has arrived: far above rounding, far below a miss


def check_points(setting: Setting) -> None:
    for name, least in (("n", 2), ("d", 1), ("r", 2), ("trials", 1)):
        if name in setting and not setting[name] >= least:
            raise BadInput(f"{name} ≥ {least}", got=setting[name], do=f"raise {name}")


def _unit(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    points = torch.randn(shape, generator=generator, dtype=torch.float64)
    unit: Tensor = points / points.norm(dim=-1, keepdim=True)
    return unit


def _points(setting: Setting, generator: torch.Generator) -> Tensor:
    check_points(setting)
    return torch.randn(setting["n"], setting["d"], generator=generator, dtype=torch.float64)


def _labels(setting: Setting, generator: torch.Generator) -> Tensor:
    return torch.randint(0, setting["r"], (setting["n"],), generator=generator)


def printed_block(h: Tensor, moved: Tensor, onto: Tensor, relaxed: float) -> Tensor:
    """h + V r(Uh + s) with rows α_i of U, s = −(1 − 2ρ'), columns (β_i − α_i)/(‖α_i‖² − (1 − 2ρ')) of V."""
    silent = 1 - 2 * relaxed
    outer = ((onto - moved) / (moved.square().sum(1, keepdim=True) - silent)).T
    return h + (h @ moved.T - silent).relu() @ outer.T


def printed_net(x: Tensor, y: Tensor, classes: int, generator: torch.Generator) -> Tensor:
    """Whether each point ends nearest to its label's target under the printed steps, with the best ρ'."""
    squares = torch.nn.functional.pdist(x).square()
    rho = float(squares.min())
    width = ceil(10 * log(len(x)) / rho**2)
    z = x @ random_projection(x.shape[1], width, generator).T
    goals = _unit((classes, width), generator)
    best = torch.zeros(len(x), dtype=torch.bool)
    for share in RELAXED:
        h = z
        for start in range(0, len(x), width):
            part = slice(start, start + width)
            h = printed_block(h, z[part], goals[y[part]], share * rho)
        right = torch.cdist(h, goals).argmin(1) == y
        best = max(best, right, key=lambda one: int(one.sum()))
    return best


@measurement("identity.memorizing.measure_expressed")
@per_trial
def measure_expressed(setting: Setting, generator: torch.Generator) -> float:
    """1 for a random data set of which every point gets its label, else 0; printed steps get unit points."""
    x, y = _points(setting, generator), _labels(setting, generator)
    if setting["steps"] == "printed":
        right = printed_net(x / x.norm(dim=1, keepdim=True), y, setting["r"], generator)
    else:
        net = memorize(x, y, classes=setting["r"], generator=generator)
        right = net(x).argmax(1) == y
    return float(right.all())


def always(setting: Setting) -> float:
    check_points(setting)
    return 1.0


@measurement("identity.memorizing.measure_parameters")
@per_trial
def measure_parameters(setting: Setting, generator: torch.Generator) -> float:
    """Parameters of the built net beside its random projection, counted over its tensors."""
    x, y = _points(setting, generator), _labels(setting, generator)
    net = memorize(x, y, classes=setting["r"], generator=generator)
    first = net.projection.numel() + net.offset.numel()
    return float(sum(one.numel() for one in net.parameters()) - first)


def size_rate(setting: Setting) -> float:
    check_points(setting)
    return float(setting["n"] * log(setting["n"]) + setting["r"] ** 2)


def size_bound(setting: Setting) -> float:
    return 3 * size_rate(setting)


@measurement("identity.memorizing.measure_block")
@per_trial
def measure_block(setting: Setting, generator: torch.Generator) -> float:
    """Share of 2k points that are where the printed lemma has them: k moved onto targets, k left in place.

    Each of the k points moved has a neighbour at squared distance c·ρ'; all have squared norm 1 + ρ'.
    """
    k, relaxed = setting["k"], setting["relaxed"]
    square = 1 + relaxed
    cosine = 1 - setting["c"] * relaxed / (2 * square)
    if not (0 < relaxed < 0.5 and -1 < cosine < 1):
        raise BadInput("0 < ρ' < ½ and c·ρ' < 4", got=f"ρ' = {relaxed}, c = {setting['c']}", do="lower them")
    axes, _ = torch.linalg.qr(torch.randn(2 * k, 2 * k, generator=generator, dtype=torch.float64))
    moved = sqrt(square) * axes[:k]
    others = cosine * moved + sqrt(square * (1 - cosine**2)) * axes[k:]
    onto = _unit((k, 2 * k), generator)
    wanted = torch.cat([onto, others])
    got = printed_block(torch.cat([moved, others]), moved, onto, relaxed)
    return float(((got - wanted).norm(dim=1) < THERE).double().mean())


@measurement("identity.memorizing.measure_built_block")
@per_trial
def measure_built_block(setting: Setting, generator: torch.Generator) -> float:
    """Share of (block, point) pairs that are as they should be: moved onto a target, or just where it was."""
    x, y = _points(setting, generator), _labels(setting, generator)
    net = memorize(x, y, classes=setting["r"], generator=generator)
    h = net.project(x)
    order = h.norm(dim=1).argsort(descending=True)
    radius = h.norm(dim=1).min() / 2
    goals = net.head * radius**2
    right = 0
    for index in range(len(net.inner)):
        after, own = net.block(h, index), order[index * net.width : (index + 1) * net.width]
        there = (after[own] - goals[y[own]]).norm(dim=1) < THERE * radius
        stayed = (after == h).all(1)
        stayed[own] = there
        right += int(stayed.sum())
        h = after
    return right / (len(net.inner) * len(x))


@measurement("identity.memorizing.measure_length")
def measure_length(setting: Setting, generator: torch.Generator) -> Tensor:
    """‖A_0 x‖² of a unit vector, A_0 with entries of the given size, a fresh one a trial."""
    check_points(setting)
    k, trials = setting["k"], setting["trials"]
    x = _unit((trials, setting["d"]), generator)
    entries = torch.randn(trials, k, setting["d"], generator=generator, dtype=torch.float64)
    if setting["entries"] == "N(0, 1/k)":
        entries = entries / sqrt(k)
    return (entries @ x.unsqueeze(2)).square().sum((1, 2))


@measurement("identity.memorizing.measure_distances")
@per_trial
def measure_distances(setting: Setting, generator: torch.Generator) -> float:
    """The largest factor by which A_0 shrinks a squared distance between n points, one A_0 a trial."""
    width = ceil(setting["c"] * log(setting["n"]))
    x = _points(setting, generator)
    z = x @ random_projection(setting["d"], width, generator).T
    shrunk = torch.nn.functional.pdist(x) / torch.nn.functional.pdist(z)
    return float(shrunk.square().max())


def shrink_bound(setting: Setting) -> float:
    """k/χ²_k quantile: all n(n−1)/2 squared distances stay above it together with probability 99.9 %.

    A squared distance is multiplied by χ²_k/k; the union bound gives each pair its share of 0.1 %.
    """
    from scipy import stats

    check_points(setting)
    width = ceil(setting["c"] * log(setting["n"]))
    pairs = setting["n"] * (setting["n"] - 1) / 2
    return float(width / stats.chi2.ppf(0.001 / pairs, width))


stated = register(
    Claim(
        id="identity.thm3",
        title="A net that expresses any labels",
        statement=(
            "For any n distinct points there is a residual net that gives every point its label: the net of "
            "obverse.identity.memorize, with k ≤ ⌈ln n⌉, an affine first layer, points taken in descending "
            "norm, thresholds of their own and V = Δ M⁻¹ (how many parameters: identity.thm3.parameters)."
        ),
        source=f"{REVIEW}, Theorem 3; {PAPER}, Theorem 3.2",
        place=(
            "“there exists a residual network N with O(n log n + r²) parameters that expresses the training "
            "data”, Section 3, Theorem 3, line 82"
        ),
        grid=grid(n=(2, 10, 50, 200, 1000), d=(1, 100), r=5, steps="built", trials=20),
        quick=grid(n=(2, 50, 200), d=(1, 100), r=5, steps="built", trials=5),
        predict=always,
        measure=measure_expressed,
        rule=Equal(),
        quantity="share of data sets expressed",
        axis="n",
        series="d",
        twin="identity.thm3.construction",
        remark="The theorem is about existence: another construction than the paper's will do.",
    )
)

register(
    stated.other(
        title="The paper's construction, with its constants",
        statement=(
            "For unit points with ‖x_i − x_j‖² ≥ ρ the construction of the proof, with a random first layer "
            "of k = 10 ln n / ρ² units and ⌈n/k⌉ blocks of Lemma B.1, brings every point nearest to its "
            "label's vector q_j, for ρ' = ρ/10, ρ/6 or ρ/3."
        ),
        source=f"{PAPER}, proof of Theorem 3.2, with the blocks of Lemma B.1",
        place="“Construction of residual network N”, Section 3, steps 1–3, lines 90 to 106",
        grid=grid(n=(50, 200, 1000), d=100, r=5, steps="printed", trials=20),
        quick=grid(n=(50, 200), d=100, r=5, steps="printed", trials=10),
        series="",
        expected="failed",
        remark=(
            "Theorem 3 is true (identity.thm3); what fails is the construction with these constants, of "
            "which the review has the order alone. At this k lengths vary too much for one threshold 1 − "
            "2ρ': some points are never moved, others are moved by their neighbours' units too. Most labels "
            "come out right, and all must. The first layer already has its 1/√k."
        ),
    )
)

SIZES = grid(n=(10, 100, 1000, 4000), d=20, r=(2, 10), trials=2)
SIZES_QUICK = grid(n=(10, 100, 1000), d=20, r=(2, 10), trials=2)
register(
    Claim(
        id="identity.thm3.parameters",
        title="Parameters of the net",
        statement=(
            "Beside its random projection the net that expresses n points in r classes has O(n ln n + r²) "
            "parameters: their ratio does not grow with n."
        ),
        source=f"{REVIEW}, Theorem 3",
        place=(
            "“a residual network N with O(n log n + r²) parameters”, Section 3, Theorem 3, line 82; “r and "
            "input dimension d ≪ n”, line 103"
        ),
        # Many n: ⌈ln n⌉ goes in steps, and the ratio swings by a tenth with it.
        grid=grid(n=tuple(round(100 * 2 ** (step / 3)) for step in range(19)), d=20, r=10, trials=2),
        quick=grid(n=tuple(round(100 * 2 ** (step / 4)) for step in range(17)), d=20, r=10, trials=2),
        predict=size_rate,
        measure=measure_parameters,
        rule=NotGrowing(Along("n")),
        quantity="parameters",
        axis="n",
    )
)

register(
    Claim(
        id="identity.thm3.constant",
        title="Parameters of the net, with the constant",
        statement="The built net has at most 3·(n ln n + r²) parameters beside its random projection.",
        source="the construction of obverse.identity.memorize; the constant is not in the paper",
        grid=SIZES,
        quick=SIZES_QUICK,
        predict=size_bound,
        measure=measure_parameters,
        rule=MeanBelow(),
        quantity="parameters",
        axis="n",
        series="r",
        reading="beyond the paper",
    )
)


register(
    Claim(
        id="identity.lemma3.3",
        title="One block moves k points and leaves the others",
        statement=(
            "There is a block that moves k points onto their targets and leaves each of the n − k others "
            "where it is: every block of the net of obverse.identity.memorize does, the others to the last "
            "bit."
        ),
        source=f"{PAPER}, Lemma 3.3, as told in the review",
        place=(
            "“we can transform a set of k vectors into another set of k vectors, while keeping the rest n − "
            "k vectors the same”, Section 3, line 117"
        ),
        grid=grid(n=(20, 100, 400), d=(1, 30), r=4, trials=5),
        quick=grid(n=(20, 100), d=(1, 30), r=4, trials=3),
        predict=1.0,
        measure=measure_built_block,
        rule=Equal(),
        quantity="share of points in the right place",
        axis="n",
        series="d",
    )
)

RELAXATIONS = (0.02, 0.1, 0.3)


def _neighbours(square: Callable[[float], float]) -> tuple[Setting, ...]:
    """Neighbours at a squared distance of c·ρ', from ρ'."""
    return tuple(
        setting
        for relaxed in RELAXATIONS
        for setting in grid(c=round(square(relaxed) / relaxed, 10), k=(4, 16), relaxed=relaxed, trials=20)
    )


stated = register(
    Claim(
        id="identity.lemmaB.1",
        title="The block of the proof, as printed",
        statement=(
            "If 1 − ρ' ≤ ‖α‖² ≤ 1 + ρ' for all points and distances, not squared, are at least 3ρ', the "
            "block with threshold 1 − 2ρ' moves its k points onto the β_i and every other point stays."
        ),
        source=f"{PAPER}, Appendix B, Lemma B.1, the formal version of Lemma 3.3",
        place="“a detail used in the proof - see Appendix B”, Section 3, line 119; the lemma is in the paper",
        grid=_neighbours(lambda relaxed: (3 * relaxed) ** 2),
        predict=1.0,
        measure=measure_block,
        rule=Equal(),
        quantity="share of points in the right place",
        axis="relaxed",
        series="k",
        twin="identity.lemmaB.1.corrected",
        expected="failed",
        remark=(
            "⟨α_i, α_j⟩ = ½(‖α_i‖² + ‖α_j‖² − ‖α_i − α_j‖²) must stay below the threshold 1 − 2ρ', which "
            "takes ‖α_i − α_j‖² ≥ 6ρ': a square is missing in the condition, and with it 3ρ' would still be "
            "too few, as ⟨α_i, α_j⟩ can then be 1 − ρ'/2."
        ),
    )
)

register(
    stated.other(
        title="The block of the proof, at the distance that it needs",
        statement=(
            "If 1 − ρ' ≤ ‖α‖² ≤ 1 + ρ' for all points and squared distances are at least 6ρ', the block with "
            "threshold 1 − 2ρ' moves its k points onto the β_i and every other point stays."
        ),
        source=f"{PAPER}, Appendix B, Lemma B.1, with the distance that its proof needs",
        grid=_neighbours(lambda relaxed: 6 * relaxed),
        reading="corrected",
    )
)


def _lengths(entries: str) -> tuple[Setting, ...]:
    return grid(entries=entries, d=30, k=(10, 30, 100), trials=1600)


stated = register(
    Claim(
        id="identity.first-layer",
        title="Lengths behind the random first layer, unscaled",
        statement="Read as a random matrix A_0 with N(0, 1) entries: E‖A_0 x‖² = 1 for unit x.",
        source=f"{REVIEW}, Section 3, step 1 (line 92): a random matrix, whose scale it does not say",
        reading="beyond the paper",
        grid=_lengths("N(0, 1)"),
        predict=1.0,
        measure=measure_length,
        rule=Equal(),
        quantity="‖A_0 x‖²",
        axis="k",
        twin="identity.first-layer.corrected",
        expected="failed",
        remark="Unscaled, lengths grow as √k, and no threshold 1 − 2ρ' can serve: A_0 needs 1/√k.",
    )
)

register(
    stated.other(
        title="Lengths behind the random first layer",
        statement="For a random matrix A_0 with N(0, 1/k) entries, E‖A_0 x‖² = 1 for unit x.",
        source=f"{PAPER}, Section 3, with the scale that its proof needs",
        grid=_lengths("N(0, 1/k)"),
        reading="corrected",
    )
)

register(
    Claim(
        id="identity.distances",
        title="Distances behind the first layer at k = c ln n",
        statement=(
            "With A_0 of N(0, 1/k) entries and k = ⌈c ln n⌉, no squared distance between n points shrinks by "
            "more than the factor of which a χ²_k variable leaves 0.1 % over n(n − 1)/2 pairs."
        ),
        source=f"{PAPER}, Section 3: distances are preserved at k = O(log n); the factor is not in the paper",
        grid=grid(n=(20, 100, 300), d=100, c=(1, 3, 10), trials=400),
        quick=grid(n=(20, 100), d=100, c=(1, 3), trials=400),
        predict=shrink_bound,
        measure=measure_distances,
        rule=HoldsIn(share=0.95, confidence=0.99),
        quantity="largest shrinking of a squared distance",
        axis="n",
        series="c",
        reading="beyond the paper",
    )
)
