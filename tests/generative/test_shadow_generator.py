"""The shadow as a generator against Shadow itself, row by row."""

import pytest
import torch

from obverse._core.errors import BadInput
from obverse.generative._shadow_generator import ShadowGenerator
from obverse.nets import relu_mlp
from obverse.shadow import Shadow


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def net() -> torch.nn.Module:
    return relu_mlp((1, 4, 4), (30, 20), 3, generator=seeded())


@pytest.fixture
def data() -> torch.Tensor:
    return torch.rand(6, 1, 4, 4, generator=seeded(1))


def test_each_sample_is_the_shadow_of_one_picture_of_the_data(net, data):
    found = ShadowGenerator(net, data).sample(3000, seeded(2))
    shadow = Shadow(net, input_shape=(1, 4, 4), signed=False)
    shadow.calibrate(data)
    assert shadow.default_layer == "h2"
    expected = shadow.of(data).clamp(0, 1)
    assert found.shape == (3000, 1, 4, 4)
    apart = torch.cdist(found.flatten(1).double(), expected.flatten(1).double())
    assert (
        float(apart.min(1).values.max()) < 1e-4
    )  # float32, in batches of another size; two images are 0.4 apart
    shares = apart.argmin(1).bincount(minlength=6) / 3000
    assert float((shares - 1 / 6).abs().max()) < 5 * (5 / 36 / 3000) ** 0.5  # binomial


def test_brightness_by_norm(net, data):
    found = ShadowGenerator(net, data, level="norm", layer="h1").sample(40, seeded(2))
    shadow = Shadow(net, input_shape=(1, 4, 4), signed=False)
    expected = shadow.of(data, "h1", match_norm=True)
    assert torch.allclose(expected.flatten(1).norm(dim=1), data.flatten(1).norm(dim=1))
    assert float(expected.max()) > 1  # so that the clamp is seen
    apart = torch.cdist(found.flatten(1).double(), expected.clamp(0, 1).flatten(1).double())
    assert float(apart.min(1).values.max()) < 1e-4


def test_without_masks_there_are_as_many_pictures_as_data_and_with_them_more(net, data):
    one = ShadowGenerator(net, data).sample(200, seeded(2))
    many = ShadowGenerator(net, data, keep=0.5).sample(200, seeded(2))
    assert len(one.flatten(1).mul(1e4).round().unique(dim=0)) <= 6
    assert len(many.flatten(1).mul(1e4).round().unique(dim=0)) > 100
    # By norm nothing is added to what is dropped: about half of the pixels are 0, and those of the ReLU.
    dropped = ShadowGenerator(net, data, keep=0.5, level="norm").sample(200, seeded(2))
    assert float((dropped == 0).double().mean()) > 0.45  # 3200 pixels: a standard error of 0.01


def test_samples_are_repeatable_and_nothing_else_changes(net, data):
    before, weights = torch.get_rng_state(), {k: v.clone() for k, v in net.state_dict().items()}
    source = ShadowGenerator(net, data, keep=0.7)
    first = source.sample(7, seeded(3))
    assert torch.equal(first, source.sample(7, seeded(3)))
    assert not torch.equal(first, source.sample(7, seeded(4)))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(net.state_dict()[name], value) for name, value in weights.items())
    assert source.input_shape == (1, 4, 4)
    assert source.layer == "h2"
    assert bool(((first >= 0) & (first <= 1)).all())
    assert source.sample(0, seeded()).shape == (0, 1, 4, 4)


def test_calibration_takes_pictures_from_all_of_the_data(net, monkeypatch):
    seen = []
    monkeypatch.setattr(Shadow, "calibrate", lambda self, x: seen.append(x))
    data = torch.linspace(0, 1, 2500).reshape(-1, 1, 1, 1).expand(-1, 1, 4, 4)
    ShadowGenerator(net, data)
    assert len(seen[0]) == 1000
    assert float(seen[0].max()) > 0.7


@pytest.mark.parametrize(
    "data",
    [
        torch.rand(1, 1, 4, 4),
        torch.rand(3),
        torch.full((3, 1, 4, 4), float("nan")),
        torch.full((3, 1, 4, 4), -1.0),
    ],
    ids=["one", "flat", "nan", "signed"],
)
def test_data_that_is_no_batch_of_pictures_is_refused(net, data):
    with pytest.raises(BadInput):
        ShadowGenerator(net, data)


def test_settings_that_make_no_sense_are_refused(net, data):
    for wrong in [{"keep": 0.0}, {"keep": 1.5}, {"level": "loud"}, {"layer": "h9"}]:
        with pytest.raises(BadInput):
            ShadowGenerator(net, data, **wrong)
