"""The tail of ĥ_i off the support against its exact law, a mixture over how many inputs are alive."""

from math import sqrt

import numpy as np
import pytest
import torch
from scipy import stats

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
def test_the_predicted_tail_is_the_exact_one_and_beyond_the_sub_gaussian(n: int, t: int) -> None:
    exact = {z: exact_tail(n, t, z) for z in (1, 3, 5)}
    for z, chance in exact.items():
        assert tail.exact_tail(setting(n, t, z)) == pytest.approx(chance, rel=1e-6)  # of the sum over χ²
    assert exact[5] > 5 * tail.subgaussian(setting(n, t, 5))
    assert exact[1] < tail.subgaussian(setting(n, t, 1))


@pytest.mark.parametrize("z", [1, 2, 3])
def test_measured_share_is_the_exact_tail(z: int) -> None:
    found = tail.measure_share(
        setting(40, 20, z, trials=100, batch=40), torch.Generator().manual_seed(0)
    ).numpy()
    assert abs(found.mean() - exact_tail(40, 20, z)) < 5 * found.std() / 10  # standard errors of 100 batches


def test_the_tail_tends_to_that_of_a_normal_variable() -> None:
    far = setting(2 * 10**5, 10**5, 3.0)
    assert tail.exact_tail(far) == pytest.approx(
        2 * stats.norm.sf(3.0), rel=1e-3
    )  # an excess kurtosis of 18/t adds 0.04 %


@pytest.mark.parametrize(
    ("change", "sentence"),
    [({"k": 205}, "off the support"), ({"z": 0}, "z > 0"), ({"t": 50}, "ρ = t/n"), ({"k": 300}, "k ≤ m")],
)
def test_bad_settings_name_the_condition(change: dict[str, int], sentence: str) -> None:
    bad = setting(40, 20, 1, trials=1, batch=1) | change
    for predict in (tail.exact_tail, tail.subgaussian):
        with pytest.raises(BadInput, match=sentence):
            predict(bad)
    with pytest.raises(BadInput, match=sentence):
        tail.measure_share(bad, torch.Generator())
