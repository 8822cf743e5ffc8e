"""Ways to choose the rank of each layer: ours, and what people do. Ranks and matrices, no nets.

A method has one knob, which makes all layers smaller or larger together; `None` is its usual setting.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from obverse.weights import Parts, decompose
from obverse.weights._ablation.treatments import Directions, directions_of
from obverse.weights._compression.thin import pays


@dataclass(frozen=True, eq=False)
class Layer:
    """A matrix, taken apart, with its plain singular values and those without the profile."""

    matrix: Tensor
    parts: Parts
    scaled: Directions
    plain: Directions

    @property
    def shape(self) -> tuple[int, int]:
        rows, columns = self.matrix.shape
        return rows, columns


def layer_of(matrix: Tensor) -> Layer:
    parts = decompose(matrix, generator=torch.Generator().manual_seed(0))
    left, values, right = torch.linalg.svd(matrix, full_matrices=False)
    return Layer(matrix, parts, directions_of(parts), Directions(left, right.T, values))


def energy_rank(layer: Layer, share: float) -> int:
    """The fewest directions that hold this share of the energy."""
    energy = layer.plain.values.double().square().cumsum(0)
    return int((energy < share * energy[-1]).sum()) + 1


def gavish_donoho_rank(layer: Layer, factor: float) -> int:
    """Singular values above ω(β) × their median, times a factor.

    ω is the cubic that Gavish and Donoho give for unknown noise (2014, eq. 5), to 0.02.
    """
    beta = min(layer.shape) / max(layer.shape)
    omega = 0.56 * beta**3 - 0.95 * beta**2 + 1.82 * beta + 1.43
    return int((layer.plain.values > factor * omega * layer.plain.values.median()).sum())


def signal_rank(layer: Layer, factor: float) -> int:
    """A multiple of the rank of the signal."""
    return min(math.ceil(factor * layer.parts.rank), min(layer.shape))


def one_rank(layer: Layer, rank: float) -> int:
    """The same for all layers."""
    return min(math.floor(rank), min(layer.shape))


@dataclass(frozen=True)
class Method:
    name: str
    rank: Callable[[Layer, float], int]
    usual: float | None
    low: float  # of the knob: the fewest and the most directions
    high: float
    curve: tuple[float, ...]
    scaled: bool = False  # directions without the profile


METHODS = (
    Method("signal’s rank", signal_rank, 1.0, 0.0, 8.0, (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0), scaled=True),
    Method("90 % of the energy", energy_rank, 0.9, 0.0, 1.0, (0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)),
    Method("one rank for all", one_rank, None, 0.0, 2048.0, (2, 4, 8, 12, 16, 24, 32, 48, 64)),
    Method("Gavish–Donoho", gavish_donoho_rank, 1.0, 100.0, 0.01, (8.0, 4.0, 2.0, 1.0, 0.7, 0.5)),
)


def weights_left(ranks: Sequence[int], layers: Sequence[Layer]) -> int:
    """Weights of these layers when those that pay are two thin ones."""
    return sum(
        rank * sum(layer.shape) if pays(rank, *layer.shape) else math.prod(layer.shape)
        for rank, layer in zip(ranks, layers, strict=True)
    )


def matrices(method: Method, knob: float, layers: Sequence[Layer]) -> tuple[list[int], list[Tensor]]:
    """Ranks, and each layer's matrix: of low rank where that pays, and its own where it does not."""
    ranks = [method.rank(layer, knob) for layer in layers]
    made = []
    for rank, layer in zip(ranks, layers, strict=True):
        directions = layer.scaled if method.scaled else layer.plain
        made.append(directions.keep(rank) if pays(rank, *layer.shape) else layer.matrix)
    return ranks, made


def fitted_knob(method: Method, layers: Sequence[Layer], budget: int) -> float:
    """The most directions within a budget of weights, by bisection."""
    few, many = method.low, method.high
    for _ in range(60):
        middle = (few + many) / 2
        ranks = [max(1, method.rank(layer, middle)) for layer in layers]
        # beyond paying a layer stays whole, which would cost more: what counts is the rank itself
        cost = sum(
            min(rank * sum(layer.shape), math.prod(layer.shape))
            for rank, layer in zip(ranks, layers, strict=True)
        )
        few, many = (middle, many) if cost <= budget else (few, middle)
    return few


def pruned(layers: Sequence[Layer], keep: int) -> list[Tensor]:
    """The `keep` largest entries of all layers together; the others become 0."""
    sizes = torch.cat([layer.matrix.abs().flatten() for layer in layers])
    if keep >= len(sizes):
        return [layer.matrix for layer in layers]
    threshold = float(sizes.kthvalue(len(sizes) - keep).values)
    return [layer.matrix * (layer.matrix.abs() > threshold) for layer in layers]
