"""Does a node tell the hidden event of its region? The question of the paper's §3.2, as numbers of each node.

For g_j, the gradient that a node receives, or f_j, its activation. Everything is about v_j(x_α), the mean of
either given what the region sees (the marginalized gradient, eq. 3), and v_j(z_α), its mean given the event
(eq. 6). Not for how they come about: see passes.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

import torch
from torch import Tensor

from .._core import BadInput, or_global
from ._checks import whole
from ._passes import Pass
from ._teacher import Teacher

ROUNDING = 1e-24  # a variance below this share of E[v²] is rounding, which is 1e-32 for a term in float64

MOST_DRAWS = 2**20
Side = Literal["gradient", "active"]  # the gradient is that at the linear map, behind gate and batch norm


@dataclass(frozen=True)
class Selectivity:
    """One number for each node; 0 for a node that is not `alive`, one whose v_j(x_α) does not vary.

    `explained`: Var v_j(z_α) ÷ Var v_j(x_α), the share that the event explains. `correlation`: of v_j(x_α)
    and 1[z_α = a], the largest over events a (never negative). `event`: that a. `sign`: the paper's
    criterion, v_j(a) > 0 > v_j(b) for one event a and every other b. `told`: Var v_j(x_α) ÷ Var v_j(x), how
    much of v_j is about the region at all; `explained` × `told` is η².
    """

    explained: Tensor
    correlation: Tensor
    event: Tensor
    sign: Tensor
    told: Tensor
    alive: Tensor

    def mean(self, name: str) -> float:
        """Of one of these numbers over the nodes that are alive; 0 if none is."""
        if name not in (field.name for field in fields(self)):
            raise BadInput("a number of Selectivity", got=repr(name), do="see its fields")
        values: Tensor = getattr(self, name)
        return float(values[self.alive].double().mean()) if bool(self.alive.any()) else 0.0


def selectivity(values: Tensor, p: Tensor, contents: Tensor, events: Tensor, size: int) -> Selectivity:
    """Of values (inputs × nodes) for events 0 … `size` − 1, one for each input.

    `contents` numbers what the region sees of each input, from 0; equal contents have equal events.
    """
    found = _by_content(values, p, contents, events)
    return _selectivity(found, found.event, size)


def chance(
    values: Tensor,
    p: Tensor,
    contents: Tensor,
    events: Tensor,
    size: int,
    *,
    generator: torch.Generator | None = None,
    draws: int = 20,
) -> Selectivity:
    """The same with the events shuffled among contents, averaged over draws: what no relation would give.

    As many contents for each event as before; `event` is −1, and `sign` is a share.
    """
    whole(draws, "a number of draws", 1, MOST_DRAWS)
    generator = or_global(generator)
    found = _by_content(values, p, contents, events)
    explained, correlation, sign = (torch.zeros_like(found.square) for _ in range(3))
    for _ in range(draws):
        mixed = found.event[torch.randperm(len(found.event), generator=generator)]
        one = _selectivity(found, mixed, size)
        explained += one.explained
        correlation += one.correlation
        sign += one.sign
    none = torch.full_like(one.event, -1)
    return Selectivity(explained / draws, correlation / draws, none, sign / draws, one.told, one.alive)


def of_region(teacher: Teacher, seen: Pass, region: str, side: Side = "gradient") -> Selectivity:
    """Of a region's nodes for its own events, from a pass over the inputs."""
    return selectivity(*_given(teacher, seen, region, side))


def chance_of_region(
    teacher: Teacher,
    seen: Pass,
    region: str,
    side: Side = "gradient",
    *,
    generator: torch.Generator | None = None,
    draws: int = 20,
) -> Selectivity:
    """What shuffled events would give there."""
    return chance(*_given(teacher, seen, region, side), generator=generator, draws=draws)


def _given(
    teacher: Teacher, seen: Pass, region: str, side: Side
) -> tuple[Tensor, Tensor, Tensor, Tensor, int]:
    if region not in seen.active:
        raise BadInput("a region with children", got=repr(region), do="see student.inner")
    if side not in ("gradient", "active"):
        raise BadInput("gradient or active", got=repr(side), do="choose one")
    p = teacher.p
    if side == "active":
        values = seen.active[region]
    else:  # it came times p(x); an input that never happens has none
        chances = p.unsqueeze(1)
        values = torch.where(chances > 0, seen.gradient[region] / torch.where(chances > 0, chances, 1.0), 0.0)
    return values, p, teacher.contents(region), teacher.events[region], teacher.sizes[region]


@dataclass(frozen=True)
class _Contents:
    """What counts of values: P(x_α), v(x_α) and z_α of the contents that occur, Var v(x) and E[v(x)²]."""

    p: Tensor
    mean: Tensor
    event: Tensor
    variance: Tensor
    square: Tensor


def _by_content(values: Tensor, p: Tensor, contents: Tensor, events: Tensor) -> _Contents:
    count = len(p)
    if values.ndim != 2 or not values.is_floating_point() or not bool(values.isfinite().all()):
        raise BadInput("finite values, inputs × nodes", got=f"shape {tuple(values.shape)}", do="correct them")
    if not len(values) == len(contents) == len(events) == count:
        raise BadInput(
            f"values, contents and events of {count:,} inputs",
            got=f"{len(values)}, {len(contents)}, {len(events)}",
            do="give those of one teacher",
        )
    total = int(contents.max()) + 1
    event = torch.zeros(total, dtype=torch.long).index_copy_(0, contents, events)
    if not torch.equal(event[contents], events):
        raise BadInput(
            "the same event for the same contents", got="two for some", do="give the region's own contents"
        )
    weight = p.new_zeros(total).index_add_(0, contents, p)
    sums = values.new_zeros(total, values.shape[1]).index_add_(0, contents, p.unsqueeze(1) * values)
    occurs = weight > 0
    return _Contents(
        weight[occurs],
        sums[occurs] / weight[occurs].unsqueeze(1),
        event[occurs],
        p @ (values - p @ values).square(),
        p @ values.square(),
    )


def _selectivity(found: _Contents, event: Tensor, size: int) -> Selectivity:
    weight, mean = found.p, found.mean
    centre = weight @ mean
    spread = weight @ (mean - centre).square()
    alive = spread > ROUNDING * found.square
    told = _ratio(spread, found.variance, alive).clamp(max=1)
    prior = weight.new_zeros(size).index_add_(0, event, weight)
    sums = mean.new_zeros(size, mean.shape[1]).index_add_(0, event, weight.unsqueeze(1) * mean)
    occurs = prior > 0
    if int(occurs.sum()) < 2:  # nothing to distinguish
        nothing = torch.zeros_like(told)
        return Selectivity(nothing, nothing, nothing.long(), nothing.bool(), told, alive)
    prior, sums, names = prior[occurs].unsqueeze(1), sums[occurs], occurs.nonzero().squeeze(1)
    given = sums / prior  # v(z_α)
    between = (prior * (given - centre).square()).sum(0)
    # Cov(1[z = a], v) = P(a)(v(a) − v), and 1[z = a] has variance P(a)(1 − P(a))
    best, place = ((prior / (1 - prior)).sqrt() * (given - centre)).max(0)
    sign = ((given > 0).sum(0) == 1) & ((given < 0).sum(0) == len(given) - 1)
    return Selectivity(
        _ratio(between, spread, alive).clamp(max=1),
        _ratio(best, spread.sqrt(), alive).clamp(0, 1),
        names[place],
        sign & alive,
        told,
        alive,
    )


def _ratio(above: Tensor, below: Tensor, alive: Tensor) -> Tensor:
    safe = torch.where(alive & (below > 0), below, torch.ones_like(below))
    return torch.where(alive, above / safe, torch.zeros_like(above))
