"""How far two matrices of averages are apart, and how far the conditions of Theorem 2 are from true."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .._core import Record
from ._teacher import Teacher

ROUNDING = 1e-12  # of sums of float64, with a margin for their length


@dataclass(frozen=True)
class Gap(Record):
    """`largest` difference of two entries; `relative`: norm of the difference ÷ the larger norm."""

    largest: float
    relative: float

    def __str__(self) -> str:
        return f"{self.relative:.2g}"


def rounding(inputs: int) -> float:
    """The relative gap that rounding leaves between sums over so many inputs: it grows like a random walk."""
    return float(1e-13 * max(inputs, 100) ** 0.5)


def gap(one: Tensor, other: Tensor, rows: Tensor | None = None, scale: float = 0.0) -> Gap:
    """Between two matrices; `rows` are weights of the squares of each row (P(z), or 1/P(z) for G̃ = ΛG).

    `scale`: the size of what both were computed from. Where they are no more than its rounding, as a gradient
    that is 0 by the theory, it is what the difference is compared with.
    """
    weight = torch.ones(len(one), dtype=one.dtype) if rows is None else rows
    off = one - other

    def norm(values: Tensor) -> float:
        return float((weight @ values.square()).sum().sqrt())

    size, rest = max(norm(one), norm(other)), norm(off)
    against = scale if size <= ROUNDING * scale else size
    return Gap(float(off.abs().max()), rest / against if against else 0.0)


def inverse(prior: Tensor) -> Tensor:
    """1/P(z), and 0 for events that never happen."""
    return torch.where(prior > 0, 1 / torch.where(prior > 0, prior, 1.0), 0.0)


def fourth_gap(
    teacher: Teacher, parent: str, shown: Tensor, given: Tensor, sent: Tensor, above: Tensor, pull: float
) -> Gap:
    """Between E[f_k g_j | z_α] and E[f_k | z_α] E[g_j | z_α], event by event: in ΔW they may cancel.

    `shown` f (inputs × nodes of the child) and `given` its mean by event; `sent` p·g and `above` its sums;
    `pull` is the size of the top's gradient, of which this one may be no more than rounding.
    """
    prior = teacher.model.priors[parent]
    rows = inverse(prior)
    largest, off, one, other = 0.0, 0.0, 0.0, 0.0
    for node in range(shown.shape[1]):  # one at a time: inputs × nodes × nodes would be large
        together = teacher.total(shown[:, node : node + 1] * sent, parent)  # times P(z), as G̃ is
        apart = given[:, node : node + 1] * above
        difference = together - apart
        largest = max(largest, float((difference.abs() * rows.unsqueeze(1)).max()))
        off += float((rows @ difference.square()).sum())
        one += float((rows @ together.square()).sum())
        other += float((rows @ apart.square()).sum())
    size, floor = max(one, other), float((prior @ given.square()).sum()) * pull**2
    against = floor if size <= ROUNDING**2 * floor else size
    return Gap(largest, (off / against) ** 0.5 if against else 0.0)


def focus_chance(teacher: Teacher, parent: str, child: str, contents: Tensor, seed: int = 0) -> float:
    """The focus gap of as many inputs for which focus holds: contents dealt anew among equal events z_β.

    What a sample shows of a gap that is not there: drawn inputs never give quite 0.
    """
    generator = torch.Generator().manual_seed(seed)
    below = teacher.events[child]
    # two orders by event, each random within it: the first says where from, the second where to
    keys = [below + torch.rand(len(below), generator=generator, dtype=torch.float64) for _ in range(2)]
    dealt = torch.empty_like(contents)
    dealt[keys[1].argsort()] = contents[keys[0].argsort()]
    return focus_gap(teacher, parent, child, dealt)


def focus_gap(teacher: Teacher, parent: str, child: str, contents: Tensor) -> float:
    """How far P(x_β | z_α, z_β) is from P(x_β | z_β): the total variation distance, averaged over (z_α, z_β).

    `contents`: x_β of every input, as `Teacher.contents` numbers it. 0 where z_β tells all of x_β.
    """
    p, above, below = teacher.p, teacher.events[parent], teacher.events[child]
    count = int(contents.max()) + 1
    alone = p.new_zeros(count).index_add_(0, contents, p)
    event = torch.zeros(count, dtype=torch.long).index_copy_(0, contents, below)
    pairs, place = torch.unique(above * count + contents, return_inverse=True)
    joint = p.new_zeros(len(pairs)).index_add_(0, place, p)
    top, own = pairs // count, pairs % count
    link = teacher.conditional(parent, child)
    prior, prior_below = teacher.model.priors[parent], teacher.model.priors[child]
    # P(z_α, z_β) of each pair, found among the pairs of events that occur (they are sorted)
    known = link.rows * link.shape[1] + link.columns
    at = torch.searchsorted(known, top * link.shape[1] + event[own]).clamp(max=len(known) - 1)
    together = prior[top] * link.values[at]
    expected = together * alone[own] * inverse(prior_below)[event[own]]
    # Both sides sum to one over x_β, so half of the absolute differences is the sum of the positive ones,
    # and these are at contents that do occur with z_α.
    return float((joint - expected).clamp(min=0).sum())


def broadness_gap(teacher: Teacher, parent: str, child: str) -> float:
    """How far P(x_α | z_α, z_β) is from P(x_α | z_α): the total variation distance, averaged over (z_α, z_β).

    x_α settles z_β, so the distance is 1 − P(z_β | z_α): 0 exactly where z_β is a function of z_α.
    """
    link = teacher.conditional(parent, child)
    joint = teacher.model.priors[parent][link.rows] * link.values
    return float((joint * (1 - link.values)).sum().clamp(min=0))
