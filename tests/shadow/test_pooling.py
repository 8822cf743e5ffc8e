"""Max pooling backwards against brute force over windows; averages, padding, upsampling as adjoints."""

from collections.abc import Callable
from functools import partial
from itertools import product
from math import ceil, floor, inf, prod

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from obverse.shadow import Shadow, trace
from obverse.shadow._generate import PROBES, probe_energy
from obverse.shadow._pooling import spread_maximum, unpool_at
from obverse.shadow._reversal import find_rule

EPS = torch.finfo(torch.float64).eps
MAX = {1: nn.MaxPool1d, 2: nn.MaxPool2d, 3: nn.MaxPool3d}
AVERAGE = {1: nn.AvgPool1d, 2: nn.AvgPool2d, 3: nn.AvgPool3d}
ADAPTIVE_MAX = {1: nn.AdaptiveMaxPool1d, 2: nn.AdaptiveMaxPool2d, 3: nn.AdaptiveMaxPool3d}
ADAPTIVE_AVERAGE = {1: nn.AdaptiveAvgPool1d, 2: nn.AdaptiveAvgPool2d, 3: nn.AdaptiveAvgPool3d}


def rand(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def reverse(module: nn.Module, y: Tensor, shape: tuple[int, ...]) -> Tensor:
    return find_rule(module).reverse(module, y, shape)


def each(value, spatial: int) -> list:
    return [value] * spatial if isinstance(value, int) else list(value)


# Maximum pooling


def windows(module: nn.Module, size: tuple[int, ...], out: tuple[int, ...]):
    """(window, [its pixels]) one by one, from the definition in PyTorch's documentation."""
    spatial = len(size)
    kernel, stride, padding, dilation = (
        each(getattr(module, name), spatial) for name in ("kernel_size", "stride", "padding", "dilation")
    )
    for window in product(*map(range, out)):
        pixels = []
        for tap in product(*map(range, kernel)):
            pixel = tuple(window[d] * stride[d] - padding[d] + tap[d] * dilation[d] for d in range(spatial))
            if all(0 <= pixel[d] < size[d] for d in range(spatial)):
                pixels.append(pixel)
        yield window, pixels


def adaptive_windows(size: tuple[int, ...], out: tuple[int, ...]):
    for window in product(*map(range, out)):
        spans = [
            range(floor(w * n / m), ceil((w + 1) * n / m)) for w, n, m in zip(window, size, out, strict=True)
        ]
        yield window, list(product(*spans))


def brute_reverse(y: Tensor, size: tuple[int, ...], boxes) -> Tensor:
    """The least maximum of the windows that a pixel lies in; 0 in none."""
    x = torch.full((*y.shape[: -len(size)], *size), inf, dtype=y.dtype)
    for window, pixels in boxes:
        for pixel in pixels:
            x[(..., *pixel)] = torch.minimum(x[(..., *pixel)], y[(..., *window)])
    return torch.where(x == inf, 0.0, x)


@st.composite
def max_pools(draw):
    spatial = draw(st.integers(1, 3))
    kernel, stride, padding, dilation, size = [], [], [], [], []
    for _ in range(spatial):
        kernel.append(draw(st.integers(1, 3)))
        stride.append(draw(st.integers(1, 4)))
        padding.append(draw(st.integers(0, kernel[-1] // 2)))
        dilation.append(draw(st.integers(1, 2)))
        least = max(1, dilation[-1] * (kernel[-1] - 1) + 1 - 2 * padding[-1])
        size.append(draw(st.integers(least, least + 4)))
    module = MAX[spatial](
        tuple(kernel),
        stride=tuple(stride),
        padding=tuple(padding),
        dilation=tuple(dilation),
        ceil_mode=draw(st.booleans()),
    )
    return module, tuple(size)


@given(max_pools())
@settings(max_examples=200)
def test_the_reverse_of_max_pooling_is_the_greatest_input_under_the_maxima(drawn):
    module, size = drawn
    x = rand(2, 2, *size)
    y = module(x)
    boxes = list(windows(module, size, tuple(y.shape[2:])))
    assume(all(pixels for _, pixels in boxes))  # with dilation a window can lie wholly in the padding
    z = reverse(module, y, (2, *size))
    assert torch.equal(z, brute_reverse(y, size, boxes))
    assert torch.equal(module(z), y)  # its maxima are y, bit for bit
    seen = {pixel for _, pixels in boxes for pixel in pixels}
    for pixel in product(*map(range, size)):
        if pixel in seen:
            assert (z[(..., *pixel)] >= x[(..., *pixel)]).all()  # x is one of the inputs under the maxima
        else:
            assert (z[(..., *pixel)] == 0).all()


@given(max_pools(), st.integers(0, 9))
@settings(max_examples=50)
def test_no_greater_input_stays_under_maxima_that_no_input_has(drawn, seed):
    """For any y, not only pooled ones: raising one pixel by a bit lifts some window above its y."""
    module, size = drawn
    y = rand(*module(rand(1, 1, *size)).shape, seed=seed)
    boxes = list(windows(module, size, tuple(y.shape[2:])))
    z = reverse(module, y, (1, *size))
    assert torch.equal(z, brute_reverse(y, size, boxes))
    for pixel in {pixel for _, pixels in boxes for pixel in pixels}:
        raised = z.clone()
        raised[(..., *pixel)] += 1e-9
        assert (module(raised) > y).any()


@given(
    sizes=st.lists(st.tuples(st.integers(1, 7), st.integers(1, 7)), min_size=1, max_size=3),
    signed=st.booleans(),
)
def test_adaptive_max_pooling(sizes, signed):
    size, out = tuple(max(pair) for pair in sizes), tuple(min(pair) for pair in sizes)
    module = ADAPTIVE_MAX[len(size)](out if len(out) > 1 else out[0])
    x = rand(2, 2, *size) if signed else rand(2, 2, *size).relu()
    y = module(x)
    z = reverse(module, y, (2, *size))
    assert torch.equal(z, brute_reverse(y, size, adaptive_windows(size, out)))
    assert torch.equal(module(z), y)


def test_adaptive_max_pooling_to_more_windows_than_pixels():
    module = nn.AdaptiveMaxPool2d((5, 3))
    x = rand(1, 2, 3, 2)
    assert torch.equal(reverse(module, module(x), (2, 3, 2)), x)  # each pixel has a window of its own


def test_adaptive_max_pooling_that_leaves_a_side_as_it_is():
    module = nn.AdaptiveMaxPool2d((None, 2))
    y = module(rand(1, 1, 3, 5))
    assert torch.equal(
        reverse(module, y, (1, 3, 5)), brute_reverse(y, (3, 5), adaptive_windows((3, 5), (3, 2)))
    )


def test_maxima_spread_over_windows_with_a_gap():
    y = torch.tensor([[[3.0, 1.0]]])
    x = spread_maximum(y, [6], [[0, 1]], [[2, 4]])
    assert x.tolist() == [[[3.0, 1.0, 1.0, 1.0, 0.0, 0.0]]]


def test_reversing_does_not_change_y():
    module = nn.MaxPool2d(3, stride=1, padding=1)
    y = module(rand(2, 2, 5, 5))
    before = y.clone()
    reverse(module, y, (2, 5, 5))
    assert torch.equal(y, before)


# Positions, borrowed for pictures


@given(max_pools())
@settings(max_examples=50)
def test_unpooling_puts_each_maximum_where_it_stood(drawn):
    module, size = drawn
    out = tuple(module(rand(1, 1, *size)).shape[2:])
    assume(all(pixels for _, pixels in windows(module, size, out)))  # a window without pixels has no position
    module.return_indices = True
    x = rand(2, 3, *size)
    y, positions = module(x)
    z = unpool_at(y, positions, (3, *size))
    flat_x, flat_z = x.flatten(2), z.flatten(2)
    for row, channel in product(range(2), range(3)):
        stood = set(positions[row, channel].flatten().tolist())
        for pixel in range(prod(size)):
            expected = flat_x[row, channel, pixel] if pixel in stood else 0.0
            assert flat_z[row, channel, pixel] == expected


def test_switches_are_used_for_pictures_only():
    net = nn.Sequential(
        nn.Conv2d(1, 2, 1, bias=False), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(2, 2, 1)
    ).double()
    shadow = Shadow(net, scale=1.0, signed=True)
    x = rand(1, 1, 4, 4).abs()
    with torch.no_grad():
        for weight in (net[0].weight, net[3].weight):
            weight.abs_()  # or ReLU may leave nothing, with switches or without
        h = net(x)
        hidden = net[1](net[0](x))
        _, positions = nn.MaxPool2d(2, return_indices=True)(hidden)
        pooled = torch.einsum("oi,noyx->niyx", net[3].weight[:, :, 0, 0], h)
        expected = torch.zeros(1, 2, 16, dtype=torch.float64).scatter(
            2, positions.flatten(2), pooled.flatten(2)
        )
        below = torch.einsum("oi,nop->nip", net[0].weight[:, :, 0, 0], expected.relu()).reshape(1, 1, 4, 4)
    torch.testing.assert_close(shadow.of(x, "3", switches=True), below)
    assert not torch.allclose(shadow.of(x, "3"), below)
    torch.testing.assert_close(shadow.of(x, "3"), shadow.sample(h, "3", input_shape=(1, 4, 4)))


# Linear steps without weights: adjoint and energy


@torch.no_grad()
def dense(module: nn.Module, shape: tuple[int, ...]) -> Tensor:
    """outputs × inputs, column by column; these modules have no bias."""
    return module(torch.eye(prod(shape), dtype=torch.float64).reshape(-1, *shape)).flatten(1).T


def check_adjoint(module: nn.Module, shape: tuple[int, ...]) -> None:
    """⟨Ax, y⟩ = ⟨x, Aᵀy⟩: sums of at most inputs + outputs products y·A·x, each rounded to ε."""
    x = rand(1, *shape, seed=1)
    y = rand(*module(x).shape, seed=2)
    matrix = dense(module, shape)
    up = (module(x) * y).sum()
    down = (reverse(module, y, shape) * x).sum()
    size = y.abs().flatten() @ matrix.abs() @ x.abs().flatten()
    assert abs(float(up - down)) <= 2 * (x.numel() + y.numel()) * EPS * float(size)


def probe_of(module: nn.Module, shape: tuple[int, ...]) -> Callable[[], float]:
    """probe_energy of a module as a stage of a net."""
    graph = trace(nn.Sequential(module, nn.Flatten(), nn.Linear(1, 1)))  # never run: no size need fit
    stage = graph.stages[1]
    assert stage.module is module
    out = tuple(module(rand(1, *shape)).shape[1:])
    return partial(probe_energy, stage, shape, out, rand(1))


def rows_energy(module: nn.Module, shape: tuple[int, ...]) -> tuple[float, float]:
    """The mean squared norm of the rows, and the standard error of its estimate from random signs.

    The variance of |Aᵀg|² = gᵀGg over signs g is 2·Σ_{i≠j} G_ij² with G = AAᵀ.
    """
    matrix = dense(module, shape)
    gram = matrix @ matrix.T
    off = gram - gram.diagonal().diag()
    return float(gram.trace()) / len(gram), float((2 * off.square().sum() / PROBES).sqrt()) / len(gram)


@st.composite
def average_pools(draw):
    spatial = draw(st.integers(1, 3))
    kernel, stride, padding, size = [], [], [], []
    for _ in range(spatial):
        kernel.append(draw(st.integers(1, 3)))
        stride.append(draw(st.integers(1, 4)))
        padding.append(draw(st.integers(0, kernel[-1] // 2)))
        least = kernel[-1] if spatial == 3 else max(1, kernel[-1] - 2 * padding[-1])  # as PyTorch demands
        size.append(draw(st.integers(least, least + 4)))
    more = {} if spatial == 1 else {"divisor_override": draw(st.sampled_from([None, 1, 5]))}
    module = AVERAGE[spatial](
        tuple(kernel),
        stride=tuple(stride),
        padding=tuple(padding),
        ceil_mode=draw(st.booleans()),
        count_include_pad=draw(st.booleans()),
        **more,
    )
    return module, (draw(st.integers(1, 2)), *size)


@given(average_pools())
@settings(max_examples=200)
def test_average_pooling_is_reversed_by_its_adjoint(drawn):
    check_adjoint(*drawn)


@given(sizes=st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)), min_size=1, max_size=3))
def test_adaptive_average_pooling_is_reversed_by_its_adjoint(sizes):
    size, out = tuple(a for a, _ in sizes), tuple(b for _, b in sizes)
    check_adjoint(ADAPTIVE_AVERAGE[len(size)](out if len(out) > 1 else out[0]), (2, *size))


PADS = {
    "Zero": [nn.ZeroPad1d, nn.ZeroPad2d, nn.ZeroPad3d],
    "Reflection": [nn.ReflectionPad1d, nn.ReflectionPad2d, nn.ReflectionPad3d],
    "Replication": [nn.ReplicationPad1d, nn.ReplicationPad2d, nn.ReplicationPad3d],
    "Circular": [nn.CircularPad1d, nn.CircularPad2d, nn.CircularPad3d],
}


@given(kind=st.sampled_from(list(PADS)), data=st.data(), spatial=st.integers(1, 3))
@settings(max_examples=150)
def test_padding_is_reversed_by_its_adjoint(kind, data, spatial):
    size = [data.draw(st.integers(3, 5)) for _ in range(spatial)]
    sides = tuple(data.draw(st.integers(0, 2)) for _ in range(2 * spatial))  # reflection needs less than 3
    check_adjoint(PADS[kind][spatial - 1](sides), (2, *size))


@pytest.mark.parametrize(
    ("mode", "spatial"),
    [("nearest", 1), ("nearest", 2), ("nearest", 3), ("nearest-exact", 2), ("linear", 1), ("bilinear", 2),
     ("bicubic", 2), ("trilinear", 3)],
)  # fmt: skip
@pytest.mark.parametrize("form", [{"scale_factor": 2}, {"scale_factor": 1.5}, {"size": 5}])
@pytest.mark.parametrize("align", [False, True])
def test_upsampling_is_reversed_by_its_adjoint(mode, spatial, form, align):
    corners = align if "linear" in mode or mode == "bicubic" else None
    check_adjoint(nn.Upsample(**form, mode=mode, align_corners=corners), (2, *[3, 4, 2][:spatial]))


# Energies of steps without weights


DISJOINT = [
    (nn.AvgPool2d(2), (3, 6, 4)),
    (nn.AvgPool2d(2), (1, 5, 5)),
    (nn.AvgPool1d(3, stride=4), (2, 11)),
    (nn.AvgPool3d((1, 2, 2), ceil_mode=True), (1, 2, 5, 4)),
    (nn.AdaptiveAvgPool2d(1), (4, 5, 7)),
    (nn.AdaptiveAvgPool2d((2, 3)), (2, 4, 6)),
    (nn.ZeroPad2d(1), (2, 3, 3)),
]


@pytest.mark.parametrize(("module", "shape"), DISJOINT)
def test_energies_of_disjoint_windows_are_exact(module, shape):
    expected, spread = rows_energy(module, shape)
    assert spread == 0
    assert probe_of(module, shape)() == pytest.approx(expected, rel=1e-12)  # sums of squares in float64


OVERLAPPING = [
    (nn.AvgPool2d(3, stride=1, padding=1), (1, 8, 8)),
    (nn.AvgPool2d(3, stride=2), (2, 9, 9)),
    (nn.AvgPool1d(5, stride=1), (1, 20)),
    (nn.AdaptiveAvgPool2d((3, 4)), (2, 7, 7)),
    (nn.Upsample(scale_factor=2), (1, 4, 4)),
    (nn.Upsample(scale_factor=2, mode="bilinear"), (1, 4, 4)),
    (nn.ReflectionPad2d(2), (1, 5, 5)),
]


@pytest.mark.parametrize(("module", "shape"), OVERLAPPING)
def test_energies_of_overlapping_windows_are_good_to_their_standard_error(module, shape):
    expected, spread = rows_energy(module, shape)
    assert spread > 0
    assert abs(probe_of(module, shape)() - expected) < 4 * spread


def test_a_probe_is_the_same_every_time_and_leaves_the_global_randomness_alone():
    module, shape = OVERLAPPING[0]
    probe = probe_of(module, shape)
    state = torch.get_rng_state()
    assert probe() == probe()
    assert torch.equal(torch.get_rng_state(), state)
