"""relu_mlp against a forward pass written out by hand."""

import pytest
import torch
from torch.nn import functional as F

from obverse._core.errors import BadInput
from obverse.nets import UniformBiasLinear, relu_mlp


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_forward_is_the_papers_net_and_the_layers_carry_its_names():
    net = relu_mlp((1, 2, 3), (5, 4), 3, generator=seeded())
    assert [name for name, _ in net.named_children()] == ["flatten", "h1", "relu1", "h2", "relu2", "h3"]
    x = torch.randn(7, 1, 2, 3, generator=seeded(1))
    h1 = (x.reshape(7, 6) @ net.h1.weight.T + net.h1.bias).clamp(min=0)
    h2 = (h1 @ net.h2.weight.T + net.h2.bias).clamp(min=0)
    expected = h2 @ net.h3.weight.T + net.h3.bias
    torch.testing.assert_close(net(x), expected)  # float32 rounding: the default of assert_close


def test_no_hidden_layer_is_a_linear_classifier():
    assert [name for name, _ in relu_mlp((4,), (), 2).named_children()] == ["flatten", "h1"]


def test_dropout_follows_each_hidden_relu():
    names = [name for name, _ in relu_mlp((4,), (5, 5), 2, dropout=0.5).named_children()]
    assert names == ["flatten", "h1", "relu1", "dropout1", "h2", "relu2", "dropout2", "h3"]


def test_generator_decides_the_weights_whatever_the_global_state():
    first = relu_mlp((4,), (5,), 2, generator=seeded(3)).state_dict()
    torch.rand(11)
    second = relu_mlp((4,), (5,), 2, generator=seeded(3)).state_dict()
    other = relu_mlp((4,), (5,), 2, generator=seeded(4)).state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not torch.equal(first["h1.weight"], other["h1.weight"])


@pytest.mark.parametrize("uniform_bias", [False, True])
def test_weights_start_gaussian_with_variance_two_over_fan_in_and_biases_at_zero(uniform_bias):
    net = relu_mlp((100,), (400,), 2, uniform_bias=uniform_bias, generator=seeded())
    weight = net.h1.weight.detach().double().flatten()
    variance, entries = 2 / 100, weight.numel()
    # Standard errors over N Gaussian entries: mean √(var/N), variance var·√(2/N), and Var g⁴ = 96.
    assert weight.mean().abs() < 5 * (variance / entries) ** 0.5
    assert (weight.var() - variance).abs() < 5 * variance * (2 / entries) ** 0.5
    assert ((weight**4).mean() / variance**2 - 3).abs() < 5 * (96 / entries) ** 0.5
    assert not net.h1.bias.any()
    assert not net.h2.bias.any()


def test_uniform_bias_is_one_constant_per_hidden_layer_and_stays_one_in_training():
    net = relu_mlp((3,), (6, 5), 2, uniform_bias=True, generator=seeded())
    assert isinstance(net.h1, UniformBiasLinear)
    assert isinstance(net.h2, UniformBiasLinear)
    assert [net.h1.bias.shape, net.h2.bias.shape, net.h3.bias.shape] == [(1,), (1,), (2,)]
    x, y = torch.randn(32, 3, generator=seeded(1)), torch.arange(32) % 2
    before = net.h1.bias.item()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    losses = []
    for _ in range(30):
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    assert net.h1.bias.item() != before
    # the same offset reaches every unit: at x = 0 all units of h1 agree
    at_zero = net.h1(torch.zeros(1, 3))
    assert torch.equal(at_zero, net.h1.bias.expand(1, 6))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            {"input_shape": (0,), "hidden": (3,), "classes": 2},
            "expected sizes of at least 1; got input_shape=",
        ),
        ({"input_shape": (-2, -2), "hidden": (3,), "classes": 2}, "expected sizes of at least 1"),
        ({"input_shape": (4,), "hidden": (3, 0), "classes": 2}, "expected sizes of at least 1"),
        ({"input_shape": (4,), "hidden": (3,), "classes": 0}, "expected sizes of at least 1"),
        (
            {"input_shape": (4,), "hidden": (3,), "classes": 2, "dropout": 1.0},
            r"dropout in \[0, 1\); got 1.0; use 0",
        ),
        ({"input_shape": (4,), "hidden": (3,), "classes": 2, "dropout": float("nan")}, "expected dropout"),
    ],
)
def test_bad_sizes_and_dropout_are_refused_with_a_sentence(arguments, sentence):
    with pytest.raises(BadInput, match=sentence):
        relu_mlp(**arguments)
