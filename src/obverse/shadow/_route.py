"""Which tensors the fitted reverse passes on its way down from a layer, and what comes down to each.

Decided by the graph and the shapes of one input; not for fitting (see fitted).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Literal

from torch import Tensor

from . import _structure as st
from ._attention import PAIRS, Attention
from ._generate import unbroadcast
from ._graph import Graph, Layer, Stage
from ._reversal import Activation, Norm, Reach, Rule, Shape

WIDEST = 2**14  # features of one fit where several paths meet


@dataclass(frozen=True)
class Edge:
    """What comes down to a tensor from one step that reads it.

    `bring` makes features out of what the step's own tensor was found to be; `form` says how they lie to the
    tensor ("same": place by place). Features that are not to be fitted (`fit`) are the tensor.
    """

    stage: int
    form: Reach | Literal["rows", "whole", "same"]
    fit: bool
    bring: Callable[[Tensor], Tensor]
    layer: str | None = None  # whose `keep` holds
    by_adjoint: bool = False
    narrow: Callable[[Tensor], Tensor] | None = None  # `bring` by the adjoint, for where this is too wide


@dataclass(frozen=True)
class Route:
    """The edges into each tensor below a layer, by stage, from the top down; `range` is what it may be."""

    top: int
    edges: Mapping[int, tuple[Edge, ...]]
    bounds: Mapping[int, tuple[float, float]]
    shapes: Mapping[int, Shape]

    @property
    def fitted(self) -> tuple[int, ...]:
        """The tensors that need a fit."""
        return tuple(i for i, edges in self.edges.items() if len(edges) > 1 or edges[0].fit)


def plan(graph: Graph, top: Layer, input_shape: Shape) -> Route:
    """The route from a layer down, for inputs of a shape."""
    found = graph.shapes(input_shape)
    reached = sorted(graph.below(top.output) | {top.output.index})
    shapes = {i: found[graph.stages[i].node] for i in reached}
    edges: dict[int, list[Edge]] = {}
    bounds: dict[int, tuple[float, float]] = {}
    waiting: set[int] = set()  # what only passes on waits for the tensor below, which may know more
    for index in reversed(reached):
        stage = graph.stages[index]
        if _can_wait(stage, edges.get(index, [])):
            edges[index] = [replace(edges[index][0], fit=False)]
            waiting.add(index)
        if isinstance(stage.rule, Activation) and index != top.output.index:
            bounds[index] = stage.rule.bounds(stage.module)
        start = 0
        for place, source in enumerate(stage.inputs):
            edge = _edge(graph, stage, place, source, start, shapes)
            if stage.index in waiting and edge.form == "same":
                edge = replace(edge, fit=source not in graph.map_of)
            edges.setdefault(source, []).append(edge)
            if isinstance(stage.module, st.Concatenate):
                start += shapes[source][stage.module.dimension - (stage.module.dimension > 0)]
    ordered = {i: _fitting(edges[i], shapes) for i in sorted(edges, reverse=True)}
    return Route(top.output.index, ordered, bounds, shapes)


def _can_wait(stage: Stage, edges: list[Edge]) -> bool:
    """Whether the tensor of a step that changes nothing can be left to the fit of what it reads."""
    pair = isinstance(stage.module, PAIRS)  # whose output is no tensor
    passes = isinstance(stage.rule, Rule) and (stage.rule.exact or pair) and len(stage.inputs) > 0
    return passes and len(edges) == 1 and edges[0].form == "same" and edges[0].fit


def _edge(
    graph: Graph, stage: Stage, place: int, source: int, start: int, shapes: Mapping[int, Shape]
) -> Edge:
    """What a step hands to one of the tensors that it reads."""
    want, module = shapes[source], stage.module
    # The output of a map, or of a norm folded into it, is read by nothing else than what stands for it above.
    passes = source in graph.map_of
    if isinstance(module, st.Concatenate):
        size = want[module.dimension - (module.dimension > 0)]
        return Edge(stage.index, "same", False, lambda h: h.narrow(module.dimension, start, size))
    if isinstance(module, st.Add):
        sign = module.signs[place]
        return Edge(stage.index, "same", not passes, lambda h: unbroadcast(sign * h, want))
    if isinstance(module, st.Gate | st.Factor) or isinstance(stage.rule, Norm):
        return Edge(stage.index, "same", not passes, lambda h: unbroadcast(h, want))
    if isinstance(stage.rule, Activation):
        return Edge(stage.index, "same", False, lambda h: h)
    assert isinstance(stage.rule, Rule)
    back = partial(_reverse, stage, want)
    if isinstance(module, Attention) and want != shapes[stage.index]:
        return Edge(stage.index, "whole", True, lambda h: h)
    if stage.rule.exact:
        shift = isinstance(module, st.Shift)
        return Edge(stage.index, "same", shift and not passes, (lambda h: h) if shift else back)
    if isinstance(module, st.Call) and prod(want) == prod(shapes[stage.index]) and source != 0:
        return Edge(stage.index, "same", False, back)  # a permutation, or a scale that the next fit sees to
    form = None if stage.rule.fitted is None else stage.rule.fitted(module, want, shapes[stage.index])
    layer = graph.map_of[stage.index].name if stage.is_map else None
    if form is None:
        return Edge(stage.index, "same", stage.is_map or not passes, back, layer, by_adjoint=not _ours(stage))
    return Edge(stage.index, form, True, lambda h: h, layer, narrow=back)


def _reverse(stage: Stage, shape: Shape, h: Tensor) -> Tensor:
    assert isinstance(stage.rule, Rule)
    return stage.rule.reverse(stage.module, h, shape)


def _ours(stage: Stage) -> bool:
    """Whether a step without weights is one of PyTorch's or the library's, whose adjoint is as good."""
    return not stage.is_map and type(stage.module).__module__.startswith(("torch.nn.", f"{__package__}."))


def _fitting(edges: list[Edge], shapes: Mapping[int, Shape]) -> tuple[Edge, ...]:
    """Where several meet, those too wide for one fit go by their adjoint."""
    if len(edges) == 1:
        return tuple(edges)
    widths = [_width(edge, shapes) for edge in edges]
    result = []
    for edge, width in zip(edges, widths, strict=True):
        grouped = isinstance(edge.form, Reach) and edge.form.groups > 1
        if (
            edge.narrow is not None
            and isinstance(edge.form, Reach)
            and (grouped or width * len(edges) > WIDEST)
        ):
            edge = replace(edge, form="same", bring=edge.narrow)
        result.append(edge)
    return tuple(result)


def _width(edge: Edge, shapes: Mapping[int, Shape]) -> int:
    """Features for each place, about."""
    shape = shapes[edge.stage]
    return shape[0] * prod(edge.form.kernel) if isinstance(edge.form, Reach) else shape[-1]
