"""The formulas behind `decompose`: profile, edges, shrinkage, leading directions, each against an oracle."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.linalg import svd

from obverse.weights._decomposition.edges import bulk_distance, bulk_scale, count_above, lower_p, upper_p
from obverse.weights._decomposition.marchenko_pastur import cdf, ks_distance
from obverse.weights._decomposition.profile import sinkhorn, unevenness
from obverse.weights._decomposition.shrinkage import cosines, shrunk, strength_errors, strengths
from weights.exact_spectra import normal_singular_values, not_above, not_below
from weights.searches import block_lanczos


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_sinkhorn_makes_rows_and_columns_equal_and_finds_a_profile_again():
    matrix = torch.randn(30, 50, generator=seeded(0)).double()
    of_rows, of_columns = sinkhorn(matrix, tolerance=1e-10)
    even = matrix.square() * of_rows[:, None] * of_columns
    assert torch.allclose(even.mean(0), torch.ones(50).double(), atol=1e-8)
    assert torch.allclose(even.mean(1), torch.ones(30).double(), atol=1e-8)
    scale = torch.rand(30, generator=seeded(1)).double() + 0.1
    other_rows, other_columns = sinkhorn(scale[:, None] * matrix, tolerance=1e-10)
    change = (other_rows * scale**2 / of_rows).log()
    assert float(change.std()) < 1e-8  # one factor moves between rows and columns
    assert float((other_columns / of_columns).log().std()) < 1e-8


def test_sinkhorn_agrees_with_a_convex_problem():
    """The factors minimize Σ r_i c_j W_ij² − columns · Σ log r − rows · Σ log c (Marshall and Olkin 1968)."""
    from scipy.optimize import minimize

    squares = np.random.default_rng(2).standard_normal((4, 6)) ** 2

    def loss(logs):
        r, c = np.exp(logs[:4]), np.exp(logs[4:])
        return r @ squares @ c - 6 * logs[:4].sum() - 4 * logs[4:].sum()

    best = minimize(loss, np.zeros(10), method="BFGS", options={"gtol": 1e-9}).x
    of_rows, of_columns = sinkhorn(torch.from_numpy(squares).sqrt(), sweeps=2000, tolerance=1e-12)
    expected = np.add.outer(best[:4], best[4:])  # r_i c_j, where the free factor drops out
    assert torch.outer(of_rows, of_columns).log().numpy() == pytest.approx(expected, abs=1e-4)


def test_lines_of_zeros_have_no_scale():
    matrix = torch.randn(6, 8, generator=seeded(3))
    matrix[2], matrix[:, 5] = 0, 0
    of_rows, of_columns = sinkhorn(matrix)
    assert of_rows[2] == 0
    assert of_columns[5] == 0
    assert bool(of_rows.isfinite().all())
    assert bool(of_columns.isfinite().all())
    assert unevenness(torch.tensor([1.0, 1.0, 0.0])) == 0
    # energies 1 and 4: geometric mean 2, arithmetic 2.5
    assert unevenness(torch.tensor([1.0, 0.25])) == pytest.approx(0.2)


# hard edge (square), between the two, soft edge
@pytest.mark.parametrize(("rows", "columns", "draws"), [(40, 40, 2000), (40, 43, 2000), (40, 80, 1500)])
def test_noise_falls_below_the_lower_edge_no_more_often_than_it_says(rows, columns, draws):
    random = np.random.default_rng(rows + columns)
    smallest = [normal_singular_values(rows, columns, random)[0] for _ in range(draws)]
    found = np.array([lower_p(0.3 * value, rows, columns, 0.3) for value in smallest])
    for level in (0.1, 0.01):
        assert not_above((found < level).sum(), draws, level)
    if columns - rows != 3:  # sharp at both ends; an upper bound between
        assert not_below((found < 0.1).sum(), draws, 0.05)


def test_the_lower_edge_of_square_noise_is_edelmans():
    """P(n λ_min < x) = 1 − exp(−x/2 − √x) for large n; the bound is its first term, √x, for small x."""
    size = 400
    for x in (1e-6, 1e-4, 1e-2):
        exact = -math.expm1(-x / 2 - math.sqrt(x))
        found = lower_p(math.sqrt(x / size), size, size, 1.0)
        assert found == pytest.approx(exact, rel=math.sqrt(x) + 1 / size)
    assert lower_p(0.0, 50, 60, 1.0) == 0
    assert lower_p(1.0, 50, 60, 0.0) == 1


def test_both_probabilities_fall_outwards():
    above = [upper_p(value, 60, 90, 1.0, 0.0) for value in np.linspace(10, 30, 40)]
    below = [lower_p(value, 60, 90, 1.0) for value in np.linspace(3, 0.1, 40)]
    assert (np.diff(above) <= 0).all()
    assert (np.diff(below) <= 0).all()
    # a profile taken off makes noise reach less far: the same value is less likely
    assert upper_p(17.5, 60, 90, 1.0, 3.0) < upper_p(17.5, 60, 90, 1.0, 0.0)


def test_values_are_counted_until_noise_could_have_one():
    values = np.array([60.0, 40.0, 17.0, 16.9])
    count, probabilities = count_above(values, 60, 90, 1.0, 0.0, 0.01)
    assert count == 2
    assert len(probabilities) == 3
    assert probabilities[0] < probabilities[1] < 0.01 <= probabilities[2]
    assert probabilities[2] == upper_p(17.0, 58, 88, 1.0, 0.0, values[:2])
    assert probabilities[2] < upper_p(17.0, 58, 88, 1.0, 0.0)  # those above have pushed the edge inwards


def test_the_distance_of_evened_noise_has_the_null_it_says():
    random = np.random.default_rng(5)
    for kurtosis, draw in (
        (0.0, random.standard_normal),
        (-2.0, lambda size: random.choice([-1.0, 1.0], size)),
    ):
        p = []
        for _ in range(150):
            matrix = torch.from_numpy(draw((40, 60)))
            of_rows, of_columns = sinkhorn(matrix)
            scaled = matrix * torch.outer(of_rows, of_columns).sqrt()
            values = svd(scaled.numpy(), compute_uv=False)[::-1]
            scale = bulk_scale(values, 40, 60)
            p.append(bulk_distance(ks_distance(cdf(values, 40, 60, scale)), 40, kurtosis).p)
        assert not_above((np.array(p) < 0.05).sum(), len(p), 0.05)
        assert 0.3 < np.median(p) < 0.95  # not far on the safe side


def test_shrinkage_keeps_strength_times_both_cosines():
    planted = np.array([1.2, 2.0, 5.0]) * (300 * 700) ** 0.25 * 0.2
    y, unit = 300 / 700, 0.2 * math.sqrt(700)
    theta = planted / unit
    seen = unit * np.sqrt((1 + theta**2) * (y + theta**2)) / theta
    left, right = cosines(planted, 300, 700, 0.2)
    assert shrunk(seen, 300, 700, 0.2) == pytest.approx(planted * left * right)
    assert strengths(seen, 300, 700, 0.2) == pytest.approx(planted)
    other_left, other_right = cosines(planted, 700, 300, 0.2)
    assert other_left == pytest.approx(right)
    assert other_right == pytest.approx(left)
    assert shrunk(np.array([1.0]), 300, 700, 0.2) == 0


def test_cosines_and_errors_of_strengths_are_those_of_planted_matrices():
    random = np.random.default_rng(6)
    rows, columns, draws = 120, 240, 60
    strength = 2.0 * (rows * columns) ** 0.25
    u, v = np.eye(rows)[0], np.eye(columns)[0]
    seen, lefts, rights = [], [], []
    for _ in range(draws):
        noisy = random.standard_normal((rows, columns)) + strength * np.outer(u, v)
        left, values, right = svd(noisy, full_matrices=False)
        seen.append(values[0])
        lefts.append(left[0, 0] ** 2)
        rights.append(right[0, 0] ** 2)
    expected = cosines(np.array([strength]), rows, columns, 1.0)
    # four standard errors of the draws, and O(1 / rows) of finite size
    for squares, cosine in ((lefts, expected[0]), (rights, expected[1])):
        error = 4 * np.std(squares) / math.sqrt(draws) + 2 / rows
        assert np.mean(squares) == pytest.approx(cosine[0] ** 2, abs=error)
    estimated = strengths(np.array(seen), rows, columns, 1.0)
    predicted = strength_errors(np.array([strength]), rows, columns, 1.0)[0]
    # a standard deviation of 60 draws is good to 1 / √120 of itself
    assert estimated.std() == pytest.approx(predicted, rel=4 / math.sqrt(2 * draws))


def test_leading_values_are_the_largest_ones_or_below_them():
    generator = seeded(7)
    matrix = torch.randn(200, 300, generator=generator)
    matrix += 60 * torch.outer(torch.eye(200)[0], torch.eye(300)[1])
    exact = torch.linalg.svdvals(matrix).numpy()
    found = block_lanczos(matrix, block=8, steps=10, start=None, generator=generator)
    assert len(found.values) == 80
    assert found.values[0] == pytest.approx(exact[0], rel=1e-5)
    assert (found.values[:40] <= exact[:40] * (1 + 1e-5)).all()
    assert abs(float(found.left[0, 0])) > 0.8
    # from the right start a single product is enough for it
    again = block_lanczos(matrix, block=1, steps=1, start=found.left[:, :1], generator=generator)
    assert again.values[0] == pytest.approx(exact[0], rel=1e-5)
