"""What the reformulation sees of the data: how often events happen and which go together. No inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from .._core import BadInput, OneLine
from ._checks import SUM_TOLERANCE, chances
from ._conditional import Conditional
from ._regions import Edge, RegionGraph


@dataclass(frozen=True)
class EventModel(OneLine):
    """P(z_α) of every region (the diagonal of Λ_α) and P_αβ of every edge (parent α, child β)."""

    graph: RegionGraph
    priors: Mapping[str, Tensor]
    conditionals: Mapping[Edge, Conditional]

    @property
    def sizes(self) -> dict[str, int]:
        """m_α, how many events each region has."""
        return {name: len(prior) for name, prior in self.priors.items()}

    @staticmethod
    def of(graph: RegionGraph, top: Tensor, conditionals: Mapping[Edge, Tensor]) -> EventModel:
        """From P(z) of the top region and one matrix an edge; other priors follow: P(z_β) = P_αβᵀ P(z_α)."""
        if not isinstance(conditionals, Mapping) or set(conditionals) != set(graph.edges):
            given = set(conditionals) if isinstance(conditionals, Mapping) else set()
            odd = sorted(given ^ set(graph.edges), key=str)
            raise BadInput(
                "one matrix P for each edge", got=f"a difference in {odd[:3]}", do="see graph.edges"
            )
        first = chances(top, "probabilities of the top region's events")
        if first.ndim != 1 or abs(float(first.sum()) - 1) > SUM_TOLERANCE:
            raise BadInput(
                "probabilities of the top region's events that sum to one",
                got=first.tolist()[:8],
                do="divide them by their sum, in float64",
            )
        links = {
            edge: Conditional.from_dense(matrix, f"P of {edge}") for edge, matrix in conditionals.items()
        }
        priors = {graph.top: first}
        for parent in reversed(graph.order):
            for child in graph.children[parent]:
                link = links[parent, child]
                if link.shape[0] != len(priors[parent]):
                    raise BadInput(
                        f"P of {(parent, child)} with {len(priors[parent])} rows, one an event of {parent!r}",
                        got=link.shape[0],
                        do="correct its size",
                    )
                found = link.transposed(priors[parent].unsqueeze(1)).squeeze(1)
                known = priors.setdefault(child, found)
                if known.shape != found.shape or float((known - found).abs().max()) > SUM_TOLERANCE:
                    raise BadInput(
                        f"the same P(z) of {child!r} from each of its parents",
                        got=f"{known.tolist()[:8]} and {found.tolist()[:8]}",
                        do="correct P or the top prior",
                    )
        return EventModel(graph, {name: priors[name] for name in graph.order}, links)
