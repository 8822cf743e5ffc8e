"""Sparse hidden vectors h ≥ 0 to run theorems on: a uniform support of k out of m, scaled to ‖h‖ = 1."""

from __future__ import annotations

import torch
from torch import Tensor

from ..._core import BadInput
from ._conditions import check_layer

LAWS = ("half-normal", "uniform", "equal")  # |g|; uniform on [½, 3/2]; all the same


def draw_hidden(count: int, m: int, k: int, law: str, generator: torch.Generator) -> Tensor:
    """`count` rows of m entries, k of them positive, in float64 with ‖h‖ = 1 (claims are free of scale)."""
    check_layer({"m": m, "k": k})
    values = {
        "half-normal": lambda: torch.randn(count, k, generator=generator, dtype=torch.float64).abs(),
        "uniform": lambda: 0.5 + torch.rand(count, k, generator=generator, dtype=torch.float64),
        "equal": lambda: torch.ones(count, k, dtype=torch.float64),
    }
    if law not in values:
        raise BadInput(f"a law of h out of {', '.join(LAWS)}", got=repr(law), do="pass one of these")
    h = torch.zeros(count, m, dtype=torch.float64)
    supports = torch.rand(count, m, generator=generator).argsort(1)[:, :k]
    h.scatter_(1, supports, values[law]())
    return torch.nn.functional.normalize(h, dim=1)
