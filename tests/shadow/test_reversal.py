"""One layer backwards against loops; rules registered from outside."""

from math import sqrt

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from obverse._core.errors import BadInput
from obverse.nets import UniformBiasLinear
from obverse.shadow import Activation, Norm, Rule, Shadow, register_rule, reverse_linear, theory_scale
from obverse.shadow._reversal import drop, find_rule, weight_energy


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@given(out=st.integers(1, 4), inputs=st.integers(1, 5), batch=st.integers(0, 3), relu=st.booleans())
def test_reverse_linear_is_the_loop(out, inputs, batch, relu):
    generator = seeded(out + 10 * inputs)
    weight = torch.randn(out, inputs, generator=generator, dtype=torch.float64)
    h = torch.randn(batch, out, generator=generator, dtype=torch.float64)
    x = reverse_linear(weight, h, scale=0.3, relu=relu)
    assert x.shape == (batch, inputs)
    for row in range(batch):
        for j in range(inputs):
            total = 0.3 * sum(float(weight[i, j] * h[row, i]) for i in range(out))
            expected = max(0.0, total) if relu else total
            assert x[row, j].item() == pytest.approx(expected, rel=1e-12, abs=1e-14)


def test_reverse_linear_changes_neither_input_nor_makes_a_graph():
    weight, h = torch.randn(3, 4, requires_grad=True), torch.randn(2, 3, requires_grad=True)
    before = weight.detach().clone(), h.detach().clone()
    x = reverse_linear(weight, h, scale=2.0, keep=0.5, generator=seeded())
    assert x.grad_fn is None
    assert torch.equal(weight, before[0])
    assert torch.equal(h, before[1])


def test_drop_keeps_the_stated_share_and_rescales_nothing():
    entries, keep = 100_000, 0.3
    x = drop(torch.full((entries,), 2.0), keep, seeded())
    assert set(x.tolist()) == {0.0, 2.0}
    share = (x > 0).double().mean().item()
    assert abs(share - keep) < 5 * sqrt(keep * (1 - keep) / entries)  # binomial standard error


def test_drop_is_independent_between_entries_and_rows():
    x = drop(torch.ones(20_000, 2), 0.5, seeded())
    correlation = torch.corrcoef(x.T)[0, 1].abs().item()
    assert correlation < 5 / sqrt(20_000)


def test_theory_scale_is_eq_1_and_one_for_a_layer_of_zeros():
    assert theory_scale(8.0, keep=0.5) == 2 / (0.5 * 8)
    assert theory_scale(torch.tensor(0.0)) == 1


@pytest.mark.parametrize("keep", [0.0, -1.0, 1.01, float("nan")])
def test_bad_keep_is_refused(keep):
    with pytest.raises(BadInput, match=r"expected keep in \(0, 1\]; got .*; use keep=1.0 for no sampling"):
        reverse_linear(torch.ones(2, 2), torch.ones(1, 2), keep=keep)


def test_weight_energy_is_the_mean_squared_norm_of_a_units_weights():
    weight = torch.randn(3, 5, generator=seeded(), dtype=torch.float64)
    by_hand = sum(float(row @ row) for row in weight) / 3
    assert float(weight_energy(weight)) == pytest.approx(by_hand, rel=1e-14)  # sums of 15 squares


# The registry


def test_subclasses_use_the_rule_of_their_nearest_base_if_they_compute_the_same():
    class Named(nn.Linear):
        """A Linear by another name."""

    class Other(nn.Linear):
        def forward(self, x):
            return super().forward(x) ** 2

    assert find_rule(Named(3, 2)) is find_rule(nn.Linear(3, 2))
    assert find_rule(Other(3, 2)) is None
    assert find_rule(UniformBiasLinear(3, 2)) is None  # looked into instead: see test_trace
    assert find_rule(nn.LSTM(3, 2)) is None


@pytest.mark.usefixtures("rules")
def test_a_rule_for_a_subclass_comes_before_that_of_its_base():
    class Other(nn.Linear):
        def forward(self, x):
            return super().forward(x) ** 2

    class Further(Other):
        pass

    rule = Rule(reverse=lambda module, h, shape: h)
    register_rule(Other, rule)
    assert find_rule(Other(3, 2)) is rule
    assert find_rule(Further(3, 2)) is rule
    assert find_rule(nn.Linear(3, 2)) is not rule


class Permute(nn.Module):
    """Somebody else's layer: a fixed permutation of the features."""

    def __init__(self, order: list[int]) -> None:
        super().__init__()
        self.order = order

    def forward(self, x):
        return x[:, self.order]


class Gain(nn.Module):
    """Somebody else's layer with weights: x → gain·x, whose adjoint at gain 1 is h itself."""

    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(()))

    def forward(self, x):
        return self.gain * x


@pytest.mark.usefixtures("rules")
def test_a_rule_from_outside_is_a_few_lines():
    def unpermute(module, h, input_shape):
        x = torch.empty_like(h)
        x[:, module.order] = h
        return x

    register_rule(Permute, Rule(reverse=unpermute, exact=True))

    net = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), Permute([2, 0, 1]), nn.Linear(3, 2)).double()
    x = torch.rand(4, 3, dtype=torch.float64)
    shadow = Shadow(net, scale=1.0)
    assert torch.equal(shadow.infer(x, "3"), net(x))
    # by hand: one matrix for permutation and linear layer together
    matrix = net[3].weight.detach() @ torch.eye(3, dtype=torch.float64)[[2, 0, 1]]
    below = (net(x).detach() @ matrix).clamp(min=0)
    expected = (below @ net[0].weight.detach()).clamp(min=0)
    torch.testing.assert_close(shadow.of(x, "3"), expected)


@pytest.mark.usefixtures("rules")
def test_a_layer_rule_that_returns_h_itself_does_not_harm_the_callers_h():
    register_rule(
        Gain, Rule(reverse=lambda module, h, shape: h, energy=lambda module, shape: torch.tensor(1.0))
    )
    h = torch.tensor([[-1.0, 2.0]])
    net = nn.Sequential(Gain())
    assert Shadow(net, scale=3.0, input_shape=(2,)).sample(h).tolist() == [[0.0, 6.0]]
    plain = Shadow(net, scale=1.0, signed=True, input_shape=(2,))
    for options in ({"keep": 1e-9, "generator": seeded()}, {}):  # dropping works in place
        plain.sample(h, **options).zero_()
        plain.of(h, match_norm=True).zero_()
        assert h.tolist() == [[-1.0, 2.0]]


@pytest.mark.usefixtures("rules")
def test_an_inexact_rule_is_scaled_by_its_own_energy():
    """x → mean of pairs: its adjoint halves, its rows have energy ½, so that h comes back whole."""

    class Pairs(nn.Module):
        def forward(self, x):
            if x.sum() > 0:  # cannot be traced: only the rule makes it a step
                return x.unflatten(1, (-1, 2)).mean(2)
            return x.unflatten(1, (-1, 2)).mean(2)

    register_rule(Pairs, Rule(reverse=lambda module, h, shape: h.repeat_interleave(2, 1) / 2))
    net = nn.Sequential(Pairs(), nn.Linear(2, 2, bias=False)).double()
    nn.init.eye_(net[1].weight)
    h = torch.tensor([[1.0, 2.0]], dtype=torch.float64)
    shadow = Shadow(net, scale=1.0, input_shape=(4,))
    assert shadow.sample(h, "1").tolist() == [[1.0, 1.0, 2.0, 2.0]]
    assert torch.equal(shadow.infer(shadow.sample(h, "1"), "1"), h)


@pytest.mark.usefixtures("rules")
def test_layers_with_an_energy_a_channel_have_the_theorys_scale():
    register_rule(
        Gain,
        Rule(
            reverse=lambda module, h, shape: module.gain.detach() * h,
            energy=lambda module, shape: module.gain.detach().square().expand(shape[0]),
        ),
    )
    net = nn.Sequential(Gain())
    nn.init.constant_(net[0].gain, 4.0)
    shadow = Shadow(net, input_shape=(2,))
    assert shadow.layers == ("0",)
    assert shadow.sample(torch.tensor([[1.0, -2.0]])).tolist() == [[0.5, 0.0]]  # 2/16 · 4


@pytest.mark.usefixtures("rules")
def test_norms_and_activations_from_outside_belong_to_the_layer():
    class Centre(nn.Module):
        """Somebody else's norm."""

        def forward(self, x):
            return 3 * (x - x.mean(1, keepdim=True))

    class Cube(nn.Module):
        """Somebody else's activation."""

        def forward(self, x):
            return x**3

    register_rule(Centre, Norm(lambda module, x: (torch.tensor(3.0), -3 * x.mean())))
    register_rule(Cube, Activation(slope=lambda module: 1.0))
    net = nn.Sequential(nn.Linear(3, 4, bias=False), Centre(), Cube(), nn.Linear(4, 2, bias=False)).double()
    shadow = Shadow(net, signed=True)
    layer = shadow.layer("0")
    assert [norm.name for norm in layer.norms] == ["1"]
    assert layer.activation.name == "2"
    h = torch.randn(5, 2, generator=seeded(), dtype=torch.float64)
    lower, upper = (net[i].weight.detach() for i in (0, 3))
    below = (h @ upper / upper.square().sum(1).mean()) ** 3
    expected = below @ (3 * lower) / (9 * lower.square().sum(1).mean())
    torch.testing.assert_close(shadow.sample(h, "3"), expected)
