"""Norm matching and smoothing against loops over rows and pixels."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from obverse._core.errors import BadInput
from obverse.shadow import match_norm, smooth
from obverse.shadow._adjust import unit_peak


def images(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def smooth_by_loop(x: torch.Tensor) -> torch.Tensor:
    """Mean over the 3×3 neighbours that exist, pixel by pixel (eq. 28)."""
    result = torch.zeros_like(x)
    count, channels, height, width = x.shape
    for n in range(count):
        for c in range(channels):
            for i in range(height):
                for j in range(width):
                    near = [
                        float(x[n, c, a, b])
                        for a in range(max(0, i - 1), min(height, i + 2))
                        for b in range(max(0, j - 1), min(width, j + 2))
                    ]
                    result[n, c, i, j] = sum(near) / len(near)
    return result


@given(height=st.integers(1, 5), width=st.integers(1, 5), channels=st.integers(1, 2))
def test_smooth_is_the_mean_of_the_neighbours_that_exist(height, width, channels):
    x = images(2, channels, height, width)
    torch.testing.assert_close(smooth(x), smooth_by_loop(x))


def test_smooth_leaves_a_constant_picture_alone_borders_included():
    x = torch.full((1, 1, 4, 5), 0.7, dtype=torch.float64)
    torch.testing.assert_close(smooth(x), x)


@pytest.mark.parametrize("shape", [(3, 16), (3, 4, 4)])
def test_smooth_refuses_what_is_no_batch_of_images(shape):
    with pytest.raises(BadInput, match=r"expected images of shape N×C×H×W .*got a tensor of shape .*; give"):
        smooth(images(*shape))


def test_match_norm_gives_each_row_its_originals_norm_and_keeps_its_direction():
    shadow, original = images(5, 1, 3, 3), images(5, 1, 3, 3, seed=1)
    matched = match_norm(shadow, original)
    assert matched.shape == shadow.shape
    for one, before, target in zip(matched, shadow, original, strict=True):
        assert one.norm().item() == pytest.approx(target.norm().item(), rel=1e-12)
        torch.testing.assert_close(one / one.norm(), before / before.norm())


def test_match_norm_leaves_a_zero_shadow_zero_and_sends_everything_to_a_zero_original():
    shadow, original = images(2, 4), images(2, 4, seed=1)
    shadow[0] = 0
    original[1] = 0
    assert torch.equal(match_norm(shadow, original), torch.zeros(2, 4, dtype=torch.float64))


@given(exponent=st.integers(-30, 30))
def test_unit_peak_brings_the_largest_entry_to_one(exponent):
    x = 10.0**exponent * (images(3, 2, 2) - 0.5)
    x[0] = 0
    scaled = x * unit_peak(x)
    assert scaled.flatten(1).abs().amax(1).tolist() == pytest.approx([0, 1, 1], rel=1e-12)
