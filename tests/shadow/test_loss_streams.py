"""ShadowLoss with streams: the loss of a batch is the mean over its samples, however the batch is cut."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from obverse._core.random import Streams, use_streams
from obverse.nets import relu_mlp
from obverse.nets._small_conv import small_cnn
from obverse.shadow import Shadow, ShadowLoss
from obverse.shadow._controls import noisy
from obverse.shadow._reversal import drop

ROWS = 9
VARIANTS = {
    "plain": {"weight": 0.0},
    "shadow": {},
    "sampling": {"keep": 0.5},
    "noise": {"control": "noise"},
    "shuffled": {"control": "shuffled", "keep": 0.7},
    "same": {"control": "same"},
    "consistency": {"labels": "consistency", "keep": 0.5},
    "net's labels": {"labels": "net"},
    "normalized": {"normalize": True, "weight": 3.0},
}


def make_net(kind: str) -> nn.Module:
    generator = torch.Generator().manual_seed(0)
    if kind == "mlp":
        return relu_mlp((1, 8, 8), (12, 10), 5, dropout=0.4, generator=generator).double()
    return small_cnn((1, 8, 8), 5, (4, 6), dropout=0.4, generator=generator).double()


def make_batch() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    x = torch.rand(ROWS, 1, 8, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    return x, torch.arange(ROWS) % 5, 100 + torch.arange(ROWS)


def gradient(loss: ShadowLoss, rows: slice) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Of the sum over these samples."""
    x, y, seeds = (part[rows] for part in make_batch())
    with use_streams(Streams(seeds)):
        total = loss(x, y) * len(x)
    return total.detach(), list(torch.autograd.grad(total, list(loss.shadow.net.parameters())))


@pytest.mark.parametrize("kind", ["mlp", "cnn"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_parts_of_a_batch_add_up_to_the_whole(variant, kind):
    loss = ShadowLoss(Shadow(make_net(kind), input_shape=(1, 8, 8)), **VARIANTS[variant])
    whole, expected = gradient(loss, slice(None))
    parts = [gradient(loss, slice(start, stop)) for start, stop in ((0, 4), (4, 5), (5, ROWS))]
    # float64 sums in another order
    torch.testing.assert_close(sum(value for value, _ in parts), whole, rtol=1e-12, atol=1e-12)
    for number, one in enumerate(expected):
        torch.testing.assert_close(
            sum(gradients[number] for _, gradients in parts), one, rtol=1e-10, atol=1e-12
        )


def test_dropout_and_sampling_by_hand_with_the_masks_of_the_streams():
    net = make_net("mlp")
    x, y, seeds = make_batch()
    with use_streams(Streams(seeds)):
        found = ShadowLoss(net, 2.0, keep=0.5)(x, y)

    streams = Streams(seeds)
    weights, biases = (
        [getattr(net, f"h{i}").get_parameter(n) for i in (1, 2, 3)] for n in ("weight", "bias")
    )

    def up(z: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        h: list[torch.Tensor] = []
        for weight, bias in zip(weights[:2], biases[:2], strict=True):
            h.append((z @ weight.T + bias).relu())
            z = h[-1] * streams.bernoulli(0.6, (len(bias),)) / 0.6
        return z @ weights[2].T + biases[2], h[1]

    logits, h2 = up(x.flatten(1))
    twin = h2.detach()
    for weight in (weights[1], weights[0]):
        twin = (twin @ weight.detach()).relu() * streams.bernoulli(0.5, (weight.shape[1],))
    twin = twin * x.flatten(1).norm(dim=1, keepdim=True) / twin.norm(dim=1, keepdim=True)
    expected = F.cross_entropy(logits, y) + 2 * F.cross_entropy(up(twin)[0], y)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=0)  # float64 rounding


def test_streams_can_be_given_in_place_of_a_generator():
    x, y, seeds = make_batch()
    net = relu_mlp((1, 8, 8), (12, 10), 5, generator=torch.Generator().manual_seed(0)).double()
    given = ShadowLoss(net, keep=0.5, generator=Streams(seeds))(x, y)
    with use_streams(Streams(seeds)):
        current = ShadowLoss(net, keep=0.5)(x, y)
        other = ShadowLoss(net, keep=0.5, generator=torch.Generator().manual_seed(0))(x, y)
    assert torch.equal(given, current)
    assert not torch.equal(given, other)


def test_masks_and_noise_are_those_of_the_streams():
    x, _, seeds = make_batch()
    assert torch.equal(
        drop(x.clone(), 0.3, Streams(seeds)), x * Streams(seeds).bernoulli(0.3, (1, 8, 8)).double()
    )
    noise = 0.25 * Streams(seeds).normal((1, 8, 8), torch.float64)
    twin = x + noise
    twin = twin * (x.flatten(1).norm(dim=1) / twin.flatten(1).norm(dim=1))[:, None, None, None]
    torch.testing.assert_close(
        noisy(x, 0.25, Streams(seeds)), twin, rtol=1e-14, atol=1e-15
    )  # float64 rounding
