"""Shapes, constants and function calls: adjoints by the dot-product test, calls against their modules."""

from collections.abc import Callable
from functools import partial
from math import prod

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

from obverse.shadow import Activation, Norm, Rule, Shadow, Stage, trace
from obverse.shadow._generate import probe_energy
from obverse.shadow._reversal import find_rule

EPS = torch.finfo(torch.float64).eps


def rand(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


class Net(nn.Module):
    """One function below a linear layer; with constants, a function of (net, x)."""

    def __init__(self, function: Callable, width: int = 1, **constants: Tensor) -> None:
        super().__init__()
        self._function = partial(function, self) if constants else function
        for name, value in constants.items():
            setattr(self, name, nn.Parameter(value))
        self.top = nn.Linear(width, width, bias=False, dtype=torch.float64)
        nn.init.eye_(self.top.weight)

    def forward(self, x):
        return self.top(self._function(x))


def stage_of(function: Callable, **constants: Tensor) -> Stage:
    """The stage just below the top of such a net."""
    graph = trace(Net(function, **constants))
    (layer,) = graph.layers.values()
    stage = graph.stages[layer.stage.inputs[0]]
    assert stage.inputs == (0,)  # one step from the input
    return stage


@torch.no_grad()
def check_adjoint(
    module: nn.Module, rule: Rule, shape: tuple[int, ...], forward: Callable | None = None
) -> None:
    """⟨Ax, y⟩ = ⟨x, Aᵀy⟩: sums of at most inputs + outputs products y·A·x, each rounded to ε."""
    forward = module if forward is None else forward
    x = rand(1, *shape, seed=1)
    y = rand(*forward(x).shape, seed=2)
    basis = torch.eye(prod(shape), dtype=torch.float64).reshape(-1, *shape)
    matrix = torch.stack([forward(one[None]).flatten() for one in basis], 1)  # some forms take one at a time
    up = (forward(x) * y).sum()
    back = rule.reverse(module, y, shape)
    assert back.shape == x.shape
    size = y.abs().flatten() @ matrix.abs() @ x.abs().flatten()
    assert abs(float(up - (back * x).sum())) <= 2 * (x.numel() + y.numel()) * EPS * float(size)


# Linear functions of one tensor


LINEAR = {
    "mean": lambda x: x.mean((2, 3)),
    "mean, kept": lambda x: torch.mean(x, dim=(2, 3), keepdim=True),
    "mean of one": lambda x: x.mean(-1),
    "sum": lambda x: x.sum(1),
    "sum of": lambda x: torch.sum(x, (1, 2)),
    "permute": lambda x: x.permute(0, 2, 3, 1),
    "torch.permute": lambda x: torch.permute(x, (0, 3, 1, 2)),
    "transpose": lambda x: x.transpose(1, -1),
    "torch.transpose": lambda x: torch.transpose(x, 2, 3),
    "movedim": lambda x: x.movedim(1, 3),
    "swapaxes": lambda x: torch.swapaxes(x, 1, 2),
    "flip": lambda x: x.flip(2),
    "torch.flip": lambda x: torch.flip(x, (1, 3)),
    "narrow": lambda x: x.narrow(2, 1, 2),
    "select": lambda x: x.select(2, 1),
    "expand": lambda x: x[:, :, :1].expand(-1, -1, 3, -1),
    "repeat": lambda x: x.repeat(1, 2, 1, 1),
    "neg": lambda x: -x,
    "interpolate": lambda x: F.interpolate(x, scale_factor=2),
    "interpolate, bilinear": lambda x: F.interpolate(x, size=(5, 7), mode="bilinear", align_corners=False),
    "size of its own": lambda x: F.interpolate(x, size=(x.shape[2] * 2, x.size(3) + 1)),
    "unfold": lambda x: F.unfold(x, 2, stride=2),
    "pixel_shuffle": lambda x: F.pixel_shuffle(x, 2),
    "pixel_unshuffle": lambda x: F.pixel_unshuffle(x, 2),
    "avg_pool": lambda x: F.avg_pool2d(x, 3, stride=2, padding=1, ceil_mode=True, count_include_pad=False),
    "adaptive_avg_pool": lambda x: F.adaptive_avg_pool2d(x, (3, 2)),
    "global pool": lambda x: F.adaptive_avg_pool2d(x, 1),
    "chosen channels": lambda x: x[:, [2, 0, 0]],
    "every other": lambda x: x[:, :, ::2, 1:],
    "a new axis": lambda x: x[:, None, :, 0],
    "first of chunks": lambda x: x.chunk(2, 1)[0],
    "second of chunks": lambda x: torch.chunk(x, 2, dim=2)[1],
    "of split": lambda x: x.split([1, 3], dim=1)[1],
    "of torch.split": lambda x: torch.split(x, 2, dim=3)[2],
    "of unbind": lambda x: x.unbind(1)[2],
    "of tensor_split": lambda x: torch.tensor_split(x, 3, 3)[0],
}  # fmt: skip


@pytest.mark.parametrize("name", LINEAR)
def test_linear_functions_are_reversed_by_their_adjoint(name):
    graph = trace(Net(LINEAR[name]))
    (layer,) = graph.layers.values()
    stage = graph.stages[layer.stage.inputs[0]]
    shape = (4, 4, 6)
    stages: list = []
    while stage.inputs:
        stages.insert(0, stage)
        stage = graph.stages[stage.inputs[0]]
    x = rand(2, *shape)
    for one in stages:  # nearly always one
        assert isinstance(one.rule, Rule)
        check_adjoint(one.module, one.rule, tuple(x.shape[1:]))
        x = one.module(x)
    assert torch.equal(x, LINEAR[name](rand(2, *shape)))


@given(data=st.data())
def test_any_slice_is_reversed_by_its_adjoint(data):
    shape = tuple(data.draw(st.integers(1, 5)) for _ in range(3))
    index = tuple(
        data.draw(
            st.one_of(st.integers(-size, size - 1), st.slices(size).filter(lambda s: (s.step or 1) > 0))
        )
        for size in shape
    )
    stage = stage_of(lambda x: x[(slice(None), *index)])
    check_adjoint(stage.module, stage.rule, shape)


@given(data=st.data(), mode=st.sampled_from(["constant", "reflect", "replicate", "circular"]))
@settings(max_examples=60)
def test_any_padding_is_reversed_by_its_adjoint(data, mode):
    shape = (2, *[data.draw(st.integers(3, 5)) for _ in range(2)])
    least = -1 if mode == "constant" else 0  # a negative one cuts
    sides = tuple(data.draw(st.integers(least, 2)) for _ in range(4))
    stage = stage_of(lambda x: F.pad(x, sides, mode=mode))
    check_adjoint(stage.module, stage.rule, shape)


@given(data=st.data())
@settings(max_examples=40)
def test_any_permutation_and_roll_is_reversed_by_its_adjoint(data):
    order = data.draw(st.permutations([1, 2, 3]))
    shifts = tuple(data.draw(st.integers(-4, 4)) for _ in range(2))
    for function in (lambda x: x.permute(0, *order), lambda x: torch.roll(x, shifts, dims=(1, 3))):
        stage = stage_of(function)
        check_adjoint(stage.module, stage.rule, (2, 3, 4))


def test_a_size_read_off_another_tensor_is_known():
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Conv2d(2, 2, 3))

    class Up(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net, self.top = net, nn.Conv2d(2, 1, 1)

        def forward(self, x):
            return self.top(F.interpolate(self.net(x), size=x.shape[2:]))

    class Fixed(Up):
        def forward(self, x):
            return self.top(F.interpolate(self.net(x), size=(8, 8)))

    reads, fixed, x = Up(), Fixed(), torch.rand(2, 1, 8, 8)
    fixed.load_state_dict(reads.state_dict())
    torch.testing.assert_close(Shadow(reads).of(x, "top"), Shadow(fixed).of(x, "top"), rtol=0, atol=0)


# Rearrangements: undone exactly


EXACT = {
    "Flatten": (nn.Flatten(), (2, 3, 4)),
    "Flatten of some": (nn.Flatten(2, 3), (2, 3, 4)),
    "Unflatten": (nn.Unflatten(1, (2, 3)), (6, 4)),
    "PixelShuffle": (nn.PixelShuffle(2), (8, 3, 2)),
    "PixelUnshuffle": (nn.PixelUnshuffle(2), (2, 4, 6)),
    "ChannelShuffle": (nn.ChannelShuffle(3), (6, 2, 3)),
    "Identity": (nn.Identity(), (2, 3)),
    "Dropout": (nn.Dropout(0.5), (2, 3)),
    "Dropout1d": (nn.Dropout1d(0.5), (2, 3)),
    "Dropout2d": (nn.Dropout2d(0.5), (2, 3, 4)),
    "Dropout3d": (nn.Dropout3d(0.5), (2, 3, 4, 2)),
    "AlphaDropout": (nn.AlphaDropout(0.5), (2, 3)),
    "FeatureAlphaDropout": (nn.FeatureAlphaDropout(0.5), (2, 3)),
}


@pytest.mark.parametrize("name", EXACT)
def test_rearrangements_are_undone_exactly(name):
    module, shape = EXACT[name]
    rule = find_rule(module)
    assert rule.exact
    x = rand(3, *shape)
    assert torch.equal(rule.reverse(module, module.eval()(x), shape), x)
    check_adjoint(module, rule, shape)
    y = module(x)
    assert torch.equal(rule.reverse(module.train(), y, shape), x)  # what only trains is not undone either


RESHAPES = {
    "view": (lambda x: x.view(x.size(0), -1), (2, 3, 4)),
    "reshape": (lambda x: x.reshape(x.shape[0], 3, -1), (2, 3, 4)),
    "torch.reshape": (lambda x: torch.reshape(x, (-1, 24)), (2, 3, 4)),
    "flatten": (lambda x: torch.flatten(x, 1), (2, 3, 4)),
    "x.flatten": (lambda x: x.flatten(1), (2, 3, 4)),
    "unflatten": (lambda x: x.unflatten(1, (2, 3)), (6, 2)),
    "squeeze": (lambda x: x.squeeze(2), (3, 1, 2)),
    "unsqueeze": (lambda x: x.unsqueeze(-1), (3, 2)),
    "view of groups": (lambda x: x.view(x.shape[0], 2, x.shape[1] // 2, x.shape[2], x.shape[3]), (4, 3, 2)),
    "contiguous": (lambda x: x.contiguous(), (3, 2)),
    "dropout": (lambda x: F.dropout(x, 0.5, training=False), (3, 2)),
    "clone": (torch.clone, (3, 2)),
}


@pytest.mark.parametrize("name", RESHAPES)
def test_reshapes_are_undone_exactly(name):
    function, shape = RESHAPES[name]
    graph = trace(Net(function))
    (layer,) = graph.layers.values()
    stage = graph.stages[layer.stage.inputs[0]]
    assert stage.inputs == (0,)
    assert stage.rule.exact
    x = rand(3, *shape)
    assert torch.equal(stage.rule.reverse(stage.module, function(x), shape), x)
    check_adjoint(stage.module, stage.rule, shape, forward=function)


def test_nothing_of_a_view_is_shared_with_the_callers_h():
    net = nn.Sequential(nn.Flatten(), nn.Unflatten(1, (2, 2)), nn.Linear(2, 2, bias=False))
    nn.init.eye_(net[2].weight)
    h = torch.tensor([[[-1.0, 2.0], [3.0, 4.0]]])
    x = Shadow(net, scale=1.0, signed=True).sample(h, "2", input_shape=(4,))
    x.zero_()
    assert h.flatten().tolist() == [-1.0, 2.0, 3.0, 4.0]


# Constants


def test_a_constant_that_is_added_is_left_out():
    for function in (
        lambda x: x + 3,
        lambda x: 3 + x,
        lambda x: x - 3,
        lambda x: x.add(3),
        lambda x: torch.sub(x, 3),
    ):
        stage = stage_of(function)
        h = rand(2, 4)
        assert stage.rule.exact
        assert torch.equal(stage.rule.reverse(stage.module, h, (4,)), h)
        assert torch.equal(stage.module(h), function(h))


@pytest.mark.parametrize(
    ("function", "factor"),
    [
        (lambda x: x * 0.1, 0.1),
        (lambda x: 0.1 * x, 0.1),
        (lambda x: x.mul(0.1), 0.1),
        (lambda x: torch.mul(x, 0.1), 0.1),
        (lambda x: x / 4, 0.25),
        (lambda x: torch.div(x, 4), 0.25),
    ],
)
def test_a_constant_factor_is_divided_out(function, factor):
    net = Net(function)
    h = rand(5, 1)
    x = Shadow(net, scale=1.0, signed=True).sample(h, "top")
    # c·h over the energy c²; a few roundings of float64
    torch.testing.assert_close(x, h / factor, rtol=8 * EPS, atol=0)


@pytest.mark.parametrize("after", [False, True])
def test_a_factor_a_channel_is_its_adjoint_over_its_energy_and_follows_training(after):
    scale = rand(3).abs() + 0.1
    net = Net(lambda self, x: x * self.scale, width=3, scale=scale)
    shadow = Shadow(net, scale=1.0, signed=True)
    if after:
        scale = scale + rand(3, seed=4)
        net.scale.data.copy_(scale)
    h = rand(5, 3)
    torch.testing.assert_close(shadow.sample(h, "top"), h * scale / scale.square().mean())


def test_a_number_read_off_a_shape_is_a_factor():
    def function(x):
        return x / x.shape[1]

    stage = stage_of(function)
    check_adjoint(stage.module, stage.rule, (4,))
    assert probe_energy(stage, (4,), (4,), rand(1)) == pytest.approx(1 / 16, rel=1e-12)  # of x/4
    h = rand(2, 4)
    x = Shadow(Net(function, width=4), scale=1.0, signed=True).sample(h, "top")
    torch.testing.assert_close(x, 4 * h, rtol=8 * EPS, atol=0)


# Calls that stand for a module


CALLS = [
    (F.relu, nn.ReLU),
    (torch.relu, nn.ReLU),
    (lambda x: x.relu(), nn.ReLU),
    (lambda x: F.relu(x, inplace=True), nn.ReLU),
    (F.relu6, nn.ReLU6),
    (lambda x: F.leaky_relu(x, 0.3), nn.LeakyReLU),
    (lambda x: F.leaky_relu(x, negative_slope=0.2), nn.LeakyReLU),
    (lambda x: F.gelu(x, approximate="tanh"), nn.GELU),
    (F.gelu, nn.GELU),
    (F.silu, nn.SiLU),
    (F.mish, nn.Mish),
    (F.hardswish, nn.Hardswish),
    (F.hardsigmoid, nn.Hardsigmoid),
    (lambda x: F.elu(x, 0.5), nn.ELU),
    (lambda x: F.celu(x, alpha=0.5), nn.CELU),
    (F.selu, nn.SELU),
    (lambda x: F.softplus(x, 2.0, 3), nn.Softplus),
    (lambda x: F.softplus(x, beta=0.5), nn.Softplus),
    (lambda x: F.hardtanh(x, -0.5, 0.7), nn.Hardtanh),
    (torch.tanh, nn.Tanh),
    (lambda x: x.sigmoid(), nn.Sigmoid),
    (lambda x: F.max_pool2d(x, 3, 2, 1), nn.MaxPool2d),
    (lambda x: F.max_pool2d(x, kernel_size=2, dilation=2, ceil_mode=True), nn.MaxPool2d),
    (lambda x: F.max_pool2d(x, (2, 1)), nn.MaxPool2d),
    (lambda x: F.adaptive_max_pool2d(x, (2, 3)), nn.AdaptiveMaxPool2d),
    (lambda x: F.adaptive_max_pool2d(x, output_size=1), nn.AdaptiveMaxPool2d),
    (lambda x: F.local_response_norm(x, 3, alpha=0.5), nn.LocalResponseNorm),
]


@pytest.mark.parametrize(("function", "kind"), CALLS)
def test_a_call_is_the_module_it_stands_for_with_all_its_settings(function, kind):
    stage = stage_of(function)
    assert type(stage.module) is kind
    assert isinstance(stage.rule, Rule | Activation | Norm)
    x = rand(2, 3, 6, 7)
    assert torch.equal(stage.module(x), function(x.clone()))


def test_clamp_is_an_activation():
    for function in (lambda x: x.clamp(min=0), lambda x: torch.clamp(x, 0, 0.5), lambda x: x.clip(-0.1, 0.3)):
        stage = stage_of(function)
        assert isinstance(stage.rule, Activation)
        x = rand(4, 5)
        assert torch.equal(stage.module(x), function(x))
