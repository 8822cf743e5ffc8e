"""The all-convolutional residual net: counted, its start measured, its blocks against loops over pixels."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from obverse import BadInput, Shadow
from obverse.nets._allconv import (
    IMAGENET,
    Centre,
    FixedProjection,
    IdentityBlock,
    allconv_residual,
    plain_shortcut,
)

ROUNDING = 1e-12  # float64, sums of at most some hundred terms of size 1


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def small(seed: int = 0, **settings: object) -> nn.Sequential:
    return allconv_residual(
        5, (3, 8, 8), (4, 6), 2, **({"stem": (3, 3, 1)} | settings), generator=generator(seed)
    )


def convolutions(net: nn.Module) -> dict[str, nn.Conv2d]:
    return {name: module for name, module in net.named_modules() if isinstance(module, nn.Conv2d)}


def parameters(net: nn.Module) -> int:
    return sum(parameter.numel() for parameter in net.parameters())


# What is in it


def test_the_net_for_cifar_has_13_538_736_parameters_in_55_convolutions():
    net = allconv_residual(10)
    assert parameters(net) == 13_538_736
    assert len(convolutions(net)) == 55
    by_hand, channels = 9 * 3 * 16, 16
    for width in (64, 128, 256):
        by_hand += 9 * channels * width + 17 * 9 * width * width
        channels = width
    assert by_hand == 13_538_736


def test_it_holds_nothing_but_convolutions_and_relus():
    net = allconv_residual(10)
    leaves = [module for module in net.modules() if not list(module.children())]
    kinds = {type(leaf) for leaf in leaves} - {nn.Identity}  # where batch norm would stand
    assert kinds == {nn.Conv2d, nn.ReLU, nn.AdaptiveAvgPool2d, nn.Flatten, FixedProjection}
    assert sum(isinstance(leaf, nn.ReLU) for leaf in leaves) == 27
    assert all(layer.bias is None for layer in convolutions(net).values())
    assert all(name.endswith("weight") and p.dim() == 4 for name, p in net.named_parameters())


def test_stages_halve_the_image_by_the_first_convolution_of_their_first_block():
    net = allconv_residual(10, blocks=2)
    strides = {name: layer.stride for name, layer in convolutions(net).items() if layer.stride != (1, 1)}
    assert strides == {"stage2.0.conv1": (2, 2), "stage3.0.conv1": (2, 2)}
    shapes = {}
    for name in ("stem", "stage1", "stage2", "stage3", "pool", "output"):
        getattr(net, name).register_forward_hook(
            lambda module, args, out, name=name: shapes.update({name: tuple(out.shape[1:])})
        )
    net(torch.rand(2, 3, 32, 32))
    assert shapes == {
        "stem": (16, 32, 32),
        "stage1": (64, 32, 32),
        "stage2": (128, 16, 16),
        "stage3": (256, 8, 8),
        "pool": (256, 1, 1),
        "output": (10,),
    }


def test_the_projection_is_fixed_and_saved():
    net = small()
    assert "output.weight" in net.state_dict()
    assert "output.weight" not in dict(net.named_parameters())
    before = net.output.weight.clone()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    F.cross_entropy(net(torch.rand(4, 3, 8, 8)), torch.arange(4)).backward()
    optimizer.step()
    assert torch.equal(net.output.weight, before)
    other = small(seed=1)
    assert not torch.equal(other.output.weight, before)
    other.load_state_dict(net.state_dict())
    x = torch.rand(4, 3, 8, 8)
    assert torch.equal(other(x), net(x))


def test_a_generator_makes_it_repeatable():
    first, again, other = small(), small(), small(seed=1)
    for name, tensor in first.state_dict().items():
        assert torch.equal(tensor, again.state_dict()[name])
        assert not torch.equal(tensor, other.state_dict()[name])


# How it starts


def check_normal(weights: torch.Tensor, std: float) -> None:
    """Mean and standard deviation within five standard errors: σ/√n and, for a normal law, σ/√(2n)."""
    values, n = weights.detach().double().flatten(), weights.numel()
    assert abs(float(values.mean())) < 5 * std / math.sqrt(n)
    assert abs(float(values.square().mean().sqrt()) / std - 1) < 5 / math.sqrt(2 * n)


def test_the_start_is_the_papers():
    net = allconv_residual(10, generator=generator())
    for name, layer in convolutions(net).items():
        c = layer.out_channels
        check_normal(layer.weight, 1 / (3 * math.sqrt(c)) if name == "stem" else 1 / (9 * c))
    check_normal(net.output.weight, 1 / 16)
    values = (net.stage3[5].conv2.weight * 9 * 256).flatten().double().detach()
    # Of a normal law: four in a hundred beyond two standard deviations, a fourth moment of 3 (variance 96/n).
    assert float(values.pow(4).mean()) == pytest.approx(3, abs=5 * math.sqrt(96 / len(values)))


def test_the_other_start_keeps_the_size_of_what_passes():
    net = allconv_residual(10, widths=(16, 32), blocks=2, init="he", generator=generator())
    for name, layer in convolutions(net).items():
        gain = 2 if name.endswith("conv2") else 1
        check_normal(layer.weight, math.sqrt(gain / (9 * layer.in_channels)))


def test_without_shortcuts_the_papers_start_loses_the_signal_and_the_other_does_not():
    x = torch.randn(8, 3, 32, 32, generator=generator(1))
    sizes = {}
    for init in ("identity", "he"):
        net = allconv_residual(
            10,
            widths=(32, 32, 32),
            blocks=3,
            shortcut=False,
            init=init,
            stem=(32, 3, 1),
            generator=generator(),
        )
        with torch.no_grad():
            stem = net.stem(x)
            out = net.stage3(net.stage2(net.stage1(stem)))
        sizes[init] = float((out.square().mean() / stem.square().mean()).sqrt())
    # A convolution of the paper's start multiplies the size by √(9c)/9c = 1/17 at c = 32: 17^-18 = 7e-23.
    assert sizes["identity"] < 1e-20
    # Only taps that hang over the edge are lost, 1 − (1 − 1/12)² = 0.16 of the square on maps of 8 × 8:
    # 0.84^(18/2) = 0.2 at least in the mean; the rest is for one draw of 32 channels.
    assert 0.05 < sizes["he"] < 5


def test_blocks_of_zeros_are_the_identity():
    net = small()
    for name, layer in convolutions(net).items():
        if name != "stem":
            nn.init.zeros_(layer.weight)
    x = torch.rand(3, 3, 8, 8)
    features = net.stem(x).mean((2, 3))  # means of means of equal windows
    expected = F.pad(features, (0, 3)) @ net.output.weight.T
    torch.testing.assert_close(net(x), expected, rtol=1e-5, atol=1e-6)  # float32, sums of 64 and 6 terms


# The block, by hand


def conv_by_hand(x: np.ndarray, weight: np.ndarray, stride: int = 1) -> np.ndarray:
    """Cross-correlation with a border of zeros, pixel by pixel."""
    count, channels, height, width = x.shape
    filters, _, kernel, _ = weight.shape
    edge = kernel // 2
    rows, columns = range(0, height, stride), range(0, width, stride)
    out = np.zeros((count, filters, len(rows), len(columns)))
    for n, f, (a, i), (b, j) in (
        (n, f, row, column)
        for n in range(count)
        for f in range(filters)
        for row in enumerate(rows)
        for column in enumerate(columns)
    ):
        for c in range(channels):
            for di in range(-edge, edge + 1):
                for dj in range(-edge, edge + 1):
                    if 0 <= i + di < height and 0 <= j + dj < width:
                        out[n, f, a, b] += weight[f, c, di + edge, dj + edge] * x[n, c, i + di, j + dj]
    return out


def shortcut_by_hand(x: np.ndarray, filters: int, stride: int) -> np.ndarray:
    count, channels, height, width = x.shape
    rows, columns = range(0, height, stride), range(0, width, stride)
    out = np.zeros((count, filters, len(rows), len(columns)))
    for a, i in enumerate(rows):
        for b, j in enumerate(columns):
            out[:, :channels, a, b] = x[:, :, i : i + stride, j : j + stride].mean((2, 3))
    return out


def batch_norm_by_hand(x: np.ndarray) -> np.ndarray:
    mean, variance = x.mean((0, 2, 3), keepdims=True), x.var((0, 2, 3), keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5)


def block_by_hand(
    x: np.ndarray, block: IdentityBlock, stride: int, norm: bool = False, shortcut: bool = True
) -> np.ndarray:
    after = batch_norm_by_hand if norm else lambda values: values
    first, second = (layer.weight.detach().numpy() for layer in (block.conv1, block.conv2))
    inner = np.maximum(after(conv_by_hand(x, first, stride)), 0)
    result = after(conv_by_hand(inner, second))
    return result + shortcut_by_hand(x, len(second), stride) if shortcut else result


@pytest.mark.parametrize("size", [(6, 4), (5, 7)], ids=["even", "odd"])
@pytest.mark.parametrize(("channels", "filters", "stride"), [(3, 3, 1), (2, 3, 1), (2, 3, 2), (3, 3, 2)])
@pytest.mark.parametrize("change", [{}, {"norm": True}, {"shortcut": False}])
def test_a_block_is_what_the_loops_say(size, channels, filters, stride, change):
    block = IdentityBlock(channels, filters, stride, **change).double()
    for layer in convolutions(block).values():
        nn.init.normal_(layer.weight, std=0.3, generator=generator())
    x = torch.randn(2, channels, *size, dtype=torch.float64, generator=generator(1))
    expected = block_by_hand(x.numpy(), block, stride, **change)
    assert (expected < 0).any()  # no ReLU after the sum
    np.testing.assert_allclose(block(x).detach().numpy(), expected, rtol=0, atol=ROUNDING)


def test_the_shortcut_has_zeros_in_its_new_channels():
    x = torch.randn(2, 3, 4, 4, generator=generator())
    short = plain_shortcut(x, 2, 2)
    assert short.shape == (2, 5, 2, 2)
    assert not short[:, 3:].any()
    torch.testing.assert_close(short[:, :3, 0, 0], x[:, :, :2, :2].mean((2, 3)))
    assert plain_shortcut(x, 0, 1) is x


@pytest.mark.parametrize("change", [{}, {"norm": True}, {"shortcut": False}, {"mean": (0.5, 0.4, 0.3)}])
def test_the_net_is_its_parts_in_a_row(change):
    net = small(stem=(3, 3, 2), **change).double()
    x = torch.rand(3, 3, 8, 8, dtype=torch.float64, generator=generator(1))
    h = x.numpy()
    if "mean" in change:
        h = h - np.array(change["mean"], dtype=np.float32).reshape(1, 3, 1, 1)
    h = conv_by_hand(h, net.stem.weight.detach().numpy(), 2)
    if "norm" in change:
        h = batch_norm_by_hand(h)
    how = {key: change[key] for key in ("norm", "shortcut") if key in change}
    for stage, stride in ((net.stage1, 1), (net.stage2, 2)):
        for place, block in enumerate(stage):
            h = block_by_hand(h, block, stride if place == 0 else 1, **how)
    expected = h.mean((2, 3)) @ net.output.weight.numpy().T
    # Batch norm divides by small deviations four times in a row, which magnifies rounding.
    np.testing.assert_allclose(net(x).detach().numpy(), expected, rtol=0, atol=1e3 * ROUNDING)


def test_batch_norm_stands_behind_every_convolution():
    net, plain = (
        allconv_residual(10, widths=(8, 8), blocks=2, stem=(4, 3, 1), norm=norm) for norm in (True, False)
    )
    norms = [module.num_features for module in net.modules() if isinstance(module, nn.BatchNorm2d)]
    assert norms == [layer.out_channels for layer in convolutions(net).values()]
    assert parameters(net) == parameters(plain) + 2 * sum(norms)
    assert parameters(allconv_residual(10, norm=True)) == 13_538_736 + 2 * (16 + 18 * (64 + 128 + 256))


def test_centring_is_saved_and_not_trained():
    net = small(mean=(0.1, 0.2, 0.3))
    assert isinstance(net[0], Centre)
    assert [name for name in net.state_dict() if name not in dict(net.named_parameters())] == [
        "centre.mean",
        "output.weight",
    ]


# Other instruments


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("shortcut", [False, True])
def test_a_shadow_reads_it_as_it_is(norm, shortcut):
    net = small(norm=norm, shortcut=shortcut, mean=(0.1, 0.2, 0.3)).eval()
    shadow = Shadow(net, input_shape=(3, 8, 8))
    blocks = [f"stage{stage}.{block}" for stage in (1, 2) for block in (0, 1)]
    inner = [[f"{block}.conv1", f"{block}.conv2", *([block] if shortcut else [])] for block in blocks]
    assert list(shadow.layers) == ["stem", *(name for names in inner for name in names), "output"]
    x = torch.rand(2, 3, 8, 8)
    assert shadow.of(x).shape == x.shape
    torch.testing.assert_close(shadow.infer(x, "output"), net(x))


@pytest.mark.slow
def test_the_configuration_for_large_images_builds_and_takes_a_step():
    net = allconv_residual(**IMAGENET, generator=generator())
    assert len(convolutions(net)) == 25
    before = net.stem.weight.detach().clone()
    x = torch.rand(2, *IMAGENET["input_shape"], generator=generator(1))
    optimizer = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9, weight_decay=1e-4)
    loss = F.cross_entropy(net(x), torch.tensor([3, 999]))
    loss.backward()
    optimizer.step()
    assert float(loss.detach()) == pytest.approx(math.log(1000), rel=0.05)  # it starts near guessing
    assert not torch.equal(net.stem.weight, before)
    assert all(bool(torch.isfinite(p.grad).all()) for p in net.parameters())


# What is refused


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"input_shape": (28, 28)}, "channels × height × width"),
        ({"input_shape": (3, 0, 8)}, "channels × height × width"),
        ({"widths": ()}, "at least one class, block and width"),
        ({"widths": (32, 16)}, "widths that do not shrink"),
        ({"widths": (8, 16)}, "do not shrink from the stem on"),
        ({"blocks": 0}, "at least one class, block and width"),
        ({"classes": 0}, "at least one class, block and width"),
        ({"stem": (16, 3)}, "a stem of channels, odd kernel and stride"),
        ({"stem": (16, 2, 1)}, "a stem of channels, odd kernel and stride"),
        ({"stem": (16, 3, 0)}, "a stem of channels, odd kernel and stride"),
        ({"init": "zero"}, "init out of identity, he"),
        ({"mean": (0.5,)}, "a finite mean for each of 3 channels"),
        ({"mean": (0.5, float("nan"), 0.5)}, "a finite mean for each of 3 channels"),
    ],
)
def test_what_makes_no_net_is_refused(wrong, said):
    with pytest.raises(BadInput, match=said):
        allconv_residual(**({"classes": 10} | wrong))
