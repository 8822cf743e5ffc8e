"""Theorem 6: what ReLU can tell apart and linear layers cannot.

Algebra of P, F and W: there are no inputs, and nothing is trained.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor

from ..._core import BadInput
from ...ladder import and_weights, is_all_vert, separating_weights, vertices
from .._claim import Claim, grid, measurement, per_trial
from .._registry import register
from .._rules import Equal, MeanBelow
from ..results import Setting
from ._draws import PAPER, chances, check_choice, check_counts, normal, one

ROUNDING = 1e-12  # of numbers of size 1 that are equal but for a few dozen operations in float64
DRAWS = 1000  # for one P as a theorem assumes it, before it is said that there is none
EVENTS = 4096  # at most: a matrix of so many rows and columns takes 128 MB
CHILDREN = ("halves", "overlapping", "positions")
Drawn = TypeVar("Drawn")


def check_ladder(setting: Setting) -> None:
    """A region over `leaves` positions with `values` values each, all of which it knows."""
    check_counts(setting)
    if setting["leaves"] < 2 or setting["values"] < 2:
        raise BadInput("two leaves and two values, or more", got="less", do="raise leaves or values")
    if setting["values"] ** setting["leaves"] > EVENTS:
        raise BadInput(f"at most {EVENTS} events", got="more", do="lower leaves or values")
    if "children" in setting:
        check_choice(setting, "children", *CHILDREN)


def every_row(setting: Setting) -> float:
    check_ladder(setting)
    return 1.0


def _window(values: int, leaves: int, kept: range) -> Tensor:
    """P(z of the positions kept | z of all): one-hot rows."""
    sizes = [values] * leaves
    digits = torch.cartesian_prod(*(torch.arange(values) for _ in sizes)).reshape(-1, leaves)
    place = torch.zeros(len(digits), dtype=torch.int64)
    for position in kept:
        place = place * values + digits[:, position]
    return torch.eye(values ** len(kept), dtype=torch.float64)[place]


def _children(kind: str, leaves: int) -> list[range]:
    half = (leaves + 1) // 2
    if kind == "halves":
        return [range(half), range(half, leaves)]
    if kind == "overlapping":
        return [range(leaves - 1), range(1, leaves)]
    return [range(position, position + 1) for position in range(leaves)]


def _exact(setting: Setting, kind: str) -> list[Tensor]:
    leaves, values = setting["leaves"], setting["values"]
    return [_window(values, leaves, kept) for kept in _children(kind, leaves)]


@measurement("ladder.expressive.measure_vertices")
@per_trial
def measure_vertices(setting: Setting, generator: torch.Generator) -> float:
    """The share of rows that are vertices: of P of each child, averaged, or of all P side by side.

    Of an exact ladder: each event of the region settles those of its children. Events are in random order.
    """
    check_ladder(setting)
    check_choice(setting, "taken", "each child", "side by side")
    parts = _exact(setting, setting["children"])
    order = torch.randperm(len(parts[0]), generator=generator)
    taken = parts if setting["taken"] == "each child" else [torch.cat(parts, 1)]
    found = [float(vertices(one[order]).double().mean()) for one in taken]
    return sum(found) / len(found)


def _layer(parts: list[Tensor], together: bool) -> Tensor:
    """F of a region whose children have F_β = I, with weights by the proof of Theorem 6.

    `together`: of all P side by side; otherwise of each P for itself, added up with 1/|ch|.
    """
    if together:
        side = torch.cat(parts, 1)
        weights, bias = separating_weights(side)
        return torch.relu(side @ weights + bias)
    raw = torch.zeros(len(parts[0]), len(parts[0]), dtype=torch.float64)
    for part in parts:
        weights, bias = separating_weights(part)
        raw += (part @ weights + bias) / len(parts)
    return torch.relu(raw)


def draw_until(accepted: Callable[[Drawn], bool], draw: Callable[[], Drawn]) -> Drawn:
    for _ in range(DRAWS):
        drawn = draw()
        if accepted(drawn):
            return drawn
    raise BadInput(
        "P as the theorem assumes it", got=f"none in {DRAWS} draws", do="lower rows, or raise columns"
    )


def _drawn(setting: Setting, rows: int, columns: int, generator: torch.Generator) -> list[Tensor]:
    """P of the children at random: each of them all-vert, or only all side by side."""

    def draw() -> Tensor:
        return chances(rows, columns, generator=generator)

    def only_together(parts: list[Tensor]) -> bool:
        return is_all_vert(torch.cat(parts, 1)) and not any(map(is_all_vert, parts))

    children = range(setting["children"])
    if setting["all_vert"] == "each child":
        return [draw_until(is_all_vert, draw) for _ in children]
    return draw_until(only_together, lambda: [draw() for _ in children])


@measurement("ladder.expressive.measure_relu")
@per_trial
def measure_relu(setting: Setting, generator: torch.Generator) -> float:
    """1 + ‖F_ω − I‖² of a ReLU net of two layers, P at random, and weights by the theorem's proof."""
    check_counts(setting)
    check_choice(setting, "all_vert", "each child", "side by side")
    together, children = setting["all_vert"] == "side by side", range(setting["children"])
    top, middle, low = setting["top"], setting["middle"], setting["low"]
    below = [_layer(_drawn(setting, middle, low, generator), together) for _ in children]
    above = _drawn(setting, top, middle, generator)
    found = _layer([part @ active for part, active in zip(above, below, strict=True)], together)
    return 1 + float((found - torch.eye(top, dtype=torch.float64)).square().sum())


def check_overlap(setting: Setting) -> None:
    check_ladder({name: value for name, value in setting.items() if name != "overlap"})
    if not 0 <= setting["overlap"] < setting["leaves"]:
        raise BadInput("an overlap from 0 to below leaves", got=setting["overlap"], do="lower overlap")


@measurement("ladder.expressive.measure_and")
@per_trial
def measure_and(setting: Setting, generator: torch.Generator) -> float:
    """1 + ‖F_ω − I‖² of an exact ladder with AND weights in every region, from F = I of the leaves on.

    Each region has two children, which part its positions at random and have up to `overlap` in common.
    """
    leaves, values = setting["leaves"], setting["values"]

    def active(size: int) -> Tensor:
        """F of a region over so many positions."""
        if size == 1:
            return torch.eye(values, dtype=torch.float64)
        cut = int(torch.randint(1, size, (1,), generator=generator))
        below = (range(cut), range(max(1, cut - setting["overlap"]), size))
        parts = [_window(values, size, kept) for kept in below]
        weights, bias = and_weights(parts)
        terms = [
            part @ active(len(kept)) @ weight
            for part, kept, weight in zip(parts, below, weights, strict=True)
        ]
        return torch.relu(torch.stack(terms).sum(0) + bias)

    identity = torch.eye(values**leaves, dtype=torch.float64)
    return 1 + float((active(leaves) - identity).square().sum())


@measurement("ladder.expressive.measure_linear")
@per_trial
def measure_linear(setting: Setting, generator: torch.Generator) -> float:
    """The least ‖F_ω − I‖² of a linear net on an exact ladder: the best top weights over random ones below.

    Two layers below the top: halves, then single positions; each region has as many nodes as events.
    """
    leaves, values = setting["leaves"], setting["values"]

    def active(size: int) -> Tensor:
        events = values**size
        if size == 1:
            return torch.eye(values, dtype=torch.float64)
        parts = [_window(values, size, kept) for kept in _children("positions", size)]
        drawn = [part @ normal(values, events, generator=generator) for part in parts]
        return torch.stack(drawn).sum(0)

    parts = [_window(values, leaves, kept) for kept in _children("halves", leaves)]
    sizes = [len(kept) for kept in _children("halves", leaves)]
    side = torch.cat([part @ active(size) for part, size in zip(parts, sizes, strict=True)], 1)
    identity = torch.eye(len(side), dtype=torch.float64)
    best = torch.linalg.lstsq(side, identity, rcond=1e-10, driver="gelsd").solution
    return float((side @ best - identity).square().sum())


def events(setting: Setting) -> float:
    """m_ω, which is exponential in the size of the region."""
    return float(setting["values"] ** setting["leaves"])


def events_beyond_rank(setting: Setting) -> float:
    """m − rank: sums of functions of one position each, of which constants are counted once."""
    return float(events(setting) - (1 + setting["leaves"] * (setting["values"] - 1)))


stated = register(
    Claim(
        id="ladder.thm6",
        title="ReLU makes the top the identity",
        statement="If each P_αβ is all-vert, a ReLU net has weights with F_ω = I: min Loss_ReLU = 0.",
        source=f"{PAPER}, Theorem 6",
        place="“min Loss_ReLU(W) = 0”, Section 5.1, Theorem 6, eq. 13, lines 323 to 328",
        grid=grid(all_vert="each child", children=(1, 2, 3), top=6, middle=(4, 5), low=4, trials=8),
        quick=grid(all_vert="each child", children=2, top=5, middle=4, low=4, trials=3),
        predict=one,
        measure=measure_relu,
        rule=Equal(tolerance=ROUNDING),
        quantity="1 + ‖F_ω − I‖²",
        axis="children",
        series="middle",
        twin="ladder.thm6.corrected",
        remark=(
            "True as an implication, by the proof's own weights, found by linear programming. But no exact "
            "ladder meets the assumption, see ladder.thm6.all-vert."
        ),
    )
)

register(
    stated.other(
        title="ReLU makes the top the identity, all children together",
        statement=(
            "If the P_αβ of all children side by side are all-vert, though none of them is by itself, a ReLU "
            "net has weights with F_ω = I: min Loss_ReLU = 0."
        ),
        source=f"{PAPER}, Theorem 6, with [P_αβ]_β for each P_αβ",
        grid=grid(all_vert="side by side", children=(3, 4), top=(8, 10), middle=4, low=2, trials=8),
        quick=grid(all_vert="side by side", children=3, top=8, middle=4, low=2, trials=2),
        series="top",
        reading="corrected",
        remark=(
            "Enough and needed: with F_β = I, a ReLU node that is 1 for one event and 0 for all others is a "
            "half-space with one row of [P_αβ]_β in it."
        ),
    )
)


def _exacts(taken: str, quick: bool = False) -> tuple[Setting, ...]:
    if quick:
        return grid(children=CHILDREN, taken=taken, leaves=(2, 3), values=2, trials=2)
    return grid(children=CHILDREN, taken=taken, leaves=(2, 3, 4), values=(2, 3), trials=2)


stated = register(
    Claim(
        id="ladder.thm6.all-vert",
        title="Each P all-vert in an exact ladder",
        statement="Where z_α knows all about its region, each P_αβ is all-vert, as Theorem 6 assumes.",
        source=f"{PAPER}, the assumption of Theorem 6 in the case of Theorem 3",
        grid=_exacts("each child"),
        quick=_exacts("each child", quick=True),
        predict=every_row,
        measure=measure_vertices,
        rule=Equal(),
        quantity="share of the rows of P_ωβ that are vertices",
        axis="leaves",
        series="children",
        twin="ladder.thm6.side-by-side",
        reading="beyond the paper",
        expected="failed",
        remark=(
            "There a child's event follows from its parent's, P_αβ has one-hot rows, and events that differ "
            "elsewhere have the same row: no row is a vertex, 0 of 16 for halves of four bits. Read "
            "with Definition 1 taking out one row; were its copies taken out too, the proof would need equal "
            "rows to be told apart."
        ),
    )
)

register(
    stated.other(
        title="All P side by side all-vert in an exact ladder",
        statement="Where z_α knows all about its region, [P_αβ]_β of all children side by side is all-vert.",
        source=f"{PAPER}, the assumption of Theorem 6 as corrected",
        grid=_exacts("side by side"),
        quick=_exacts("side by side", quick=True),
        reading="corrected",
        quantity="share of the rows of [P_ωβ]_β that are vertices",
    )
)

register(
    Claim(
        id="ladder.thm6.and",
        title="AND weights make the top the identity",
        statement=(
            "In an exact ladder W_βα = P_αβᵀ with the bias −(|ch| − 1) in every region gives F_ω = I: a ReLU "
            "net without any loss, written down."
        ),
        source=f"{PAPER}, Theorem 6; the weights are given here",
        grid=grid(leaves=(2, 4, 6, 8), values=2, overlap=(0, 1), trials=10),
        quick=grid(leaves=(2, 4), values=2, overlap=(0, 1), trials=4),
        predict=1.0,
        measure=measure_and,
        domain=check_overlap,
        rule=Equal(tolerance=ROUNDING),
        quantity="1 + ‖F_ω − I‖²",
        axis="leaves",
        series="overlap",
        reading="exact",
        remark="With whole numbers throughout: the loss is 0 to the last bit.",
    )
)

LINEAR = (*grid(leaves=(2, 4, 6, 8, 10), values=2, trials=5), *grid(leaves=(2, 4, 6), values=3, trials=5))
LINEAR_QUICK = grid(leaves=(2, 4), values=(2, 3), trials=3)
stated = register(
    Claim(
        id="ladder.thm6.linear",
        title="Linear nets leave a loss, as printed",
        statement="Without ReLU, min Loss_Linear = O(exp(sz(ω))): at most m_ω.",
        source=f"{PAPER}, Theorem 6 (eq. 13)",
        place="“min Loss_Linear(W) = O(exp(sz(ω)))”, Section 5.1, Theorem 6, eq. 13, lines 323 to 328",
        grid=LINEAR,
        quick=LINEAR_QUICK,
        predict=events,
        measure=measure_linear,
        domain=check_ladder,
        rule=MeanBelow(),
        quantity="least ‖F_ω − I‖² of a linear net",
        axis="leaves",
        series="values",
        twin="ladder.thm6.linear-exact",
        remark=(
            "True and empty: F_ω = 0 has no more, and a loss of 0 would be O(exp) as well. Ω is meant, and "
            "the proof gives it."
        ),
    )
)

register(
    stated.other(
        title="Linear nets leave a loss",
        statement=(
            "Without ReLU, min ‖F_ω − I‖² = m − rank, exactly: v^s − s(v − 1) − 1 for s positions of v "
            "values each, which is Ω(exp(s))."
        ),
        source=f"{PAPER}, Theorem 6, with Ω for O and its constant",
        predict=events_beyond_rank,
        rule=Equal(tolerance=1e-9),  # least squares in float64 with condition numbers up to 1e4
        reading="corrected",
        remark=(
            "Random weights below the top have the largest rank there is, with probability 1, so that the "
            "best top weights over them are the best of all."
        ),
    )
)
