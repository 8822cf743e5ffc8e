"""Offsets against numpy and simulation."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch

from obverse._core.errors import BadInput
from obverse.weights._biases import offsets


def test_plain_numbers_are_numpys():
    bias = np.random.default_rng(1).normal(-0.4, 0.03, size=500).astype(np.float32)
    measured = offsets(torch.from_numpy(bias))
    exact = bias.astype(np.float64)
    assert measured.count == 500
    assert measured.mean == pytest.approx(exact.mean(), rel=1e-12)
    assert measured.std == pytest.approx(exact.std(), rel=1e-12)
    assert measured.ratio.value == pytest.approx(abs(exact.mean()) / exact.std(), rel=1e-12)
    assert measured.near_mean == np.mean(np.abs(exact - exact.mean()) <= 0.1 * abs(exact.mean()))
    counts, edges = np.histogram(exact, bins=40)
    assert measured.histogram.edges == pytest.approx(tuple(edges))
    assert measured.histogram.counts == tuple(counts)


def test_values_on_an_edge_fall_where_numpy_puts_them():
    bias = np.arange(41.0)
    measured = offsets(torch.from_numpy(bias)).histogram
    assert measured.counts == tuple(np.histogram(bias, bins=40)[0])


@pytest.mark.slow
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("law", ["normal", "gamma"])
def test_the_standard_error_of_the_ratio_is_the_simulated_one(law, sign):
    rng = np.random.default_rng(2)
    draw = {"normal": lambda: rng.normal(3, 1, 400), "gamma": lambda: rng.gamma(9, 1, 400)}[law]
    ratios = [offsets(torch.from_numpy(sign * draw())).ratio for _ in range(1500)]
    simulated = np.std([ratio.value for ratio in ratios])
    # A standard deviation from 1,500 draws is known to 1.8 %, the delta method at n = 400 to a few more.
    assert np.mean([ratio.spread for ratio in ratios]) == pytest.approx(simulated, rel=0.1)


def test_equal_offsets():
    measured = offsets(torch.full((7,), -0.1))
    assert (measured.std, measured.near_mean) == (0.0, 1.0)
    assert (measured.ratio.value, measured.ratio.spread) == (1e9, None)  # for infinity
    assert measured.histogram.counts == (7,)
    low, high = measured.histogram.edges
    assert low < np.float32(-0.1) < high


def test_equal_offsets_have_no_spread_by_rounding():
    bias = torch.full((7,), 0.1, dtype=torch.float64)  # whose mean isn't 0.1 in floating point
    assert (offsets(bias).mean, offsets(bias).std) == (0.1, 0.0)


def test_zero_offsets():
    measured = offsets(torch.zeros(7))
    assert (measured.mean, measured.std, measured.ratio.value, measured.near_mean) == (0.0, 0.0, 0.0, 1.0)


def test_nearly_equal_offsets_have_a_large_ratio():
    bias = torch.full((100,), 0.5)
    bias[0] = 0.5 + 1e-3
    assert 1e3 < offsets(bias).ratio.value < 1e9
    wide = bias.double()
    wide[0] = 0.5 + 1e-13
    assert offsets(wide).ratio.value == 1e9


@pytest.mark.parametrize(
    "bias",
    [
        torch.tensor([0.3]),
        torch.tensor([1.0, -1.0]),
        torch.tensor([1e30, 2e30, -3e30]),
        torch.tensor([1e-40, 2e-40]),
        torch.linspace(-1, 1, 10, dtype=torch.bfloat16),
        torch.linspace(-1, 1, 10, requires_grad=True),
    ],
)
def test_extremes_are_measured(bias):
    measured = offsets(bias)
    json.dumps(measured.to_dict(), allow_nan=False)
    assert sum(measured.histogram.counts) == len(bias)
    assert list(measured.histogram.edges) == sorted(measured.histogram.edges)


@pytest.mark.parametrize("bias", [torch.zeros(0), torch.zeros(3, dtype=torch.int64)])
def test_what_are_no_offsets_is_refused(bias):
    with pytest.raises(BadInput, match="floating-point biases"):
        offsets(bias)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_not_finite_is_refused(value):
    with pytest.raises(BadInput, match="finite biases"):
        offsets(torch.tensor([0.1, value]))
