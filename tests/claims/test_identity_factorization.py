"""Theorem 2 and its neighbours: settings refused, matrices as described, predictions by other means."""

from __future__ import annotations

from math import acosh, cos, exp, log, pi, sin

import numpy as np
import pytest
import torch
from scipy.linalg import expm, logm

from obverse._core.errors import BadInput, ObverseError
from obverse.claims import claims
from obverse.claims.identity import _factorization as module


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def values(matrix) -> list[float]:
    return np.linalg.svd(np.asarray(matrix), compute_uv=False).tolist()


@pytest.mark.parametrize("turn", ["random", "half turn", "minus identity"])
@pytest.mark.parametrize("d", [2, 6])
def test_targets_have_their_gamma_and_a_positive_determinant(turn: str, d: int):
    for seed in range(10):
        matrix = module.target({"d": d, "gamma": 1.5, "turn": turn}, generator(seed))
        found = values(matrix)
        assert found[0] == pytest.approx(exp(1.5))
        assert found[-1] == pytest.approx(exp(-1.5))
        assert float(torch.linalg.det(matrix)) > 0


def test_one_dimension_stretches_or_shrinks():
    found = {
        round(float(module.target({"d": 1, "gamma": 1.0, "turn": "random"}, generator(seed)).log()), 9)
        for seed in range(20)
    }
    assert found == {1.0, -1.0}


def test_half_turns_have_an_eigenvalue_of_minus_one_twice():
    matrix = module.target({"d": 6, "gamma": 0.0, "turn": "half turn"}, generator())
    assert sorted(np.linalg.eigvalsh(matrix)) == pytest.approx([-1, -1, 1, 1, 1, 1])


@pytest.mark.parametrize("d", [2, 5, 8])
@pytest.mark.parametrize("angle", [0.01, 2.0])
def test_angles_are_the_largest(d: int, angle: float):
    matrix = module.target({"d": d, "gamma": 0.7, "angle": angle}, generator())
    left, found, right = np.linalg.svd(matrix)
    turns = np.angle(np.linalg.eigvals(left @ right))
    assert max(abs(turns)) == pytest.approx(angle, rel=1e-9)  # angles of eigenvalues, 1e-16/0.01 apart
    assert max(abs(np.log(found))) == pytest.approx(0.7)


def test_orthogonal_matrices_are_uniform():
    """E q_11² = 1/d, and as many entries above zero as below."""
    drawn = torch.stack([module._orthogonal(4, generator(seed)) for seed in range(2000)])
    assert torch.allclose(drawn @ drawn.mT, torch.eye(4, dtype=torch.float64), atol=1e-12)
    assert torch.allclose(torch.linalg.det(drawn), torch.ones(2000, dtype=torch.float64))
    assert abs(float(drawn[:, 0, 0].square().mean()) - 0.25) < 5 * 0.25 / 2000**0.5  # sd of q² below its mean
    assert drawn.mean(0).abs().max() < 5 * 0.5 / 2000**0.5  # 5 standard errors


def test_a_product_that_is_another_matrix_is_no_factorization():
    steps = [torch.eye(2, dtype=torch.float64)]
    assert module._largest(steps, 2 * torch.eye(2, dtype=torch.float64)) == pytest.approx(1)
    with pytest.raises(ObverseError, match="off by"):
        module._largest(steps, 2.001 * torch.eye(2, dtype=torch.float64))


def test_predictions_at_known_points():
    assert module.printed({"gamma": 1.0, "layers": 3, "d": 2}) == pytest.approx((4 * pi + 3) / 3)
    assert module.sharper({"gamma": 0.0, "layers": 3, "d": 2}) == pytest.approx(1.0)  # the chord of 60°
    assert module.sharper({"gamma": log(4), "layers": 2, "d": 2, "angle": 1e-9}) == pytest.approx(1.0)
    assert module.half_log({"d": 2, "condition": exp(4)}) == pytest.approx(2.0)


def test_the_tight_case_by_hand():
    """Singular values of [[a − c, s], [−s, 1/a − c]], a = e^{γ/l}, c and s of π/l."""
    stretch, layers = 2.0, 64
    setting = {"turn": "half turn", "d": 2, "gamma": stretch, "layers": layers, "trials": 3}
    grow, turn = stretch / layers, pi / layers
    block = [[exp(grow) - cos(turn), sin(turn)], [-sin(turn), exp(-grow) - cos(turn)]]
    assert module.measure_largest(setting, generator()) == pytest.approx([values(block)[0]] * 3, rel=1e-12)
    short = 1 - values(block)[0] / module.sharper(setting)
    assert short == pytest.approx(
        stretch**2 / (2 * layers * (pi + stretch)), rel=0.1
    )  # the next order in 1/l


@pytest.mark.parametrize("layers", [1, 5])
def test_roots_are_those_of_the_principal_logarithm(layers: int):
    setting = {"d": 4, "shear": 3.0, "missing": 0.5}
    axes = module._orthogonal(4, generator())
    matrix = module.sheared(setting, axes).numpy()
    expected = expm(logm(matrix) / layers)
    assert module.sheared(setting, axes, layers).numpy() == pytest.approx(
        expected, abs=1e-12
    )  # rounding of logm


@pytest.mark.parametrize("missing", [0.1, 2.0])
def test_gamma_of_sheared_rotations(missing: float):
    setting = {"d": 4, "shear": 30.0, "missing": missing, "layers": 40}
    found = values(module.sheared(setting, module._orthogonal(4, generator())))
    assert module.printed_sheared(setting) == pytest.approx((4 * pi + 3 * log(found[0])) / 40)
    assert found[0] * found[-1] == pytest.approx(1)
    assert acosh((found[0] + found[-1]) / 2) == pytest.approx(log(found[0]))


def test_the_logarithm_is_beaten_by_as_much_as_one_likes():
    ratios = []
    for shear, missing in ((100.0, 0.1), (1000.0, 0.01), (10_000.0, 0.001)):  # γ ≈ log 10 in all of them
        setting = {
            "d": 2,
            "shear": shear,
            "missing": missing,
            "layers": 64,
            "trials": 1,
            "factors": "R^(1/l)",
        }
        ratios.append(module.measure_sheared(setting, generator())[0] / module.printed_sheared(setting))
    assert ratios == sorted(ratios)
    assert ratios[0] > 10
    assert ratios[-1] > 1000


def test_rescaling_is_searched_without_the_formula():
    found = module.measure_rescaled({"d": 3, "condition": 50.0, "trials": 4}, generator())
    assert found == pytest.approx([log(50.0) / 2] * 4, rel=1e-6)


@pytest.mark.parametrize(
    ("call", "setting", "said"),
    [
        (module.printed, {"d": 2, "gamma": 1.0, "layers": 2}, "l ≥ 3γ"),
        (module.sharper, {"d": 2, "gamma": 1.0, "layers": 0}, "layers ≥ 1"),
        (module.sharper, {"d": 0, "gamma": 1.0, "layers": 3}, "d ≥ 1"),
        (module.sharper, {"d": 2, "gamma": -1.0, "layers": 3}, "γ ≥ 0"),
        (module.sharper, {"d": 2, "gamma": 1.0, "layers": 3, "angle": 4.0}, "angle"),
        (module.sharper, {"d": 3, "gamma": 1.0, "layers": 3, "turn": "half turn"}, "even d"),
        (module.half_log, {"d": 3, "condition": 1.0}, "κ > 1"),
        (module.check_sheared, {"d": 2, "layers": 30, "shear": 0.5, "missing": 1.0}, "shear"),
        (module.check_sheared, {"d": 2, "layers": 30, "shear": 2.0, "missing": 0.0}, "half turn"),
        (module.printed_sheared, {"d": 2, "layers": 1, "shear": 20.0, "missing": 1.0}, "l ≥ 3γ"),
    ],
)
def test_settings_that_say_nothing_are_refused(call, setting, said: str):
    with pytest.raises(BadInput, match=said):
        call(setting)


def test_every_claim_about_theorem_2_is_registered():
    known = claims()
    for name in ("thm2", "thm2.sharper", "thm2.condition", "thm2.angle", "thm2.tight", "thm2.rate"):
        assert known[f"identity.{name}"].expected == "held"
    assert known["identity.rescaling"].expected == "held"
    assert known["identity.root"].expected == "failed"
    assert known[known["identity.root"].twin].expected == "held"
