"""Closest pairs and pairs within a distance, against all pairs one by one in float64."""

from __future__ import annotations

from itertools import combinations
from math import comb, inf

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from obverse._core.errors import BadInput
from obverse.diversity._pairs import close_pairs, closest_pairs, equal_rows


def by_hand(points) -> dict[tuple[int, int], float]:
    """Every pair and its distance, from the differences in float64."""
    x = np.asarray(points, dtype=np.float64).reshape(len(points), -1)
    return {(i, j): float(np.sqrt(((x[i] - x[j]) ** 2).sum())) for i, j in combinations(range(len(x)), 2)}


def check_closest(points, found, k: int) -> None:
    """The k smallest distances, and pairs that really have them; which of equals is not fixed."""
    true = by_hand(points)
    pairs = list(zip(found.first.tolist(), found.second.tolist(), strict=True))
    assert len(pairs) == len(found) == min(k, len(true))
    assert len(set(pairs)) == len(pairs)
    assert all(first < second for first, second in pairs)
    assert found.distance.dtype == torch.float64
    # Sums of d squares in another order: a few roundings.
    np.testing.assert_allclose(found.distance, sorted(true.values())[:k], rtol=1e-14)
    np.testing.assert_allclose(found.distance, [true[pair] for pair in pairs], rtol=1e-14)


def check_within(points, threshold: float, found) -> None:
    within = [pair for pair, distance in by_hand(points).items() if distance <= threshold]
    degrees = np.zeros(len(points), dtype=int)
    for i, j in within:
        degrees[i] += 1
        degrees[j] += 1
    assert found.count == len(within)
    assert found.degree.tolist() == degrees.tolist()


def between(points, rank: int) -> float:
    """A threshold halfway between two distances that differ by more than rounding."""
    values = sorted(by_hand(points).values())
    while values[rank + 1] < values[rank] * (1 + 1e-12):
        rank += 1
    return (values[rank] + values[rank + 1]) / 2


# Whole numbers: many equal points and equal distances.
LATTICE = st.lists(st.tuples(st.integers(-2, 2), st.integers(0, 1)), min_size=2, max_size=25)


@given(LATTICE, st.integers(1, 400), st.sampled_from([1, 3, 8, 2048]))
def test_closest_pairs_of_points_that_repeat(rows, k, block):
    points = torch.tensor(rows, dtype=torch.float32)
    check_closest(points, closest_pairs(points, k, block=block), k)


@given(
    LATTICE,
    st.integers(0, 30),
    st.sampled_from([0.0, 0.5, 1.0, 2**0.5, 2.0, 10.0]),
    st.sampled_from([2, 7, 2048]),
)
def test_pairs_within_a_distance(rows, k, threshold, block):
    points = torch.tensor(rows, dtype=torch.float32)
    found = close_pairs(points, threshold, k, block=block)
    check_within(points, threshold, found)
    check_closest(points, found.closest, k)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("rows", "columns", "block"), [(300, 5, 64), (257, 300, 128), (90, 1, 2048)])
def test_random_points(rows, columns, block, dtype):
    points = torch.randn(rows, columns, generator=torch.Generator().manual_seed(0), dtype=dtype)
    check_closest(points, closest_pairs(points, 25, block=block), 25)
    threshold = between(points, rows)
    check_within(points, threshold, close_pairs(points, threshold, block=block))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("away", [1e3, 1e6])
def test_near_duplicates_far_from_the_origin(away, dtype):
    """Their squared distances are rounding noise in ‖a‖² + ‖b‖² − 2a·b, in float64 too at the far end."""
    generator = torch.Generator().manual_seed(0)
    step = torch.finfo(dtype).eps * away  # a few times this apart
    centres = away * torch.randn(6, 40, generator=generator, dtype=torch.float64)
    noise = step * torch.randint(-3, 4, (120, 40), generator=generator)
    points = (centres.repeat(20, 1) + noise).to(dtype)
    points[7] = points[1]
    check_closest(points, closest_pairs(points, 60, block=50), 60)
    threshold = between(points, 300)
    check_within(points, threshold, close_pairs(points, threshold, block=50))


def test_exact_duplicates_are_at_distance_zero():
    points = 1e4 + torch.randn(200, 100, generator=torch.Generator().manual_seed(0))
    points[150], points[199] = points[3], points[3]
    found = close_pairs(points, 0.0, 5, block=64)
    assert found.count == 3
    assert found.degree.nonzero().flatten().tolist() == [3, 150, 199]
    assert found.closest.distance[:3].tolist() == [0, 0, 0]
    assert found.closest.distance[3] > 0
    assert sorted(zip(found.closest.first[:3].tolist(), found.closest.second[:3].tolist(), strict=True)) == [
        (3, 150), (3, 199), (150, 199),
    ]  # fmt: skip


def test_a_threshold_that_is_met_exactly_counts():
    points = torch.tensor([[0.0, 0.0], [3.0, 4.0], [30.0, 40.0]])
    assert close_pairs(points, 5.0).count == 1
    assert close_pairs(points, float(np.nextafter(5.0, 0))).count == 0


def test_all_the_same():
    found = close_pairs(torch.ones(5, 3), 0.0, 100)
    assert found.count == comb(5, 2)
    assert found.degree.tolist() == [4] * 5
    check_closest(torch.ones(5, 3), found.closest, 100)


def test_one_kind_of_picture_many_times_takes_no_longer_than_others():
    """Three kinds among 3,000 points: 1.5 million colliding pairs, of which none is looked at one by one."""
    kinds = torch.arange(3000) % 3
    found = close_pairs(torch.eye(3)[kinds], 1.0, 4)
    assert found.count == 3 * comb(1000, 2)
    assert found.degree.tolist() == [999] * 3000
    assert found.closest.distance.tolist() == [0.0] * 4


@pytest.mark.parametrize("block", [50, 2048])
def test_every_pair_at_the_same_distance_but_a_few(block):
    points = torch.eye(150)
    check_closest(points, closest_pairs(points, 30, block=block), 30)
    points[140] = points[3] + 0.25 * points[7]  # the last block holds the closest
    found = close_pairs(points, 2**0.5, 30, block=block)
    check_closest(points, found.closest, 30)
    assert found.closest.distance[0] == 0.25


def test_pictures_are_flattened():
    points = torch.rand(20, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    check_closest(points.flatten(1), closest_pairs(points, 7), 7)


def test_it_is_the_same_every_time_and_leaves_the_global_generator_alone():
    points = torch.rand(100, 8, generator=torch.Generator().manual_seed(0))
    before = torch.random.get_rng_state()
    one, two = closest_pairs(points, 9, block=32), closest_pairs(points, 9, block=32)
    assert torch.equal(one.distance, two.distance)
    assert torch.equal(one.first, two.first)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_the_points_are_left_as_they_are():
    points = torch.rand(50, 8, generator=torch.Generator().manual_seed(0))
    copy = points.clone()
    close_pairs(points, 0.5, block=16)
    assert torch.equal(points, copy)


def test_progress_is_told_block_by_block():
    calls: list[tuple[int, int, str]] = []
    points = torch.rand(10, 2, generator=torch.Generator().manual_seed(0))
    closest_pairs(points, 1, block=4, progress=lambda *told: calls.append(told))
    assert calls == [(done, 6, "closest pairs") for done in range(1, 7)]  # 3 blocks: 3 + 3


@given(
    st.lists(st.tuples(st.sampled_from([0.0, -0.0, 1.0, 5e-45]), st.integers(0, 1)), min_size=1, max_size=12)
)
def test_equal_rows(rows):
    """Python's own == on tuples: −0.0 equals 0.0."""
    for dtype in (torch.float32, torch.float64):
        found = equal_rows(torch.tensor(rows, dtype=dtype))
        assert found.tolist() == [next(i for i, row in enumerate(rows) if row == one) for one in rows]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [1.0, 2.0**-20, 2.0**40, 0.1])
def test_equal_rows_of_a_grid(scale, dtype):
    """Short mantissas: most bits of each number are zero, and sums of coordinates repeat."""
    side = scale * torch.arange(12, dtype=dtype)
    grid = torch.cartesian_prod(side, side)
    assert equal_rows(torch.cat([grid, grid])).tolist() == 2 * list(range(144))


@pytest.mark.parametrize(
    ("points", "k", "threshold", "said"),
    [
        (torch.rand(1, 3), 1, 0.0, "at least two"),
        (torch.rand(0, 3), 1, 0.0, "at least two"),
        (torch.tensor([[0.0, 1.0], [float("nan"), 2.0]]), 1, 0.0, "number 1"),
        (torch.tensor([[0.0, inf], [1.0, 2.0]]), 1, 0.0, "number 0"),
        (torch.ones(3, 2, dtype=torch.int64), 1, 0.0, "floating"),
        (torch.rand(3, 0), 1, 0.0, "values"),
        ([[0.0], [1.0]], 1, 0.0, "list"),
        (torch.rand(3, 2), -1, 0.0, "k ≥ 0"),
        (torch.rand(3, 2), 1, float("nan"), "finite threshold"),
    ],
)
def test_refused(points, k, threshold, said):
    with pytest.raises(BadInput, match=said):
        close_pairs(points, threshold, k)
