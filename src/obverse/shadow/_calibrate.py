"""The scale and threshold of one layer, chosen on data. Not for closed forms: see recovery."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from math import exp, log
from typing import Any

import torch
from torch import Tensor

from .._core import NONE, Result
from ._fitted import FitStep, fits_table
from ._generate import Generation
from ._graph import Layer, evaluation
from ._recovery import relative_error
from ._reversal import Rule


@dataclass(frozen=True)
class LayerCalibration(Result):
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
class Calibration(Result):
    """The result of Shadow.calibrate: one entry a layer with weights, and what is done at the input.

    `signed`: inputs may be negative, and nothing is cut off; `floor`: they have a least value, one a channel;
    neither: a ReLU.

    Of a fitted reverse there are no scales but `fits`, from the top down, `adjoint`, the steps without a
    fitted rule, which go by their adjoint, and how many `inputs` it was fitted on.
    """

    layers: tuple[LayerCalibration, ...]
    signed: bool = False
    floor: tuple[float, ...] | None = None
    fits: tuple[FitStep, ...] = ()
    adjoint: tuple[str, ...] = ()
    inputs: int | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        if self.inputs is not None:
            return fits_table(self.fits, self.adjoint, self.inputs)
        width = max(10, *(len(one.layer) for one in self.layers))
        form = f"{{:<{width}}} {{:>9}} {{:>7}}   {{:>9}} {{:>7}}   {{:>9}} {{:>9}} {{:>7}}"
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
    return NONE if value is None else f"{value:.3g}"


ENTRIES = 2**18  # a search looks at so many entries of h at most; what it finds is judged on all of them


@torch.no_grad()
def calibrate_layer(layer: Layer, h: Tensor, generation: Generation) -> LayerCalibration:
    """The scale at which r(W x̃ + b) is closest to h for x̃ = r(αWh), and the best uniform threshold."""
    with evaluation(generation.graph.net):
        return _calibrate_layer(layer, h, generation)


def _calibrate_layer(layer: Layer, h: Tensor, generation: Generation) -> LayerCalibration:
    stage = layer.stage
    assert isinstance(stage.rule, Rule)
    gain = generation.gain(layer)
    unscaled = stage.rule.reverse(stage.module, h if gain is None else h * gain, generation.reads(layer))
    unscaled = generation.rectify(stage.inputs[0], unscaled)
    offset = generation.affine(layer, torch.zeros_like(unscaled[:1]))
    response = generation.affine(layer, unscaled) - offset  # Wx̃ without bias, linear in the scale

    def activate(z: Tensor) -> Tensor:
        return z if layer.activation is None else layer.activation.module(z)

    some = _entries(h.numel(), h.device)
    few = [part.expand_as(h).flatten()[some] for part in (response, offset, h)]

    def error_at(scale: float, response: Tensor, offset: Tensor, h: Tensor) -> float:
        return relative_error(activate(scale * response + offset), h)

    theory = generation.theory_scale(layer)
    if _needs_channels(layer):
        few = [response, offset, h]
    middle = log(theory) if theory > 0 else 0.0  # 0: weights too large for their squares
    scale = exp(_minimize(lambda a: error_at(exp(a), *few), middle - log(100), middle + log(100)))
    uniform: tuple[float | None, float | None, float | None] = (None, None, None)
    if layer.activation is not None:
        threshold, at, _ = _best_uniform(few[0], few[2], activate, theory)
        uniform = (threshold, at, relative_error(activate(at * response - threshold), h))
    whole = (response, offset, h)
    return LayerCalibration(
        layer.name, scale, error_at(scale, *whole), theory, error_at(theory, *whole), *uniform
    )


def _entries(count: int, device: torch.device) -> Tensor | slice:
    """Which entries a search looks at: all, or a fixed draw of them."""
    if count <= ENTRIES:
        return slice(None)
    generator = torch.Generator().manual_seed(0)
    return torch.randint(count, (ENTRIES,), generator=generator).to(device)


def _needs_channels(layer: Layer) -> bool:
    """Whether an activation treats entries differently, so that they cannot be picked out."""
    return layer.activation is not None and any(p.numel() > 1 for p in layer.activation.module.parameters())


def input_floor(x: Tensor) -> Tensor | None:
    """The least value of each channel of normalised images, None where that is no floor.

    A floor is a value that comes up again and again, as black does; the least of real-valued data comes up
    once. One entry in a thousand has to be there.
    """
    if x.dim() < 3:
        return None
    channels = x.transpose(0, 1).flatten(1)
    least = channels.amin(1)
    share = (channels == least[:, None]).double().mean(1)
    return least.double() if bool((share >= 1e-3).all()) else None


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


def channel_means(x: Tensor) -> Tensor:
    """The mean of each channel of images, of everything where there are none."""
    return x.mean() if x.dim() < 3 else x.transpose(0, 1).flatten(1).mean(1)


def _minimize(
    function: Callable[[float], float], low: float, high: float, points: int = 41, tolerance: float = 1e-5
) -> float:
    """Minimum of a function that need not be convex: a grid, then Brent's method around the best point."""
    from scipy.optimize import minimize_scalar  # here: scipy takes a quarter second to import

    step = (high - low) / (points - 1)
    grid = [low + i * step for i in range(points)]
    best = min(grid, key=function)
    bounds = (max(low, best - step), min(high, best + step))
    options = {"xatol": tolerance}
    found = float(minimize_scalar(function, bounds=bounds, method="bounded", options=options).x)
    return found if function(found) <= function(best) else best
