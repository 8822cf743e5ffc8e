"""The biases of a layer: are they nearly constant, as the theory wants them? Not for its weights."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .._core import BadInput
from .results import Histogram, Number, Offsets

_BINS = 40
_LARGEST_RATIO = 1e9  # stands for infinity, which JSON doesn't have


def offsets(bias: Tensor) -> Offsets:
    """Mean, spread, their ratio |mean| / std with its standard error, and the histogram of a layer's biases.

    Constant biases have the ratio 1e9 and no standard error, biases that are all zero the ratio 0.
    """
    if not bias.is_floating_point() or bias.numel() < 1:
        got = f"{bias.dtype} of shape {tuple(bias.shape)}"
        raise BadInput("floating-point biases, at least one", got=got, do="leave out a layer without biases")
    values = bias.detach().reshape(-1).double().cpu()
    if not bool(values.isfinite().all()):
        raise BadInput("finite biases", got="NaN or infinity", do="check where the weights come from")
    low, high = float(values.min()), float(values.max())
    mean, std = float(values.mean()), float(values.std(correction=0))
    if low == high:  # exactly, where rounding leaves a tiny std
        mean, std = low, 0.0
    return Offsets(
        count=len(values),
        mean=mean,
        std=std,
        ratio=_ratio(values, mean, std),
        near_mean=float(((values - mean).abs() <= 0.1 * abs(mean)).double().mean()),
        histogram=_histogram(values, low, high),
    )


def _ratio(values: Tensor, mean: float, std: float) -> Number:
    if std == 0 or abs(mean) >= _LARGEST_RATIO * std:
        return Number(_LARGEST_RATIO if mean else 0.0)
    ratio = abs(mean) / std
    z = (values - mean) / std
    third, fourth = math.copysign(1, mean) * float((z**3).mean()), float((z**4).mean())
    # Delta method for m/s: each value contributes z − (m/s)(z² − 1)/2.
    variance = (1 - ratio * third + ratio**2 * (fourth - 1) / 4) / len(values)
    return Number(ratio, math.sqrt(max(variance, 0.0)))


def _histogram(values: Tensor, low: float, high: float) -> Histogram:
    if low == high:
        margin = 1e-3 * abs(low) or 1e-3
        return Histogram((low - margin, low + margin), (len(values),))
    edges = torch.linspace(low, high, _BINS + 1, dtype=torch.float64)
    places = torch.bucketize(values, edges[1:-1], right=True)
    return Histogram(tuple(edges.tolist()), tuple(torch.bincount(places, minlength=_BINS).tolist()))
