"""A trained locally connected net as a student: its region graph, its weights an edge, what its pixels show.

Not for its events: see cluster. The net is taken as it predicts: batch norm, with its running averages, is
part of the weights then.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..nets import LocalLevel, LocalNet, Norm
from ._cluster import shown
from ._regions import Edge, RegionGraph
from ._student import Student


def net_graph(net: LocalNet) -> RegionGraph:
    """Regions "level.row.column": 0 the patches of pixels, 1 the windows over them, up to one for the scores.

    A patch is a region of its own below each window of the first level, so that the first weights are those
    of an edge too.
    """
    width = net.input_shape[2]
    children: dict[str, tuple[str, ...]] = {}
    positions: dict[str, tuple[int, ...]] = {}
    for level, stage in enumerate(net.levels, start=1):
        at = stage.windows
        for row in range(at.rows):
            for column in range(at.columns):
                name = f"{level}.{row}.{column}"
                below = at.covered(row, column)
                if level == 1:
                    positions[f"0.{row}.{column}"] = tuple(y * width + x for y, x in below)
                    children[f"0.{row}.{column}"] = ()
                    children[name] = (f"0.{row}.{column}",)
                else:
                    children[name] = tuple(f"{level - 1}.{y}.{x}" for y, x in below)
    last = net.levels[-1].windows
    children[f"{len(net.levels) + 1}.0.0"] = tuple(
        f"{len(net.levels)}.{row}.{column}" for row in range(last.rows) for column in range(last.columns)
    )
    return RegionGraph.of(children, positions)


def patches(images: Tensor, graph: RegionGraph) -> dict[str, Tensor]:
    """What the lowest regions show: their pixels, inputs × numbers in float64."""
    return {name: shown(images, graph, name) for name in graph.lowest}


def net_student(net: LocalNet, graph: RegionGraph) -> Student:
    """The net in evaluation mode with softmax and cross entropy, float64, one W an edge.

    Batch norm before a ReLU goes into the weights and the bias below it, after it into those above.
    """
    weights: dict[Edge, Tensor] = {}
    biases: dict[str, Tensor] = {}
    later: dict[str, tuple[Tensor, Tensor]] = {}  # c₁ and c₀ of batch norm after the ReLU, by region
    for name in graph.order:
        if not graph.children[name]:
            continue
        parts, bias, norm, order = _own(net, graph, name)
        for child, part in parts.items():
            if child in later:
                scale, shift = later[child]
                bias, part = bias + shift @ part, scale.unsqueeze(1) * part
            weights[name, child] = part * norm[0] if order == "before" else part
        biases[name] = bias * norm[0] + norm[1] if order == "before" else bias
        if order == "after":
            later[name] = norm
    classes = net.output.out_features
    return Student(graph, weights, torch.eye(classes, dtype=torch.float64), biases, loss="softmax")


def _own(
    net: LocalNet, graph: RegionGraph, name: str
) -> tuple[dict[str, Tensor], Tensor, tuple[Tensor, Tensor], Norm | None]:
    """Of a region: its weights (child × own nodes), bias, batch norm as (c₁, c₀), and where that stands."""
    level, row, column = map(int, name.split("."))
    bias: Tensor | None
    if name == graph.top:
        # the scores read nodes × windows
        kernel = net.output.weight.unflatten(1, (net.levels[-1].nodes, -1))
        bias, norm, order = net.output.bias, None, None
    else:
        stage = net.levels[level - 1]
        copy = 0 if stage.shared else row * stage.windows.columns + column
        kernel = stage.weight[copy].flatten(2)  # nodes × channels × places
        if level == 1:  # the one child shows the pixels of all channels
            kernel = kernel.flatten(1).unsqueeze(2)
        bias = None if stage.bias is None else stage.bias[copy]
        norm, order = _affine(stage, copy), stage.order
    parts = dict(zip(graph.children[name], kernel.detach().double().permute(2, 1, 0), strict=True))
    one = torch.ones(len(kernel), dtype=torch.float64)
    return (
        parts,
        torch.zeros_like(one) if bias is None else bias.detach().double(),
        (one, torch.zeros_like(one)) if norm is None else norm,
        order,
    )


def _affine(stage: LocalLevel, copy: int) -> tuple[Tensor, Tensor] | None:
    """Batch norm of one window as c₁f + c₀, for the running averages."""
    if stage.norm is None:
        return None
    mean, variance = stage.norm.running_mean, stage.norm.running_var
    assert mean is not None
    assert variance is not None
    scale = stage.norm.weight.detach().double() / (variance.double() + stage.norm.eps).sqrt()
    shift = stage.norm.bias.detach().double() - mean.double() * scale
    own = slice(copy * stage.nodes, (copy + 1) * stage.nodes)
    return scale[own], shift[own]


def shared_edges(net: LocalNet, graph: RegionGraph) -> dict[Edge, str]:
    """Which edges have one W: those of the same name here. Their ΔW add up."""
    found = {}
    for parent, child in graph.edges:
        level, row, column = map(int, parent.split("."))
        place = graph.children[parent].index(child)
        shared = parent != graph.top and net.levels[level - 1].shared
        found[parent, child] = f"{level}.{place}" if shared else f"{level}.{row}.{column}.{place}"
    return found
