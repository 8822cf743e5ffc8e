"""Singular values, bulk and spikes of a layer: scipy for the values, planted parts for the judgement."""

from math import sqrt

import numpy as np
import pytest
import torch
from scipy.linalg import svdvals
from scipy.stats import kstest

from obverse.weights import _marchenko_pastur as law
from obverse.weights._marchenko_pastur import threshold_strength
from obverse.weights._spectrum import (
    affordable,
    bulk_from_values,
    count_spikes,
    described,
    exact_bulk,
    exact_seconds,
    ks_distance,
    lanczos_bulk,
    rescaled_distance,
    singular_values,
    thinned,
)
from obverse.weights._tails import Tails
from weights.exact_spectra import normal_singular_values, not_above, not_below

LEVEL = 0.001


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def normal(rows: int, columns: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(rows, columns, generator=seeded(seed))


def planted(rows: int, columns: int, times: tuple[float, ...], seed: int = 0) -> torch.Tensor:
    """Normal entries and rank-one parts, in units of the strength from which they leave a trace."""
    generator = seeded(seed)
    matrix = torch.randn(rows, columns, generator=generator)
    left = torch.linalg.qr(torch.randn(rows, len(times), generator=generator)).Q
    right = torch.linalg.qr(torch.randn(columns, len(times), generator=generator)).Q
    strengths = torch.tensor(times) * threshold_strength(rows, columns, 1.0)
    return matrix + left @ torch.diag(strengths) @ right.T


@pytest.mark.parametrize("shape", [(60, 60), (30, 200), (200, 30), (1, 7)])
def test_singular_values_are_those_of_scipy(shape):
    matrix = normal(*shape)
    expected = svdvals(matrix.double().numpy())[::-1]
    found = singular_values(matrix)
    assert found.dtype == np.float64
    # backward stable in float32: a few ε of the largest
    assert found == pytest.approx(expected, abs=10 * np.finfo(np.float32).eps * expected[-1])


@pytest.mark.parametrize("scale", [0.8, 1.0, 1.3])
def test_the_distance_is_scipy_s_kolmogorov_smirnov_statistic(scale):
    values = svdvals(normal(50, 70).numpy())[::-1].astype(np.float64)
    expected = kstest(values, lambda one: law.cdf(one, 50, 70, scale)).statistic
    assert ks_distance(values, 50, 70, scale) == pytest.approx(expected, abs=1e-12)


def test_without_a_scale_the_distance_is_all():
    assert ks_distance(np.zeros(5), 5, 9, 0.0) == 1


@pytest.mark.parametrize(("rows", "columns"), [(150, 150), (80, 500), (500, 80)])
def test_noise_has_its_scale_no_spikes_and_an_ordinary_distance(rows, columns):
    bulk = exact_bulk(0.03 * normal(rows, columns), LEVEL)
    assert bulk.scale == pytest.approx(0.03, rel=4 / sqrt(rows * columns))  # standard error 0.74/√(pq)
    assert bulk.spikes == ()
    assert bulk.distance.p > LEVEL
    assert bulk.null_directions == 0
    assert bulk.error is None
    values = svdvals(0.03 * normal(rows, columns).double().numpy())
    assert bulk.largest == pytest.approx(values[0], rel=1e-5)
    assert len(bulk.values) == min(rows, columns)


def test_planted_parts_are_found_with_their_strengths_and_shares():
    rows, columns, times = 300, 500, (6.0, 4.0, 2.5)
    matrix = planted(rows, columns, times)
    bulk = exact_bulk(matrix, LEVEL)
    threshold = threshold_strength(rows, columns, 1.0)
    values = svdvals(matrix.double().numpy())
    energy = float((matrix.double() ** 2).sum())
    assert len(bulk.spikes) == 3
    for spike, value, strength in zip(bulk.spikes, values, times, strict=False):
        assert spike.value == pytest.approx(value, rel=1e-5)
        assert spike.share == pytest.approx(value**2 / energy, rel=1e-5)
        # uᵀ(noise)v has standard deviation 1, a little more near the threshold
        assert abs(spike.strength - strength * threshold) < 5
        assert spike.strength < spike.value
        assert spike.p < LEVEL
    # the bulk is judged without them
    assert bulk.scale == pytest.approx(1, rel=4 / sqrt(rows * columns))
    assert bulk.distance.p > LEVEL


def test_many_spikes_do_not_shift_the_scale_of_the_bulk():
    rows, columns, times = 150, 200, tuple(range(4, 14))
    bulk = exact_bulk(planted(rows, columns, times), LEVEL)
    assert len(bulk.spikes) == 10
    assert bulk.scale == pytest.approx(1, rel=4 / sqrt(rows * columns))  # 0.74/√(pq) is its standard error
    assert bulk.distance.p > LEVEL


def test_the_transpose_and_the_unit_do_not_matter():
    matrix = planted(100, 180, (3.0,))
    one, other = exact_bulk(matrix, LEVEL), exact_bulk(1e-3 * matrix.T.contiguous(), LEVEL)
    assert len(one.spikes) == len(other.spikes) == 1
    assert other.scale == pytest.approx(1e-3 * one.scale, rel=1e-5)
    assert other.spikes[0].strength == pytest.approx(1e-3 * one.spikes[0].strength, rel=1e-4)
    assert other.distance.value == pytest.approx(one.distance.value, rel=1e-3)


def test_a_rank_one_part_a_fifth_above_the_threshold_is_mostly_found_and_below_it_is_not_invented():
    """At side 1,000 the threshold is still soft; the slow test below has the sides of the claim."""
    rows = columns = 1000
    random, draws = np.random.default_rng(1), 40
    strength = threshold_strength(rows, columns, 1.0)
    found = {}
    for times in (0.8, 1.2, 1.5):
        spectra = [
            normal_singular_values(rows, columns, random, planted=times * strength) for _ in range(draws)
        ]
        found[times] = [len(bulk_from_values(one, rows, columns, LEVEL).spikes) for one in spectra]
    assert not_above(sum(found[0.8]), draws, 2 * LEVEL)
    assert not_below(sum(found[1.2]), draws, 0.7)
    assert found[1.5] == [1] * draws


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "columns"), [(4000, 4000), (4000, 9000)])
def test_at_side_4000_a_rank_one_part_a_fifth_above_the_threshold_is_found(rows, columns):
    """60 of 60: by Clopper–Pearson at least 95.1 % are found (one-sided, 95 %)."""
    random, draws = np.random.default_rng(rows + columns), 60
    strength = 1.2 * threshold_strength(rows, columns, 0.02)
    spikes = []
    for _ in range(draws):
        values = 0.02 * normal_singular_values(rows, columns, random, planted=strength / 0.02)
        spikes.append(bulk_from_values(values, rows, columns, LEVEL).spikes)
    assert min(map(len, spikes)) == 1
    assert not_above(sum(len(one) - 1 for one in spikes), draws, LEVEL)
    errors = np.array([one[0].strength for one in spikes]) / strength - 1
    # without bias; the standard deviation of one estimate is 2.4 % (square; of uᵀWv, were u and v known, it
    # would be 1.3 %), so that about nineteen of twenty are within 5 %
    assert abs(errors.mean()) < 4 * errors.std(ddof=1) / sqrt(draws)
    assert errors.std(ddof=1) < 0.024 * (1 + 4 / sqrt(2 * draws))
    assert not_below(int((np.abs(errors) < 0.05).sum()), draws, 0.95, doubt=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "columns"), [(4000, 4000), (4000, 9000)])
def test_at_side_4000_below_the_threshold_nothing_is_invented(rows, columns):
    random, draws = np.random.default_rng(rows), 60
    for times in (0.8, 0.0):
        strength = times * threshold_strength(rows, columns, 1.0)
        spectra = (normal_singular_values(rows, columns, random, planted=strength) for _ in range(draws))
        invented = sum(len(bulk_from_values(one, rows, columns, LEVEL).spikes) for one in spectra)
        assert not_above(invented, draws, LEVEL)


@pytest.mark.parametrize(("rows", "columns", "draws"), [(40, 40, 600), (34, 1500, 600), (150, 200, 300)])
def test_noise_has_spikes_as_seldom_as_the_level_says(rows, columns, draws):
    random = np.random.default_rng(columns)
    counts = {0.05: 0, 0.01: 0, 0.001: 0}
    for _ in range(draws):
        values = normal_singular_values(rows, columns, random)
        for level in counts:
            counts[level] += bool(bulk_from_values(values, rows, columns, level).spikes)
    for level, count in counts.items():
        assert not_above(count, draws, 1.1 * level)  # a tenth: the finite-size error of Ma's centring
    assert not_below(counts[0.05], draws, 0.03)


def test_heavy_tails_are_no_spikes_when_their_kurtosis_is_known():
    draws, density, invented, unknowing = 120, 0.2, 0, 0
    for seed in range(draws):
        mask = torch.rand(120, 160, generator=seeded(seed)) < density
        matrix = normal(120, 160, seed + 1000) * mask
        invented += bool(exact_bulk(matrix, LEVEL, Tails(3 / density - 3)).spikes)
        unknowing += bool(exact_bulk(matrix, LEVEL).spikes)
    assert not_above(invented, draws, 0.01)  # first order in the kurtosis: not to the level itself
    assert unknowing > 10 * max(invented, 1)


def test_counting_stops_at_the_first_value_that_noise_could_have():
    rows, columns = 100, 100
    descending = np.array([40.0, 35.0, 19.0, 30.0])
    assert count_spikes(descending, rows, columns, 1.0, LEVEL) == 2
    assert count_spikes(descending, rows, columns, 0.0, LEVEL) == 0
    assert count_spikes(descending[2:], rows, columns, 1.0, LEVEL) == 0
    assert count_spikes(np.full(100, 50.0), rows, columns, 1.0, LEVEL) == 50  # half of them at most


def test_a_stricter_level_counts_no_more():
    values = svdvals(planted(80, 120, (1.6, 1.4, 1.3), 3).numpy())
    counts = [count_spikes(values, 80, 120, 1.0, level) for level in (0.1, 0.01, 1e-4, 1e-12)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[-1]


def test_a_low_rank_matrix_has_null_directions():
    generator = seeded(4)
    matrix = torch.randn(60, 7, generator=generator) @ torch.randn(7, 90, generator=generator)
    bulk = exact_bulk(matrix, LEVEL)
    assert bulk.null_directions == 53
    assert sum(spike.share for spike in bulk.spikes) == pytest.approx(1, abs=1e-5)


def test_a_matrix_of_zeros_is_no_accident():
    bulk = exact_bulk(torch.zeros(40, 50), LEVEL)
    assert bulk.null_directions == 40
    assert bulk.scale == 0
    assert bulk.spikes == ()
    assert bulk.distance.value == 1


def test_row_scales_put_the_spectrum_off_the_law_and_equal_norms_bring_it_back():
    matrix = normal(200, 300) * torch.linspace(0.3, 1.7, 200)[:, None]
    assert exact_bulk(matrix, LEVEL).distance.p < 1e-6
    equal = matrix / matrix.norm(dim=1, keepdim=True)
    assert rescaled_distance(equal, True, seeded())[0].p > LEVEL


def test_the_rescaled_distance_is_exact_for_small_layers():
    matrix = normal(90, 140)
    values = svdvals(matrix.double().numpy())[::-1]
    shares = (np.arange(90) + 0.5) / 90
    middle = (shares > 0.1) & (shares < 0.9)
    expected = law.quantiles(shares[middle], 90, 140)
    scale = float(values[middle] @ expected / (expected @ expected))
    distance = kstest(values, lambda one: law.cdf(one, 90, 140, scale)).statistic
    assert rescaled_distance(matrix, True, seeded())[0].value == pytest.approx(distance, abs=1e-5)


@pytest.mark.parametrize("widths", [(1.0, 1.0), (0.5, 1.5)])
def test_the_rescaled_distance_of_a_large_layer_is_that_of_its_singular_values(widths):
    matrix = normal(1100, 1150) * torch.linspace(*widths, 1100)[:, None]
    values = svdvals(matrix.numpy())[::-1].astype(np.float64)
    exact = bulk_from_values(values, 1100, 1150, 1e-300).distance
    number, error = rescaled_distance(matrix, False, seeded())
    assert (
        0.01 < error < 0.03
    )  # 3 standard errors of a share of 32,768 squared cosines, and 1 % for the nodes
    assert abs(number.value - exact.value) < error
    assert (number.p > 0.01) == (exact.p > 0.01) == (widths == (1.0, 1.0))


@pytest.mark.parametrize(("rows", "columns"), [(300, 300), (250, 800), (800, 250)])
def test_a_lanczos_density_agrees_with_the_singular_values(rows, columns):
    matrix = planted(rows, columns, (5.0, 3.0))
    exact, found = exact_bulk(matrix, LEVEL), lanczos_bulk(matrix, LEVEL, seeded(2))
    assert len(found.spikes) == len(exact.spikes) == 2
    for one, other in zip(found.spikes, exact.spikes, strict=True):
        assert one.value == pytest.approx(other.value, rel=1e-3)  # the basis has converged there
        assert one.strength == pytest.approx(other.strength, rel=0.01)
        assert one.share == pytest.approx(other.share, rel=2e-3)
    assert found.largest == pytest.approx(exact.largest, rel=1e-3)
    assert found.error > 0
    assert abs(found.distance.value - exact.distance.value) < found.error
    assert found.distance.p > LEVEL
    # two of some hundred values are spikes; the quantiles between are those of the matrix
    middle = np.quantile(singular_values(matrix), [0.2, 0.5, 0.8])
    assert np.quantile(found.values, [0.2, 0.5, 0.8]) == pytest.approx(middle, rel=0.1)


def test_a_lanczos_density_invents_no_spikes_in_noise():
    """Its scale is less certain than the edge is sharp: spikes must not be judged by it."""
    draws = [(300, 300, seed) for seed in range(15)] + [(200, 600, seed) for seed in range(25)]
    exact = lanczosed = 0
    for rows, columns, seed in draws:
        matrix = normal(rows, columns, seed)
        exact += bool(exact_bulk(matrix, LEVEL).spikes)
        lanczosed += bool(lanczos_bulk(matrix, LEVEL, seeded(seed)).spikes)
    assert not_above(exact, len(draws), LEVEL)
    assert not_above(lanczosed, len(draws), LEVEL)


def test_weak_spikes_are_found_beside_strong_ones_in_a_lanczos_density():
    matrix = planted(400, 500, (30.0, 2.0))
    found = lanczos_bulk(matrix, LEVEL, seeded(1))
    assert len(found.spikes) == 2
    assert found.spikes[1].strength == pytest.approx(2 * threshold_strength(400, 500, 1.0), rel=0.1)


def test_a_lanczos_density_of_low_rank_tells_the_rank_by_its_spikes():
    generator = seeded(8)
    matrix = torch.randn(200, 4, generator=generator) @ torch.randn(4, 300, generator=generator)
    found = lanczos_bulk(matrix, LEVEL, seeded(1))
    assert len(found.spikes) == 4
    assert sum(spike.share for spike in found.spikes) == pytest.approx(1, abs=1e-4)


def test_a_lanczos_density_tells_structure_from_noise():
    matrix = normal(700, 800) * torch.linspace(0.1, 1.9, 700)[:, None]
    assert lanczos_bulk(matrix, LEVEL, seeded(1)).distance.p < LEVEL


def test_spikes_are_described_in_the_order_given():
    spikes = described(np.array([50.0, 30.0]), 100, 100, 1.0, 5000.0)
    assert [spike.value for spike in spikes] == [50, 30]
    assert [spike.share for spike in spikes] == [0.5, 0.18]
    assert spikes[0].p < spikes[1].p < LEVEL


def test_thinning_keeps_both_ends_and_the_order():
    values = np.arange(1000.0)
    shown = thinned(values)
    assert len(shown) == 200
    assert shown[[0, -1]].tolist() == [0, 999]
    assert (np.diff(shown) > 0).all()
    assert thinned(values[:150]) is not None
    assert thinned(values[:150]).tolist() == values[:150].tolist()


def test_larger_matrices_are_expected_to_take_longer():
    small, large = torch.empty(100, 200), torch.empty(200, 200)
    assert 0 < exact_seconds(small) < exact_seconds(large)
    assert exact_seconds(small) == exact_seconds(torch.empty(200, 100))
    # Golub–Kahan: 4p²q − 4p³/3 operations
    ratio = (4 * 200**3 - 4 / 3 * 200**3) / (4 * 100**2 * 200 - 4 / 3 * 100**3)
    assert exact_seconds(large) / exact_seconds(small) == pytest.approx(ratio)


def test_a_budget_of_nothing_affords_nothing_at_any_size():
    assert affordable(torch.empty(32, 32), 0.0) == 0
    assert affordable(torch.empty(200, 200), 1e9) == 10**6
    seconds = exact_seconds(torch.empty(200, 200))
    assert affordable(torch.empty(200, 200), 3.5 * seconds) == 3
