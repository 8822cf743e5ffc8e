"""The controls: noise of the same norm, and a net with the same entries in other places."""

from math import sqrt

import pytest
import torch

from obverse._core.random import Streams
from obverse.nets import relu_mlp
from obverse.shadow._controls import Shuffled, noisy


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("source", [seeded(1), Streams(torch.arange(50))])
def test_noise_is_gaussian_before_the_norm_is_matched(source):
    x = torch.rand(50, 1, 20, 20, generator=seeded(), dtype=torch.float64)
    twin = noisy(x, std=0.5, generator=source)
    torch.testing.assert_close(twin.flatten(1).norm(dim=1), x.flatten(1).norm(dim=1))
    # Undo the rescaling by least squares on x: twin = c(x + noise), so c = <twin, x>/‖x‖² up to the noise.
    c = (twin * x).sum((1, 2, 3), keepdim=True) / x.square().sum((1, 2, 3), keepdim=True)
    noise = (twin / c - x).flatten()
    # c itself is off by a factor 1 ± 0.5/‖x‖ (‖x‖ ≈ 11.5): 4.3% a row, so the mean over 50 rows by 0.6%
    relative_error = 0.5 / sqrt(400 / 3) / sqrt(50) + 1 / sqrt(2 * noise.numel())
    assert noise.std().item() == pytest.approx(0.5, rel=5 * relative_error)


def test_noise_leaves_its_input_alone_and_follows_the_generator():
    x = torch.rand(3, 4)
    before = x.clone()
    assert torch.equal(noisy(x, generator=seeded(2)), noisy(x, generator=seeded(2)))
    assert not torch.equal(noisy(x, generator=seeded(2)), noisy(x, generator=seeded(3)))
    assert torch.equal(x, before)


def test_shuffled_has_the_same_entries_elsewhere_and_the_same_biases():
    net = relu_mlp((6,), (20, 15), 4, generator=seeded())
    torch.nn.init.normal_(net.h1.bias)
    copy = Shuffled(net).refresh()
    for name, original in net.named_parameters():
        entries = copy.get_parameter(name)
        assert not entries.requires_grad
        if original.dim() > 1:
            assert torch.equal(entries.flatten().sort().values, original.detach().flatten().sort().values)
            assert (entries == original).float().mean() < 0.5
        else:
            assert torch.equal(entries, original)


def test_shuffled_follows_the_training_with_one_fixed_permutation():
    net = relu_mlp((6,), (20,), 4, generator=seeded())
    shuffled = Shuffled(net)
    first = shuffled.refresh().h1.weight.clone()
    with torch.no_grad():
        net.h1.weight.mul_(2)
    assert torch.equal(shuffled.refresh().h1.weight, 2 * first)
    assert net.h1.weight.requires_grad
