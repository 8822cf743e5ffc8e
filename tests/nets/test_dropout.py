"""SampleDropout: nn.Dropout, with masks that belong to samples where there are streams."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch
from torch import nn

from obverse import BadInput
from obverse._core.random import Streams, use_streams
from obverse.nets import relu_mlp
from obverse.nets._dropout import SampleDropout
from obverse.nets._small_conv import small_cnn, small_resnet
from obverse.shadow import Shadow


def some(count: int) -> Streams:
    return Streams(torch.arange(count))


@pytest.mark.parametrize("inplace", [False, True])
def test_without_streams_it_is_torchs_own_to_the_bit(inplace):
    x = torch.rand(5, 4)
    for p in (0.0, 0.3, 1.0):
        own, theirs = SampleDropout(p, inplace), nn.Dropout(p)
        torch.manual_seed(3)
        expected = theirs(x)
        torch.manual_seed(3)
        assert torch.equal(own(x.clone()), expected)
        assert torch.equal(own.eval()(x.clone()), x)


@pytest.mark.parametrize("inplace", [False, True])
def test_with_streams_the_mask_is_theirs_and_the_rest_is_scaled_up(inplace):
    x = torch.rand(5, 2, 3, dtype=torch.float64)
    dropout, streams = SampleDropout(0.3, inplace), some(5)
    for draw in range(2):
        given = x.clone()
        with use_streams(streams):
            out = dropout(given)
        expected = some(5)
        for _ in range(draw):
            expected.bernoulli(0.7, ())
        # 1/0.7 is rounded once, and so is the product: two units in the last place
        torch.testing.assert_close(
            out, x * expected.bernoulli(0.7, (2, 3)) / 0.7, rtol=2 * torch.finfo().eps, atol=0
        )
        assert (out is given) is inplace


def test_with_streams_nothing_is_drawn_where_nothing_is_dropped():
    x, streams = torch.rand(4, 6), some(4)
    with use_streams(streams):
        assert torch.equal(SampleDropout(0.5).eval()(x), x)
        assert torch.equal(SampleDropout(0.0)(x), x)
        assert torch.equal(SampleDropout(1.0)(x), torch.zeros(4, 6))
    assert torch.equal(streams.bits(3), some(4).bits(3))


def test_gradients_pass_where_the_mask_lets_them():
    x = torch.rand(3, 4, requires_grad=True)
    with use_streams(some(3)):
        SampleDropout(0.5)(x).sum().backward()
    assert torch.equal(x.grad, 2 * some(3).bernoulli(0.5, (4,)).float())


def test_a_batch_that_is_not_that_of_the_streams_is_refused():
    with use_streams(some(3)), pytest.raises(BadInput, match="a batch of 3, one for each stream"):
        SampleDropout(0.5)(torch.rand(4, 2))


NETS = {
    "mlp": lambda dropout: relu_mlp((3, 8, 8), (6, 5), 4, dropout=dropout),
    "cnn": lambda dropout: small_cnn((3, 8, 8), 4, (3, 4), dropout=dropout),
    "resnet": lambda dropout: small_resnet((3, 8, 8), 4, (3, 4), dropout=dropout),
}


@pytest.mark.parametrize("name", NETS)
def test_nets_draw_sample_by_sample_and_their_weights_keep_their_names(name):
    torch.manual_seed(0)
    net = NETS[name](0.5)
    assert net.state_dict().keys() == NETS[name](0.0).state_dict().keys()
    net.load_state_dict({key: value + 0.1 for key, value in net.state_dict().items()})
    for module in net.modules():  # batch norm mixes samples, which is not what is looked at here
        if isinstance(module, nn.BatchNorm2d):
            module.eval()
    x, seeds = torch.rand(6, 3, 8, 8), torch.arange(6)

    def run(net: nn.Module, rows: list[int]) -> torch.Tensor:
        with use_streams(Streams(seeds[rows])):
            return net(x[rows])

    whole = run(net, [0, 1, 2, 3, 4, 5])
    for rows in ([2, 0], [5], [3, 4, 1]):
        torch.testing.assert_close(run(net, rows), whole[rows])  # float32 sums of another batch size
        torch.testing.assert_close(run(deepcopy(net), rows), whole[rows])
    assert not torch.equal(whole, net.eval()(x))


@pytest.mark.parametrize("name", NETS)
def test_a_shadow_passes_through_it(name):
    torch.manual_seed(0)
    with_dropout, without = NETS[name](0.5), NETS[name](0.0)
    without.load_state_dict(with_dropout.state_dict())
    x = torch.rand(4, 3, 8, 8)
    shadows = [Shadow(net.eval(), input_shape=(3, 8, 8)) for net in (with_dropout, without)]
    assert shadows[0].layers == shadows[1].layers
    assert torch.equal(shadows[0].of(x), shadows[1].of(x))
