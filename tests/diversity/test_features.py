"""Features: pixels, any module, and an encoder trained on the spot."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from obverse._core.errors import BadInput
from obverse.data import load
from obverse.diversity._features import Features, of_module, pixels, train_encoder


@pytest.fixture(scope="module")
def digits():
    return load("digits")


def test_pixels_are_the_images_flattened():
    images = torch.rand(5, 2, 3, 4)
    seen = []
    found = pixels()(images, lambda done, total, what: seen.append((done, total)))
    assert seen == [(1, 1)]
    assert torch.equal(found, images.flatten(1))
    assert found.dtype == torch.float32
    assert pixels().name == "pixels"
    assert found.data_ptr() == images.data_ptr()  # no copy: pictures take much memory


def test_bytes_are_grey_levels():
    images = torch.tensor([[0], [255]], dtype=torch.uint8)
    assert pixels()(images).flatten().tolist() == [0.0, 1.0]


def test_a_module_runs_in_batches_in_eval_mode_and_keeps_its_modes():
    net = nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.Dropout(0.5))
    net[1].eval()  # a frozen part
    before = {name: value.clone() for name, value in net.state_dict().items()}
    images = torch.rand(10, 1, 6, 6)
    seen = []
    found = of_module(net, batch_size=4)(images, lambda done, total, what: seen.append((done, total)))
    assert [part.training for part in net] == [True, False, True]
    assert net.training
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    net.eval()
    with torch.no_grad():
        wanted = net(images).flatten(1)
    # float32: batches of another size may sum in another order
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-6)
    assert seen == [(1, 3), (2, 3), (3, 3)]
    assert not found.requires_grad


def test_the_mode_is_restored_after_an_error():
    net = nn.Linear(3, 2)
    with pytest.raises(BadInput, match="images that Linear takes"):
        of_module(net)(torch.rand(4, 5))
    assert net.training


def test_a_module_in_float64_and_one_number_an_image():
    class Mean(nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = nn.Parameter(torch.tensor(2.0, dtype=torch.float64))

        def forward(self, x):
            assert x.dtype == torch.float64
            return self.factor * x.flatten(1).mean(1)

    images = torch.rand(5, 3)
    found = of_module(Mean(), name="mean")(images)
    torch.testing.assert_close(found, 2 * images.mean(1, keepdim=True))
    assert found.dtype == torch.float32


class Returns(nn.Module):
    def __init__(self, make):
        super().__init__()
        self.make = make

    def forward(self, x):
        return self.make(x)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda x: x / 0, "finite features"),
        (lambda x: (x, x), "a tensor with a row for each"),
        (lambda x: x[:1], "a tensor with a row for each"),
        (lambda x: x.mean(), "a tensor with a row for each"),
        (lambda x: x.to(torch.complex64), "real features"),
        (lambda x: x[:, :0], "real features"),
        (lambda x: x[:, : len(x)], "as many features for each image"),
    ],
)
def test_what_a_net_must_not_return(make, sentence):
    with pytest.raises(BadInput, match=sentence):
        of_module(Returns(make), batch_size=3)(torch.rand(5, 4))


@pytest.mark.parametrize(
    "images", [torch.rand(0, 3), torch.tensor(1.0), [[1.0]], torch.tensor([[torch.nan]])]
)
def test_what_images_must_not_be(images):
    with pytest.raises(BadInput):
        pixels()(images)


def test_no_module_no_batch():
    with pytest.raises(BadInput, match="an nn"):
        of_module(lambda x: x)
    with pytest.raises(BadInput, match="batches"):
        of_module(nn.Flatten(), batch_size=0)


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 9, 41), (12,), (2, 5)])
def test_the_encoder_is_standardized_settled_by_its_generator_and_leaves_the_global_state(shape):
    images = 3 + 10 * torch.rand(300, *shape, generator=torch.Generator().manual_seed(0))
    state = torch.get_rng_state()
    found = [
        train_encoder(images, width=6, steps=5, generator=torch.Generator().manual_seed(seed))(images)
        for seed in (1, 1, 2)
    ]
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(found[0], found[1])
    assert not torch.allclose(found[0], found[2])
    assert found[0].shape == (300, 6)
    # all images were seen when the features were standardized: what is left is rounding of float32
    torch.testing.assert_close(found[0].double().mean(0), torch.zeros(6).double(), rtol=0, atol=1e-5)
    torch.testing.assert_close(found[0].double().std(0), torch.ones(6).double(), rtol=1e-5, atol=0)


def test_the_encoder_does_not_care_about_scale_and_shift():
    images = torch.rand(200, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    # powers of two, so that float32 has the same digits; 1e-3: rounding, through five steps
    one, other = (
        train_encoder(x, width=4, steps=5, generator=torch.Generator().manual_seed(0))(x)
        for x in (images, 256 * images)
    )
    torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3)


@pytest.mark.slow  # trains an encoder
def test_training_the_encoder_helps(digits):
    """Nearest neighbours in its features have the same label more often than before it was trained."""

    def right(steps):
        features = train_encoder(digits.train_x, width=16, steps=steps)
        one, other = features(digits.train_x), features(digits.test_x)
        guess = digits.train_y[torch.cdist(other, one).argmin(1)]
        return int((guess == digits.test_y).sum())

    before, after = right(1), right(300)
    # of 500; the standard error of their difference is below √(2·500·0.1·0.9) = 9.5
    assert after >= 450
    assert after > before + 20


def test_steps_are_told():
    seen = []
    train_encoder(torch.rand(20, 4), steps=3, progress=lambda done, total, what: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize(
    ("images", "settings"),
    [
        (torch.ones(10, 4), {}),
        (torch.rand(1, 4), {}),
        (torch.full((10, 4), torch.nan), {}),
        (torch.rand(10, 4), {"width": 0}),
        (torch.rand(10, 4), {"steps": 1.5}),
        (torch.rand(10, 4), {"batch_size": -1}),
        (torch.rand(10, 4), {"noise": -0.1}),
        (torch.rand(10, 4), {"noise": torch.nan}),
    ],
)
def test_what_an_encoder_can_not_be_trained_on(images, settings):
    with pytest.raises(BadInput):
        train_encoder(images, **settings)


def test_a_feature_map_of_ones_own():
    assert Features("twice", lambda x: 2 * x)(torch.ones(2, 3)).tolist() == [[2.0] * 3] * 2
