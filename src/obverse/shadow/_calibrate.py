"""The scale and threshold of one layer, chosen on data. Not for closed forms: see recovery."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from math import exp, inf, isnan, log
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


@dataclass(frozen=True)
class Level:
    """What the whole way down from a layer ends with: x̃ is `factor` times what comes down, plus the mean of
    each channel of the calibration data where `centred`. `theory`: the way itself takes the theory's scales,
    which weigh the paths of a residual net against each other better than the calibrated ones there."""

    factor: float = 1.0
    centred: bool = False
    theory: bool = False


LEAST_SPREAD = 0.01  # of that of the inputs: 2.6 of 256 grey levels, below which images look the same
GAIN = 0.01  # by which a level must beat one image for all inputs: the search itself is off by as much


@dataclass(frozen=True)
class WayDown:
    """All that the level of a layer is found from: what comes down from it, by the scales of `theory` or not,
    and h, which it should give back. `finish` is what the input ends with; `mean` one number a channel."""

    infer: Callable[[Tensor], Tensor]
    down: Tensor
    h: Tensor
    x: Tensor
    finish: Callable[[Tensor], Tensor]
    mean: Tensor
    theory: bool

    def error(self, level: Level) -> float:
        around = self.mean if level.centred else torch.zeros_like(self.mean)
        return relative_error(self.infer(self.finish(around + level.factor * self.down)), self.h)

    def constant_error(self, centred: bool) -> float:
        """Of one image for all inputs, which a factor close to 0 comes down to."""
        around = self.mean if centred else torch.zeros_like(self.mean)
        same = self.infer(self.finish((around + torch.zeros_like(self.down))[:1]))
        return relative_error(same.expand_as(self.h), self.h)

    def natural(self) -> float | None:
        """The factor at which shadows differ from each other as much as the inputs do; None for no answer."""
        wanted, have = spread(self.x), spread(self.down)
        factor = wanted / have if have > 0 else 0.0
        return factor if 0 < factor < inf else None


@torch.no_grad()
def calibrate_level(ways: Sequence[WayDown], uncalibrated: WayDown) -> Level:
    """The level at which infer(x̃) is closest to h, of all ways, around 0 and around the mean.

    h of different inputs may have so much in common that one image for all of them is closer to it than any
    shadow. What is best then says nothing about the shadows, and would make them alike: a level that is not
    clearly better than one image is not taken, and none that makes shadows differ by less than a hundredth
    of what the inputs differ by. Then the shadows get the spread of the inputs, or stay as they are without
    calibration; the second is a choice always, so that calibration does no harm on these inputs.
    """
    found = [_best_level(way, centred) for way in ways for centred in (False, True)]
    alike = min(ways[0].constant_error(centred) for centred in (False, True))
    if not min(map(_first, found)) < (1 - GAIN) * alike:
        natural = [
            Level(factor, centred, way.theory)
            for way in ways
            for centred in (False, True)
            if (factor := way.natural()) is not None
        ]
        by_theory = {way.theory: way for way in ways}
        found = [(by_theory[one.theory].error(one), one) for one in natural]
    own = Level(theory=True)
    return min([*found, (uncalibrated.error(own), own)], key=_first)[1]


def _first(pair: tuple[float, Level]) -> float:
    return inf if isnan(pair[0]) else pair[0]


def _best_level(way: WayDown, centred: bool) -> tuple[float, Level]:
    natural = way.natural()
    least = -inf if natural is None else log(LEAST_SPREAD * natural)

    def error_at(value: float) -> float:
        return way.error(Level(exp(value), centred))

    best, reach = max(0.0, least), log(64)
    for _ in range(4):  # a deep net can need a level far from 1: go on where the best lies at the edge
        low, high = max(least, best - reach), best + reach
        best = _minimize(error_at, low, high, points=9, tolerance=0.02)  # 2 % of the factor
        if high - best > 0.1 and (best - low > 0.1 or low == least):
            break
    return error_at(best), Level(exp(best), centred, way.theory)


def spread(x: Tensor) -> float:
    """How much rows differ from each other, as the norm of their deviations from their mean."""
    return float((x - x.mean(0)).double().norm())


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
