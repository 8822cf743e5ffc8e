"""The null of the distance to the law, simulated again at shapes that its constants have not seen."""

from math import sqrt

import numpy as np
import pytest
from scipy.linalg import svdvals
from scipy.stats import gumbel_r

from obverse.weights._decomposition import marchenko_pastur as law
from obverse.weights._decomposition.lanczos import fit_scale
from obverse.weights._decomposition.marchenko_pastur import (
    distance_number,
    scale_error,
)
from weights.exact_spectra import normal_singular_values, not_above, not_below


def fitted(values: np.ndarray, rows: int, columns: int) -> tuple[float, float]:
    """Scale and distance, as for a layer."""
    shares = (np.arange(len(values)) + 0.5) / len(values)
    scale = fit_scale(values, shares, rows, columns)
    return scale, law.ks_distance(law.cdf(values, rows, columns, scale))


SHAPES = [(37, 37, 3000), (55, 5000, 1500), (110, 140, 1500), (330, 900, 200)]


@pytest.fixture(scope="module", params=SHAPES, ids=str)
def noise(request):
    rows, columns, draws = request.param
    random = np.random.default_rng(rows)
    found = [fitted(normal_singular_values(rows, columns, random), rows, columns) for _ in range(draws)]
    return rows, columns, np.array(found).T


@pytest.mark.slow
def test_noise_is_called_noise_as_often_as_it_says(noise):
    rows, _, (_, distances) = noise
    p = np.array([distance_number(distance, rows).p for distance in distances])
    for level in (0.01, 0.001):
        assert not_above(int((p < level).sum()), len(p), level)
    # between 5 and 20 % the Gumbel law may alarm a fifth too often: nobody sets a level there
    assert not_above(int((p < 0.05).sum()), len(p), 0.06)
    # and it is not kept by never alarming
    assert not_below(int((p < 0.05).sum()), len(p), 0.03)


def test_twice_the_level_s_distance_is_out_of_reach_of_noise(noise):
    rows, _, (_, distances) = noise
    number = distance_number(float(distances[0]), rows)
    per_mille = gumbel_r.isf(0.001, *gumbel_from(number.null, number.spread))
    assert distance_number(per_mille, rows).p == pytest.approx(0.001, rel=1e-6)
    assert distance_number(2 * per_mille, rows).p < 1e-8
    assert distances.max() < 1.2 * per_mille  # of thousands
    # the bar falls as fast as the rigidity of eigenvalues allows: a few times log p / p
    assert per_mille < 1.5 * np.log(rows) / rows


def gumbel_from(mean: float, spread: float) -> tuple[float, float]:
    """Location and scale of the Gumbel law with this mean and standard deviation."""
    scale = spread * sqrt(6) / np.pi
    return mean - np.euler_gamma * scale, scale


def test_null_and_spread_are_those_of_the_simulation(noise):
    rows, _, (_, distances) = noise
    number = distance_number(0.5, rows)
    assert number.value == 0.5
    # the constants are a fit over all shapes: within 5 % of the mean, 15 % of the spread, and sampling error
    error = distances.std() / sqrt(len(distances))
    assert abs(number.null - distances.mean()) < 0.05 * distances.mean() + 4 * error
    assert abs(number.spread / distances.std() - 1) < 0.15 + 4 / sqrt(len(distances))


def test_the_fitted_scale_is_as_certain_as_it_says(noise):
    rows, columns, (scales, _) = noise
    spread = scales.std(ddof=1)
    assert spread == pytest.approx(scale_error(rows, columns), rel=0.05 + 4 / sqrt(2 * len(scales)))
    # centred but for the finite size, a seventh of its standard error where nearly square and less elsewhere
    assert abs(scales.mean() - 1) < 4 * spread / sqrt(len(scales)) + spread / 7


@pytest.mark.parametrize(("size", "kurtosis"), [(50, 0.0), (300, 8.0)])
def test_p_is_the_tail_of_the_gumbel_law(size, kurtosis):
    for distance in (0.0, 0.01, 0.03, 0.05, 0.2):
        number = distance_number(distance, size, kurtosis=kurtosis)
        expected = gumbel_r.sf(distance, *gumbel_from(number.null, number.spread))
        assert number.p == pytest.approx(expected, rel=1e-6, abs=1e-300)


def test_heavy_tails_ask_for_more():
    plain = distance_number(0.05, 100)
    assert distance_number(0.05, 100, kurtosis=5.0).p > plain.p
    assert distance_number(0.05, 100, kurtosis=-1.2) == plain  # light tails are no excuse


# ±1 with probability `density`, else 0: excess kurtosis 1/density − 3
@pytest.mark.parametrize(("rows", "columns", "density"), [(80, 80, 1.0), (80, 110, 0.25), (140, 140, 0.12)])
def test_entries_that_are_not_normal_are_no_alarm(rows, columns, density):
    random, draws = np.random.default_rng(rows), 150
    kurtosis = 1 / density - 3
    p = []
    for _ in range(draws):
        entries = np.sign(random.standard_normal((rows, columns)))
        entries *= random.random((rows, columns)) < density
        _, distance = fitted(svdvals(entries)[::-1], rows, columns)
        p.append(distance_number(distance, rows, kurtosis=kurtosis).p)
    for level in (0.05, 0.01, 0.001):
        assert not_above(int((np.array(p) < level).sum()), draws, level)
