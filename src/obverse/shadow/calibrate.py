"""The scale and threshold of one layer, chosen on data. Not for closed forms: see recovery."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from math import exp, log
from typing import Any

import torch
from torch import Tensor

from .recovery import relative_error
from .reversal import theory_scale
from .trace import Layer


@dataclass(frozen=True)
class LayerCalibration:
    """What was found for one layer; errors are Σ‖ĥ − h‖² / Σ‖h‖² over the data.

    `scale` with the net's own offsets gives `error`; the theory's scale gives `theory_error`. With the
    offsets replaced by one number −`threshold` (None for a layer without ReLU), at the same scale, the
    error is `threshold_error`.
    """

    layer: str
    scale: float
    error: float
    theory_scale: float
    theory_error: float
    threshold: float | None
    threshold_error: float | None


@dataclass(frozen=True)
class Calibration:
    """The result of Shadow.calibrate, one entry a layer."""

    layers: tuple[LayerCalibration, ...]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        lines = ["layer     scale (theory)        error (theory)    uniform threshold"]
        for one in self.layers:
            uniform = (
                "—" if one.threshold is None else f"{one.threshold:.3g}, error {one.threshold_error:.3f}"
            )
            lines.append(
                f"{one.layer:<8} {one.scale:8.3g} ({one.theory_scale:.3g})"
                f"     {one.error:8.3f} ({one.theory_error:.3f})   {uniform}"
            )
        return "\n".join(lines)


@torch.no_grad()
def calibrate_layer(layer: Layer, h: Tensor, *, relu_below: bool) -> LayerCalibration:
    """The scale at which r(W x̃ + b) is closest to h for x̃ = r(αWh), and the best uniform threshold."""
    module, rule = layer.map.module, layer.map.rule
    assert rule.energy is not None
    unscaled = rule.reverse(module, h, None)
    unscaled = unscaled.relu() if relu_below else unscaled
    offset = layer.map.infer(torch.zeros_like(unscaled[:1]))
    response = layer.map.infer(unscaled) - offset  # Wx̃ without bias, linear in the scale

    def activate(z: Tensor) -> Tensor:
        return z if layer.activation is None else layer.activation.infer(z)

    def error_at(scale: float) -> float:
        return relative_error(activate(scale * response + offset), h)

    theory = float(theory_scale(rule.energy(module)))
    scale = exp(_minimize(lambda a: error_at(exp(a)), log(theory / 100), log(theory * 100)))
    threshold = threshold_error = None
    if layer.activation is not None:

        def error_with(theta: float) -> float:
            return relative_error(activate(scale * response - theta), h)

        top = float((scale * response).max().clamp(min=1e-12))
        threshold = _minimize(error_with, 0.0, top)
        threshold_error = error_with(threshold)
    return LayerCalibration(
        layer.name, scale, error_at(scale), theory, error_at(theory), threshold, threshold_error
    )


def _minimize(function: Callable[[float], float], low: float, high: float, points: int = 41) -> float:
    """Minimum of a function that need not be convex: a grid, then Brent's method around the best point."""
    from scipy.optimize import minimize_scalar

    step = (high - low) / (points - 1)
    grid = [low + i * step for i in range(points)]
    best = min(grid, key=function)
    bounds = (max(low, best - step), min(high, best + step))
    found = float(minimize_scalar(function, bounds=bounds, method="bounded").x)
    return found if function(found) <= function(best) else best
