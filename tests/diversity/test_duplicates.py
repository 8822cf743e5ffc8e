"""Equal samples are counted, and judged beside those of real data."""

from __future__ import annotations

from itertools import combinations

import pytest
import torch

from diversity.sample_diversity import generator
from obverse.diversity._duplicates import duplicates


def repeats(kinds: list[int]) -> int:
    return len(kinds) - len(set(kinds))


def test_p_is_the_share_of_all_dealings_with_as_many_repeats():
    samples, real = [0, 0, 1, 2, 2], [3, 1, 4, 5]
    every = samples + real
    dealt = [repeats([every[i] for i in rows]) for rows in combinations(range(9), 5)]
    exact = sum(many >= repeats(samples) for many in dealt) / len(dealt)
    found = duplicates(*(torch.tensor(one)[:, None] / 8 for one in (samples, real)), generator=generator())
    assert (found.examined, found.distinct, found.real, found.distinct_real) == (5, 3, 4, 4)
    # 999 dealings: three standard errors, and what was seen counts as one of them
    assert found.p == pytest.approx(exact, abs=3 * (exact / 999) ** 0.5 + 0.001)


def test_without_equal_images_there_is_no_test_and_without_real_data_none_either():
    points = torch.rand(20, 3, generator=generator())
    assert duplicates(points).p is None
    assert duplicates(points[:10], points[10:]).p is None
    assert duplicates(points[[0, 0, 1]]).distinct == 2


def test_equal_images_of_the_same_kinds_are_no_fault():
    """200 draws of few-valued points: a level of 5 % within three standard errors."""
    source = generator(1)
    p = []
    for _ in range(200):
        samples, real = (torch.randint(60, (count, 1), generator=source) / 60 for count in (30, 25))
        p.append(duplicates(samples, real, shuffles=99, generator=source).p)
    assert sum(one is not None and one <= 0.05 for one in p) <= 200 * 0.05 + 3 * (200 * 0.05 * 0.95) ** 0.5
