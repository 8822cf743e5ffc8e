"""Near-identity factors: hand examples, the formula by other routines, hard spectra, every refusal."""

from __future__ import annotations

from importlib import import_module
from math import cos, e, exp, log, pi, sin, sqrt

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import block_diag, fractional_matrix_power, logm, polar
from scipy.linalg import expm as exponential
from scipy.stats import ortho_group

from obverse._core.errors import BadInput, ObverseError
from obverse.identity._factorize import angle, bound, factorize, gamma, min_layers, product

module = import_module("obverse.identity._factorize")
EPS = np.finfo(float).eps


def turned(matrix):
    """The matrix, or with its first row turned round: det > 0."""
    matrix = np.array(matrix, dtype=float)
    if np.linalg.slogdet(matrix)[0] < 0:
        matrix[0] *= -1
    return matrix


def multiplied(factors):
    result = np.eye(len(factors[0]))
    for factor in factors:
        result = (np.eye(len(factor)) + factor.numpy()) @ result
    return result


def norm(matrix) -> float:
    return float(np.linalg.norm(np.asarray(matrix), 2))


def with_condition(size: int, condition: float, seed: int):
    rng = np.random.default_rng(seed)
    left, right = (ortho_group.rvs(size, random_state=rng) if size > 1 else np.eye(1) for _ in range(2))
    return turned(left @ np.diag(np.logspace(0, -np.log10(condition), size)) @ right)


def check(matrix, layers: int) -> tuple[torch.Tensor, ...]:
    """The product is the matrix and every factor is within the guarantee, by numpy alone."""
    matrix = np.array(matrix, dtype=float)
    size = len(matrix)
    values = np.linalg.svd(matrix, compute_uv=False)
    factors = factorize(matrix, layers).factors
    assert len(factors) == layers
    assert all(factor.dtype == torch.float64 and factor.shape == matrix.shape for factor in factors)
    stretch = max(abs(np.log(values)))
    # What was allowed for in the computation: 100 roundings an entry in the split of Q, of which 2√d make a
    # norm, one a layer, and γ of them in the logarithm of a singular value.
    rounding = (2 * 100 + layers + stretch) * sqrt(size) * EPS * max(1.0, values[0] ** (-1 / layers))
    assert norm((multiplied(factors) - matrix) / values[0]) < rounding
    limit = 2 * sin(pi / 2 / layers) + exp(stretch / layers) - 1
    assert max(map(norm, factors)) <= limit * (1 + rounding) + rounding
    return factors


def test_half_a_turn_in_two_quarters():
    one, two = check(-np.eye(2), 2)
    step = np.eye(2) + one.numpy()
    assert np.allclose(abs(step), [[0, 1], [1, 0]], atol=4 * EPS)  # a few roundings of cos(π/2)
    assert np.allclose(step @ step, -np.eye(2), atol=4 * EPS)
    assert np.allclose(one, two, atol=4 * EPS)


@pytest.mark.parametrize("layers", [1, 2, 3, 7, 64])
def test_the_identity_needs_no_steps(layers: int):
    assert all(not factor.any() for factor in factorize(np.eye(3), layers).factors)


@pytest.mark.parametrize("layers", [1, 2, 5, 100])
def test_one_dimension_is_a_root(layers: int):
    for factor in check([[5.0]], layers):
        assert float(factor) == pytest.approx(5 ** (1 / layers) - 1, rel=10 * EPS * layers)


def test_a_positive_definite_matrix_has_equal_factors():
    root = np.random.default_rng(0).standard_normal((6, 6))
    matrix = root @ root.T + np.eye(6)
    expected = fractional_matrix_power(matrix, 1 / 9) - np.eye(6)
    for factor in check(matrix, 9):
        assert norm(factor.numpy() - expected) < 1000 * EPS  # a few hundred roundings in scipy's root


@pytest.mark.parametrize("size", [2, 3, 6, 11])
@pytest.mark.parametrize("layers", [1, 2, 5])
def test_factors_are_the_formula_by_other_routines(size: int, layers: int):
    """A_i = Q^{i/l} P^{1/l} Q^{−(i−1)/l} − I, from scipy's polar form, logarithm, exponential and root."""
    rng = np.random.default_rng(size)
    skew = rng.standard_normal((size, size))
    skew = 2.5 * (skew - skew.T) / norm(skew - skew.T)
    root = rng.standard_normal((size, size))
    matrix = exponential(skew) @ (root @ root.T + 0.1 * np.eye(size))
    rotation, stretch = polar(matrix)
    logarithm = logm(rotation).real
    for index, factor in enumerate(check(matrix, layers), start=1):
        expected = (
            exponential(index / layers * logarithm)
            @ fractional_matrix_power(stretch, 1 / layers)
            @ exponential(-(index - 1) / layers * logarithm)
        )
        # scipy's logarithm is good to about 1e-13 where angles reach 2.5
        assert norm(factor.numpy() + np.eye(size) - expected) < 1e-12 * max(1.0, norm(expected))


def test_all_factors_share_their_singular_values():
    factors = check(turned(np.random.default_rng(2).standard_normal((7, 7))), 12)
    first = np.linalg.svd(factors[0], compute_uv=False)
    for factor in factors[1:]:
        assert np.linalg.svd(factor, compute_uv=False) == pytest.approx(first, abs=100 * EPS)


HARD = {
    "minus identity": -np.eye(6),
    "two turned": np.diag([-1.0, -1.0, 1.0]),
    "half a turn, stretched": -np.diag([e, 1 / e]),
    "Jordan": np.eye(7) + np.diag(np.ones(6), 1),
    "Jordan, eigenvalue −1": -np.eye(8) + np.diag(np.ones(7), 1),
    "Jordan, eigenvalue −2, odd": block_diag(-2 * np.eye(4) + np.diag(np.ones(3), 1), [[3.0]]),
    "cycle": turned(np.eye(9)[np.roll(np.arange(9), 1)]),
    "transpositions": np.eye(4)[[1, 0, 3, 2]],
    "triangular": np.triu(np.ones((9, 9))),
    "Hilbert": 1 / (np.arange(6)[:, None] + np.arange(6) + 1.0),
    "repeated singular values": 3 * turned(ortho_group.rvs(8, random_state=np.random.default_rng(1))),
    "integers": turned(np.array([[2, 7, 1], [8, 2, 8], [1, 8, 2]])),
}


@pytest.mark.parametrize("layers", [1, 2, 3, 16, 257])
@pytest.mark.parametrize("name", HARD)
def test_hard_matrices(name: str, layers: int):
    check(turned(HARD[name]), layers)


@pytest.mark.parametrize("size", [1, 2, 5, 40])
@pytest.mark.parametrize("condition", [1e3, 1e6, 1e12])
@pytest.mark.parametrize("layers", [1, 4, 60])
def test_condition_numbers(size: int, condition: float, layers: int):
    check(with_condition(size, condition, seed=size), layers)


def test_what_an_ill_conditioned_matrix_keeps():
    """The direction of σ_min = 1e-12 keeps what rounding leaves it: eps·κ = 2e-4, a few times over."""
    matrix = with_condition(30, 1e12, seed=3)
    _, values, right = np.linalg.svd(matrix)
    error = (multiplied(factorize(matrix, 20).factors) - matrix) @ right[-1]
    assert np.linalg.norm(error) / values[-1] < 20 * EPS * 1e12


@pytest.mark.parametrize("scale", [1e-290, 1e-150, 1e150, 1e290])
@pytest.mark.parametrize("layers", [60, 400])
def test_scales(scale: float, layers: int):
    check(scale * turned(np.random.default_rng(4).standard_normal((5, 5))), layers)


def test_a_huge_matrix_in_one_layer():
    matrix = 1e290 * turned(np.random.default_rng(4).standard_normal((5, 5)))
    check(matrix, 1)


def test_layers_too_few_for_a_tiny_matrix():
    with pytest.raises(BadInput, match=r"got 3 for σ_max = 1e-150; use at least 19 layers"):
        factorize(1e-150 * np.eye(2), 3)
    check(1e-150 * np.eye(2), 19)


@settings(max_examples=60, deadline=None)
@given(
    size=st.integers(1, 12),
    reflections=st.integers(0, 6),
    spread=st.sampled_from([0.0, 0.1, 3.0, 20.0]),
    layers=st.integers(1, 40),
    seed=st.integers(0, 10**6),
)
def test_reflections_and_stretches(size: int, reflections: int, spread: float, layers: int, seed: int):
    rng = np.random.default_rng(seed)
    matrix = np.diag(np.exp(rng.uniform(-spread / 2, spread / 2, size)))
    for _ in range(2 * reflections):
        normal = rng.standard_normal(size)
        matrix = matrix - 2 * np.outer(normal, normal @ matrix) / (normal @ normal)
    check(matrix, layers)


@settings(max_examples=60, deadline=None)
@given(
    angles=st.lists(
        st.sampled_from([0.0, 1e-9, 0.5, 0.5 + 1e-10, pi / 2, pi - 1e-8, pi]), min_size=1, max_size=5
    ),
    values=st.sampled_from([[1.0], [1.0, 1 + 1e-12], [3.0, 1.0], [1e-6, 1.0, 1e6]]),
    odd=st.booleans(),
    layers=st.integers(1, 20),
    seed=st.integers(0, 10**6),
)
def test_clustered_spectra(angles, values, odd: bool, layers: int, seed: int):
    blocks = [np.array([[cos(a), -sin(a)], [sin(a), cos(a)]]) for a in angles]
    middle = block_diag(*blocks, *([[[1.0]]] if odd else []))
    rng = np.random.default_rng(seed)
    left, right = (ortho_group.rvs(len(middle), random_state=rng) for _ in range(2))
    check(left @ middle @ left.T @ right @ np.diag(rng.choice(values, len(middle))) @ right.T, layers)


def test_any_kind_of_matrix_is_read():
    rows = [[2, 1], [1, 3]]
    expected = factorize(np.array(rows, dtype=float), 3).factors
    kinds = [
        rows,
        tuple(map(tuple, rows)),
        np.array(rows),
        np.array(rows, dtype=np.float32),
        np.array(rows, dtype=np.uint8),
        np.array(rows, dtype=float)[::-1][::-1],
        torch.tensor(rows),
        torch.tensor(rows, dtype=torch.float32),
        torch.tensor(rows, dtype=torch.float16),
        torch.tensor(rows, dtype=torch.float64, requires_grad=True),
        torch.tensor(rows, dtype=torch.float64).T,
    ]
    for kind in kinds:
        found = factorize(kind, 3).factors
        assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
        assert not any(factor.requires_grad for factor in found)
    assert len(factorize(rows, np.int64(3)).factors) == 3


def test_the_input_and_the_global_generator_are_left_alone():
    matrix = torch.tensor(turned(np.random.default_rng(0).standard_normal((5, 5))))
    kept, state = matrix.clone(), torch.get_rng_state()
    once, again = factorize(matrix, 4).factors, factorize(matrix, 4).factors
    assert torch.equal(matrix, kept)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(a, b) for a, b in zip(once, again, strict=True))


def test_each_factor_has_its_own_memory():
    factors = factorize([[2.0, 1.0], [0.0, 1.0]], 5).factors
    assert all(factor.untyped_storage().nbytes() == 4 * 8 for factor in factors)


@pytest.mark.parametrize(
    ("matrix", "said"),
    [
        (np.ones((2, 3)), r"square.*shape \(2, 3\)"),
        (np.ones(4), r"square.*shape \(4,\)"),
        (3.0, r"square.*shape \(\)"),
        (np.ones((2, 2, 2)), "square"),
        (np.ones((0, 0)), "square"),
        ([], "square"),
        ([[1.0, 2.0], [3.0]], "one length"),
        ([["a", "b"], ["c", "d"]], "real numbers"),
        ([[None, 1], [1, 1]], "real numbers"),
        ("matrix", "real numbers"),
        (np.eye(2) * 1j, "real numbers"),
        (torch.eye(2) * 1j, "real matrix"),
        (torch.eye(2).to_sparse(), "dense"),
        ([[1.0, float("nan")], [0.0, 1.0]], "finite"),
        ([[1.0, float("inf")], [0.0, 1.0]], "finite"),
        (np.zeros((3, 3)), "invertible.*rank 0 of 3"),
        (np.ones((3, 3)), "invertible.*rank 1 of 3"),
        ([[0.0]], "invertible"),
        (np.diag([1.0, 1e-17]), "invertible.*σ_min = 1e-17"),
        (1e305 * np.eye(2), "rescale"),
        (1e-305 * np.eye(2), "rescale"),
    ],
)
def test_matrices_without_a_factorization(matrix, said: str):
    for call in (lambda: factorize(matrix, 4), lambda: gamma(matrix), lambda: min_layers(matrix, 0.5)):
        with pytest.raises(BadInput, match=said):
            call()


@pytest.mark.parametrize("matrix", [[[-2.0]], np.eye(3)[[1, 0, 2]], np.diag([1.0, 1.0, -1e-9]), -np.eye(5)])
def test_a_negative_determinant_is_refused_with_the_reason(matrix):
    for call in (factorize, min_layers):
        with pytest.raises(BadInput, match=r"det R > 0, for I \+ A with ‖A‖ < 1 has det > 0.*got det R < 0"):
            call(matrix, 4)


def test_the_way_round_a_negative_determinant():
    matrix = np.diag([2.0, -3.0])
    matrix[1] *= -1
    assert np.diag([1, -1]) @ multiplied(factorize(matrix, 3).factors) == pytest.approx(np.diag([2.0, -3.0]))


@pytest.mark.parametrize("layers", [0, -1, 2.0, True, "3", None])
def test_layers_must_be_a_number_of_them(layers):
    for call in (lambda: factorize(np.eye(2), layers), lambda: bound(1.0, layers)):
        with pytest.raises(BadInput, match="whole number of layers"):
            call()


def test_a_product_is_what_numpy_makes_of_it():
    rng = np.random.default_rng(0)
    factors = [torch.tensor(rng.standard_normal((4, 4))) for _ in range(5)]
    assert product(factors).numpy() == pytest.approx(multiplied(factors), rel=100 * EPS, abs=1e-12)
    single = [factor.float() for factor in factors]
    assert product(single).dtype == torch.float64


@pytest.mark.parametrize("factors", [[], [torch.eye(2), torch.eye(3)], [torch.ones(2, 3)], [torch.ones(3)]])
def test_products_of_other_things_are_refused(factors):
    with pytest.raises(BadInput, match="square matrix"):
        product(factors)


@pytest.mark.parametrize("seed", range(5))
def test_gamma_is_the_larger_logarithm(seed: int):
    matrix = np.random.default_rng(seed).standard_normal((6, 6))
    expected = max(abs(log(norm(matrix))), abs(log(norm(np.linalg.inv(matrix)))))
    assert gamma(matrix) == pytest.approx(expected, rel=1e-12)  # rounding of the inverse, κ·eps


def test_gamma_is_smallest_at_the_middle_of_the_singular_values():
    matrix = np.random.default_rng(1).standard_normal((6, 6))
    values = np.linalg.svd(matrix, compute_uv=False)
    best = gamma(matrix / sqrt(values[0] * values[-1]))
    assert best == pytest.approx(log(values[0] / values[-1]) / 2)
    assert all(gamma(scale * matrix) >= best for scale in np.logspace(-2, 2, 41))


def test_the_bound_of_theorem_2_is_larger():
    for layers in range(1, 300):
        for stretch in np.linspace(0, layers, 7):
            assert bound(stretch, layers) <= (4 * pi + 3 * stretch) / layers


def test_the_bound_is_reached_and_approached():
    for layers in (1, 2, 3, 50):
        half = norm(factorize(-np.eye(4), layers).factors[0])
        assert half == pytest.approx(bound(0.0, layers), rel=10 * EPS)
        assert norm(factorize(e * np.eye(3), layers).factors[0]) == pytest.approx(
            bound(1.0, layers, angle=0.0), rel=10 * EPS * layers
        )
    # one eigenvalue of P^{1/l} above 1, one below, both turned: short of the bound by γ²/2l² to first order
    for layers in (32, 256):
        short = 1 - norm(factorize(-np.diag([e, 1 / e]), layers).factors[0]) / bound(1.0, layers)
        assert 0 < short < 1.2 / (2 * layers * (pi + 1))


def test_bounds_of_other_things_are_refused():
    for arguments in ((-1.0, 3), (float("nan"), 3), (float("inf"), 3), (1.0, 3, 4.0), (1.0, 3, -1.0)):
        with pytest.raises(BadInput):
            bound(*arguments)
    assert bound(1e9, 2) == float("inf")


@pytest.mark.parametrize("turning", [False, True])
@pytest.mark.parametrize("limit", [3.0, 1.0, 0.3, 0.1, 0.0123])
@pytest.mark.parametrize("seed", range(3))
def test_the_fewest_layers_by_trying_all(limit: float, seed: int, turning: bool):
    matrix = turned(np.random.default_rng(seed).standard_normal((4, 4)))
    stretch, most = gamma(matrix), angle(matrix) if turning else pi
    layers = 1
    while 2 * sin(most / 2 / layers) + np.expm1(stretch / layers) > limit:
        layers += 1
    assert min_layers(matrix, limit, turning=turning) == layers
    assert max(map(norm, factorize(matrix, layers).factors)) <= limit * (1 + 1000 * EPS)


def test_the_fewest_layers_of_large_and_tiny_bounds():
    assert min_layers(np.eye(2), 2.0) == 1
    assert min_layers(np.eye(2), 1e300) == 1
    assert min_layers(np.eye(2), 1.9999999) == 2
    assert min_layers(np.eye(2), 1e-300, turning=True) == 1
    for limit in (1e-9, 1e-100, 1e-300):
        layers = min_layers(np.eye(2), limit)
        assert 0 <= layers - pi / limit <= 1 + 10 * EPS * layers
        assert bound(0.0, layers) <= limit
    assert bound(0.0, min_layers(np.eye(2), 1e-9) - 1) > 1e-9


@pytest.mark.parametrize("limit", [0.0, -1.0, 1e-301, float("nan"), float("inf")])
def test_bounds_that_no_number_of_layers_reaches(limit: float):
    with pytest.raises(BadInput, match="at least 1e-300"):
        min_layers(np.eye(2), limit)


def test_the_largest_angle():
    assert angle(-np.eye(2)) == pi
    assert angle(np.diag([1.0, 5.0, 2.0])) == pytest.approx(0, abs=100 * EPS)  # couplings that are dropped
    assert angle([[0.0, -7.0], [7.0, 0.0]]) == pytest.approx(pi / 2)
    with pytest.raises(BadInput, match="det"):
        angle([[-1.0]])


def spoiled(monkeypatch, spoil) -> None:
    """Let factors be changed before they are checked."""
    honest = module._check

    def check(given, polar, rotation, batches, layers):
        spoil(batches)
        honest(given, polar, rotation, batches, layers)

    monkeypatch.setattr(module, "_check", check)


@pytest.mark.parametrize("size", [3, 300])  # many factors in a batch, and one
@pytest.mark.parametrize("which", [0, -1])
def test_a_factor_beyond_the_guarantee_is_found_out(monkeypatch, size: int, which: int):
    def spoil(batches):
        batches[which][which, 0, 0] += 10.0

    spoiled(monkeypatch, spoil)
    with pytest.raises(ObverseError, match=r"‖A_i‖ within the guarantee .* the matrix is not at fault"):
        factorize(turned(np.random.default_rng(0).standard_normal((size, size))), 3)


@pytest.mark.parametrize("size", [3, 300])
def test_a_product_that_is_another_matrix_is_found_out(monkeypatch, size: int):
    """One entry off by 1e-8: no norm tells."""

    def spoil(batches):
        for batch in batches:
            batch[:, 0, 1] += 1e-8

    spoiled(monkeypatch, spoil)
    matrix = turned(ortho_group.rvs(size, random_state=np.random.default_rng(0))) * 1.5
    with pytest.raises(ObverseError, match=r"expected (‖\(I \+ A_l\)|‖A_i‖).*got"):
        factorize(matrix, 3)


def test_the_guarantee_is_compared(monkeypatch):
    monkeypatch.setattr(module, "bound", lambda *_: 0.9 * bound(*_))
    with pytest.raises(ObverseError, match="guarantee"):
        factorize(-np.eye(2), 3)


def test_large_matrices_and_deep_products():
    check(turned(np.random.default_rng(0).standard_normal((300, 300))), 3)
    check(turned(np.random.default_rng(0).standard_normal((4, 4))), 4096)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["normal", "one angle"])
def test_two_thousand_dimensions(kind: str):
    rng = np.random.default_rng(0)
    matrix = turned(rng.standard_normal((2000, 2000)))
    if kind == "one angle":  # nothing is split by eigenvectors: all is left to the real Schur form
        x, _ = np.linalg.qr(matrix)
        matrix = x @ np.kron(np.eye(1000), [[cos(1), -sin(1)], [sin(1), cos(1)]]) @ x.T
    check(matrix, 3)


def test_what_was_found_is_a_value_that_says_what_it_is():
    matrix = turned(np.random.default_rng(3).standard_normal((4, 4)))
    found = factorize(matrix, 6)
    # up to rounding: sums of 4 products in 6 layers, each eps of its size
    assert found.product.numpy() == pytest.approx(multiplied(found.factors), rel=1e-12, abs=1e-12)
    assert found.gamma == pytest.approx(np.abs(np.log(np.linalg.svd(matrix)[1])).max(), rel=1e-12)
    assert found.bound == bound(found.gamma, 6)
    assert [norm(one) for one in found.factors] == pytest.approx([found.distance] * 6, rel=1e-12)
    assert found.distance <= found.bound
    assert str(found) == f"4 × 4 in 6 steps I + A: ‖A‖ {found.distance:.3g}, guaranteed {found.bound:.3g}"
    assert str(factorize(np.eye(2), 1)) == "2 × 2 in 1 step I + A: ‖A‖ 0, guaranteed 2"
    assert "\n" not in repr(found)
    assert len(repr(found)) < 120
    assert np.array(found.to_dict()["factors"]).shape == (6, 4, 4)
    with pytest.raises(AttributeError):
        found.bound = 1.0
