from __future__ import annotations

import numpy as np
import pytest
import torch

from obverse._core.errors import BadInput
from obverse.data._dataset import MAX_BYTES, check_room, pixels, split


def test_split_is_the_same_everywhere_and_loses_nothing() -> None:
    x, y = torch.arange(10.0).reshape(10, 1), torch.arange(10)
    first, second = (split("ten", x, y, tuple("0123456789")) for _ in range(2))
    assert first.test_y.tolist() == second.test_y.tolist() == [2, 8]  # RandomState(0), a frozen stream
    assert sorted(first.train_y.tolist() + first.test_y.tolist()) == list(range(10))
    assert torch.equal(first.train_x[:, 0].long(), first.train_y)


def test_split_of_one_example_is_refused() -> None:
    with pytest.raises(BadInput, match="at least 2 examples in one"):
        split("one", torch.zeros(1, 2), torch.zeros(1, dtype=torch.int64), ("0",))


def test_a_dataset_prints_as_one_short_line() -> None:
    data = split("tiny", torch.zeros(10, 1, 2, 3), torch.zeros(10, dtype=torch.int64), ("a",))
    assert str(data) == "tiny: 8 train + 2 test, 1×2×3, 1 classes"
    assert repr(data) == f"<Dataset {data}>"
    assert data.input_shape == (1, 2, 3)


def test_pixels_cover_the_unit_interval() -> None:
    assert pixels(np.array([0, 51, 255], np.uint8)).tolist() == pytest.approx([0, 0.2, 1])


def test_room_is_checked_in_float32() -> None:
    check_room(MAX_BYTES // 4, "x")
    with pytest.raises(BadInput, match="at most 8 GiB"):
        check_room(MAX_BYTES // 4 + 1, "x")
