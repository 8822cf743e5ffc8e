"""Pad, crop, mirror: every image against all the places it could have been cut from."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from obverse import BadInput
from obverse._core.random import Streams
from obverse.data._augment import PAD, pad_crop_flip


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture(params=["generator", "streams"])
def source(request: pytest.FixtureRequest) -> Callable[[int], torch.Generator | Streams]:
    """What makes the randomness for so many images."""
    return (lambda count: generator()) if request.param == "generator" else lambda n: Streams(torch.arange(n))


def places(image: np.ndarray, found: np.ndarray, pad: int) -> list[tuple[int, int, bool]]:
    """All (top, left, mirrored) that turn `image` into `found`, by trying them."""
    channels, height, width = image.shape
    padded = np.zeros((channels, height + 2 * pad, width + 2 * pad), image.dtype)
    padded[:, pad : pad + height, pad : pad + width] = image
    fits = []
    for top in range(2 * pad + 1):
        for left in range(2 * pad + 1):
            cut = padded[:, top : top + height, left : left + width]
            for mirrored in (False, True):
                if np.array_equal(cut[:, :, ::-1] if mirrored else cut, found):
                    fits.append((top, left, mirrored))
    return fits


@pytest.mark.parametrize(("shape", "pad"), [((3, 7, 5), PAD), ((1, 6, 6), 1), ((2, 4, 6), 0)])
def test_every_image_is_a_cut_of_its_own(shape, pad, source):
    x = torch.rand(40, *shape, generator=generator(1)) + 1  # nothing is 0 but the border
    before = x.clone()
    out = pad_crop_flip(x, source(len(x)), pad)
    assert out.shape == x.shape
    assert out.is_contiguous()
    assert torch.equal(x, before)
    found = [places(a, b, pad) for a, b in zip(x.numpy(), out.numpy(), strict=True)]
    assert all(len(fits) == 1 for fits in found)
    if pad:
        assert len({fits[0] for fits in found}) > 10
    else:
        assert {fits[0] for fits in found} == {(0, 0, False), (0, 0, True)}


def test_places_and_sides_are_equally_likely_and_independent(source):
    count, pad = 6000, 1
    image = torch.arange(1.0, 10).reshape(1, 1, 3, 3).expand(count, 1, 3, 3)
    out = pad_crop_flip(image, source(count), pad).numpy()
    counts: dict[tuple[int, int, bool], int] = {}
    for one in out:
        (place,) = places(image[0].numpy(), one, pad)
        counts[place] = counts.get(place, 0) + 1
    share = 1 / 18  # 3 × 3 places, 2 sides
    error = (share * (1 - share) / count) ** 0.5
    assert len(counts) == 18
    assert all(abs(n / count - share) < 5 * error for n in counts.values())  # five standard errors


def test_randomness_comes_from_the_generator_alone():
    x = torch.rand(20, 3, 8, 8, generator=generator(1))
    state = torch.random.get_rng_state()
    first, again, other = (pad_crop_flip(x, generator(seed)) for seed in (3, 3, 4))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(torch.random.get_rng_state(), state)


def test_with_streams_an_image_is_cut_the_same_in_any_batch():
    x, seeds = torch.rand(9, 2, 6, 5, generator=generator(1)), torch.arange(9)
    whole = pad_crop_flip(x, Streams(seeds))
    for rows in ([3], [8, 0], []):
        assert torch.equal(pad_crop_flip(x[rows], Streams(seeds[rows])), whole[rows])


def test_what_is_no_image_is_refused():
    with pytest.raises(BadInput, match=r"images, N × C × H × W; got a tensor of shape \(4, 5\)"):
        pad_crop_flip(torch.rand(4, 5), generator())
    with pytest.raises(BadInput, match="pad ≥ 0"):
        pad_crop_flip(torch.rand(4, 1, 2, 2), generator(), -1)
