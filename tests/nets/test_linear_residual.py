"""LinearResidual against products written out by hand."""

from math import sqrt

import pytest
import torch

from obverse._core.errors import BadInput
from obverse.nets._residual import LinearResidual


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_forward_multiplies_by_the_layers_in_their_order():
    net = LinearResidual(2, 3, scale=0.5, generator=seeded()).double()
    first, second, third = net.weights.detach()
    identity = torch.eye(2).double()
    product = (identity + third) @ (identity + second) @ (identity + first)
    x = torch.randn(4, 5, 2, generator=seeded(1)).double()
    torch.testing.assert_close(net(x), torch.einsum("ij,abj->abi", product, x))  # float64 rounding
    torch.testing.assert_close(net.matrix(), product)
    torch.testing.assert_close(net(x[0, 0]), product @ x[0, 0])


def test_without_the_identity_it_is_the_plain_product():
    net = LinearResidual(3, 2, residual=False, scale=0.5, generator=seeded()).double()
    first, second = net.weights.detach()
    x = torch.randn(4, 3, generator=seeded(1)).double()
    torch.testing.assert_close(net(x), x @ (second @ first).mT)
    torch.testing.assert_close(net.matrix(), second @ first)


def test_zero_weights_are_the_identity_and_in_the_plain_net_zero():
    x = torch.randn(4, 3, generator=seeded())
    assert torch.equal(LinearResidual(3, 7)(x), x)
    assert torch.equal(LinearResidual(3, 7, residual=False)(x), torch.zeros_like(x))


def test_weights_start_normal_with_the_deviation_asked_for():
    entries = LinearResidual(50, 8, scale=0.1, generator=seeded()).weights.detach().double().flatten()
    count = len(entries)
    assert abs(float(entries.mean())) < 5 * 0.1 / sqrt(count)  # standard errors
    assert abs(float(entries.var()) - 0.01) < 5 * 0.01 * sqrt(2 / count)


def test_the_generator_alone_decides_the_start():
    first = LinearResidual(3, 2, scale=1.0, generator=seeded(3)).weights
    torch.rand(11)
    assert torch.equal(first, LinearResidual(3, 2, scale=1.0, generator=seeded(3)).weights)
    assert not torch.equal(first, LinearResidual(3, 2, scale=1.0, generator=seeded(4)).weights)
    before = torch.get_rng_state()
    LinearResidual(3, 2, scale=1.0, generator=seeded(3))
    assert torch.equal(torch.get_rng_state(), before)


def test_it_learns_a_linear_map():
    net = LinearResidual(2, 4)
    x = torch.randn(64, 2, generator=seeded())
    y = x @ torch.tensor([[1.5, 0.5], [-0.5, 1.0]])
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    losses = []
    for _ in range(50):
        loss = (net(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.01 * losses[0]


def test_state_and_description():
    net = LinearResidual(3, 2, scale=0.1, generator=seeded())
    other = LinearResidual(3, 2)
    other.load_state_dict(net.state_dict())
    assert torch.equal(net.weights, other.weights)
    assert list(net.state_dict()) == ["weights"]
    assert str(net) == "LinearResidual(dim=3, layers=2, residual=True)"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"dim": 0, "layers": 2}, "expected dim as a whole number of at least 1; got 0"),
        ({"dim": 2.0, "layers": 2}, "expected dim as a whole number"),
        ({"dim": 2, "layers": 0}, "expected layers as a whole number of at least 1; got 0"),
        ({"dim": 2, "layers": True}, "expected layers as a whole number"),
        ({"dim": 2, "layers": 2, "scale": -1.0}, "expected a finite scale ≥ 0; got -1.0"),
        ({"dim": 2, "layers": 2, "scale": float("nan")}, "expected a finite scale"),
        ({"dim": 2, "layers": 2, "scale": float("inf")}, "expected a finite scale"),
        ({"dim": 2, "layers": 2, "scale": "1"}, "expected a finite scale"),
    ],
)
def test_bad_sizes_are_refused_with_a_sentence(arguments, sentence):
    with pytest.raises(BadInput, match=sentence):
        LinearResidual(**arguments)


@pytest.mark.parametrize("shape", [(), (3,), (2, 1), (2, 3)])
def test_inputs_of_another_size_are_refused(shape):
    with pytest.raises(BadInput, match="expected inputs of 2 numbers each"):
        LinearResidual(2, 1)(torch.zeros(shape))
