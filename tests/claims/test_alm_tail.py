"""The tail of ĥ_i off the support against its exact law, a mixture over how many inputs are alive."""

from math import inf, log, pi, sqrt

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.integrate import quad

from obverse._core.errors import BadInput
from obverse.claims.alm import _tail as tail


def exact_tail(n: int, t: int, z: float) -> float:
    """P(|ĥ_i| ≥ z·√(2/t)·‖h‖). With j ~ Bin(n, ρ/2) inputs alive, ĥ_i = α‖h‖·√(χ²_j)·g."""
    distance = z * sqrt(2 / t) * t / 2  # in units of α‖h‖
    counts = np.arange(1, n + 1)[:, None]
    sizes = np.linspace(1e-6, 300, 30_001)  # of χ²: beyond, and between these, less than 1e-9 is lost
    density = (stats.binom.pmf(counts, n, t / n / 2) * stats.chi2.pdf(sizes, counts)).sum(0)
    return float(np.trapezoid(2 * stats.norm.sf(distance / np.sqrt(sizes)) * density, sizes))


def setting(n: int, t: int, z: float, **more: int) -> dict[str, float]:
    return {"n": n, "m": 205, "k": 5, "t": t, "z": z, **more}


@pytest.mark.parametrize(("n", "t"), [(40, 20), (20, 20)])
def test_tail_lies_within_the_bound_and_beyond_the_sub_gaussian_one(n: int, t: int) -> None:
    exact = {z: exact_tail(n, t, z) for z in (1, 3, 5)}
    for z, chance in exact.items():
        assert chance < tail.chernoff(setting(n, t, z))
    assert exact[5] > 5 * tail.subgaussian(setting(n, t, 5))
    assert exact[1] < tail.subgaussian(setting(n, t, 1))


@pytest.mark.parametrize("z", [1, 2, 3])
def test_measured_share_is_the_exact_tail(z: int) -> None:
    found = tail.measure_share(
        setting(40, 20, z, trials=100, batch=40), torch.Generator().manual_seed(0)
    ).numpy()
    assert abs(found.mean() - exact_tail(40, 20, z)) < 5 * found.std() / 10  # standard errors of 100 batches


@pytest.mark.parametrize(("n", "t", "z"), [(40, 20, 5.0), (20, 20, 2.0), (400, 200, 4.0)])
def test_bound_is_the_best_over_the_moment_generating_function(n: int, t: int, z: float) -> None:
    """E exp(λαw·r(η)·mask) by quadrature over η, and λ from a fine grid."""
    distance = z * sqrt(2 / t) * t / 2

    def cumulant(part: float) -> float:
        alive = quad(lambda eta: np.exp(((part * eta) ** 2 - eta**2) / 2), 0, inf)[0] / sqrt(2 * pi)
        return n * log(1 - t / n + t / n * (0.5 + alive))

    best = min(cumulant(part) - part * distance for part in np.linspace(0.02, 0.9, 89))
    # a grid of step 0.01 misses the minimum by at most ½·ψ″·0.005², ψ″ being of the order of t here
    assert log(tail.chernoff(setting(n, t, z)) / 2) == pytest.approx(best, abs=2e-5 * t)
    assert log(tail.chernoff(setting(n, t, z)) / 2) <= best + 1e-9


def test_bound_tends_to_the_sub_gaussian_one() -> None:
    far = setting(2 * 10**8, 10**8, 3.0)
    assert tail.chernoff(far) == pytest.approx(tail.subgaussian(far), rel=1e-5)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [({"k": 205}, "off the support"), ({"z": 0}, "z > 0"), ({"t": 50}, "ρ = t/n"), ({"k": 300}, "k ≤ m")],
)
def test_bad_settings_name_the_condition(change: dict[str, int], sentence: str) -> None:
    bad = setting(40, 20, 1, trials=1, batch=1) | change
    for predict in (tail.chernoff, tail.subgaussian):
        with pytest.raises(BadInput, match=sentence):
            predict(bad)
    with pytest.raises(BadInput, match=sentence):
        tail.measure_share(bad, torch.Generator())
