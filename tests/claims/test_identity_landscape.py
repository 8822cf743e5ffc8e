"""The claims about the landscape: their closed forms by exact quadrature, their bounds by brute force."""

from itertools import product
from math import log, log1p, sqrt

import numpy as np
import pytest
import torch
from torch import Tensor

from obverse._core.errors import BadInput
from obverse.claims import claims
from obverse.claims.identity import _gradients as gradients
from obverse.claims.identity import _landscape as landscape
from obverse.claims.results import Point
from obverse.identity._descent import CRITICAL, critical_point
from obverse.identity._landscape import gradient, hessian, project, risk, spectral_norms


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def quadrature(target: Tensor, covariance: Tensor, layers: int, deviation: float, residual: bool) -> Tensor:
    """E‖∂f/∂A_i‖² over normal weights, as a sum over the nodes of Gauss–Hermite.

    Three nodes a weight are exact up to degree 5, and the squared gradient, by autograd, has 4 in each.
    """
    d = len(target)
    nodes = deviation * torch.tensor([-sqrt(3), 0.0, sqrt(3)], dtype=torch.float64)
    shares = torch.tensor([1 / 6, 2 / 3, 1 / 6], dtype=torch.float64)
    places = torch.cartesian_prod(*[torch.arange(3)] * (layers * d * d)).reshape(-1, layers * d * d)
    weights = nodes[places].reshape(-1, layers, d, d).requires_grad_()
    matrix = torch.eye(d, dtype=torch.float64).expand(len(weights), d, d)
    for layer in weights.unbind(1):
        matrix = (layer + residual * torch.eye(d)) @ matrix
    error = matrix - target
    (slopes,) = torch.autograd.grad(((error @ covariance) * error).sum(), weights)
    return shares[places].prod(1) @ slopes.square().sum((2, 3))


@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize(("d", "layers"), [(1, 1), (1, 5), (2, 1), (2, 2), (2, 3)])
def test_expected_squares_are_those_of_exact_quadrature(d, layers, residual):
    drawn = torch.randn(2, d, d, generator=seeded(d), dtype=torch.float64)
    target, covariance = drawn[0], drawn[1] @ drawn[1].mT
    found = gradients.expected_squares(target, covariance, layers, 0.6, residual)
    expected = quadrature(target, covariance, layers, 0.6, residual)
    assert found == pytest.approx(expected.tolist(), rel=1e-10)  # half a million terms in float64


@pytest.mark.parametrize("net", ["plain", "residual"])
@pytest.mark.slow
def test_the_mean_gradient_is_measured_as_the_mean_over_layers(net):
    setting = {"net": net, "d": 3, "layers": 4, "spread": 0.2, "trials": 4000}
    found = torch.tensor(gradients.measure_gradient(setting, seeded()))
    expected = gradients.expected_gradient(setting)
    assert abs(float(found.mean()) - expected) < 5 * float(found.std()) / sqrt(4000)  # standard errors
    with_all = gradients.expected_squares(*gradients.problem(3), 4, sqrt(0.2 / 3), net == "residual")
    assert expected == pytest.approx(sum(with_all) / 4)


def test_in_depth_the_plain_gradient_vanishes_and_the_residual_one_does_not():
    def at(net: str, layers: int) -> float:
        return gradients.expected_gradient({"net": net, "d": 8, "layers": layers, "spread": 0.01})

    falls = [at("plain", layers + 1) / at("plain", layers) for layers in range(3, 30)]
    assert falls == pytest.approx([0.01] * len(falls), rel=1e-3)  # the other term is of the order s⁴
    grows = [at("residual", layers + 1) / at("residual", layers) for layers in range(1, 30)]
    assert min(grows) > 1


def test_gradient_at_zero():
    for layers in (1, 4):
        found = gradients.measure_at_zero({"d": 3, "layers": layers, "trials": 5}, seeded())
        assert found == pytest.approx([2.0] * 5, rel=1e-12)  # rounding
    assert gradients.two({"d": 3, "layers": 4}) == 2


def settings(*names: str) -> list:
    return [setting for name in names for setting in claims()[f"identity.{name}"].grid]


@pytest.mark.parametrize("setting", settings("thm1"), ids=str)
def test_what_counts_as_critical_leaves_less_excess_risk_than_the_claim_allows(setting):
    """The worst case by eq. 6 as corrected: the largest gradient that counts as zero, at ‖A‖ = τ."""
    d, layers = setting["d"], setting["layers"]
    spread = setting["condition"] * setting["sigma"]
    largest = CRITICAL * 2 * spread * (sqrt(d) + landscape.SIZE * sqrt(d))
    slope = 4 * layers * (1 - setting["tau"]) ** (2 * layers - 2) * setting["sigma"]
    assert largest**2 / slope / d < landscape.ROUNDING / 2


@pytest.mark.parametrize("setting", settings("thm1", "thm1.plain"), ids=str)
def test_targets_can_be_reached_in_the_region_by_both_nets(setting):
    generator = seeded()
    for _ in range(20):
        target = landscape._target(setting, generator)
        assert float(torch.linalg.det(target)) > 0
        assert float(torch.linalg.matrix_norm(target, 2)) == pytest.approx(landscape.SIZE)
        # plain: τI in all layers but one, which has to be R/τ^{l−1}
        assert landscape.SIZE / setting["tau"] ** (setting["layers"] - 1) < setting["tau"]
    # residual: of c(I + B_l)⋯(I + B_1), each layer takes the l-th root of c ≥ SIZE/(1 + NEAR)^l
    root = landscape.SIZE ** (1 / setting["layers"]) / (1 + landscape.NEAR)
    assert 1 - root + root * landscape.NEAR < setting["tau"]


def test_draws_are_what_they_are_said_to_be():
    setting = {"d": 4, "layers": 3, "sigma": 0.3, "condition": 10.0}
    generator = seeded()
    for _ in range(10):
        values = torch.linalg.eigvalsh(landscape._covariance(setting, generator))
        assert float(values[0]) == pytest.approx(0.3)
        assert float(values[-1]) == pytest.approx(3.0)
        norms = spectral_norms(landscape._layers(setting, 0.7, generator))
        assert float(norms.max()) < 0.7
    one = landscape._covariance(setting | {"d": 1}, generator)
    assert float(one) == pytest.approx(0.3)


def test_the_worst_of_the_critical_points_found_is_returned():
    setting = {"net": "plain", "d": 2, "layers": 2, "tau": 0.95, "sigma": 0.3, "condition": 10.0}
    found = landscape.measure_critical(setting | {"trials": 2, "found": 3}, seeded())
    single = landscape.measure_critical(setting | {"trials": 6, "found": 1}, seeded())
    assert found == [max(single[:3]), max(single[3:])]
    generator = seeded()
    covariance, target = landscape._covariance(setting, generator), landscape._target(setting, generator)
    point = critical_point(landscape._layers(setting, 1.0, generator), target, covariance, residual=False)
    assert point.norm <= 0.95
    assert single[0] == float(risk(point.weights, target, covariance, 1.0, residual=False)) / 2


def test_only_points_in_the_region_count(monkeypatch):
    """Without τ the same draws give critical points that a small τ passes over."""
    setting = {"net": "residual", "d": 2, "layers": 3, "sigma": 0.3, "condition": 10.0, "found": 1}
    anywhere = landscape.measure_critical(setting | {"trials": 30}, seeded())
    inside = landscape.measure_critical(setting | {"trials": 10, "tau": 0.95}, seeded())
    assert max(anywhere) > 1.01
    assert max(inside) <= 1 + landscape.ROUNDING
    monkeypatch.setattr(landscape, "SEARCHES", 3)
    with pytest.raises(BadInput, match="critical points in the region; got none from 3 starts"):
        landscape.measure_critical(setting | {"trials": 1, "tau": 0.0}, seeded())


def test_descent_turned_the_wrong_way_is_stuck():
    setting = {"d": 2, "layers": 4, "turn": 0.8, "steps": 300, "trials": 3}
    assert min(landscape.measure_projected(setting, seeded())) > 1.5
    # with half of the turn the other way round is within reach, and nothing holds
    assert max(landscape.measure_projected(setting | {"turn": 0.5}, seeded())) < 1 + landscape.ROUNDING


def test_the_inverse_slope_is_below_its_bound_and_comes_near():
    setting = {"d": 3, "layers": 3, "tau": 0.3, "sigma": 2.0, "condition": 1.0, "draws": 30, "trials": 10}
    found = landscape.measure_inverse_slope(setting, seeded())
    assert landscape.inverse_corrected(setting) == 1 / 8
    assert landscape.inverse_printed(setting) == 1 / 16
    assert max(found) < 1 / 8
    assert max(found) > 0.9 / 8  # where A is near −τI; with Σ = σI there it is an equality


def test_the_inverse_slope_has_the_unit_of_one_over_the_covariance():
    setting = {"d": 2, "layers": 3, "tau": 0.3, "sigma": 1.0, "condition": 3.0, "draws": 3, "trials": 4}
    small = landscape.measure_inverse_slope(setting, seeded())
    large = landscape.measure_inverse_slope(setting | {"sigma": 10.0}, seeded())
    assert [10 * value for value in large] == pytest.approx(small, rel=1e-9)  # rounding


@pytest.mark.parametrize(("d", "layers", "tau"), [(1, 1, 0.0), (3, 1, 0.5), (3, 5, 0.0), (3, 5, 0.4)])
def test_the_bound_is_met_where_it_is_said_to_be(d, layers, tau):
    setting = {"d": d, "layers": layers, "tau": tau, "sigma": 0.7, "condition": 4.0, "trials": 5}
    expected = 4 * layers * (1 - tau) ** (2 * layers - 2) * 0.7
    assert landscape.slope_corrected(setting) == pytest.approx(expected, rel=1e-14)
    # rounding, and that of an eigenvector
    assert landscape.measure_slope(setting, seeded()) == pytest.approx([expected] * 5, rel=1e-12)


def test_the_smoothness_bounds_the_hessian_over_the_region():
    setting = {"d": 2, "layers": 3, "tau": 0.2, "sigma": 0.5, "condition": 4.0}
    generator, shares = seeded(), []
    for _ in range(200):
        covariance = landscape._covariance(setting, generator)
        noise = torch.randn(3, 2, 2, generator=generator, dtype=torch.float64)
        weights = project(0.2 * torch.eye(2, dtype=torch.float64) + 0.3 * noise, 0.2)
        target = torch.randn(2, 2, generator=generator, dtype=torch.float64)
        excess = float(risk(weights, target, covariance))
        bound = landscape.smoothness(setting | {"excess": excess})
        shares.append(float(torch.linalg.eigvalsh(hessian(weights, target, covariance)).abs().max()) / bound)
    assert max(shares) < 1
    tightest = {"d": 2, "layers": 3, "tau": 0.2, "sigma": 2.0, "condition": 1.0, "excess": 0.0}
    weights = 0.2 * torch.eye(2, dtype=torch.float64).expand(3, 2, 2)
    target = 1.2**3 * torch.eye(2, dtype=torch.float64)
    largest = torch.linalg.eigvalsh(hessian(weights, target, 2 * torch.eye(2, dtype=torch.float64)))[-1]
    assert landscape.smoothness(tightest) == pytest.approx(float(largest))


def test_descent_takes_the_steps_that_are_counted():
    setting = {"d": 2, "layers": 2, "tau": 0.4, "sigma": 1.0, "condition": 3.0, "excess": 0.1}
    setting |= {"steps": 7, "trials": 3}
    found = landscape.measure_descent(setting, seeded())
    generator = seeded()
    covariance = landscape._covariance(setting, generator)
    drawn = torch.randn(2, 2, generator=generator, dtype=torch.float64)
    scale = sqrt(0.1 / float(torch.trace(drawn @ covariance @ drawn.mT)))
    target = torch.eye(2, dtype=torch.float64) + scale * drawn
    weights = torch.zeros(2, 2, 2, dtype=torch.float64)
    before = float(risk(weights, target, covariance))
    assert before == pytest.approx(0.1)
    for _ in range(7):
        weights = weights - gradient(weights, target, covariance) / landscape.smoothness(setting)
    expected = 7 / log(before / float(risk(weights, target, covariance)))
    assert found[0] == pytest.approx(expected, rel=1e-9)  # rounding
    shrink = 2 * 2 * 0.6**2 * 1.0 / landscape.smoothness(setting)
    assert landscape.steps_corrected(setting) == pytest.approx(-1 / log1p(-shrink))
    assert max(found) < landscape.steps_corrected(setting)
    with pytest.raises(BadInput, match="stay inside ‖A‖ ≤ τ"):
        landscape.measure_descent(setting | {"tau": 1e-6}, seeded())


@pytest.mark.parametrize("name", ["thm1", "eq6.corrected", "convergence"])
def test_one_exception_is_enough_for_no_verdict(name):
    """What these claims say is said of all: their trials are few enough for this."""
    claim = claims()[f"identity.{name}"]
    setting = claim.grid[0]
    bound = claim.predicted(setting)
    within = [0.9 * bound] * setting["trials"]
    assert claim.rule.judge([Point(setting, bound, tuple(within))]).verdict == "held"
    within[0] = 1.1 * bound
    assert claim.rule.judge([Point(setting, bound, tuple(within))]).verdict == "inconclusive"


def test_bad_settings_name_the_condition():
    fine = {
        "net": "plain", "d": 2, "layers": 3, "tau": 0.5, "sigma": 1.0, "condition": 2.0, "excess": 0.1,
        "turn": 0.5, "spread": 0.1, "steps": 1, "trials": 1, "draws": 1, "found": 1,
    }  # fmt: skip
    changes = (
        ({"d": 0}, "d ≥ 1"),
        ({"layers": 0}, "layers ≥ 1"),
        ({"layers": 1.5}, "layers ≥ 1"),
        ({"tau": 1.0}, "τ in"),
        ({"tau": float("nan")}, "τ in"),
        ({"sigma": 0.0}, "σ_min"),
        ({"condition": 0.5}, "condition number ≥ 1"),
    )
    known = claims()
    about_nets = (
        "thm1", "thm1.projected", "eq6", "eq6.corrected", "eq6.tight", "convergence", "gradients.plain",
        "gradients.residual", "gradients.zero",
    )  # fmt: skip
    for (change, sentence), name in product(changes, about_nets):
        with pytest.raises(BadInput, match=sentence):
            known[f"identity.{name}"].check(fine | change)
    for change, sentence in (({"d": 3}, "d = 2"), ({"turn": 0.0}, "a turn"), ({"layers": 1}, "a turn")):
        with pytest.raises(BadInput, match=sentence):
            known["identity.thm1.projected"].check(fine | change)
    for name in ("gradients.plain", "gradients.residual"):
        with pytest.raises(BadInput, match="s²d > 0"):
            known[f"identity.{name}"].check(fine | {"spread": 0.0})


def test_the_counterexample_of_the_printed_bound():
    """A = 0, Σ = 10I, R = 2I, d = 3, l = 5: by hand, without the library."""
    identity = np.eye(3)
    slope = 2 * (identity - 2 * identity) @ (10 * identity)  # of each of five layers
    assert 5 * (slope**2).sum() == 6000
    excess = np.trace((identity - 2 * identity) @ (10 * identity) @ (identity - 2 * identity))
    setting = {"d": 3, "layers": 5, "tau": 0.0, "sigma": 10.0}
    assert 5 * excess / 6000 > landscape.inverse_printed(setting)
    assert 5 * excess / 6000 == landscape.inverse_corrected(setting)
