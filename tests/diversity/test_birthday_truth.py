"""Known answers: uniform laws, Zipf's, one heavy atom. Does the bound cover, and is it of any use?"""

from __future__ import annotations

from functools import cache
from math import expm1, log1p, sqrt

import numpy as np
import pytest
import torch

from obverse.diversity._birthday import BirthdayTest, birthday_test

RUNS = 200


def masses(law: str, points: int) -> np.ndarray:
    """uniform; Zipf's law p_i ∝ 1/i; one atom of 5 % (or 0.5 %) and the others equal."""
    if law == "uniform":
        return np.full(points, 1 / points)
    if law == "zipf":
        weights = 1 / np.arange(1, points + 1)
        return weights / weights.sum()
    heavy = {"atom": 0.05, "light atom": 0.005}[law]
    weights = np.full(points, (1 - heavy) / (points - 1))
    weights[0] = heavy
    return weights


def sampler_of(chances: np.ndarray):
    """Points of the plane with whole coordinates, by the inverse of the distribution function."""
    edges = torch.from_numpy(np.cumsum(chances))

    def sampler(n: int, generator: torch.Generator) -> torch.Tensor:
        drawn = torch.rand(n, generator=generator, dtype=torch.float64) * edges[-1]
        number = torch.searchsorted(edges, drawn, right=True)
        return torch.stack([number % 1000, number // 1000], 1).float()

    return sampler


def batch_size(effective: float) -> int:
    """γ near ½ for a uniform law: (M − ½)² ≈ 2N ln 2."""
    return max(3, round(0.5 + sqrt(0.25 + 2 * effective * 0.6931)))


@cache
def repeated(law: str, points: int, runs: int, batches: int = 50) -> tuple[float, list[BirthdayTest]]:
    chances = masses(law, points)
    effective = float(1 / (chances**2).sum())
    sampler, size = sampler_of(chances), batch_size(effective)
    return effective, [
        birthday_test(
            sampler, batch_size=size, batches=batches, show=0, generator=torch.Generator().manual_seed(seed)
        )
        for seed in range(runs)
    ]


def covered(effective: float, found: list[BirthdayTest]) -> int:
    return sum(one.support_bound is None or one.support_bound >= effective for one in found)


def within(effective: float, found: list[BirthdayTest]) -> int:
    """The two-sided interval from counts of pairs; without a pair it says nothing."""
    return sum(
        one.effective.value is None or one.effective.low <= effective <= one.effective.high for one in found
    )


def check(law: str, points: int, runs: int, least: int) -> None:
    effective, found = repeated(law, points, runs)
    assert covered(effective, found) >= least
    assert within(effective, found) >= least
    medians = np.median([one.collision_probability for one in found])
    if law == "uniform":
        assert 0.4 < medians < 0.6
        bounds = [one.support_bound or np.inf for one in found]
        assert effective <= np.median(bounds) <= 2 * effective
    counts = [one.effective.value or np.inf for one in found]
    assert effective / 1.5 < np.median(counts) < 1.5 * effective


@pytest.mark.slow
@pytest.mark.parametrize("points", [10**2, 10**3])
@pytest.mark.parametrize("law", ["uniform", "zipf", "atom"])
def test_the_bound_covers_in_a_few_runs(law, points):
    check(law, points, 20, least=15)  # 95 % is promised: four standard errors below


@pytest.mark.slow
@pytest.mark.parametrize("points", [10**2, 10**3, 10**4, 10**5, 10**6])
@pytest.mark.parametrize("law", ["uniform", "zipf", "atom", "light atom"])
def test_the_bound_covers_in_180_of_200_runs(law, points):
    check(law, points, RUNS, least=180)  # 95 % is promised: three standard errors below


@pytest.mark.slow
@pytest.mark.parametrize("points", [10**2, 10**4])
@pytest.mark.parametrize("batches", [5, 10, 200])
def test_it_covers_with_any_number_of_batches(points, batches):
    effective, found = repeated("uniform", points, RUNS, batches)
    assert covered(effective, found) >= 180


@pytest.mark.parametrize("law", ["zipf", "atom"])
def test_the_bound_is_within_ten_times_for_skewed_laws(law):
    """N* is for the worst law, the uniform one: skewed laws collide less often than it at the same 1/Σp²."""
    effective, found = repeated(law, 1000, 20)
    assert np.median([one.support_bound or np.inf for one in found]) < 10 * effective


@pytest.mark.slow
def test_sizes_chosen_by_the_test_itself_cover_too():
    """Trials choose the batch size; the batches that count are others, so that the confidence holds."""
    runs, points = 40, 300
    found = [
        birthday_test(
            sampler_of(masses("uniform", points)),
            batches=20,
            show=0,
            generator=torch.Generator().manual_seed(seed),
        )
        for seed in range(runs)
    ]
    assert len({one.batch_size for one in found}) > 1
    # 95 % is promised: four standard errors below it.
    assert covered(points, found) >= runs * (0.95 - 4 * sqrt(0.95 * 0.05 / runs))


def test_no_collision_bounds_the_support():
    """Batches of 5 from 2,000 points: where none of 10 collides, the support is said to be at least …"""
    points, size, batches = 2000, 5, 10
    found = [
        birthday_test(
            sampler_of(masses("uniform", points)),
            batch_size=size,
            batches=batches,
            show=0,
            generator=torch.Generator().manual_seed(seed),
        )
        for seed in range(60)
    ]
    none = [one for one in found if one.collisions == 0]
    # ln P = B Σ ln(1 − k/N)
    chance = 1 + expm1(batches * sum(log1p(-k / points) for k in range(size)))
    assert len(none) == pytest.approx(60 * chance, abs=4 * sqrt(60 * chance * (1 - chance)))
    assert all(one.support_at_least <= points for one in none)
    assert all(one.support_at_least is None for one in found if one.collisions)


def test_a_memorizing_generator_is_caught_and_a_copy_of_the_law_is_not():
    """200 training pictures with noise, against 5,000 fresh ones; the threshold is calibrated on others."""
    generator = torch.Generator().manual_seed(0)
    training, real, fresh = (torch.rand(count, 16, generator=generator) for count in (200, 2000, 5000))

    def memorizing(n: int, generator: torch.Generator) -> torch.Tensor:
        rows = torch.randint(len(training), (n,), generator=generator)
        return training[rows] + 0.005 * torch.randn(n, 16, generator=generator)

    options = {"batch_size": 100, "batches": 50, "real": real}
    caught = birthday_test(memorizing, generator=torch.Generator().manual_seed(1), **options)
    honest = birthday_test(fresh, generator=torch.Generator().manual_seed(1), **options)
    assert caught.collisions == 50  # γ = 1 − 2e-13 for 100 of 200
    assert 200 <= caught.support_bound < 10 * 200
    # At most 5 % of real batches collide: ten or more of 50 has probability 2e-4.
    assert honest.collisions < 10


@pytest.mark.slow
def test_real_digits_are_less_diverse_than_real_digits_in_five_percent_of_draws_at_most():
    """300 draws; 26 is what a rate of 5 % exceeds once in 400 (binomial). 500 other draws had 21 (4.2 %)."""
    from sklearn.datasets import load_digits

    x = torch.from_numpy(load_digits().data).float()
    alarms = 0
    for seed in range(300):
        generator = torch.Generator().manual_seed(seed)
        order = torch.randperm(len(x), generator=generator)
        found = birthday_test(x[order[:900]], 70, 10, real=x[order[900:]], generator=generator)
        assert found.p_real is not None
        alarms += found.p_real <= 0.05
    assert alarms <= 26
