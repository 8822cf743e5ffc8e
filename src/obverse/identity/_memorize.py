"""A residual net that labels every point of a data set right by construction, without training.

Theorem 3 of Hardt & Ma with its construction corrected. The parts are in `construct`; here they are chosen,
put together and checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from math import ceil, inf, log
from sys import float_info
from typing import Any

import torch
from torch import Tensor

from .._core import BadInput, ObverseError, Progress, Record, or_global
from ..nets import ResidualMemory
from ._construct import (
    away_from_zero,
    blocks,
    closest_later,
    largest_silent,
    nearest_target,
    plain_scaling,
    random_projection,
    robust_scaling,
    targets,
)
from ._points import checked, distinct, first_equal

ROWS = 1000  # points at a time: their k numbers stay in the cache
COMFORTABLE = 1e-10  # of room: it leaves targets five digits, and a better one is not looked for
FINEST = 16 * float_info.epsilon  # times k: with less room the label may be a matter of the order of a sum
MERGED = 1e-14  # points of one label that are closer than this, relative, are moved together
OFFSETS = (1.1, 2.1, 4.1, 8.1, 16.1)  # in units of the median length of z, tried in turn
LONGEST = 1e150  # of z: its square is finite
QUANTILES = (0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)


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
    projection: int  # numbers of the first layer: k·d weights, k offsets, d centres
    budget: float  # n ln n + r², n the number of distinct points
    errors: int
    margins: tuple[float, ...]  # lead of the right score over the next one: QUANTILES over the points
    ideal_margin: float  # the smallest lead if every point were exactly at its target
    gap: float | None  # smallest room for a threshold as a share of ‖z_i‖²; None where the builder is gone
    closest: tuple[int, int] | None  # the points that leave no more room
    dtype: str

    @property
    def constant(self) -> float:
        """Parameters ÷ (n ln n + r²)."""
        return self.parameters / self.budget

    @property
    def margin(self) -> float:
        """The smallest lead of the right score over the next one."""
        return self.margins[0]

    def __str__(self) -> str:
        right = self.points - self.errors
        return (
            f"{right:,} of {self.points:,} points labelled right ({100 * right / self.points:.2f} %) by "
            f"{self.blocks:,} block{'s' * (self.blocks != 1)} of width {self.width}: {self.parameters:,} "
            f"parameters = {self.constant:.2f}·(n ln n + r²), behind a projection of {self.projection:,}; "
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
    numbers: Tensor | None = None,
    progress: Progress | None = None,
) -> ResidualMemory:
    """A residual net in float64 whose largest score is the label, for every row of x.

    `x`: points of any shape, one a row. `y`: whole labels from 0. `classes` is r (default: the largest label
    + 1, at least 2), `width` is k (default: see `choose_width`). Before the net is returned every point is
    run through all of it; `net.facts` says what was found. Where points are hard to distinguish a narrower
    net may be built. `generator` is torch's global one if None. `numbers` are what points are called in facts
    and refusals (default: their rows).
    """
    x, y, r = checked(x, y, classes)
    numbers = torch.arange(len(x)) if numbers is None else numbers
    first = distinct(x, y, numbers)
    generator = or_global(generator)
    if width is not None and (type(width) is not int or width < 1):
        raise BadInput("a width of at least 1", got=repr(width), do="leave it out")
    k = choose_width(len(first), r) if width is None else width
    own_x = x if len(first) == len(x) else x[first]  # no copy of a data set without duplicates
    own_y, own_numbers = y[first], numbers[first]
    while True:
        tried: list[_Ordered] = []
        for projection, placed in _placements(own_x, own_y, k, generator, progress):
            tried.append(placed)
            if placed.room < FINEST * k:
                continue
            net = _assemble(projection, placed, own_y, r, generator)
            facts = _verified(net, x, y, len(first), progress)
            net.facts = replace(facts, gap=placed.gap, closest=_named(placed.closest, own_numbers))
            if facts.errors == 0:
                return net
        if k == 1 or width is not None:
            best = max(tried, key=lambda one: one.room)
            if best.reach < best.gap:
                factor = f"{1 / best.reach:.0e}" if best.reach > 1e-300 else "1e300 or more"
                raise NotMemorized(
                    "expected points whose sizes float64 can hold together; got lengths that differ by a "
                    f"factor of {factor}; drop or rescale the outliers"
                )
            closest = _named(best.closest, own_numbers)
            raise _refusal("float64", closest, best.gap, "drop one of such pairs, or give both one label")
        k = (k + 1) // 2  # in narrower blocks fewer units answer to each other's points


def _named(pair: tuple[int, int], numbers: Tensor) -> tuple[int, int]:
    return int(numbers[pair[0]]), int(numbers[pair[1]])


def choose_width(points: int, classes: int) -> int:
    """The largest k ≤ ⌈ln n⌉ whose net has at most 3·(n ln n + r²) parameters; k = 1 always does."""
    if points < 1 or classes < 2:
        raise BadInput("at least one point and two classes", got=f"{points} and {classes}", do="check these")
    most = 3 * (points * log(points) + classes**2)
    width = max(1, ceil(log(points)))
    while width > 1 and count_parameters(points, classes, width) > most:
        width -= 1
    return width


def count_parameters(points: int, classes: int, width: int) -> int:
    """⌈n/k⌉ blocks of 2k² + k, and r·k + r for the scores."""
    return ceil(points / width) * (2 * width**2 + width) + classes * (width + 1)


@dataclass(frozen=True)
class _Ordered:
    """Points behind a projection, in descending norm, and how well they can be distinguished there."""

    z: Tensor
    order: Tensor  # z[i] is point order[i]
    silent: Tensor  # what unit i must not answer to
    radius: float  # of the targets
    reach: float  # the shortest length of all over the longest: a move is rounded to eps of the longest
    gap: float
    closest: tuple[int, int]
    # Least gap times shortest length ÷ own length. A unit's answer is rounded to eps ÷ gap, and so is the
    # move by the point's own length that it makes; what is left must be small beside the shortest.
    room: float


@dataclass(frozen=True)
class _Projection:
    """x ↦ P(x − centre) + offset."""

    centre: Tensor
    weights: Tensor
    offset: Tensor


def _placements(
    x: Tensor, y: Tensor, width: int, generator: torch.Generator, progress: Progress | None
) -> Iterator[tuple[_Projection, _Ordered]]:
    """The points behind random projections, one for each way of scaling, the better first.

    Each is the first of some that is comfortable, or the best; where the first way is, there is no other.
    """
    found = []
    for scaling in (robust_scaling, plain_scaling):
        best: tuple[_Projection, _Ordered] | None = None
        for projection, z in _projections(x, width, scaling, generator):
            placed = _ordered(z, y, progress)
            if best is None or placed.room > best[1].room:
                best = projection, placed
            if placed.room >= COMFORTABLE:
                break
        assert best is not None
        found.append(best)
        if best[1].room >= COMFORTABLE:
            break
    yield from sorted(found, key=lambda one: -one[1].room)


def _projections(
    x: Tensor,
    width: int,
    scaling: Callable[[Tensor], tuple[Tensor, Tensor]],
    generator: torch.Generator,
) -> Iterator[tuple[_Projection, Tensor]]:
    """Random projections and the points behind them, with offsets ever further out."""
    centre, scale = scaling(x)
    for distance in OFFSETS:
        weights = random_projection(x.shape[1], width, generator) / scale
        z = torch.cat([(part.double() - centre) @ weights.T for part in x.split(ROWS)])
        norms = z.norm(dim=1)
        usual = norms.median() if scaling is robust_scaling else norms.square().mean().sqrt()
        length = float(usual.nan_to_num(posinf=1.0)) or 1.0
        weights, z = weights / length, z / length
        offset = away_from_zero(z, distance, generator)
        yield _Projection(centre, weights, offset), z + offset


def _ordered(z: Tensor, y: Tensor, progress: Progress | None) -> _Ordered:
    """Points in descending norm, and the room that each leaves for a threshold.

    A point that all but coincides with a later one of its label is left out: it is moved with that one.
    """
    total = len(z)
    norms = z.norm(dim=1)
    order = norms.argsort(descending=True)
    z = z[order]
    shortest, longest = float(norms.min()), float(norms.max())
    if not shortest > float_info.epsilon * longest or longest > LONGEST:  # squares may overflow
        reach = shortest / longest if 0 < longest < inf else 0.0
        ends = int(order[0]), int(order[-1])
        return _Ordered(z, order, norms, shortest / 2, reach, 1.0, ends, reach)
    later, index = closest_later(z, progress and (lambda done: progress(done, total, "thresholds")))
    squares = z.square().sum(1)
    radius = shortest / 2
    silent = largest_silent(z, later, radius)
    gaps = 1 - silent / squares
    near = (z - z[index]).square().sum(1) <= MERGED**2 * squares
    merged = near & (y[order] == y[order[index]]) & (index != torch.arange(total))
    kept = ~merged
    gaps[merged] = 1.0
    hardest = int(gaps.argmin())
    closest = int(order[hardest]), int(order[index[hardest]])
    return _Ordered(
        z=z[kept],
        order=order[kept],
        silent=silent[kept],
        radius=radius,
        reach=shortest / longest,
        gap=float(gaps[hardest]),
        closest=closest,
        room=float((gaps * shortest / squares.sqrt()).min()),
    )


def _assemble(
    projection: _Projection, placed: _Ordered, y: Tensor, classes: int, generator: torch.Generator
) -> ResidualMemory:
    z = placed.z
    goals = targets(classes, z.shape[1], placed.radius, generator)
    thresholds = (placed.silent + z.square().sum(1)) / 2  # half-way to the point's own answer
    inner, shift, outer = blocks(z, goals[y[placed.order]], thresholds)
    head, head_bias = nearest_target(goals)
    return ResidualMemory(
        {
            "centre": projection.centre,
            "projection": projection.weights,
            "offset": projection.offset,
            "inner": inner,
            "shift": shift,
            "outer": outer,
            "head": head,
            "head_bias": head_bias,
        }
    )


def verify(net: ResidualMemory, x: Any, y: Any, *, progress: Progress | None = None) -> Memorized:
    """Run every point through the whole net: errors and margins."""
    x, y, _ = checked(x, y, net.classes)
    return _verified(net, x, y, len(first_equal(x).unique()), progress)


@torch.no_grad()
def _verified(net: ResidualMemory, x: Tensor, y: Tensor, count: int, progress: Progress | None) -> Memorized:
    leads = []
    for done, (part, labels) in enumerate(zip(x.split(ROWS), y.split(ROWS), strict=True), start=1):
        scores, own = net(part), labels.unsqueeze(1)
        lead = scores.gather(1, own).squeeze(1) - scores.scatter(1, own, -inf).amax(1)
        finite = torch.isfinite(scores).all(1)
        leads.append(torch.where(finite, lead.double(), -float_info.max))  # what overflows is an error
        if progress:
            progress(min(len(x), done * ROWS), len(x), "checked points")
    lead = torch.cat(leads)
    k, r, number = net.width, net.classes, len(net.inner)
    return Memorized(
        points=len(x),
        distinct=count,
        classes=r,
        inputs=len(net.centre),
        width=k,
        blocks=number,
        parameters=count_parameters(number * k, r, k),
        projection=net.projection.numel() + k + len(net.centre),
        budget=count * log(count) + r**2,
        errors=int((lead <= 0).sum()),
        margins=quantiles(lead),
        ideal_margin=_ideal_margin(net),
        gap=None,
        closest=None,
        dtype=str(net.centre.dtype).removeprefix("torch."),
    )


def quantiles(values: Tensor) -> tuple[float, ...]:
    """At QUANTILES: values that occur."""
    ordered = values.sort().values
    return tuple(float(ordered[round(share * (len(ordered) - 1))]) for share in QUANTILES)


def _ideal_margin(net: ResidualMemory) -> float:
    """Between the targets themselves, which are the rows of the head up to a factor."""
    head, bias = net.head.double(), net.head_bias.double()
    goals = head * (-2 * bias.min() / head.square().sum(1).max())  # ‖q‖²/radius² is at most 1
    smallest = inf
    for start in range(0, len(goals), ROWS):
        scores = goals[start : start + ROWS] @ head.T + bias
        rows = torch.arange(len(scores))
        own = scores[rows, start + rows].clone()
        scores[rows, start + rows] = -inf
        smallest = min(smallest, float((own - scores.amax(1)).min()))
    return smallest


def export(
    net: ResidualMemory,
    x: Any,
    y: Any,
    dtype: torch.dtype = torch.float32,
    *,
    progress: Progress | None = None,
) -> ResidualMemory:
    """A copy of the net in another type of numbers, checked on all points; refused if a label changes."""
    if not (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
        raise BadInput("a floating type such as torch.float32", got=dtype, do="use one")
    copy = deepcopy(net).to(dtype)
    name = str(dtype).removeprefix("torch.")
    for title, tensor in copy.state_dict().items():
        lost = tensor[net.state_dict()[title] != 0] == 0
        if not torch.isfinite(tensor).all() or (lost.any() and title in ("projection", "head")):
            raise NotMemorized(
                f"expected weights within the range of {name}; got some in {title} that overflow or vanish; "
                "rescale the points, or keep the net in float64"
            )
    facts = verify(copy, x, y, progress=progress)
    if isinstance(net.facts, Memorized):
        facts = replace(facts, gap=net.facts.gap, closest=net.facts.closest)
    copy.facts = facts
    if facts.errors:
        wrong = f", and so {facts.errors:,} of {facts.points:,} labels are wrong"
        raise _refusal(name, facts.closest, facts.gap, "keep the net in float64", wrong)
    return copy


def _refusal(
    dtype: str, closest: tuple[int, int] | None, gap: float | None, do: str, wrong: str = ""
) -> NotMemorized:
    room = (
        f"points {closest[0]} and {closest[1]}, which leave room for a threshold of {gap:.1e} of their size"
        if closest and gap is not None
        else "points too close to each other"
    )
    return NotMemorized(f"expected points that {dtype} can distinguish; got {room}{wrong}; {do}")
