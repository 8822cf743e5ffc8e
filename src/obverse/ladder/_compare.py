"""Brute force beside the reformulation: averages over inputs, and the same numbers from events alone.

For every edge the three messages of Theorems 2 and 4, for every region the whole recursion, and how far the
conditions that they rest on are from true.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .._core import BadInput, OneLine, Result
from ._checks import whole
from ._gaps import Gap, broadness_gap, focus_chance, focus_gap, fourth_gap, gap, inverse
from ._heap import give_back
from ._passes import Pass, one_hot, propagate
from ._reformulation import Reformulated, reformulate
from ._regions import Edge, RegionGraph
from ._student import Student
from ._teacher import Teacher


@dataclass(frozen=True)
class Sides(OneLine):
    """The same matrix twice: averaged over inputs, and from events.

    `error`: standard error of the former where inputs were drawn. None where all were enumerated, where they
    weigh unequally, and with batch norm, which makes every input depend on all: see `standard_error`.
    """

    brute: Tensor
    reformulated: Tensor
    gap: Gap
    error: Tensor | None = None


@dataclass(frozen=True)
class EdgeComparison:
    """One edge, each message computed from the true averages at its other end.

    `forward`: E[f_β | z_α] and P_αβ F_β. `backward`: P(z_β) E[g_α | z_β] and P_αβᵀ G̃_α. `weight`: ΔW
    = E[f_β g_α] and (P_αβ F_β)ᵀ G̃_α. `recursive`: the same ΔW from the whole recursion, errors of other edges
    included. `focus`, `broadness`: total variation distances. `focus_chance`: what `focus` is in
    as many inputs for which it holds, where inputs were drawn. `fourth`: E[f_β g_α | z_α] and E[f_β | z_α]
    E[g_α | z_α].
    """

    forward: Sides
    backward: Sides
    weight: Sides
    recursive: Sides
    focus: float | None  # None where contents are continuous
    focus_chance: float | None
    broadness: float
    fourth: Gap


@dataclass(frozen=True)
class RegionComparison:
    """One region: F and G̃ averaged over inputs and by the whole recursion with the true D.

    `decorrelation`: E[f | z] and E[gate | z] E[before | z], and the same for gradients.
    """

    active: Sides
    gradient: Sides
    gate: Tensor
    decorrelation: Gap
    decorrelation_back: Gap


@dataclass(frozen=True)
class Comparison(Result):
    """What `compare` found, by edge (parent, child) and by region with children."""

    graph: RegionGraph
    edges: Mapping[Edge, EdgeComparison]
    regions: Mapping[str, RegionComparison]
    loss: float
    reformulated_loss: float
    sampled: bool

    @property
    def worst(self) -> float:
        """The largest relative gap of any ΔW, edge by edge."""
        return max(edge.weight.gap.relative for edge in self.edges.values())

    @property
    def worst_recursive(self) -> float:
        """The largest relative gap of any ΔW of the whole recursion."""
        return max(edge.recursive.gap.relative for edge in self.edges.values())

    def to_dict(self) -> dict[str, Any]:
        """The numbers without the matrices."""
        return {
            "loss": self.loss,
            "reformulated_loss": self.reformulated_loss,
            "sampled": self.sampled,
            "edges": [
                {
                    "parent": parent,
                    "child": child,
                    "focus": edge.focus,
                    "focus_chance": edge.focus_chance,
                    "broadness": edge.broadness,
                    "fourth": edge.fourth.relative,
                    **{
                        name: getattr(edge, name).gap.relative
                        for name in ("forward", "backward", "weight", "recursive")
                    },
                }
                for (parent, child), edge in self.edges.items()
            ],
            "regions": [
                {
                    "region": name,
                    "active": region.active.gap.relative,
                    "gradient": region.gradient.gap.relative,
                    "decorrelation": region.decorrelation.relative,
                    "decorrelation_back": region.decorrelation_back.relative,
                }
                for name, region in self.regions.items()
            ],
        }

    def __str__(self) -> str:
        return (
            f"{len(self.edges)} edges: ΔW from events is off by at most {self.worst:.2g} of its size "
            f"edge by edge, {self.worst_recursive:.2g} through the whole recursion"
        )


def compare(teacher: Teacher, student: Student) -> Comparison:
    """Run the student on every input and on events, and set the two side by side."""
    return compare_pass(teacher, student, propagate(teacher, student))


def compare_pass(
    teacher: Teacher, student: Student, seen: Pass, lowest: Mapping[str, Tensor] | None = None
) -> Comparison:
    """The same from a pass that was made already, perhaps by a real net.

    `lowest`: what the lowest regions showed (inputs × nodes). Their contents then count as continuous, and
    focus is not judged: no content comes twice.
    """
    graph, model = teacher.graph, teacher.model
    bottom = None if lowest is None else {name: teacher.mean(lowest[name], name) for name in graph.lowest}
    gates = {name: teacher.mean(seen.gate[name].to(torch.float64), name) for name in student.inner}
    whole = reformulate(model, student, gates=gates, lowest=bottom)
    active = {name: teacher.mean(seen.active[name], name) for name in student.inner}
    gradient = {name: teacher.total(seen.gradient[name], name) for name in student.inner}
    even = float(teacher.p.max()) == float(teacher.p.min())
    errors = teacher.sampled and even and student.norm is None
    # the top's gradient and the largest step are what the others are rounded against
    pull = float((inverse(model.priors[graph.top]) @ gradient[graph.top].square()).sum().sqrt())
    steps = max(float(step.norm()) for step in seen.step.weights.values())
    regions = {
        name: _region(teacher, seen, whole, name, active[name], gradient[name], gates[name], pull, errors)
        for name in student.inner
    }
    edges = {}
    for child in graph.order:
        if not graph.parents[child]:
            continue
        if child in active:
            shown, mean = seen.active[child], active[child]
        else:
            shown = one_hot(teacher, child) if lowest is None else lowest[child]
            mean = teacher.mean(shown, child)
        contents = teacher.contents(child) if lowest is None else None
        told = contents is not None and int(contents.max()) + 1 == len(teacher.events[child].unique())
        for parent in graph.parents[child]:
            focus = None if contents is None else 0.0 if told else focus_gap(teacher, parent, child, contents)
            by_chance = None
            if teacher.sampled and contents is not None:
                by_chance = 0.0 if told else focus_chance(teacher, parent, child, contents)
            edges[parent, child] = _edge(
                teacher,
                seen,
                whole,
                (parent, child),
                shown,
                mean,
                gradient[parent],
                focus,
                by_chance,
                pull,
                steps,
                errors,
            )
        give_back(len(teacher.p) * len(graph.edges))
    return Comparison(
        graph, {edge: edges[edge] for edge in graph.edges}, regions, seen.loss, whole.loss, teacher.sampled
    )


def _edge(
    teacher: Teacher,
    seen: Pass,
    whole: Reformulated,
    edge: Edge,
    shown: Tensor,
    mean: Tensor,
    above: Tensor,
    focus: float | None,
    by_chance: float | None,
    pull: float,
    steps: float,
    errors: bool,
) -> EdgeComparison:
    parent, child = edge
    link, priors = teacher.conditional(parent, child), teacher.model.priors
    given = teacher.mean(shown, parent)  # E[f_β | z_α]
    message = link @ mean
    back = teacher.total(seen.gradient[parent], child)
    weight = seen.step.weights[edge]
    forward = _sides(
        given, message, priors[parent], _mean_error(teacher, shown, parent, given) if errors else None
    )
    backward = _sides(
        back,
        link.transposed(above),
        inverse(priors[child]),
        _total_error(teacher, seen.gradient[parent], child, back) if errors else None,
        pull,
    )
    error = _product_error(teacher, shown, seen.gradient[parent], weight) if errors else None
    return EdgeComparison(
        forward,
        backward,
        _sides(weight, message.T @ above, None, error, steps),
        _sides(weight, whole.step.weights[edge], None, error, steps),
        focus,
        by_chance,
        broadness_gap(teacher, parent, child),
        fourth_gap(teacher, parent, shown, given, seen.gradient[parent], above, pull),
    )


def _region(
    teacher: Teacher,
    seen: Pass,
    whole: Reformulated,
    name: str,
    active: Tensor,
    gradient: Tensor,
    gate: Tensor,
    pull: float,
    errors: bool,
) -> RegionComparison:
    prior = teacher.model.priors[name]
    occurs = (prior > 0).to(prior.dtype).unsqueeze(1)  # an event that never happens has no average
    own = seen.gate[name].to(torch.float64)
    rectified = teacher.mean(own * seen.before[name], name)
    gated = teacher.total(own * seen.arriving[name], name)
    return RegionComparison(
        _sides(
            active,
            whole.active[name] * occurs,
            prior,
            _mean_error(teacher, seen.active[name], name, active) if errors else None,
        ),
        _sides(
            gradient,
            whole.gradient[name],
            inverse(prior),
            _total_error(teacher, seen.gradient[name], name, gradient) if errors else None,
            pull,
        ),
        gate,
        gap(rectified, gate * teacher.mean(seen.before[name], name), prior),
        gap(gated, gate * teacher.total(seen.arriving[name], name), inverse(prior), pull),
    )


def _sides(
    brute: Tensor, reformulated: Tensor, rows: Tensor | None, error: Tensor | None, scale: float = 0.0
) -> Sides:
    return Sides(brute, reformulated, gap(brute, reformulated, rows, scale), error)


def _mean_error(teacher: Teacher, values: Tensor, region: str, mean: Tensor) -> Tensor:
    """Standard error of E[values | z] from drawn inputs; infinite for an event that was seen once."""
    count = torch.bincount(teacher.events[region], minlength=teacher.sizes[region]).unsqueeze(1)
    spread = (teacher.mean(values.square(), region) - mean.square()).clamp(min=0)
    return torch.where(count > 1, (spread / (count - 1).clamp(min=1)).sqrt(), torch.inf)


def _total_error(teacher: Teacher, weighted: Tensor, region: str, total: Tensor) -> Tensor:
    """Standard error of Σ p(x) values(x) over the inputs of each event."""
    # a mean over all inputs of values · 1[z], with p = 1/count in each term
    count = len(teacher.p)
    squares = teacher.total(weighted.square(), region) * count
    return ((squares - total.square()).clamp(min=0) / max(count - 1, 1)).sqrt()


def _product_error(teacher: Teacher, shown: Tensor, weighted: Tensor, mean: Tensor) -> Tensor:
    """Standard error of E[f_k g_j]."""
    count = len(teacher.p)
    squares = shown.square().T @ weighted.square() * count
    return ((squares - mean.square()).clamp(min=0) / max(count - 1, 1)).sqrt()


def standard_error(
    teacher: Teacher, student: Student, statistic: Callable[[Comparison], float], groups: int = 20
) -> float:
    """Standard error of any number of a comparison over drawn inputs: the jackknife, leaving out groups.

    For what has no formula: gaps, and whatever the reformulation or batch norm computes from estimates.
    """
    count = len(teacher.p)
    if not teacher.sampled:
        raise BadInput(
            "a teacher whose inputs were drawn", got="every input enumerated", do="its numbers are exact"
        )
    whole(groups, "a number of groups", 2, count)
    member = torch.arange(count) % groups  # inputs are drawn independently: any split is a random one
    found = []
    for group in range(groups):
        left = torch.where(member == group, 0.0, teacher.p)
        found.append(statistic(compare(teacher.weighted(left / left.sum()), student)))
    values = torch.tensor(found, dtype=torch.float64)
    return float(((groups - 1) / groups * (values - values.mean()).square().sum()).sqrt())
