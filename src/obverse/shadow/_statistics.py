"""What generation must know of a net beyond its weights: how norms and gates act on typical inputs.

Found on reference inputs, never on the sample that is being reversed: noise, until the Shadow is calibrated
on data. Nets of linear layers, convolutions, batch norm and ReLU need none of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx

from ._graph import Graph, Stage, like
from ._reversal import Norm, Shape
from ._structure import Gate

# Enough for means over inputs to 1/√32 of their spread; a forward pass over them each time weights change.
REFERENCES = 32
Affine = tuple[Tensor, Tensor]


@dataclass
class Statistics:
    """Gain and shift of every norm and gate, for the weights as they are now."""

    graph: Graph
    reference: Tensor | None = None
    _key: Any = None
    _found: dict[int, Affine] | None = None

    def affine(self, stage: Stage, input_shape: Shape) -> Affine:
        """(gain, shift) of a norm, (mean gate, 0) of a gate."""
        if isinstance(stage.rule, Norm) and not needs_data(stage):
            shape = self.graph.shapes(input_shape)[self.graph.stages[stage.inputs[0]].node]
            return stage.rule.affine(stage.module, like(self.graph.net).new_empty(0, *shape))
        return self.measured(input_shape)[stage.index]

    def measured(self, input_shape: Shape) -> dict[int, Affine]:
        """Those that need data, by stage; measured again where the weights have changed."""
        tensors = [*self.graph.net.parameters(), *self.graph.net.buffers()]
        # By their sums: versions of tensors miss what is done to .data, and forward passes cost far more.
        sums = tuple(float(tensor.detach().double().sum()) for tensor in tensors)
        key = (input_shape, id(self.reference), like(self.graph.net).dtype, sums)
        if self._found is None or key != self._key:
            self._found, self._key = self._measure(input_shape), key
        return self._found

    @torch.no_grad()
    def _measure(self, input_shape: Shape) -> dict[int, Affine]:
        wanted = {stage.index: stage for stage in self.graph.stages if needs_data(stage)}
        sources = {index: self.graph.stages[_source(stage)].node for index, stage in wanted.items()}
        found: dict[int, Affine] = {}

        def see(node: fx.Node, value: Any) -> None:
            for index, source in sources.items():
                if source is node:
                    found[index] = _affine(wanted[index], value)

        self.graph.run(self._inputs(input_shape), set(sources.values()), see)
        return found

    def _inputs(self, input_shape: Shape) -> Tensor:
        if self.reference is not None and self.reference.shape[1:] == input_shape:
            return self.reference.to(like(self.graph.net))
        noise = torch.rand(REFERENCES, *input_shape, generator=torch.Generator().manual_seed(0))
        return noise.to(like(self.graph.net))


def needs_data(stage: Stage) -> bool:
    """Whether weights alone do not say what this stage does to a typical input."""
    from_data = isinstance(stage.rule, Norm) and stage.rule.from_data(stage.module)
    return from_data or isinstance(stage.module, Gate)


def _source(stage: Stage) -> int:
    return stage.inputs[0] if stage.gate is None else stage.gate


def _affine(stage: Stage, value: Tensor) -> Affine:
    if isinstance(stage.rule, Norm):
        return stage.rule.affine(stage.module, value)
    gate = value.mean(0)
    return gate, torch.zeros_like(gate)
