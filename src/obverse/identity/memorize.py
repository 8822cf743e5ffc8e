"""A residual net that labels every point of a data set right by construction, without training.

Theorem 3 of Hardt & Ma with its construction put right. The parts are in `construct`; here they are chosen,
put together and checked.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from math import ceil, inf, log
from typing import Any

import torch
from torch import Tensor

from ..errors import BadInput, ObverseError
from ..nets.memory import ResidualMemory
from ..records import Record
from .construct import (
    away_from_zero,
    blocks,
    closest_later,
    nearest_target,
    random_projection,
    scaling,
    targets,
    thresholds,
)
from .distinct import distinct

ROWS = 1000  # points at a time: their k numbers stay in the cache
COMFORTABLE = 1e-7  # a relative gap that leaves moves nine digits; a better one is not looked for
MERGED = 1e-9  # points of one label closer than this, relative, are moved together
OFFSETS = (1.1, 2.1, 4.1, 8.1, 16.1)  # in units of the mean length of z, tried in turn

Progress = Callable[[str, int, int], None]  # what is being done, how much of it is, of how much


@dataclass(frozen=True)
class Memorized(Record):
    """What was built, and how it does on the points that it was built from."""

    points: int
    distinct: int
    classes: int
    inputs: int
    width: int
    blocks: int
    parameters: int  # of the blocks and the class scores
    projection: int  # numbers of the first layer: k·d weights, k offsets, d means
    budget: float  # n ln n + r², n the number of distinct points
    errors: int
    margin: float  # smallest lead of the right score over the next one
    ideal_margin: float  # the same if every point were exactly at its target
    gap: float  # smallest room for a threshold as a share of ‖z_i‖²: how hard the hardest point is
    closest: tuple[int, int]  # the points that leave this room
    dtype: str

    @property
    def constant(self) -> float:
        """Parameters ÷ (n ln n + r²)."""
        return self.parameters / self.budget

    def __str__(self) -> str:
        right = self.points - self.errors
        return (
            f"{right:,} of {self.points:,} points labelled right ({100 * right / self.points:.2f} %) by "
            f"{self.blocks:,} blocks of width {self.width}: {self.parameters:,} parameters = "
            f"{self.constant:.2f}·(n ln n + r²), behind a projection of {self.projection:,}; "
            f"margin {self.margin:.3g}"
        )


class NotMemorized(ObverseError):
    """The net does not label every point right in the type of numbers asked for."""


def memorize(
    x: Any,
    y: Any,
    *,
    classes: int | None = None,
    width: int | None = None,
    generator: torch.Generator | None = None,
    on_progress: Progress | None = None,
) -> ResidualMemory:
    """A residual net in float64 whose largest score is the label, for every row of x.

    `x`: points of any shape, one a row. `y`: whole labels from 0. `classes` is r (default: the largest label
    + 1, at least 2), `width` is k (default: see `choose_width`). Before the net is returned every point is
    run through all of it; `net.facts` says what was found. Without a generator the seed is 0.
    """
    x, y, r = checked(x, y, classes)
    first = distinct(x, y)
    n = len(first)
    generator = torch.Generator().manual_seed(0) if generator is None else generator
    if width is not None and (type(width) is not int or width < 1):
        raise BadInput("a width of at least 1", got=repr(width), do="leave it out")
    k = choose_width(n, r) if width is None else width
    while True:
        placed = _place(x[first], y[first], k, generator, on_progress)
        closest = int(first[placed.closest[0]]), int(first[placed.closest[1]])
        net = _assemble(placed, y[first], r, generator)
        if net is not None:
            net.facts = facts = replace(
                verify(net, x, y, on_progress=on_progress),
                distinct=n,
                budget=n * log(n) + r**2,
                gap=placed.gap,
                closest=closest,
            )
            if facts.errors == 0:
                return net
        if k == 1 or width is not None:
            raise _refusal("float64", closest, placed.gap, "drop one of such pairs, or give both one label")
        k = (k + 1) // 2  # in narrower blocks fewer units answer to each other's points


def choose_width(points: int, classes: int) -> int:
    """The largest k ≤ ⌈ln n⌉ whose net has at most 3·(n ln n + r²) parameters; k = 1 always does."""
    most = 3 * (points * log(points) + classes**2)
    width = max(1, ceil(log(points)))
    while width > 1 and count_parameters(points, classes, width) > most:
        width -= 1
    return width


def count_parameters(points: int, classes: int, width: int) -> int:
    """⌈n/k⌉ blocks of 2k² + k, and r·k + r for the scores."""
    return ceil(points / width) * (2 * width**2 + width) + classes * (width + 1)


@dataclass(frozen=True)
class _Placed:
    """Distinct points behind the projection, in descending norm."""

    centre: Tensor
    projection: Tensor
    offset: Tensor
    z: Tensor
    order: Tensor  # z[i] is point order[i]
    later: Tensor  # the largest ⟨z_i, z_j⟩, j later
    gap: float
    closest: tuple[int, int]


def _place(
    x: Tensor, y: Tensor, width: int, generator: torch.Generator, on_progress: Progress | None
) -> _Placed:
    """The points behind the first of some random projections that leaves a comfortable gap, or the best.

    A point that all but coincides with a later one of its label is left out: it is moved with that one.
    """
    centre, deviation = scaling(x)
    best: _Placed | None = None
    for number, distance in enumerate(OFFSETS):
        if on_progress:
            on_progress("projections", number, len(OFFSETS))
        projection = random_projection(x.shape[1], width, generator) / deviation
        z = torch.cat([(part.double() - centre) @ projection.T for part in x.split(ROWS)])
        length = float(z.square().sum(1).mean().sqrt()) or 1.0
        projection, z = projection / length, z / length
        offset = away_from_zero(z, distance, generator)
        z += offset
        order = z.norm(dim=1).argsort(descending=True)
        z = z[order]
        later, index = closest_later(z)
        squares = z.square().sum(1)
        # A single point has all the room there is; one that falls on 0 has none.
        gaps = torch.where(squares > 0, 1 - later / squares, 0.0).clamp(max=1.0)
        near = (z - z[index]).square().sum(1) <= MERGED**2 * squares
        merged = near & (y[order] == y[order[index]]) & (index != torch.arange(len(z)))
        gaps[merged] = 1.0
        hardest = int(gaps.argmin())
        closest = int(order[hardest]), int(order[index[hardest]])
        gap = min(float(gaps[hardest]), float(squares.min()))  # targets are as short as the shortest point
        if best is None or gap > best.gap:
            kept = ~merged
            best = _Placed(centre, projection, offset, z[kept], order[kept], later[kept], gap, closest)
        if gap >= COMFORTABLE:
            break
    assert best is not None
    return best


def _assemble(placed: _Placed, y: Tensor, classes: int, generator: torch.Generator) -> ResidualMemory | None:
    """The net; None where a gap is too small for finite weights."""
    z = placed.z
    radius = float(z.norm(dim=1).min()) / 2
    goals = targets(classes, z.shape[1], radius, generator)
    inner, shift, outer = blocks(z, goals[y[placed.order]], thresholds(z, placed.later, radius))
    if not torch.isfinite(outer).all():
        return None
    head, head_bias = nearest_target(goals)
    return ResidualMemory(
        {
            "centre": placed.centre,
            "projection": placed.projection,
            "offset": placed.offset,
            "inner": inner,
            "shift": shift,
            "outer": outer,
            "head": head,
            "head_bias": head_bias,
        }
    )


@torch.no_grad()
def verify(net: ResidualMemory, x: Any, y: Any, *, on_progress: Progress | None = None) -> Memorized:
    """Run every point through the whole net: errors and margin."""
    x, y, _ = checked(x, y, net.classes)
    errors, margin, done = 0, inf, 0
    for part, labels in zip(x.split(ROWS), y.split(ROWS), strict=True):
        if on_progress:
            on_progress("checked points", done, len(x))
        scores = net(part)
        right = scores.gather(1, labels.unsqueeze(1)).squeeze(1)
        lead = right - scores.scatter(1, labels.unsqueeze(1), -inf).amax(1)
        errors += int((~(lead > 0)).sum())  # NaN is an error
        margin = min(margin, float(lead.nan_to_num(-inf).min()))
        done += len(part)
    k, r, count = net.width, net.classes, len(net.inner)
    known = net.facts if isinstance(net.facts, Memorized) else None
    return Memorized(
        points=len(x),
        distinct=known.distinct if known else len(x),
        classes=r,
        inputs=len(net.centre),
        width=k,
        blocks=count,
        parameters=count * (2 * k * k + k) + r * (k + 1),
        projection=net.projection.numel() + k + len(net.centre),
        budget=known.budget if known else len(x) * log(len(x)) + r**2,
        errors=errors,
        margin=margin,
        ideal_margin=_ideal_margin(net),
        gap=known.gap if known else 0.0,
        closest=known.closest if known else (0, 0),
        dtype=str(net.centre.dtype).removeprefix("torch."),
    )


def _ideal_margin(net: ResidualMemory) -> float:
    """Between the targets themselves, which are the rows of the head times the square of their radius."""
    squares = -2 * net.head_bias  # ‖q_j‖²/radius²
    scores = (net.head @ net.head.T) * (squares.max() / net.head.square().sum(1).max()) + net.head_bias
    scores = scores.double()
    own = scores.diagonal().clone()
    scores.fill_diagonal_(-inf)
    return float((own - scores.amax(1)).min())


def export(
    net: ResidualMemory,
    x: Any,
    y: Any,
    dtype: torch.dtype = torch.float32,
    *,
    on_progress: Progress | None = None,
) -> ResidualMemory:
    """A copy of the net in another type of numbers, checked on all points; refused if a label changes."""
    copy = deepcopy(net).to(dtype)
    copy.facts = facts = verify(copy, x, y, on_progress=on_progress)
    if facts.errors:
        wrong = f", and so {facts.errors:,} of {facts.points:,} labels are wrong"
        raise _refusal(facts.dtype, facts.closest, facts.gap, "keep the net in float64", wrong)
    return copy


def _refusal(dtype: str, closest: tuple[int, int], gap: float, do: str, wrong: str = "") -> NotMemorized:
    first, second = closest
    return NotMemorized(
        f"expected points that {dtype} can tell apart; got points {first} and {second}, which leave room "
        f"for a threshold of {gap:.1e} of their size{wrong}; {do}"
    )


def checked(x: Any, y: Any, classes: int | None) -> tuple[Tensor, Tensor, int]:
    """Points as rows, labels as int64, the number of classes; what can't be memorized is refused."""
    x, y = torch.as_tensor(x).detach(), torch.as_tensor(y).detach()
    if x.dim() < 1 or x.shape[0] < 1 or x.numel() < 1:
        raise BadInput("at least one point with at least one number", got=tuple(x.shape), do="check the data")
    if x.is_complex() or not torch.isfinite(x).all():
        wrong = "complex numbers" if x.is_complex() else "NaN or infinity"
        raise BadInput("finite real points", got=wrong, do="drop or repair those rows")
    if y.dim() != 1 or len(y) != len(x):
        raise BadInput(
            f"{len(x):,} labels, one a point",
            got=f"a tensor of shape {tuple(y.shape)}",
            do="check the labels",
        )
    if y.is_floating_point() or y.is_complex() or int(y.min()) < 0:
        raise BadInput(
            "labels as whole numbers from 0", got=f"{y.dtype}, least {y.min()}", do="number the classes"
        )
    y = y.long()
    most = int(y.max()) + 1
    if classes is not None and (type(classes) is not int or classes < 2 or classes < most):
        raise BadInput(
            f"at least {max(2, most)} classes, for labels up to {most - 1}", got=repr(classes), do="raise it"
        )
    return x.reshape(len(x), -1), y, max(2, most) if classes is None else classes
