"""Moments of ĥ: closed forms against quadrature and a simulation, measurements against dense algebra."""

from math import inf, sqrt

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.stats import norm

from obverse._core.errors import BadInput
from obverse.claims.alm import _moments as moments
from obverse.claims.alm._layer import fresh_weights

TINY = {"n": 6, "m": 4, "k": 3, "t": 4, "trials": 5, "batch": 7}


def one_term(h_i: float, rest: float, power: int) -> float:
    """E[(w·r(wh_i + ξ))^power] with ξ of variance `rest`, by quadrature over w."""
    spread = sqrt(rest)

    def inner(w: float) -> float:
        z = w * h_i / spread
        cut = z * norm.cdf(z) + norm.pdf(z) if power == 1 else (z**2 + 1) * norm.cdf(z) + z * norm.pdf(z)
        return (w * spread) ** power * cut * norm.pdf(w)

    return quad(inner, -inf, inf)[0]


@pytest.mark.parametrize("where", ["off", "least", "greatest"])
@pytest.mark.parametrize(("n", "t"), [(6, 4), (30, 30), (500, 20)])
def test_variance_is_that_of_n_independent_terms(where: str, n: int, t: int) -> None:
    k = 3
    squares = {"off": 0.0, "least": k * 1 / 14, "greatest": k * 9 / 14}  # 1² + 2² + 3² = 14
    h_i, keep, scale = sqrt(squares[where]), t / n, 2 / t
    first, second = (one_term(h_i, k - squares[where], power) for power in (1, 2))
    expected = n * scale**2 * (keep * second - (keep * first) ** 2)
    found = moments.variance({"n": n, "m": k + 1, "k": k, "t": t, "where": where})
    assert found == pytest.approx(expected, rel=1e-7)  # the quadrature's tolerance


def test_closed_forms_against_a_separate_simulation() -> None:
    random = np.random.default_rng(3)
    n, t, k, draws = 6, 4, 2, 300_000
    weights = random.standard_normal((draws, n, k))
    x = np.maximum(weights.sum(2), 0) * (2 / t) * (random.random((draws, n)) < t / n)
    found = np.einsum("dn,dnk->dk", x, weights)
    setting = {"n": n, "m": k, "k": k, "t": t, "where": "on"}
    mean = found.mean(1)
    assert abs(mean.mean() - moments.one(setting)) < 5 * mean.std() / sqrt(draws)  # standard errors
    centred = found - 1.0
    for values, expected in (
        (centred[:, 0] * centred[:, 1], moments.covariance(setting)),
        (centred.sum(1) ** 2, moments.form({**setting, "u": "aligned"})),
        ((centred[:, 0] - centred[:, 1]) ** 2, moments.form({**setting, "u": "alternating"})),
    ):
        assert abs(values.mean() - expected) < 5 * values.std() / sqrt(draws)  # standard errors


def test_form_of_an_odd_number_of_alternating_signs() -> None:
    # uᵀh = 1 for k = 3: ‖h‖² = ‖u‖² = 3
    assert moments.form({**TINY, "u": "alternating"}) == pytest.approx(2 / 4 * 9 + (4 / 4 - 1 / 6))


def drawn(h: torch.Tensor) -> np.ndarray:
    found = fresh_weights(h, 6, 4 / 6, 35, torch.Generator().manual_seed(4))
    return found.view(5, 7, 4).numpy()


def test_measurements_are_the_sample_moments_of_their_batches() -> None:
    generator = torch.Generator
    equal = drawn(torch.tensor([1.0, 1.0, 1.0, 0.0], dtype=torch.float64))
    ramp = torch.tensor([1.0, 2.0, 3.0, 0.0], dtype=torch.float64)
    sloped = drawn(ramp * sqrt(3 / 14))
    tables = [np.cov(batch.T) for batch in equal]  # unbiased
    expected = {
        "mean": [batch[:, :3].mean() for batch in equal],
        "covariance": [(table[0, 1] + table[0, 2] + table[1, 2]) / 3 for table in tables],
        "aligned": [table[:3, :3].sum() for table in tables],
        "alternating": [np.array([1, -1, 1]) @ table[:3, :3] @ np.array([1, -1, 1]) for table in tables],
        "least": [batch[:, 0].var(ddof=1) for batch in sloped],
        "greatest": [batch[:, 2].var(ddof=1) for batch in sloped],
        "on": [batch[:, :3].var(0, ddof=1).mean() for batch in sloped],
        "off": [batch[:, 3].var(ddof=1) for batch in sloped],
        "bias on": [abs(batch[:, :3].mean() - 1) for batch in equal],
        "bias off": [abs(batch[:, 3].mean()) for batch in equal],
    }
    found = {
        "mean": moments.measure_mean(TINY, generator().manual_seed(4)),
        "covariance": moments.measure_covariance(TINY, generator().manual_seed(4)),
        **{
            u: moments.measure_form({**TINY, "u": u}, generator().manual_seed(4))
            for u in ("aligned", "alternating")
        },
        **{
            where: moments.measure_variance({**TINY, "where": where}, generator().manual_seed(4))
            for where in ("least", "greatest", "on", "off")
        },
        **{
            f"bias {where}": moments.measure_bias({**TINY, "where": where}, generator().manual_seed(4))
            for where in ("on", "off")
        },
    }
    for name, values in expected.items():
        # float32 weights on both sides; sloped h differs by rounding
        assert found[name].tolist() == pytest.approx(values, rel=1e-5, abs=1e-6), name


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"k": 5}, "k ≤ m"),
        ({"t": 7}, r"ρ = t/n in \(0, 1\]"),
        ({"t": 0}, "t > 0"),
        ({"m": 3}, "off the support"),
    ],
)
def test_bad_settings_name_the_condition(change: dict[str, int], sentence: str) -> None:
    setting = {**TINY, "where": "off", "u": "aligned"} | change
    for predict in (
        *(moments.variance, moments.covariance, moments.form, moments.one),
        *(moments.variance_rate, moments.covariance_rate, moments.form_rate, moments.bias_rate),
    ):
        with pytest.raises(BadInput, match=sentence):
            predict(setting)
    for measure in (
        *(moments.measure_mean, moments.measure_bias, moments.measure_variance),
        *(moments.measure_covariance, moments.measure_form),
    ):
        with pytest.raises(BadInput, match=sentence):
            measure(setting, torch.Generator())


def test_a_pair_needs_two_coordinates() -> None:
    with pytest.raises(BadInput, match="k ≥ 2"):
        moments.measure_covariance({**TINY, "k": 1}, torch.Generator())
