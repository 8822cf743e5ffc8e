"""Sparse noise beside itself with other signs, and where signs say nothing."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from obverse.weights._decomposition.signs import flip


def flipped(matrix: torch.Tensor):
    return flip(matrix, 0.01, torch.Generator().manual_seed(0))


def band(size: int) -> torch.Tensor:
    """Two diagonals: any signs of it are those of rows and columns, and change no singular value."""
    return torch.eye(size) + torch.diag(torch.full((size - 1,), 0.9), 1)


def test_where_signs_hardly_move_the_spectrum_the_answer_beside_dense_noise_stands():
    found = flipped(band(64))
    values = np.linalg.svd(band(64).double().numpy(), compute_uv=False)[::-1]
    assert np.allclose(found.values, values, atol=1e-5)  # float32, 64 rows
    assert found.hardly_move
    assert found.below(values, 0.01, (3, [0.0, 0.0, 0.0, 0.5])) == (3, [0.0, 0.0, 0.0, 0.5])


def test_where_signs_move_it_they_decide():
    generator = torch.Generator().manual_seed(1)
    sparse = torch.randn(64, 64, generator=generator) * (torch.rand(64, 64, generator=generator) < 0.1)
    found = flipped(sparse)
    assert not found.hardly_move
    count, chances = found.below(found.values[0], 0.01, (64, []))
    assert count == 0
    assert chances == [pytest.approx((1 + (found.values[:, 0] <= found.values[0, 0]).sum()) / 200, abs=0.02)]
