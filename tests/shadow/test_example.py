"""Nets whose code torch.fx cannot follow are run on an example: the same values, and shadows."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from obverse import BadInput, Shadow
from obverse.shadow import recovery


def images(count: int = 24) -> Tensor:
    return torch.rand(count, 2, 8, 8, generator=torch.Generator().manual_seed(0))


@dataclass
class Output:
    logits: Tensor
    states: tuple[Tensor, ...] | None = None


class Base(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)
        self.head = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.head(F.relu(self.second(F.relu(self.first(x)))).mean((2, 3)))
        return result


class Loops(Base):
    """Over the parts of a split."""

    def forward(self, x: Tensor) -> Tensor:
        parts = torch.split(F.relu(self.first(x)), [1, 3], 1)
        x = torch.cat([part * (place + 1) for place, part in enumerate(parts)], 1)
        return self.head(F.relu(self.second(x)).mean((2, 3)))


class Asks(Base):
    """About types, devices and sizes, and pads by what it computes from them."""

    def forward(self, x: Tensor) -> Tensor:
        if not isinstance(x, Tensor) or x.dim() != 4 or not torch.is_floating_point(x):
            raise TypeError("images")
        extra = int(float(x.shape[-1]) ** 0.5 // 2)
        x = F.relu(self.first(F.pad(x, (extra, extra, extra, extra))))
        if min(x.shape[2:]) > 4:
            x = F.max_pool2d(x, 2)
        return self.head(F.relu(self.second(x)).mean((2, 3)))


class Batches(Base):
    """Writes the size of the batch into its shapes."""

    def forward(self, x: Tensor) -> Tensor:
        count = len(x)
        x = F.relu(self.first(x)).reshape(count, 2 * 128).reshape(count, 4, 8, 8)
        x = F.relu(self.second(x)).view(int(count), 4, -1)
        return self.head(torch.amax(x, 2))


class Structured(Base):
    """Returns a dataclass with its states."""

    def forward(self, x: Tensor, states: bool = True) -> Output:  # type: ignore[override]
        a = F.relu(self.first(x))
        b = F.relu(self.second(a))
        logits = self.head(b.mean((2, 3)))
        return Output(logits, (a, b) if len(a) > 0 and states else None)


class Mapped(Base):
    def forward(self, x: Tensor) -> dict[str, Tensor]:  # type: ignore[override]
        a = F.relu(self.first(x))
        found = OrderedDict(low=a, high=F.relu(self.second(a)))
        found["out"] = self.head(sum(one.mean((2, 3)) for one in found.values()))
        return found


class InPlace(Base):
    """Changes what it has, in place, and reads it again."""

    def forward(self, x: Tensor) -> Tensor:
        a = self.first(x)
        kept = a
        kept += 0.25
        a.relu_()
        for _ in range(len(x) // len(x)):
            kept = kept + self.second(a)
        return self.head(F.relu(kept, inplace=True).mean((2, 3)))


@pytest.mark.parametrize("kind", [Loops, Asks, Batches, Structured, Mapped, InPlace])
@pytest.mark.parametrize("reverse", ["transpose", "fitted"])
def test_what_runs_is_followed(kind, reverse):
    net, x = kind().eval(), images()
    shadow = Shadow(net, input_shape=(2, 8, 8), reverse=reverse)
    assert {"first", "second", "head"} <= set(shadow.layers)
    own = net(x[:5])
    logits = own.logits if isinstance(own, Output) else own["out"] if isinstance(own, dict) else own
    # the same operations on a batch of another size than it was traced on
    torch.testing.assert_close(shadow.infer(x[:5], "head"), logits, rtol=1e-5, atol=1e-6)
    shadow.calibrate(x)
    errors = recovery(shadow, x).errors
    assert all(torch.tensor(list(errors.values())).isfinite())
    if reverse == "fitted":
        first = shadow.hidden(x, ["first"])["first"]
        mean = float((first - first.mean(0)).square().sum() / first.square().sum())
        assert errors["first"] < mean
        assert all(one.tensor != "" for one in shadow.fitted("head").steps)


def test_without_a_shape_the_error_says_that_one_helps():
    with pytest.raises(BadInput, match=r"input_shape=….*run on an example"):
        Shadow(Loops())


def test_a_net_that_only_one_trace_gets_right_is_found_out():
    class Optional(Base):
        """torch.fx takes a proxy for something else than a tensor."""

        def forward(self, x: Tensor) -> Tensor:
            a = self.first(x)
            b = F.relu(a) if isinstance(a, Tensor) else a
            return self.head(self.second(b).mean((2, 3)))

    net, x = Optional().eval(), images(6)
    shadow = Shadow(net, input_shape=(2, 8, 8))
    torch.testing.assert_close(shadow.infer(x, "head"), net(x), rtol=1e-5, atol=1e-6)
    assert "relu" in str([stage.name for stage in shadow.graph.stages])
    with pytest.raises(BadInput, match=r"input_shape=…"):
        Shadow(net).of(x)


def test_steps_that_depend_on_how_many_inputs_there_are_are_refused():
    class Odd(Base):
        def forward(self, x: Tensor) -> Tensor:
            a = F.relu(self.first(x))
            if len(x) % 2:
                a = F.relu(self.second(a))
            return self.head(a.mean((2, 3)))

    with pytest.raises(BadInput, match="the same for every batch"):
        Shadow(Odd(), input_shape=(2, 8, 8))


def test_parts_that_are_assigned_are_refused():
    class Assigns(Base):
        def forward(self, x: Tensor) -> Tensor:
            a = F.relu(self.first(x)) * float(len(x.shape))
            a[:, 0] = 0
            return self.head(a.mean((2, 3)))

    with pytest.raises(BadInput, match=r"assigns to no part.*test_example.py"):
        Shadow(Assigns(), input_shape=(2, 8, 8))


def test_weights_are_read_anew():
    net, x = Loops().eval(), images(4)
    shadow = Shadow(net, input_shape=(2, 8, 8))
    with torch.no_grad():
        net.first.weight.mul_(-1.5)
    torch.testing.assert_close(shadow.infer(x, "head"), net(x), rtol=1e-5, atol=1e-6)


def test_calls_of_modules_are_as_before():
    before = nn.Module.__call__
    Shadow(Loops(), input_shape=(2, 8, 8))
    with pytest.raises(BadInput):
        Shadow(nn.Sequential(Loops(), nn.Linear(7, 2)), input_shape=(2, 8, 8))
    assert nn.Module.__call__ is before


class Window(nn.Module):
    """Attention within windows that are folded into the batch, as Swin writes it."""

    def __init__(self, pair: bool) -> None:
        super().__init__()
        self.qkv, self.back, self.pair = nn.Linear(8, 24), nn.Linear(8, 8), pair

    def forward(self, x: Tensor) -> Tensor | tuple[Tensor, None]:
        count, height, width, channels = x.shape
        windows = x.reshape(count, height // 2, 2, width // 2, 2, channels).transpose(2, 3)
        q, k, v = self.qkv(windows.reshape(-1, 4, channels)).chunk(3, -1)
        y = self.back(F.scaled_dot_product_attention(q, k, v))
        y = y.reshape(count, height // 2, width // 2, 2, 2, channels).transpose(2, 3).reshape(x.shape)
        return (y, None) if self.pair else y


class Windows(nn.Module):
    def __init__(self, pair: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.patch, self.wide = nn.Conv2d(2, 8, 2, 2), nn.Linear(8, 32)
        self.mix, self.narrow, self.head = Window(pair), nn.Linear(32, 8), nn.Linear(128, 64)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patch(x).permute(0, 2, 3, 1)
        y = self.mix(x)
        x = x + (y[0] if isinstance(y, tuple) else y)
        x = x + self.narrow(F.relu(self.wide(x)))
        return self.head(x.flatten(1))


@pytest.mark.parametrize("pair", [False, True])
def test_a_module_that_folds_the_batch_is_fitted_as_a_whole(pair):
    net, x = Windows(pair).eval(), images(60)
    with pytest.raises(BadInput, match=r"reverse=|keep the batch"):
        Shadow(net, input_shape=(2, 8, 8))
    shadow = Shadow(net, input_shape=(2, 8, 8), reverse="fitted")
    assert {"patch", "wide", "narrow", "head"} <= set(shadow.layers)
    assert ("mix" in shadow.layers) is not pair  # of a pair the sum above it is the layer
    assert not any(name.startswith("mix.") for name in shadow.layers)
    torch.testing.assert_close(shadow.infer(x, "head"), net(x), rtol=1e-5, atol=1e-6)
    shadow.calibrate(x[:50])
    errors = recovery(shadow, x[50:]).errors
    for name, h in shadow.hidden(x[50:]).items():
        mean = float((h - h.mean(0)).square().sum() / h.square().sum())
        assert errors[name] < 0.5 * mean, name


def test_the_better_half_of_a_net_is_no_block():
    class Sine(nn.Module):
        """More than half of the weights are in what cannot be followed."""

        def __init__(self) -> None:
            super().__init__()
            self.a, self.body = nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 40), Sin(), nn.Linear(40, 4))
            self.top = nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.top(self.body(self.a(x)))

    class Sin(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.sin(x)

    shadow = Shadow(Sine(), input_shape=(4,), reverse="fitted")
    assert set(shadow.layers) == {"a", "body.0", "body.1", "body.2", "top"}  # the sine alone is the block

    class Inner(Sine):
        def forward(self, x: Tensor) -> Tensor:
            return self.top(torch.sin(self.body(self.a(x))))

    with pytest.raises(BadInput, match="a call of sin"):
        Shadow(Inner(), input_shape=(4,), reverse="fitted")
