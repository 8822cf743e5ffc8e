"""Matrices whose parts are known: noise of many kinds, with or without a planted signal and a profile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

Draw = Callable[[int, int, torch.Generator], Tensor]


def normal(rows: int, columns: int, generator: torch.Generator) -> Tensor:
    return torch.randn(rows, columns, generator=generator)


def uniform(rows: int, columns: int, generator: torch.Generator) -> Tensor:
    return 2 * torch.rand(rows, columns, generator=generator) - 1


def laplace(rows: int, columns: int, generator: torch.Generator) -> Tensor:
    return signs(rows, columns, generator) * torch.empty(rows, columns).exponential_(generator=generator)


def signs(rows: int, columns: int, generator: torch.Generator) -> Tensor:
    return 2.0 * torch.randint(0, 2, (rows, columns), generator=generator) - 1


def student(freedom: int) -> Draw:
    def draw(rows: int, columns: int, generator: torch.Generator) -> Tensor:
        squares = torch.zeros(rows, columns)
        for _ in range(freedom):
            squares += normal(rows, columns, generator).square()
        return normal(rows, columns, generator) / (squares / freedom).sqrt()

    return draw


def pruned(share: float) -> Draw:
    def draw(rows: int, columns: int, generator: torch.Generator) -> Tensor:
        return normal(rows, columns, generator) * (torch.rand(rows, columns, generator=generator) >= share)

    return draw


NOISE: dict[str, Draw] = {
    "normal": normal,
    "uniform": uniform,
    "Laplace": laplace,
    "±1": signs,
    "t5": student(5),
    "bf16": normal,
    "int8": normal,
    "50 % pruned": pruned(0.5),
    "90 % pruned": pruned(0.9),
    "t3": student(3),
}


def rounded(matrix: Tensor, kind: str) -> Tensor:
    """As stored: bf16, or int8 with a step per row, as is usual; other kinds are not rounded."""
    if kind == "bf16":
        return matrix.bfloat16().float()
    if kind == "int8":
        steps = matrix.abs().amax(1, keepdim=True) / 127
        return (matrix / steps).round() * steps
    return matrix


def noise(kind: str, rows: int, columns: int, spread: float, generator: torch.Generator) -> Tensor:
    """Independent entries, times log-normal scales of rows and columns with `spread`, then rounded."""
    return rounded(NOISE[kind](rows, columns, generator) * scales(rows, columns, spread, generator), kind)


def scales(rows: int, columns: int, spread: float, generator: torch.Generator) -> Tensor:
    of_rows = torch.randn(rows, 1, generator=generator)
    of_columns = torch.randn(1, columns, generator=generator)
    return (spread * (of_rows + of_columns)).exp()


@dataclass(frozen=True)
class Planted:
    """profile × (signal + noise), the noise normal of scale 1."""

    matrix: Tensor
    signal: Tensor  # without the profile
    left: Tensor
    right: Tensor
    strengths: Tensor
    profile: Tensor


def planted(
    rows: int, columns: int, rank: int, times: float, spread: float, generator: torch.Generator
) -> Planted:
    """Equal strengths at `times` the threshold below which noise hides them, in random directions."""
    left = torch.linalg.qr(normal(rows, rank, generator)).Q
    right = torch.linalg.qr(normal(columns, rank, generator)).Q
    strengths = torch.full((rank,), times * (rows * columns) ** 0.25)
    signal = (left * strengths) @ right.T
    profile = scales(rows, columns, spread, generator)
    matrix = profile * (signal + normal(rows, columns, generator))
    return Planted(matrix, signal, left, right, strengths, profile)
