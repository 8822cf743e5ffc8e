"""Activations: what is generated passes through them, at the right scale; hand-written ones; gates."""

from math import sqrt

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from obverse.shadow import Shadow, trace
from obverse.shadow._activations import SelfGate
from obverse.shadow._reversal import find_rule


def rand(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


class Net(nn.Module):
    """a, then a function of the module and what a gives, then b."""

    def __init__(self, function, a: nn.Module, b: nn.Module, **children: nn.Module) -> None:
        super().__init__()
        self.a, self.b = a, b
        self._function = function
        for name, child in children.items():
            setattr(self, name, child)

    def forward(self, x):
        return self.b(self._function(self, self.a(x)))


def linear(inputs: int, outputs: int, seed: int = 0) -> nn.Linear:
    layer = nn.Linear(inputs, outputs, dtype=torch.float64)
    layer.weight.data.copy_(rand(outputs, inputs, seed=seed))
    return layer


# What each computes, by its formula

FORMULAS = [
    (nn.ReLU(), lambda z: z.clamp(min=0), 0.0),
    (nn.ReLU(inplace=True), lambda z: z.clamp(min=0), 0.0),
    (nn.ReLU6(), lambda z: z.clamp(0, 6), 0.0),
    (nn.LeakyReLU(0.3), lambda z: torch.where(z > 0, z, 0.3 * z), 0.3),
    (nn.GELU(), lambda z: z * (1 + torch.erf(z / sqrt(2))) / 2, 0.0),
    (nn.SiLU(), lambda z: z / (1 + torch.exp(-z)), 0.0),
    (nn.Mish(), lambda z: z * torch.tanh(torch.log1p(torch.exp(z))), 0.0),
    (nn.Hardswish(), lambda z: z * (z + 3).clamp(0, 6) / 6, 0.0),
    (nn.ELU(0.5), lambda z: torch.where(z > 0, z, 0.5 * torch.expm1(z)), 0.0),
    (nn.CELU(0.5), lambda z: torch.where(z > 0, z, 0.5 * torch.expm1(z / 0.5)), 0.0),
    (nn.Softplus(), lambda z: torch.log1p(torch.exp(z)), 0.0),
    (nn.Tanh(), lambda z: 2 / (1 + torch.exp(-2 * z)) - 1, 1.0),
    (nn.Hardtanh(-0.5, 0.5), lambda z: z.clamp(-0.5, 0.5), 1.0),
    (nn.Softsign(), lambda z: z / (1 + z.abs()), 1.0),
    (nn.Sigmoid(), lambda z: 1 / (1 + torch.exp(-z)), 0.0),
]


@pytest.mark.parametrize(("module", "formula", "slope"), FORMULAS)
def test_what_is_generated_passes_through_the_activation(module, formula, slope):
    """x̃ = r(α₁ W₁ r'(α₂ W₂ h)), α₂ = 2/((1 + slope) n s²) and α₁ = 2/(n s²): two layers by hand."""
    net = nn.Sequential(linear(4, 6), module, linear(6, 3, seed=1))
    h = rand(5, 3, seed=2)
    lower, upper = net[0].weight.detach(), net[2].weight.detach()
    below = formula(2 / (1 + slope) * (h @ upper) / upper.square().sum(1).mean())
    expected = (2 * (below @ lower) / lower.square().sum(1).mean()).clamp(min=0)
    torch.testing.assert_close(Shadow(net).sample(h, "2"), expected)


def test_learned_and_random_slopes_are_their_mean():
    prelu = nn.PReLU(4).double()
    prelu.weight.data.copy_(torch.tensor([0.1, 0.2, 0.3, 0.6]))
    assert find_rule(prelu).slope(prelu) == pytest.approx(0.3, rel=1e-7)  # a float32 tensor was copied in
    rrelu = nn.RReLU(0.1, 0.5)
    assert find_rule(rrelu).slope(rrelu) == pytest.approx(0.3, rel=1e-15)
    net = nn.Sequential(linear(5, 4), prelu, linear(4, 3, seed=1))
    h = rand(6, 3)
    upper, lower = net[2].weight.detach(), net[0].weight.detach()
    below = 0.5 * h @ upper
    below = torch.where(below > 0, below, prelu.weight.detach() * below)
    torch.testing.assert_close(Shadow(net, scale=0.5, signed=True).sample(h, "2"), 0.5 * below @ lower)


def test_a_random_slope_is_not_drawn_in_generation():
    net = nn.Sequential(linear(5, 4), nn.RReLU(0.1, 0.5), linear(4, 3, seed=1)).train()
    shadow = Shadow(net)
    h = rand(6, 3)
    assert torch.equal(shadow.sample(h, "2"), shadow.sample(h, "2"))
    assert net[1].training


# The scale, by simulation


@pytest.mark.slow
@pytest.mark.parametrize(
    "module",
    [
        nn.ReLU(),
        nn.LeakyReLU(0.1),
        nn.LeakyReLU(0.5),
        nn.PReLU(init=0.25, dtype=torch.float64),
        nn.Identity(),
    ],
)
def test_the_scale_gives_h_back_on_average(module):
    """⟨h, Ax̃⟩/‖h‖² = 1 for x̃ = r(αAᵀh) over Gaussian A: the slope below 0 is allowed for."""
    draws, units, inputs = 300, 20, 200
    ratios = []
    for draw in range(draws):
        net = nn.Sequential(module, linear(inputs, units, seed=draw))
        h = rand(1, units, seed=draws + draw)
        x = Shadow(net, signed=True).sample(h, "1")  # the way down ends behind the activation
        response = x @ net[1].weight.detach().T
        ratios.append(float((response * h).sum() / h.square().sum()))
    sample = torch.tensor(ratios, dtype=torch.float64)
    # The scale has the measured energy in place of the true one: a bias of 1/(units·inputs), far below this.
    assert abs(float(sample.mean()) - 1) < 4 * float(sample.std()) / sqrt(draws)


def test_without_a_slope_the_leaky_scale_would_be_off():
    """The test above can tell: at the ReLU's scale the ratio is 1 + slope."""
    net = nn.Sequential(nn.LeakyReLU(0.5), linear(2000, 20))
    h = rand(1, 20, seed=1)
    weight = net[1].weight.detach()
    shadow = Shadow(net, signed=True, scale=float(2 / weight.square().sum(1).mean()))
    ratio = float((shadow.sample(h, "1") @ weight.T * h).sum() / h.square().sum())
    assert ratio == pytest.approx(
        1.5, abs=4 * 1.5 * sqrt(2 / 2000)
    )  # Σ of 2000 squares: relative error √(2/n)


# Hand-written ones


SELF_GATED = [
    (lambda self, y: y * torch.sigmoid(y), nn.SiLU()),
    (lambda self, y: torch.sigmoid(y) * y, nn.SiLU()),
    (lambda self, y: y * y.sigmoid(), nn.SiLU()),
    (lambda self, y: y.mul(F.sigmoid(y)), nn.SiLU()),
    (lambda self, y: y * (F.relu6(y + 3) / 6), nn.Hardswish()),
    (lambda self, y: y * (F.relu6(3 + y) * (1 / 6)), nn.Hardswish()),
    (lambda self, y: y * self.gate(y), nn.Hardswish()),
    (lambda self, y: y * F.hardsigmoid(y), nn.Hardswish()),
    (lambda self, y: y * torch.tanh(F.softplus(y)), nn.Mish()),
]


@pytest.mark.parametrize(("function", "same"), SELF_GATED)
def test_hand_written_activations_are_the_modules_they_spell_out(function, same):
    net = Net(function, linear(4, 6), linear(6, 3, seed=1), gate=nn.Hardsigmoid())
    layer = trace(net).layers["a"]
    assert isinstance(layer.activation.module, SelfGate)
    plain = nn.Sequential(net.a, same, net.b)
    shadow, twin = Shadow(net), Shadow(plain)
    assert shadow.layers == ("a", "b")
    x = rand(5, 4).abs()
    torch.testing.assert_close(shadow.infer(x, "a"), twin.infer(x, "0"))
    h = rand(5, 3, seed=2)
    torch.testing.assert_close(shadow.sample(h, "b"), twin.sample(h, "2"))


def test_a_hand_written_hardswish_may_divide_last():
    """y·relu6(y + 3)/6 as Python reads it, (y·relu6(y + 3))/6: the activation, then a factor."""
    net = Net(lambda self, y: y * F.relu6(y + 3) / 6, linear(4, 6), linear(6, 3, seed=1))
    shadow = Shadow(net, scale=0.5, signed=True)
    assert isinstance(shadow.layer("a").activation.module, SelfGate)
    h = rand(5, 3)
    below = 6 * 0.5 * h @ net.b.weight.detach()
    below = below * (below + 3).clamp(0, 6)
    torch.testing.assert_close(shadow.sample(h, "b"), 0.5 * below @ net.a.weight.detach())


def test_a_product_of_two_maps_is_no_activation():
    net = Net(lambda self, y: self.c(y) * torch.sigmoid(y), linear(4, 6), linear(6, 3), c=linear(6, 6))
    assert not any(isinstance(stage.module, SelfGate) for stage in trace(net).stages)


# Gates: squeeze-and-excite


class Excite(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.down, self.up = nn.Conv2d(channels, 2, 1), nn.Conv2d(2, channels, 1)

    def gate(self, x):
        return torch.sigmoid(self.up(F.relu(self.down(F.adaptive_avg_pool2d(x, 1)))))

    def forward(self, x):
        return x * self.gate(x)


def excited() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), Excite(4), nn.Conv2d(4, 3, 1)).double()


def test_a_gate_is_a_constant_its_mean_over_the_reference():
    net = excited()
    shadow = Shadow(net, scale=0.5, signed=True)
    reference = rand(7, 1, 6, 6)
    shadow._statistics.reference = reference
    with torch.no_grad():
        gate = net[2].gate(net[1](net[0](reference))).mean(0)
        h = rand(5, 3, 4, 4)
        below = F.conv_transpose2d(0.5 * h, net[3].weight)
        below = (below * gate / gate.square().mean()).relu()
        expected = F.conv_transpose2d(0.5 * below, net[0].weight)
    torch.testing.assert_close(shadow.sample(h, "3", input_shape=(1, 6, 6)), expected)


def test_a_gate_never_comes_from_the_sample_but_follows_the_weights():
    net = excited()
    shadow = Shadow(net, input_shape=(1, 6, 6))
    h = rand(5, 3, 4, 4)
    before = shadow.sample(h, "3")
    shadow.of(100 * rand(3, 1, 6, 6), "3")
    assert torch.equal(shadow.sample(h, "3"), before)
    torch.testing.assert_close(shadow.sample(2 * h, "3"), 2 * before)  # linear: nothing of h is in the gate
    with torch.no_grad():
        net[2].up.bias.add_(rand(4, seed=3))
    assert not torch.allclose(shadow.sample(h, "3"), before)


@pytest.mark.parametrize(
    "gate",
    [
        lambda self, y: y * torch.sigmoid(self.c(y.mean((2, 3)))).view(y.size(0), -1, 1, 1),
        lambda self, y: torch.sigmoid(self.c(y.mean((2, 3))))[:, :, None, None] * y,
        lambda self, y: y * F.hardsigmoid(self.c(y.mean((2, 3)))).unsqueeze(-1).unsqueeze(-1),
        lambda self, y: y.mul(F.relu6(self.c(y.mean((2, 3))) + 3).div(6)[..., None, None]),
        lambda self, y: y * torch.sigmoid(self.c(y.mean((2, 3)))).view(y.size(0), -1, 1, 1).expand_as(y),
    ],
)
def test_gates_are_recognised_however_they_are_written(gate):
    net = Net(gate, nn.Conv2d(1, 4, 3), nn.Conv2d(4, 2, 1), c=nn.Linear(4, 4))
    shadow = Shadow(net)
    assert shadow.layers == ("a", "b")
    x = torch.rand(3, 1, 6, 6)
    with torch.no_grad():
        assert torch.equal(shadow.infer(x, "b"), net(x))
    assert shadow.of(x, "b").isfinite().all()
