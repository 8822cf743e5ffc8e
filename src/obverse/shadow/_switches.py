"""Where the maxima of max pooling stood in x: borrowed for pictures; the shadow is then no function of h."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, fx

from ._graph import Graph, Layer, Stage
from ._pooling import ADAPTIVE_MAX_POOLS, MAX_POOLS


@torch.no_grad()
def infer_with_switches(graph: Graph, x: Tensor, top: Layer) -> tuple[Tensor, dict[int, Tensor]]:
    """h of a layer, and the positions of the maxima of each max pooling below it, by stage."""
    pools = [stage for stage in graph.stages if isinstance(stage.module, (*MAX_POOLS, *ADAPTIVE_MAX_POOLS))]
    readers: dict[fx.Node, list[Stage]] = {}
    for pool in pools:
        readers.setdefault(graph.stages[pool.inputs[0]].node, []).append(pool)
    positions: dict[int, Tensor] = {}
    h: list[Tensor] = []

    def see(node: fx.Node, value: Any) -> None:
        for pool in readers.get(node, []):
            positions[pool.index] = _positions(pool.module, value)
        if node is top.output.node:
            h.append(value)

    graph.run(x, {top.output.node}, see)
    return h[0], positions


def _positions(pool: Any, x: Tensor) -> Tensor:
    before, pool.return_indices = pool.return_indices, True
    try:
        _, positions = pool(x)
    finally:
        pool.return_indices = before
    result: Tensor = positions
    return result
