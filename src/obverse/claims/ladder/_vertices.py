"""Theorem 7: which rows stay vertices behind activations, and what rank random weights give."""

from __future__ import annotations

from itertools import product

import torch
from torch import Tensor

from ..._core import BadInput
from ...ladder import is_all_vert, vertices
from .._claim import Claim, grid, measurement, per_trial
from .._registry import register
from .._rules import Equal
from ..results import Setting
from ._draws import PAPER, chances, check_choice, check_counts, normal, one
from ._expressive import draw_until


def check_rows(setting: Setting) -> None:
    check_counts(setting)
    if setting["columns"] < 2:
        raise BadInput("two columns of P or more", got=setting["columns"], do="raise columns")


def _with_inside(setting: Setting, inside: int, generator: torch.Generator) -> Tensor:
    """P with random rows, the last `inside` of them convex combinations of the others."""
    drawn = chances(setting["rows"], setting["columns"], generator=generator)
    mixed = chances(inside, setting["rows"], generator=generator) @ drawn
    return torch.cat([drawn, mixed])


@measurement("ladder.expressive.measure_kept")
@per_trial
def measure_kept(setting: Setting, generator: torch.Generator) -> float:
    """vert(PF)/vert(P), with some rows of P inside the hull and F at random, of full row rank."""
    check_rows(setting)
    matrix = _with_inside(setting, setting["inside"], generator)
    active = normal(setting["columns"], setting["columns"] + setting["spare"], generator=generator)
    return float(vertices(matrix @ active).sum() / vertices(matrix).sum())


@measurement("ladder.expressive.measure_iff")
def measure_iff(setting: Setting, generator: torch.Generator) -> list[float]:
    """1 where PF is all-vert exactly if P is, else 0. P is so in every second trial; F has `nodes` nodes."""
    check_rows(setting)
    agreed = []
    for trial in range(setting["trials"]):
        if trial % 2:
            matrix = _with_inside(setting, 1, generator)
        else:
            matrix = draw_until(is_all_vert, lambda: _with_inside(setting, 0, generator))
        active = normal(setting["columns"], setting["nodes"], generator=generator)
        agreed.append(float(is_all_vert(matrix @ active) == (trial % 2 == 0)))
    return agreed


def check_square(setting: Setting) -> None:
    check_counts(setting)
    if setting["nodes"] < setting["events"]:
        raise BadInput(
            "as many nodes as events, or more: else F cannot have full row rank",
            got=f"{setting['nodes']} < {setting['events']}",
            do="raise nodes",
        )


@measurement("ladder.expressive.measure_rank")
@per_trial
def measure_rank(setting: Setting, generator: torch.Generator) -> float:
    """The share of draws of W with F of full row rank: F = r(W), for P = I, or F = PW, for P at random."""
    check_square(setting)
    check_choice(setting, "activation", "relu", "linear")
    m, n, draws = setting["events"], setting["nodes"], setting["draws"]
    raw = normal(draws, m, n, generator=generator)
    if setting["activation"] == "relu":
        active = torch.relu(raw)
    else:
        active = chances(draws, m, m, generator=generator) @ raw
    return float((torch.linalg.matrix_rank(active) == m).double().mean())


def surely(setting: Setting) -> float:
    check_square(setting)
    return 1.0


def matching(setting: Setting) -> float:
    """The chance that each row of a random 0-1 matrix can be given a one in a column of its own.

    Numbers at the places of the ones are in general position, so that the rank is the size of the largest
    matching. Rows are added one by one; a state is the family of column sets that the rows so far can take.
    """
    check_square(setting)
    m, n = setting["events"], setting["nodes"]
    if n > 6 or m > 4:
        raise BadInput("at most 4 events and 6 nodes, to count patterns", got=f"{m} and {n}", do="lower them")
    chance = {frozenset([0]): 1.0}
    for _ in range(m):
        after: dict[frozenset[int], float] = {}
        for (family, share), row in product(chance.items(), range(2**n)):
            bits = [1 << column for column in range(n) if row >> column & 1]
            larger = frozenset(taken | bit for taken in family for bit in bits if not taken & bit)
            if larger:
                after[larger] = after.get(larger, 0.0) + share / 2**n
        chance = after
    return sum(chance.values())


register(
    Claim(
        id="ladder.thm7.1",
        title="Vertices survive activations of full row rank",
        statement="If F has full row rank, then vert(PF) = vert(P).",
        source=f"{PAPER}, Theorem 7 (1)",
        place="“If F is full row rank, then vert(PF) = vert(P)”, Section 5.1, Theorem 7, line 344",
        grid=grid(rows=10, columns=(2, 3, 5), inside=(1, 4), spare=2, trials=8),
        quick=grid(rows=6, columns=(2, 3), inside=2, spare=1, trials=5),
        predict=one,
        measure=measure_kept,
        rule=Equal(),
        quantity="vert(PF)/vert(P)",
        axis="columns",
        series="inside",
    )
)


stated = register(
    Claim(
        id="ladder.thm7.2",
        title="All-vert survives any activations, as printed",
        statement="For every F, PF is all-vert if and only if P is.",
        source=f"{PAPER}, Theorem 7 (2)",
        place="“PF is all-vert iff P is all-vert”, Section 5.1, Theorem 7, line 344",
        grid=grid(rows=5, columns=4, nodes=(1, 2), trials=80),
        quick=grid(rows=4, columns=4, nodes=1, trials=40),
        predict=one,
        measure=measure_iff,
        rule=Equal(),
        quantity="share of P for which both are all-vert or neither is",
        axis="nodes",
        twin="ladder.thm7.2-corrected",
        expected="failed",
        remark=(
            "F with fewer columns than rows can flatten the hull: with one node all rows come to lie on a "
            "line, which has two vertices. Only one direction, from PF to P, needs no rank. “(2) follows "
            "from (1)”, the paper says (line 1088): its condition may be meant."
        ),
    )
)


register(
    stated.other(
        title="All-vert survives activations of full row rank",
        statement="For F of full row rank, PF is all-vert if and only if P is.",
        source=f"{PAPER}, Theorem 7 (2), under the condition of (1)",
        grid=grid(rows=5, columns=4, nodes=(4, 5, 8), trials=60),
        quick=grid(rows=4, columns=4, nodes=5, trials=20),
        reading="corrected",
    )
)


register(
    stated.other(
        id="ladder.thm7.2-affine",
        title="All-vert survives with one node less",
        statement="For F with [F, 1] of full row rank, PF is all-vert if and only if P is.",
        source=f"{PAPER}, Theorem 7 (2); the condition is given here",
        grid=grid(rows=(5, 6), columns=4, nodes=3, trials=60),
        quick=grid(rows=4, columns=4, nodes=3, trials=20),
        axis="rows",
        reading="beyond the paper",
        twin="",
        remark="Rows of P sum to one: what F does to differences of them is all that matters.",
    )
)


def _ranks(
    activation: str, sizes: tuple[tuple[int, int], ...], draws: int, trials: int
) -> tuple[Setting, ...]:
    more = {"activation": activation, "draws": draws, "trials": trials}
    return tuple({"events": m, "nodes": n, **more} for m, n in sizes)


SIZES = ((2, 2), (2, 4), (2, 6), (3, 3), (4, 4), (4, 6))


stated = register(
    Claim(
        id="ladder.full-rank",
        title="Random weights give full rank, as printed",
        statement="If W is drawn at random, then F = r(PFW) has full rank with probability 1.",
        source=f"{PAPER}, Section 5.1, after Theorem 7",
        place=(
            "“if we sample W randomly, then with probability 1, all F_β are full-rank”, Section 5.1, after "
            "Theorem 7, line 346"
        ),
        grid=_ranks("relu", SIZES, 500, 40),
        quick=_ranks("relu", ((2, 2), (3, 3)), 500, 20),
        predict=surely,
        measure=measure_rank,
        rule=Equal(),
        quantity="share of W with F of full row rank",
        axis="nodes",
        series="events",
        twin="ladder.full-rank.relu",
        expected="failed",
        remark=(
            "ReLU leaves zeros: with two events and two nodes F is singular for 9 of 16 patterns of signs, "
            "56 % of all draws. P = I here, which is all-vert."
        ),
    )
)


register(
    stated.other(
        title="Random weights and ReLU: the chance of full rank",
        statement=(
            "If W is symmetric around 0 and P = I, then F = r(W) has full row rank with the probability that "
            "a random 0-1 matrix has a one in each row, no two in one column: 7/16, 247/512, 37823/65536 for "
            "2, 3 and 4 events and nodes."
        ),
        source=f"{PAPER}, Section 5.1; the probability is derived here",
        predict=matching,
        reading="corrected",
        remark="It goes to 1 with the number of nodes: an event is lost where all its nodes are silent.",
    )
)


register(
    stated.other(
        id="ladder.full-rank.linear",
        title="Random weights give full rank without ReLU",
        statement="If W is drawn at random and P has full row rank, then F = PW has, with probability 1.",
        source=f"{PAPER}, Section 5.1, said of linear layers",
        grid=_ranks("linear", SIZES, 500, 10),
        quick=_ranks("linear", ((2, 2), (3, 3)), 500, 4),
        reading="beyond the paper",
        twin="",
    )
)
