"""How much of what single inputs say events say too: 1 all of it, 0 no more than a single event would tell.

Averages are compared after what needs no events is taken off: the mean activation, the mean gradient, and
E[f]ᵀE[g] in ΔW. What is left is all that events could explain, so that large means cannot pass for agreement.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from ._compare import Comparison
from ._gaps import ROUNDING, inverse
from ._model import EventModel
from ._regions import Edge

# Of ΔW's square: where events could explain no more than this part, a share of it says nothing.
LITTLE = 0.01


@dataclass(frozen=True)
class Share:
    """Sums of squares: of what is off, of the whole that events could explain, of what both come from.

    `own`: of ΔW itself, of which the whole is the part that needs events; 0 for messages.
    """

    off: float = 0.0
    whole: float = 0.0
    size: float = 0.0
    own: float = 0.0

    @property
    def explained(self) -> float | None:
        """1 − off/whole, below 0 where events mislead; None where there is next to nothing to explain."""
        if self.whole <= max(ROUNDING**2 * self.size, LITTLE * self.own):
            return None
        return 1 - self.off / self.whole

    def __add__(self, other: Share) -> Share:
        return Share(
            self.off + other.off, self.whole + other.whole, self.size + other.size, self.own + other.own
        )


@dataclass(frozen=True)
class Agreement:
    """Shares of the three messages of an edge, and of its ΔW from the whole recursion."""

    forward: Share = Share()
    backward: Share = Share()
    weight: Share = Share()
    recursive: Share = Share()

    def __add__(self, other: Agreement) -> Agreement:
        return Agreement(
            self.forward + other.forward,
            self.backward + other.backward,
            self.weight + other.weight,
            self.recursive + other.recursive,
        )


def share(
    brute: Tensor, reformulated: Tensor, nothing: Tensor, rows: Tensor | None = None, size: float = 0.0
) -> Share:
    """Of a matrix of averages: `nothing` is what a single event gives, `rows` weigh the squares of each row.

    `size`: squares of what it was computed from, where that is more than its own.
    """
    weight = torch.ones(len(brute), dtype=brute.dtype) if rows is None else rows

    def squares(values: Tensor) -> float:
        return float((weight @ values.square()).sum())

    own = squares(brute)
    return Share(
        squares(brute - reformulated), squares(brute - nothing), max(size, own), own if rows is None else 0.0
    )


def agreements(
    found: Comparison, model: EventModel, shared: Mapping[Edge, str] | None = None
) -> tuple[dict[Edge, Agreement], dict[int, Agreement]]:
    """By edge, and by level: of all edges up into its regions, their sums of squares added.

    `shared`: edges of the same name have one W; of a level their ΔW are added up before they are compared.
    """
    graph, top = found.graph, found.graph.top
    pull = float((inverse(model.priors[top]) @ found.regions[top].gradient.brute.square()).sum())
    step = max(float(one.weight.brute.square().sum()) for one in found.edges.values())
    edges = {edge: _edge(found, model, edge, pull, step) for edge in graph.edges}
    levels = {level: Agreement() for level in sorted({graph.level[parent] for parent, _ in edges})}
    if shared is None:
        for (parent, _), one in edges.items():
            levels[graph.level[parent]] += one
        return edges, levels
    groups: dict[str, list[Edge]] = {}
    for edge, one in edges.items():
        levels[graph.level[edge[0]]] += Agreement(one.forward, one.backward)
        groups.setdefault(shared[edge], []).append(edge)
    for group in groups.values():
        brute = _sum(found.edges[edge].weight.brute for edge in group)
        nothing = _sum(_without_events(found, model, edge) for edge in group)
        local = _sum(found.edges[edge].weight.reformulated for edge in group)
        whole = _sum(found.edges[edge].recursive.reformulated for edge in group)
        levels[graph.level[group[0][0]]] += Agreement(
            weight=share(brute, local, nothing, size=step), recursive=share(brute, whole, nothing, size=step)
        )
    return edges, levels


def _edge(found: Comparison, model: EventModel, edge: Edge, pull: float, step: float) -> Agreement:
    one, above, below = found.edges[edge], model.priors[edge[0]], model.priors[edge[1]]
    occurs = (above > 0).to(above.dtype)
    mean, mean_back = above @ one.forward.brute, one.backward.brute.sum(0)
    nothing = _without_events(found, model, edge)
    return Agreement(
        share(one.forward.brute, one.forward.reformulated, torch.outer(occurs, mean), above),
        share(
            one.backward.brute,
            one.backward.reformulated,
            torch.outer(below, mean_back),
            inverse(below),
            pull,
        ),
        share(one.weight.brute, one.weight.reformulated, nothing, size=step),
        share(one.weight.brute, one.recursive.reformulated, nothing, size=step),
    )


def _without_events(found: Comparison, model: EventModel, edge: Edge) -> Tensor:
    """E[f_β]ᵀ E[g_α]: ΔW as a single event has it."""
    one = found.edges[edge]
    return torch.outer(model.priors[edge[0]] @ one.forward.brute, one.backward.brute.sum(0))


def _sum(parts: Iterable[Tensor]) -> Tensor:
    return torch.stack(list(parts)).sum(0)
