"""Calibration against an exhaustive grid."""

import json
from math import exp, log

import pytest
import torch
from torch import nn

from obverse.nets import relu_mlp
from obverse.shadow import Shadow
from obverse.shadow._calibrate import calibrate_layer


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def problem(seed: int, signed: bool = False):
    net = relu_mlp((20,), (15, 12), 4, generator=seeded(seed)).double()
    for name in ("h1", "h2", "h3"):
        nn.init.normal_(getattr(net, name).bias, mean=-0.1, std=0.2, generator=seeded(seed + 1))
    x = torch.rand(30, 20, generator=seeded(seed + 2), dtype=torch.float64)
    return net, (x - 0.5 if signed else x)


def error(recovered: torch.Tensor, h: torch.Tensor) -> float:
    return float(((recovered - h) ** 2).sum() / (h**2).sum())


def hidden(net: nn.Sequential, x: torch.Tensor) -> list[torch.Tensor]:
    """Inputs and outputs of the linear layers with their ReLU: x, h1, h2, h3."""
    result = [x]
    for name in ("h1", "h2", "h3"):
        z = result[-1] @ getattr(net, name).weight.detach().T + getattr(net, name).bias.detach()
        result.append(z if name == "h3" else z.clamp(min=0))
    return result


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("signed", [False, True])
def test_scale_and_threshold_are_the_best_of_a_fine_grid(seed, signed):
    net, x = problem(seed, signed)
    found = Shadow(net, signed=signed).calibrate(x)
    states = hidden(net, x)
    for depth, one in enumerate(found.layers):
        layer, h = getattr(net, one.layer), states[depth + 1]
        weight, bias = layer.weight.detach(), layer.bias.detach()
        below = h @ weight
        below = below if depth == 0 and signed else below.clamp(min=0)

        def activate(z, one=one):
            return z if one.layer == "h3" else z.clamp(min=0)

        def at_scale(scale, below=below, weight=weight, bias=bias, h=h):
            return error(activate(scale * below @ weight.T + bias), h)

        # eq. 1; an input that keeps its negative half loses nothing, and needs no factor 2
        theory = (1 if depth == 0 and signed else 2) / (weight.shape[1] * float((weight**2).mean()))
        assert one.theory_scale == pytest.approx(theory)
        assert one.theory_error == pytest.approx(at_scale(theory))
        assert one.error == pytest.approx(at_scale(one.scale))
        grid = [exp(log(theory) + (i / 600 - 1) * log(100)) for i in range(1201)]
        # Brent stops within 1e-5 of the minimum in log scale, where the error is flat: second order
        assert one.error <= min(map(at_scale, grid)) + 1e-6
        assert one.error <= one.theory_error

        if one.layer == "h3":
            assert one.threshold is None
            assert one.threshold_scale is None
            assert one.threshold_error is None
            continue
        response = below @ weight.T
        scales = torch.tensor(grid, dtype=torch.float64)[300:901:2, None, None]  # a tenth to ten times
        best = min(
            float((((scales * response - theta).clamp(min=0) - h) ** 2).sum((1, 2)).min() / (h**2).sum())
            for theta in torch.linspace(-1, 3, 401, dtype=torch.float64).tolist()
        )
        at_best = (one.threshold_scale * response - one.threshold).clamp(min=0)
        assert one.threshold_error == pytest.approx(error(at_best, h))
        assert one.threshold_error <= best + 1e-6  # the grid can only be above the minimum


def test_a_random_gaussian_layer_with_sparse_h_is_inverted_by_one_threshold():
    """Theorem 2.3's setting: the uniform threshold beats both no threshold and the layer's zero offsets."""
    layer = nn.Linear(3000, 1000)
    nn.init.normal_(layer.weight, generator=seeded(3))
    nn.init.zeros_(layer.bias)
    h = torch.zeros(40, 1000)
    for row in h:
        row[torch.randperm(1000, generator=seeded(4))[:15]] = 0.5 + torch.rand(15, generator=seeded(5))
    shadow = Shadow(nn.Sequential(layer, nn.ReLU()))
    found = calibrate_layer(shadow.layer(), h, shadow._generation((3000,)))
    scales = found.theory_scale * torch.linspace(0.5, 2, 31)[:, None, None]
    response = (h @ layer.weight.detach()).relu() @ layer.weight.detach().T
    brute = min(
        float((((scales * response - theta).relu() - h) ** 2).sum((1, 2)).min() / (h**2).sum())
        for theta in torch.linspace(0, 0.6, 31).tolist()
    )
    assert found.threshold > 0
    assert found.threshold_error <= brute + 1e-5
    assert found.threshold_error < found.error / 3


def test_a_dead_layer_and_a_layer_of_zeros_do_not_break_it():
    net, x = problem(0)
    nn.init.constant_(net.h2.bias, -1e3)
    nn.init.zeros_(net.h3.weight)
    nn.init.constant_(net.h3.bias, 0.5)
    found = {one.layer: one for one in Shadow(net).calibrate(x).layers}
    assert found["h2"].error == 0  # h = 0 is recovered from the zero shadow
    assert found["h3"].error == pytest.approx(0, abs=1e-12)  # the bias alone says what h is
    assert all(one.scale > 0 for one in found.values())


def test_a_dead_layer_whose_shadow_revives_it_is_reported_as_infinite():
    net = nn.Sequential(nn.Linear(1, 1, dtype=torch.float64), nn.ReLU())
    nn.init.constant_(net[0].weight, -1.0)
    nn.init.constant_(net[0].bias, 0.5)
    found = Shadow(net).calibrate(torch.ones(2, 1, dtype=torch.float64)).layers[0]
    assert found.error == float("inf")
    assert found.scale > 0


def test_the_result_is_a_value_that_prints_and_saves():
    net, x = problem(0)
    found = Shadow(net).calibrate(x)
    assert json.loads(json.dumps(found.to_dict()))["layers"][0]["layer"] == "h1"
    lines = str(found).splitlines()
    assert len(lines) == 5
    assert lines[2].startswith("h1 ")
    assert lines[4].endswith("–")
    assert len({len(line) for line in lines}) == 1
    assert all(one.error >= 0 for one in found.layers)


def folded(seed: int, tilt: float) -> nn.Sequential:
    """h = |Ax| and nearly nothing else: the way down cancels, and what is left knows little of x."""
    net = relu_mlp((12,), (40, 20), 4, generator=seeded(seed)).double()
    half = torch.randn(20, 12, generator=seeded(seed + 1), dtype=torch.float64)
    with torch.no_grad():
        net.h1.weight.copy_(torch.cat([half, -half]))
        net.h1.bias.zero_()
        net.h2.weight.copy_(torch.cat([torch.eye(20), tilt * torch.eye(20)], 1))
        net.h2.bias.fill_(-2.0)
    return net


def differences(x: torch.Tensor) -> float:
    return float((x - x.mean(0)).norm())


@pytest.mark.parametrize("tilt", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("seed", range(3))
def test_shadows_of_different_inputs_stay_different_where_no_level_recovers_h(seed, tilt):
    """One image for all inputs is closer to these h than any shadow: a factor near 0 is on that plateau."""
    net = folded(seed, tilt)
    x = torch.randn(60, 12, generator=seeded(seed + 2), dtype=torch.float64)
    shadow, plain = Shadow(net, signed=True), Shadow(net, signed=True)
    shadow.calibrate(x)
    h = hidden(net, x)
    for depth, name in enumerate(shadow.layers, start=1):
        found = shadow.of(x, name)
        # a tenth of what the inputs differ by, found on half of them: they may differ by a third
        assert differences(found) > 0.07 * differences(x), (name, shadow.level(name))
        some = x[:32]  # those that the level is found on
        before, after = (
            error(hidden(net, one.of(some, name))[depth], h[depth][:32]) for one in (plain, shadow)
        )
        assert after <= before * (1 + 1e-9)  # rounding


def test_calibration_is_never_worse_than_none_on_its_own_inputs():
    for seed in range(6):
        for signed in (False, True):
            net, x = problem(seed, signed)
            shadow, plain = Shadow(net, signed=signed), Shadow(net, signed=signed)
            shadow.calibrate(x)
            for depth, name in enumerate(shadow.layers, start=1):
                h = hidden(net, x)[depth]
                before, after = (error(hidden(net, one.of(x, name))[depth], h) for one in (plain, shadow))
                assert after <= before * (1 + 1e-9)  # rounding
