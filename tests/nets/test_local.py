"""The locally connected net against loops over windows, its geometry, its start, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from obverse import BadInput
from obverse.nets._local import LocalLevel, LocalNet, Windows, local

ROUNDING = 1e-12  # float64, sums of at most some hundred terms of size 1
PLANS = {
    "apart": ((2, 8, 8), ((2, 2), (2, 2)), (3, 4)),
    "overlapping": ((1, 7, 9), ((3, 2), (2, 1)), (2, 3)),
    "one level": ((3, 4, 6), ((2, 2),), (5,)),
    "pixels": ((1, 3, 3), ((1, 1), (3, 1)), (2, 2)),
}
SHARED = pytest.mark.parametrize("shared", [False, True], ids=["unshared", "shared"])
NORMS = pytest.mark.parametrize("norm", [None, "before", "after"])


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def made(plan: str, seed: int = 0, **settings: object) -> LocalNet:
    """A net of float64 with every number in it random: biases and norms too."""
    shape, windows, nodes = PLANS[plan]
    net = local(shape, 4, windows, nodes, generator=generator(seed), **settings).double()
    for parameter in net.parameters():
        nn.init.normal_(parameter, generator=generator(seed + 1))
    for buffer in net.buffers():
        if buffer.is_floating_point():
            buffer.uniform_(0.5, 2, generator=generator(seed + 2))
    return net.eval()


def images(plan: str, count: int = 5, seed: int = 3) -> Tensor:
    return torch.randn(count, *PLANS[plan][0], generator=generator(seed), dtype=torch.float64)


def normed(values: np.ndarray, norm: nn.BatchNorm1d, at: int) -> np.ndarray:
    mean, variance = norm.running_mean[at].item(), norm.running_var[at].item()
    scale, shift = norm.weight[at].item(), norm.bias[at].item()
    return (values - mean) / (variance + norm.eps) ** 0.5 * scale + shift


def by_loops(net: LocalNet, x: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """(raw, active) of every level, one window, node and weight after the other."""
    found = []
    for level in net.levels:
        at = level.windows
        raw = np.zeros((len(x), level.nodes, at.rows, at.columns))
        active = np.zeros_like(raw)
        for row in range(at.rows):
            for column in range(at.columns):
                copy = 0 if level.shared else row * at.columns + column
                for node in range(level.nodes):
                    total = np.zeros(len(x))
                    for channel in range(x.shape[1]):
                        for down in range(at.size):
                            for across in range(at.size):
                                weight = level.weight[copy, node, channel, down, across].item()
                                y, z = row * at.stride + down, column * at.stride + across
                                total += weight * x[:, channel, y, z]
                    if level.bias is not None:
                        total += level.bias[copy, node].item()
                    raw[:, node, row, column] = total
                    if level.order == "before":
                        total = normed(total, level.norm, copy * level.nodes + node)
                    out = np.maximum(total, 0)
                    if level.order == "after":
                        out = normed(out, level.norm, copy * level.nodes + node)
                    active[:, node, row, column] = out
        found.append((raw, active))
        x = active
    weight = net.output.weight.detach().numpy()
    scores = x.reshape(len(x), -1) @ weight.T
    if net.output.bias is not None:
        scores = scores + net.output.bias.detach().numpy()
    return [*found, (scores[:, :, None, None],) * 2]


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("bias", [True, False])
@NORMS
@SHARED
def test_every_level_is_what_loops_give(plan, shared, norm, bias):
    net, x = made(plan, shared=shared, norm=norm, bias=bias), images(plan)
    with torch.no_grad():
        seen = net.seen(x)
        expected = by_loops(net, x.numpy())
        assert len(seen) == len(expected) == len(PLANS[plan][1]) + 1
        for found, (raw, active) in zip(seen, expected, strict=True):
            np.testing.assert_allclose(found.raw.numpy(), raw, atol=100 * ROUNDING)
            np.testing.assert_allclose(found.active.numpy(), active, atol=100 * ROUNDING)
        np.testing.assert_array_equal(net(x).numpy(), seen[-1].active.numpy()[..., 0, 0])


@SHARED
def test_batch_statistics_are_of_a_node_or_of_a_whole_map(shared):
    net, x = made("overlapping", shared=shared, norm="before").train(), images("overlapping", 50)
    level = net.levels[0]
    level.norm.reset_parameters()
    raw = level.seen(x).raw
    inner = level._normed(raw)
    # with its own windows a node has mean 0 over the inputs, shared over inputs and windows
    means, spread = ((0, 2, 3), 1e-9) if shared else ((0,), 1e-9)
    assert inner.mean(means).abs().max() < spread
    torch.testing.assert_close(
        inner.var(means, correction=0), torch.ones(inner.mean(means).shape).double(), atol=1e-3, rtol=0
    )  # eps = 1e-5 over variances of at least 0.01
    if shared:
        assert inner.mean(0).abs().max() > 0.01, "a window alone is not centred"


def test_shared_weights_are_a_strided_convolution():
    net, x = made("overlapping", shared=True), images("overlapping")
    h = x
    for level in net.levels:
        h = F.conv2d(h, level.weight[0], level.bias[0], stride=level.windows.stride).relu()
    torch.testing.assert_close(net(x), net.output(h.flatten(1)), atol=ROUNDING, rtol=ROUNDING)


def test_equal_weights_everywhere_are_shared_weights():
    one, many = made("overlapping", shared=True), made("overlapping")
    for own, copied in zip(one.levels, many.levels, strict=True):
        copied.weight.data = own.weight.data.expand(copied.weight.shape).clone()
        copied.bias.data = own.bias.data.expand(copied.bias.shape).clone()
    many.output.load_state_dict(one.output.state_dict())
    x = images("overlapping")
    torch.testing.assert_close(one(x), many(x), atol=100 * ROUNDING, rtol=ROUNDING)


@pytest.mark.parametrize("plan", PLANS)
def test_a_window_depends_on_what_it_covers_and_on_nothing_else(plan):
    net, x = made(plan), images(plan, 1)
    for depth, level in enumerate(net.levels):
        below = x if depth == 0 else net.seen(x)[depth - 1].active.detach()
        for row in range(level.windows.rows):
            for column in range(level.windows.columns):
                own = below.clone().requires_grad_()
                level.seen(own).raw[:, :, row, column].sum().backward()
                reached = (own.grad != 0).any(0).any(0).nonzero().tolist()
                assert [tuple(one) for one in reached] == list(level.windows.covered(row, column))


def test_windows_of_a_plan():
    net = local((1, 28, 28), 10, ((4, 4), (3, 2)), (8, 16))
    assert [level.windows for level in net.levels] == [Windows(4, 4, 7, 7), Windows(3, 2, 3, 3)]
    assert net.levels[1].windows.covered(1, 2)[0] == (2, 4)
    assert len(net.levels[1].windows.covered(1, 2)) == 9
    assert net.output.in_features == 16 * 9
    assert sum(parameter.numel() for parameter in net.parameters()) == (
        49 * 8 * (16 + 1) + 9 * 16 * (8 * 9 + 1) + 10 * (144 + 1)
    )


def test_the_start_is_repeatable_he_and_leaves_the_global_generator_alone():
    before = torch.get_rng_state()
    first, again = (
        local((1, 28, 28), 10, ((4, 4), (3, 2)), (8, 16), generator=generator()) for _ in range(2)
    )
    assert torch.equal(torch.get_rng_state(), before)
    for one, other in zip(first.parameters(), again.parameters(), strict=True):
        assert torch.equal(one, other)
    for level in first.levels:
        count, fan_in = level.weight.numel(), level.weight[0, 0].numel()
        # mean square of N(0, 2/fan_in): relative standard error √(2/count), five of them
        assert abs(level.weight.square().mean().item() * fan_in / 2 - 1) < 5 * (2 / count) ** 0.5
        assert not level.bias.any()
    another = local((1, 28, 28), 10, ((4, 4), (3, 2)), (8, 16), generator=generator(1))
    assert not torch.equal(first.levels[0].weight, another.levels[0].weight)


def test_it_learns_and_survives_its_state_dict():
    net = local((1, 8, 8), 2, generator=generator(), norm="before")
    x = torch.randn(64, 1, 8, 8, generator=generator(1))
    y = (x[:, 0, :4].sum((1, 2)) > 0).long()
    optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
    losses = []
    for _ in range(30):
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
    copy = local((1, 8, 8), 2, norm="before")
    copy.load_state_dict(net.state_dict())
    assert torch.equal(copy.eval()(x), net.eval()(x))
    assert "windows of 2×2 every 2" in repr(net)


WRONG = [
    ({"input_shape": (8, 8)}, "images of shape"),
    ({"input_shape": (1, 8, 0)}, "images of shape"),
    ({"classes": 0}, "at least one class"),
    ({"nodes": (8, 0)}, "at least one class and one node"),
    ({"nodes": (8, 2.5)}, "at least one class and one node"),
    ({"nodes": (8,)}, "windows and a number of nodes"),
    ({"windows": (), "nodes": ()}, "at least one level"),
    ({"windows": ((2, 3), (2, 2))}, "a stride from 1 to it"),
    ({"windows": ((2, 0), (2, 2))}, "a stride from 1 to it"),
    ({"windows": ((3, 3), (2, 2))}, "cover all 8 × 8 pixels and no more; got size 3, stride 3"),
    ({"windows": ((2, 2), (3, 3))}, "cover all 4 × 4 windows of level 0"),
    ({"windows": ((9, 1), (2, 2))}, "cover all 8 × 8 pixels"),
    ({"norm": "between"}, "norm out of before, after"),
]


@pytest.mark.parametrize(("changed", "said"), WRONG, ids=[str(one) for one, _ in WRONG])
def test_what_cannot_be_built_is_refused(changed, said):
    settings = {"input_shape": (1, 8, 8), "classes": 10} | changed
    with pytest.raises(BadInput, match=said):
        local(**settings)


def test_inputs_of_another_shape_are_refused():
    net = local((1, 8, 8), 3)
    for shape in ((2, 1, 8, 9), (2, 8, 8), (8, 8)):
        with pytest.raises(BadInput, match=r"images of shape \(1, 8, 8\)"):
            net(torch.zeros(shape))


def test_a_level_alone():
    level = LocalLevel(1, 2, Windows(2, 2, 2, 2), bias=False, generator=generator())
    x = torch.randn(3, 1, 4, 4, generator=generator(1))
    assert torch.equal(level(x), level.seen(x).active)
    assert level.bias is None
