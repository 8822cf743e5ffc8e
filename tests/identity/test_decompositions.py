"""Vectors that are orthogonal even where divide and conquer fails."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from obverse.identity._decompositions import TOLERANCE, eigenvectors, svd
from obverse.identity._factorize import factorize


def clustered(seed: int):
    """Two clusters of values, a thousandth wide, 1e9 apart: a matrix of these, and a symmetric one."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(30, 60))
    left, right = (np.linalg.qr(rng.standard_normal((size, size)))[0] for _ in range(2))
    values = rng.choice([1e-9, 1.0], size) * (1 + 1e-3 * rng.standard_normal(size))
    symmetric = (left * rng.permutation(values)) @ left.T
    return torch.tensor((left * values) @ right), torch.tensor(symmetric + symmetric.T) / 2


def check_svd(matrix) -> None:
    left, values, right = svd(matrix)
    for vectors in (left, right):
        assert (vectors.T @ vectors - torch.eye(len(matrix))).abs().max() <= TOLERANCE
    assert torch.equal(values, values.sort(descending=True).values)
    assert (left * values @ right - matrix).abs().max() < TOLERANCE * values[0]


def check_eigenvectors(matrix) -> None:
    vectors = eigenvectors(matrix)
    assert (vectors.T @ vectors - torch.eye(len(matrix))).abs().max() <= TOLERANCE
    diagonal = vectors.T @ matrix @ vectors
    values = diagonal.diagonal()
    assert (diagonal - values.diag()).abs().max() < TOLERANCE * values.abs().max()
    assert (values.diff() > -TOLERANCE * values.abs().max()).all()


# Off by 1e-12 in the singular vectors and by up to 7e-6 in eigenvectors, with the library it was written on.
@pytest.mark.parametrize("seed", [0, 3, 1973, 3727, 5599])
def test_clusters(seed: int):
    matrix, symmetric = clustered(seed)
    check_svd(matrix)
    check_eigenvectors(symmetric)
    matrix[0] *= torch.linalg.slogdet(matrix).sign
    factorize(matrix, 7)  # which checks itself


def spoil(monkeypatch, name: str, how) -> None:
    honest = getattr(torch.linalg, name)
    monkeypatch.setattr(torch.linalg, name, lambda matrix: how(honest(matrix)))


def not_converged(_):
    raise torch.linalg.LinAlgError("it did not converge")  # type: ignore[attr-defined]


@pytest.mark.parametrize("which", [0, 2])
@pytest.mark.parametrize("error", [1e-9, float("nan")])
def test_singular_vectors_that_are_off_are_computed_again(monkeypatch, which: int, error: float):
    def off(found):
        found[which][0, 0] += error
        return found

    matrix = torch.tensor(np.random.default_rng(0).standard_normal((6, 6)))
    spoil(monkeypatch, "svd", off)
    check_svd(matrix)


@pytest.mark.parametrize("error", [1e-9, float("nan")])
def test_eigenvectors_that_are_off_are_computed_again(monkeypatch, error: float):
    def off(found):
        found.eigenvectors[0, 0] += error
        return found

    matrix = torch.tensor(np.random.default_rng(0).standard_normal((6, 6)))
    spoil(monkeypatch, "eigh", off)
    check_eigenvectors(matrix + matrix.T)


def test_errors_are_no_end(monkeypatch):
    spoil(monkeypatch, "svd", not_converged)
    spoil(monkeypatch, "eigh", not_converged)
    matrix = torch.tensor(np.random.default_rng(0).standard_normal((6, 6)))
    check_svd(matrix)
    check_eigenvectors(matrix + matrix.T)


def test_sound_vectors_are_left_as_they_are(monkeypatch):
    matrix = torch.tensor(np.random.default_rng(0).standard_normal((50, 50)))
    expected = torch.linalg.svd(matrix)
    monkeypatch.setattr("scipy.linalg.svd", None)
    assert all(torch.equal(a, b) for a, b in zip(svd(matrix), expected, strict=True))
