"""The Marchenko–Pastur law against its textbook eigenvalue density, its moments and a matrix."""

from math import comb, pi, sqrt

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.linalg import svdvals
from scipy.stats import kstest

from obverse.weights._decomposition.marchenko_pastur import cdf, density, distance_number, edges, quantiles

SHAPES = [(50, 50), (50, 51), (60, 100), (300, 200), (40, 4000), (1, 3)]


def eigenvalue_share(upto: float, ratio: float) -> float:
    """The share of the eigenvalues of XXᵀ/q at or below `upto`: the textbook density integrated."""
    low, high = (1 - sqrt(ratio)) ** 2, (1 + sqrt(ratio)) ** 2

    def eigenvalue_density(angle: float) -> float:
        # λ from low to high along a half circle: its sine takes the root at both ends away
        value = low + (high - low) * np.sin(angle / 2) ** 2
        return ((high - low) / 2 * np.sin(angle)) ** 2 / (2 * pi * ratio * value)

    end = np.arccos(np.clip(((low + high) / 2 - upto) / ((high - low) / 2), -1, 1))
    return quad(eigenvalue_density, 0, end, epsabs=1e-13, epsrel=1e-12, limit=500)[0]


def narayana_moment(order: int, ratio: float) -> float:
    """E[λ^order] by counting non-crossing partitions."""
    return sum(
        ratio**block / (block + 1) * comb(order, block) * comb(order - 1, block) for block in range(order)
    )


@pytest.mark.parametrize(("rows", "columns"), SHAPES)
@pytest.mark.parametrize("scale", [1.0, 0.02])
def test_the_density_integrates_to_one_and_has_the_moments_of_the_law(rows, columns, scale):
    low, high = edges(rows, columns, scale)
    unit = scale * sqrt(max(rows, columns))

    def moment(order: int) -> float:
        def along_the_arc(angle: float) -> float:  # smooth where the density has its square-root edges
            y = (low + high) / 2 - (high - low) / 2 * np.cos(angle)
            value = density(np.array([y]), rows, columns, scale)[0] * (y / unit) ** (2 * order)
            return value * (high - low) / 2 * np.sin(angle)

        return quad(along_the_arc, 0, pi, epsabs=1e-12, epsrel=1e-11, limit=500)[0]

    ratio = min(rows, columns) / max(rows, columns)
    assert moment(0) == pytest.approx(1, rel=1e-9)  # quad's own tolerance, here and below
    for order in (1, 2, 3, 5):
        assert moment(order) == pytest.approx(narayana_moment(order, ratio), rel=1e-8)


@pytest.mark.parametrize(("rows", "columns"), SHAPES)
def test_the_cdf_is_the_integral_of_the_eigenvalue_density(rows, columns):
    scale, ratio = 0.3, min(rows, columns) / max(rows, columns)
    low, high = edges(rows, columns, scale)
    singular = np.concatenate((np.linspace(low, high, 23), [low + 1e-6, high - 1e-6]))
    expected = [eigenvalue_share(one**2 / (scale**2 * max(rows, columns)), ratio) for one in singular]
    # at an edge the arc sine turns a rounding error ε into √2ε = 2e-8, and the law divides by the ratio
    assert cdf(singular, rows, columns, scale) == pytest.approx(np.array(expected), abs=2e-8 / ratio)
    outside = cdf([0.0, low * 0.99, high * 1.01, 1e9], rows, columns, scale)
    assert outside == pytest.approx([0, 0, 1, 1], abs=2e-8 / ratio)


@pytest.mark.parametrize(("rows", "columns"), SHAPES)
def test_quantiles_invert_the_cdf(rows, columns):
    shares = np.linspace(0, 1, 101)
    found = quantiles(shares, rows, columns)
    # linear interpolation of 4,096 steps: at most the square of one step (π/4096)²/8 of the angle
    assert cdf(found, rows, columns, 1.0) == pytest.approx(shares, abs=1e-6)
    assert (np.diff(found) > 0).all()
    assert found[[0, -1]] == pytest.approx(edges(rows, columns), rel=1e-12, abs=1e-6)


def test_a_square_matrix_has_the_quarter_circle_law():
    size, scale = 64, 0.25
    singular = np.linspace(0, 2 * scale * sqrt(size), 50)
    radius = 2 * scale * sqrt(size)
    assert edges(size, size, scale) == (0, radius)
    circle = np.sqrt(radius**2 - singular**2) / (pi * radius**2 / 4)  # over the area of the quarter disc
    assert density(singular, size, size, scale) == pytest.approx(circle, rel=1e-12)
    x = singular / radius
    area = (x * np.sqrt(1 - x**2) + np.arcsin(x)) * 2 / pi
    assert cdf(singular, size, size, scale) == pytest.approx(area, abs=1e-12)
    assert density(np.array([-0.1, radius * 1.01]), size, size, scale).tolist() == [0, 0]


def test_the_law_of_the_transpose_is_the_same_and_scale_only_stretches():
    singular = np.linspace(0.1, 30, 40)
    for function in (density, cdf):
        assert (function(singular, 30, 200, 1.5) == function(singular, 200, 30, 1.5)).all()
    assert (
        quantiles(np.array([0.2, 0.7]), 30, 200).tolist() == quantiles(np.array([0.2, 0.7]), 200, 30).tolist()
    )
    assert edges(30, 200, 2.0) == edges(200, 30, 2.0)
    assert cdf(3 * singular, 30, 200, 3.0) == pytest.approx(cdf(singular, 30, 200, 1.0), abs=1e-14)
    assert 3 * density(3 * singular, 30, 200, 3.0) == pytest.approx(density(singular, 30, 200, 1.0), rel=1e-9)


def test_outside_the_edges_there_is_nothing():
    low, high = edges(100, 400)
    assert density(np.array([0.0, low * 0.99, high * 1.01]), 100, 400, 1.0).tolist() == [0, 0, 0]


@pytest.mark.parametrize(("rows", "columns"), [(400, 400), (250, 900)])
def test_the_singular_values_of_a_normal_matrix_follow_the_law(rows, columns):
    scale = 0.1
    values = svdvals(scale * np.random.default_rng(rows).standard_normal((rows, columns)))
    distance = kstest(values, lambda one: cdf(one, rows, columns, scale)).statistic
    # the null is for a fitted scale; the true one is within 1/√(rows · columns) of it, far below the distance
    number = distance_number(distance, min(rows, columns))
    assert number.p > 0.001
    # and it is no loose bar: a law whose scale is 5 % off is far outside
    wrong = kstest(values, lambda one: cdf(one, rows, columns, 1.05 * scale)).statistic
    assert distance_number(wrong, min(rows, columns)).p < 1e-6
