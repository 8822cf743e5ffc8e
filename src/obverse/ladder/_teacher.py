"""The discrete hierarchical teacher: inputs, their probabilities, the event that each region sees in them.

z_α is a function of the events of α's children; the label is the event of the top region. Either every input
there is (exact), or inputs that were drawn (sampled: sums over them are estimates). Not for the student.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

import torch
from torch import Tensor

from .._core import BadInput, OneLine, or_global
from ._checks import SUM_TOLERANCE, chances, named, whole
from ._conditional import Conditional
from ._model import EventModel
from ._regions import RegionGraph
from ._summaries import Summary, renumber, summarize

MOST_INPUTS = 2**24
MOST_VALUES = 2**15 - 1  # of a position: inputs are kept as 16-bit numbers
Draw = Callable[
    [int, torch.Generator], Tensor
]  # (count, generator) → count × positions, whole numbers from 0


@dataclass(frozen=True)
class Teacher(OneLine):
    """`events[α][i]` is z_α of input i, from 0 to `sizes[α]` − 1; `p` are the inputs' probabilities."""

    graph: RegionGraph
    inputs: Tensor  # inputs × positions
    p: Tensor
    events: Mapping[str, Tensor]
    sizes: Mapping[str, int]
    sampled: bool = False

    def __post_init__(self) -> None:
        count = len(self.inputs)
        _probabilities(self.p, count)
        named(self.events, self.graph.order, "events")
        named(self.sizes, self.graph.order, "sizes")
        for name, events in self.events.items():
            size = whole(self.sizes[name], f"a number of events of {name!r}", 1, MOST_INPUTS)
            right = events.shape == (count,) and events.dtype == torch.long
            if not right or not 0 <= int(events.min()) <= int(events.max()) < size:
                raise BadInput(
                    f"{count:,} events from 0 to {size - 1:,} for {name!r}, as whole numbers",
                    got=f"shape {tuple(events.shape)}, {events.dtype}",
                    do="number them anew",
                )

    @property
    def labels(self) -> Tensor:
        return self.events[self.graph.top]

    @cached_property
    def model(self) -> EventModel:
        """P(z_α) and P(z_β | z_α): all that the reformulation may look at."""
        links = {
            (parent, child): Conditional.of(
                self.events[parent], self.events[child], self.p, (self.sizes[parent], self.sizes[child])
            )
            for parent, child in self.graph.edges
        }
        own = self.p.unsqueeze(1)
        priors = {name: self.total(own, name).squeeze(1) for name in self.graph.order}
        return EventModel(self.graph, priors, links)

    def prior(self, region: str) -> Tensor:
        """P(z_α), the diagonal of Λ_α."""
        return self.model.priors[self._known(region)]

    def conditional(self, parent: str, child: str) -> Conditional:
        """P_αβ = P(z_β | z_α)."""
        if (parent, child) not in self.model.conditionals:
            raise BadInput("an edge: parent, child", got=f"{parent!r}, {child!r}", do="see graph.edges")
        return self.model.conditionals[parent, child]

    def total(self, values: Tensor, region: str) -> Tensor:
        """Σ of values (inputs × nodes) over the inputs of each event, m_α × nodes."""
        if values.ndim != 2 or len(values) != len(self.p):
            raise BadInput(
                f"values of {len(self.p):,} inputs × nodes",
                got=f"shape {tuple(values.shape)}",
                do="correct them",
            )
        sums = values.new_zeros(self.sizes[self._known(region)], values.shape[1])
        return sums.index_add_(0, self.events[region], values)

    def mean(self, values: Tensor, region: str) -> Tensor:
        """E[values | z_α], m_α × nodes; 0 for events that never happen."""
        prior = self.prior(region).unsqueeze(1)
        if values.ndim != 2:  # which would be multiplied by p all the same
            raise BadInput("values of inputs × nodes", got=f"shape {tuple(values.shape)}", do="correct them")
        sums = self.total(values * self.p.unsqueeze(1), region)
        return torch.where(prior > 0, sums / torch.where(prior > 0, prior, 1.0), 0.0)

    def _known(self, region: str) -> str:
        if region not in self.sizes:
            raise BadInput("a region", got=repr(region), do="see graph.order")
        return region

    def contents(self, region: str) -> Tensor:
        """x_α as a number for each input: the same where the inputs agree on the region's positions."""
        return renumber([self.inputs[:, position].long() for position in self.graph.positions[region]])[0]

    def weighted(self, p: Tensor) -> Teacher:
        """The same inputs and events with other probabilities."""
        return replace(self, p=_probabilities(p, len(self.p)))


def enumerate_teacher(
    graph: RegionGraph,
    summaries: Summary | Mapping[str, Summary] = "full",
    *,
    values: int | Sequence[int] = 2,
    p: Tensor | None = None,
) -> Teacher:
    """Every input there is, the last position varying fastest; equally likely unless `p` says otherwise.

    `values`: how many values a position takes; a single one where no region looks. `summaries`: one for
    all regions, or by name ("full" if none).
    """
    counts = _counts(graph, values)
    total = prod(counts)
    if total > MOST_INPUTS:
        got = f"{total:,}" if total.bit_length() < 64 else f"about 2^{total.bit_length() - 1:,}"
        raise BadInput(
            f"at most {MOST_INPUTS:,} inputs to enumerate", got=got, do="draw some: sample_teacher"
        )
    index = torch.arange(total)
    inputs = torch.empty(total, len(counts), dtype=torch.int16)
    stride = total
    for position, count in enumerate(counts):
        stride //= count
        inputs[:, position] = (index // stride) % count
    own = torch.full((total,), 1 / total, dtype=torch.float64) if p is None else _probabilities(p, total)
    return _summed_up(graph, summaries, inputs, counts, own, sampled=False)


def sample_teacher(
    graph: RegionGraph,
    summaries: Summary | Mapping[str, Summary] = "full",
    *,
    count: int,
    generator: torch.Generator | None = None,
    values: int | Sequence[int] = 2,
    draw: Draw | None = None,
) -> Teacher:
    """`count` inputs drawn at random: by `draw`, or all positions independent and even.

    "full" regions number the contents that were drawn: with large regions nearly every input is an event.
    """
    counts = _counts(graph, values)
    whole(count, "a number of inputs to draw", 1, MOST_INPUTS)
    generator = or_global(generator)
    if draw is None:
        drawn = torch.stack([torch.randint(top, (count,), generator=generator) for top in counts], 1)
    else:
        if not callable(draw):
            raise BadInput("a function as `draw`", got=type(draw).__name__, do="see Draw")
        drawn = draw(count, generator)
        wrong = not isinstance(drawn, Tensor) or drawn.shape != (count, len(counts))
        if wrong or drawn.is_floating_point() or drawn.is_complex():
            got = (
                f"{tuple(drawn.shape)}, {drawn.dtype}" if isinstance(drawn, Tensor) else type(drawn).__name__
            )
            raise BadInput(f"{count:,} × {len(counts)} whole numbers from `draw`", got=got, do="correct it")
        if bool((drawn < 0).any()) or bool((drawn >= torch.tensor(counts)).any()):
            raise BadInput(
                "values from 0 to below `values` from `draw`", got="others", do="correct it, or values"
            )
    even = torch.full((count,), 1 / count, dtype=torch.float64)
    return _summed_up(graph, summaries, drawn.to(torch.int16), counts, even, sampled=True)


def _counts(graph: RegionGraph, values: int | Sequence[int]) -> list[int]:
    what = f"how many values each of {graph.inputs} positions takes, a number"
    if isinstance(values, int):
        many = whole(values, what, 1, MOST_VALUES)
        seen = set(graph.positions[graph.top])
        return [many if position in seen else 1 for position in range(graph.inputs)]
    if not isinstance(values, Sequence) or isinstance(values, str) or len(values) != graph.inputs:
        raise BadInput(
            f"a number of values, or one for each of {graph.inputs} positions", got=values, do="correct it"
        )
    return [whole(one, what, 1, MOST_VALUES) for one in values]


def _probabilities(p: Tensor, total: int) -> Tensor:
    found = chances(p, "probabilities of the inputs")
    if found.shape != (total,):
        raise BadInput(f"{total:,} probabilities", got=f"shape {tuple(found.shape)}", do="one for each input")
    if not abs(float(found.sum()) - 1) <= SUM_TOLERANCE:
        raise BadInput(
            "probabilities that sum to one",
            got=f"{float(found.sum()):.9g}",
            do="divide by the sum, in float64",
        )
    return found


def _summed_up(
    graph: RegionGraph,
    summaries: Summary | Mapping[str, Summary],
    inputs: Tensor,
    counts: Sequence[int],
    p: Tensor,
    sampled: bool,
) -> Teacher:
    if isinstance(summaries, Mapping):
        odd = [name for name in summaries if not graph.children.get(name)]
        if odd:
            raise BadInput(
                "summaries of regions that have children", got=", ".join(map(repr, odd)), do="see graph.order"
            )
    events: dict[str, Tensor] = {}
    sizes: dict[str, int] = {}
    for name in graph.order:
        below = graph.children[name]
        if below:
            parts, ranges = [events[child] for child in below], [sizes[child] for child in below]
            rule = summaries.get(name, "full") if isinstance(summaries, Mapping) else summaries
            events[name], sizes[name] = summarize(name, rule, parts, ranges)
        else:  # every content is an event
            own = graph.positions[name]
            sizes[name] = prod(counts[position] for position in own)
            if sizes[name] > MOST_INPUTS:
                raise BadInput(
                    f"at most {MOST_INPUTS:,} contents in the lowest region {name!r}",
                    got=f"{sizes[name]:,}",
                    do="split it",
                )
            place = torch.zeros(len(inputs), dtype=torch.long)
            for position in own:
                place = place * counts[position] + inputs[:, position].long()
            events[name] = place
    return Teacher(graph, inputs, p, events, sizes, sampled)
