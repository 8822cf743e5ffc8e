"""Data sets as tensors: what is read and refused; which points are equal, against Python's own ==."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from obverse._core.errors import BadInput
from obverse.identity._points import LARGEST, MOST_CLASSES, SHOWN, checked, distinct, first_equal


def firsts(rows: list[tuple]) -> list[int]:
    """Python's own == on tuples of numbers: −0.0 equals 0.0."""
    seen: list[int] = []
    for index, row in enumerate(rows):
        if all(rows[one] != row for one in seen):
            seen.append(index)
    return seen


NUMBERS = st.sampled_from([0.0, -0.0, 1.0, -1.0, 5e-324, 1e-300, 1.0 + 2**-52, 1e300])


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=12))
def test_firsts_of_equal_rows(rows):
    x = torch.tensor(rows, dtype=torch.float64)
    assert distinct(x, torch.zeros(len(rows), dtype=torch.int64)).tolist() == firsts(rows)
    assert first_equal(x).tolist() == [next(i for i in range(len(rows)) if rows[i] == row) for row in rows]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), min_size=1, max_size=12))
def test_conflicts_are_refused_with_the_first_pair(pairs):
    rows, labels = [(x,) for x, _ in pairs], [y for _, y in pairs]
    conflicts = [
        (rows.index(row), index) for index, row in enumerate(rows) if labels[rows.index(row)] != labels[index]
    ]
    x, y = torch.tensor(rows), torch.tensor(labels)
    if not conflicts:
        assert distinct(x, y).tolist() == firsts(rows)
        return
    with pytest.raises(BadInput) as caught:
        distinct(x, y)
    for a, b in conflicts[:SHOWN]:
        assert f"{a} and {b} (labels {labels[a]}, {labels[b]})" in str(caught.value)
    left = len(conflicts) - SHOWN
    assert (f"and {left} more" in str(caught.value)) == (left > 0)


@pytest.mark.parametrize(
    "dtype",
    [torch.bool, torch.uint8, torch.int8, torch.int64, torch.float16, torch.bfloat16, torch.float64],
)
def test_equal_points_in_all_types_of_numbers(dtype):
    x, y, _ = checked(torch.tensor([[1, 0], [0, 1], [1, 0], [0, 0], [0, 1]]).to(dtype), [3, 4, 3, 5, 4])
    assert distinct(x, y).tolist() == [0, 1, 3]


NUMPY = [
    "bool",
    "u1",
    "i1",
    "u2",
    "i2",
    "i4",
    "u4",
    "i8",
    "u8",
    "f2",
    "f4",
    "f8",
    "g",
    ">f4",
    ">f8",
    ">i4",
    ">u2",
]


@pytest.mark.parametrize("dtype", NUMPY)
def test_arrays_are_read_without_loss(dtype):
    array = np.array([[0, 1, 0], [1, 1, 0]]).astype(dtype)
    if np.dtype(dtype).kind != "b":
        array[0, 0] = 100
    x, y, r = checked(array, array[:, 1]) if np.dtype(dtype).kind in "biu" else checked(array, [1, 1])
    assert x.tolist() == array.tolist()
    assert (y.tolist(), y.dtype, r) == ([1, 1], torch.int64, 2)


@pytest.mark.parametrize(
    "dtype", [torch.uint16, torch.uint32, torch.uint64, torch.int32, torch.bool, torch.bfloat16]
)
def test_tensors_are_read_without_loss(dtype):
    tensor = torch.tensor([[0, 1, 0], [1, 1, 0]]).to(dtype)
    x, y, _ = checked(tensor, [1, 0])
    assert x.tolist() == [[0, 1, 0], [1, 1, 0]]
    assert y.tolist() == [1, 0]


def test_whole_numbers_that_no_type_holds_are_refused():
    for wrong in (
        np.array([[2**63], [1]], dtype=np.uint64),
        torch.tensor([[2**63], [1]], dtype=torch.uint64),
    ):
        try:
            x, _, _ = checked(wrong, [0, 1])
        except BadInput:
            continue
        assert x.double().tolist() == [[2.0**63], [1.0]]  # or they are kept


def test_lists_are_read_in_double_precision():
    x, _, _ = checked([[1.0], [1.0 + 1e-12]], [0, 1])
    assert x.dtype == torch.float64
    assert x[1, 0] == 1.0 + 1e-12


def test_the_array_itself_is_not_held():
    array = np.zeros((3, 2))
    x, _, _ = checked(array, [0, 1, 1])
    array[0] = 5
    assert not x.any()


def test_limits():
    checked([[LARGEST], [-LARGEST]], [0, MOST_CLASSES - 1])
    for x, y in (([[2 * LARGEST]], [0]), ([[-2 * LARGEST]], [0]), ([[0.0]], [MOST_CLASSES])):
        with pytest.raises(BadInput):
            checked(x, y)
    with pytest.raises(BadInput, match="for points that are single numbers"):
        checked([1.0, 2.0], [0, 1])
    with pytest.raises(BadInput, match="dense"):
        checked(torch.eye(2).to_sparse(), [0, 1])


def test_images_are_compared_whole():
    x = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (6, 3, 4, 4)).astype(np.uint8))
    x[4] = x[1]
    x[5] = x[1]
    x[5, 2, 3, 3] ^= 1  # the last number of the last row
    assert distinct(x, torch.tensor([0, 1, 0, 1, 1, 0])).tolist() == [0, 1, 2, 3, 5]


def test_minus_zero_is_zero():
    x = torch.tensor([[0.0, 1.0], [-0.0, 1.0]])
    assert distinct(x, torch.tensor([1, 1])).tolist() == [0]
    with pytest.raises(BadInput, match=r"equal points 0 and 1 \(labels 0, 1\); drop one of each pair"):
        distinct(x, torch.tensor([0, 1]))


def test_rows_that_are_not_side_by_side_in_memory():
    x = torch.arange(12.0).reshape(3, 4).T[:, ::2]  # a view with steps
    assert not x.is_contiguous()
    assert distinct(torch.cat([x, x]), torch.zeros(8, dtype=torch.int64)).tolist() == [0, 1, 2, 3]
    assert distinct(x, torch.zeros(4, dtype=torch.int64)).tolist() == [0, 1, 2, 3]
