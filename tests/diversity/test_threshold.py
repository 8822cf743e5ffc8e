"""The duplicate threshold: what real batches do at it, by counting all real pairs and by drawing batches."""

from __future__ import annotations

from itertools import combinations
from math import comb, floor, sqrt

import numpy as np
import pytest
import torch

from obverse._core.errors import BadInput
from obverse.diversity._threshold import Threshold, calibrated, chance_of_collisions, largest_batch


def real_points(count: int, columns: int = 2, seed: int = 0) -> torch.Tensor:
    return torch.rand(count, columns, generator=torch.Generator().manual_seed(seed))


def all_distances(points) -> np.ndarray:
    x = np.asarray(points, dtype=np.float64)
    return np.array([np.sqrt(((x[i] - x[j]) ** 2).sum()) for i, j in combinations(range(len(x)), 2)])


def share_of_batches(points: torch.Tensor, size: int, threshold: float, runs: int = 2000) -> float:
    """Batches of different real points that hold a pair within the threshold."""
    x, rng, shown = points.double().numpy(), np.random.default_rng(1), 0
    squared = ((x[:, None] - x[None]) ** 2).sum(2)
    np.fill_diagonal(squared, np.inf)
    for _ in range(runs):
        rows = rng.choice(len(x), size, replace=False)
        shown += np.sqrt(squared[np.ix_(rows, rows)].min()) <= threshold
    return shown / runs


@pytest.mark.parametrize(("size", "level"), [(5, 0.05), (20, 0.05), (20, 0.5)])
def test_the_threshold_is_as_large_as_the_level_allows(size, level):
    points = real_points(200)
    found = calibrated(points, size, level)
    distances = np.sort(all_distances(points))
    rank = floor(level * comb(200, 2) / comb(size, 2)) - 1
    assert rank >= 0
    assert (distances <= found.distance).sum() == rank
    assert found.distance == pytest.approx(distances[rank], rel=1e-14)  # just below the next pair
    assert (found.origin, found.level, found.real_points) == ("calibrated", level, 200)
    assert found.real_pairs == rank
    assert found.real_support == comb(200, 2) / (rank + 1)


@pytest.mark.parametrize("level", [0.05, 0.3])
def test_at_most_so_many_real_batches_show_a_pair(level):
    points = real_points(400, 3)
    share = share_of_batches(points, 20, calibrated(points, 20, level).distance)
    assert share <= level + 4 * sqrt(level / 2000)  # standard errors
    assert share > level / 2  # and not far fewer: Markov's inequality is nearly sharp for rare pairs


def test_fresh_batches_of_the_same_law_show_as_few():
    """The threshold was made on 600 points; batches are of others. Level and count are random by √rank."""
    threshold = calibrated(real_points(600, 3), 20, 0.1).distance
    share = share_of_batches(real_points(3000, 3, seed=5), 20, threshold)
    rank = floor(0.1 * comb(600, 2) / comb(20, 2))
    assert share == pytest.approx(0.1, abs=4 * 0.1 / sqrt(rank) + 4 * sqrt(0.1 / 2000) + 0.1**2)


def test_too_few_real_points_for_the_batch_are_refused():
    with pytest.raises(BadInput, match="30 points, good for batches of 7"):
        calibrated(real_points(30), 25)


@pytest.mark.parametrize("count", [3, 8, 30, 200, 1001])
@pytest.mark.parametrize("level", [0.02, 0.05, 0.5])
def test_the_largest_batch_is_the_last_that_can_be_calibrated(count, level):
    size = largest_batch(count, level)
    assert comb(size, 2) <= level * comb(count, 2) < comb(size + 1, 2)
    if size >= 2:
        assert calibrated(real_points(count), size, level).real_pairs == 0
    with pytest.raises(BadInput):
        calibrated(real_points(count), size + 1, level)


def test_the_level_is_right_on_average_over_real_data_sets():
    """300 calibrations on 60 uniform numbers each: P(|a − b| ≤ t) = 2t − t² for two fresh ones."""
    size, level, chances = 10, 0.1, []
    for seed in range(300):
        t = calibrated(real_points(60, 1, seed=seed), size, level).distance
        chances.append(comb(size, 2) * (2 * t - t**2))
    rank = floor(level * comb(60, 2) / comb(size, 2))
    expected = rank * comb(size, 2) / comb(60, 2)
    assert expected <= level
    assert np.mean(chances) == pytest.approx(expected, abs=4 * np.std(chances) / sqrt(300))  # standard errors


@pytest.mark.slow  # a simulation
@pytest.mark.parametrize(("points", "size", "batches"), [(100, 20, 30), (200, 10, 30)])
def test_the_chance_of_collisions_is_a_p_value(points, size, batches):
    """Real data and generator of one law: P(p ≤ α) ≤ α, within 4 standard errors of 300 runs."""
    found = []
    for seed in range(300):
        threshold = calibrated(real_points(points, 2, seed=2 * seed), size)
        drawn = real_points(size * batches, 2, seed=2 * seed + 1).reshape(batches, size, 2).double()
        apart = torch.cdist(drawn, drawn, compute_mode="donot_use_mm_for_euclid_dist")
        apart += torch.eye(size) * 10
        collisions = int((apart.flatten(1).amin(1) <= threshold.distance).sum())
        found.append(chance_of_collisions(collisions, batches, size, threshold))
    for alpha in (0.5, 0.2, 0.05):
        assert np.mean(np.array(found) <= alpha) <= alpha + 4 * sqrt(alpha * (1 - alpha) / 300)


def test_the_chance_of_collisions_by_drawing():
    """The share of real pairs from Gamma(r + 1), then batches by coins: 200,000 draws."""
    threshold = Threshold(0.1, "calibrated", 0.05, 100, 2, comb(100, 2) / 3)
    rng = np.random.default_rng(0)
    rates = rng.gamma(3, size=200_000) * comb(20, 2) / comb(100, 2)
    shown = rng.binomial(10, np.minimum(rates, 1))
    for collisions in (0, 1, 3, 6):
        expected = float((shown >= collisions).mean())
        # 4 standard errors, and the error of 2,000 steps in place of an integral
        got = chance_of_collisions(collisions, 10, 20, threshold)
        assert got == pytest.approx(expected, abs=4 * sqrt(0.25 / 200_000) + 1e-3)
    assert chance_of_collisions(0, 10, 20, Threshold(0.1, "given")) is None


def test_real_data_that_repeat_themselves():
    """100 kinds: nearly every batch of 50 has equal ones, and the level says so."""
    kinds = torch.randint(100, (1000,), generator=torch.Generator().manual_seed(0))
    found = calibrated(kinds[:, None].float(), 50)
    assert found.distance == 0
    assert found.level == 1
    times = torch.bincount(kinds)
    equal = int((times * (times - 1) // 2).sum())
    assert found.real_pairs == equal
    assert found.real_support == pytest.approx(comb(1000, 2) / (equal + 1))


def test_a_few_equal_real_pictures():
    points = real_points(300)
    points[:40] = points[40:80]
    found = calibrated(points, 60)  # allowed: 0.05·C(300, 2)/C(60, 2) = 1.3 pairs; there are 40
    assert found.distance == 0
    assert found.level == 1
    few = calibrated(points, 10)  # allowed: 49 pairs
    assert few.distance > 0
    assert few.level == 0.05


def test_larger_batches_have_smaller_thresholds():
    distances = [calibrated(real_points(500), size).distance for size in (4, 16, 64, 100)]
    assert distances == sorted(distances, reverse=True)
    assert len(set(distances)) == 4


def test_many_real_points_are_thinned_evenly(monkeypatch):
    monkeypatch.setattr("obverse.diversity._threshold._MOST", 100)
    points = torch.cat([real_points(512), 10 + real_points(512, seed=1)])  # in the order of two classes
    found = calibrated(points, 5)
    assert found.real_points < 1024
    whole = np.sort(all_distances(points[::4]))
    # A quarter of the points estimates the same quantile: within 4 √rank of the rank.
    rank = floor(0.05 * comb(256, 2) / comb(5, 2))
    assert whole[rank - 4 * floor(sqrt(rank))] < found.distance < whole[rank + 4 * floor(sqrt(rank))]


def test_words():
    assert "as given" in str(Threshold(0.5, "given"))
    assert "exact duplicates only" in str(Threshold(0.0, "exact"))
    assert "5 % of real batches" in str(calibrated(real_points(100), 5))
    assert Threshold(0.5, "given").to_dict()["distance"] == 0.5


@pytest.mark.parametrize(
    "call",
    [
        lambda: calibrated(real_points(1), 2),
        lambda: calibrated(torch.ones(50, 2), 2),
        lambda: calibrated(torch.full((50, 2), float("nan")), 2),
        lambda: calibrated(real_points(10), 2, 0.0),
        lambda: calibrated(real_points(10), 2, 1.0),
        lambda: calibrated(real_points(10), 1),
    ],
)
def test_refused(call):
    with pytest.raises(BadInput):
        call()
