"""Running a graph backwards: from h of one layer down to the input. Pure: the net is only read.

Every step is the adjoint of what the net does there over its energy (the mean squared norm of its rows):
A x̃ ≈ h for x̃ = Aᵀh / E where rows are nearly orthogonal. Behind an activation that loses the negative half,
twice that (eq. 1). What happens where paths meet again is in `join`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from .._core import Source
from . import _structure as st
from ._adjust import unit_peak
from ._graph import Graph, Layer, Stage, evaluation
from ._join import Estimate, join, portion
from ._pooling import unpool_at
from ._reversal import Activation, Norm, Rule, Shape, drop, theory_scale
from ._statistics import Affine, Statistics, needs_data

PROBES = 64


@dataclass
class Generation:
    """One way down a graph, for inputs of one shape.

    `scale(layer)` is the α of a map at keep = 1, None for α by the row's own peak (its scale will be divided
    out); `keep(name)` its ρ; `at_input` is what stands for the ReLU at the input, and `input_slope` what it
    lets through of what is negative; `switches` holds positions of maxima by stage, where they are borrowed.
    """

    graph: Graph
    statistics: Statistics
    input_shape: Shape
    scale: Callable[[Layer], float | None]
    keep: Callable[[str], float]
    at_input: Callable[[Tensor], Tensor]
    input_slope: float = 0.0
    generator: Source = None
    switches: Mapping[int, Tensor] | None = None

    def __post_init__(self) -> None:
        self._shapes = self.graph.shapes(self.input_shape)
        # Of the weights as they are during this one way down.
        self._energies: dict[str, float] = {}
        self._gains: dict[str, Tensor | None] = {}

    def down(self, top: Layer, h: Tensor) -> Tensor:
        """x̃ for h of a layer, before the ReLU or floor at the input."""
        pending: dict[int, list[Estimate]] = {top.output.index: [Estimate(h)]}
        with evaluation(self.graph.net):  # activations run as modules, and some draw noise in training
            for stage in reversed(self.graph.stages[1 : top.output.index + 1]):
                if stage.index not in pending:
                    continue
                if isinstance(stage.module, st.Constant):
                    del pending[stage.index]
                    continue
                estimate = join(pending.pop(stage.index), alone=not pending)
                if stage.index != top.output.index and isinstance(stage.rule, Activation):
                    estimate = replace(estimate, value=stage.module(estimate.value))
                for source, contribution in self._reverse(stage, estimate):
                    pending.setdefault(source, []).append(contribution)
        return join(pending[0], alone=True).value

    def _reverse(self, stage: Stage, estimate: Estimate) -> list[tuple[int, Estimate]]:
        value, energy, share = estimate.value, estimate.energy, estimate.share
        below = stage.inputs[0]
        if (layer := self.graph.map_of.get(stage.index)) is not None:
            return [(layer.stage.inputs[0], self._reverse_map(layer, estimate))]
        if isinstance(stage.module, st.Add):
            pairs = zip(stage.inputs, stage.module.signs, strict=True)
            return [
                (source, Estimate(self._unbroadcast(value if sign > 0 else -value, source), energy, share))
                for source, sign in pairs
            ]
        if isinstance(stage.module, st.Concatenate):
            return self._cut(stage, stage.module.dimension, estimate)
        if isinstance(stage.rule, Activation):
            slope = stage.rule.slope(stage.module)
            return [(below, Estimate(value, energy * (1 + slope**2) / 2, share))]
        if isinstance(stage.rule, Norm) or isinstance(stage.module, st.Gate | st.Factor):
            gain = self._factor(stage, value)
            size = float(gain.square().mean())
            value = self._unbroadcast(value * (gain / size if size > 0 else 1.0), below)
            return [(below, Estimate(value, energy * size, share))]
        return [(below, self._pass(stage, estimate))]

    def _pass(self, stage: Stage, estimate: Estimate) -> Estimate:
        assert isinstance(stage.rule, Rule)
        shape = self._shapes[self.graph.stages[stage.inputs[0]].node]
        if self.switches is not None and stage.index in self.switches:
            return Estimate(
                unpool_at(estimate.value, self.switches[stage.index], shape), estimate.energy, estimate.share
            )
        value = stage.rule.reverse(stage.module, estimate.value, shape)
        if stage.rule.exact:
            return Estimate(value, estimate.energy, estimate.share)
        size = self.graph.probed(
            stage, shape, lambda: probe_energy(stage, shape, self._shapes[stage.node], estimate.value)
        )
        return Estimate(value / size if size > 0 else value, estimate.energy * size, estimate.share)

    def _reverse_map(self, layer: Layer, estimate: Estimate) -> Estimate:
        """r aside, eq. 1 for one map with its norms: α Aᵀ(gain·h) ⊙ mask."""
        stage = layer.stage
        assert isinstance(stage.rule, Rule)
        gain = self.gain(layer)
        scale, keep = self.scale(layer), self.keep(layer.name)
        alpha = 1.0 if scale is None else scale / keep
        factor = alpha if gain is None else gain * alpha
        h = estimate.value if isinstance(factor, float) and factor == 1.0 else estimate.value * factor
        x = stage.rule.reverse(stage.module, h, self.reads(layer))
        if x.untyped_storage().data_ptr() == estimate.value.untyped_storage().data_ptr():
            x = x.clone()  # what follows works in place; h belongs to the caller
        if scale is None:
            x = x.mul_(unit_peak(x))
        size = 1.0 if self.graph.is_chain else self.energy(layer)
        return Estimate(drop(x, keep, self.generator), estimate.energy * size, estimate.share)

    def gain(self, layer: Layer) -> Tensor | None:
        """What the norms of a layer multiply its map by."""
        if layer.name not in self._gains:
            self._gains[layer.name] = self._gain(layer)
        return self._gains[layer.name]

    def _gain(self, layer: Layer) -> Tensor | None:
        gain: Tensor | None = None
        for norm in layer.norms:
            if isinstance(norm.rule, Norm):
                one, _ = self._affine(norm)
                gain = one if gain is None else gain * one
        return gain

    def energy(self, layer: Layer) -> float:
        """Mean squared norm of the rows of a layer's map with its norms folded in."""
        if layer.name not in self._energies:
            self._energies[layer.name] = self._energy(layer)
        return self._energies[layer.name]

    @torch.no_grad()
    def _energy(self, layer: Layer) -> float:
        stage = layer.stage
        assert isinstance(stage.rule, Rule)
        assert stage.rule.energy is not None
        rows = stage.rule.energy(stage.module, self.reads(layer))
        gain = self.gain(layer)
        if gain is None:
            return float(rows.mean())
        squares = gain.square()
        if rows.dim() == 0 or squares.numel() == 1:
            return float(rows.mean() * squares.mean())
        if squares.dim() > 1:  # one number a channel, the channels first
            squares = squares.flatten(1).mean(1)
        return (
            float((rows * squares).mean())
            if squares.numel() == rows.numel()
            else float(rows.mean() * squares.mean())
        )

    def affine(self, layer: Layer, x: Tensor) -> Tensor:
        """A layer's map and norms on x, before its activation, the norms with fixed statistics."""
        stage = layer.stage
        y: Tensor = stage.module(x)
        for norm in layer.norms:
            if isinstance(norm.rule, Norm):
                gain, shift = self._affine(norm)
                y = y * gain + shift
            else:
                y = norm.module(y)
        return y

    def theory_scale(self, layer: Layer) -> float:
        """α of eq. 1 at keep = 1: 2/(n s²) where the map reads what stands behind a ReLU, 1/(n s²) where its
        input keeps its negative half."""
        return float(theory_scale(self.energy(layer))) / (1 + self.slope(layer.stage.inputs[0]))

    def slope(self, index: int) -> float:
        """The share of its negative half that a stage's tensor has kept: 0 behind a ReLU, 1 if it is free."""
        stage = self.graph.stages[index]
        if isinstance(stage.rule, Activation):
            return stage.rule.slope(stage.module)
        if isinstance(stage.module, st.Input):
            return self.input_slope
        if isinstance(stage.module, st.Concatenate):
            return sum(map(self.slope, stage.inputs)) / len(stage.inputs)
        if isinstance(stage.module, st.Add):
            return max(map(self.slope, stage.inputs))
        free = stage.is_map or isinstance(stage.rule, Norm) or isinstance(stage.module, st.Constant)
        return 1.0 if free else self.slope(stage.inputs[0])

    def rectify(self, index: int, x: Tensor) -> Tensor:
        """x as a stage's tensor could be: through the activation behind which it stands."""
        stage = self.graph.stages[index]
        if isinstance(stage.rule, Activation):
            result: Tensor = stage.module(x)
            return result
        if isinstance(stage.module, st.Input):
            return self.at_input(x) if tuple(x.shape[1:]) == self.input_shape or self.input_slope == 0 else x
        if isinstance(stage.module, st.Concatenate):
            dimension = stage.module.dimension % x.dim()
            sizes = [self._shapes[self.graph.stages[source].node][dimension - 1] for source in stage.inputs]
            if sum(sizes) != x.shape[dimension]:  # a part of it: which one is not known here
                return x.relu() if self.slope(index) == 0 else x
            parts = zip(stage.inputs, x.split(sizes, dimension), strict=True)
            return torch.cat([self.rectify(source, part) for source, part in parts], dimension)
        if stage.is_map or isinstance(stage.rule, Norm) or isinstance(stage.module, st.Add | st.Constant):
            return x
        return self.rectify(stage.inputs[0], x)

    def reads(self, layer: Layer) -> Shape:
        """The shape of one input of a layer's map."""
        return self._shapes[self.graph.stages[layer.stage.inputs[0]].node]

    def _factor(self, stage: Stage, like: Tensor) -> Tensor:
        if isinstance(stage.module, st.Factor):
            return torch.as_tensor(stage.module.constant(), dtype=like.dtype, device=like.device)
        return self._affine(stage)[0]

    def _affine(self, stage: Stage) -> Affine:
        if needs_data(stage):
            return self._measured[stage.index]
        return self.statistics.affine(stage, self.input_shape)

    @cached_property
    def _measured(self) -> Mapping[int, Affine]:
        """Looked up once a way down: to know whether they still hold reads all weights."""
        return self.statistics.measured(self.input_shape)

    def _unbroadcast(self, value: Tensor, source: int) -> Tensor:
        return unbroadcast(value, self._shapes[self.graph.stages[source].node])

    def _cut(self, stage: Stage, dimension: int, estimate: Estimate) -> list[tuple[int, Estimate]]:
        value = estimate.value
        dimension = dimension % value.dim()
        total, start, parts = value.shape[dimension], 0, []
        for source in stage.inputs:
            size = self._shapes[self.graph.stages[source].node][dimension - 1]
            part = value.narrow(dimension, start, size)
            share = portion(estimate.share, start / total, (start + size) / total)
            parts.append((source, Estimate(part, estimate.energy, share)))
            start += size
        return parts


def unbroadcast(value: Tensor, want: Shape) -> Tensor:
    """The mean over what an addend of a shape was broadcast along."""
    have = tuple(value.shape[1:])
    if have == want:
        return value
    value = value.flatten(1, len(have) - len(want) + 1).mean(1) if len(have) > len(want) else value
    for dimension, size in enumerate(want, start=1):
        if size == 1 != value.shape[dimension]:
            value = value.mean(dimension, keepdim=True)
    return value


def probe_energy(stage: Stage, input_shape: Shape, output_shape: Shape, like: Tensor) -> float:
    """Mean squared norm of the rows of a linear step without weights, from ‖Aᵀg‖² for random signs g.

    Exact where rows do not overlap (pooling with windows side by side, selections); otherwise good to about
    √(2k/(probes · rows)) where each row overlaps with k others. The draw is fixed: the same net gives the
    same shadow.
    """
    assert isinstance(stage.rule, Rule)
    generator = torch.Generator().manual_seed(0)
    probes = min(PROBES, max(1, 2**22 // max(1, torch.Size(input_shape).numel())))
    signs = torch.randint(0, 2, (probes, *output_shape), generator=generator) * 2 - 1
    signs = signs.to(like.device, like.dtype)
    down = stage.rule.reverse(stage.module, signs, input_shape)
    return float(down.double().square().sum()) / max(1, signs.numel())  # double: half overflows here
