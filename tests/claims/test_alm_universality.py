"""Laws of W's entries against SciPy's, the normal closed forms against quadrature and enumeration."""

from __future__ import annotations

from itertools import product
from math import sqrt

import numpy as np
import pytest
import torch
from scipy import integrate, stats

from obverse._core.errors import BadInput
from obverse.claims.alm import _entries as laws
from obverse.claims.alm import _universality as universality
from obverse.claims.alm._entries import FOURTH, entries
from obverse.claims.alm._hidden import draw_hidden
from obverse.claims.alm._stream import Weights, draw_seed

SIZE = {"n": 50, "m": 12, "k": 3, "t": 50, "batch": 5, "median": 3, "trials": 2}


def drawn(law: str, rows: int = 1000, columns: int = 400) -> np.ndarray:
    draw = entries(law, rows, columns, torch.Generator().manual_seed(0))
    return draw(np.random.Generator(np.random.Philox(1)), rows, columns)


def test_every_law_has_its_claim():
    assert set(universality.LAWS) == set(laws.LAWS)


@pytest.mark.parametrize(
    ("law", "reference"),
    [
        ("normal", stats.norm()),
        ("uniform", stats.uniform(-sqrt(3), 2 * sqrt(3))),
        ("student10", stats.t(10, scale=sqrt(8 / 10))),
        ("student5", stats.t(5, scale=sqrt(3 / 5))),
        ("student3", stats.t(3, scale=sqrt(1 / 3))),
        ("skewed", stats.expon(-1)),
    ],
)
def test_continuous_laws_against_scipy(law, reference):
    assert reference.var() == pytest.approx(1)
    found = drawn(law, 400, 250).ravel()
    # Kolmogorov–Smirnov at 10⁵ entries; a seed that fails by chance has p below 10⁻³.
    assert stats.kstest(found, reference.cdf).pvalue > 1e-3


@pytest.mark.parametrize(
    ("law", "values"), [("signs", {-1: 0.5, 1: 0.5}), ("sparse", {-1: 0.05, 0: 0.9, 1: 0.05})]
)
def test_discrete_laws_have_their_values_and_chances(law, values):
    found = drawn(law)
    size = np.abs(found).max()
    assert size == pytest.approx(1 if law == "signs" else sqrt(10))
    counts = [int((np.abs(found - value * size) < 1e-6).sum()) for value in values]
    assert sum(counts) == found.size
    assert stats.chisquare(counts, [share * found.size for share in values.values()]).pvalue > 1e-3


@pytest.mark.parametrize("law", [law for law in laws.LAWS if "spike" not in law])
def test_entries_of_different_inputs_and_units_are_uncorrelated_but_where_meant(law):
    found = drawn(law, 2000, 64).astype(np.float64)
    if law == "student3":  # without fourth moments correlations do not settle; signs keep independence
        found = np.sign(found)
    if law == "alike-units":
        found = found[:, ::8]
    if law == "alike-rows":
        found = found[::8]
    between = np.corrcoef(found.T)[np.triu_indices(found.shape[1], 1)]
    # Correlations of r entries have variance 1/r under independence: χ² of the pairs within 5 deviations.
    pairs = len(between)
    assert abs((between**2).sum() * len(found) - pairs) < 5 * sqrt(2 * pairs)


@pytest.mark.parametrize("law", ["alike-rows", "alike-units"])
def test_groups_of_eight_are_alike(law):
    found = drawn(law, 400, 800).astype(np.float64)
    groups = found if law == "alike-units" else found.T
    eights = groups.reshape(len(groups), -1, 8)
    # Means over 40 000 groups; a product of two such normals has a standard deviation of about 1.
    error = 1 / sqrt(eights.shape[0] * eights.shape[1])
    assert abs((eights[..., 0] * eights[..., 7]).mean() - 0.25) < 4 * 1.1 * error
    assert abs((eights[:, 1:, 0] * eights[:, :-1, 7]).mean()) < 4 * 1.1 * error
    assert abs(found.var() - 1) < 4 * sqrt(2 / found.size) * 2  # groups of equal variance: at most √8 wider


@pytest.mark.parametrize("law", ["spike", "aligned-spike"])
def test_a_spike_stands_out_of_the_spectrum_in_one_direction(law):
    """All blocks share the direction; the largest singular value is that of a spiked normal matrix."""
    n, m = 3000, 300
    draw = entries(law, n, m, torch.Generator().manual_seed(0))
    w = torch.cat([block for block, _ in Weights(n, m, 1, draw).blocks()]).double().numpy()
    _, values, directions = np.linalg.svd(w, full_matrices=False)
    edge = sqrt(n) + sqrt(m)
    height = 1.5 * edge
    # Benaych-Georges and Nadakuditi: σ² = (n + λ²)(m + λ²)/λ². Here λ also varies with |u|, by 1/√(2n) of it,
    # and σ by about 1/√2 itself: 4 deviations of both.
    expected = sqrt((n + height**2) * (m + height**2)) / height
    assert abs(values[0] - expected) < 4 * (height / sqrt(2 * n) + sqrt(0.5))
    assert values[1] < edge + 4 * edge ** (1 / 3) * m ** (-1 / 6)  # Tracy–Widom's scale
    if law == "aligned-spike":
        assert abs(directions[0].sum()) / sqrt(m) > 0.9


@pytest.mark.parametrize("law", FOURTH)
def test_fourth_moments(law):
    found = drawn(law).astype(np.float64).ravel()
    powers = found**4
    assert abs(powers.mean() - FOURTH[law]) <= 5 * powers.std() / sqrt(len(powers)) + 1e-6


@pytest.mark.parametrize("k", [2, 4, 7])
@pytest.mark.parametrize(("law", "fourth"), [("signs", 1.0), ("sparse", 10.0)])
def test_noise_on_the_support_by_enumeration(law, fourth, k):
    """All rows of a W of ±1, or of 0 and ±√10, with their chances: the exact variance of ĥ_1."""
    n, t = 40, 10
    choices = [(-1, 0.5), (1, 0.5)] if law == "signs" else [(-sqrt(10), 0.05), (0, 0.9), (sqrt(10), 0.05)]
    first = second = 0.0
    for row in product(choices, repeat=k):
        chance = np.prod([one for _, one in row])
        x = 2 / t * max(0.0, sum(w for w, _ in row) / sqrt(k))
        first += chance * t / n * row[0][0] * x
        second += chance * t / n * (row[0][0] * x) ** 2
    assert n * first == pytest.approx(1 / sqrt(k))  # the mean is exact for symmetric entries
    setting = {"law": law, "n": n, "m": 20, "k": k, "t": t}
    assert universality.predict_noise_on_support(setting) == pytest.approx(t * n * (second - first**2))
    assert universality.noise_on_support(setting, fourth) == pytest.approx(t * n * (second - first**2))


def test_median_of_the_largest_against_simulation():
    g = np.random.default_rng(0).standard_normal((40_000, 30))
    g[:, :10] *= sqrt(3.0)
    g[:, 10:] *= sqrt(2.0)
    largest = np.abs(g).max(1)
    share = (largest < universality.median_largest(20, 2.0, 10, 3.0)).mean()
    assert abs(share - 0.5) < 4 * 0.5 / sqrt(len(largest))


def test_recovery_against_quadrature():
    setting = {"fact": "recovery", "law": "normal", "n": 4000, "m": 300, "k": 20, "t": 1000}
    cut, h = 1 / sqrt(1000), 1 / sqrt(20)

    def expected(mean: float, variance: float) -> float:
        def integrand(g: float) -> float:
            return stats.norm.pdf(g) * (max(0.0, mean - cut + sqrt(variance) * g) - mean) ** 2

        kink = (cut - mean) / sqrt(variance)
        return integrate.quad(integrand, -12, kink)[0] + integrate.quad(integrand, kink, 12)[0]

    total = 20 * expected(h, 2 / 1000 * (1 + 2 / 20) - 1 / 20 / 4000) + 280 * expected(0.0, 2 / 1000)
    assert universality.predict(setting) == pytest.approx(total, rel=1e-6)


def test_facts_against_a_plain_computation():
    """ρ = 1, so that W is all there is: the same draws, computed entry by entry."""
    generator = torch.Generator().manual_seed(3)
    expected: dict[str, list] = {fact: [] for fact in universality._FACTS}
    for _ in range(6):
        h = draw_hidden(SIZE["batch"], SIZE["m"], SIZE["k"], "equal", generator).numpy()
        weights = Weights(SIZE["n"], SIZE["m"], draw_seed(generator), laws.signs)
        w = torch.cat([block for block, _ in weights.blocks()]).double().numpy()
        back = np.array([w.T @ np.maximum(2 / SIZE["n"] * w @ one, 0) for one in h])
        on, off = h > 0, h == 0
        expected["mean"].append(np.mean(back[on]) * sqrt(SIZE["k"]))
        expected["noise off"].append(SIZE["t"] * np.mean(back[off] ** 2))
        expected["noise on"].append(SIZE["t"] * np.mean((back[on] - 1 / sqrt(SIZE["k"])) ** 2))
        expected["largest"].append(sqrt(SIZE["t"]) * np.median(np.abs(back - h).max(1)))
        kept = np.maximum(back - 1 / sqrt(SIZE["t"]), 0)
        expected["recovery"].append(np.mean(((kept - h) ** 2).sum(1)))
    for fact, values in expected.items():
        setting = {"fact": fact, "law": "signs", **SIZE}
        found = universality.measure(setting, torch.Generator().manual_seed(3))
        medians = [sorted(values[:3])[1], sorted(values[3:])[1]]
        np.testing.assert_allclose(found.numpy(), medians, rtol=1e-5)  # float32 sums of 50 terms


@pytest.mark.parametrize(
    ("change", "sentence"),
    [({"k": 13}, "k ≤ m"), ({"t": 51}, "ρ = t/n"), ({"k": 0}, "support must not be empty")],
)
def test_bad_settings_name_the_condition(change, sentence):
    setting = {"fact": "mean", "law": "signs", **SIZE, **change}
    with pytest.raises(BadInput, match=sentence):
        universality.predict(setting)
    with pytest.raises(BadInput, match=sentence):
        universality.measure(setting, torch.Generator())


def test_an_unknown_law_is_refused_with_the_known_ones():
    with pytest.raises(BadInput, match=r"a law of W out of normal, signs.*'cauchy'"):
        entries("cauchy", 10, 10, torch.Generator())
