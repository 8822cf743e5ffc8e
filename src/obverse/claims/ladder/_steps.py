"""What the text takes in passing: eq. 3's ΔW, eq. 78, SᵀS = N·I, the top layer alone, batch norm between.

Algebra of small matrices, and all inputs of small ladders. Not for batch norm's projection (see normalized).
"""

from __future__ import annotations

import torch
from torch import Tensor

from ...ladder import normalize, propagate
from .._claim import Claim, grid, measurement, per_trial
from .._registry import register
from .._rules import Equal, HoldsIn
from ..results import Setting
from ._draws import PAPER, chances, check_choice, check_counts, normal
from ._expressive import check_ladder as check_linear
from ._expressive import events_beyond_rank
from ._ladders import ROUNDING, TRIALS, apart, check_ladder, drawn_student, labelled_teacher
from ._normalized import check_rows

SHAPES = ("tree", "windows", "grid", "mixed")


@measurement("ladder.steps.measure_marginal")
@per_trial
def measure_marginal(setting: Setting, generator: torch.Generator) -> float:
    """How far E over x_k of f_k(x_k)·E[g_j | x_k] is from the steps that autograd gives, of all edges."""
    teacher = labelled_teacher(setting, generator)
    seen = propagate(teacher, drawn_student(teacher.model, setting, generator))
    pairs = []
    for parent, child in teacher.graph.edges:
        if child not in seen.active:  # a position shows its value, a node for each
            continue
        contents = teacher.contents(child)
        count = int(contents.max()) + 1
        first = torch.stack([(contents == one).nonzero()[0, 0] for one in range(count)])  # an x with this x_k
        below, gradient = seen.active[child][first], seen.gradient[parent]  # the latter with p(x)
        marginal = gradient.new_zeros(count, gradient.shape[1]).index_add_(0, contents, gradient)
        pairs.append((below.T @ marginal, seen.step.weights[parent, child]))
    return apart(pairs)


register(
    Claim(
        id="ladder.eq3",
        title="ΔW from marginal gradients",
        statement="E_x[f_k g_j] is E over x_k of f_k(x_k)·g_j(x_k), with g_j(x_k) = E[g_j(x) | x_k].",
        source=f"{PAPER}, Section 2.3, below eq. 3",
        place="“we can write Δw_jk = E_{x_k}[f_k(x_k) g_j(x_k)]”, Section 2.3, below eq. 3, line 84",
        grid=grid(shape=SHAPES, norm=("none", "before", "after"), classes=3, trials=TRIALS),
        quick=grid(shape=SHAPES[0], norm="none", classes=3, trials=TRIALS),
        predict=ROUNDING,
        measure=measure_marginal,
        domain=check_ladder,
        rule=HoldsIn(),
        quantity="largest difference ÷ largest number",
        axis="norm",
        series="shape",
        remark="All inputs enumerated under a random law; the label is any function of the input.",
    )
)


def _batch(setting: Setting, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """f, S = [f̃, 1] and the Jacobian of batch norm by autograd, as torch has it but for eps."""
    check_rows(setting)
    rows = setting["rows"]
    raw = setting["scale"] * normal(rows, generator=generator)

    def normed(f: Tensor) -> Tensor:
        centred = f - f.mean()
        out: Tensor = centred / (centred.square().mean() + setting["eps"]).sqrt()
        return out

    jacobian = torch.autograd.functional.jacobian(normed, raw)
    standard, _ = normalize(
        raw.unsqueeze(1), torch.full((rows,), 1 / rows, dtype=torch.float64), setting["eps"]
    )
    return raw, torch.cat([standard, torch.ones_like(standard)], 1), jacobian


@measurement("ladder.steps.measure_killed")
@per_trial
def measure_killed(setting: Setting, generator: torch.Generator) -> float:
    """The largest of ‖J·BN(f)‖, ‖J·1‖ and ‖J·f‖, each by the norm of what J is applied to and by ‖J‖."""
    raw, axes, jacobian = _batch(setting, generator)
    norm = torch.linalg.matrix_norm(jacobian, 2)
    vectors = (axes[:, 0], axes[:, 1], raw)
    return float(max((jacobian @ one).norm() / one.norm() for one in vectors) / norm)


@measurement("ladder.steps.measure_orthogonal")
@per_trial
def measure_orthogonal(setting: Setting, generator: torch.Generator) -> float:
    """‖SᵀS/N − I‖, largest entry."""
    _, axes, _ = _batch(setting, generator)
    return float((axes.T @ axes / len(axes) - torch.eye(2, dtype=torch.float64)).abs().max())


def rounding(setting: Setting) -> float:
    check_rows(setting)
    return ROUNDING


def _rows(eps: float, scales: tuple[float, ...]) -> tuple[Setting, ...]:
    return grid(rows=(4, 16, 64), scale=scales, eps=eps, trials=TRIALS)


eq78 = register(
    Claim(
        id="ladder.eq78",
        title="What batch norm's Jacobian takes to zero",
        statement="J(f)·BN(f) = J(f)·1 = J(f)·f = 0.",
        source=f"{PAPER}, Appendix 7.5, eq. 78",
        place="“J^BN(f)BN(f) = J^BN(f)1 = J^BN(f)f = 0”, Appendix 7.5, eq. 78, line 963",
        grid=_rows(0.0, (0.01, 1.0, 100.0)),
        quick=_rows(0.0, (1.0,))[:2],
        predict=rounding,
        measure=measure_killed,
        rule=HoldsIn(),
        quantity="‖J v‖ ÷ ‖J‖‖v‖, the largest",
        axis="rows",
        series="scale",
        remark="With eps = 0; with σ² = var + eps a part of f comes through, 1 − var/σ² of it.",
    )
)

register(
    eq78.also(
        id="ladder.eq78.columns",
        title="The columns of S are orthogonal",
        statement="S = [f̃, 1] has SᵀS = N·I.",
        source=f"{PAPER}, Appendix 7.5, below eq. 74",
        place="“Note that S(f)ᵀS(f) = N · I_2”, Appendix 7.5, below eq. 74, line 886",
        measure=measure_orthogonal,
        quantity="largest entry of SᵀS/N − I",
        remark="With eps = 0.",
    )
)


@measurement("ladder.steps.measure_top")
@per_trial
def measure_top(setting: Setting, generator: torch.Generator) -> float:
    """The share of so many random nets whose top layer alone reaches F_ω = I over one random ReLU layer."""
    check_counts(setting)
    events, nodes, found = setting["events"], setting["nodes"], 0
    for _ in range(setting["nets"]):
        below = torch.relu(
            chances(events, events, generator=generator) @ normal(events, nodes, generator=generator)
        )
        above = chances(events, events, generator=generator) @ below  # P F, what the top layer reads
        best = torch.linalg.lstsq(above, torch.eye(events, dtype=torch.float64), driver="gelsd").solution
        found += bool((above @ best - torch.eye(events, dtype=torch.float64)).norm() < 1e-6)
    return float(found / setting["nets"])


def surely(setting: Setting) -> float:
    check_counts(setting)
    return 1.0


def _tops(factor: int) -> tuple[Setting, ...]:
    return tuple(
        {"events": events, "nodes": factor * events, "nets": 40, "trials": 20} for events in (2, 3, 4)
    )


stated = register(
    Claim(
        id="ladder.top-only",
        title="Training only the top layer, as printed",
        statement=(
            "Over random weights below, the top layer alone gives zero loss, with as many nodes as events, "
            "with probability 1."
        ),
        source=f"{PAPER}, Section 5.1, after Theorem 7",
        place="“using top-level W_1 alone would be sufficient”, Section 5.1, after Theorem 7, line 346",
        grid=_tops(1),
        quick=_tops(1)[:2],
        predict=surely,
        measure=measure_top,
        rule=Equal(),
        quantity="share of nets with zero loss",
        axis="events",
        series="nodes",
        twin="ladder.top-only.wider",
        expected="failed",
        remark=(
            "The random layer has not full rank where the ReLU silences nodes for all events or leaves two "
            "alike (ladder.full-rank); with rows of P near each other most nodes are on, or off, for all."
        ),
    )
)

register(
    stated.other(
        title="Training only the top layer of a wide net",
        statement=(
            "Over random weights below, with 30 nodes for each event, the top layer alone gives zero loss in "
            "all but at most 1 % of nets."
        ),
        source=f"{PAPER}, Section 5.1, after Theorem 7, with more nodes",
        grid=_tops(30),
        quick=_tops(30)[:2],
        rule=Equal(tolerance=0.01),
        reading="corrected",
    )
)


@measurement("ladder.steps.measure_linear_norm")
@per_trial
def measure_linear_norm(setting: Setting, generator: torch.Generator) -> float:
    """The least ‖F_ω − I‖² of a linear net with batch norm in each region below the top; random weights."""
    check_linear(setting)
    check_choice(setting, "norm", "batch norm")
    leaves, values = setting["leaves"], setting["values"]

    def normed(raw: Tensor) -> Tensor:
        scale, shift = normal(2, raw.shape[1], generator=generator)
        out: Tensor = scale * (raw - raw.mean(0)) / raw.std(0, correction=0) + shift
        return out

    def positions(size: int) -> Tensor:
        """All values of so many positions, a row each: values^size × size."""
        each = [torch.arange(values)] * size
        return torch.cartesian_prod(*each).reshape(-1, size)

    def active(size: int) -> Tensor:
        """F of a region, after batch norm: over single positions that show their value."""
        table = positions(size)
        raw = torch.zeros(len(table), values**size, dtype=torch.float64)
        for place in range(size):
            shown = torch.eye(values, dtype=torch.float64)[table[:, place]]
            raw = raw + shown @ normal(values, values**size, generator=generator)
        return normed(raw)

    half = (leaves + 1) // 2
    table = positions(leaves)
    parts = []
    for kept in (range(half), range(half, leaves)):
        place = torch.zeros(len(table), dtype=torch.int64)
        for position in kept:
            place = place * values + table[:, position]
        parts.append(active(len(kept))[place])
    side = torch.cat([*parts, torch.ones(len(table), 1, dtype=torch.float64)], 1)
    identity = torch.eye(len(side), dtype=torch.float64)
    best = torch.linalg.lstsq(side, identity, rcond=1e-10, driver="gelsd").solution
    return float((side @ best - identity).square().sum())


register(
    Claim(
        id="ladder.thm6.linear-norm",
        title="Linear nets with batch norm between",
        statement=(
            "Batch norm between linear layers does not help: the least ‖F_ω − I‖² stays m − rank, rank = 1 + "
            "leaves·(values − 1)."
        ),
        source=f"{PAPER}, Appendix 7.6, proof of Theorem 6",
        place="“this also works if we have BN layer in-between”, Appendix 7.6, proof of Theorem 6, line 1070",
        grid=grid(norm="batch norm", leaves=(2, 3, 4), values=(2, 3), trials=4),
        quick=grid(norm="batch norm", leaves=(2, 3), values=2, trials=3),
        predict=events_beyond_rank,
        measure=measure_linear_norm,
        rule=Equal(tolerance=1e-9),  # of a least-squares problem in float64
        quantity="least ‖F_ω − I‖²",
        axis="leaves",
        series="values",
        remark="Batch norm is affine; constants are among what a linear net on one-hot inputs has anyway.",
    )
)
