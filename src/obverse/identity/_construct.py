"""The weights of Theorem 3's residual net, each part a pure function. Not for choosing or checking them.

Points z are taken in descending norm, k a block. Unit i of a block is r(⟨z_i, h⟩ − t_i): its threshold lies
above ⟨z_i, z_j⟩ for every later point (Cauchy–Schwarz leaves room) and above ⟨z_i, q⟩ for every target q, as
these are short. So a block moves its k points onto their targets and leaves all others where they are.
"""

from __future__ import annotations

from collections.abc import Callable
from math import pi

import torch
from torch import Tensor

ENTRIES = 2**25  # inner products at a time: 256 MB
DRAWS = 32  # sets of targets to choose from
MANY = 1000  # classes from which on one set is drawn
SOME = 4096  # rows that the scale of a column is taken from
TINY = 1e-290  # a scale has an inverse


def robust_scaling(x: Tensor) -> tuple[Tensor, Tensor]:
    """(centre, scale) of each column in float64: its median, and half of what lies between 5 % and 95 %.

    So a few outliers do not squeeze the others together. Both are those of at most 4096 rows, as nothing
    depends on their being exact. Where 90 % are equal the scale is the standard deviation of all rows.
    """
    some = x[:: -(-len(x) // SOME)].double().sort(0).values
    last = len(some) - 1
    scale = some[last - last // 20] / 2 - some[last // 20] / 2
    flat = (scale == 0).nonzero().squeeze(1)
    if len(flat):
        scale[flat] = plain_scaling(x, flat)[1]
    return some[last // 2].clone(), scale.clamp(min=TINY)


def plain_scaling(x: Tensor, columns: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """(mean, standard deviation) of columns in float64, some at a time; 1 where nothing varies."""
    columns = torch.arange(x.shape[1]) if columns is None else columns
    means, deviations = [], []
    for some in columns.split(64):
        part = x[:, some].double()
        largest = part.abs().amax(0).clamp(min=TINY)
        part /= largest  # so that no square overflows
        mean = part.mean(0)
        deviation = (part - mean).square().mean(0).sqrt()
        means.append(mean * largest)
        deviations.append(torch.where(deviation > 1e-15, deviation * largest, 1.0).clamp(min=TINY))
    return torch.cat(means), torch.cat(deviations)


def random_projection(inputs: int, width: int, generator: torch.Generator | None = None) -> Tensor:
    """A_0 with entries N(0, 1/k), so that lengths are kept on average."""
    drawn: Tensor = torch.randn(width, inputs, generator=generator, dtype=torch.float64) / width**0.5
    return drawn


def away_from_zero(z: Tensor, distance: float, generator: torch.Generator, tries: int = 16) -> Tensor:
    """An offset of a given length after which the smallest norm is as large as in the best of some draws."""
    directions = torch.randn(tries, z.shape[1], generator=generator, dtype=z.dtype)
    offsets = distance * directions / directions.norm(dim=1, keepdim=True)
    smallest = torch.stack([(z + offset).norm(dim=1).min() for offset in offsets])
    best: Tensor = offsets[smallest.argmax()]
    return best


def targets(classes: int, width: int, radius: float, generator: torch.Generator) -> Tensor:
    """One point a class, at most `radius` from 0, apart from each other: on a line, a circle or a sphere."""
    if width == 1:
        return torch.linspace(-radius, radius, classes, dtype=torch.float64).unsqueeze(1)
    if width == 2:
        angles = torch.arange(classes, dtype=torch.float64) * (2 * pi / classes)
        return radius * torch.stack([angles.cos(), angles.sin()], 1)
    draws = DRAWS if classes <= MANY else 1
    drawn = torch.randn(draws, classes, width, generator=generator, dtype=torch.float64)
    sets: list[Tensor] = list(radius * drawn / drawn.norm(dim=2, keepdim=True))
    return sets[0] if draws == 1 else max(sets, key=lambda one: float(torch.nn.functional.pdist(one).min()))


def closest_later(z: Tensor, told: Callable[[int], None] | None = None) -> tuple[Tensor, Tensor]:
    """The largest ⟨z_i, z_j⟩ over the points j that come later, and that j; −∞ and i for the last one.

    `told` hears how many points are done.
    """
    n = len(z)
    value, index = torch.full((n,), -torch.inf, dtype=z.dtype), torch.arange(n)
    rows = max(1, min(n, ENTRIES // n))
    for start in range(0, n - 1, rows):
        products = z[start : start + rows] @ z[start:].T
        earlier = torch.ones(len(products), len(products), dtype=torch.bool).tril()
        products[:, : len(products)].masked_fill_(earlier, -torch.inf)
        value[start : start + rows], found = products.max(1)
        index[start : start + rows] = found + start
        if told:
            told(min(n, start + rows))
    index[-1] = n - 1
    return value, index


def largest_silent(z: Tensor, later: Tensor, radius: float) -> Tensor:
    """The largest ⟨z_i, h⟩ that unit i must not answer to: of later points, and of targets."""
    return torch.maximum(later, z.norm(dim=1) * radius)


def blocks(z: Tensor, goals: Tensor, threshold: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(U, s, V), stacked: rows of U are the points of a block, V = Δ M⁻¹ with M_ij = r(⟨z_i, z_j⟩ − t_i).

    M is triangular, as units are silent on later points. The last block is filled up with units of weight 0.
    """
    n, width = z.shape
    missing = -n % width
    inner = torch.cat([z, z.new_zeros(missing, width)]).view(-1, width, width)
    shift = -torch.cat([threshold, z.new_zeros(missing)]).view(-1, width)
    moves = torch.cat([goals - z, z.new_zeros(missing, width)]).view(-1, width, width)
    answers = (inner @ inner.mT + shift.unsqueeze(2)).relu()  # [block, unit, point]
    if missing:
        answers[-1].diagonal()[-missing:] = 1.0
    outer = torch.linalg.solve_triangular(answers, moves.mT, upper=False, left=False)
    return inner, shift, outer


def nearest_target(goals: Tensor) -> tuple[Tensor, Tensor]:
    """Weights and biases of scores that are largest for the nearest target: (⟨q_j, h⟩ − ½‖q_j‖²)/radius²."""
    squares = goals.square().sum(1)
    return goals / squares.max(), -squares / (2 * squares.max())
