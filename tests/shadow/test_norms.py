"""Norms as one gain and one shift: against the modules themselves, with statistics that no sample decides."""

from math import prod

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from obverse.shadow import Shadow
from obverse.shadow._reversal import find_rule

BATCH = {1: nn.BatchNorm1d, 2: nn.BatchNorm2d, 3: nn.BatchNorm3d}
INSTANCE = {1: nn.InstanceNorm1d, 2: nn.InstanceNorm2d, 3: nn.InstanceNorm3d}
CONV = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}

# What a norm computes in float64 is off by a few ε of numbers of order 1 to 100 (after division by a
# standard deviation down to 0.1, say); 1e-10 is far above that, and far below any wrong statistic.
CLOSE = {"rtol": 1e-10, "atol": 1e-10}


def rand(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def filled(module: nn.Module) -> nn.Module:
    """In evaluation mode, with parameters and running statistics that are not those of a new module."""
    module = module.double()
    for seed, (name, tensor) in enumerate([*module.named_parameters(), *module.named_buffers()]):
        if "num_batches" not in name:
            value = rand(*tensor.shape, seed=seed)
            tensor.data.copy_(value.abs() + 0.1 if name.endswith("running_var") else value)
    return module.eval()


def affine(module: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
    return find_rule(module).affine(module, x)


# Batch norm


@given(
    spatial=st.integers(0, 3),
    channels=st.integers(1, 4),
    has_weights=st.booleans(),
    eps=st.sampled_from([1e-5, 0.3]),
)
def test_batch_norm_with_running_statistics_is_its_gain_and_shift(spatial, channels, has_weights, eps):
    module = filled(BATCH[max(1, spatial)](channels, eps=eps, affine=has_weights))
    x = rand(5, channels, *[3, channels, 2][:spatial])
    assert not find_rule(module).from_data(module)
    gain, shift = affine(module, x[:0])
    torch.testing.assert_close(gain * x + shift, module(x), **CLOSE)


@given(spatial=st.integers(0, 3), has_weights=st.booleans())
def test_batch_norm_without_running_statistics_has_those_of_the_reference(spatial, has_weights):
    module = filled(BATCH[max(1, spatial)](3, affine=has_weights, track_running_stats=False))
    reference = 2 + 3 * rand(7, 3, *[3, 4, 2][:spatial])
    assert find_rule(module).from_data(module)
    gain, shift = affine(module, reference)
    torch.testing.assert_close(gain * reference + shift, module(reference), **CLOSE)
    gain_of_one, _ = affine(module, reference[:2])
    assert not torch.allclose(gain, gain_of_one)


def test_synchronised_batch_norm_is_batch_norm_whatever_the_dimensions():
    for spatial in (1, 2, 3):
        plain = filled(BATCH[spatial](2))
        module = nn.SyncBatchNorm.convert_sync_batchnorm(plain)
        assert isinstance(module, nn.SyncBatchNorm)
        x = rand(
            4, 2, *[2] * spatial
        )  # as many pixels a side as channels: a gain on the wrong side would fit
        gain, shift = affine(module, x[:0])
        torch.testing.assert_close(gain * x + shift, plain(x), **CLOSE)


@pytest.mark.parametrize("spatial", [1, 2, 3])
@pytest.mark.parametrize("grouped", [False, True])
def test_a_folded_batch_norm_gives_the_energy_of_the_dense_matrix(spatial, grouped):
    """In one dimension there are as many channels as pixels: a gain along the wrong side would fit too."""
    conv = CONV[spatial](2, 4, 3, padding=1, stride=2, groups=2 if grouped else 1)
    net = filled(nn.Sequential(conv, BATCH[spatial](4), nn.ReLU()))
    shape = (2, *[7, 5, 4][:spatial])
    shadow = Shadow(net)
    basis = torch.eye(prod(shape), dtype=torch.float64).reshape(-1, *shape)
    with torch.no_grad():
        bias = net[:2](torch.zeros(1, *shape, dtype=torch.float64))
        matrix = (net[:2](basis) - bias).flatten(1).T
    expected = float(matrix.square().sum(1).mean())
    generation = shadow._generation(shape)
    # The matrix entries are differences with biases of order 10: off by 10 ε, each squared and averaged.
    assert generation.energy(shadow.layer("0")) == pytest.approx(expected, rel=1e-12)
    # And the reverse is the transpose of that matrix: scale 1, nothing cut off.
    h = rand(3, *net(basis[:1]).shape[1:])
    down = Shadow(net, scale=1.0, signed=True).sample(h, "0", input_shape=shape)
    torch.testing.assert_close(down.flatten(1), h.flatten(1) @ matrix, **CLOSE)


def test_a_folded_norm_of_a_transposed_convolution():
    net = filled(nn.Sequential(nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, groups=2), nn.BatchNorm2d(6)))
    shape = (4, 3, 3)
    basis = torch.eye(36, dtype=torch.float64).reshape(-1, *shape)
    with torch.no_grad():
        matrix = (net(basis) - net(torch.zeros(1, *shape, dtype=torch.float64))).flatten(1).T
    shadow = Shadow(net)
    expected = float(matrix.square().sum(1).mean())
    assert shadow._generation(shape).energy(shadow.layer("0")) == pytest.approx(expected, rel=1e-12)


def test_a_folded_norm_of_a_linear_layer_on_sequences():
    net = filled(nn.Sequential(nn.Linear(3, 5), nn.LayerNorm(5)))
    shadow = Shadow(net)
    shape = (4, 3)
    gain, _ = shadow._statistics.affine(shadow.graph.stages[2], shape)
    expected = float((gain.square() * net[0].weight.detach().square().sum(1)).mean())
    assert shadow._generation(shape).energy(shadow.layer("0")) == pytest.approx(expected, rel=1e-12)


# Group, instance and layer norm: right for inputs with the statistics of the reference


def standardized(x: Tensor, dims: tuple[int, ...]) -> Tensor:
    """Mean 0 and variance 1 over some dimensions, for each input."""
    return (x - x.mean(dims, keepdim=True)) / x.var(dims, unbiased=False, keepdim=True).sqrt()


@given(
    groups=st.integers(1, 3),
    each=st.integers(1, 3),
    spatial=st.integers(1, 3),
    has_weights=st.booleans(),
)
def test_group_norm(groups, each, spatial, has_weights):
    module = filled(nn.GroupNorm(groups, groups * each, affine=has_weights))
    size = [3, 4, 2][:spatial]
    x = standardized(rand(6, groups, each * prod(size)), (2,))
    level, spread = (
        rand(groups, 1, seed=1),
        rand(groups, 1, seed=2).abs() + 0.5,
    )  # of each group, in all inputs
    x = (x * spread + level).reshape(6, groups * each, *size)
    gain, shift = affine(module, x)
    assert gain.shape == (groups * each, *[1] * spatial)
    torch.testing.assert_close(gain * x + shift, module(x), **CLOSE)


@given(spatial=st.integers(1, 3), channels=st.integers(1, 3), has_weights=st.booleans())
def test_instance_norm(spatial, channels, has_weights):
    module = filled(INSTANCE[spatial](channels, affine=has_weights))
    size = [3, 4, 2][:spatial]
    x = standardized(rand(6, channels, prod(size)), (2,))
    x = (x * (rand(channels, 1).abs() + 0.5) + rand(channels, 1, seed=1)).reshape(6, channels, *size)
    gain, shift = affine(module, x)
    torch.testing.assert_close(gain * x + shift, module(x), **CLOSE)


def test_instance_norm_with_running_statistics_uses_them():
    for spatial in (1, 2, 3):
        module = filled(INSTANCE[spatial](2, affine=True, track_running_stats=True))
        x = rand(4, 2, *[2, 3, 2][:spatial])
        assert not find_rule(module).from_data(module)
        gain, shift = affine(module, x[:0])
        torch.testing.assert_close(gain * x + shift, module(x), **CLOSE)


@pytest.mark.parametrize("normalized", [(4,), (3, 4), (2, 3, 4)])
@pytest.mark.parametrize("has_weights", [True, False])
def test_layer_norm(normalized, has_weights):
    module = filled(nn.LayerNorm(normalized, elementwise_affine=has_weights))
    dims = tuple(range(-len(normalized), 0))
    x = 1.5 * standardized(rand(5, 2, 3, 4), dims) - 0.7
    gain, shift = affine(module, x)
    torch.testing.assert_close(gain * x + shift, module(x), **CLOSE)


@pytest.mark.parametrize(
    "module",
    [nn.GroupNorm(1, 1, affine=False), nn.InstanceNorm1d(1), nn.LayerNorm((1, 50), elementwise_affine=False)],
)
def test_statistics_are_averaged_over_the_reference(module):
    """Two inputs of different spread: the variance is the mean of theirs, not that of both together."""
    x = torch.stack([rand(1, 50), 3 * rand(1, 50, seed=1) + 10])
    gain, shift = affine(module, x)
    variance = sum(float(one.var(unbiased=False)) for one in x) / 2
    assert gain.flatten().tolist() == pytest.approx([(variance + 1e-5) ** -0.5] * gain.numel(), rel=1e-12)
    assert (-shift / gain).flatten().tolist() == pytest.approx([float(x.mean())] * gain.numel(), rel=1e-12)


def test_local_response_norm_is_one_factor():
    module = nn.LocalResponseNorm(3, alpha=2.0)
    x = rand(4, 5, 3, 3)
    gain, shift = affine(module, x)
    assert float(gain) == pytest.approx(float(module(x).norm() / x.norm()), rel=1e-12)
    assert float(shift) == 0
    assert float(affine(module, torch.zeros_like(x))[0]) == 1


# In a net


def grouped() -> nn.Module:
    return filled(
        nn.Sequential(
            nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(),
            nn.Conv2d(4, 4, 3), nn.GroupNorm(1, 4), nn.ReLU(), nn.Flatten(), nn.Linear(16, 3),
        )
    )  # fmt: skip


def test_statistics_never_come_from_the_sample():
    net = grouped()
    h = rand(3, 3)
    fresh = Shadow(net, input_shape=(1, 6, 6))
    before = fresh.sample(h, "7")
    used = Shadow(net, input_shape=(1, 6, 6))
    for x in (100 * rand(5, 1, 6, 6), 1 + rand(2, 1, 6, 6)):
        used.infer(x, "7")
        used.of(x, "7")
    assert torch.equal(used.sample(h, "7"), before)
    # nor from the rest of the batch
    torch.testing.assert_close(used.sample(h[:1], "7"), before[:1])


def test_statistics_follow_the_weights():
    net = grouped()
    shadow = Shadow(net, input_shape=(1, 6, 6))
    h = rand(3, 3)
    before = shadow.sample(h, "7")
    with torch.no_grad():
        net[0].bias.add_(rand(4, seed=5))  # no part of generation itself: only statistics depend on it
    after = shadow.sample(h, "7")
    assert not torch.allclose(before, after)
    assert torch.equal(after, Shadow(net, input_shape=(1, 6, 6)).sample(h, "7"))


def test_calibration_makes_its_data_the_reference():
    net = grouped()
    x = rand(20, 1, 6, 6).abs()
    shadow = Shadow(net)
    shadow.calibrate(x)
    (norm,) = [stage for stage in shadow.graph.stages if stage.name == "1"]
    gain, shift = shadow._statistics.affine(norm, (1, 6, 6))
    expected = affine(net[1], net[0](x))
    torch.testing.assert_close((gain, shift), expected, **CLOSE)


def test_batch_norm_needs_no_reference_and_ignores_the_mode():
    net = filled(nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2)))
    h = rand(5, 2)
    shadow = Shadow(net)
    quiet = shadow.sample(h, "3")
    before = {name: value.clone() for name, value in net.state_dict().items()}
    net.train()
    assert torch.equal(shadow.sample(h, "3"), quiet)
    shadow.of(rand(6, 3).abs(), "3")
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    # by hand: 2/(n s²) with the gain folded in, a ReLU at the input
    gain = net[1].weight / (net[1].running_var + net[1].eps).sqrt()
    top, folded = net[3].weight.detach(), (gain[:, None] * net[0].weight).detach()
    below = (2 * h @ top / top.square().sum(1).mean()).relu()
    expected = (2 * below @ folded / folded.square().sum(1).mean()).relu()
    torch.testing.assert_close(quiet, expected, **CLOSE)
