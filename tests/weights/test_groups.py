"""Convolutions in groups: each group is a matrix of its own, and groups too small to judge are said to be."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from obverse import audit
from obverse.weights import ablate, weights_of


@pytest.mark.parametrize("make", [nn.Conv2d, nn.ConvTranspose2d])
def test_each_group_is_the_map_from_its_own_channels(make) -> None:
    layer = make(96, 64, (2, 3), groups=2).double()
    x = torch.randn(1, 96, 1, 1, dtype=torch.double)
    if make is nn.Conv2d:
        x = torch.randn(1, 96, 2, 3, dtype=torch.double)
    whole = layer(x)[0].flatten(1)
    for index, weight in enumerate(weights_of(layer)):
        assert weight.name == f"weight (group {index + 1} of 2)"
        assert (weight.rows, weight.columns) == (32, 48 * 6)
        own = x[0, 48 * index : 48 * (index + 1)]  # the channels that this group reads
        matrix, bias = weight.load().double(), weight.load_bias()
        assert bias is not None
        if make is nn.Conv2d:
            expected = (matrix @ own.flatten())[:, None]
        else:  # one pixel in, a patch of 2 × 3 out
            expected = torch.einsum("oip,i->op", matrix.reshape(32, 48, 6), own.flatten())
        found = whole[32 * index : 32 * (index + 1)] - bias.double()[:, None]
        # 288 products of float32 weights of size 0.06 with normal numbers
        assert torch.allclose(found, expected, atol=1e-5)


def test_a_signal_is_found_in_the_group_that_has_it() -> None:
    generator = torch.Generator().manual_seed(3)
    layer = nn.Conv2d(64, 128, 3, groups=2)
    with torch.no_grad():
        layer.weight.normal_(generator=generator)
        u, v = (torch.randn(side, generator=generator) for side in (64, 288))
        # four times the threshold √(64·288) of a direction in noise of scale 1, to the power ¼ each side
        strength = 4 * (64 * 288) ** 0.25
        layer.weight[64:] += (strength * torch.outer(u / u.norm(), v / v.norm())).reshape(64, 32, 3, 3)
    data = torch.randn(20, 64, 6, 6, generator=generator)
    found = audit(layer, data=data, samples=8)
    assert [one.parts.rank for one in found.layers if one.parts] == [0, 1]
    assert [one.verdict for one in found.layers] == ["untouched", "signal in a random bulk"]
    for index, one in enumerate(found.layers):
        (own,) = (each for each in one.reversal if each.source == "data")
        with torch.no_grad():
            h = layer(data)[:, 64 * index : 64 * (index + 1)].relu()
        mean = float((h > 0).double().sum(1).mean())
        assert own.sparsity == pytest.approx(mean, abs=6 * 4 / 8**0.5)  # 8 draws of 64 units: std 4 each


def test_small_groups_are_not_judged_as_if_they_were_one_matrix() -> None:
    (depthwise,) = audit(nn.Conv2d(64, 64, 7, groups=64)).layers
    assert depthwise.verdict == "not judged"
    assert depthwise.sentence == (
        "not judged: a convolution of 64 kernels of 49 values, each reading channels of its own: "
        "too small to judge one by one, and not one matrix together"
    )
    (small,) = audit(nn.Conv2d(128, 256, 3, groups=32)).layers
    assert "32 groups of 8 × 36" in small.sentence
    assert small.parts is None


def test_a_state_dict_does_not_know_groups() -> None:
    found = audit(nn.Conv2d(128, 128, 3, groups=2).state_dict(), samples=4)
    assert [(one.name, one.rows, one.columns) for one in found.layers] == [("weight", 128, 576)]


def test_ablation_treats_each_group_and_leaves_small_ones() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv1d(64, 64, 1, groups=64), nn.Conv1d(64, 64, 3, groups=2), nn.Flatten())
    own = {name: one.clone() for name, one in net.state_dict().items()}
    found = ablate(net, torch.randn(8, 64, 3), treatments=("signal removed", "signal only"), curve=False)
    assert [one.name for one in found.layers] == ["0", "1 (group 1 of 2)", "1 (group 2 of 2)"]
    assert [bool(one.effects) for one in found.layers] == [False, True, True]
    assert "64 kernels of 1 value" in found.layers[0].sentence
    assert all(torch.equal(one, own[name]) for name, one in net.state_dict().items())
