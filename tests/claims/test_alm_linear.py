"""Proposition 2.2 against the Wishart law, which scipy has its own formulas and draws for."""

import numpy as np
import pytest
import torch
from scipy import stats

from obverse._core.errors import BadInput
from obverse.claims.alm import _linear as linear


def wishart(n: int, m: int) -> stats.rv_continuous:
    return stats.wishart(df=n, scale=np.eye(m))


@pytest.mark.parametrize(("n", "m", "k"), [(7, 4, 2), (50, 6, 6), (9, 3, 1)])
def test_variance_is_that_of_a_wishart_matrix(n: int, m: int, k: int) -> None:
    # The entries of one row of WᵀW are uncorrelated: the variances of those on the support add up.
    rows = wishart(n, m).var()[:, :k].sum(1) / n**2
    for where, expected in (("on", rows[0]), ("off", rows[-1])):
        if where == "on" or k < m:
            found = linear.variance({"n": n, "m": m, "k": k, "where": where})
            assert found == pytest.approx(expected, rel=1e-12)


def test_largest_error_is_drawn_as_from_a_wishart_matrix() -> None:
    n, m, k, trials = 12, 5, 2, 4000
    h = np.array([1.0] * k + [0.0] * (m - k))
    matrices = wishart(n, m).rvs(trials, random_state=np.random.default_rng(1))
    expected = np.abs(matrices @ h / n - h).max(1)
    setting = {"n": n, "m": m, "k": k, "trials": trials}
    found = linear.measure_largest(setting, torch.Generator().manual_seed(1)).numpy()
    # five standard errors of the difference of two means
    assert abs(found.mean() - expected.mean()) < 5 * np.sqrt((found.var() + expected.var()) / trials)


@pytest.mark.parametrize("where", ["on", "off"])
def test_sample_variance_is_unbiased(where: str) -> None:
    setting = {"n": 12, "m": 5, "k": 2, "where": where, "trials": 2000, "batch": 3}
    found = linear.measure_variance(setting, torch.Generator().manual_seed(2)).numpy()
    expected = (2 + (where == "on")) / 12  # of 2 ones, by Wishart
    assert abs(found.mean() - expected) < 5 * found.std() / np.sqrt(2000)  # standard errors


@pytest.mark.parametrize(
    ("change", "sentence"),
    [({"n": 5}, "n > m"), ({"k": 6}, "k ≤ m"), ({"k": 0}, "support must not be empty")],
)
def test_bad_settings_name_the_condition(change: dict[str, int], sentence: str) -> None:
    setting = {"n": 20, "m": 5, "k": 2, "trials": 2, "batch": 2, "where": "on"} | change
    for call in (linear.rate, linear.variance):
        with pytest.raises(BadInput, match=sentence):
            call(setting)
    for measure in (linear.measure_largest, linear.measure_variance):
        with pytest.raises(BadInput, match=sentence):
            measure(setting, torch.Generator())


def test_off_the_support_needs_one() -> None:
    setting = {"n": 20, "m": 5, "k": 5, "trials": 2, "batch": 2, "where": "off"}
    with pytest.raises(BadInput, match="off the support"):
        linear.measure_variance(setting, torch.Generator())
