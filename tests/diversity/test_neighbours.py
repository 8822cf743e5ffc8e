"""Nearest neighbours, against all distances from differences in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from obverse._core.errors import BadInput
from obverse.diversity._neighbours import nearest


def distances(queries, reference) -> np.ndarray:
    a, b = (np.asarray(x, dtype=np.float64).reshape(len(x), -1) for x in (queries, reference))
    return np.sqrt(((a[:, None] - b[None]) ** 2).sum(2))


def check(queries, reference, k: int, *, same: bool = False, block: int = 2048) -> None:
    distance, index = nearest(queries, reference, k, same=same, block=block)
    true = distances(queries, reference)
    if same:
        np.fill_diagonal(true, np.inf)
    assert distance.shape == index.shape == (len(queries), k)
    assert distance.dtype == torch.float64
    # Sums of d squares in another order: a few roundings.
    np.testing.assert_allclose(distance, np.sort(true, axis=1)[:, :k], rtol=1e-14)
    np.testing.assert_allclose(distance, np.take_along_axis(true, index.numpy(), 1), rtol=1e-14)
    assert all(len(set(row)) == k for row in index.tolist())


def random(rows: int, columns: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("k", "block"), [(1, 64), (5, 33), (40, 2048)])
def test_random_points(k, block, dtype):
    check(random(70, 30, 1, dtype), random(150, 30, 2, dtype), k, block=block)
    check(random(70, 30, 1, dtype), random(70, 30, 1, dtype), k, same=True, block=block)


LATTICE = st.lists(st.tuples(st.integers(-2, 2), st.integers(0, 1)), min_size=2, max_size=20)


@settings(max_examples=60)
@given(LATTICE, LATTICE, st.integers(1, 10), st.sampled_from([1, 4, 2048]))
def test_points_that_repeat(queries, reference, k, block):
    a, b = torch.tensor(queries, dtype=torch.float32), torch.tensor(reference, dtype=torch.float32)
    check(a, b, min(k, len(b)), block=block)
    check(a, a, min(k, len(a) - 1), same=True, block=block)


@pytest.mark.parametrize(("away", "spread"), [(1e3, 1e-4), (1e3, 1e-7), (1e6, 1e-6)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_clusters_far_from_the_origin(away, spread, dtype):
    """Many more neighbours than spare candidates, closer than ‖a‖² + ‖b‖² − 2a·b can tell."""
    centres = away * random(8, 64, 0, torch.float64)
    points = (centres.repeat(40, 1) + spread * random(320, 64, 1, torch.float64)).to(dtype)
    check(points, points, 3, same=True, block=100)
    check(points[:50], points[50:], 3, block=100)


def test_an_exact_copy_is_at_distance_zero():
    reference = 1e4 + random(200, 100)
    distance, index = nearest(reference[[5, 17]], reference)
    assert distance.flatten().tolist() == [0, 0]
    assert index.flatten().tolist() == [5, 17]


def test_a_point_is_not_its_own_neighbour_but_its_copy_is():
    points = random(50, 3)
    points[40] = points[2]
    distance, index = nearest(points, points, same=True)
    assert (index[2, 0].item(), index[40, 0].item()) == (40, 2)
    assert distance[2, 0] == distance[40, 0] == 0
    assert (index[:, 0] != torch.arange(50)).all()
    assert distance[3, 0] > 0


def test_one_query_and_pictures():
    reference = random(30, 16)
    check(random(1, 16, 5), reference, 2)
    distance, index = nearest(reference.reshape(30, 1, 4, 4)[:3], reference.reshape(30, 1, 4, 4))
    assert index.flatten().tolist() == [0, 1, 2]
    assert not distance.any()


def test_progress_is_told_block_by_block():
    calls: list[tuple[int, int, str]] = []
    nearest(random(10, 2), random(5, 2, 1), block=4, progress=lambda *told: calls.append(told))
    assert calls == [(done, 3, "nearest neighbours") for done in (1, 2, 3)]


def test_nothing_is_changed():
    queries, reference, state = random(20, 4), random(30, 4, 1), torch.random.get_rng_state()
    copies = queries.clone(), reference.clone()
    nearest(queries, reference, 3, block=8)
    assert torch.equal(queries, copies[0])
    assert torch.equal(reference, copies[1])
    assert torch.equal(torch.random.get_rng_state(), state)


@pytest.mark.parametrize(
    ("queries", "reference", "k", "same", "said"),
    [
        (torch.rand(3, 2), torch.rand(4, 3), 1, False, "3 dimensions"),
        (torch.rand(3, 2), torch.rand(4, 2), 5, False, "1 to 4"),
        (torch.rand(4, 2), torch.rand(4, 2), 4, True, "1 to 3"),
        (torch.rand(3, 2), torch.rand(4, 2), 0, False, "1 to 4"),
        (torch.rand(0, 2), torch.rand(4, 2), 1, False, "one query"),
        (torch.rand(3, 2), torch.rand(1, 2), 1, False, "at least two"),
        (torch.full((3, 2), float("nan")), torch.rand(4, 2), 1, False, "NaN"),
        (torch.rand(3, 2), torch.full((4, 2), float("inf")), 1, False, "infinity"),
    ],
)
def test_refused(queries, reference, k, same, said):
    with pytest.raises(BadInput, match=said):
        nearest(queries, reference, k, same=same)
