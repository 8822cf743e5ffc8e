"""Entries against scipy, brute force and simulation."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from scipy import integrate, stats

from obverse._core.errors import BadInput
from obverse.weights._distributions import anderson_p, best_law, kurtosis_p, normal_distances, skew_p
from obverse.weights._entries import entries, matters_from
from obverse.weights.results import Entries

RNG = np.random.default_rng  # each test seeds its own


def measure(values: object, most: int = 2**21, seed: int = 0) -> Entries:
    matrix = torch.as_tensor(values)
    generator = torch.Generator().manual_seed(seed)
    return entries(matrix, sparsity=5, kept=100, error=0.2, most=most, generator=generator)


def false_alarms(p: np.ndarray, level: float) -> tuple[float, float]:
    """99.9 % Clopper–Pearson limits of the rate of p ≤ level."""
    interval = stats.binomtest(int((p <= level).sum()), len(p)).proportion_ci(0.999, method="exact")
    return float(interval.low), float(interval.high)


# Moments


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(3, 5), (200, 500), (2**15 + 7, 3)])  # the last ends inside a chunk
def test_moments_are_scipys(dtype, shape):
    x = (RNG(1).gamma(3.0, size=shape) * 0.01 + 5).astype(dtype)
    before = x.copy()
    measured = measure(x)
    assert np.array_equal(x, before)  # the weights are the user's
    exact = x.astype(np.float64).ravel()
    # float64 sums of n terms: n · 1e-16 at worst, times the 300 of mean ÷ scale (to the 4th: not summed so)
    assert measured.mean.value == pytest.approx(exact.mean(), rel=1e-12)
    assert measured.scale.value == pytest.approx(exact.std(), rel=1e-10)
    assert measured.skew.value == pytest.approx(stats.skew(exact), rel=1e-8)
    assert measured.kurtosis.value == pytest.approx(stats.kurtosis(exact), rel=1e-8, abs=1e-9)
    assert measured.mean.spread == pytest.approx(exact.std() / math.sqrt(exact.size), rel=1e-10)
    assert measured.skew.spread == pytest.approx(math.sqrt(6 / exact.size))
    assert measured.kurtosis.spread == pytest.approx(math.sqrt(24 / exact.size))


def test_the_standard_error_of_the_scale_uses_the_kurtosis():
    samples = RNG(2).laplace(size=(2000, 1024)).astype(np.float32)
    measured = [measure(sample) for sample in samples[:200]]
    expected = samples.std(axis=1).std()  # known to 1/√4000 = 1.6 %; the median of the estimates to 3 %
    assert np.median([one.scale.spread for one in measured]) == pytest.approx(expected, rel=0.15)
    assert expected > 1.4 / math.sqrt(2 * 1024) * 1.3  # a normal law's formula would be too small


@pytest.mark.parametrize("count", [20, 100, 3000])
@pytest.mark.parametrize("draw", ["normal", "laplace", "uniform", "exponential"])
def test_p_values_of_skew_and_kurtosis_are_scipys(count, draw):
    x = getattr(RNG(3), draw)(size=count)
    skew, kurtosis = float(stats.skew(x)), float(stats.kurtosis(x))
    assert skew_p(skew, count) == pytest.approx(stats.skewtest(x).pvalue, rel=1e-6)
    assert kurtosis_p(kurtosis, count) == pytest.approx(stats.kurtosistest(x).pvalue, rel=1e-6)


def test_the_kurtosis_of_signs_is_impossible_for_normal_entries():
    assert kurtosis_p(-2.0, 100) == 0.0


def test_p_value_of_the_mean():
    x = (RNG(4).standard_normal(10_000) + 0.02).astype(np.float32)
    measured = measure(x).mean
    exact = x.astype(np.float64)
    deviation = exact.mean() / (exact.std() / 100)
    assert measured.p == pytest.approx(2 * stats.norm.sf(abs(deviation)), rel=1e-9)


# Distances to the normal law


@pytest.mark.parametrize("count", [4, 31, 5000])
@pytest.mark.parametrize("draw", ["standard_normal", "standard_cauchy", "random"])
def test_distances_are_scipys(count, draw):
    x = np.sort(getattr(RNG(5), draw)(size=count))
    ks, anderson = normal_distances(x)
    fitted = stats.norm(x.mean(), x.std(ddof=1))
    assert ks.value == pytest.approx(stats.kstest(x, fitted.cdf).statistic, abs=1e-12)
    odd = 2 * np.arange(1, count + 1) - 1
    z = np.clip((x - x.mean()) / x.std(ddof=1), -37, 37)  # where Φ underflows
    brute = -count - np.mean(odd * (stats.norm.logcdf(z) + stats.norm.logsf(z[::-1])))
    assert anderson.value == pytest.approx(brute, rel=1e-9, abs=1e-9)  # n cancels: n · 1e-16 is left


# How many samples: enough to see a rate of 1.5 times the nominal one at 0.01, in a few seconds.
@pytest.fixture(scope="module", params=[(50, 6000), (1000, 6000), (5000, 2000), (20_000, 600)])
def null(request):
    count, draws = request.param
    samples = RNG(count).standard_normal((draws, count), dtype=np.float32)
    samples.sort(axis=1)
    return count, [normal_distances(sample) for sample in samples]


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.05, 0.01, 0.001])
def test_false_alarms_of_the_distances_are_at_most_nominal(null, level):
    count, distances = null
    for which in (0, 1):
        low, high = false_alarms(np.array([pair[which].p for pair in distances]), level)
        assert low <= level
        # … and not far below it: the tails are known to 12 % or better, except at n = 50.
        assert high >= level * (0.85 if count > 50 else 0.6)


def test_null_means_and_spreads_of_the_distances(null):
    count, distances = null
    for which in (0, 1):
        values = np.array([pair[which].value for pair in distances])
        expected = distances[0][which]
        five_errors = 5 * values.std() / math.sqrt(len(values))
        # The limit of the mean of √n·D is 0.12/√n above its value at n.
        finite = 0.12 / count if which == 0 else 0.01 / count
        assert expected.null - finite == pytest.approx(values.mean(), abs=five_errors + finite / 2)
        # a standard deviation is known to √((κ + 2)/4N); both statistics have κ < 4
        assert expected.spread == pytest.approx(values.std(), rel=5 * math.sqrt(6 / (4 * len(values))) + 0.01)


def test_anderson_darling_tail_is_that_of_its_limit():
    """The limit is Σ λ_j g_j², λ the eigenvalues of the covariance of the fitted process (Durbin 1973)."""

    def eigenvalues_on(count: int) -> np.ndarray:
        nodes, weights = np.polynomial.legendre.leggauss(count)
        z, weights = 9 * nodes, 9 * weights * stats.norm.pdf(9 * nodes)
        both = stats.norm.cdf(z) * stats.norm.sf(z)
        bridge = stats.norm.cdf(np.minimum.outer(z, z)) * stats.norm.sf(np.maximum.outer(z, z))
        fitted = bridge - np.outer(stats.norm.pdf(z), stats.norm.pdf(z)) * (1 + np.outer(z, z) / 2)
        return np.linalg.eigvalsh(fitted * np.sqrt(np.outer(weights, weights) / np.outer(both, both)))

    coarse, eigenvalues = eigenvalues_on(300), eigenvalues_on(600)
    spreads = [math.sqrt(2 * (one**2).sum()) for one in (coarse, eigenvalues)]
    _, anderson = normal_distances(np.sort(RNG(6).standard_normal(10**6)))
    assert anderson.null == pytest.approx(eigenvalues.sum(), abs=1e-5)
    # The kernel has an edge on its diagonal, which costs 1/count²: taken off by extrapolation.
    assert anderson.spread == pytest.approx((4 * spreads[1] - spreads[0]) / 3, abs=3e-5)

    def tail(a: float) -> float:  # Imhof 1961
        def wave(u: float) -> float:
            angle = 0.5 * (np.arctan(eigenvalues * u).sum() - a * u)
            return math.sin(angle) / (u * math.exp(0.25 * np.log1p((eigenvalues * u) ** 2).sum()))

        return 0.5 + integrate.quad(wave, 1e-12, 2000, limit=2000)[0] / math.pi

    for a in (0.15, 0.25, 0.34, 0.5, 0.6, 0.8, 1.0, 1.2):
        assert anderson_p(a) == pytest.approx(tail(a), rel=0.05)  # their formulas' own accuracy
    for a in (1.3, 1.6, 2.0, 2.5):
        assert tail(a) < anderson_p(a) < 1.7 * tail(a)
    assert anderson_p(200) < anderson_p(100) < 1e-200


def test_a_subset_has_the_nulls_of_its_size():
    """Drawn with repetition, the distances would be √(1 + ½) times too large."""
    scaled = []
    for seed in range(225):
        measured = measure(RNG(seed).standard_normal(3000).astype(np.float32), most=1500, seed=seed)
        assert measured.used == 1500
        scaled.append(measured.ks.value * math.sqrt(1500))
    # mean 0.636 − 0.12/√n, spread 0.147: five standard errors
    assert np.mean(scaled) == pytest.approx(0.633, abs=5 * 0.147 / 15)


def test_p_values_of_moments_have_nominal_false_alarms():
    samples = RNG(7).standard_normal((4000, 1024))
    skew, kurtosis = stats.skew(samples, axis=1), stats.kurtosis(samples, axis=1)
    for level in (0.05, 0.01):
        for p in ([skew_p(one, 1024) for one in skew], [kurtosis_p(one, 1024) for one in kurtosis]):
            low, high = false_alarms(np.array(p), level)
            assert low <= level <= high


# Laws

DRAWS = {
    "normal": lambda rng, count: rng.normal(2.0, 0.3, size=count),
    "Laplace": lambda rng, count: rng.laplace(-1.0, 0.02, size=count),
    "Student t": lambda rng, count: 0.1 * rng.standard_t(4, size=count) + 1,
    "uniform": lambda rng, count: rng.uniform(-0.05, 0.05, size=count),
}


@pytest.mark.parametrize("count", [1024, 100_000])
@pytest.mark.parametrize("law", DRAWS)
def test_the_law_is_found(law, count):
    measured = measure(DRAWS[law](RNG(8), count).astype(np.float32))
    assert measured.best_law == law
    gains = {key: value for key, value in measured.likelihoods.items() if key != law}
    assert measured.likelihoods["normal"] == 0.0
    assert max(gains.values()) < measured.likelihoods[law] + (5 / count if law == "normal" else 0)
    if law == "Student t":
        assert measured.freedom == pytest.approx(4, rel=5 * 4 / math.sqrt(count))  # its error is ~ 4/√n
    if law != "normal":
        assert measured.ks.p < 1e-6
        assert measured.anderson.p < 1e-6


@pytest.mark.parametrize("law", DRAWS)
def test_likelihoods_are_those_of_scipys_fits(law):
    x = np.sort(DRAWS[law](RNG(9), 1500))
    _, gains, freedom = best_law(x)
    normal = stats.norm.logpdf(x, *stats.norm.fit(x)).mean()
    for name, family in (("Laplace", stats.laplace), ("uniform", stats.uniform)):
        expected = family.logpdf(x, *family.fit(x)).mean() - normal
        assert gains[name] == pytest.approx(expected, abs=1e-9)
    fitted = stats.t.fit(x, 5, loc=np.median(x), scale=x.std() / 1.3)  # by default it may stop far off
    expected = stats.t.logpdf(x, *fitted).mean() - normal
    # ours stops at 100 degrees of freedom, where a t loses up to 0.005 nats to the normal on light tails
    assert gains["Student t"] == pytest.approx(expected, abs=1e-5 if freedom else 0.006)
    if freedom:
        assert freedom == pytest.approx(fitted[0], rel=0.01)


def test_the_search_on_quantiles_finds_the_likelihood_of_the_whole_sample():
    x = np.sort(RNG(10).standard_t(5, size=300_000))
    _, gains, freedom = best_law(x)
    truth = stats.t.logpdf(x, 5).mean() - stats.norm.logpdf(x, x.mean(), x.std()).mean()
    assert gains["Student t"] == pytest.approx(
        truth, abs=5e-5
    )  # fitting gains 3/(2n), quantiles lose as much
    assert freedom == pytest.approx(5, rel=0.03)


def test_normal_entries_are_called_normal():
    called = [best_law(np.sort(RNG(seed).standard_normal(1024)))[0] for seed in range(150)]
    assert called == ["normal"] * 150  # e¹⁰: chance 4e-6 each


def test_a_light_deviation_is_called_by_its_law_when_there_is_evidence():
    assert measure(RNG(11).standard_t(30, size=500).astype(np.float32)).best_law == "normal"
    measured = measure(RNG(11).standard_t(30, size=500_000).astype(np.float32))
    assert measured.best_law == "Student t"
    assert measured.likelihoods["Student t"] < 0.002  # the effect size says how little it is


# Zeros, levels, grids


def quantized(x: np.ndarray, low: int, high: int) -> tuple[np.ndarray, float]:
    step = np.float32((x.max() - x.min()) / (high - low))
    zero = np.round(low - x.min() / step)
    return ((np.clip(np.round(x / step) + zero, low, high) - zero).astype(np.float32) * step), float(step)


def test_int8_weights_lie_on_a_grid():
    x = RNG(12).normal(0.01, 0.05, size=(300, 400)).astype(np.float32)
    symmetric = np.float32(np.abs(x).max() / 127)
    cases = [
        (np.round(x / symmetric).astype(np.float32) * symmetric, float(symmetric)),
        quantized(x, 0, 255),
        quantized(x, -8, 7),
        (np.float32(0.37) + quantized(x, 0, 255)[0], quantized(x, 0, 255)[1]),
    ]
    for values, step in cases:
        measured = measure(values)
        assert measured.distinct == len(np.unique(values))
        assert measured.step == pytest.approx(step, rel=1e-5)  # float32 over ≥ 15 levels
        assert measured.best_law == "normal" or measured.distinct <= 16


def test_few_values_and_their_steps():
    signs = np.sign(RNG(13).standard_normal((64, 64))).astype(np.float32)
    assert (measure(signs).distinct, measure(signs).step) == (2, 2.0)
    assert measure(signs).best_law == "uniform"
    assert measure(signs).ks.value > 0.3
    ternary = signs * (RNG(14).random((64, 64)) < 0.4)
    assert (measure(ternary).distinct, measure(ternary).step) == (3, 1.0)
    table = RNG(15).standard_normal(16).astype(np.float32)[RNG(16).integers(16, size=(64, 64))]
    assert (measure(table).distinct, measure(table).step) == (16, None)  # a table of values, no grid
    near = (np.arange(64) + 0.01 * RNG(15).standard_normal(64)).astype(np.float32)
    assert measure(near[RNG(16).integers(64, size=(64, 64))]).step is None  # not to float32 precision
    powers = signs * 2.0 ** -RNG(17).integers(0, 8, size=(64, 64)).astype(np.float32)
    assert (measure(powers).distinct, measure(powers).step) == (16, 2.0**-7)


def test_continuous_entries_are_no_grid():
    for count in (16, 1000, 500_000):  # at 500,000 some float32 values occur twice by chance
        measured = measure(RNG(18).standard_normal(count).astype(np.float32))
        assert (measured.distinct, measured.step) == (None, None)
    rounded = measure(torch.from_numpy(RNG(18).standard_normal(100_000)).bfloat16())
    assert rounded.step is None  # repeated values, but finer the smaller they are


@pytest.mark.parametrize("count", [2048, 100_000])
def test_pruned_normal_entries(count):
    x = RNG(19).standard_normal(count).astype(np.float32) * (RNG(20).random(count) < 0.2)
    measured = measure(x)
    assert measured.zeros == pytest.approx((x == 0).mean(), abs=1e-12)
    assert measured.best_law == "normal"  # what is left
    assert (measured.distinct, measured.step) == (None, None)
    assert measured.ks.value > 0.3
    assert measured.ks.p < 1e-12


# Pictures


def test_histogram_and_quantiles_are_numpys():
    x = RNG(21).standard_t(3, size=(100, 300)).astype(np.float32)
    measured = measure(x)
    z = (x.astype(np.float64).ravel() - measured.mean.value) / measured.scale.value
    counts, edges = np.histogram(np.clip(z, -6, 6), bins=60, range=(-6, 6))
    assert np.abs(z).max() > 6
    assert measured.histogram.counts == tuple(counts)
    assert measured.histogram.edges == pytest.approx(tuple(edges))
    normal, observed = np.array(measured.quantiles).T
    assert normal == pytest.approx(np.linspace(-3.5, 3.5, 41))  # 30,000 entries reach 3.5
    assert observed == pytest.approx(np.quantile(z, stats.norm.cdf(normal), method="hazen"), abs=1e-9)
    few = np.array(measure(x[:1, :100]).quantiles)[:, 0]
    assert 0.5 / 100 <= stats.norm.cdf(few.min()) < stats.norm.cdf(few.min() - 0.175) + 0.01


def test_the_same_generator_gives_the_same_result():
    x = RNG(22).standard_normal(10_000).astype(np.float32)
    assert measure(x, most=1000, seed=1) == measure(x, most=1000, seed=1)
    assert measure(x, most=1000, seed=1).ks != measure(x, most=1000, seed=2).ks


# Extremes

EXTREMES = {
    "constant": np.full((3, 4), 0.3, dtype=np.float32),
    "zeros": np.zeros((3, 4), dtype=np.float32),
    "four": np.array([[1.0, 2.0], [3.0, 5.0]], dtype=np.float32),
    "two values": np.array([[1.0, 2.0], [2.0, 2.0]], dtype=np.float32),
    "huge": RNG(23).standard_normal((20, 20)).astype(np.float32) * 1e30,
    "huge float64": RNG(23).standard_normal((20, 20)) * 1e300,
    "tiny": RNG(23).standard_normal((20, 20)) * 1e-300,
    "outlier": np.where(np.arange(400) == 0, 1e30, RNG(23).standard_normal(400)).astype(np.float32),
    "one filled": np.eye(1, 400, dtype=np.float32),
    "mostly one value": np.where(np.arange(400) < 300, 1.0, RNG(23).standard_normal(400)),
}


@pytest.mark.parametrize("name", EXTREMES)
def test_extremes_are_measured(name):
    for most in (2**21, 100):
        measured = measure(EXTREMES[name], most=most)
        json.dumps(measured.to_dict(), allow_nan=False)
        assert sum(measured.histogram.counts) == measured.used


def test_a_constant_matrix():
    measured = measure(EXTREMES["constant"])
    assert measured.scale.value == measured.skew.value == measured.kurtosis.value == 0
    assert measured.mean.p is measured.skew.p is measured.kurtosis.p is None
    assert measured.ks.value == pytest.approx(0.5)
    assert measured.ks.p < 1e-6
    assert (measured.distinct, measured.step, measured.best_law) == (1, None, "normal")
    assert measured.histogram.counts[30] == measured.used  # the bin that starts at 0
    assert measure(EXTREMES["zeros"]).zeros == 1


def test_scale_does_not_matter():
    x = RNG(23).standard_normal((20, 20))
    plain, huge = measure(x), measure(EXTREMES["huge float64"])
    assert huge.kurtosis.value == pytest.approx(plain.kurtosis.value, rel=1e-9)
    assert huge.ks.value == pytest.approx(plain.ks.value, rel=1e-9)
    assert huge.anderson.value == pytest.approx(plain.anderson.value, rel=1e-9)
    assert huge.scale.value == pytest.approx(1e300 * plain.scale.value, rel=1e-9)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_refused(value):
    x = torch.randn(300, 300, generator=torch.Generator().manual_seed(0))
    x[200, 100] = value
    with pytest.raises(BadInput, match="expected finite entries"):
        measure(x)


@pytest.mark.parametrize("matrix", [torch.ones(3, 4, dtype=torch.int8), torch.ones(1, 3)])
def test_what_is_no_matrix_of_weights_is_refused(matrix):
    with pytest.raises(BadInput, match="at least 4 entries"):
        measure(matrix)


# From which size on it matters


@pytest.mark.parametrize(("sparsity", "kept", "error"), [(0, 10, 0.1), (1, 0, 0.1), (1, 10, 0.0)])
def test_impossible_uses_are_refused(sparsity, kept, error):
    with pytest.raises(BadInput, match="sparsity ≥ 1"):
        matters_from(sparsity, kept, error)


def test_matters_from_is_finite_where_recovery_is_lost():
    assert all(0 < size < 1e3 for size in matters_from(20, 100, 1.0).values())


def recovery_errors(weights: np.ndarray, h: np.ndarray) -> np.ndarray:
    """Mean ‖r(ĥ − θ) − h‖² over the batch at many θ, by explicit matrices (weights are out × in, ‖h‖ = 1)."""
    inputs = weights.shape[1]
    scale = 2 / (inputs * np.mean(weights.astype(np.float64) ** 2))
    recovered = (np.maximum(h @ weights, 0) * np.float32(scale)) @ weights.T
    thresholds = np.linspace(0, 10, 81, dtype=np.float32) / np.float32(math.sqrt(inputs))
    return np.array([((np.maximum(recovered - t, 0) - h) ** 2).sum(1).mean() for t in thresholds])


def mean_shifted(z: np.ndarray, size: float, rng: np.random.Generator) -> np.ndarray:
    return z + np.float32(size)


def skewed(z: np.ndarray, size: float, rng: np.random.Generator) -> np.ndarray:
    """A centred gamma law of that skew, as a monotone function of z (so that the noise is shared)."""
    shape = (2 / size) ** 2
    grid = np.linspace(-7, 7, 4001)
    table = (stats.gamma.ppf(stats.norm.cdf(grid), shape) - shape) / math.sqrt(shape)
    return np.interp(math.copysign(1, size) * z, grid, table * math.copysign(1, size)).astype(np.float32)


def heavy(z: np.ndarray, size: float, rng: np.random.Generator) -> np.ndarray:
    """z with one entry in twenty drawn wider, so that the variance is 1 and the excess kurtosis `size`."""
    share = 0.05
    # excess = 3·share·(v − 1)²/(1 − share) for the wide variance v
    wide = 1 + math.sqrt(size * (1 - share) / (3 * share))
    narrow = (1 - share * wide) / (1 - share)
    return z * np.where(rng.random(z.shape) < share, math.sqrt(wide), math.sqrt(narrow)).astype(np.float32)


@pytest.mark.parametrize(
    ("rows", "sparsity", "columns", "draws"), [(400, 4, 1200, 6), (400, 20, 400, 12), (300, 60, 600, 8)]
)
@pytest.mark.slow  # simulates what a constant was set by
def test_the_sizes_that_matter_change_the_error_by_a_tenth(rows, sparsity, columns, draws):
    """… within a factor of 2 of the size, for the less favourable sign; a tenth of it does very little."""
    makers = {"mean": mean_shifted, "skew": skewed, "kurtosis": heavy}
    rng = RNG(24)
    batches = []
    for _ in range(draws):
        h = np.zeros((64, rows), dtype=np.float32)
        support = rng.permuted(np.tile(np.arange(rows), (64, 1)), axis=1)[:, :sparsity]
        np.put_along_axis(h, support, np.abs(rng.standard_normal((64, sparsity), dtype=np.float32)), axis=1)
        h /= np.linalg.norm(h, axis=1, keepdims=True)
        batches.append((rng.standard_normal((rows, columns), dtype=np.float32), h))
    normal = np.mean([recovery_errors(z, h) for z, h in batches], axis=0).min()
    for name, size in matters_from(sparsity, columns, normal).items():
        changes = {}
        for factor in (0.1, 0.5, 2.0):
            errors = []
            for sign in (1, -1) if name != "kurtosis" else (1,):
                made = [recovery_errors(makers[name](z, sign * factor * size, rng), h) for z, h in batches]
                errors.append(abs(np.mean(made, axis=0).min() / normal - 1))
            changes[factor] = max(errors)
        # With z and h shared a change is known to about 0.01.
        assert changes[0.5] < 0.1 < changes[2.0], (name, changes)
        assert changes[0.1] < 0.03, (name, changes)
