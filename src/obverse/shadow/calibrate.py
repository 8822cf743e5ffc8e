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
    offsets replaced by one number −`threshold` (None for a layer without ReLU), the best the theory's
    form can do is `threshold_error`, at the scale `threshold_scale`.
    """

    layer: str
    scale: float
    error: float
    theory_scale: float
    theory_error: float
    threshold: float | None
    threshold_scale: float | None
    threshold_error: float | None


@dataclass(frozen=True)
class Calibration:
    """The result of Shadow.calibrate, one entry a layer."""

    layers: tuple[LayerCalibration, ...]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        form = "{:<10} {:>9} {:>7}   {:>9} {:>7}   {:>9} {:>9} {:>7}"
        lines = [
            form.format("", "own", "", "theory's", "", "uniform", "", ""),
            form.format("layer", "scale", "error", "scale", "error", "threshold", "scale", "error"),
        ]
        for one in self.layers:
            numbers = (one.scale, one.error, one.theory_scale, one.theory_error)
            uniform = (one.threshold, one.threshold_scale, one.threshold_error)
            lines.append(form.format(one.layer, *map(_short, (*numbers, *uniform))))
        return "\n".join(lines)


def _short(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


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
    uniform: tuple[float | None, float | None, float | None] = (None, None, None)
    if layer.activation is not None:
        uniform = _best_uniform(response, h, activate, theory)
    return LayerCalibration(layer.name, scale, error_at(scale), theory, error_at(theory), *uniform)


def _best_uniform(
    response: Tensor, h: Tensor, activate: Callable[[Tensor], Tensor], theory: float
) -> tuple[float, float, float]:
    """(threshold, scale, error) of the best ĥ = r(α·response − θ) over both α and θ.

    The ReLU is homogeneous: ĥ = α·r(response − θ/α). For each θ/α the best α is a least-squares fit, so
    one search is left.
    """
    peak = float(response.abs().max())

    def fit(cut: float) -> tuple[float, float]:
        shape = activate(response - cut)
        size = float(shape.square().sum())
        scale = float((shape * h).sum()) / size if size > 0 else 0.0
        scale = scale if scale > 0 else theory
        return scale, relative_error(scale * shape, h)

    cut = _minimize(lambda value: fit(value)[1], -peak, peak, points=161)
    scale, error = fit(cut)
    return scale * cut, scale, error


def _minimize(function: Callable[[float], float], low: float, high: float, points: int = 41) -> float:
    """Minimum of a function that need not be convex: a grid, then Brent's method around the best point."""
    from scipy.optimize import minimize_scalar

    step = (high - low) / (points - 1)
    grid = [low + i * step for i in range(points)]
    best = min(grid, key=function)
    bounds = (max(low, best - step), min(high, best + step))
    found = float(minimize_scalar(function, bounds=bounds, method="bounded").x)
    return found if function(found) <= function(best) else best
