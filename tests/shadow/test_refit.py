"""Fitted shadows in training: fits follow the weights, on the last inputs, each of which counts once."""

import pytest
import torch
from torch import nn

from obverse import BadInput, Shadow, ShadowLoss
from obverse.shadow._refit import RECENT, distinct

SHAPE, ROWS = (1, 4, 4), 20


def make_net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 12), nn.ReLU(), nn.Linear(12, 3)).double()


def batch(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(ROWS, *SHAPE, generator=generator, dtype=torch.float64), torch.arange(ROWS) % 3


def reference(net: nn.Module, inputs: torch.Tensor) -> Shadow:
    shadow = Shadow(net, reverse="fitted")
    shadow.calibrate(inputs)
    return shadow


def twins(loss: ShadowLoss, x: torch.Tensor) -> torch.Tensor:
    return loss.twin(x, loss.shadow.infer(x, loss.layer))


def test_fits_are_made_at_the_first_batch_and_every_so_many_after_it() -> None:
    net = make_net()
    loss = ShadowLoss(net, reverse="fitted", refit=3, match_norm=False)
    first = None
    for step in range(7):
        x, _ = batch(step)
        found = twins(loss, x)
        if step % 3 == 0:
            seen = torch.cat([batch(one)[0] for one in range(step + 1)])
            first = reference(net, seen)
        assert first is not None
        # between fits: the same maps, whatever the weights have become
        torch.testing.assert_close(found, first.from_hidden(x, first.infer(x)))
        with torch.no_grad():  # a step of training
            for weight in net.parameters():
                weight.add_(0.05 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(step)))


def test_the_last_inputs_are_kept_and_no_more() -> None:
    net = make_net()
    loss = ShadowLoss(net, reverse="fitted", refit=20, match_norm=False)
    for step in range(21):
        x, _ = batch(step)
        found = twins(loss, x)
    last = torch.cat([batch(one)[0] for one in range(21)])[-RECENT:]
    assert len(last) == RECENT < 21 * ROWS
    torch.testing.assert_close(found, reference(net, last).of(x))


def test_inputs_that_came_twice_count_once() -> None:
    x = torch.tensor([[2.0, 0.0], [1.0, 1.0], [2.0, 0.0], [0.0, 3.0], [1.0, 1.0]])
    assert torch.equal(distinct(x), x[[0, 1, 3]])
    net = make_net()
    loss = ShadowLoss(net, reverse="fitted", refit=2, match_norm=False)
    x, _ = batch(0)
    for _ in range(3):
        found = twins(loss, x)
    torch.testing.assert_close(found, reference(net, x).of(x))


def test_a_calibrated_shadow_keeps_its_fits_until_it_is_time() -> None:
    net, (x, _), (other, _) = make_net(), batch(0), batch(1)
    for refit, inputs in ((0, x), (2, torch.cat((other, other, other)))):
        loss = ShadowLoss(reference(net, x), refit=refit, match_norm=False)
        torch.testing.assert_close(twins(loss, other), reference(net, x).of(other))
        twins(loss, other)
        torch.testing.assert_close(twins(loss, other), reference(net, distinct(inputs)).of(other))


def test_the_shuffled_control_is_fitted_too() -> None:
    net, (x, _) = make_net(), batch(0)
    loss = ShadowLoss(net, reverse="fitted", control="shuffled", match_norm=False)
    found = twins(loss, x)
    copy = loss._shuffled.refresh()
    wanted = reference(copy, x)
    torch.testing.assert_close(found, wanted.from_hidden(x, loss.shadow.infer(x)))
    assert not torch.allclose(found, reference(net, x).of(x))


def test_training_with_it_lowers_the_loss() -> None:
    net, (x, y) = make_net(), batch(0)
    loss = ShadowLoss(net, reverse="fitted", refit=5)
    optimizer = torch.optim.SGD(net.parameters(), 0.3)
    values = []
    for _ in range(120):
        optimizer.zero_grad()
        value = loss(x, y)
        value.backward()
        optimizer.step()
        values.append(value.item())
    assert values[-1] < 0.7 * values[0]


@pytest.mark.parametrize("refit", [-1, 1.5, True])
def test_wrong_settings_are_a_sentence(refit: object) -> None:
    with pytest.raises(BadInput, match="refit ≥ 0 batches"):
        ShadowLoss(make_net(), reverse="fitted", refit=refit)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="one reverse, that of the Shadow"):
        ShadowLoss(Shadow(make_net()), reverse="fitted")
    with pytest.raises(BadInput, match="reverse out of"):
        ShadowLoss(make_net(), reverse="inverse")  # type: ignore[arg-type]
    small = ShadowLoss(make_net(), reverse="fitted")
    with pytest.raises(BadInput, match="at least 8 inputs"):
        twins(small, batch(0)[0][:7])
