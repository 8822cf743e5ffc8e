"""Lemmas B.1 to B.3 against quadrature and plain Monte Carlo."""

from math import inf, log, pi, sqrt

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.stats import norm

from obverse._core.errors import BadInput
from obverse.claims.alm import _lemma_b1 as lemma_b1
from obverse.claims.alm import _lemma_b23 as lemma_b23
from obverse.claims.alm import _stratified as stratified


def term(h: float, sigma: float, power: int) -> float:
    """E[(w·r(wh + ξ))^power]: over ξ by the moments of a normal law cut at 0, over w by quadrature."""

    def inner(w: float) -> float:
        z = w * h / sigma
        if power == 1:
            return w * sigma * (z * norm.cdf(z) + norm.pdf(z))
        return w**2 * sigma**2 * ((z**2 + 1) * norm.cdf(z) + z * norm.pdf(z))

    return quad(lambda w: inner(w) * norm.pdf(w), -inf, inf, epsabs=1e-11, epsrel=1e-11)[0]


@pytest.mark.slow
@pytest.mark.parametrize(("h", "sigma"), [(0.0, 1.0), (0.5, 1.0), (2.0, 3.0), (4.6, 100.0), (7.0, 0.5)])
def test_exact_moments_of_one_term(h: float, sigma: float) -> None:
    setting = {"h": h, "sigma": sigma}
    # the quadrature's own tolerance, on values of up to σ²
    assert lemma_b1.half(setting) == pytest.approx(term(h, sigma, 1), abs=1e-8)
    assert lemma_b1.square(setting) == pytest.approx(term(h, sigma, 2), rel=1e-8)


@pytest.mark.parametrize(("h", "sigma"), [(0.5, 1.0), (3.0, 1.0), (2.0, 10.0)])
def test_stratified_moments_agree_with_plain_draws(h: float, sigma: float) -> None:
    random = np.random.default_rng(0)
    w, noise = random.standard_normal((2, 400_000))
    plain = w * np.maximum(w * h + sigma * noise, 0)
    setting = {"h": h, "sigma": sigma, "points": 2**10, "trials": 40}
    for power, measure in ((1, lemma_b1.measure_mean), (2, lemma_b1.measure_square)):
        found = np.array(measure(setting, torch.Generator().manual_seed(0)))
        error = np.hypot((plain**power).std() / sqrt(len(plain)), found.std() / sqrt(len(found)))
        assert abs(found.mean() - (plain**power).mean()) < 5 * error


def test_stratified_error_resolves_the_bound_where_plain_draws_cannot() -> None:
    setting = {"h": round(log(100), 4), "sigma": 100, "points": 2**17, "trials": 8}
    found = lemma_b1.measure_deviation(setting, torch.Generator().manual_seed(0))
    assert max(found) < 100**-3  # plain draws: σ/√(8·2¹⁷) = 0.1
    assert min(found) > 0


def test_each_stratum_has_one_draw_and_columns_are_independent() -> None:
    points = stratified.normal_points(1000, 3, torch.Generator().manual_seed(0))
    for column in points.T:
        assert sorted(np.floor(1000 * norm.cdf(column)).astype(int)) == list(range(1000))
    off = np.corrcoef(points.T)[np.triu_indices(3, 1)]
    assert np.abs(off).max() < 5 / sqrt(1000)  # standard errors of a correlation
    other = stratified.normal_points(1000, 3, torch.Generator().manual_seed(1))
    assert not np.allclose(points, other)


def test_widened_draws_stand_for_standard_ones() -> None:
    wide, weights = stratified.widened(
        stratified.normal_points(2**14, 1, torch.Generator().manual_seed(0))[:, 0]
    )
    # count^(−3/2) = 5e-7 times slopes of order 10
    assert [float((weights * wide**power).mean()) for power in (0, 2, 4)] == pytest.approx(
        [1, 1, 3], abs=1e-4
    )


@pytest.mark.parametrize(("a", "b", "sigma"), [(1.0, 1.0, 1.0), (3.0, 0.5, 2.0), (2.0, 2.0, 20.0)])
def test_pair_against_plain_draws(a: float, b: float, sigma: float) -> None:
    random = np.random.default_rng(0)
    u, v, noise = random.standard_normal((3, 1_000_000))
    alive = np.maximum(a * u + b * v + sigma * noise, 0)
    product = u * v * alive**2
    plain = product.mean() - (u * alive).mean() * (v * alive).mean()
    error = product.std() / 1000
    setting = {"a": a, "b": b, "sigma": sigma, "points": 2**10, "trials": 40}
    assert abs(plain - lemma_b23.pair(setting)) < 5 * error  # standard errors of the plain draws
    found = np.array(lemma_b23.measure_pair(setting, torch.Generator().manual_seed(0)))
    assert abs(found.mean() - plain) < 5 * np.hypot(error, found.std() / sqrt(40))


@pytest.mark.parametrize("sigma", [1.5, 10.0, 200.0])
def test_remainder_integral_against_quadrature(sigma: float) -> None:
    ends = [-9.0, -1.0, 0.0, 0.3, 2.0, 12.0]
    found = lemma_b23._integral(torch.tensor(ends, dtype=torch.float64), sigma)
    for end, value in zip(ends, found, strict=True):
        expected = quad(lambda y, end=end: (end - y) ** 2 * norm.pdf(y, scale=sigma), 0, end)[0]
        # 16 nodes on up to eight standard deviations
        assert float(value) == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_remainder_against_quadrature() -> None:
    setting = {"r": 1.0, "sigma": 30.0, "trials": 100, "batch": 4000}
    found = lemma_b23.measure_remainder(setting, torch.Generator().manual_seed(0)).numpy()

    def inner(z: float) -> float:
        whole = quad(lambda y: (z - y) ** 2 * np.exp(-(y**2) / 1800), 0, z)[0] / (30 * sqrt(2 * pi))
        return abs((z**2 - 1) * whole) * np.exp(-(z**2) / 2) / sqrt(2 * pi)

    expected = 2 * quad(inner, 0, 12, points=[1.0])[0]
    assert abs(found.mean() - expected) < 5 * found.std() / 10  # standard errors
    # the leading term, which the exponent −1 comes from: r³φ(0)/(3σ)·E|z² − 1||z|³
    leading = (
        2
        * quad(lambda z: abs(z**2 - 1) * z**3 * norm.pdf(z), 0, 12, points=[1.0])[0]
        / (3 * 30 * sqrt(2 * pi))
    )
    assert expected == pytest.approx(leading, rel=5e-4)


@pytest.mark.parametrize(
    ("change", "sentence"), [({"h": 3.0}, "h ≤ log σ"), ({"h": -1.0}, "h ≥ 0"), ({"sigma": 0.0}, "σ > 0")]
)
def test_bad_settings_of_the_first_lemma(change: dict[str, float], sentence: str) -> None:
    setting = {"h": 1.0, "sigma": 10.0, "points": 8, "trials": 1} | change
    for call in (lemma_b1.third_power, lemma_b1.square_bound):
        with pytest.raises(BadInput, match=sentence):
            call(setting)
    with pytest.raises(BadInput, match=sentence):
        lemma_b1.measure_deviation(setting, torch.Generator())
    if "h ≤" not in sentence:
        for measure in (lemma_b1.measure_mean, lemma_b1.measure_square):
            with pytest.raises(BadInput, match=sentence):
                measure(setting, torch.Generator())


@pytest.mark.parametrize(
    ("change", "sentence"),
    [({"a": 12.0}, "a, b ≤ 5 log σ"), ({"b": -1.0}, "b ≥ 0"), ({"sigma": -1.0}, "σ > 0")],
)
def test_bad_settings_of_the_second_lemma(change: dict[str, float], sentence: str) -> None:
    setting = {"a": 1.0, "b": 1.0, "sigma": 10.0, "points": 8, "trials": 1} | change
    with pytest.raises(BadInput, match=sentence):
        lemma_b23.pair_rate(setting)
    if "≤" not in sentence:
        with pytest.raises(BadInput, match=sentence):
            lemma_b23.measure_pair(setting, torch.Generator())


def test_bad_settings_of_the_third_lemma() -> None:
    setting = {"r": 40.0, "sigma": 10.0, "trials": 1, "batch": 1}
    with pytest.raises(BadInput, match="r ≤ 10 log σ"):
        lemma_b23.remainder_rate(setting)
    with pytest.raises(BadInput, match="r ≤ 10 log σ"):
        lemma_b23.measure_remainder(setting, torch.Generator())
