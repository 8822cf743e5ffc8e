"""The closed forms of recovery against integrals, explicit normal matrices and scipy's minimizer."""

from math import sqrt

import pytest
import torch
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from obverse._core.errors import BadInput
from obverse.shadow import best_threshold, recovery_error


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def sparse(rows: int, m: int, k: int, seed: int = 0) -> torch.Tensor:
    """Rows with k half-normal non-zeros in random places, ‖h‖ = 1."""
    generator = seeded(seed)
    h = torch.zeros(rows, m, dtype=torch.float64)
    for row in h:
        places = torch.randperm(m, generator=generator)[:k]
        row[places] = torch.randn(k, generator=generator, dtype=torch.float64).abs()
    return h / h.norm(dim=1, keepdim=True)


def by_integration(h: list[float], kept: float, threshold: float, inputs: int | None) -> float:
    """Σ E[(r(h_i − θ + s g) − h_i)²] / ‖h‖², one integral over the normal density a coordinate."""
    energy = sum(value**2 for value in h)
    total = 0.0
    for value in h:
        variance = 2 / kept * (energy + 2 * value**2) - (value**2 / inputs if inputs else 0)

        def term(g: float, value: float = value, s: float = sqrt(variance)) -> float:
            return (max(value - threshold + s * g, 0.0) - value) ** 2 * norm.pdf(g)

        kink = min(max((threshold - value) / sqrt(variance), -12), 12)
        total += sum(quad(term, *ends, epsabs=1e-13, epsrel=1e-11)[0] for ends in ((-12, kink), (kink, 12)))
    return total / energy


@pytest.mark.parametrize("threshold", [0.0, 0.05, 0.4, 3.0])
@pytest.mark.parametrize(("kept", "inputs"), [(3.0, None), (30.0, 40), (800.0, 800), (1e5, None)])
def test_the_formula_is_the_integral_over_the_noise(kept, inputs, threshold):
    h = torch.tensor([0.9, 0.0, 0.3, 0.0, 1e-3, 2.0], dtype=torch.float64)
    expected = by_integration(h.tolist(), kept, threshold, inputs)
    # quad's own tolerance, on terms of the size of h² and of the noise
    assert float(recovery_error(h, kept, threshold, inputs)) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def recover(h: torch.Tensor, n: int, keep: float, seed: int) -> torch.Tensor:
    """(Wᵀx) for x = r(αWh) ⊙ mask, a new normal W for each row of h."""
    generator = seeded(seed)
    result = torch.empty_like(h)
    for index, row in enumerate(h):
        weights = torch.randn(n, len(row), generator=generator)  # the paper's W
        mask = torch.rand(n, generator=generator) < keep
        x = torch.relu(2 / (keep * n) * (weights @ row.float())) * mask
        result[index] = (weights.T @ x).double()
    return result


@pytest.mark.parametrize(
    ("n", "m", "k", "keep", "rows"),
    [(1000, 500, 10, 1.0, 200), (2000, 300, 30, 0.3, 120), (600, 1000, 5, 1.0, 120)],
)
def test_explicit_normal_matrices_have_the_predicted_moments_and_error(n, m, k, keep, rows):
    h = sparse(rows, m, k)
    response = recover(h, n, keep, seed=1)
    best = float(best_threshold(h, keep * n, n, shared=True)[0])
    for threshold in (0.0, best / 2, best, 1.5 * best):
        errors = ((response - threshold).clamp(min=0) - h).square().sum(1)
        predicted = recovery_error(h, keep * n, threshold, n)
        standard_error = float((errors - predicted).std()) / sqrt(rows)
        # theory §1: the normal approximation of ĥ is good to 3 % from t ≈ 500 on
        allowed = 4 * standard_error + 0.03 * float(predicted.mean())
        assert abs(float((errors - predicted).mean())) < allowed
    # v_i itself is exact: no normal approximation in the variance of the coordinates, on and off the support
    variance = 2 / (keep * n) * (1 + 2 * h**2) - h**2 / n
    standardized = ((response - h).square() / variance)[h > 0]
    # a squared normal has variance 2; ĥ_i has excess kurtosis about 18/t, and rows are independent
    assert abs(float(standardized.mean()) - 1) < 4 * sqrt((2 + 18 / (keep * n)) / len(standardized))


@pytest.mark.slow
def test_the_setting_of_the_theory_page():
    """n = 8000, m = 2000, k = 40, t = 800: 0.3042 was predicted where 0.3015 was measured."""
    h = sparse(24, 2000, 40)
    threshold = best_threshold(h, 800, 8000, shared=True)
    predicted = recovery_error(h, 800, threshold, 8000)
    assert float(predicted.mean()) == pytest.approx(0.304, abs=0.01)  # other draws of h
    response = recover(h, 8000, 0.1, seed=2)
    errors = ((response - threshold[:, None]).clamp(min=0) - h).square().sum(1)
    standard_error = float((errors - predicted).std()) / sqrt(len(h))
    assert abs(float((errors - predicted).mean())) < 4 * standard_error + 0.03 * float(predicted.mean())


@pytest.mark.parametrize(
    ("m", "k", "kept", "inputs"),
    [(2000, 40, 800, 8000), (50, 1, 20, None), (300, 300, 1000, 1000), (1000, 10, 1e5, None), (8, 2, 2, 2)],
)
def test_the_best_threshold_is_the_one_scipy_finds(m, k, kept, inputs):
    h = 3.7 * sparse(3, m, k)
    found = best_threshold(h, kept, inputs)
    assert found.shape == (3,)
    for row, threshold in zip(h, found.tolist(), strict=True):

        def error(theta: float, row: torch.Tensor = row) -> float:
            return float(recovery_error(row, kept, theta, inputs))

        noise = sqrt(2 / kept) * 3.7
        start = min((i * noise / 10 for i in range(201)), key=error)
        bounds = (max(start - noise / 10, 0.0), start + noise / 10)
        oracle = minimize_scalar(error, bounds=bounds, method="bounded", options={"xatol": 1e-10 * noise})
        assert error(threshold) <= oracle.fun * (1 + 1e-12)
        # the error is flat at its minimum: scipy, which sees only values, stops √eps = 1.5e-8 away or earlier
        assert threshold == pytest.approx(oracle.x, rel=1e-6)


def test_one_shared_threshold_has_the_least_mean_error_and_follows_the_norms():
    h = torch.cat((sparse(4, 200, 3), sparse(4, 200, 60, seed=1))) * torch.arange(1, 9)[:, None]
    shared = best_threshold(h, 400, shared=True)
    relative = shared / h.norm(dim=1)
    torch.testing.assert_close(relative, relative[:1].expand(8))
    grid = torch.linspace(0, 8, 801, dtype=torch.float64) * sqrt(2 / 400)
    best = min(grid.tolist(), key=lambda cut: float(recovery_error(h, 400, cut * h.norm(dim=1)).mean()))
    assert float(relative[0]) == pytest.approx(best, abs=float(grid[1]))
    alone = recovery_error(h, 400, best_threshold(h, 400))
    assert bool((alone <= recovery_error(h, 400, shared) + 1e-15).all())


def test_rows_are_independent_and_the_size_of_h_does_not_matter():
    h = sparse(5, 100, 7)
    h[2, h[2] > 0.2] = 0  # another number of non-zeros
    thresholds = torch.arange(5, dtype=torch.float64) / 20
    together = recovery_error(h, 90, thresholds)
    alone = torch.stack([recovery_error(row, 90, cut) for row, cut in zip(h, thresholds, strict=True)])
    torch.testing.assert_close(together, alone)
    torch.testing.assert_close(best_threshold(h, 90), torch.stack([best_threshold(row, 90) for row in h]))
    for size in (1e-200, 1e200):
        torch.testing.assert_close(recovery_error(size * h, 90, size * thresholds), alone)


def test_shapes_and_precision():
    h = sparse(3, 20, 4)
    assert recovery_error(h[0], 10, 0.1).shape == ()
    assert best_threshold(h[0].float(), 10).dtype == torch.float64
    table = recovery_error(h, 10, torch.tensor([[0.0], [0.2]]))
    assert table.shape == (2, 3)
    torch.testing.assert_close(table[1], recovery_error(h, 10, 0.2))


def test_what_is_buried_in_noise_is_best_silenced():
    h = torch.ones(2, 500)
    error = recovery_error(h, 1, best_threshold(h, 1))
    assert bool((error <= 1 + 1e-12).all())
    assert bool((recovery_error(h, 1, 0.0) > 100).all())


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda h: recovery_error(-h, 10, 0.0),
            r"expected h as one vector .*; got shape \(2, 3\), values -1 t",
        ),
        (lambda h: recovery_error(h * torch.nan, 10, 0.0), "finite, ≥ 0 and none of them zero; got .*nan"),
        (
            lambda h: best_threshold(h * torch.tensor([[1.0], [0]]), 10),
            "none of them zero; .*without rows that",
        ),
        (lambda h: best_threshold(h[None], 10), r"one vector or a batch of them, .* got shape \(1, 2, 3\)"),
        (lambda h: recovery_error(h[:, :0], 10, 0.0), r"got shape \(2, 0\), values none"),
        (lambda h: recovery_error(h, 0, 0.0), "expected finite kept > 0; got 0; it is the mean"),
        (lambda h: recovery_error(h, torch.inf, 0.0), "expected finite kept > 0; got inf"),
        (
            lambda h: recovery_error(h, 11, 0.0, inputs=10),
            "expected finite kept > 0 and at most the 10 inputs; got 11",
        ),
        (lambda h: recovery_error(h, 10, torch.nan), "expected a finite threshold; got nan; to silence"),
    ],
)
def test_bad_input_gets_a_sentence(call, sentence):
    with pytest.raises(BadInput, match=sentence):
        call(torch.ones(2, 3))
