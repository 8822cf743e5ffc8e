"""Corners of real use: half precision, moved nets, user state, floors, training mode, several pools."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from obverse._core.errors import BadInput
from obverse.shadow import Rule, Shadow, ShadowLoss, recovery, register_rule
from obverse.shadow import _adjust as adjust
from obverse.shadow._switches import infer_with_switches


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture(autouse=True)
def start():
    torch.manual_seed(0)


def convs(*between: nn.Module) -> nn.Sequential:
    first, second = nn.Conv2d(3, 32, 3, padding=1), nn.Conv2d(32, 32, 3, padding=1)
    return nn.Sequential(first, nn.ReLU(), *between, second, nn.ReLU())


@pytest.mark.slow
def test_half_precision_is_single_precision_rounded():
    net, x = convs(nn.AvgPool2d(2)), torch.rand(2, 3, 32, 32)
    exact = Shadow(net).of(x, "3")
    half = Shadow(copy.deepcopy(net).half())
    shadow = half.of(x.half(), "3").float()
    # 11 bits a number, sums over 288 terms a layer, two layers up and two down
    assert float((shadow - exact).norm() / exact.norm()) < 0.02
    large = (4 * torch.rand(64, 3, 32, 32)).half()
    half.calibrate(large)
    error, expected = recovery(half, large, layers=["3"]).errors["3"], recovery(Shadow(net), x, layers=["3"])
    assert 0 < error < expected.errors["3"]


def test_a_floor_holds_with_matched_norms_too():
    net = nn.Sequential(*convs(), nn.Flatten(), nn.Linear(32 * 64, 10))
    x = (torch.rand(32, 3, 8, 8).sub(0.3).clamp(min=0) - 0.2) / 0.25
    shadow = Shadow(net)
    assert shadow.calibrate(x).floor == pytest.approx((-0.8, -0.8, -0.8))
    for match_norm in (False, True):
        assert float(shadow.of(x, "2", match_norm=match_norm).min()) == pytest.approx(-0.8)
    with pytest.raises(BadInput, match="expected inputs with 2 channels, as there are floors"):
        Shadow(net, floor=(-1.0, -2.0)).of(x, "2")


def test_matched_norm_is_that_of_the_scaled_shadow_where_activations_are_curved():
    net = nn.Sequential(*(part for _ in range(4) for part in (nn.Linear(16, 16), nn.GELU()))).double()
    x = torch.rand(5, 16, dtype=torch.float64)
    plain = Shadow(net).of(x, "6")
    torch.testing.assert_close(Shadow(net).of(x, "6", match_norm=True), adjust.match_norm(plain, x))


class MoreInTraining(nn.Module):
    """An extra step in training, so that torch.fx names the steps after it otherwise; two results."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 4)

    def forward(self, x):
        if self.training:
            x = F.relu(x)
        h = F.relu(self.a(x))
        h = F.relu(self.b(h))
        return self.c(h), h


def test_the_layer_is_the_same_one_in_training_and_all_results_come_back():
    net, x = MoreInTraining().train(), torch.rand(4, 8)
    loss = ShadowLoss(net, criterion=lambda result, y: F.cross_entropy(result[0], y))
    (logits, same), h = loss._forward_with_hidden(x)
    assert loss.layer == "b"
    torch.testing.assert_close(h, F.relu(net.b(F.relu(net.a(x)))).detach())
    torch.testing.assert_close(same.detach(), h)
    torch.testing.assert_close(logits, net(x)[0])
    loss(x, torch.arange(4)).backward()


class Gain(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("k", torch.tensor(2.0))

    def forward(self, x):
        return self.k * x


@pytest.mark.usefixtures("rules")
def test_a_users_module_may_change_without_parameters():
    register_rule(Gain, Rule(reverse=lambda module, h, shape: module.k * h))
    net = nn.Sequential(Gain(), nn.Linear(8, 4), nn.ReLU())
    shadow, h = Shadow(net), torch.rand(1, 4)
    shadow.sample(h)
    net[0].k.fill_(10.0)
    torch.testing.assert_close(shadow.sample(h), Shadow(net).sample(h))


def test_statistics_follow_weights_changed_through_data():
    net = convs(nn.GroupNorm(2, 32))
    shadow, h = Shadow(net, input_shape=(3, 8, 8)), torch.rand(1, 32, 8, 8)
    shadow.sample(h, "3")
    net[0].weight.data.mul_(10.0)
    torch.testing.assert_close(shadow.sample(h, "3"), Shadow(net, input_shape=(3, 8, 8)).sample(h, "3"))


def test_a_flat_net_calibrated_on_images_samples_images():
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 30), nn.ReLU(), nn.Linear(30, 10))
    net[1].bias.data.add_(-1.0)
    x = torch.rand(64, 1, 8, 8) + 1
    shadow = Shadow(net)
    shadow.calibrate(x)
    h = shadow.infer(x, "1").detach()
    assert shadow.sample(h, "1").shape == x.shape
    torch.testing.assert_close(shadow.of(x.flatten(1), "1").reshape(x.shape), shadow.of(x, "1"))


class Tenfold(nn.Conv2d):
    def _conv_forward(self, x, weight, bias):
        return super()._conv_forward(x, 10 * weight, bias)


def test_a_convolution_with_a_computation_of_its_own_is_traced_not_guessed():
    net = nn.Sequential(Tenfold(2, 3, 3, bias=False), nn.ReLU()).double()
    plain = nn.Sequential(nn.Conv2d(2, 3, 3, bias=False), nn.ReLU()).double()
    plain[0].weight.data.copy_(10 * net[0].weight.data)
    x = torch.rand(2, 2, 6, 6, dtype=torch.float64)
    torch.testing.assert_close(Shadow(net).of(x), Shadow(plain).of(x))


class Pyramid(nn.Module):
    def __init__(self):
        super().__init__()
        self.c, self.d = nn.Conv2d(1, 2, 3, padding=1), nn.Conv2d(4, 3, 1)
        self.two, self.three = nn.MaxPool2d(2), nn.MaxPool2d(3, 2, 1)

    def forward(self, x):
        h = F.relu(self.c(x))
        return self.d(torch.cat([self.two(h), self.three(h)], 1))


def test_two_poolings_of_one_tensor_have_switches_each():
    shadow, x = Shadow(Pyramid()), torch.rand(2, 1, 8, 8)
    _, positions = infer_with_switches(shadow.graph, x, shadow.layer("d"))
    assert len(positions) == 2
    assert shadow.of(x, "d", switches=True).shape == x.shape


class AlwaysDrops(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 3)

    def forward(self, x):
        return self.b(F.dropout(F.relu(self.a(x)), 0.5))


def test_a_net_that_drops_out_in_evaluation_too_is_no_wrong_trace_and_leaves_the_randomness_alone():
    net, x = AlwaysDrops(), torch.rand(4, 8)
    state = torch.get_rng_state()
    shadow = Shadow(net)
    assert shadow.sample(torch.rand(4, 3, generator=seeded()), "b").shape == x.shape
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize("norm", [nn.Identity(), nn.GroupNorm(2, 32)])
def test_a_calibrated_shadow_moves_with_its_net(norm):
    net, x = convs(norm), torch.rand(8, 3, 8, 8)
    shadow = Shadow(net)
    shadow.calibrate(x)
    before = shadow.of(x, "3")
    net.double()
    # found levels stay; float32 rounding through four layers
    torch.testing.assert_close(shadow.of(x.double(), "3").float(), before, rtol=1e-3, atol=1e-4)
    other = Shadow(net)
    other.calibrate(x.double())
    net.float()
    other.of(x, "3")  # the level is found now, in float32


class Buffers(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("w", torch.randn(4, 6, dtype=torch.float64))
        self.norm = nn.LayerNorm(4, elementwise_affine=False)

    def forward(self, x):
        return F.relu(self.norm(F.linear(x, self.w)))


def test_a_net_without_parameters():
    x = torch.rand(3, 6, dtype=torch.float64)
    assert Shadow(Buffers()).of(x).shape == x.shape


def test_twice_the_same_tensor_is_a_factor():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(6, 6), nn.Linear(6, 3)
            self.sum = True

        def forward(self, x):
            h = F.relu(self.a(x))
            return self.b(h + h if self.sum else 2 * h)

    net = Twice().double()
    h = torch.rand(2, 3, dtype=torch.float64)
    first = Shadow(net).sample(h, "b")
    net.sum = False
    torch.testing.assert_close(Shadow(net).sample(h, "b"), first)


def test_what_does_not_fit_gets_a_sentence():
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU())
    x = torch.rand(2, 1, 6, 6)
    shadow = Shadow(net)
    with pytest.raises(BadInput, match="finite inputs to calibrate on; got NaN or infinity"):
        shadow.calibrate(x * torch.nan)
    with pytest.raises(BadInput, match="one h for each x; got 1 and 2"):
        shadow.from_hidden(x, shadow.infer(x)[:1].detach())
    with pytest.raises(BadInput, match=r"runs on inputs of shape \(7,\).*; got RuntimeError"):
        shadow.of(torch.rand(2, 7))
    with pytest.warns(FutureWarning):
        old = nn.Sequential(torch.nn.utils.weight_norm(nn.Linear(4, 3)), nn.ReLU())
    old(torch.rand(2, 4))
    with pytest.raises(BadInput, match=r"a net that can be copied; .*parametrizations in place"):
        ShadowLoss(old, control="shuffled")
