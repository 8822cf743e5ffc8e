"""Maps with weights: adjoints by the dot-product test, energies against the dense matrix of the map."""

from math import prod

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import prune

from obverse.shadow import Shadow, trace
from obverse.shadow._maps import ConvCall, LinearCall, weight_of
from obverse.shadow._reversal import find_rule

EPS = torch.finfo(torch.float64).eps
CONV = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
TRANSPOSED = {1: nn.ConvTranspose1d, 2: nn.ConvTranspose2d, 3: nn.ConvTranspose3d}
MODES = ["zeros", "reflect", "replicate", "circular"]
# PyTorch says once a process that it copies the input for "same" padding of an even kernel.
pytestmark = pytest.mark.filterwarnings("ignore:Using padding=.same.:UserWarning")


def rand(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@torch.no_grad()
def dense(module: nn.Module, shape: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """The matrix of a module without its bias (outputs × inputs), column by column, and the bias."""
    basis = torch.eye(prod(shape), dtype=torch.float64).reshape(-1, *shape)
    bias = module(torch.zeros(1, *shape, dtype=torch.float64))
    return (module(basis) - bias).flatten(1).T, bias.flatten()


@torch.no_grad()
def check_adjoint(module: nn.Module, shape: tuple[int, ...]) -> None:
    """⟨Ax, y⟩ = ⟨x, Aᵀy⟩.

    Either side is a nest of sums, no longer than inputs + outputs + 2 terms, of the products y·A·x (and of
    y·bias, added and taken off again): standard error analysis bounds its rounding by that length times ε
    times the sum of the |terms|.
    """
    x = rand(1, *shape, seed=1)
    y = rand(*module(x).shape, seed=2)
    matrix, bias = dense(module, shape)
    up = ((module(x) - module(torch.zeros_like(x))) * y).sum()
    down = (find_rule(module).reverse(module, y, shape) * x).sum()
    size = y.abs().flatten() @ (matrix.abs() @ x.abs().flatten() + 2 * bias.abs())
    length = x.numel() + y.numel() + 2
    assert abs(float(up - down)) <= 2 * length * EPS * float(size)


def check_energy(module: nn.Module, shape: tuple[int, ...], channels: int) -> None:
    """The rule's energy of each output channel is the mean squared norm of that channel's rows."""
    matrix, _ = dense(module, shape)
    expected = matrix.square().sum(1).reshape(channels, -1).mean(1)
    energy = find_rule(module).energy(module, shape)
    assert energy.shape == (channels,)
    # Both are sums of as many non-negative squares as a row has; the matrix entries are differences with
    # the bias, off by ε·|bias| ≤ ε each, where a row's squares are of order 1.
    torch.testing.assert_close(energy, expected, rtol=1e-12, atol=1e-13)


@st.composite
def convolutions(draw, modes=MODES):
    """A random convolution in float64 and the shape of one input that it accepts."""
    spatial = draw(st.integers(1, 3))
    groups = draw(st.integers(1, 3))
    channels = groups * draw(st.integers(1, 2))
    out = groups * draw(st.integers(1, 2))
    mode = draw(st.sampled_from(modes))
    kernel, dilation, stride, pad, size = [], [], [], [], []
    kind = draw(st.sampled_from(["number", "same", "valid"]))
    for _ in range(spatial):
        kernel.append(draw(st.integers(1, 3)))
        dilation.append(draw(st.integers(1, 2)))
        reach = dilation[-1] * (kernel[-1] - 1)
        stride.append(1 if kind == "same" else draw(st.integers(1, 3)))
        pad.append(draw(st.integers(0, 2)) if kind == "number" else 0)
        wide = (reach + 1) // 2 if kind == "same" else pad[-1]
        least = max(wide + 1, 1 if kind == "same" else reach + 1 - 2 * pad[-1])  # reflection needs pad < size
        size.append(draw(st.integers(least, least + 3)))
    module = CONV[spatial](
        channels,
        out,
        tuple(kernel),
        stride=tuple(stride),
        padding=tuple(pad) if kind == "number" else kind,
        dilation=tuple(dilation),
        groups=groups,
        bias=draw(st.booleans()),
        padding_mode=mode,
        dtype=torch.float64,
    )
    return filled(module), (channels, *size), out


@st.composite
def transposed_convolutions(draw):
    spatial = draw(st.integers(1, 3))
    groups = draw(st.integers(1, 3))
    channels, out = (groups * draw(st.integers(1, 2)) for _ in range(2))
    kernel, dilation, stride, pad, extra, size = [], [], [], [], [], []
    for _ in range(spatial):
        kernel.append(draw(st.integers(1, 3)))
        dilation.append(draw(st.integers(1, 3)))
        stride.append(draw(st.integers(1, 3)))
        extra.append(draw(st.integers(0, max(stride[-1], dilation[-1]) - 1)))
        pad.append(draw(st.integers(0, 2)))
        beyond = (
            2 * pad[-1] - dilation[-1] * (kernel[-1] - 1) - extra[-1]
        )  # what the rest must be longer than
        least = max(1, -(-beyond // stride[-1]) + 1)
        size.append(draw(st.integers(least, least + 2)))
    module = TRANSPOSED[spatial](
        channels,
        out,
        tuple(kernel),
        stride=tuple(stride),
        padding=tuple(pad),
        output_padding=tuple(extra),
        groups=groups,
        bias=draw(st.booleans()),
        dilation=tuple(dilation),
        dtype=torch.float64,
    )
    return filled(module), (channels, *size), out


def filled(module: nn.Module) -> nn.Module:
    """The module with standard normal weights, so that no two taps are alike."""
    with torch.no_grad():
        for seed, parameter in enumerate(module.parameters()):
            parameter.copy_(rand(*parameter.shape, seed=seed))
    return module


# Linear


@given(
    out=st.integers(1, 6),
    inputs=st.integers(1, 6),
    extra=st.lists(st.integers(1, 3), max_size=2),
    bias=st.booleans(),
)
def test_linear_adjoint_and_energy_with_any_dimensions_before_the_features(out, inputs, extra, bias):
    module = filled(nn.Linear(inputs, out, bias=bias, dtype=torch.float64))
    check_adjoint(module, (*extra, inputs))
    by_hand = torch.tensor(
        [sum(float(w) ** 2 for w in row) for row in module.weight.detach()], dtype=torch.float64
    )
    torch.testing.assert_close(find_rule(module).energy(module, (*extra, inputs)), by_hand)


# Convolution


@given(convolutions())
@settings(max_examples=200)
def test_convolution_adjoint(drawn):
    module, shape, _ = drawn
    check_adjoint(module, shape)


@given(convolutions())
@settings(max_examples=200)
def test_convolution_energy_is_that_of_the_dense_matrix(drawn):
    module, shape, out = drawn
    check_energy(module, shape, out)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("channels", [1, 3])
def test_depthwise_convolution(mode, channels):
    module = filled(
        nn.Conv2d(
            channels,
            2 * channels,
            3,
            padding=1,
            stride=2,
            groups=channels,
            padding_mode=mode,
            dtype=torch.float64,
        )
    )
    check_adjoint(module, (channels, 5, 6))
    check_energy(module, (channels, 5, 6), 2 * channels)


@pytest.mark.parametrize("padding", ["same", 2])
@pytest.mark.parametrize("mode", MODES)
def test_padding_as_wide_as_the_image_allows(padding, mode):
    size = 3 if mode == "reflect" else 2  # reflection needs one more pixel than padding
    module = filled(nn.Conv1d(2, 3, 5, padding=padding, padding_mode=mode, dtype=torch.float64))
    check_adjoint(module, (2, size))
    check_energy(module, (2, size), 3)


def test_the_border_counts_in_the_energy():
    """3 taps of 1 on 4 pixels, padding 1: rows of 2, 3, 3 and 2 ones; n s² would say 3."""
    module = nn.Conv1d(1, 1, 3, padding=1, bias=False, dtype=torch.float64)
    nn.init.ones_(module.weight)
    assert find_rule(module).energy(module, (1, 4)).tolist() == [2.5]
    wrapped = nn.Conv1d(1, 1, 3, padding=1, bias=False, padding_mode="replicate", dtype=torch.float64)
    nn.init.ones_(wrapped.weight)  # the border pixel is met twice: (2² + 1², 3, 3, 2² + 1²)
    assert find_rule(wrapped).energy(wrapped, (1, 4)).tolist() == [4.0]


# Transposed convolution


@given(transposed_convolutions())
@settings(max_examples=200)
def test_transposed_convolution_adjoint(drawn):
    module, shape, _ = drawn
    check_adjoint(module, shape)


@given(transposed_convolutions())
@settings(max_examples=200)
def test_transposed_convolution_energy_is_that_of_the_dense_matrix(drawn):
    module, shape, out = drawn
    check_energy(module, shape, out)


# Calls of functions


class Functional(nn.Module):
    """A net whose one layer is a function call."""

    def __init__(self, function, weight, bias=None, **settings) -> None:
        super().__init__()
        self.function, self.settings = function, settings
        self.weight = nn.Parameter(weight)
        self.bias = None if bias is None else nn.Parameter(bias)

    def forward(self, x):
        return self.function(x, self.weight, self.bias, **self.settings)


@given(drawn=convolutions(modes=["zeros"]), positional=st.booleans())
@settings(max_examples=50)
def test_a_call_of_f_conv_is_the_module(drawn, positional):
    module, shape, out = drawn
    function = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[len(shape) - 1]
    settings = {name: getattr(module, name) for name in ("stride", "padding", "dilation", "groups")}
    if positional:
        net = Functional(lambda x, w, b: function(x, w, b, *settings.values()), module.weight, module.bias)
    else:
        net = Functional(function, module.weight, module.bias, **settings)
    (layer,) = trace(net).layers.values()
    assert isinstance(layer.stage.module, ConvCall)
    check_adjoint(layer.stage.module, shape)
    check_energy(layer.stage.module, shape, out)


@given(out=st.integers(1, 4), inputs=st.integers(1, 4), bias=st.booleans())
@settings(max_examples=20)
def test_a_call_of_f_linear_is_the_module(out, inputs, bias):
    net = Functional(F.linear, rand(out, inputs), rand(out) if bias else None)
    (layer,) = trace(net).layers.values()
    assert isinstance(layer.stage.module, LinearCall)
    check_adjoint(layer.stage.module, (inputs,))
    expected = net.weight.detach().square().sum(1)
    torch.testing.assert_close(find_rule(layer.stage.module).energy(layer.stage.module, (inputs,)), expected)


class Standardized(nn.Conv2d):
    """Weight standardization, as nets write it: a convolution whose weight is computed at every pass."""

    def forward(self, x):
        weight = self.weight - self.weight.mean((1, 2, 3), keepdim=True)
        return F.conv2d(x, weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


def test_a_weight_that_the_net_computes_is_the_one_it_computes_now():
    net = filled(Standardized(2, 3, 3, padding=1, dtype=torch.float64))
    (layer,) = trace(net).layers.values()
    check_adjoint(layer.stage.module, (2, 4, 4))
    with torch.no_grad():
        net.weight.mul_(rand(*net.weight.shape, seed=9))
    check_adjoint(layer.stage.module, (2, 4, 4))
    check_energy(layer.stage.module, (2, 4, 4), 3)


# Weights that are computed at each pass: the one in use, also after an optimizer step


def pruned(module: nn.Module) -> nn.Module:
    return prune.l1_unstructured(module, "weight", amount=0.5)


RULED = [
    nn.utils.weight_norm,
    nn.utils.parametrizations.weight_norm,
    nn.utils.spectral_norm,
    nn.utils.parametrizations.spectral_norm,
    pruned,
]
OLD_FORM = pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning")


@OLD_FORM
@pytest.mark.parametrize("form", RULED)
def test_the_effective_weight_is_used_and_follows_the_optimizer(form):
    module = form(filled(nn.Linear(4, 3, dtype=torch.float64))).eval()
    h = rand(2, 3)
    shadow = Shadow(module, signed=True, scale=1.0)
    for _ in range(2):
        module(rand(5, 4)).square().sum().backward()
        before = weight_of(module).clone()
        torch.optim.SGD(module.parameters(), lr=0.01).step()  # what the old forms filled in is stale now
        assert not torch.equal(weight_of(module), before)
        fresh = shadow.sample(h)
        # Entries of the matrix are differences with biases of order 1.
        torch.testing.assert_close(fresh, h @ dense(module, (4,))[0], rtol=1e-12, atol=1e-14)


@OLD_FORM
@pytest.mark.parametrize("form", RULED)
def test_the_effective_weight_of_a_convolution(form):
    module = form(filled(nn.Conv2d(2, 3, 3, padding=1, stride=2, dtype=torch.float64))).eval()
    check_adjoint(module, (2, 5, 5))
    check_energy(module, (2, 5, 5), 3)


def test_reading_a_weight_changes_nothing_in_the_module():
    module = nn.utils.spectral_norm(filled(nn.Linear(4, 3, dtype=torch.float64))).train()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    weight_of(module)
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
