"""Factors inside an event: how far activations, gradients and weights are from belonging to one factor each.

An event is a list of factors, z = [z[1], …, z[n]], and node j stands for z[j] (Definitions 3–5). Every test
gives a number, the distance to the nearest matrix that has the structure, as a share of the matrix's size.
Algebra alone: there are no inputs here. Not for vertices: see structure.

Factors may have any number of values, `sizes`; the paper's have two. Rows are in the order of Kronecker
products: the last factor varies fastest.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import chain
from math import prod

import torch
from torch import Tensor

from .._core import BadInput
from ._structure import check_matrix, check_tolerance

TOLERANCE = 1e-12  # of a gap: rounding in float64, with room


def kron(parts: Sequence[Tensor]) -> Tensor:
    """The Kronecker product of all, in order."""
    if not parts:
        raise BadInput("something to multiply", got="nothing", do="give at least one tensor")
    return reduce(torch.kron, parts)


def activation_of(factors: Sequence[Tensor]) -> Tensor:
    """F with columns 1⊗…⊗f[j]⊗…⊗1 (Definition 3), from one vector for each factor.

    >>> activation_of([torch.tensor([0.0, 1.0]), torch.tensor([2.0, 3.0])]).mT.tolist()
    [[0.0, 0.0, 1.0, 1.0], [2.0, 3.0, 2.0, 3.0]]
    """
    return gradient_of(factors, [torch.ones_like(factor) for factor in factors])


def gradient_of(factors: Sequence[Tensor], marginals: Sequence[Tensor]) -> Tensor:
    """G̃ with columns p[1]⊗…⊗g̃[j]⊗…⊗p[n] (Definition 4), from g̃[j] and p[j] of each factor."""
    if not factors or [one.shape for one in factors] != [one.shape for one in marginals]:
        raise BadInput(
            "a vector for each factor, as long as its p",
            got=f"{len(factors)} and {len(marginals)}",
            do="match them",
        )
    return torch.stack(
        [kron([*marginals[:j], factor, *marginals[j + 1 :]]) for j, factor in enumerate(factors)], 1
    )


def nearest_activation(activation: Tensor, sizes: Sequence[int]) -> Tensor:
    """The disentangled matrix that is nearest: each f[j] is column j averaged over the other factors."""
    if any(isinstance(size, bool) or not isinstance(size, int) or size < 1 for size in sizes):
        raise BadInput(
            "a number of values ≥ 1 for each factor", got=list(sizes), do="use 2 for binary factors"
        )
    return nearest_gradient(activation, [torch.ones(size, dtype=torch.float64) for size in sizes])


def nearest_gradient(gradient: Tensor, marginals: Sequence[Tensor]) -> Tensor:
    """The disentangled gradient that is nearest, with p[1] to p[n] given: least squares in each g̃[j]."""
    sizes = _sizes(marginals)
    _check_factors(gradient, sizes)
    found = []
    for j, column in enumerate(gradient.mT):
        left = column.reshape(sizes)
        for i in reversed([i for i in range(len(sizes)) if i != j]):
            weight = marginals[i] / marginals[i].square().sum()
            left = torch.tensordot(left, weight, dims=([i], [0]))
        found.append(left)
    return gradient_of(found, marginals)


def activation_gap(activation: Tensor, sizes: Sequence[int]) -> float:
    """‖F − nearest disentangled F‖/‖F‖: 0 if each node j depends on factor j alone, at most 1."""
    return _apart(activation, nearest_activation(activation, sizes))


def gradient_gap(gradient: Tensor, marginals: Sequence[Tensor]) -> float:
    """‖G̃ − nearest disentangled G̃‖/‖G̃‖, from 0 to 1."""
    return _apart(gradient, nearest_gradient(gradient, marginals))


def is_disentangled(activation: Tensor, sizes: Sequence[int], tolerance: float = TOLERANCE) -> bool:
    """Definition 3, for activations. For gradients, compare `gradient_gap` with a tolerance."""
    check_tolerance(tolerance)
    return activation_gap(activation, sizes) <= tolerance


def off_block(weights: Tensor, sets: Sequence[Sequence[int]]) -> float:
    """What of W_βα (child nodes × parent nodes) lies outside the blocks [S_j, j], as a share of ‖W‖."""
    check_matrix("weights", weights)
    if len(sets) != weights.shape[1]:
        raise BadInput(
            f"one set for each of {weights.shape[1]} parent nodes", got=len(sets), do="use [] for none"
        )
    _check_partition(sets, weights.shape[0])
    inside = torch.zeros_like(weights)
    for j, own in enumerate(sets):
        inside[list(own), j] = weights[list(own), j]
    return _apart(weights, inside)


def is_separable(weights: Tensor, sets: Sequence[Sequence[int]], tolerance: float = TOLERANCE) -> bool:
    """Definition 5: W = diag(W[S_1, 1], …, W[S_n, n])."""
    check_tolerance(tolerance)
    return off_block(weights, sets) <= tolerance


def product_conditional(
    parts: Sequence[Tensor], sets: Sequence[Sequence[int]], sizes: Sequence[int]
) -> Tensor:
    """P_αβ = ⊗_i P(z_β[S_i] | z_α[i]), its columns in the order of β's own factors, whatever the S_i are.

    `sizes` are those of β's factors; the S_i take each of them once. An empty S_i has a column of ones.
    """
    _check_partition(sets, len(sizes))
    if len(parts) != len(sets):
        raise BadInput("one set for each part of P", got=f"{len(parts)} and {len(sets)}", do="match them")
    for i, (part, own) in enumerate(zip(parts, sets, strict=True)):
        check_matrix(f"part {i} of P", part)
        wide = prod(sizes[k] for k in own)
        if part.shape[1] != wide:
            raise BadInput(
                f"part {i} of P with {wide} columns, one for each joint value of the factors {list(own)}",
                got=part.shape[1],
                do="correct it",
            )
    order = list(chain.from_iterable(sets))
    whole = kron(parts)
    spread = whole.reshape(len(whole), *(sizes[k] for k in order))
    back = [1 + order.index(k) for k in range(len(sizes))]
    return spread.permute(0, *back).reshape(len(whole), -1)


def _apart(matrix: Tensor, nearest: Tensor) -> float:
    size = float(torch.linalg.norm(matrix))
    return float(torch.linalg.norm(matrix - nearest)) / size if size else 0.0


def _sizes(marginals: Sequence[Tensor]) -> list[int]:
    for j, one in enumerate(marginals):
        if not isinstance(one, Tensor) or one.ndim != 1 or one.dtype != torch.float64 or not len(one):
            raise BadInput(f"p[{j}] as a vector of float64", got=type(one).__name__, do="convert it")
        if not bool(one.isfinite().all()) or not bool(one.any()):
            raise BadInput(f"p[{j}] of finite numbers, not all 0", got=one.tolist()[:8], do="correct it")
    return [len(one) for one in marginals]


def _check_factors(matrix: Tensor, sizes: Sequence[int]) -> None:
    check_matrix("the matrix", matrix)
    if matrix.shape != (prod(sizes), len(sizes)):
        raise BadInput(
            f"a matrix of shape {prod(sizes)} × {len(sizes)} for factors of sizes {list(sizes)}",
            got=" × ".join(map(str, matrix.shape)),
            do="give one row an event and one column a factor",
        )


def _check_partition(sets: Sequence[Sequence[int]], count: int) -> None:
    if sorted(chain.from_iterable(sets)) != list(range(count)):
        raise BadInput(
            f"sets that take each of 0 to {count - 1} once",
            got=[list(own) for own in sets],
            do="correct them",
        )
