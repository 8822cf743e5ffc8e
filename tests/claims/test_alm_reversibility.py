"""Theorems 2.3 and 2.4, offsets and likelihood: predictions and simulations against other means."""

from __future__ import annotations

from itertools import combinations
from math import erfc, log, pi, sqrt

import numpy as np
import pytest
import torch
from scipy import integrate, optimize, stats

from obverse._core.errors import BadInput
from obverse.claims import claims
from obverse.claims.alm import _closed_form as closed_form
from obverse.claims.alm import _dropout as dropout
from obverse.claims.alm import _likelihood as likelihood
from obverse.claims.alm import _offset_search as offset_search
from obverse.claims.alm import _offsets as offsets
from obverse.claims.alm import _one_weight as one_weight
from obverse.claims.alm import _proof as proof
from obverse.claims.alm import _reversibility as reversibility

SMALL = {"n": 60, "m": 30, "k": 4, "t": 40, "law": "uniform", "weights": 0, "trials": 5}
MINE = (
    "alm.thm2.3",
    "alm.thm2.3.outside",
    "alm.thm2.3.exponent",
    "alm.thm2.3.zeros",
    "alm.thm2.3.proof",
    "alm.thm2.3.linear",
    "alm.thm2.3.closed",
    "alm.thm2.3.best",
    "alm.thm2.3.best_error",
    "alm.thm2.3.survivors",
    "alm.thm2.4",
    "alm.thm2.4.closed",
    "alm.offsets",
    "alm.offsets.dense.closed",
    "alm.offsets.skewed.gain.closed",
    "alm.footnote2.likeliest",
    "alm.notes.offset",
)


def rectified_loss(value: float, deviation: float, theta: float) -> float:
    """E(r(value − θ + deviation·g) − value)², by quadrature."""

    def at(g: float) -> float:
        return (max(value - theta + deviation * g, 0.0) - value) ** 2 * stats.norm.pdf(g)

    kink = (theta - value) / deviation
    return integrate.quad(at, -12, 12, points=[min(max(kink, -11.9), 11.9)])[0]


def quadrature_error(setting: dict, kept: float, theta: float) -> float:
    """The closed form for k equal non-zeros and ‖h‖ = 1."""
    k, n = setting["k"], setting["n"]
    on = rectified_loss(1 / sqrt(k), sqrt(2 / kept * (1 + 2 / k) - 1 / k / n), theta)
    return k * on + (setting["m"] - k) * rectified_loss(0.0, sqrt(2 / kept), theta)


def brute_error(inferred: np.ndarray, h: np.ndarray, theta: float) -> float:
    return float(((np.maximum(inferred - theta, 0) - h) ** 2).sum())


def test_best_offsets_against_a_fine_grid():
    generator = torch.Generator().manual_seed(0)
    h = torch.rand(40, 6, generator=generator, dtype=torch.float64).sub(0.7).relu()
    inferred = h + 0.3 * torch.randn(40, 6, generator=generator, dtype=torch.float64)
    found = offset_search.best_offsets(inferred, h)
    thetas = np.linspace(-2, 2, 8001)
    for column in range(6):
        pair = inferred[:, column].numpy(), h[:, column].numpy()
        best = min(brute_error(*pair, theta) for theta in thetas)
        exact = brute_error(*pair, float(found[column]))
        # no grid point is better (float64), and the nearest costs 40·(half a step of 5e-4)² at most
        assert exact - 1e-12 <= best <= exact + 40 * 2.5e-4**2 + 1e-12
    uniform = offset_search.one_offset(inferred, h)
    best = min(brute_error(inferred.numpy(), h.numpy(), theta) for theta in thetas)
    assert brute_error(inferred.numpy(), h.numpy(), uniform) == pytest.approx(best, abs=240 * 2.5e-4**2)


def test_offsets_are_found_on_other_draws_than_they_are_judged_on():
    setting = {**SMALL, "trials": 7}
    found = reversibility.recover(setting, torch.Generator().manual_seed(3))
    count = one_weight.CALIBRATION
    h, inferred = one_weight.infer_many(setting, torch.Generator().manual_seed(3), count + 7)
    thetas = np.linspace(0, 2, 20001)
    errors = [brute_error(inferred[:count].numpy(), h[:count].numpy(), theta) for theta in thetas[::40]]
    near = thetas[::40][int(np.argmin(errors))]
    for row in range(7):
        lone = [
            brute_error(inferred[count + row].numpy(), h[count + row].numpy(), near + d)
            for d in (-4e-3, 0, 4e-3)
        ]
        # θ within a step of the grid: the error in between
        assert min(lone) - 1e-3 <= float(found[row]) <= max(lone) + 1e-3
    assert len(found) == 7


def test_rates_and_bounds_by_hand():
    setting = {"n": 2000, "m": 1000, "k": 40, "t": 800}
    assert reversibility.rate(setting) == pytest.approx(0.05 * log(1000))
    assert proof.squared_bound(setting) == pytest.approx(16 * 0.05 * log(1e5))
    assert proof.delta(setting) == pytest.approx(sqrt(log(1e5) / 200))
    # all of m normal entries are below δ but in less than 1 draw of 100
    delta = one_weight.proof_delta(1000, 800)
    assert 1000 * 0.5 * erfc(delta / sqrt(2 / 800) / sqrt(2)) < 0.01


def test_total_variance_is_the_sum_of_exact_variances():
    h = torch.rand(12, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    h /= h.norm()
    v = 2 / 30 * (1 + 2 * h**2) - h**2 / 50
    assert proof.total_variance({"n": 50, "m": 12, "k": 12, "t": 30}) == pytest.approx(float(v.sum()))


def test_measures_of_the_proof_against_the_same_h_by_hand():
    setting = {**SMALL, "norm": 1}
    delta = sqrt(2 / 40) * sqrt(2 * log(3000))
    h, inferred = one_weight.infer_many(setting, torch.Generator().manual_seed(5), 5)
    h_, inferred_ = h.numpy(), inferred.numpy()
    off = [max(inferred_[i][h_[i] == 0]) for i in range(5)]
    found = proof.largest_off_support(setting, torch.Generator().manual_seed(5))
    np.testing.assert_allclose(found.numpy(), off)
    cut = [brute_error(inferred_[i], h_[i], delta * abs(h_[i]).sum()) for i in range(5)]
    np.testing.assert_allclose(proof.recover_at_delta(setting, torch.Generator().manual_seed(5)).numpy(), cut)


@pytest.mark.parametrize("theta", [0.0, 1.7, 4.0])
def test_closed_forms_against_quadrature(theta):
    setting = {"n": 900, "m": 50, "k": 5, "t": 600, "law": "equal", "theta": theta}
    expected = quadrature_error(setting, 600, theta / sqrt(600))
    assert closed_form.expected_error(setting) == pytest.approx(expected, rel=1e-6)  # quad's own error
    halved = quadrature_error(setting, 300, theta / sqrt(600))
    assert dropout.expected_from_half(setting) == pytest.approx(halved, rel=1e-6)


def test_best_threshold_and_survivors_against_minimized_quadrature():
    setting = {"n": 900, "m": 50, "k": 5, "t": 600, "law": "equal"}
    found = optimize.minimize_scalar(
        lambda c: quadrature_error(setting, 600, c / sqrt(600)), bounds=(0, 5), method="bounded"
    )
    # a minimum is found to the square root of the precision of the function
    assert closed_form.expected_threshold(setting) == pytest.approx(found.x, abs=1e-3)
    assert closed_form.expected_best_error(setting) == pytest.approx(found.fun, rel=1e-6)
    above = 45 * stats.norm.sf(found.x / sqrt(2))
    assert closed_form.expected_survivors(setting) == pytest.approx(above, rel=1e-2)


def test_one_threshold_serves_all_draws_of_h():
    setting = {"n": 900, "m": 50, "k": 5, "t": 600, "law": "half-normal"}
    found = optimize.minimize_scalar(
        lambda c: closed_form.expected_error({**setting, "theta": c}), bounds=(0, 5), method="bounded"
    )
    assert closed_form.expected_threshold(setting) == pytest.approx(found.x, abs=1e-3)


def test_shared_noise_against_simulation():
    """The part of ĥ that all h have in common under one W, from the covariance between two disjoint h."""
    n, t, m, draws = 40, 30, 6, 4000
    generator = torch.Generator().manual_seed(0)
    weights = torch.randn(draws, n, m, generator=generator, dtype=torch.float64)
    mask = torch.rand(2, draws, n, generator=generator, dtype=torch.float64) < t / n
    first, second = (2 / t * weights[:, :, i].relu() * mask[i] for i in (0, 1))
    one, two = ((x.unsqueeze(1) @ weights[:, :, 2:]).flatten() for x in (first, second))
    common = one * two * t / 2  # E = ρ/π, the share at κ → 0
    error = float(common.std()) / sqrt(len(common))
    shared = offsets.shared_noise({"n": n, "m": 10**9, "k": 1, "t": t})
    assert shared == pytest.approx(t / n / pi, rel=1e-6)
    # four standard errors; the four columns under one W are uncorrelated
    assert abs(float(common.mean()) - shared) < 4 * error


def test_supports_follow_their_weights():
    setting = {"m": 6, "k": 2, "skew": 1.0}
    h = offsets.draw_supports(setting, 20_000, torch.Generator().manual_seed(0))
    assert bool(((h > 0).sum(1) == 2).all())
    assert torch.allclose(h.norm(dim=1), torch.ones(20_000, dtype=torch.float64))
    p = np.array([1 / i for i in range(1, 7)])
    p /= p.sum()
    expected = np.zeros(6)
    for a in range(6):
        for b in range(6):
            if a != b:
                expected[[a, b]] += p[a] * p[b] / (1 - p[a])
    active = (h > 0).double().mean(0).numpy()
    # four standard errors of a share
    assert (abs(active - expected) < 4 * np.sqrt(expected * (1 - expected) / 20_000)).all()


def test_gain_of_own_offsets_against_quadrature():
    setting = {"n": 4000, "m": 8, "k": 2, "t": 100, "skew": 0.0}
    assert offsets.closed_ratio(setting) == pytest.approx(1, abs=2e-3)  # 20000 draws of p_i = 1/4
    skewed = {**setting, "skew": 1.5}
    h = offsets.draw_supports(skewed, 20_000, torch.Generator().manual_seed(1))
    active = (h > 0).double().mean(0).numpy()
    deviation = sqrt(2 / 100 * 2 - 1 / 2 / 4000)

    def loss(ps: np.ndarray, c: float) -> float:
        on, off = rectified_loss(1 / sqrt(2), deviation, c), rectified_loss(0.0, sqrt(2 / 100), c)
        return ps.sum() * on + (1 - ps).sum() * off

    def least(ps: np.ndarray) -> float:
        return optimize.minimize_scalar(
            lambda c: loss(ps, c),
            bounds=(-0.2, 0.8),
            method="bounded",
            options={"xatol": 3e-3},
        ).fun

    expected = sum(least(active[[i]]) for i in range(8)) / least(active)
    assert offsets.closed_ratio(skewed) == pytest.approx(expected, rel=5e-3)  # both from 20000 draws


def test_less_noise_where_the_error_goes_as_one_over_t():
    setting = {"n": 80_000, "m": 60, "k": 3, "t": 40_000}
    assert offsets.less_noise(setting) == pytest.approx(1 - offsets.shared_noise(setting), rel=1e-3)


def enumerate_likelihoods(
    weights: np.ndarray, x: np.ndarray, k: int, keep: float
) -> tuple[float, np.ndarray]:
    """The likeliest h by scipy's non-negative least squares and products of probabilities."""
    n, m = weights.shape
    best, found = -1.0, np.zeros(m)
    for size in range(1, k + 1):
        for support in map(list, combinations(range(m), size)):
            if (x > 0).sum() < size:
                continue
            values, residual = optimize.nnls(weights[x > 0][:, support], x[x > 0] * keep * n / 2)
            if residual > 1e-9:
                continue
            h = np.zeros(m)
            h[support] = values
            hidden = (weights[x == 0] @ h > 1e-9).sum()
            chance = keep ** (x > 0).sum() * (1 - keep) ** float(hidden)
            if chance > best * (1 + 1e-9):
                best, found = chance, h
    return best, found


@pytest.mark.parametrize("t", [3, 5, 9])  # fewer alive than k, about as many, more
def test_likeliest_against_enumeration_by_other_means(t):
    setting = {"n": 12, "m": 6, "k": 2, "t": t, "law": "half-normal"}
    generator = torch.Generator().manual_seed(t)
    wrong = 0
    for _ in range(30):
        weights, h, x = likelihood.draw_case(setting, generator)
        found = likelihood.likeliest(weights, x, 2, t / 12)
        _, expected = enumerate_likelihoods(weights.numpy(), x.numpy(), 2, t / 12)
        np.testing.assert_allclose(found.numpy(), expected, atol=1e-7)
        if (x > 0).sum() > 2:
            torch.testing.assert_close(found, h)
        wrong += bool(torch.dist(found, h) > 1e-6)
    assert t > 3 or wrong > 0


def test_likeliest_without_mask_takes_no_h_that_needs_one():
    generator = torch.Generator().manual_seed(0)
    setting = {"n": 4, "m": 5, "k": 2, "t": 4, "law": "uniform"}
    for _ in range(20):
        weights, _, x = likelihood.draw_case(setting, generator)
        found = likelihood.likeliest(weights, x, 2, 1.0)
        if bool(found.any()):
            torch.testing.assert_close((weights @ found / 2).relu(), x, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("id", MINE)
@pytest.mark.parametrize(("change", "sentence"), [({"k": 10**6}, "k ≤ m"), ({"t": 10**9}, "ρ = t/n")])
def test_bad_settings_name_the_condition(id, change, sentence):
    claim = claims()[id]
    setting = {**claim.settings(quick=True)[0], **change}
    with pytest.raises(BadInput, match=sentence):
        claim.predict(setting)
    with pytest.raises(BadInput, match=sentence):
        claim.measure(setting, torch.Generator().manual_seed(0))


def test_cases_that_cannot_come_up_are_not_waited_for():
    setting = {"n": 10, "m": 10, "k": 10, "t": 10, "law": "uniform", "trials": 2}
    with pytest.raises(BadInput, match="more than k inputs alive in one of 100 draws"):
        likelihood.likeliest_is_true(setting, torch.Generator().manual_seed(0))


def test_conditions_are_crossed_on_both_sides():
    sides = {(s["t"] < s["k"], s["t"] > s["k"] ** 2) for s in claims()["alm.thm2.3.outside"].grid}
    assert sides == {(True, False), (False, False), (False, True)}
    proof = claims()["alm.thm2.3.proof"]  # h̃ = 0 has an error of 1: a bound above it says nothing
    assert all(proof.predict(s) < 1 for s in (*proof.grid, *proof.quick))
