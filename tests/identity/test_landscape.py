"""The landscape against simulation, autograd, finite differences and a solver that knows no SVD."""

from math import sqrt

import numpy as np
import pytest
import torch
from torch import Tensor

from obverse._core.errors import BadInput
from obverse.identity import _landscape as landscape
from obverse.identity._landscape import (
    Landscape,
    gradient,
    gradient_bound,
    hessian,
    project,
    risk,
    spectral_norms,
)
from obverse.nets._residual import LinearResidual

SIZES = [(1, 1), (1, 3), (2, 2), (3, 1), (3, 4)]  # d, layers


def problem(d: int, layers: int, seed: int = 0, scale: float = 0.5) -> tuple[Tensor, Tensor, Tensor]:
    """Weights, target and covariance, random, float64."""
    generator = torch.Generator().manual_seed(seed)
    weights = scale * torch.randn(layers, d, d, generator=generator, dtype=torch.float64)
    target = torch.randn(d, d, generator=generator, dtype=torch.float64)
    data = torch.randn(d, 2 * d + 1, generator=generator, dtype=torch.float64)
    return weights, target, data @ data.mT / (2 * d + 1)


def product(weights: Tensor, residual: bool) -> Tensor:
    matrix = torch.eye(weights.shape[1], dtype=weights.dtype)
    for layer in weights:
        matrix = (layer + torch.eye(len(layer)).to(layer) if residual else layer) @ matrix
    return matrix


@pytest.mark.parametrize("residual", [True, False])
def test_risk_is_the_mean_over_a_population_that_can_be_counted(residual):
    """x uniform over five points: Σ and the mean are sums of five terms."""
    weights, target, _ = problem(3, 4)
    x = torch.randn(5, 3, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
    expected = sum(float((target @ point - product(weights, residual) @ point).square().sum()) for point in x)
    found = risk(weights, target, x.mT @ x / 5, residual=residual)
    assert float(found) == pytest.approx(expected / 5, rel=1e-12)  # float64, a few dozen operations


def test_risk_with_noise_is_what_the_net_has_on_data():
    weights, target, covariance = problem(3, 4)
    generator = torch.Generator().manual_seed(1)
    net = LinearResidual(3, 4).double()
    net.weights.data = weights
    count, noise = 200_000, 0.7
    x = torch.randn(count, 3, generator=generator, dtype=torch.float64) @ torch.linalg.cholesky(covariance).mT
    y = x @ target.mT + sqrt(noise) * torch.randn(count, 3, generator=generator, dtype=torch.float64)
    with torch.no_grad():
        losses = (y - net(x)).square().sum(1)
    error = float(losses.std()) / sqrt(count)
    assert abs(float(losses.mean() - risk(weights, target, covariance, noise))) < 5 * error  # standard errors


def test_the_least_risk_is_that_of_the_noise():
    weights, _, covariance = problem(3, 4)
    at_target = risk(weights, product(weights, True), covariance, noise=0.5)
    assert float(at_target) == pytest.approx(1.5, rel=1e-12)  # d·noise, and rounding
    assert not gradient(weights, product(weights, True), covariance).abs().max() > 1e-12


@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize(("d", "layers"), SIZES)
def test_gradient_is_that_of_autograd(d, layers, residual):
    weights, target, covariance = problem(d, layers)
    weights.requires_grad_()
    error = product(weights, residual) - target
    (expected,) = torch.autograd.grad(torch.trace(error @ covariance @ error.mT), weights)
    torch.testing.assert_close(gradient(weights, target, covariance, residual), expected)  # float64 rounding


@pytest.mark.parametrize("residual", [True, False])
def test_gradient_is_a_difference_of_risks(residual):
    weights, target, covariance = problem(2, 3)
    step = 1e-6
    for place in np.ndindex(*weights.shape):
        change = torch.zeros_like(weights)
        change[place] = step
        above = risk(weights + change, target, covariance, residual=residual)
        below = risk(weights - change, target, covariance, residual=residual)
        expected = float(above - below) / (2 * step)
        # a central difference: h² ≈ 1e-12 of third derivatives, and ε/h ≈ 1e-10 of rounding, each times ~10
        assert float(gradient(weights, target, covariance, residual)[place]) == pytest.approx(
            expected, abs=1e-8
        )


@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize(("d", "layers"), SIZES)
def test_hessian_is_that_of_autograd(d, layers, residual):
    weights, target, covariance = problem(d, layers)

    def loss(at: Tensor) -> Tensor:
        error = product(at, residual) - target
        return torch.trace(error @ covariance @ error.mT)

    expected = torch.autograd.functional.hessian(loss, weights).reshape(layers * d**2, layers * d**2)
    torch.testing.assert_close(hessian(weights, target, covariance, residual), expected)


def test_hessian_is_a_difference_of_gradients():
    weights, target, covariance = problem(2, 3)
    direction = torch.randn(weights.shape, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    step = 1e-6
    above, below = (gradient(weights + sign * step * direction, target, covariance) for sign in (1, -1))
    expected = ((above - below) / (2 * step)).flatten()
    found = hessian(weights, target, covariance) @ direction.flatten()
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-7)  # as above, over a direction of length 4


def test_risk_can_be_followed_by_autograd():
    weights, target, covariance = problem(2, 3)
    weights.requires_grad_()
    risk(weights, target, covariance, noise=1.0).backward()
    torch.testing.assert_close(weights.grad, gradient(weights.detach(), target, covariance))


def test_numbers_keep_their_type():
    weights, target, covariance = (tensor.float() for tensor in problem(2, 3))
    for found in (
        risk(weights, target, covariance),
        gradient(weights, target, covariance),
        hessian(weights, target, covariance),
        project(weights, 0.1),
        gradient_bound(weights, target, covariance),
    ):
        assert found.dtype == torch.float32


def test_spectral_norms_are_largest_singular_values():
    weights, _, _ = problem(3, 4)
    expected = [np.linalg.svd(layer, compute_uv=False)[0] for layer in weights.numpy()]
    assert spectral_norms(weights).tolist() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("tau", [0.1, 0.5, 1.5])
def test_projection_has_the_certificate_of_the_nearest_point(tau):
    """P is nearest to A in a convex set iff ⟨A − P, B − P⟩ ≤ 0 for all B in it. The worst B has ⟨A − P, B⟩
    equal to τ times the sum of the singular values of A − P."""
    weights, _, _ = problem(3, 6, scale=1.0)
    found = project(weights, tau)
    assert float(spectral_norms(found).max()) <= tau * (1 + 1e-14)  # of rounding
    for before, after in zip(weights, found, strict=True):
        gap = before - after
        worst = tau * float(torch.linalg.matrix_norm(gap, "nuc")) - float((gap * after).sum())
        assert worst < 1e-13  # rounding of numbers of size 1 to 10


def test_projection_is_what_a_solver_finds():
    from scipy.optimize import NonlinearConstraint, minimize

    matrix = np.array([[1.0, -0.4], [0.3, 0.2]])  # singular values 1.1 and 0.3: no kink where the norm is ½
    tau = 0.5
    inside = NonlinearConstraint(lambda flat: np.linalg.norm(flat.reshape(2, 2), 2), -np.inf, tau)
    solved = minimize(
        lambda flat: ((flat - matrix.ravel()) ** 2).sum(), np.zeros(4), constraints=inside, method="SLSQP",
        options={"ftol": 1e-14},
    )  # fmt: skip
    found = project(torch.from_numpy(matrix)[None], tau)[0]
    # SLSQP takes derivatives by differences of 1e-8
    assert solved.success
    assert np.abs(found.numpy() - solved.x.reshape(2, 2)).max() < 1e-6
    distance = float(((found.numpy() - matrix) ** 2).sum())
    assert distance <= solved.fun * (1 + 1e-6)


def test_projection_leaves_what_is_inside_and_is_done_once():
    weights, _, _ = problem(3, 5)
    norms = spectral_norms(weights)
    tau = float(norms.mean())
    assert 0 < int((norms <= tau).sum()) < len(norms)
    found = project(weights, tau)
    assert torch.equal(found[norms <= tau], weights[norms <= tau])
    assert not torch.equal(found, weights)
    torch.testing.assert_close(project(found, tau), found)


def test_gradient_bound_as_printed_fails_by_a_factor_of_ten_and_as_corrected_is_met():
    at = torch.zeros(5, 3, 3), 2 * torch.eye(3), 10 * torch.eye(3)
    assert float(gradient(*at).square().sum()) == 6000
    assert float(gradient_bound(*at)) == 6000
    assert float(gradient_bound(*at, printed=True)) == 60000


@pytest.mark.parametrize(("d", "layers"), SIZES)
def test_gradient_bound_is_the_formula_and_holds(d, layers):
    for seed in range(20):
        weights, target, covariance = problem(d, layers, seed, scale=0.3)
        tau = max(np.linalg.norm(layer, 2) for layer in weights.numpy())
        smallest = np.linalg.eigvalsh(covariance.numpy())[0]
        excess = float(risk(weights, target, covariance, noise=2.0)) - 2.0 * d
        expected = 4 * layers * max(1 - tau, 0) ** (2 * layers - 2) * smallest * excess
        found = float(gradient_bound(weights, target, covariance))
        assert found == pytest.approx(expected, rel=1e-9)  # the excess is a difference
        assert found <= float(gradient(weights, target, covariance).square().sum()) * (1 + 1e-12)  # rounding
        printed = float(gradient_bound(weights, target, covariance, printed=True))
        assert printed == pytest.approx(found * smallest, rel=1e-9)


def test_gradient_bound_says_nothing_beyond_the_region():
    _, target, covariance = problem(2, 2)
    far = -3 * torch.eye(2, dtype=torch.float64).expand(2, 2, 2)
    assert float(gradient_bound(far, target, covariance)) == 0
    singular = torch.diag(torch.tensor([1.0, 0.0], dtype=torch.float64))
    assert abs(float(gradient_bound(torch.zeros_like(far), target, singular))) < 1e-14  # of rounding


FINE = problem(2, 3)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"weights": [[1.0]]}, "weights as a tensor of float32 or float64; got list"),
        ({"weights": torch.zeros(3, 2, 2, dtype=torch.long)}, "float32 or float64; got torch.int64"),
        ({"weights": torch.zeros(3, 2, 2).half()}, "float32 or float64; got torch.float16"),
        ({"weights": torch.zeros(2, 2).double()}, "weights of shape layers × d × d"),
        ({"weights": torch.zeros(3, 2, 4).double()}, "weights of shape layers × d × d"),
        ({"weights": torch.zeros(0, 2, 2).double()}, "not empty"),
        ({"weights": torch.full((3, 2, 2), torch.nan).double()}, "finite weights"),
        ({"target": torch.zeros(3, 3).double()}, "the target of shape 2 × 2"),
        ({"target": torch.zeros(2, 2)}, "the target as a tensor of torch.float64"),
        ({"target": None}, "the target as a tensor of torch.float64 on cpu, as the weights; got NoneType"),
        ({"target": torch.full((2, 2), torch.inf).double()}, "a finite target"),
        ({"covariance": torch.zeros(2).double()}, "the covariance of shape 2 × 2"),
        ({"covariance": torch.full((2, 2), torch.nan).double()}, "a finite covariance"),
        ({"covariance": torch.tensor([[1.0, 0.1], [0.2, 1.0]]).double()}, "a symmetric covariance"),
        ({"covariance": torch.diag(torch.tensor([1.0, -0.1])).double()}, "without negative eigenvalues"),
    ],
)
@pytest.mark.parametrize("function", [risk, gradient, hessian, gradient_bound])
def test_bad_problems_are_refused_with_a_sentence(function, change, sentence):
    arguments = dict(zip(("weights", "target", "covariance"), FINE, strict=True)) | change
    with pytest.raises(BadInput, match=sentence):
        function(**arguments)


def test_other_bad_input_is_refused_with_a_sentence():
    weights, target, covariance = FINE
    for noise in (-1.0, float("nan"), float("inf"), "1", True):
        with pytest.raises(BadInput, match="a finite variance of the noise"):
            risk(weights, target, covariance, noise=noise)
    for tau in (0.0, -1.0, float("nan"), float("inf"), None, True):
        with pytest.raises(BadInput, match="a finite τ > 0"):
            project(weights, tau)
    for function in (spectral_norms, lambda given: project(given, 0.5)):
        with pytest.raises(BadInput, match="weights of shape"):
            function(torch.zeros(2, 2))
    large = torch.zeros(landscape.LARGEST_HESSIAN // 4 + 1, 2, 2, dtype=torch.float64)
    with pytest.raises(BadInput, match="at most 4096 weights for a Hessian; got 4100"):
        hessian(large, target, covariance)


def test_covariance_of_few_data_passes():
    """Singular, and symmetric only to rounding: what data give."""
    weights, target, _ = problem(4, 2)
    data = torch.randn(4, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for covariance in (data @ data.mT / 2, torch.zeros(4, 4, dtype=torch.float64)):
        assert float(risk(weights, target, covariance)) >= 0


@pytest.mark.parametrize("residual", [True, False])
def test_a_landscape_has_the_closed_forms_as_methods(residual: bool) -> None:
    generator = torch.Generator().manual_seed(5)
    weights, target = (torch.randn(shape, generator=generator).double() for shape in ((3, 2, 2), (2, 2)))
    covariance = torch.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=torch.float64)
    found, given = Landscape(target, covariance, residual), (weights, target, covariance)
    assert torch.equal(found.risk(weights, noise=0.5), risk(*given, noise=0.5, residual=residual))
    assert torch.equal(found.gradient(weights), gradient(*given, residual))
    assert torch.equal(found.hessian(weights), hessian(*given, residual))
    assert torch.equal(found.project(weights, 0.5), project(weights, 0.5))
    if residual:
        for printed in (False, True):
            bound = found.gradient_bound(weights, printed=printed)
            assert torch.equal(bound, gradient_bound(*given, printed=printed))
    else:
        with pytest.raises(BadInput, match="expected residual nets for the gradient bound; got plain ones"):
            found.gradient_bound(weights)
    assert repr(found) == f"Landscape(d=2, residual={residual})"
