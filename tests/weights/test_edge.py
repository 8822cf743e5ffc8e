"""The edge of noise: Tracy–Widom against a Fredholm determinant, tables and simulation; spikes beyond it."""

from math import sqrt

import numpy as np
import pytest
from scipy.integrate import simpson
from scipy.linalg import svdvals
from scipy.special import airy
from scipy.stats import ks_2samp

from obverse.weights._decomposition.marchenko_pastur import (
    edge_probability,
    planted_strength,
    threshold_strength,
)
from weights.exact_spectra import normal_singular_values, not_above, not_below


def tracy_widom_tail(statistic: float) -> float:
    """1 − F₁ by Ferrari and Spohn's determinant of ½Ai((x + y)/2 + s), on Gauss–Legendre nodes."""
    nodes, weights = np.polynomial.legendre.leggauss(64)
    nodes, weights = 10 * (nodes + 1), 10 * weights  # 0 … 20, where the kernel is below 1e-12
    kernel = airy((nodes[:, None] + nodes) / 2 + statistic)[0] / 2
    roots = np.sqrt(weights)
    return float(1 - np.linalg.det(np.eye(64) - roots[:, None] * kernel * roots))


def singular_at(statistic: float, rows: int, columns: int) -> float:
    """The largest singular value at which Ma's centred and scaled statistic has this value."""
    first, second = sqrt(rows - 0.5), sqrt(columns - 0.5)
    spread = (first + second) * (1 / first + 1 / second) ** (1 / 3)
    return sqrt((first + second) ** 2 + statistic * spread)


def test_the_determinant_has_the_quantiles_of_the_tables():
    # Bejan (2005): four decimals of a quantile move the tail by at most 5e-5 of twice itself
    for statistic, share in ((0.4501, 0.1), (0.9793, 0.05), (2.0234, 0.01), (3.2724, 0.001)):
        assert tracy_widom_tail(statistic) == pytest.approx(share, rel=5e-4)
    places = np.linspace(-8, 8, 161)
    tails = [tracy_widom_tail(place) for place in places]
    # E = −8 + ∫ P(> s) ds from where it is 1; Bornemann (2010) gives −1.2065335745820
    assert simpson(tails, x=places) - 8 == pytest.approx(-1.20653357, abs=1e-6)


@pytest.mark.parametrize(("rows", "columns"), [(32, 32), (4000, 4000), (40, 9000)])
def test_the_probability_is_that_of_tracy_and_widom(rows, columns):
    for statistic in np.linspace(-4, 6, 21):
        expected = tracy_widom_tail(statistic)
        found = edge_probability(singular_at(statistic, rows, columns), rows, columns, 1.0)
        # what matching three moments leaves: the gamma law is 1.1e-3 off at the most, an eighth in the tail
        assert abs(found - expected) < 1.2e-3
        assert found == pytest.approx(expected, rel=0.125)


def test_the_probability_falls_with_the_value_from_one_to_nothing():
    values = np.linspace(0, 40, 200)
    found = [edge_probability(value, 50, 90, 1.0) for value in values]
    assert found[0] == 1
    assert found[-1] < 1e-100
    assert (np.diff(found) <= 0).all()
    assert edge_probability(17.2, 90, 50, 1.0) == edge_probability(17.2, 50, 90, 1.0)
    assert edge_probability(0.3 * 17.2, 50, 90, 0.3) == pytest.approx(edge_probability(17.2, 50, 90, 1.0))


def test_the_drawn_spectra_are_those_of_matrices():
    """The oracle itself: bidiagonal draws against dense matrices with a planted rank-one part."""
    random = np.random.default_rng(3)
    rows, columns, planted, draws = 6, 9, 4.0, 1500
    left, right = np.full(rows, rows**-0.5), np.eye(columns)[2]
    dense = random.standard_normal((draws, rows, columns)) + planted * np.outer(left, right)
    dense = np.linalg.svd(dense, compute_uv=False)[:, ::-1]
    drawn = np.array([normal_singular_values(rows, columns, random, planted=planted) for _ in range(draws)])
    for place in range(rows):
        assert ks_2samp(dense[:, place], drawn[:, place]).pvalue > 1e-3


# Shapes, and how many draws. Clopper–Pearson at one in a thousand (`not_above`), three levels a shape.
@pytest.mark.parametrize(("rows", "columns", "draws"), [(35, 35, 2000), (45, 3000, 1500), (260, 200, 600)])
def test_noise_passes_the_edge_as_often_as_it_says(rows, columns, draws):
    random = np.random.default_rng(rows)
    largest = [normal_singular_values(rows, columns, random)[-1] for _ in range(draws)]
    found = np.array([edge_probability(0.1 * value, rows, columns, 0.1) for value in largest])
    # Ma's centring is of second order: off by O(p^(−2/3)), a few per cent of the level at 35 rows
    for level in (0.2, 0.05, 0.01):
        alarms = int((found < level).sum())
        assert not_above(alarms, draws, 1.1 * level)
        assert not_below(alarms, draws, 0.8 * level)
    assert not_above(int((found < 0.001).sum()), draws, 0.0015)


def test_an_uncertain_scale_widens_the_edge_as_errors_of_the_scale_do():
    rows, columns, draws, error = 60, 90, 1500, 0.03
    random = np.random.default_rng(5)
    largest = [normal_singular_values(rows, columns, random)[-1] for _ in range(draws)]
    scales = 1 + error * random.standard_normal(draws)
    aware, unaware = (
        np.array(
            [
                edge_probability(value, rows, columns, scale, scale_error=stated)
                for value, scale in zip(largest, scales, strict=True)
            ]
        )
        for stated in (error, 0.0)
    )
    # To first order only: the wider law is not centred anew. A fitted scale has a smaller error, and one that
    # goes with the largest value; test_spectrum shows that the level is kept there.
    for level in (0.05, 0.01):
        assert not_above(int((aware < level).sum()), draws, 2.2 * level)
        assert not not_above(int((unaware < level).sum()), draws, 2.2 * level)
    assert not_below(int((aware < 0.05).sum()), draws, 0.05)


def test_sparse_entries_reach_further_by_the_kurtosis_shift():
    rows, columns, draws, density = 100, 160, 250, 0.12
    kurtosis = 1 / density - 3  # of ±1 with probability `density`, else 0
    random = np.random.default_rng(6)
    largest = np.empty(draws)
    for draw in range(draws):
        signs = np.sign(random.standard_normal((rows, columns)))
        largest[draw] = svdvals(signs * (random.random((rows, columns)) < density) / sqrt(density))[0]
    normal = np.array([normal_singular_values(rows, columns, random)[-1] for _ in range(4 * draws)])
    reach = (largest**2).mean() / (normal**2).mean() - 1
    shift = kurtosis / sqrt(rows * columns)
    # standard error of the two means; the shift is the first order, the second is of relative size shift
    error = sqrt((largest**2).var() / draws + (normal**2).var() / (4 * draws)) / (normal**2).mean()
    assert abs(reach - shift) < 4 * error + shift**2
    assert reach > 10 * error
    found = np.array([edge_probability(value, rows, columns, 1.0, kurtosis=kurtosis) for value in largest])
    assert not_above(int((found < 0.01).sum()), draws, 0.01)
    unshifted = np.array([edge_probability(value, rows, columns, 1.0) for value in largest])
    assert not not_above(int((unshifted < 0.01).sum()), draws, 0.05)  # without it, alarms


@pytest.mark.parametrize(("rows", "columns"), [(500, 500), (300, 700), (700, 300), (40, 4000)])
def test_the_planted_strength_inverts_its_inflation_by_noise(rows, columns):
    scale = 0.2
    ratio = min(rows, columns) / max(rows, columns)
    unit = scale * sqrt(max(rows, columns))
    threshold = threshold_strength(rows, columns, scale)
    assert threshold == pytest.approx(unit * ratio**0.25)
    for times in (1.001, 1.2, 2.0, 50.0):
        strength = times * threshold / unit
        observed = unit * sqrt((1 + strength**2) * (ratio + strength**2)) / strength
        assert planted_strength(observed, rows, columns, scale) == pytest.approx(times * threshold, rel=1e-6)
    assert planted_strength(unit * (1 + sqrt(ratio)), rows, columns, scale) == pytest.approx(threshold)
    assert planted_strength(0.5 * unit, rows, columns, scale) == threshold


@pytest.mark.parametrize(("rows", "columns"), [(800, 800), (200, 1500)])
def test_the_planted_strength_is_found_in_noise(rows, columns):
    random = np.random.default_rng(columns)
    draws, strength = 30, 1.6 * threshold_strength(rows, columns, 1.0)
    found = np.array(
        [
            planted_strength(
                normal_singular_values(rows, columns, random, planted=strength)[-1], rows, columns, 1
            )
            for _ in range(draws)
        ]
    )
    # the limit is reached up to terms of order 1/rows; the rest is the standard error of the mean
    error = found.std(ddof=1) / sqrt(draws)
    assert abs(found.mean() - strength) < 4 * error + 2 * strength / min(rows, columns)
