"""Paths between seeds: ends, middles, angles and lengths against plain loops; what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from obverse._core.errors import BadInput
from obverse.diversity._interpolation import between, check_alone, decode_all, path, strips


def seeds(count: int, latent: int = 6, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(count, latent, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def turned(a: np.ndarray, b: np.ndarray, t: float) -> np.ndarray:
    """Half way by half way: the great circle without a sine, for t = k/2^n."""
    if t in (0.0, 1.0):
        return a if t == 0 else b
    middle = a / np.linalg.norm(a) + b / np.linalg.norm(b)
    middle *= (np.linalg.norm(a) + np.linalg.norm(b)) / 2 / np.linalg.norm(middle)
    if t == 0.5:
        return middle
    return turned(a, middle, 2 * t) if t < 0.5 else turned(middle, b, 2 * t - 1)


@pytest.mark.parametrize("t", [0.0, 0.125, 0.25, 0.5, 0.875, 1.0])
def test_spherical_is_repeated_halving_of_the_angle(t):
    a, b = seeds(5), 2 * seeds(5, seed=1)
    found = between(a, b, t).numpy()
    for row, (one, other) in enumerate(zip(a.numpy(), b.numpy(), strict=True)):
        # both sides round a dozen float64 operations on numbers of order 10
        np.testing.assert_allclose(found[row], turned(one, other, t), atol=1e-13)


def test_linear_is_the_weighted_mean_with_a_share_for_each_row():
    a, b = seeds(3), seeds(3, seed=1)
    shares = torch.tensor([0.0, 0.3, 1.0], dtype=torch.float64)
    found = between(a, b, shares, "linear")
    for row, t in enumerate(shares.tolist()):
        expected = [(1 - t) * x + t * y for x, y in zip(a[row].tolist(), b[row].tolist(), strict=True)]
        assert found[row].tolist() == pytest.approx(expected, abs=1e-15)


def test_spherical_keeps_the_length_where_linear_cuts_the_corner():
    a = nn.functional.normalize(seeds(40, 200))
    b = nn.functional.normalize(seeds(40, 200, seed=1))
    assert between(a, b, 0.5).norm(dim=1).tolist() == pytest.approx([1.0] * 40, abs=1e-12)
    # orthogonal up to 1/√200: the middle of the chord has length about √½
    assert float(between(a, b, 0.5, "linear").norm(dim=1).max()) < 0.8


def test_seeds_in_one_direction_go_straight():
    a = seeds(4, dtype=torch.float32)
    b = a * 3
    assert torch.allclose(between(a, b, 0.5), 2 * a, rtol=1e-5)  # float32
    b = a + 1e-6
    assert torch.isfinite(between(a, b, 0.25)).all()
    assert torch.allclose(between(a, b, 0.25), a, atol=1e-5)


def test_path_has_both_ends_and_even_angles():
    a, b = seeds(3), seeds(3, seed=1)
    found = path(a, b, 5)
    assert found.shape == (3, 5, 6)
    assert torch.allclose(found[:, 0], a)
    assert torch.allclose(found[:, -1], b)
    unit = nn.functional.normalize(found, dim=2)
    angles = torch.arccos((unit[:, 1:] * unit[:, :-1]).sum(2))
    for row in angles.tolist():
        assert row == pytest.approx([row[0]] * 4, rel=1e-9)  # arccos loses half the digits at worst


def test_strips_are_the_pictures_of_the_path():
    weight = seeds(12, 6)

    def decode(z: Tensor) -> Tensor:
        return (z @ weight.T).reshape(-1, 1, 3, 4)

    a, b = seeds(2), seeds(2, seed=1)
    for kind in ("linear", "spherical"):
        found = strips(decode, a, b, 4, kind=kind, batch_size=3)  # blocks that do not fit
        assert found.shape == (2, 4, 1, 3, 4)
        for pair in range(2):
            for step in range(4):
                seed = between(a[pair : pair + 1], b[pair : pair + 1], step / 3, kind)
                assert torch.allclose(found[pair, step], decode(seed)[0])


def test_no_gradient_is_kept():
    net = nn.Linear(6, 4)
    assert not decode_all(net, seeds(3, dtype=torch.float32)).requires_grad


def test_a_generator_left_in_training_is_refused():
    net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8))
    some = seeds(4, dtype=torch.float32)
    with pytest.raises(BadInput, match=r"call \.eval"):
        check_alone(net, some)
    check_alone(net.eval(), some)
    with pytest.raises(BadInput, match="draw nothing at random"):
        check_alone(nn.Dropout(), some)


def test_a_picture_that_depends_on_its_neighbours_is_refused():
    with pytest.raises(BadInput, match="whatever stands beside it"):
        check_alone(lambda z: z - z.mean(0) + 1, seeds(4))


A, B = seeds(2), seeds(2, seed=1)
WRONG = [
    (lambda: between(A, B[:1], 0.5), "as many ends as starts"),
    (lambda: between(A, B, 0.5, "round"), "linear, spherical"),
    (lambda: between(A, torch.zeros_like(A), 0.5), "not 0"),
    (lambda: between(A, -A, 0.5), "not opposite"),
    (lambda: between(A[0], B[0], 0.5), "float matrix"),
    (lambda: between(A.long(), B.long(), 0.5), "float matrix"),
    (lambda: between(A * math.nan, B, 0.5), "finite seeds"),
    (lambda: path(A, B, 1), "at least 2 steps"),
    (lambda: decode_all(lambda z: z[:1], A), "one for each seed"),
    (lambda: decode_all(lambda z: 3, A), "one for each seed"),  # type: ignore[arg-type, return-value]
    (lambda: decode_all(lambda z: z * math.inf, A), "finite pictures"),
]


@pytest.mark.parametrize(("call", "said"), WRONG, ids=[said for _, said in WRONG])
def test_wrong_input_is_refused(call, said):
    with pytest.raises(BadInput, match=said):
        call()
