"""Descent against autograd and what its steps promise; critical points against those known by theory."""

import json
from math import cos, pi, sin, sqrt

import pytest
import torch
from torch import Tensor

from obverse._core.errors import BadInput
from obverse.identity._descent import CRITICAL, critical_point, descend
from obverse.identity._landscape import gradient, hessian, project, spectral_norms
from obverse.nets._residual import LinearResidual

IDENTITY = torch.eye(2, dtype=torch.float64)


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def problem(d: int, layers: int, seed: int = 0, near: float = 0.3) -> tuple[Tensor, Tensor]:
    """A target that layers with ‖A_i‖ = `near` reach, and a covariance."""
    steps = normal(layers, d, d, seed=seed)
    target = torch.eye(d, dtype=torch.float64)
    for step in steps:
        target = target + near * step / torch.linalg.matrix_norm(step, 2) @ target
    data = normal(d, 3 * d, seed=seed + 1000)
    return target, data @ data.mT / (3 * d)


def rotation(angle: float) -> Tensor:
    return torch.tensor([[cos(angle), -sin(angle)], [sin(angle), cos(angle)]], dtype=torch.float64)


@pytest.mark.parametrize("residual", [True, False])
def test_a_fixed_rate_is_gradient_descent_as_autograd_does_it(residual):
    target, covariance = problem(3, 4)
    net = LinearResidual(3, 4, residual=residual).double()
    net.weights.data = start = 0.3 * normal(4, 3, 3, seed=5)
    losses = []
    for _ in range(6):
        error = net.matrix() - target
        loss = torch.trace(error @ covariance @ error.mT)
        losses.append(loss.item())
        (slope,) = torch.autograd.grad(loss, net.weights)
        last = net.weights.detach()
        net.weights.data = last - 0.02 * slope
    run = descend(start, target, covariance, lr=0.02, steps=5, residual=residual)
    assert run.losses == pytest.approx(losses, rel=1e-12)  # float64 over a few hundred operations
    torch.testing.assert_close(run.weights, last)
    assert run.lrs == (0.02,) * 5
    assert run.gradients[-1] == pytest.approx(
        float(gradient(last, target, covariance, residual).norm()), rel=1e-12
    )
    assert run.norms[-1] == pytest.approx(float(spectral_norms(last).max()), rel=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_each_step_of_its_own_rate_keeps_its_promise_and_the_linear_rate_that_follows(seed):
    layers = 4
    target, covariance = problem(3, layers, seed)
    run = descend(torch.zeros(layers, 3, 3, dtype=torch.float64), target, covariance, steps=2000)
    smallest = float(torch.linalg.eigvalsh(covariance)[0])
    assert run.inside
    assert run.losses[-1] < 1e-20 * run.losses[0]
    for at, rate in enumerate(run.lrs):
        before, after = run.losses[at], run.losses[at + 1]
        slack = 1e-12 * sqrt(before)  # f = ‖E‖² with E known to about 1e-14
        assert after <= before - rate / 2 * run.gradients[at] ** 2 + slack
        share = 2 * layers * (1 - run.norms[at]) ** (2 * layers - 2) * smallest * rate
        assert after <= (1 - share) * before + slack


def test_projection_keeps_every_iterate_in_the_region():
    target, covariance = problem(3, 3, near=0.6)
    start = normal(3, 3, 3, seed=2)
    free = descend(project(start, 0.4), target, covariance, steps=50)
    kept = descend(start, target, covariance, steps=50, tau=0.4)
    assert max(free.norms) > 0.5
    assert max(kept.norms) <= 0.4 * (1 + 1e-12)  # rounding of an SVD
    assert kept.losses[0] == free.losses[0]
    falls = zip(kept.losses, kept.losses[1:], strict=False)
    assert all(after <= before + 1e-12 for before, after in falls)


def test_projection_reaches_the_target_that_is_inside():
    target, covariance = problem(3, 4, near=0.3)
    run = descend(torch.zeros(4, 3, 3, dtype=torch.float64), target, covariance, steps=3000, tau=0.35)
    assert run.losses[-1] < 1e-20
    assert run.norms[-1] <= 0.35 * (1 + 1e-12)  # rounding of an SVD


def test_on_the_boundary_there_are_constrained_minima_that_are_no_critical_points():
    """R turns the plane by 0.8π; the other way round it would be 1.2π, farther than τ lets."""
    part = 0.8 * pi / 4
    tau, target = 1.02 * 2 * sin(part / 2), rotation(0.8 * pi)
    right, wrong = ((rotation(sense * part) - IDENTITY).expand(4, 2, 2) for sense in (0.9, -0.9))
    stuck = descend(wrong, target, IDENTITY, steps=500, tau=tau)
    assert descend(right, target, IDENTITY, steps=500, tau=tau).losses[-1] < 1e-20
    assert descend(wrong, target, IDENTITY, steps=500).losses[-1] < 1e-20
    assert len(stuck.lrs) < 500
    assert stuck.losses[-1] > 1
    assert stuck.gradients[-1] > 1
    slope = gradient(stuck.weights, target, IDENTITY)
    taken_back = project(stuck.weights - 0.1 * slope, tau) - stuck.weights
    assert float(taken_back.norm()) < 1e-5 * 0.1 * float(slope.norm())  # STUCK, and a factor for the rate


def test_a_run_that_leaves_the_region_says_so():
    target = torch.diag(torch.tensor([9.0, 1.0], dtype=torch.float64))  # (1 + a)² = 9
    run = descend(torch.zeros(2, 2, 2, dtype=torch.float64), target, IDENTITY, steps=300)
    assert not run.inside
    assert run.norms[-1] == pytest.approx(2, abs=1e-9)


def test_it_stops_where_nothing_is_left_to_do():
    target, covariance = problem(2, 3)
    zero = torch.zeros(3, 2, 2, dtype=torch.float64)
    assert descend(zero, target, covariance, steps=0).lrs == ()
    assert descend(zero, IDENTITY, covariance, steps=10).losses == (0.0,)
    assert descend(zero, target, 0 * covariance, steps=10).losses == (0.0,)
    plain = descend(zero, target, covariance, steps=10, residual=False)  # a saddle
    assert plain.lrs == ()
    assert plain.gradients == (0.0,)


def test_the_start_is_not_changed_and_the_end_is_a_copy():
    target, covariance = problem(2, 3)
    start = 0.1 * normal(3, 2, 2)
    before = start.clone()
    descend(start, target, covariance, steps=0).weights.fill_(7)
    descend(start, target, covariance, steps=3, tau=0.5)
    critical_point(start, target, covariance)
    assert torch.equal(start, before)


@pytest.mark.parametrize("seed", range(5))
def test_inside_the_region_polishing_finds_global_minima(seed):
    target, covariance = problem(2, 3, seed)
    point = critical_point(0.1 * normal(3, 2, 2, seed=seed), target, covariance)
    assert point.critical
    assert point.norm < 1
    assert point.kind == "global minimum"
    assert point.excess < 1e-24  # a square of rounding errors
    assert point.curvature > -1e-12  # a minimum: not negative, to rounding
    again = gradient(point.weights, target, covariance)
    assert point.gradient == pytest.approx(float(again.norm()), rel=1e-12)
    assert point.curvature == pytest.approx(
        float(torch.linalg.eigvalsh(hessian(point.weights, target, covariance))[0]), abs=1e-12
    )


def test_zero_is_a_saddle_of_the_plain_net_of_two_layers():
    target, covariance = problem(3, 2)
    point = critical_point(torch.zeros(2, 3, 3, dtype=torch.float64), target, covariance, residual=False)
    assert point.kind == "saddle"
    assert point.excess == pytest.approx(float(torch.trace(target @ covariance @ target.mT)))
    # f = … − 2⟨RΣ, A_2A_1⟩ + …, and ⟨RΣ, A_2A_1⟩ ≥ −‖RΣ‖·½(‖A_1‖² + ‖A_2‖²)
    expected = -2 * float(torch.linalg.matrix_norm(target @ covariance, 2))
    assert point.curvature == pytest.approx(expected, rel=1e-12)  # an eigenvalue in float64


@pytest.mark.parametrize("layers", [3, 4])
def test_zero_of_deeper_plain_nets_is_a_saddle_that_second_derivatives_do_not_see(layers):
    target, covariance = problem(2, layers)
    zero = torch.zeros(layers, 2, 2, dtype=torch.float64)
    assert not hessian(zero, target, covariance, residual=False).any()
    point = critical_point(zero, target, covariance, residual=False)
    assert point.critical
    assert point.kind == "other"
    near = critical_point(1e-3 * normal(layers, 2, 2), target, covariance, residual=False)
    assert near.critical
    assert near.kind == "other"
    assert near.excess == pytest.approx(point.excess, rel=1e-6)  # linear convergence to 0: stopped on the way


def test_a_product_of_low_rank_is_a_saddle_of_the_plain_net():
    """Σ = I: the best product of rank 1 leaves the second singular value."""
    target = torch.diag(torch.tensor([2.0, 0.5], dtype=torch.float64))
    half = torch.diag(torch.tensor([sqrt(2.0), 0.0], dtype=torch.float64))
    turn = rotation(0.7)
    weights = torch.stack((turn @ half, half @ turn.mT))
    point = critical_point(weights, target, IDENTITY, residual=False)
    assert point.kind == "saddle"
    assert point.excess == pytest.approx(0.25, rel=1e-12)
    assert point.curvature == pytest.approx(-2 * 0.5, rel=1e-9)  # as at zero, of what is left of R
    found = critical_point(weights + 1e-3 * normal(2, 2, 2), target, IDENTITY, residual=False)
    assert found.kind == "saddle"
    assert found.excess == pytest.approx(0.25, rel=1e-9)


def test_the_region_cannot_be_larger():
    """All A_i = −I have ‖A‖ = 1, a product of 0, and are critical."""
    target, covariance = problem(2, 2)
    point = critical_point(-IDENTITY.expand(2, 2, 2), target, covariance)
    assert point.kind == "saddle"
    assert point.norm == pytest.approx(1)
    assert point.excess == pytest.approx(float(torch.trace(target @ covariance @ target.mT)))


def test_too_few_steps_are_no_critical_point():
    target, covariance = problem(2, 3)
    point = critical_point(0.5 * normal(3, 2, 2), target, covariance, steps=2)
    assert not point.critical
    assert point.kind == "other"
    assert point.gradient > CRITICAL


def test_singular_covariance_has_global_minima_too():
    target, _ = problem(2, 3)
    covariance = torch.diag(torch.tensor([1.0, 0.0], dtype=torch.float64))
    point = critical_point(0.1 * normal(3, 2, 2), target, covariance)
    assert point.kind == "global minimum"
    assert descend(torch.zeros_like(point.weights), target, covariance, steps=500).losses[-1] < 1e-20


def test_results_are_written_as_json_and_read_in_a_line():
    target, covariance = problem(2, 3)
    run = descend(torch.zeros(3, 2, 2, dtype=torch.float64), target, covariance, steps=3)
    point = critical_point(torch.zeros(3, 2, 2, dtype=torch.float64), target, covariance)
    for result in (run, point):
        read = json.loads(json.dumps(result.to_dict(), allow_nan=False))
        assert read["weights"] == result.weights.tolist()
    assert read["kind"] == "global minimum"
    assert str(run).startswith("excess risk ")
    assert "in 3 steps, ‖A‖ up to 0." in str(run)
    assert str(point).startswith("global minimum: excess risk ")
    assert run == descend(torch.zeros(3, 2, 2, dtype=torch.float64), target, covariance, steps=3)


def test_single_precision_descends_as_far_as_it_can():
    target, covariance = (tensor.float() for tensor in problem(3, 4))
    run = descend(torch.zeros(4, 3, 3), target, covariance, steps=2000)
    assert run.weights.dtype == torch.float32
    assert run.losses[-1] < 1e-8  # (10·l·ε)²‖Σ‖(√d + ‖R‖)² with ε = 1.2e-7


def test_bad_input_is_refused_with_a_sentence():
    target, covariance = problem(2, 3)
    start = torch.zeros(3, 2, 2, dtype=torch.float64)
    for steps in (-1, 1.5, True, None):
        with pytest.raises(BadInput, match="steps as a whole number"):
            descend(start, target, covariance, steps=steps)
    for steps in (0, -1, 2.0, None):
        with pytest.raises(BadInput, match="steps as a whole number ≥ 1"):
            critical_point(start, target, covariance, steps=steps)
    for rate in (0.0, -0.1, float("nan"), float("inf"), "0.1", True):
        with pytest.raises(BadInput, match="a finite lr > 0"):
            descend(start, target, covariance, steps=1, lr=rate)
    with pytest.raises(BadInput, match="a finite τ > 0"):
        descend(start, target, covariance, steps=1, tau=0.0)
    with pytest.raises(BadInput, match="float64"):
        critical_point(start.float(), target.float(), covariance.float())
    for function in (lambda *given: descend(*given, steps=1), critical_point):
        with pytest.raises(BadInput, match="a symmetric covariance"):
            function(start, target, torch.tensor([[1.0, 0.5], [0.0, 1.0]]).double())
        with pytest.raises(BadInput, match="finite weights"):
            function(start / 0, target, covariance)


def test_a_rate_that_diverges_is_refused():
    target, covariance = problem(2, 3)
    start = torch.zeros(3, 2, 2, dtype=torch.float64)
    with pytest.raises(BadInput, match=r"finite .*lower the lr"):
        descend(start, target, covariance, lr=50.0, steps=1000)
    with pytest.raises(BadInput, match=r"a finite risk and gradient; got inf after 0 steps"):
        descend(start + 1e80, target, covariance, steps=1)
