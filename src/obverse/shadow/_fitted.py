"""The fitted reverse: what comes down to a tensor, mapped to it by ridge regression. Not the shadow.

From the top down, every tensor that a layer reads is fitted, on calibration inputs, to what the steps above
it deliver, which is what the fits above them made; then it is cut to the range of its activation. Where
paths meet, one fit takes all that comes down. A function of h, the weights and the calibration inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from .._core import NONE, BadInput, OneLine, Source
from ._graph import Graph, Layer, evaluation, like
from ._regression import Rows, Windows, fit_rows, fit_windows
from ._reversal import Reach, Shape, drop
from ._ridge import Ridge
from ._route import Edge, Route, plan
from ._samples import Sample, Targets, fits, layout_of, samples_of
from ._windows import here

FEWEST_INPUTS, ENOUGH = 8, 50
MOST_INPUTS = 512
MEMORY = 2**30  # bytes of the maps that are kept, and of the rows that they are fitted to
IN_FLIGHT, COPIES = 2**31, 8  # bytes of what comes down, of which so many copies are held at once

Map = Windows | Rows


@dataclass(frozen=True)
class FitStep(OneLine):
    """One fit on the way down: of the tensor that the step `tensor` returns ("input" for the input).

    `error` is the share of the tensor's variation on held-out inputs that a fit to the others leaves: 0 is
    exact, 1 is what its mean has; None where nothing varies. `rows`, `features` and `targets` are those of
    the regression, `strength` what was added to the sums of squares.
    """

    tensor: str
    rows: int
    features: int
    targets: int
    strength: float
    error: float | None


@dataclass(frozen=True)
class Fitted:
    """The way down from one layer, for inputs of one shape.

    `maps` are by tensor and by the place of what comes down to it, −1 for all of that at once. `adjoint`
    names steps that have no fitted rule, and go by their adjoint; `inputs` is how many it was fitted on.
    """

    graph: Graph
    route: Route
    maps: Mapping[tuple[int, int], Map]
    steps: tuple[FitStep, ...]
    adjoint: tuple[str, ...]
    inputs: int

    @property
    def size(self) -> int:
        """Bytes of the maps."""
        return sum(one.size for one in self.maps.values())

    @torch.no_grad()
    def down(self, h: Tensor, keep: Callable[[str], float], generator: Source = None) -> Tensor:
        """x̃ for h of the layer, before the ReLU or floor at the input."""

        def fit(index: int, place: int, features: list[Tensor], edges: Sequence[Edge]) -> Tensor:
            return self.maps[index, place](features)

        parts = h.split(_at_once(max(map(prod, self.route.shapes.values()))))
        found = [_descend(self.graph, self.route, part, fit, keep, generator) for part in parts]
        return found[0] if len(found) == 1 else torch.cat(found)


Fit = Callable[[int, int, list[Tensor], Sequence[Edge]], Tensor]


def _descend(
    graph: Graph, route: Route, h: Tensor, fit: Fit, keep: Callable[[str], float], generator: Source
) -> Tensor:
    """The input, from the top down; `fit(tensor, place, features, edges)` is what features are mapped to."""
    values = {route.top: h}
    with evaluation(graph.net):
        for index, edges in route.edges.items():
            parts = [edge.bring(values[edge.stage]) for edge in edges]
            value = (
                parts[0] if len(parts) == 1 and not edges[0].fit else _meet(index, edges, parts, fit, route)
            )
            if index in route.bounds:
                value = value.clamp(*route.bounds[index])
            kept = min((keep(edge.layer) for edge in edges if edge.layer is not None), default=1.0)
            if kept < 1:
                value = drop(value / kept, kept, generator)
            values[index] = value
            for done in [one for one in values if not _needed(one, index, route)]:
                del values[done]
    return values[0]


def _needed(stage: int, index: int, route: Route) -> bool:
    """Whether a tensor is read below the one that was just found."""
    return stage == 0 or any(
        edge.stage == stage for below, edges in route.edges.items() if below < index for edge in edges
    )


def _meet(index: int, edges: Sequence[Edge], parts: list[Tensor], fit: Fit, route: Route) -> Tensor:
    """One fit of all that comes down; first what lies to the tensor in another way than the rest."""
    layout = layout_of(edges, route.shapes[index])
    for place, edge in enumerate(edges):
        if len(edges) > 1 and not fits(edge, layout):
            parts[place] = fit(index, place, [parts[place]], [edge])
    return fit(index, -1, parts, edges)


@torch.no_grad()
def fit_way(graph: Graph, top: Layer, targets: Targets) -> Fitted:
    """Fit the way down from a layer on calibration inputs, from the top down on what actually comes down."""
    x = targets.x
    route = plan(graph, top, tuple(x.shape[1:]))
    samples = samples_of(route, len(x))
    targets.prepare((index, sample) for (index, _), sample in samples.items())
    held = torch.zeros(len(x), dtype=torch.bool, device=x.device)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    held[order[: max(1, len(x) // 5)].to(x.device)] = True
    maps: dict[tuple[int, int], Map] = {}
    steps: list[FitStep] = []

    def fit(index: int, place: int, features: list[Tensor], edges: Sequence[Edge]) -> Tensor:
        name = graph.stages[index].name if index else "input"
        sample = samples[index, place]
        target = targets.of(index, sample)
        if not all(bool(one.isfinite().all()) for one in (target, *features)):
            raise BadInput(
                "finite activations to fit the way down on",
                got=f"NaN or infinity at {name!r}",
                do="look at the weights and the inputs",
            )
        found, how = _fit_one(features, edges, sample, target, held)
        maps[index, place] = found
        steps.append(
            FitStep(name, how.rows, how.mean.numel(), how.intercept.numel(), how.strength, how.error)
        )
        return found(features)

    _descend(graph, route, targets.values(route.top), fit, lambda layer: 1.0, None)
    adjoint = tuple(
        dict.fromkeys(
            graph.stages[edge.stage].name
            for edges in route.edges.values()
            for edge in edges
            if edge.by_adjoint
        )
    )
    return Fitted(graph, route, maps, tuple(steps), adjoint, len(x))


def _fit_one(
    features: list[Tensor], edges: Sequence[Edge], sample: Sample, target: Tensor, held: Tensor
) -> tuple[Map, Ridge]:
    if sample.layout == "windows":
        flat = here(len(sample.shape) - 1)
        reaches = [edge.form if isinstance(edge.form, Reach) else flat for edge in edges]
        return fit_windows(features, reaches, sample, target, held)
    return fit_rows(features, sample, target, held)


def _most_inputs(graph: Graph, input_shape: Shape) -> int:
    """How many inputs a fit takes without holding more than IN_FLIGHT."""
    return min(MOST_INPUTS, _at_once(max(map(prod, graph.shapes(input_shape).values()))))


def _at_once(largest: int) -> int:
    return max(FEWEST_INPUTS, IN_FLIGHT // (4 * COPIES * largest))


def fits_table(steps: Sequence[FitStep], adjoint: Sequence[str], inputs: int) -> str:
    """What was fitted, as text."""
    width = max(10, *(len(one.tensor) for one in steps)) if steps else 10
    form = f"{{:<{width}}} {{:>8}} {{:>8}} {{:>8}} {{:>9}} {{:>9}}"
    lines = [f"fitted on {inputs} inputs, from the top down; error: of held-out variation, what is left"]
    lines.append(form.format("tensor", "rows", "features", "targets", "strength", "error"))
    for one in steps:
        error = NONE if one.error is None else f"{one.error:.3g}"
        lines.append(
            form.format(one.tensor, one.rows, one.features, one.targets, f"{one.strength:.2g}", error)
        )
    if inputs < ENOUGH:
        lines.append(f"fewer than {ENOUGH} inputs: on others expect clearly larger errors than with more")
    if adjoint:
        lines.append(f"no fitted rule, by their adjoint: {', '.join(adjoint)}")
    return "\n".join(lines)


class Fits:
    """The ways down of a net, fitted at first use on the calibration inputs; the oldest are let go."""

    def __init__(self, inputs: Tensor | None = None) -> None:
        self.inputs = inputs
        self._made: dict[str, Fitted] = {}
        self._targets: Targets | None = None
        self._sums: tuple[float, ...] = ()
        self._all = False

    def way(self, graph: Graph, top: Layer, input_shape: Shape) -> Fitted:
        """That from a layer, for inputs of a shape."""
        if self.inputs is None:
            raise BadInput(
                "a fitted reverse that is calibrated",
                got="no calibration inputs",
                do="call calibrate(x) first",
            )
        if tuple(self.inputs.shape[1:]) != input_shape:
            raise BadInput(
                f"inputs of shape {tuple(self.inputs.shape[1:])}, as those it was fitted on",
                got=f"shape {input_shape}",
                do="calibrate on inputs of this shape",
            )
        if top.name not in self._made:
            found = fit_way(graph, top, self._targets_of(graph))
            while self._made and sum(one.size for one in (found, *self._made.values())) > MEMORY:
                del self._made[next(iter(self._made))]
            self._made[top.name] = found
        return self._made[top.name]

    def _targets_of(self, graph: Graph) -> Targets:
        """The rows to fit to, kept from layer to layer: from the second layer on those for all layers, found
        in one sweep, if there is room for them."""
        assert self.inputs is not None
        shape = tuple(self.inputs.shape[1:])
        sums = tuple(
            float(one.detach().double().sum()) for one in (*graph.net.parameters(), *graph.net.buffers())
        )
        if self._targets is None or sums != self._sums:  # of the weights as they are
            self._sums, self._all = sums, False
            count = _most_inputs(graph, shape)
            self._targets = Targets(graph, self.inputs[:count].to(like(graph.net)))
        elif not self._all:
            self._all = True
            wanted = {
                (index, sample)
                for top in graph.layers.values()
                for (index, _), sample in samples_of(plan(graph, top, shape), len(self._targets.x)).items()
            }
            if 4 * sum(sample.size for _, sample in wanted) <= MEMORY:
                self._targets.prepare(wanted)
            found, tops = graph.shapes(shape), [top.output for top in graph.layers.values()]
            if 4 * len(self._targets.x) * sum(prod(found[top.node]) for top in tops) <= MEMORY:
                self._targets.keep(top.index for top in tops)
        return self._targets
