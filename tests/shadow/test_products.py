"""Products of computed tensors, constants in concatenations, norms and maxima as function calls."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from obverse import BadInput, Shadow
from obverse.shadow import recovery


def tokens(count: int = 40) -> Tensor:
    return torch.randn(count, 5, 8, generator=torch.Generator().manual_seed(1))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.a, self.b, self.c = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)
        self.head = nn.Linear(8, 6)


class ValuesFirst(Net):
    """The weights of attention on the right, as nets with channels first have it."""

    def forward(self, x: Tensor) -> Tensor:
        weights = torch.softmax(self.a(x) @ self.b(x).mT, -1)
        return self.head((self.c(x).mT @ weights.mT).mT)


class SwiGLU(Net):
    def forward(self, x: Tensor) -> Tensor:
        return self.head(F.silu(self.a(x)) * self.b(x))


class Bilinear(Net):
    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.a(x) * self.b(x))


class LinearAttention(Net):
    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.a(x) @ (self.b(x).mT @ self.c(x)))


def sources(shadow: Shadow, kind: str) -> list[list[str]]:
    stages = shadow.graph.stages
    return [[stages[i].name for i in s.inputs] for s in stages if type(s.module).__name__ == kind]


def test_attention_goes_down_by_its_values_on_either_side():
    shadow = Shadow(ValuesFirst(), input_shape=(5, 8), reverse="fitted")
    assert "c" in shadow.layers
    assert "a" not in shadow.layers  # queries and keys are asked for nothing
    (attended,) = sources(shadow, "Attention")
    assert attended[0].startswith("getattr") or "transpose" in attended[0] or "mT" in attended[0]
    x = tokens()
    shadow.calibrate(x)
    errors = recovery(shadow, x, layers=["c", "head"]).errors
    assert errors["c"] < 1e-3  # eight numbers of eight, linearly


def test_a_factor_behind_an_activation_is_a_gate():
    shadow = Shadow(SwiGLU(), input_shape=(5, 8))
    (gated,) = sources(shadow, "Gate")
    assert gated == ["b"]
    shadow.calibrate(tokens())
    assert bool(shadow.of(tokens(3), "head").isfinite().all())


@pytest.mark.parametrize("kind", [Bilinear, LinearAttention])
def test_any_other_product_is_fitted_on_both_sides_and_has_no_transpose(kind):
    with pytest.raises(BadInput, match='reverse="fitted"'):
        Shadow(kind(), input_shape=(5, 8))
    shadow = Shadow(kind(), input_shape=(5, 8), reverse="fitted")
    assert {"a", "b"} <= set(shadow.layers)
    assert ["a", "b"] in sources(shadow, "Product") or len(sources(shadow, "Product")) == 2
    assert not sources(shadow, "Attention")
    x = tokens(60)
    shadow.calibrate(x)
    h = shadow.infer(x, "head")
    found = shadow.sample(h, "head")
    assert found.shape == x.shape
    assert bool(found.isfinite().all())


def test_constants_beside_several_computed_parts():
    class Registers(Net):
        def __init__(self) -> None:
            super().__init__()
            self.token, self.registers = nn.Parameter(torch.ones(1, 1, 8)), nn.Parameter(torch.ones(1, 3, 8))

        def forward(self, x: Tensor) -> Tensor:
            count = x.shape[0]
            x = torch.cat((self.token.expand(count, -1, -1), self.a(x)), 1)
            x = torch.cat((x[:, :1], self.registers.expand(count, -1, -1), x[:, 1:]), 1)
            return self.head(F.relu(self.b(x)))

    net, x = Registers().eval(), tokens()
    for reverse in ("transpose", "fitted"):
        shadow = Shadow(net, reverse=reverse)
        shadow.calibrate(x)
        torch.testing.assert_close(shadow.infer(x, "head"), net(x))
        assert shadow.of(x, "head").shape == x.shape
        assert recovery(shadow, x, layers=["b"]).errors["b"] < 1
    # What comes down to the tokens stands at their places, behind the token and the registers.
    shadow = Shadow(net, signed=True)
    h = torch.zeros(2, 9, 8)
    h[:, 4] = 1.0
    down = shadow.sample(h, "b", input_shape=(5, 8))
    assert not bool(down[:, 1:].any())
    assert bool(down[:, 0].any())


def test_stacked_tensors_are_told_apart():
    class Stacks(Net):
        def forward(self, x: Tensor) -> Tensor:
            both = torch.stack((self.a(x), self.b(x)), dim=2)
            weights = torch.softmax(self.c(both.sum(2)), -1)
            return self.head((both * weights.unsqueeze(2)).sum(2))

    net, x = Stacks().eval(), tokens()
    shadow = Shadow(net, signed=True)
    assert {"a", "b", "head"} <= set(shadow.layers)
    torch.testing.assert_close(shadow.infer(x, "head"), net(x))
    shadow.calibrate(x)
    assert bool(shadow.of(x, "head").isfinite().all())


def test_norms_as_calls_are_those_of_the_modules():
    class Calls(Net):
        def __init__(self) -> None:
            super().__init__()
            self.weight, self.bias = nn.Parameter(torch.rand(8) + 0.5), nn.Parameter(torch.rand(8))

        def forward(self, x: Tensor) -> Tensor:
            return self.head(F.relu(F.layer_norm(self.a(x), (8,), self.weight, self.bias, 1e-3)))

    class Modules(Net):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.LayerNorm(8, 1e-3)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(F.relu(self.norm(self.a(x))))

    calls, modules, x = Calls(), Modules(), tokens()
    modules.load_state_dict(
        {
            "norm." + name if name in ("weight", "bias") else name: value
            for name, value in calls.state_dict().items()
        }
    )
    found = []
    for net in (calls, modules):
        shadow = Shadow(net, signed=True)
        shadow.calibrate(x)
        found.append(shadow.of(x, "head"))
    torch.testing.assert_close(*found)


@pytest.mark.parametrize(
    "norm",
    [
        lambda x: F.group_norm(x.mT, 2).mT,
        lambda x: F.normalize(x, dim=-1),
        nn.RMSNorm(8),
    ],
)
def test_other_norms(norm):
    class Normed(Net):
        def __init__(self) -> None:
            super().__init__()
            self.norm = norm

        def forward(self, x: Tensor) -> Tensor:
            return self.head(F.relu(self.b(self.norm(self.a(x)))))

    net, x = Normed(), tokens()
    shadow = Shadow(net, signed=True)
    shadow.calibrate(x)
    h = shadow.infer(x, "b")
    # c·h gives c·x̃ in a chain of norms that are fixed factors, before calibration's level is added
    plain = Shadow(net, signed=True)
    plain._statistics.reference = x
    one, two = (plain.sample(factor * h, "b", input_shape=(5, 8)) for factor in (1.0, 2.0))
    torch.testing.assert_close(two, 2 * one, rtol=1e-4, atol=1e-5)
    assert recovery(shadow, x, layers=["b"]).errors["b"] < 1


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("call", ["amax", "max", "method"])
def test_maxima_over_a_dimension_go_back_to_all_of_it(call, keep):
    class Pools(Net):
        def forward(self, x: Tensor) -> Tensor:
            x = F.relu(self.a(x))
            if call == "amax":
                x = torch.amax(x, 1, keepdim=keep)
            elif call == "max":
                x = torch.max(x, 1, keepdim=keep)[0]
            else:
                x, _ = x.max(dim=1, keepdim=keep)
            return self.head(x)

    net, x = Pools(), tokens()
    shadow = Shadow(net, signed=True)
    torch.testing.assert_close(shadow.infer(x, "head"), net(x))
    down = shadow.of(x, "head")
    torch.testing.assert_close(down, down[:, :1].expand_as(down))
    fitted = Shadow(net, reverse="fitted")
    fitted.calibrate(x)
    assert fitted.of(x, "head").shape == x.shape


def test_sizes_are_read_off_other_tensors():
    class Pyramid(nn.Module):
        """Sums of maps of several sizes, the coarse ones enlarged to the size of the fine ones."""

        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.low, self.high = nn.Conv2d(1, 4, 3, 2, 1), nn.Conv2d(4, 4, 3, 2, 1)
            self.side, self.top = nn.Conv2d(4, 4, 1), nn.Conv2d(4, 4, 1)

        def forward(self, x: Tensor) -> dict[str, Tensor]:
            low = F.relu(self.low(x))
            top = self.top(F.relu(self.high(low)))
            fine = self.side(low) + F.interpolate(top, size=low.shape[-2:], mode="nearest")
            return {"fine": fine, "coarse": top}

    net = Pyramid().eval()
    x = torch.rand(30, 1, 9, 9, generator=torch.Generator().manual_seed(0))
    for reverse in ("transpose", "fitted"):
        shadow = Shadow(net, reverse=reverse)
        shadow.calibrate(x)
        name = next(name for name, layer in shadow.graph.layers.items() if not layer.is_map)
        torch.testing.assert_close(shadow.infer(x, name), net(x)["fine"])
        assert shadow.of(x, name).shape == x.shape
