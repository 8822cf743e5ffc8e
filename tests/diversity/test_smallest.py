"""The smallest fault that would have been found: planted at that size, it is found in about 8 of 10 cases."""

from __future__ import annotations

from math import comb

import pytest
import torch
from scipy import stats
from torch import Tensor

from diversity.sample_diversity import generator
from obverse.diversity import nearest
from obverse.diversity._memorization import Sides, sides
from obverse.diversity._smallest import least_copies, least_support
from obverse.diversity._threshold import Threshold, chance_of_collisions


@pytest.mark.parametrize("width", [3, 12])
def test_copies_of_the_smallest_share_are_found_in_eight_of_ten_cases(width):
    """Normal points. 60 trials: an error of 0.05; whole copies: within 0.17."""
    source = generator(width)
    seen = []
    for _ in range(60):
        training, held_out, clean = (torch.randn(count, width, generator=source) for count in (200, 150, 180))
        share = least_copies(compared(clean, training, held_out, source), 180, 0.05)
        assert share is not None
        copied = clean.clone()
        copied[: round(180 * share)] = training[: round(180 * share)]
        seen.append(compared(copied, training, held_out, source).p <= 0.05)
    assert sum(seen) / 60 == pytest.approx(0.8, abs=0.17)


def compared(samples: Tensor, training: Tensor, held_out: Tensor, source: torch.Generator) -> Sides:
    sizes = len(training), len(held_out)
    return sides(nearest(samples, training, 10), nearest(samples, held_out, 10), sizes, 99, source)


def test_of_copies_nothing_is_promised_where_nothing_is_known():
    assert least_copies(Sides(0.5, 0.5, 0.5, 0.5), 100, 0.05) is None  # of an older file
    assert least_copies(Sides(0.5, 0.5, 0.5, 0.5, 0.2, 0.01), 5, 1e-9) is None  # five copies are no proof
    assert least_copies(Sides(0.5, 0.5, 0.5, 0.5, 0.0, 0.01), 100, 0.05) is not None


def collides(size: int, support: float) -> float:
    """The chance that two of so many are equal, in a loop."""
    apart = 1.0
    for k in range(size):
        apart *= max(0.0, 1 - k / support)
    return 1 - apart


def test_exact_duplicates_of_so_many_images_show_in_eight_of_ten_cases():
    support = least_support(30, 7, Threshold(0.0, "exact"), 0.01)
    assert support is not None
    assert 1 - (1 - collides(30, support)) ** 7 == pytest.approx(0.8, rel=1e-9)


def test_beside_real_data_the_collisions_that_are_needed_come_in_eight_of_ten_cases():
    limit = Threshold(1.0, "calibrated", 0.05, 500, 3, comb(500, 2) / 4)
    support = least_support(40, 20, limit, 0.01)
    assert support is not None
    needed = [c for c in range(1, 21) if (chance_of_collisions(c, 20, 40, limit) or 0) <= 0.01]
    assert float(stats.binom.sf(needed[0] - 1, 20, collides(40, support))) == pytest.approx(0.8, rel=1e-6)
    assert support < 500 * 499 / 8  # fewer than real data has
    assert least_support(40, 1, limit, 1e-6) is None  # no collision of one batch is so much
