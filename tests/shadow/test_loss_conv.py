"""ShadowLoss on convolutional and residual nets: values, batch norm, precision, memory format, compile."""

import copy
import warnings

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from obverse._core.errors import BadInput
from obverse.nets import small_cnn, small_resnet
from obverse.shadow import Shadow, ShadowLoss
from obverse.shadow import _adjust as adjust

SHAPE, CLASSES = (3, 8, 8), 4


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def batch(rows: int = 12, dtype=torch.float64):
    x = torch.rand(rows, *SHAPE, generator=seeded(5), dtype=dtype)
    return x, torch.arange(rows) % CLASSES


def make(kind, dtype=torch.float64) -> nn.Sequential:
    return kind(SHAPE, CLASSES, (6, 8), generator=seeded()).to(dtype)


KINDS = pytest.mark.parametrize("kind", [small_cnn, small_resnet])


class Functional(nn.Module):
    """A net as many are written: activations, pooling and dropout as function calls."""

    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 6, 3, padding=1), nn.Conv2d(6, 8, 3, padding=1)
        self.fc = nn.Linear(8 * 4 * 4, CLASSES)
        self.rate = 0.0

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.relu(self.conv2(x), inplace=True)
        x = F.dropout(x, self.rate, self.training)
        return self.fc(x.view(x.size(0), -1))


@KINDS
@pytest.mark.parametrize("training", [True, False])
def test_the_loss_is_the_formula(kind, training):
    net, (x, y) = make(kind).train(training), batch()
    plain = copy.deepcopy(net)
    shadow = Shadow(plain)
    layer = shadow.default_layer
    # h as the very pass over x computes it, read by a hook of our own
    seen = []
    plain.get_submodule("relu2" if kind is small_cnn else layer).register_forward_hook(
        lambda module, args, output: seen.append(output.detach().clone())
    )
    first = F.cross_entropy(plain(x), y)
    with torch.no_grad():  # batch norm of the reverse: the statistics after the pass over x
        twin = adjust.match_norm(shadow.sample(seen[0], layer, input_shape=SHAPE), x)
    second = F.cross_entropy(plain(twin), y)
    (first + 0.5 * second).backward()
    loss = ShadowLoss(net, weight=0.5)
    value = loss(x, y)
    value.backward()
    torch.testing.assert_close(value, (first + 0.5 * second).detach())
    for mine, other in zip(net.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, other.grad)


def test_batch_norm_statistics_are_those_of_the_real_data_alone():
    net, (x, y) = make(small_resnet).train(), batch()
    reference = copy.deepcopy(net)
    loss = ShadowLoss(net, weight=1.0)
    for _ in range(3):
        loss(x, y).backward()
        reference(x)
    assert any(int(buffer) == 3 for name, buffer in net.named_buffers() if name.endswith("tracked"))
    for (name, mine), other in zip(net.named_buffers(), reference.buffers(), strict=True):
        assert torch.equal(mine, other), name
    # and shadows would have changed them: the naive second pass does
    naive = copy.deepcopy(net)
    naive(Shadow(net).of(x))
    assert not torch.equal(naive.stem[1].running_mean, net.stem[1].running_mean)


def test_h_of_a_function_call_is_that_of_the_pass_with_its_dropout():
    net, (x, y) = Functional().double().train(), batch()
    net.rate = 0.5
    loss = ShadowLoss(net, weight=1.0)
    assert loss.layer == "conv2"
    torch.manual_seed(3)
    logits, h = loss._forward_with_hidden(x)
    torch.manual_seed(3)
    torch.testing.assert_close(logits, net(x))
    torch.testing.assert_close(h, Shadow(net).infer(x, "conv2"))  # before the dropout
    torch.manual_seed(3)
    loss(x, y).backward()
    assert all(parameter.grad is not None for parameter in net.parameters())
    net.eval()
    logits, _ = loss._forward_with_hidden(x)
    torch.testing.assert_close(logits, net(x))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [small_cnn, small_resnet, Functional])
def test_training_learns_and_shadows_are_learned_too(kind):
    torch.manual_seed(0)
    net = kind().float() if kind is Functional else make(kind, torch.float32)
    # four classes: which quarter of the image is bright
    x = 0.2 * torch.rand(128, *SHAPE, generator=seeded(1))
    y = torch.arange(128) % CLASSES
    for row, label in enumerate(y.tolist()):
        i, j = 4 * (label // 2), 4 * (label % 2)
        x[row, :, i : i + 4, j : j + 4] += 0.6
    loss = ShadowLoss(net, weight=1.0, normalize=True)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for _ in range(60):
        optimizer.zero_grad()
        loss(x, y).backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        assert (net(x).argmax(1) == y).double().mean() == 1
        twin = Shadow(net).of(x, match_norm=True)
        assert (net(twin).argmax(1) == y).double().mean() > 0.9


@KINDS
@pytest.mark.parametrize("control", ["same", "noise", "shuffled"])
def test_controls_work_and_shuffled_follows_the_weights(kind, control):
    net, (x, y) = make(kind), batch()
    loss = ShadowLoss(net, weight=1.0, control=control, generator=seeded())
    assert loss(x, y).isfinite()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.mul_(1.5)
    loss(x, y)
    if control == "shuffled":
        for copied, original in zip(loss._shuffled.copy.parameters(), net.parameters(), strict=True):
            torch.testing.assert_close(
                copied.flatten().sort().values, original.detach().flatten().sort().values
            )


@KINDS
def test_mixed_precision(kind):
    net, (x, y) = make(kind, torch.float32).train(), batch(dtype=torch.float32)
    exact = ShadowLoss(copy.deepcopy(net))(x, y)
    loss = ShadowLoss(net)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = loss(x, y)
    value.backward()
    # bfloat16 keeps 8 bits: a few roundings of 2⁻⁸ each way through some ten layers
    torch.testing.assert_close(value, exact, rtol=0.1, atol=0.0)
    assert all(p.grad.dtype == torch.float32 and p.grad.isfinite().all() for p in net.parameters())
    half = Shadow(net.bfloat16())
    shadow = half.of(x.bfloat16())
    assert shadow.dtype == torch.bfloat16
    assert shadow.isfinite().all()


@KINDS
def test_channels_last_gives_the_same_numbers(kind):
    net, (x, y) = make(kind).train(), batch()
    other = copy.deepcopy(net).to(memory_format=torch.channels_last)
    first = ShadowLoss(net)(x, y)
    second = ShadowLoss(other)(x.contiguous(memory_format=torch.channels_last), y)
    torch.testing.assert_close(first, second)
    first.backward()
    second.backward()
    for mine, theirs in zip(net.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad)


@pytest.mark.slow  # a compiler runs
def test_compile_after_the_loss_works_and_before_it_is_declined():
    net, (x, y) = make(small_resnet).train(), batch()
    expected = ShadowLoss(copy.deepcopy(net))(x, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own, about graph breaks
        compiled = torch.compile(ShadowLoss(net), backend="eager")
        torch.testing.assert_close(compiled(x, y), expected)
    with pytest.raises(
        BadInput, match=r"expected a module that torch.compile has not replaced; got .*; make the"
    ):
        ShadowLoss(torch.compile(net, backend="eager"))


def test_a_floor_or_signed_shadow_is_not_warned_about():
    x, y = batch()
    for options in ({"signed": True}, {"floor": -1.0}):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ShadowLoss(Shadow(make(small_cnn), **options))(x - 0.5, y)
    with pytest.warns(UserWarning, match="expected inputs ≥ 0"):
        ShadowLoss(make(small_cnn))(x - 0.5, y)
