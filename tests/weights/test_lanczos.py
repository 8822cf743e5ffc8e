"""Lanczos quadrature: exact where it must be, and as wrong as it says elsewhere."""

from math import comb, sqrt

import numpy as np
import pytest
import torch
from scipy.linalg import svdvals

from obverse.weights._decomposition import marchenko_pastur as law
from obverse.weights._decomposition.lanczos import Quadrature, fit_law, fit_scale, own_quadrature
from weights.searches import lanczos


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def normal(rows: int, columns: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(rows, columns, generator=seeded(seed), dtype=dtype)


def moments(found: Quadrature, orders: range) -> np.ndarray:
    """Σ weight · node^(2·order), a row for each start vector."""
    return np.stack([(found.weights * found.nodes ** (2 * order)).sum(1) for order in orders], axis=1)


@pytest.mark.parametrize(("rows", "columns"), [(12, 12), (9, 30), (30, 9), (1, 5)])
def test_as_many_steps_as_the_short_side_give_all_singular_values(rows, columns):
    matrix = normal(rows, columns)
    found = lanczos(matrix, steps=1000, vectors=3, generator=seeded(1))
    expected = svdvals(matrix.numpy())[::-1]
    assert found.nodes.shape == (3, min(rows, columns))
    # rounding of AAᵀ, magnified by the root of its smallest eigenvalue
    assert found.nodes == pytest.approx(np.tile(expected, (3, 1)), rel=1e-9, abs=1e-9)
    assert found.weights.sum(1) == pytest.approx(np.ones(3), abs=1e-12)


def test_k_steps_integrate_polynomials_up_to_degree_2k_minus_1_and_no_further():
    matrix = normal(20, 33) / 7
    whole = lanczos(matrix, steps=20, vectors=2, generator=seeded(4))
    part = lanczos(matrix, steps=5, vectors=2, generator=seeded(4))  # the same start vectors
    assert part.nodes.shape == (2, 5)
    assert moments(part, range(10)) == pytest.approx(moments(whole, range(10)), rel=1e-10)
    assert (moments(part, range(10, 11)) < moments(whole, range(10, 11)) * (1 - 1e-6)).all()


def test_the_moments_are_those_of_the_matrix_on_average_over_start_vectors():
    matrix = normal(25, 40) / 8
    found = lanczos(matrix, steps=6, vectors=400, generator=seeded(5))
    squares = np.linalg.eigvalsh((matrix @ matrix.T).numpy())
    seen = moments(found, range(5))
    error = seen.std(0, ddof=1) / sqrt(400)
    for order in range(1, 5):
        assert abs(seen[:, order].mean() - (squares**order).mean()) < 4 * error[order]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_node_is_within_its_residual_of_a_singular_value(dtype):
    matrix = normal(60, 90, dtype=dtype)
    matrix[0] *= 8  # one far outside the bulk, converged after 20 steps
    found = lanczos(matrix, steps=20, vectors=3, generator=seeded(2))
    expected = svdvals(matrix.double().numpy())
    nearest = np.abs(found.nodes[..., None] - expected).min(-1)
    rounding = 20 * torch.finfo(dtype).eps * expected[0] ** 2 / found.nodes
    assert (nearest <= found.residuals + rounding).all()
    assert (found.residuals[:, -1] < 1e-4 * expected[0]).all()
    assert (found.residuals[:, 10] > 1e-3).all()
    assert found.nodes[:, -1] == pytest.approx(np.full(3, expected[0]), rel=1e-5)


def test_the_residual_is_that_of_the_eigenvector():
    matrix = normal(15, 25)
    first = lanczos(matrix, steps=1, vectors=2, generator=seeded(6))
    # of one step: ‖Av − θv‖² = ⟨A²⟩ − ⟨A⟩² for A = WWᵀ in the start vector v
    mean, square = moments(lanczos(matrix, steps=15, vectors=2, generator=seeded(6)), range(1, 3)).T
    assert first.nodes[:, 0] == pytest.approx(np.sqrt(mean), rel=1e-10)
    assert first.residuals[:, 0] == pytest.approx(np.sqrt(square - mean**2) / np.sqrt(mean), rel=1e-8)


def test_the_same_seed_gives_the_same_quadrature_and_another_another():
    matrix = normal(30, 30, dtype=torch.float32)
    first, again, other = (lanczos(matrix, steps=8, vectors=2, generator=seeded(s)) for s in (1, 1, 2))
    assert (first.nodes == again.nodes).all()
    assert (first.weights == again.weights).all()
    assert not (first.nodes == other.nodes).all()


def test_a_transpose_has_the_same_density():
    matrix = normal(30, 50)
    one = lanczos(matrix, steps=10, vectors=1, generator=seeded(1))
    two = lanczos(matrix.T, steps=10, vectors=1, generator=seeded(1))
    assert one.nodes == pytest.approx(two.nodes, rel=1e-10)


def test_half_of_a_node_s_weight_lies_below_it():
    found = Quadrature(np.array([[1.0, 2.0, 3.0]]), np.array([[0.5, 0.2, 0.3]]), np.zeros((1, 3)))
    assert found.shares == pytest.approx(np.array([[0.25, 0.6, 0.85]]))


@pytest.mark.parametrize(("rows", "columns"), [(50, 50), (200, 80), (30, 3000)])
@pytest.mark.parametrize("steps", [1, 2, 7])
def test_the_law_s_own_quadrature_has_its_moments(rows, columns, steps):
    found = own_quadrature(steps, rows, columns)
    ratio, long = min(rows, columns) / max(rows, columns), max(rows, columns)
    assert moments(found, range(1)).item() == pytest.approx(1, rel=1e-12)
    for order in range(1, 2 * steps):
        counted = sum(  # Narayana numbers
            ratio**block / (block + 1) * comb(order, block) * comb(order - 1, block) for block in range(order)
        )
        assert moments(found, range(order, order + 1)).item() == pytest.approx(
            counted * long**order, rel=1e-10
        )


def test_more_steps_resolve_smaller_distances():
    def resolution(steps: int, rows: int, columns: int) -> float:
        own = own_quadrature(steps, rows, columns)
        return float(np.abs(own.shares - law.cdf(own.nodes, rows, columns, 1.0)).max())

    for rows, columns in ((1000, 1000), (1000, 4000), (100, 5000)):
        fine = [resolution(steps, rows, columns) for steps in (8, 16, 32, 96)]
        assert fine == sorted(fine, reverse=True)
        assert fine[1] < 0.005  # what the quick density promises
        assert fine[3] < 0.001


def test_the_scale_is_fitted_to_the_middle_alone():
    rows, columns = 120, 200
    shares = (np.arange(rows) + 0.5) / rows
    values = 0.7 * law.quantiles(shares, rows, columns)
    assert fit_scale(values, shares, rows, columns) == pytest.approx(0.7, rel=1e-12)
    values[-12:] *= 10
    values[:12] = 0
    assert fit_scale(values, shares, rows, columns) == pytest.approx(0.7, rel=1e-12)
    values[60:70] *= 2
    assert fit_scale(values, shares, rows, columns) > 0.75


def test_the_scale_is_that_of_least_squares():
    rows, columns = 40, 90
    values = svdvals(normal(rows, columns, 8).numpy())[::-1]
    shares = (np.arange(rows) + 0.5) / rows
    middle = (shares > 0.1) & (shares < 0.9)
    expected = law.quantiles(shares[middle], rows, columns)
    slope = np.linalg.lstsq(expected[:, None], values[middle], rcond=None)[0].item()
    assert fit_scale(values, shares, rows, columns) == pytest.approx(slope, rel=1e-12)


def structured(kind: str, rows: int, columns: int) -> torch.Tensor:
    matrix = normal(rows, columns, 3, torch.float32)
    if kind == "rows":
        matrix *= torch.linspace(0.4, 1.6, rows)[:, None]
    if kind == "columns":
        matrix *= torch.where(torch.arange(columns) % 2 == 0, 0.5, 1.5)
    return matrix


@pytest.mark.parametrize("kind", ["noise", "rows", "columns"])
@pytest.mark.parametrize(("rows", "columns"), [(400, 400), (300, 800)])
@pytest.mark.parametrize(("steps", "vectors"), [(16, 8), (48, 4)])
def test_the_distance_is_that_of_the_singular_values_within_its_error(kind, rows, columns, steps, vectors):
    matrix = structured(kind, rows, columns)
    values = svdvals(matrix.numpy())[::-1].astype(np.float64)
    shares = (np.arange(len(values)) + 0.5) / len(values)
    scale = fit_scale(values, shares, rows, columns)
    exact = law.ks_distance(law.cdf(values, rows, columns, scale))
    fit = fit_law(lanczos(matrix, steps=steps, vectors=vectors, generator=seeded(7)), rows, columns)
    # `error` is one standard error, and the resolution
    assert abs(fit.distance - exact) < 3 * fit.error
    # a share u below a point, as a random vector sees it, has variance 2u(1 − u)/size: ½/size in the middle;
    # the largest of many standard errors from few vectors is up to twice the true one
    assert 0 < fit.error < 2 * sqrt(0.5 / (len(values) * vectors)) + 0.005
    if kind == "noise":
        assert fit.scale == pytest.approx(scale, rel=0.05)  # of quantiles whose shares are that uncertain
    else:
        assert fit.distance > 3 * fit.error


def test_one_start_vector_states_its_resolution_alone():
    found = lanczos(normal(50, 80), steps=50, vectors=1, generator=seeded(1))
    own = own_quadrature(50, 50, 80)
    resolution = np.abs(own.shares - law.cdf(own.nodes, 50, 80, 1.0)).max()
    assert fit_law(found, 50, 80).error == pytest.approx(resolution, rel=1e-9)


def test_equal_singular_values_are_one_node_with_all_the_weight():
    matrix = torch.linalg.qr(normal(60, 60, dtype=torch.float32)).Q
    found = lanczos(matrix, steps=30, vectors=4, generator=seeded(1))
    assert found.weights.max(axis=1) == pytest.approx(np.ones(4), abs=1e-5)
    assert found.nodes[found.weights > 0.5] == pytest.approx(np.ones(4), abs=1e-5)
    # all of the law's mass lies to one side of a jump from 0 to 1 at some place: never less than one half
    assert fit_law(found, 60, 60).distance >= 0.49
