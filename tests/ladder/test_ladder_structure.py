"""Vertices against geometry that needs no linear program, and weights by what a layer makes of them."""

from itertools import product
from math import inf

import numpy as np
import pytest
import torch
from torch import Tensor

from obverse._core.errors import BadInput
from obverse.ladder._structure import (
    and_weights,
    hull_distances,
    is_all_vert,
    linear_minimum,
    separating_weights,
    vertices,
)


def matrix(rows) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def projection(values: int, count: int, kept) -> Tensor:
    """P(z of some positions | z of all): one-hot rows."""
    events = list(product(range(values), repeat=count))
    found = torch.zeros(len(events), values ** len(kept), dtype=torch.float64)
    for row, event in enumerate(events):
        place = 0
        for position in kept:
            place = place * values + event[position]
        found[row, place] = 1
    return found


def turned_around(points: np.ndarray) -> list[bool]:
    """Vertices in the plane: a point is one if all others fit into less than a half turn around it."""
    found = []
    for i, point in enumerate(points):
        others = np.delete(points, i, 0) - point
        angles = np.sort(np.arctan2(others[:, 1], others[:, 0]))
        gaps = np.diff(np.append(angles, angles[0] + 2 * np.pi))
        found.append(bool(gaps.max() > np.pi))
    return found


@pytest.mark.parametrize("seed", range(20))
def test_vertices_in_the_plane_are_those_of_angles(seed):
    points = np.random.default_rng(seed).normal(size=(9, 2))
    assert vertices(torch.from_numpy(points)).tolist() == turned_around(points)


def test_vertices_in_space_are_those_of_quickhull():
    from scipy.spatial import ConvexHull

    for seed in range(5):
        points = np.random.default_rng(seed).normal(size=(12, 3))
        expected = np.zeros(12, dtype=bool)
        expected[ConvexHull(points).vertices] = True
        assert vertices(torch.from_numpy(points)).tolist() == expected.tolist()


def test_distances_are_those_of_a_grid_of_combinations():
    """In a plane, to the segments and the inside of a triangle, by brute force over weights."""
    points = matrix([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    steps = 100
    for row, found in enumerate(hull_distances(points).tolist()):
        others = torch.cat([points[:row], points[row + 1 :]])
        weights = (
            matrix([[a, b, steps - a - b] for a in range(steps + 1) for b in range(steps + 1 - a)]) / steps
        )
        nearest = float((weights @ others - points[row]).abs().sum(1).min())
        assert found == pytest.approx(nearest, abs=2 / steps)  # the grid's own step, in two coordinates


def test_combinations_are_never_vertices_and_corners_always_are():
    generator = torch.Generator().manual_seed(0)
    corners = torch.eye(5, dtype=torch.float64)
    weights = torch.rand(6, 5, generator=generator, dtype=torch.float64)
    inside = weights / weights.sum(1, keepdim=True)
    assert vertices(torch.cat([corners, inside])).tolist() == [True] * 5 + [False] * 6


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_scale_and_place_do_not_matter(scale):
    points = np.random.default_rng(3).normal(size=(9, 2))
    assert vertices(scale * (torch.from_numpy(points) + 5)).tolist() == turned_around(points)


def test_a_point_just_outside_is_a_vertex_and_one_just_inside_is_not():
    square = matrix([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    for outside, expected in ((1e-6, True), (-1e-6, False), (0.0, False)):
        found = vertices(torch.cat([square, matrix([[0.5, 1 + outside]])]))
        assert found.tolist() == [True] * 4 + [expected]
    assert vertices(torch.cat([square, matrix([[0.5, 1.01]])]), tolerance=0.05).tolist()[-1] is False


def test_equal_rows_are_no_vertices():
    assert vertices(matrix([[0.0], [0.0], [1.0]])).tolist() == [False, False, True]
    assert not bool(vertices(matrix([[0.3, 0.7]] * 4)).any())


def test_a_single_row_is_a_vertex():
    assert is_all_vert(matrix([[0.3, 0.7]]))
    assert hull_distances(matrix([[0.3, 0.7]])).tolist() == [inf]


def test_a_child_of_an_exact_ladder_has_no_vertices_but_all_children_together_do():
    left, right = projection(2, 4, (0, 1)), projection(2, 4, (2, 3))
    assert int(vertices(left).sum()) == int(vertices(right).sum()) == 0
    assert is_all_vert(torch.cat([left, right], 1))


def test_a_simplex_is_all_vert_and_a_line_is_not():
    assert is_all_vert(torch.eye(6, dtype=torch.float64))
    assert int(vertices(torch.linspace(0, 1, 6, dtype=torch.float64).unsqueeze(1)).sum()) == 2


@pytest.mark.parametrize("children", [[(0, 1), (2, 3)], [(0,), (1,), (2,), (3,)], [(0, 1, 2), (1, 2, 3)]])
@pytest.mark.parametrize("values", [2, 3])
def test_and_weights_give_the_identity_exactly(children, values):
    parts = [projection(values, 4, kept) for kept in children]
    weights, bias = and_weights(parts)
    raw = sum(part @ weight for part, weight in zip(parts, weights, strict=True)) + bias
    assert torch.relu(raw).equal(torch.eye(values**4, dtype=torch.float64))  # whole numbers: no rounding


def test_and_weights_of_one_child():
    (weight,), bias = and_weights([torch.eye(3, dtype=torch.float64)])
    assert torch.relu(weight + bias).equal(torch.eye(3, dtype=torch.float64))


@pytest.mark.parametrize("seed", range(5))
def test_separating_weights_give_the_identity(seed):
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randn(8, 6, generator=generator, dtype=torch.float64)
    sphere = drawn / drawn.norm(dim=1, keepdim=True)  # on a sphere every point is a vertex
    weights, bias = separating_weights(sphere)
    raw = sphere @ weights + bias
    torch.testing.assert_close(raw.diagonal(), torch.ones(8, dtype=torch.float64))
    assert float((raw - 2 * torch.eye(8)).max()) <= -1 + 1e-6  # the solver's 1e-10, over distances ≥ 1e-3
    torch.testing.assert_close(torch.relu(raw), torch.eye(8, dtype=torch.float64))


def test_separating_weights_of_a_single_row():
    weights, bias = separating_weights(matrix([[0.3, 0.7]]))
    assert float(torch.relu(matrix([[0.3, 0.7]]) @ weights + bias)) == 1


def test_the_linear_minimum_is_what_least_squares_leaves():
    generator = torch.Generator().manual_seed(0)
    for rows, columns, rank in ((5, 3, 3), (5, 8, 5), (7, 6, 2)):
        drawn = torch.randn(rows, rank, generator=generator, dtype=torch.float64)
        found = drawn @ torch.randn(rank, columns, generator=generator, dtype=torch.float64)
        best = np.linalg.lstsq(found.numpy(), np.eye(rows), rcond=1e-10)[0]
        left = float(np.square(found.numpy() @ best - np.eye(rows)).sum())
        assert linear_minimum(found) == rows - rank
        assert left == pytest.approx(rows - rank, abs=1e-9)  # float64, with a condition number of about 100


def test_a_linear_net_on_single_positions_sees_only_their_sum():
    for count in (2, 3, 4):
        parts = torch.cat([projection(2, count, (one,)) for one in range(count)], 1)
        assert linear_minimum(parts) == 2**count - count - 1


def test_no_weights_separate_what_is_no_vertex():
    """Every single ReLU node that is 1 on the middle of a line is positive elsewhere too."""
    with pytest.raises(BadInput, match="row 1, which is a combination of the others"):
        separating_weights(matrix([[0.0], [0.5], [1.0]]))


@pytest.mark.parametrize(
    "function", [vertices, hull_distances, is_all_vert, separating_weights, linear_minimum]
)
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([[1.0]], "float64 tensor"),
        (torch.ones(2, 2), "float64 tensor"),
        (torch.ones(2, dtype=torch.float64), "rows and columns"),
        (torch.ones(0, 2, dtype=torch.float64), "rows and columns"),
        (torch.ones(2, 0, dtype=torch.float64), "rows and columns"),
        (torch.full((2, 2), float("nan"), dtype=torch.float64), "finite numbers"),
        (torch.full((2, 2), inf, dtype=torch.float64), "finite numbers"),
    ],
)
def test_bad_matrices_are_named(function, given, words):
    with pytest.raises(BadInput, match=words):
        function(given)


@pytest.mark.parametrize("tolerance", [-1e-9, 1.0, float("nan"), True, "small"])
def test_bad_tolerances_are_named(tolerance):
    with pytest.raises(BadInput, match="a tolerance from 0"):
        vertices(torch.eye(2, dtype=torch.float64), tolerance)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([], "one P for each child"),
        ([torch.eye(2).double(), torch.eye(3).double()], "2 rows"),
        ([torch.full((2, 2), 0.5, dtype=torch.float64)], "one-hot rows"),
        ([torch.ones(2, 2, dtype=torch.float64)], "one-hot rows"),
        ([torch.eye(2).double()[[0, 0, 1]]], "events that differ in some child"),
    ],
)
def test_bad_children_of_and_weights_are_named(parts, words):
    with pytest.raises(BadInput, match=words):
        and_weights(parts)
