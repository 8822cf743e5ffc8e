"""The duplicate threshold: what real batches do at it, by counting all real pairs and by drawing batches."""

from __future__ import annotations

from itertools import combinations
from math import comb, floor, sqrt

import numpy as np
import pytest
import torch

from obverse.diversity.threshold import Calibration, Threshold
from obverse.errors import BadInput


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
    found = Calibration(points, level).at(size)
    distances = np.sort(all_distances(points))
    rank = floor(level * comb(200, 2) / comb(size, 2))
    assert rank > 0
    assert (distances <= found.distance).sum() == rank
    assert found.distance == pytest.approx(distances[rank], rel=1e-14)  # just below the next pair
    assert (found.origin, found.level, found.real_points) == ("calibrated", level, 200)
    assert found.real_support == comb(200, 2) / rank


@pytest.mark.parametrize("level", [0.05, 0.3])
def test_at_most_so_many_real_batches_show_a_pair(level):
    points = real_points(400, 3)
    share = share_of_batches(points, 20, Calibration(points, level).at(20).distance)
    assert share <= level + 4 * sqrt(level / 2000)  # standard errors
    assert share > level / 2  # and not far fewer: Markov's inequality is nearly sharp for rare pairs


def test_fresh_batches_of_the_same_law_show_as_few():
    """The threshold was made on 600 points; batches are of others. Level and count are random by √rank."""
    threshold = Calibration(real_points(600, 3), 0.1).at(20).distance
    share = share_of_batches(real_points(3000, 3, seed=5), 20, threshold)
    rank = floor(0.1 * comb(600, 2) / comb(20, 2))
    assert share == pytest.approx(0.1, abs=4 * 0.1 / sqrt(rank) + 4 * sqrt(0.1 / 2000) + 0.1**2)


def test_too_few_real_points_for_the_level():
    points = real_points(30)
    found = Calibration(points, 0.05).at(25)
    assert found.distance < all_distances(points).min()  # no real pair is within
    assert found.level == pytest.approx(comb(25, 2) / comb(30, 2))


def test_fewer_real_points_than_a_batch():
    found = Calibration(real_points(10)).at(1000)
    assert found.level == 1
    assert 0 < found.distance < all_distances(real_points(10)).min()


def test_real_data_that_repeat_themselves():
    """100 kinds: nearly every batch of 50 has equal ones, and the level says so."""
    kinds = torch.randint(100, (1000,), generator=torch.Generator().manual_seed(0))
    found = Calibration(kinds[:, None].float()).at(50)
    assert found.distance == 0
    assert found.level == 1
    times = torch.bincount(kinds)
    equal = int((times * (times - 1) // 2).sum())
    assert found.real_support == pytest.approx(comb(1000, 2) / equal)


def test_a_few_equal_real_pictures():
    points = real_points(300)
    points[:40] = points[40:80]
    found = Calibration(points).at(100)  # allowed: 0.05·C(300, 2)/C(100, 2) = 0.45 pairs; there are 40
    assert found.distance == 0
    assert found.level == 1
    few = Calibration(points).at(10)  # allowed: 49 pairs
    assert few.distance > 0
    assert few.level == 0.05


def test_larger_batches_have_smaller_thresholds():
    calibration = Calibration(real_points(500))
    distances = [calibration.at(size).distance for size in (4, 16, 64, 256)]
    assert distances == sorted(distances, reverse=True)
    assert len(set(distances)) == 4
    again = [calibration.at(size).distance for size in (256, 4)]  # whatever was asked for before
    assert again == [distances[3], distances[0]]


def test_many_real_points_are_thinned_evenly(monkeypatch):
    monkeypatch.setattr("obverse.diversity.threshold._MOST", 100)
    points = torch.cat([real_points(512), 10 + real_points(512, seed=1)])  # in the order of two classes
    found = Calibration(points).at(5)
    assert found.real_points < 1024
    whole = np.sort(all_distances(points[::4]))
    # A quarter of the points estimates the same quantile: within 4 √rank of the rank.
    rank = floor(0.05 * comb(256, 2) / comb(5, 2))
    assert whole[rank - 4 * floor(sqrt(rank))] < found.distance < whole[rank + 4 * floor(sqrt(rank))]


def test_words():
    assert "as given" in str(Threshold(0.5, "given"))
    assert "exact duplicates only" in str(Threshold(0.0, "exact"))
    assert "5 % of real batches" in str(Calibration(real_points(100)).at(5))
    assert Threshold(0.5, "given").to_dict()["distance"] == 0.5


@pytest.mark.parametrize(
    "call",
    [
        lambda: Calibration(real_points(1)),
        lambda: Calibration(torch.ones(5, 2)),
        lambda: Calibration(torch.full((5, 2), float("nan"))),
        lambda: Calibration(real_points(10), level=0.0),
        lambda: Calibration(real_points(10), level=1.0),
        lambda: Calibration(real_points(10)).at(1),
    ],
)
def test_refused(call):
    with pytest.raises(BadInput):
        call()
