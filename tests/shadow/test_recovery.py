"""Recovery against the same numbers computed by hand, and against the theory for a large random net."""

import json
from math import erf, exp, pi, sqrt

import pytest
import torch
from torch import nn

from obverse._core.errors import BadInput
from obverse.nets import relu_mlp
from obverse.shadow import Shadow, recovery
from obverse.shadow._recovery import relative_error


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_relative_error_is_the_loop():
    h = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    recovered = torch.tensor([[0.5, 0.5], [0.0, 3.0]])
    assert relative_error(recovered, h) == pytest.approx((0.25 + 0.25 + 1.0) / 5)
    zero = torch.zeros(1, 2)
    assert relative_error(zero, zero) == 0
    assert relative_error(h, zero) == float("inf")


def test_recovery_generates_from_each_layer_to_the_input_and_infers_back():
    net = relu_mlp((10,), (9, 8), 4, generator=seeded()).double()
    x = torch.rand(7, 10, generator=seeded(1), dtype=torch.float64)
    result = recovery(Shadow(net, scale=0.8), x)
    weights = [getattr(net, name).weight.detach() for name in ("h1", "h2", "h3")]
    for depth, name in enumerate(("h1", "h2", "h3"), start=1):

        def up(x, depth=depth):
            for i, weight in enumerate(weights[:depth]):  # biases start at 0
                x = x @ weight.T
                x = x.clamp(min=0) if i < 2 else x
            return x

        h = down = up(x)
        for weight in reversed(weights[:depth]):
            down = (0.8 * down @ weight).clamp(min=0)
        expected = (up(down) - h).square().sum() / h.square().sum()
        assert result.errors[name] == pytest.approx(expected.item(), rel=1e-9)
    assert result.samples == 7
    assert json.loads(json.dumps(result.to_dict())) == {"errors": result.errors, "samples": 7}
    assert str(result).startswith(f"h1 {result.errors['h1']:.3f}, h2 ")


def test_sampling_is_repeatable_and_makes_recovery_worse():
    net = relu_mlp((400,), (20,), 4, generator=seeded())
    x = torch.rand(10, 400, generator=seeded(1))
    shadow = Shadow(net)
    half, again = (recovery(shadow, x, keep=0.5, generator=seeded(2)) for _ in range(2))
    assert half == again
    # theory §1: the error behaves like 1/t, so half of t doubles it; more is not claimed here
    assert half.errors["h1"] > recovery(shadow, x).errors["h1"]


def test_smoothing_and_norms_are_those_of_the_shadow():
    net = relu_mlp((1, 4, 4), (9,), 4, generator=seeded()).double()
    x = torch.rand(6, 1, 4, 4, generator=seeded(1), dtype=torch.float64)
    shadow = Shadow(net)
    for smooth, match_norm in [(True, False), (False, True), (True, True)]:
        h = (x.flatten(1) @ net.h1.weight.detach().T).clamp(min=0)
        twin = shadow.of(x, "h1", smooth=smooth, match_norm=match_norm)
        back = (twin.flatten(1) @ net.h1.weight.detach().T).clamp(min=0)
        expected = ((back - h) ** 2).sum() / (h**2).sum()
        result = recovery(shadow, x, smooth=smooth, match_norm=match_norm)
        assert result.errors["h1"] == pytest.approx(expected.item(), rel=1e-9)


def test_an_empty_batch_is_refused():
    with pytest.raises(BadInput, match="expected inputs to recover; got an empty batch; pass some"):
        recovery(Shadow(relu_mlp((3,), (4,), 2)), torch.empty(0, 3))


def closed_form(h: torch.Tensor, n: int, threshold: float) -> float:
    """Theory §1 at t = n, by scalar arithmetic: Σ E[(r(h_i − θ + √v_i g) − h_i)²]."""
    size = float(h.square().sum())
    total = 0.0
    for value in h.tolist():
        s = sqrt(2 / n * (size + 2 * value**2) - value**2 / n)
        mu = value - threshold
        z = mu / s
        cdf, pdf = (1 + erf(z / sqrt(2))) / 2, exp(-z * z / 2) / sqrt(2 * pi)
        first, second = mu * cdf + s * pdf, (mu**2 + s**2) * cdf + mu * s * pdf
        total += second - 2 * value * first + value**2
    return total


def sparse_problem(n: int, m: int = 400, k: int = 8, rows: int = 40):
    """h with k non-zeros of |N(0,1)| each, and the layer x → r(Wᵀx − θ) with unit-variance Gaussian W."""
    generator = seeded(n)
    h = torch.zeros(rows, m)
    for row in h:
        row[torch.randperm(m, generator=generator)[:k]] = torch.randn(k, generator=generator).abs()
    h = h / h.norm(dim=1, keepdim=True)
    layer = nn.Linear(n, m)
    nn.init.normal_(layer.weight, generator=generator)
    return h, layer


def test_a_large_random_layer_recovers_sparse_h_as_the_closed_form_says():
    errors = {}
    for n in (1000, 4000):
        h, layer = sparse_problem(n)
        candidates = [i * 0.2 * sqrt(2 / n) for i in range(30)]
        threshold = min(candidates, key=lambda theta: sum(closed_form(row, n, theta) for row in h[:10]))
        nn.init.constant_(layer.bias, -threshold)
        shadow = Shadow(nn.Sequential(layer, nn.ReLU()), scale=2 / n)
        recovered = shadow.infer(shadow.sample(h)).detach()
        predicted = torch.tensor([closed_form(row, n, threshold) for row in h])
        differences = (recovered - h).square().sum(1) - predicted  # ‖h‖ = 1 in every row
        standard_error = differences.std().item() / sqrt(len(h))
        # The normal approximation of ĥ is good to 3% from t ≈ 500 on (theory §1).
        assert abs(differences.mean().item()) < 4 * standard_error + 0.03 * predicted.mean().item()
        measured = relative_error(recovered, h)
        errors[n] = measured
        assert measured < 10 * 8 / n  # "Õ(k/t)" with the theory page's constant of at most 10
    # the rate k/t: four times the t, about a quarter of the error (k/t is below 0.01 at both ends)
    assert 3 < errors[1000] / errors[4000] < 5.5


def test_calibration_of_a_large_random_net_recovers_its_own_hidden_layer():
    """Calibrated on x that has sparse h: error of order k/t, and far below that without threshold."""
    n, k = 4000, 8
    h, layer = sparse_problem(n, k=k)
    nn.init.constant_(layer.bias, -3 * sqrt(2 / n))
    net = nn.Sequential(layer, nn.ReLU())
    x = Shadow(net).sample(h)
    shadow = Shadow(net)
    found = shadow.calibrate(x).layers[0]
    alone = Shadow(net, scale={"0": found.scale})
    assert recovery(alone, x).errors["0"] == pytest.approx(found.error, rel=1e-5)  # float32
    # the level adds what the mean of x can give; it is found on 32 of the inputs, and may miss by a little
    assert recovery(shadow, x).errors["0"] < 1.05 * found.error
    assert found.error < 10 * k / n
    assert found.threshold_error is not None
    assert found.threshold_error < 10 * k / n
    linear = 2 * h.shape[1] / n  # error ≈ (2m/t)‖h‖² without ReLU and threshold
    assert found.error < linear / 5
