"""How well a net inverts its own shadow: h → x̃ → ĥ, measured. Not for choosing scales: see calibrate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..errors import BadInput

if TYPE_CHECKING:
    from .shadow import Keep, Shadow


@torch.no_grad()
def relative_error(recovered: Tensor, h: Tensor) -> float:
    """Σ‖ĥ − h‖² / Σ‖h‖² over a batch (the left side of eq. 9 over ‖h‖²); 0/0 counts as 0."""
    size = float(h.square().sum())
    error = float((recovered - h).square().sum())
    return error / size if size > 0 else (0.0 if error == 0 else float("inf"))


@dataclass(frozen=True)
class Recovery:
    """Relative squared recovery error of each layer, Σ‖ĥ − h‖² / Σ‖h‖², over `samples` inputs."""

    errors: dict[str, float]
    samples: int

    def to_dict(self) -> dict[str, Any]:
        return {"errors": dict(self.errors), "samples": self.samples}

    def __str__(self) -> str:
        return ", ".join(f"{layer} {error:.3f}" for layer, error in self.errors.items())


@torch.no_grad()
def recovery(
    shadow: Shadow,
    x: Tensor,
    *,
    keep: Keep = 1.0,
    generator: torch.Generator | None = None,
    smooth: bool = False,
    match_norm: bool = False,
) -> Recovery:
    """Generate from each layer all the way down to the input, infer back up, compare."""
    if len(x) == 0:
        raise BadInput("inputs to recover", got="an empty batch", do="pass some test data")
    errors = {}
    for layer in shadow.layers:
        h = shadow.infer(x, layer)
        twin = shadow.from_hidden(x, h, layer, keep, generator, smooth=smooth, match_norm=match_norm)
        errors[layer] = relative_error(shadow.infer(twin, layer), h)
    return Recovery(errors, len(x))
