"""The loss on the shadow itself: value and gradients against the formula in plain matrix products."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from obverse._core.errors import BadInput
from obverse._core.random import Streams
from obverse.nets import relu_mlp, small_cnn, small_resnet
from obverse.shadow import Shadow, ShadowLoss
from obverse.shadow._controls import noisy

SHAPE, ROWS = (1, 4, 3), 7
CLOSE = {"rtol": 1e-10, "atol": 1e-12}  # float64, products of a dozen terms in another order


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def make_net() -> nn.Sequential:
    net = relu_mlp(SHAPE, (9, 8), 5, generator=seeded()).double()
    for index, name in enumerate(("h1", "h2", "h3")):
        nn.init.normal_(getattr(net, name).bias, std=0.1, generator=seeded(index))
    return net


def make_batch() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.rand(ROWS, *SHAPE, generator=seeded(5), dtype=torch.float64), torch.arange(ROWS) % 5


def by_hand(weights: list[torch.Tensor], x: torch.Tensor, start: torch.Tensor, layer: str) -> torch.Tensor:
    """1 − cos(x, x̃) with x̃ generated from h of `start`, from the formulas alone."""
    w1, b1, w2, b2 = weights
    h = (start.flatten(1) @ w1.T + b1).relu()
    if layer == "h2":
        h = (h @ w2.T + b2).relu()
        h = (h @ w2).relu()
    shadow, x = (h @ w1).relu(), x.flatten(1)
    return (1 - (shadow * x).sum(1) / (shadow.norm(dim=1) * x.norm(dim=1))).mean()


@pytest.mark.parametrize("layer", ["h1", "h2"])
def test_value_and_gradients_are_those_of_the_formula(layer):
    net, (x, y) = make_net(), make_batch()
    loss = ShadowLoss(net, 0.0, layer=layer, noise=0.3, denoise=2.0, generator=seeded(3))
    found = loss(x, y)
    found.backward()
    weights = [
        parameter.detach().clone().requires_grad_()
        for parameter in (net.h1.weight, net.h1.bias, net.h2.weight, net.h2.bias)
    ]
    blur = by_hand(weights, x, noisy(x, 0.3, seeded(3)), layer)
    plain = F.cross_entropy(net(x), y)
    torch.testing.assert_close(found, plain + 2 * blur, **CLOSE)
    used = weights if layer == "h2" else weights[:2]
    expected = torch.autograd.grad(2 * blur, used)
    of_plain = torch.autograd.grad(plain, [net.h1.weight, net.h1.bias, net.h2.weight, net.h2.bias])
    for parameter, ours, theirs in zip(
        (net.h1.weight, net.h1.bias, net.h2.weight, net.h2.bias), expected, of_plain, strict=False
    ):
        assert float(ours.abs().max()) > 0
        torch.testing.assert_close(parameter.grad, ours + theirs, **CLOSE)


def test_gradients_of_a_convolutional_net_against_differences():
    net = small_cnn((1, 8, 8), 3, (4, 6), generator=seeded()).double().eval()
    shadow, x = Shadow(net), torch.rand(3, 1, 8, 8, generator=seeded(1), dtype=torch.float64)
    for _ in range(2):  # batch norm needs statistics that are not those of a fresh net
        net.train()(x)
    net.eval()

    def value() -> torch.Tensor:
        return (1 - F.cosine_similarity(shadow.direction(x).flatten(1), x.flatten(1))).mean()

    value().backward()
    step, looked = 1e-6, 0
    for parameter in net.parameters():
        if parameter.grad is None or float(parameter.grad.abs().max()) == 0:
            continue
        place = int(parameter.grad.abs().argmax())
        flat = parameter.detach().view(-1)
        ends = []
        for side in (step, -2 * step):
            flat[place] += side
            ends.append(value().item())
        flat[place] += step
        looked += 1
        # central differences: an error of the order step² and of rounding / step
        assert parameter.grad.view(-1)[place].item() == pytest.approx(
            (ends[0] - ends[1]) / (2 * step), rel=1e-4
        )
    assert looked >= 4


def test_direction_is_the_shadow_up_to_a_factor_a_row():
    net, (x, _) = make_net(), make_batch()
    shadow = Shadow(net)
    usual, direction = shadow.of(x).flatten(1), shadow.direction(x).flatten(1)
    assert direction.requires_grad
    assert not usual.requires_grad
    torch.testing.assert_close(
        F.cosine_similarity(usual, direction.detach()), torch.ones(ROWS).double(), **CLOSE
    )


@pytest.mark.parametrize("weight", [0.0, 3.0])
def test_unlabelled_points_need_no_label(weight):
    net, (x, _) = make_net(), make_batch()
    loss = ShadowLoss(net, weight, denoise=2.0, noise=0.3)  # labels="given": nothing is said of x̃ without y
    expected = 2 * ShadowLoss(net, 0.0, noise=0.3, denoise=1.0, generator=Streams(torch.arange(ROWS))).blur(x)
    loss.generator = Streams(torch.arange(ROWS))
    torch.testing.assert_close(loss(x), expected, **CLOSE)
    both = ShadowLoss(net, 3.0, labels="consistency", denoise=2.0, noise=0.0)
    alone = ShadowLoss(net, 3.0, labels="consistency")
    torch.testing.assert_close(both(x), alone(x) + 2 * both.blur(x), **CLOSE)


def test_training_on_it_alone_makes_the_shadow_a_denoiser():
    net, x = make_net(), make_batch()[0]
    loss = ShadowLoss(net, 0.0, denoise=1.0, noise=0.2, generator=seeded(4))
    optimizer = torch.optim.Adam(net.parameters(), 0.01)
    first = loss.blur(x).item()
    for _ in range(200):
        optimizer.zero_grad()
        loss(x).backward()
        optimizer.step()
    assert loss.blur(x).item() < first / 3


@pytest.mark.parametrize("denoise", [-1.0, float("inf"), float("nan")])
def test_a_weight_that_is_none_is_refused(denoise):
    with pytest.raises(BadInput, match="denoise"):
        ShadowLoss(make_net(), denoise=denoise)


def test_a_net_with_branches_is_refused():
    """There, scales that depend on the weights would be missing from the gradients."""
    net = small_resnet((1, 8, 8), 3, (4, 6), generator=seeded())
    loss = ShadowLoss(net, denoise=1.0)
    with pytest.raises(BadInput, match="without branches"):
        loss(torch.rand(2, 1, 8, 8), torch.tensor([0, 1]))


def test_rows_without_a_shadow_count_as_lost_in_half_precision_too():
    net = make_net().float()
    with torch.no_grad():
        for name in ("h1", "h2"):
            getattr(net, name).bias.fill_(-0.01)
    x = torch.rand(ROWS, *SHAPE, generator=seeded(5))
    x[2] *= 1e-6  # below every bias: h = 0 and a shadow of zeros
    loss = ShadowLoss(net, 0.0, denoise=1.0, noise=0.0)
    with torch.autocast("cpu", torch.float16):
        found = loss.blur(x).detach()
    exact = loss.blur(x).detach()
    assert torch.isfinite(found)
    assert float(exact) > 1 / ROWS  # the row of zeros alone counts 1
    assert found.item() == pytest.approx(exact.item(), abs=0.01)  # 11 bits, two layers down and up


def test_unlabelled_points_are_normalized_like_the_others():
    net, (x, _) = make_net(), make_batch()
    plain = ShadowLoss(net, 4.0, labels="consistency")
    torch.testing.assert_close(
        ShadowLoss(net, 4.0, labels="consistency", normalize=True)(x), plain(x) / 5, **CLOSE
    )
