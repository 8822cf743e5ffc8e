"""Powers of rotations: planes known beforehand, exponentials of skew matrices, spectra hard to split."""

from __future__ import annotations

from math import pi

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import block_diag, expm
from scipy.stats import special_ortho_group

from obverse.identity import _rotation as module
from obverse.identity._rotation import Rotation

EPS = np.finfo(float).eps


def turning(angles, rest: int = 0):
    """A block for each angle, and ones."""
    blocks = [np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]]) for a in angles]
    return block_diag(*blocks, *([np.eye(rest)] if rest else []))


def basis(size: int, seed: int = 0):
    return special_ortho_group.rvs(size, random_state=np.random.default_rng(seed)) if size > 1 else np.eye(1)


def split(matrix) -> Rotation:
    return Rotation.of(torch.tensor(np.array(matrix, dtype=float)))


def power(found: Rotation, time: float):
    return found.less_identity(time).numpy() + np.eye(len(found.basis))


def off(a, b) -> float:
    return float(np.linalg.norm(np.asarray(a) - np.asarray(b), 2))


def rounding(size: int) -> float:
    """Couplings below NEGLIGIBLE·eps are dropped. Independent entries of that size have 2√d times it for a
    norm, which covers the rounding of the decompositions too."""
    return 2 * module.NEGLIGIBLE * EPS * size**0.5


def is_rotation(found: Rotation, matrix) -> None:
    """Its first power is the matrix, its powers are orthogonal and add, and it moves no more than it must."""
    size = len(matrix)
    assert off(power(found, 1.0), matrix) < rounding(size)
    assert off(found.basis.T @ found.basis, np.eye(size)) < rounding(size)
    assert off(power(found, 0.25) @ power(found, 0.75), matrix) < rounding(size)
    turned = power(found, 1 / 3)
    assert off(turned.T @ turned, np.eye(size)) < rounding(size)
    # ‖Q^t − I‖ = 2 sin(tθ/2), θ the largest angle
    assert off(turned, np.eye(size)) == pytest.approx(2 * np.sin(found.largest / 6), abs=rounding(size))


@pytest.mark.parametrize("angles", [[0.3], [0.3, 1.2, 2.9], [0.5, -0.5], [1.0, 1.0, 1.0, 2.0], [1e-3, 3.1]])
@pytest.mark.parametrize("rest", [0, 1, 3])
def test_powers_turn_each_plane_by_its_share(angles: list[float], rest: int):
    size = 2 * len(angles) + rest
    x = basis(size)
    found = split(x @ turning(angles, rest) @ x.T)
    for time in (-0.5, 0.0, 0.25, 1.0):
        expected = x @ turning(time * np.array(angles), rest) @ x.T
        assert off(power(found, time), expected) < rounding(size)
    assert sorted(found.angles.abs().tolist()) == pytest.approx(sorted(map(abs, angles)), abs=rounding(size))


@pytest.mark.parametrize("size", [2, 3, 8, 25])
def test_powers_are_exponentials_of_the_skew_logarithm(size: int):
    skew = np.random.default_rng(size).standard_normal((size, size))
    skew -= skew.T
    skew *= 3.0 / np.linalg.norm(skew, 2)  # below π, so that it is the logarithm of its exponential
    found = split(expm(skew))
    assert found.largest == pytest.approx(3.0, abs=rounding(size))
    for time in (0.1, 0.5, 0.9):
        assert off(power(found, time), expm(time * skew)) < rounding(size)


@pytest.mark.parametrize("turned", [2, 4, 6])
@pytest.mark.parametrize("rest", [0, 1, 2])
def test_eigenvalues_minus_one_are_paired(turned: int, rest: int):
    size = turned + rest
    x = basis(size)
    for matrix in (np.diag([-1.0] * turned + [1.0] * rest), x @ np.diag([-1] * turned + [1] * rest) @ x.T):
        found = split(matrix)
        assert found.angles.tolist() == pytest.approx([pi] * (turned // 2), abs=rounding(size))
        is_rotation(found, matrix)


@pytest.mark.parametrize("scale", [1e-3, 1e-6, 1e-8, 1e-11, 1e-14, 0.0])
@pytest.mark.parametrize("middle", [0.0, 1.0, pi / 2, pi])
def test_clusters_of_angles_are_split(middle: float, scale: float):
    rng = np.random.default_rng(0)
    x = basis(20)
    matrix = x @ turning(middle + scale * rng.standard_normal(10)) @ x.T
    is_rotation(split(matrix), matrix)


def test_small_angles_are_not_lost_in_their_cosines():
    """cos θ = 1 to rounding for θ < 1e-8: only the skew part tells such planes apart."""
    angles = np.array([1e-9, 3e-9, 1e-10])
    x = basis(7)
    found = split(x @ turning(angles, 1) @ x.T)
    # the matrix itself holds them to about 2√d·eps
    assert sorted(found.angles.abs().tolist()) == pytest.approx(sorted(angles), abs=20 * EPS)


@settings(max_examples=50, deadline=None)
@given(st.permutations(range(9)))
def test_permutations(order: list[int]):
    matrix = np.eye(9)[order]
    if np.linalg.det(matrix) < 0:
        matrix[0] *= -1
    is_rotation(split(matrix), matrix)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.sampled_from([0.0, 1e-12, 0.7, 0.7 + 1e-9, pi / 2, pi - 1e-7, pi]), min_size=1, max_size=6),
    st.integers(0, 2),
    st.integers(0, 10**6),
)
def test_any_spectrum(angles: list[float], rest: int, seed: int):
    x = basis(2 * len(angles) + rest, seed)
    matrix = x @ turning(angles, rest) @ x.T
    is_rotation(split(matrix), matrix)


def test_powers_act_in_coordinates():
    matrix = expm((lambda a: a - a.T)(np.random.default_rng(5).standard_normal((5, 5))))
    found = split(matrix)
    x = torch.tensor(np.random.default_rng(6).standard_normal((5, 3)))
    times = torch.tensor([0.0, 0.5, 1.0], dtype=torch.float64)
    turned = found.turned(found.basis.T @ x, times)
    for one, time in zip(turned, times.tolist(), strict=True):
        assert off(one, power(found, time) @ x.numpy()) < rounding(5)


def test_one_dimension_and_the_identity_have_no_planes():
    for size in (1, 4):
        found = split(np.eye(size))
        assert found.largest == 0
        assert off(power(found, 0.3), np.eye(size)) == 0


def test_many_couplings_all_at_once(monkeypatch):
    """With nothing negligible all is one block of the real Schur form, which must give the same powers."""
    matrix = np.eye(40)[np.random.default_rng(3).permutation(40)]
    matrix[0] *= np.linalg.det(matrix)
    usual = split(matrix)
    monkeypatch.setattr(module, "NEGLIGIBLE", 0.0)
    blocked = split(matrix)
    monkeypatch.undo()
    is_rotation(blocked, matrix)
    assert blocked.largest == pytest.approx(usual.largest, abs=rounding(40))
