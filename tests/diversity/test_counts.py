"""N_eff from counts of colliding pairs: moments by going through all outcomes, coverage by simulation."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from math import prod

import numpy as np
import pytest
from scipy import stats

from obverse._core.errors import BadInput
from obverse.diversity._counts import effective_support


def counted(batch: np.ndarray) -> tuple[int, int]:
    """Equal pairs, and chains Σ_i degree_i (degree_i − 1), from how often each value occurs."""
    times = np.unique(batch, return_counts=True)[1]
    return int((times * (times - 1) // 2).sum()), int((times * (times - 1) * (times - 2)).sum())


def test_chains_are_ordered_pairs_of_neighbours():
    batch = [3, 1, 3, 3, 2, 1]
    degrees = [sum(one == other for other in batch) - 1 for one in batch]
    pairs = sum(one == other for one, other in combinations(batch, 2))
    assert counted(np.array(batch)) == (pairs, sum(degree * (degree - 1) for degree in degrees))


@pytest.mark.parametrize("samples", [2, 3, 5])
def test_the_moments_that_the_interval_rests_on(samples):
    """Mean and variance of the number of pairs, and the mean of chains, exactly."""
    masses = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)]
    q, cubes = sum(p**2 for p in masses), sum(p**3 for p in masses)
    mean = square = chains = Fraction(0)
    for outcome in product(range(3), repeat=samples):
        chance = prod(masses[i] for i in outcome)
        pairs, chained = counted(np.array(outcome))
        mean, square, chains = mean + chance * pairs, square + chance * pairs**2, chains + chance * chained
    all_pairs = samples * (samples - 1) // 2
    triples = samples * (samples - 1) * (samples - 2)
    assert mean == all_pairs * q
    assert chains == triples * cubes
    assert square - mean**2 == all_pairs * q * (1 - q) + triples * (cubes - q**2)


def test_without_chains_it_is_the_exact_interval_of_a_poisson_number():
    found = effective_support([1, 0, 2, 0, 1], [0] * 5, 100)
    possible = 5 * 100 * 99 // 2
    assert (found.pairs, found.of, found.dispersion) == (4, possible, 1.0)
    assert found.value == possible / 4
    low, high = stats.chi2.ppf(0.025, 8) / 2, stats.chi2.isf(0.025, 10) / 2
    assert found.low == pytest.approx(possible / high, rel=1e-9)  # SciPy's quantiles
    assert found.high == pytest.approx(possible / low, rel=1e-9)


def test_chains_widen_the_interval():
    plain = effective_support([3, 3], [0, 0], 50)
    chained = effective_support([3, 3], [6, 6], 50)
    assert chained.value == plain.value
    assert chained.low < plain.low < plain.high < chained.high
    # variance ÷ mean = 1 − q̂ + triples·(τ̂ − q̂²)/pairs
    q, triples = 6 / (2 * 1225), 2 * 50 * 49 * 48
    assert chained.dispersion == pytest.approx(1 - q + triples * (12 / triples - q**2) / 6, rel=1e-12)


def test_more_confidence_is_a_wider_interval():
    narrow, wide = (effective_support([3, 4], [0, 2], 50, confidence) for confidence in (0.5, 0.99))
    assert wide.low < narrow.low < narrow.value < narrow.high < wide.high


def test_no_pair_says_nothing():
    found = effective_support([0, 0], [0, 0], 10)
    assert (found.value, found.low, found.high, found.pairs, found.of) == (None, None, None, 0, 90)
    assert str(found) == "no collision among 90 pairs"


def test_all_equal_is_one_picture():
    found = effective_support([10] * 3, [60] * 3, 5)
    assert found.value == 1
    assert found.low == 1
    assert found.high >= 1


def law(name: str, points: int) -> np.ndarray:
    if name == "uniform":
        weights = np.ones(points)
    elif name == "zipf":
        weights = 1 / np.arange(1, points + 1)
    else:
        weights = np.full(points, 0.95 / (points - 1))
        weights[0] = 0.05
    return weights / weights.sum()


def coverage(name: str, points: int, samples: int, batches: int, runs: int) -> float:
    masses = law(name, points)
    true, rng, covered = 1 / (masses**2).sum(), np.random.default_rng(0), 0
    for _ in range(runs):
        drawn = rng.choice(points, p=masses, size=(batches, samples))
        pairs, chains = zip(*map(counted, drawn), strict=True)
        found = effective_support(pairs, chains, samples)
        covered += found.value is None or found.low <= true <= found.high  # None says nothing
    return covered / runs


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "points", "samples", "batches"),
    [
        ("uniform", 1000, 40, 20),
        ("uniform", 10_000, 40, 20),  # one or two pairs in all, or none
        ("zipf", 1000, 20, 20),
        ("zipf", 10_000, 40, 10),
        ("atom", 1000, 40, 20),
        ("atom", 100_000, 40, 10),
    ],
)
def test_coverage_of_the_interval(name, points, samples, batches):
    """95 % is asked for; 200 runs have a standard error of 1.5 %, and the interval is approximate."""
    assert coverage(name, points, samples, batches, 200) >= 0.90


@pytest.mark.parametrize(
    "call",
    [
        lambda: effective_support([], [], 10),
        lambda: effective_support([1], [], 10),
        lambda: effective_support([1], [0], 1),
        lambda: effective_support([1], [0], 10, 1.0),
    ],
)
def test_refused(call):
    with pytest.raises(BadInput):
        call()
