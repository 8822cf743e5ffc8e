"""One layer backwards against loops; rules registered from outside."""

from math import sqrt

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from obverse.errors import BadInput
from obverse.nets import UniformBiasLinear
from obverse.shadow import Rule, Shadow, register_rule, reverse_linear, theory_scale
from obverse.shadow.reversal import _RULES, drop, rule_for


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def rules():
    """The registry as it was, after the test."""
    before = dict(_RULES)
    yield
    _RULES.clear()
    _RULES.update(before)


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


def test_linear_energy_is_the_mean_squared_norm_of_a_units_weights():
    layer = nn.Linear(5, 3)
    by_hand = sum(float(row @ row) for row in layer.weight.detach()) / 3
    rule = rule_for(layer, "layer")
    assert float(rule.energy(layer)) == pytest.approx(by_hand, rel=1e-6)  # float32


def test_linear_rule_is_the_adjoint_of_the_map_without_bias():
    layer = nn.Linear(5, 3, dtype=torch.float64)
    x, h = torch.randn(1, 5, dtype=torch.float64), torch.randn(1, 3, dtype=torch.float64)
    up = (layer(x) - layer.bias) @ h.T
    down = x @ rule_for(layer, "layer").reverse(layer, h, None).T
    assert up.item() == pytest.approx(down.item(), rel=1e-12)


def test_flatten_gives_the_input_its_shape_back_and_refuses_to_flatten_the_batch():
    flatten = nn.Flatten()
    x = torch.randn(2, 3, 4, 5)
    reverse = rule_for(flatten, "flatten").reverse
    assert torch.equal(reverse(flatten, flatten(x), (3, 4, 5)), x)
    assert torch.equal(reverse(flatten, flatten(x), None), flatten(x))
    odd = nn.Flatten(0)
    with pytest.raises(
        BadInput, match=r"expected Flatten\(start_dim=1.*got Flatten\(start_dim=0.*flatten every"
    ):
        reverse(odd, odd(x), (3, 4, 5))


@pytest.mark.parametrize("module", [nn.Dropout(0.5), nn.AlphaDropout(0.5), nn.Identity()])
def test_what_only_trains_passes_through_both_ways(module):
    x = torch.randn(2, 3)
    rule = rule_for(module.train(), "m")
    assert torch.equal(rule.reverse(module, x, None), x)
    assert torch.equal(rule.infer(module, x), x)


def test_subclasses_use_the_rule_of_their_nearest_base():
    assert rule_for(UniformBiasLinear(3, 2), "u") is rule_for(nn.Linear(3, 2), "l")


class Permute(nn.Module):
    """Somebody else's layer: a fixed permutation of the features."""

    def __init__(self, order: list[int]) -> None:
        super().__init__()
        self.order = order

    def forward(self, x):
        return x[:, self.order]


class Gain(nn.Module):
    """Somebody else's affine layer: x → gain·x, whose adjoint at gain 1 is h itself."""

    def forward(self, x):
        return x


def test_an_unknown_layer_is_named_with_the_way_to_register_it():
    with pytest.raises(BadInput) as caught:
        Shadow(nn.Sequential(nn.Linear(3, 3), Permute([2, 0, 1]), nn.Linear(3, 2)))
    sentence = str(caught.value)
    assert "layer '1' of type Permute" in sentence
    assert "Linear, ReLU" in sentence
    assert "obverse.shadow.register_rule(Permute, Rule(reverse=" in sentence


@pytest.mark.usefixtures("rules")
def test_a_rule_from_outside_is_a_few_lines():
    def unpermute(module, h, input_shape):
        x = torch.empty_like(h)
        x[:, module.order] = h
        return x

    register_rule(Permute, Rule(reverse=unpermute))

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
    register_rule(Gain, Rule(reverse=lambda module, h, shape: h, energy=lambda module: torch.tensor(1.0)))
    h = torch.tensor([[-1.0, 2.0]])
    x = Shadow(nn.Sequential(Gain()), scale=3.0).sample(h)
    assert x.tolist() == [[0.0, 6.0]]
    assert h.tolist() == [[-1.0, 2.0]]
