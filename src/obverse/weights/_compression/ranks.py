"""Factors of a rank that is given, in place of that of the signal."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from ..._core import BadInput
from .._decomposition.parts import Parts


def factors_of_rank(parts: Parts, rank: int) -> tuple[Tensor, Tensor]:
    """left @ right has so many of the largest singular values that the matrix has without its profile."""
    dtype = torch.promote_types(parts.matrix.dtype, torch.float32)
    rows, columns = parts.row_scales.double()[:, None], parts.column_scales.double()
    scaled = parts.matrix.double() / rows.where(rows > 0, 1) / columns.where(columns > 0, 1)
    left, values, right = torch.linalg.svd(scaled, full_matrices=False)
    roots = values[:rank].sqrt()
    return (left[:, :rank] * rows * roots).to(dtype), (roots[:, None] * right[:rank] * columns).to(dtype)


def check_ranks(ranks: Mapping[str, int], *, alone: bool) -> None:
    if not alone:
        raise BadInput(
            "ranks alone", got="ranks with layers, rule or shrink", do="leave one out: ranks name the layers"
        )
    wrong = [(name, rank) for name, rank in ranks.items() if type(rank) is not int or rank < 1]
    if wrong:
        name, rank = wrong[0]
        raise BadInput(f"a whole number of at least 1 as the rank of {name}", got=repr(rank), do="correct it")
