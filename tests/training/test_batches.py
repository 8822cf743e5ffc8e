"""Batches and fingerprints of training data."""

from __future__ import annotations

import hashlib

import pytest
import torch

from obverse._core.errors import BadInput
from obverse.training._batches import Batches, fingerprint, refuse_other_data


@pytest.mark.parametrize(("points", "size"), [(10, 3), (9, 3), (4, 10), (1, 1)])
def test_an_epoch_is_every_point_once_in_batches_of_one_size(points: int, size: int) -> None:
    batches = Batches(points, size, seed=1)
    seen = [batches.rows(0, index) for index in range(len(batches))]
    assert sorted(torch.cat(seen).tolist()) == list(range(points))
    assert all(len(rows) == size for rows in seen[:-1])
    assert 1 <= len(seen[-1]) <= size


def test_the_order_depends_on_seed_and_epoch_alone() -> None:
    one, other = Batches(50, 7, seed=3), Batches(50, 7, seed=3)
    other.rows(2, 0)  # whatever was asked for before
    assert torch.equal(one.rows(1, 4), other.rows(1, 4))
    assert not torch.equal(one.rows(0, 0), one.rows(1, 0))
    assert not torch.equal(one.rows(0, 0), Batches(50, 7, seed=4).rows(0, 0))


def test_the_fingerprint_is_of_shapes_and_values() -> None:
    x, y = torch.arange(6.0).reshape(2, 3), torch.tensor([1, 0])
    said = hashlib.sha256(b"(2, 3)" + x.numpy().tobytes() + b"(2,)" + y.numpy().tobytes()).digest()
    assert bytes(fingerprint(x, y).tolist()) == said
    assert torch.equal(fingerprint(x.T.contiguous().T, y), fingerprint(x, y))
    for other in (fingerprint(x.reshape(3, 2), y), fingerprint(x + 1, y), fingerprint(x)):
        assert not torch.equal(other, fingerprint(x, y))


def test_other_data_are_refused() -> None:
    x = torch.arange(6.0)
    refuse_other_data(fingerprint(x), fingerprint(x.clone()), "digits")
    with pytest.raises(BadInput, match="began with in digits; got others"):
        refuse_other_data(fingerprint(x), fingerprint(x + 1), "digits")
