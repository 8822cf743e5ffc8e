"""Lemma 2.5 against simulations written separately."""

from math import log, sqrt

import numpy as np
import pytest
import torch

from obverse._core.errors import BadInput
from obverse.claims.alm import _infinity as infinity


@pytest.mark.parametrize(("m", "k", "t", "n"), [(50, 2, 30, 30), (400, 40, 100, 1000), (3, 3, 10, 40)])
def test_largest_of_normals_against_draws(m: int, k: int, t: int, n: int) -> None:
    random = np.random.default_rng(0)
    h = np.array([k**-0.5] * k + [0.0] * (m - k))
    spread = np.sqrt(2 / t * (1 + 2 * h**2) - h**2 / n)
    drawn = sqrt(t) * np.abs(random.standard_normal((20_000, m)) * spread).max(1)
    found = infinity.normal_largest({"n": n, "m": m, "k": k, "t": t})
    assert abs(found - drawn.mean()) < 5 * drawn.std() / sqrt(20_000)  # standard errors


@pytest.mark.slow
def test_measured_largest_against_dense_matrices() -> None:
    n, m, k, t, count = 30, 6, 2, 15, 4000
    random = np.random.default_rng(0)
    weights = random.standard_normal((count, n, m))
    h = np.array([sqrt(0.5)] * k + [0.0] * (m - k))  # which entries is all the same to a random W
    x = np.maximum(weights @ h, 0) * 2 / t * (random.random((count, n)) < t / n)
    expected = sqrt(t) * np.abs(np.einsum("dn,dnm->dm", x, weights) - h).max(1)
    setting = {"n": n, "m": m, "k": k, "t": t, "draws": 5, "trials": 300}
    found = np.array(infinity.measure_largest(setting, torch.Generator().manual_seed(0)))
    error = np.hypot(expected.std() / sqrt(count), found.std() / sqrt(300))
    assert abs(found.mean() - expected.mean()) < 5 * error  # standard errors


def test_constants() -> None:
    setting = {"n": 10, "m": 1000, "k": 2, "t": 5}
    assert infinity.constant(setting) == pytest.approx(sqrt(2 / 5) * sqrt(2 * log(1000)) * sqrt(5))
    assert infinity.constant(setting) == pytest.approx(2 * infinity.rate(setting))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [({"k": 7}, "k ≤ m"), ({"t": 40}, "ρ = t/n"), ({"k": 0}, "support must not be empty")],
)
def test_bad_settings_name_the_condition(change: dict[str, int], sentence: str) -> None:
    setting = {"n": 30, "m": 6, "k": 2, "t": 15, "draws": 2, "trials": 1} | change
    for predict in (infinity.rate, infinity.constant, infinity.normal_largest):
        with pytest.raises(BadInput, match=sentence):
            predict(setting)
    with pytest.raises(BadInput, match=sentence):
        infinity.measure_largest(setting, torch.Generator())
