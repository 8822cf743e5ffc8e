"""What is measured on trained nets about the random-like nets hypothesis. The claims: see hypothesis.

Each trial trains a net of its own by the recipe of Section 4 (see trained) on the embedded digits. `decay` is
its weight decay: with 0 the initial weights stay, with 0.003 a fifth of them is left after 520 steps.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from ..._core import BadInput
from ...training import ClassifierTask, fit_classifier
from ...weights import Parts, Treatment, ablate, decompose, root_mean_square
from .._claim import measurement, per_trial
from ..results import Setting
from ._stream import draw_seed
from ._trained import prepare

Array = npt.NDArray[np.float64]
HIDDEN = ("h1", "h2")
NEAR = 0.1  # of the mean: the paper's interval [0.9, 1.1] around 1
_ANGLES = 2**14  # of the half circle on which the law is integrated


def check_layer_named(setting: Setting) -> None:
    if setting["layer"] not in (1, 2):
        raise BadInput("layer 1 or 2, the hidden ones", got=setting["layer"], do="change layer")


@measurement("alm.hypothesis.measure_entries")
@per_trial
def measure_entries(setting: Setting, generator: torch.Generator) -> float:
    """The distance of a layer's weights to a normal distribution."""
    return normal_distance(_weight(setting, generator))


@measurement("alm.hypothesis.measure_bulk_entries")
@per_trial
def measure_bulk_entries(setting: Setting, generator: torch.Generator) -> float:
    """The same of the bulk's entries, without the profile."""
    return normal_distance(bare_bulk(_parts(setting, generator)))


@measurement("alm.hypothesis.measure_spectrum")
@per_trial
def measure_spectrum(setting: Setting, generator: torch.Generator) -> float:
    """The distance of a layer's singular values to those of random entries of the same mean square."""
    weight = _weight(setting, generator).double()
    singular = torch.linalg.svdvals(weight).numpy()
    rows, columns = weight.shape
    return law_distance(singular, rows, columns, root_mean_square(weight))


@measurement("alm.hypothesis.measure_bulk_spectrum")
@per_trial
def measure_bulk_spectrum(setting: Setting, generator: torch.Generator) -> float:
    """The same of the bulk's singular values, without the profile."""
    distance = _parts(setting, generator).summary.distance
    if distance is None:
        raise BadInput(
            "a layer that can be taken apart", got=f"one of width {setting['width']}", do="take wider layers"
        )
    return distance.value


@measurement("alm.hypothesis.measure_biases")
@per_trial
def measure_biases(setting: Setting, generator: torch.Generator) -> float:
    """The share of a layer's biases that are further from their mean than a tenth of it."""
    bias = _bias(setting, generator)
    mean = bias.mean()
    return float(((bias - mean).abs() > NEAR * mean.abs()).double().mean())


@measurement("alm.hypothesis.measure_bias_spread")
@per_trial
def measure_bias_spread(setting: Setting, generator: torch.Generator) -> float:
    """Standard deviation ÷ |mean| of a layer's biases."""
    bias = _bias(setting, generator)
    return float(bias.std(correction=0) / bias.mean().abs())


@measurement("alm.hypothesis.measure_lost")
@per_trial
def measure_lost(setting: Setting, generator: torch.Generator) -> float:
    """The share of its accuracy that a net loses where both hidden layers are treated."""
    return 1 - _accuracy_kept(setting, generator)


@measurement("alm.hypothesis.measure_kept")
@per_trial
def measure_kept(setting: Setting, generator: torch.Generator) -> float:
    """The share of its accuracy that a net keeps where both hidden layers are treated."""
    return _accuracy_kept(setting, generator)


def train(setting: Setting, generator: torch.Generator) -> ClassifierTask:
    """A net whose biases start at `start`, trained with weight decay `decay`."""
    task = prepare(setting, draw_seed(generator), weight_decay=setting["decay"])
    for name in HIDDEN:
        nn.init.constant_(task.net.get_parameter(f"{name}.bias"), setting.get("start", 0.0))
    fit_classifier(task)
    return task


def normal_distance(values: Tensor) -> float:
    """Kolmogorov–Smirnov distance of numbers to the normal distribution of their mean and deviation."""
    from scipy.special import ndtr

    ordered = np.sort(values.detach().double().flatten().numpy())
    shares: Array = ndtr((ordered - ordered.mean()) / ordered.std(ddof=1))
    return _largest_gap(shares)


def law_distance(singular: Array, rows: int, columns: int, scale: float) -> float:
    """Kolmogorov–Smirnov distance of singular values to those of random entries of this scale.

    That is the Marchenko–Pastur law, of square matrices the quarter circle, integrated over an angle φ:
    with λ = 1 + c − 2√c·cos φ, c = short ÷ long side, dF = 2 sin²φ dφ / πλ.
    """
    short, long = sorted((rows, columns))
    c = short / long
    edges = np.linspace(0, np.pi, _ANGLES + 1)
    middle = (edges[1:] + edges[:-1]) / 2
    steps = np.sin(middle) ** 2 / (1 + c - 2 * np.sqrt(c) * np.cos(middle))
    shares = np.concatenate(([0.0], np.cumsum(steps))) / steps.sum()
    places = (singular / (scale * np.sqrt(long))) ** 2
    angles = np.arccos(np.clip((1 + c - places) / (2 * np.sqrt(c)), -1, 1))
    return _largest_gap(np.sort(np.interp(angles, edges, shares)))


def bare_bulk(parts: Parts) -> Tensor:
    """The bulk without the profile; without rows and columns of zeros."""
    rows, columns = parts.row_scales > 0, parts.column_scales > 0
    bulk = parts.bulk()[rows][:, columns]
    return bulk / parts.row_scales[rows][:, None].to(bulk) / parts.column_scales[columns].to(bulk)


def _largest_gap(shares: Array) -> float:
    """Between a law's shares at the sorted sample and those of the sample."""
    steps = np.arange(len(shares) + 1) / len(shares)
    return float(max((shares - steps[:-1]).max(), (steps[1:] - shares).max()))


def _weight(setting: Setting, generator: torch.Generator) -> Tensor:
    check_layer_named(setting)
    return train(setting, generator).net.get_parameter(f"h{setting['layer']}.weight").detach()


ALPHA = 0.01  # chance of a false direction in a matrix of noise, in the results on record


def _bias(setting: Setting, generator: torch.Generator) -> Tensor:
    check_layer_named(setting)
    return train(setting, generator).net.get_parameter(f"h{setting['layer']}.bias").detach().double()


def _parts(setting: Setting, generator: torch.Generator) -> Parts:
    return decompose(_weight(setting, generator), alpha=ALPHA, generator=generator)


def _accuracy_kept(setting: Setting, generator: torch.Generator) -> float:
    task = train(setting, generator)
    treatment: Treatment = setting["treatment"]
    found = ablate(
        task.net,
        task.test_x,
        task.test_y,
        layers=HIDDEN,
        treatments=(treatment,),
        alpha=ALPHA,
        curve=False,
        generator=generator,
    )
    effect = found.effect(treatment)
    if effect is None or effect.score.value is None:
        raise BadInput(
            "layers that can be taken apart", got=f"a width of {setting['width']}", do="take wider layers"
        )
    return effect.score.value / found.untreated.value
