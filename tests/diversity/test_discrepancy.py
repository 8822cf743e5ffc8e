"""The two-sample test: its number by its definition, its p by all dealings, its level by simulation."""

from __future__ import annotations

from itertools import combinations
from math import exp

import numpy as np
import pytest
import torch

from diversity.sample_diversity import generator
from obverse._core.errors import BadInput
from obverse.diversity import discrepancy
from obverse.diversity._discrepancy import LARGEST


def by_definition(points: list[list[float]], first: tuple[int, ...], width: float) -> float:
    """Means of the kernel within both sets, without a point and itself, less twice that between them."""
    second = tuple(row for row in range(len(points)) if row not in first)

    def kernel(a: int, b: int) -> float:
        return exp(-sum((x - y) ** 2 for x, y in zip(points[a], points[b], strict=True)) / (2 * width**2))

    within = sum(np.mean([kernel(a, b) for a in rows for b in rows if a != b]) for rows in (first, second))
    return float(within - 2 * np.mean([kernel(a, b) for a in first for b in second]))


def test_the_value_and_p_are_those_of_the_definition_and_of_all_dealings():
    x = torch.randn(9, 2, generator=generator(1))
    x[:4] += 0.7
    found = discrepancy(x[:4], x[4:], width=0.8, generator=generator())
    points = x.tolist()
    assert found.value == pytest.approx(by_definition(points, (0, 1, 2, 3), 0.8), abs=1e-6)  # float32
    dealt = [by_definition(points, rows, 0.8) for rows in combinations(range(9), 4)]
    exact = np.mean([value >= found.value - 1e-6 for value in dealt])
    assert found.p == pytest.approx(exact, abs=3 * (exact / 999) ** 0.5 + 0.001)  # of 999 dealings
    assert found.deviation == pytest.approx(np.std(dealt), rel=0.1)
    assert (found.samples, found.real) == (4, 5)


def test_points_of_one_distribution_are_told_apart_no_more_often_than_the_level():
    """200 draws at 5 %: within three standard errors. Far from the origin no digit is lost."""
    source = generator(2)
    p = [
        discrepancy(
            1000 + torch.randn(30, 3, generator=source),
            1000 + torch.randn(25, 3, generator=source),
            shuffles=99,
            generator=source,
        ).p
        for _ in range(200)
    ]
    few, much = (sum(one <= level for one in p) for level in (0.05, 0.5))
    assert few <= 10 + 3 * (200 * 0.05 * 0.95) ** 0.5
    assert abs(much - 100) <= 3 * 50**0.5


def test_other_points_are_found_and_many_are_only_looked_at_in_part():
    source = generator(3)
    real = torch.randn(LARGEST + 100, 2, generator=source)
    found = discrepancy(1.3 * torch.randn(300, 2, generator=source), real, shuffles=19, generator=source)
    assert found.p == 0.05
    assert (found.samples, found.real) == (300, LARGEST)
    assert "p = 0.05" in str(found)


@pytest.mark.parametrize(
    ("settings", "said"),
    [({"shuffles": 0}, "at least one shuffle"), ({"width": 0.0}, "a width above 0")],
)
def test_what_makes_no_sense_is_refused(settings, said):
    x = torch.randn(5, 2, generator=generator())
    with pytest.raises(BadInput, match=said):
        discrepancy(x, x + 1, **settings)
    with pytest.raises(BadInput, match="samples of 3 features"):
        discrepancy(x, torch.randn(5, 3, generator=generator()))
