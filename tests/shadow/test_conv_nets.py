"""Shadows of whole convolutional and residual nets: against formulas by hand, and that nothing of x leaks."""

import copy
import pickle
import subprocess
import sys
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional as F

from obverse._core.errors import BadInput
from obverse.data import load
from obverse.nets import ResidualBlock, small_cnn, small_resnet
from obverse.shadow import Level, Shadow, recovery
from obverse.shadow._controls import Shuffled
from obverse.shadow._recovery import relative_error

SHAPE = (2, 8, 8)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def images(rows: int = 5, seed: int = 3) -> torch.Tensor:
    return torch.rand(rows, *SHAPE, generator=seeded(seed), dtype=torch.float64)


def cnn() -> nn.Sequential:
    net = small_cnn(SHAPE, 4, (6, 5), generator=seeded()).double()
    for name in ("conv1", "conv2", "output"):
        nn.init.normal_(getattr(net, name).bias, std=0.1, generator=seeded(1))
    return net


def resnet(seed: int = 0) -> nn.Sequential:
    """With batch norms that do something: random gains, offsets and running statistics."""
    net = small_resnet(SHAPE, 4, (6, 5), generator=seeded(seed)).double()
    generator = seeded(seed + 1)
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            for tensor in (module.weight.data, module.running_var):
                tensor.copy_(0.5 + torch.rand(tensor.shape, generator=generator, dtype=torch.float64))
            for tensor in (module.bias.data, module.running_mean):
                tensor.copy_(torch.randn(tensor.shape, generator=generator, dtype=torch.float64))
    return net


def matrix(function, inputs: tuple[int, ...]) -> torch.Tensor:
    """The dense matrix (out × in) of what a linear function does to one input."""
    basis = torch.eye(torch.Size(inputs).numel(), dtype=torch.float64).reshape(-1, *inputs)
    return function(basis).flatten(1).T


def energy(dense: torch.Tensor) -> float:
    """Mean squared norm of the rows, written as loops over rows."""
    return sum(float(row @ row) for row in dense) / len(dense)


def conv_matrix(conv: nn.Conv2d, inputs: tuple[int, ...], norm: nn.BatchNorm2d | None = None) -> torch.Tensor:
    gain = torch.ones(conv.out_channels, dtype=torch.float64)
    if norm is not None:
        gain = norm.weight.detach() / (norm.running_var + norm.eps).sqrt()

    def apply(x):
        y = F.conv2d(x, conv.weight.detach(), None, conv.stride, conv.padding)
        return y * gain[:, None, None]

    return matrix(apply, inputs)


def test_a_cnn_runs_backwards_by_hand():
    """x' = r(α₁ W₁ᵀ U r(α₂ W₂ᵀ U h)) with dense matrices W and U spreading each maximum over its window."""
    net, x = cnn(), images()
    with torch.no_grad():
        h = F.max_pool2d(F.relu(F.conv2d(x, net.conv1.weight, net.conv1.bias, padding=1)), 2)
        h = F.relu(F.conv2d(h, net.conv2.weight, net.conv2.bias, padding=1))
    w1, w2 = conv_matrix(net.conv1, SHAPE), conv_matrix(net.conv2, (6, 4, 4))
    below = (h.flatten(1) @ w2 * 2 / energy(w2)).clamp(min=0).reshape(-1, 6, 4, 4)
    spread = below.repeat_interleave(2, 2).repeat_interleave(2, 3)
    expected = (spread.flatten(1) @ w1 * 2 / energy(w1)).clamp(min=0).reshape(x.shape)
    shadow = Shadow(net)
    torch.testing.assert_close(shadow.infer(x, "conv2"), h)
    torch.testing.assert_close(shadow.of(x, "conv2"), expected)
    torch.testing.assert_close(shadow.of(x, "relu2"), expected)  # the module that returns the same h


def test_a_residual_block_runs_backwards_by_hand():
    """Both paths by dense matrices with batch norm folded in, joined by their energies."""
    net = resnet()
    block: ResidualBlock = net.stage2[0]
    stem = net.stem
    x = images()
    shadow = Shadow(net)
    layer = "stage2.0"
    h = shadow.infer(x, layer)
    net.eval()
    torch.testing.assert_close(h, net.stage2(net.stage1(net.stem(x))))

    b = conv_matrix(block.conv2, (5, 4, 4), block.norm2)
    a = conv_matrix(block.conv1, (6, 8, 8), block.norm1)
    s = conv_matrix(block.shortcut[0], (6, 8, 8), block.shortcut[1])
    inner = (h.flatten(1) @ b * 2 / energy(b)).clamp(min=0)
    branch = inner @ a * 2 / energy(a)
    skip = h.flatten(1) @ s * 2 / energy(s)
    weight = energy(b) / 2 * energy(a)  # the ReLU in between lets half of the energy through
    joined = (weight * branch + energy(s) * skip) / (weight + energy(s))
    middle = joined.clamp(min=0)  # stage1's output, behind its ReLU

    first: ResidualBlock = net.stage1[0]
    b = conv_matrix(first.conv2, (6, 8, 8), first.norm2)
    a = conv_matrix(first.conv1, (6, 8, 8), first.norm1)
    inner = (middle @ b * 2 / energy(b)).clamp(min=0)
    branch = inner @ a * 2 / energy(a)
    weight = energy(b) / 2 * energy(a)
    below = ((weight * branch + middle) / (weight + 1)).clamp(min=0)
    w = conv_matrix(stem[0], SHAPE, stem[1])
    expected = (below @ w * 2 / energy(w)).clamp(min=0).reshape(x.shape)
    torch.testing.assert_close(shadow.of(x, layer), expected)


def test_names_of_layers():
    assert Shadow(cnn()).layers == ("conv1", "conv2", "output")
    shadow = Shadow(resnet())
    assert shadow.layers == (
        "stem.0", "stage1.0.conv1", "stage1.0.conv2", "stage1.0",
        "stage2.0.conv1", "stage2.0.conv2", "stage2.0.shortcut.0", "stage2.0", "output",
    )  # fmt: skip
    assert set(shadow.layers) - set(shadow.maps) == {"stage1.0", "stage2.0"}
    assert shadow.default_layer == "stage2.0"
    assert shadow.layer("stage2").name == "stage2.0"  # the stage returns what its last block returns


@pytest.mark.parametrize("make", [cnn, resnet])
def test_the_net_is_left_as_it_was(make):
    net, x = make().train(), images()
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    shadow = Shadow(net)
    shadow.calibrate(x)
    shadow.of(x, refine=2)
    shadow.of(x, switches=True)
    recovery(shadow, x)
    assert all(torch.equal(tensor, before[name]) for name, tensor in net.state_dict().items())
    assert all(module.training for module in net.modules())
    assert all(parameter.grad is None for parameter in net.parameters())


@pytest.mark.parametrize("make", [cnn, resnet])
def test_copies_and_pickles_are_shadows_of_their_own_net(make):
    shadow, x = Shadow(make(), input_shape=SHAPE), images()
    shadow.calibrate(x)
    for twin in (copy.deepcopy(shadow), pickle.loads(pickle.dumps(shadow))):  # noqa: S301 (our own)
        assert torch.equal(twin.of(x), shadow.of(x))
        with torch.no_grad():
            next(twin.net.parameters()).mul_(2)
        assert not torch.equal(twin.of(x), shadow.of(x))


FRESH = """
import sys
from typing import Any
import torch
from safetensors.torch import load_file, save_file
from obverse.nets import small_cnn, small_resnet
from obverse.shadow import Shadow
kind, folder = sys.argv[1:]
net = {"small_cnn": small_cnn, "small_resnet": small_resnet}[kind]((1, 8, 8), 10, (16, 32))
net.load_state_dict(load_file(folder + "/net.safetensors"))
h = load_file(folder + "/h.safetensors")["h"]
shadow = Shadow(net, input_shape=(1, 8, 8))
plain = shadow.sample(h)
masked = shadow.sample(h, keep=0.5, generator=torch.Generator().manual_seed(7))
save_file({"plain": plain, "masked": masked}, folder + "/out.safetensors")
"""


@pytest.fixture(scope="module", params=["small_cnn", "small_resnet"])
def trained(request):
    """A net trained for some seconds on the embedded digits (test error below 5 %), its name, the data."""
    data = load("digits")
    make = {"small_cnn": small_cnn, "small_resnet": small_resnet}[request.param]
    net = make(data.input_shape, 10, (16, 32), generator=seeded())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    order = seeded(1)
    for _ in range(8):
        for rows in torch.randperm(len(data.train_x), generator=order).split(64):
            optimizer.zero_grad()
            F.cross_entropy(net(data.train_x[rows]), data.train_y[rows]).backward()
            optimizer.step()
    net.eval()
    assert (net(data.test_x).argmax(1) != data.test_y).double().mean() < 0.05
    return request.param, net, data


def test_sample_in_a_fresh_process_from_h_and_weights_alone_is_the_same(trained, tmp_path):
    kind, net, data = trained
    x = data.test_x[:20]
    shadow = Shadow(net)
    h = shadow.infer(x).detach()
    save_file(net.state_dict(), tmp_path / "net.safetensors")
    save_file({"h": h.contiguous()}, tmp_path / "h.safetensors")
    command = [sys.executable, "-c", FRESH, kind, str(tmp_path)]
    subprocess.run(command, check=True, timeout=120)
    fresh = load_file(tmp_path / "out.safetensors")
    # the same numbers in another process up to how many threads share the sums: float32 rounding
    torch.testing.assert_close(
        fresh["plain"], shadow.of(x), rtol=1e-4, atol=1e-4 * float(fresh["plain"].max())
    )
    masked = shadow.of(x, keep=0.5, generator=seeded(7))
    torch.testing.assert_close(fresh["masked"], masked, rtol=1e-4, atol=1e-4 * float(masked.max()))


def test_one_row_does_not_depend_on_the_others_nor_on_what_was_inferred_before(trained):
    _, net, data = trained
    x = data.test_x[:16].double()
    shadow = Shadow(net.double(), input_shape=data.input_shape)
    h = shadow.infer(x).detach()
    whole = shadow.sample(h)
    shadow.infer(data.test_x[16:64].double())
    torch.testing.assert_close(shadow.sample(h[3:4]), whole[3:4])
    net.float()


@pytest.mark.slow
def test_a_trained_net_beats_its_shuffled_self(trained):
    """Generated from the same h: the shadow keeps label and h better than weights in another order do."""
    _, net, data = trained
    x = data.test_x
    shadow, shuffled = Shadow(net), Shadow(Shuffled(net).refresh())
    shadow.calibrate(data.train_x[:200])
    shuffled.calibrate(data.train_x[:200])
    wins = 0
    with torch.no_grad():
        label = net(x).argmax(1)
        for layer in shadow.layers:
            h = shadow.infer(x, layer)
            own, other = (one.from_hidden(x, h, layer) for one in (shadow, shuffled))
            agree, control = (float((net(z).argmax(1) == label).double().mean()) for z in (own, other))
            error, control_error = (relative_error(shadow.infer(z, layer), h) for z in (own, other))
            # 500 test points: a share has a standard error of at most √(¼/500) = 0.022
            wins += agree > control + 3 * 0.022 and error < control_error
    assert wins >= 0.7 * len(shadow.layers)


def test_refine_comes_closer_to_h_with_every_doubling(trained):
    _, net, data = trained
    x = data.test_x[:100]
    shadow = Shadow(net)
    shadow.calibrate(data.train_x[:200])
    h = shadow.infer(x).detach()
    errors = [relative_error(shadow.infer(shadow.of(x, refine=k)), h) for k in (0, 2, 5, 10)]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < errors[0] / 3  # measured: a fourth for the residual net, far less for the other
    # a function of h alone
    sampled = shadow.sample(h, refine=3, input_shape=data.input_shape)
    torch.testing.assert_close(sampled, shadow.of(x, refine=3))
    assert (sampled >= 0).all()
    with pytest.raises(BadInput, match="expected refine ≥ 0 steps; got -1; use 0"):
        shadow.of(x, refine=-1)


def test_switches_put_the_maxima_where_x_had_them():
    net = nn.Sequential(
        nn.Conv2d(1, 1, 1, bias=False), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(4, 2)
    )
    nn.init.ones_(net[0].weight)
    x = torch.rand(3, 1, 4, 4, generator=seeded())
    h = Shadow(net).infer(x, "4").detach()
    down = (h @ net[4].weight.detach()).reshape(3, 2, 2)
    alpha = 2 / float(net[4].weight.detach().square().sum(1).mean())
    expected = torch.zeros_like(x)
    for n in range(3):
        for i in range(2):
            for j in range(2):
                window = x[n, 0, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2]
                k = int(window.argmax())
                value = alpha * float(down[n, i, j])
                expected[n, 0, 2 * i + k // 2, 2 * j + k % 2] = 2 * max(value, 0.0)  # α of conv 1×1 is 2/1
    torch.testing.assert_close(Shadow(net).of(x, "4", switches=True), expected)
    assert not torch.equal(Shadow(net).of(x, "4"), expected)


@pytest.mark.parametrize(
    ("x", "signed", "floor"),
    [
        (torch.rand(50, 3, 8, 8, generator=seeded()), False, None),
        (torch.randn(50, 3, 8, 8, generator=seeded()), True, None),
        # pixels of 8 bits, normalised by channel: black comes up again and again
        (
            (torch.randint(0, 256, (50, 3, 8, 8), generator=seeded()) / 255 - 0.45) / 0.25,
            False,
            (-1.8, -1.8, -1.8),
        ),
    ],
)
def test_calibrate_chooses_what_is_done_at_the_input(x, signed, floor):
    net = small_cnn((3, 8, 8), 4, (5,), generator=seeded())
    shadow = Shadow(net)
    found = shadow.calibrate(x)
    assert found.signed is signed
    assert (found.floor is None) == (floor is None)
    if floor is not None:
        assert found.floor == pytest.approx(floor, rel=1e-6)  # float32
        assert float(shadow.of(x).amin()) == pytest.approx(-1.8, rel=1e-6)
    elif signed:
        assert (shadow.of(x) < 0).any()
    else:
        assert (shadow.of(x) >= 0).all()


def test_what_the_user_says_about_the_input_stays():
    net = small_cnn((3, 8, 8), 4, (5,), generator=seeded())
    x = torch.randn(20, 3, 8, 8, generator=seeded())
    forced = Shadow(net, signed=False)
    forced.calibrate(x)
    assert (forced.of(x) >= 0).all()
    floored = Shadow(net, floor=(-0.1, -0.2, -0.3))
    floored.calibrate(x)
    assert floored.of(x).amin((0, 2, 3)).tolist() == pytest.approx([-0.1, -0.2, -0.3])
    with pytest.raises(BadInput, match="expected signed or floor; got both"):
        Shadow(net, signed=True, floor=0.0)


def test_a_signed_input_has_no_factor_two():
    """x̃ = αWᵀh keeps both halves, so α = 1/(n s²): measured, ⟨h, W x̃⟩ = ‖h‖² on average."""
    layer = nn.Linear(4000, 300, bias=False)
    nn.init.normal_(layer.weight, generator=seeded())
    h = torch.randn(50, 300, generator=seeded(1))
    for signed in (True, False):
        x = Shadow(nn.Sequential(layer), signed=signed).sample(h)
        ratio = ((x @ layer.weight.detach().T) * h).sum(1) / h.square().sum(1)
        # each ratio spreads by about √(2·300/4000)/√300; the mean of 50 is within 5 standard errors of 1
        assert abs(float(ratio.mean()) - 1) < 5 * float(ratio.std()) / 50**0.5


def test_levels_mend_what_single_scales_shrink(trained):
    _, net, data = trained
    x = data.test_x[:200]
    shadow = Shadow(net)
    top = shadow.default_layer
    assert shadow.level(top) == Level(1.0, centred=False)
    shadow.calibrate(data.train_x[:200])
    with_level = recovery(shadow, x, layers=[top]).errors[top]
    level = shadow.level(top)
    shadow.scale = shadow.scale  # levels belong to what calibrate found
    assert shadow.level(top) == Level()
    without = recovery(shadow, x, layers=[top]).errors[top]
    assert with_level < without
    # no level of a grid around it is better, on the inputs it was found on
    rows = data.train_x[:32]
    h = shadow.infer(rows, top).detach()
    if level.theory:
        shadow.scale = "theory"
    shadow.signed = True  # what comes down, as it is
    down = shadow.sample(h, top, input_shape=data.input_shape)
    down = (
        2 * down if level.theory else down
    )  # the theory's scale of the lowest map is half for signed inputs
    errors = {}
    for centred in (False, True):
        for factor in (0.8, 1.0, 1.25):
            twin = (level.factor * factor * down + centred * data.train_x[:200].mean()).clamp(min=0)
            errors[centred, factor] = relative_error(shadow.infer(twin, top).detach(), h)
    # in nets whose paths meet only the mean is tried as centre: there another level was better by 3 %
    assert errors[level.centred, 1.0] <= (1.001 if shadow.graph.is_chain else 1.05) * min(errors.values())


def test_input_shape_is_asked_for_and_fully_convolutional_nets_take_any():
    net = nn.Sequential(nn.Conv2d(1, 3, 3, padding=1), nn.ReLU(), nn.Conv2d(3, 4, 3), nn.ReLU())
    shadow = Shadow(net)
    for size in (6, 9):
        x = torch.rand(2, 1, size, size)
        assert shadow.of(x, "2").shape == x.shape
    h = shadow.infer(x, "2").detach()
    with pytest.raises(BadInput, match=r"expected the shape of one input.*Shadow\(net, input_shape="):
        shadow.sample(h, "2")
    assert shadow.sample(h, "2", input_shape=(1, 9, 9)).shape == x.shape
    with pytest.raises(BadInput, match=r"a batch of h of shape \(N, 4, 4, 4\) for layer '2'; got shape"):
        shadow.sample(h, "2", input_shape=(1, 6, 6))


class Asks(nn.Module):
    """Its forward asks what its input is, which torch.fx answers once and for all."""

    def __init__(self, fails: bool) -> None:
        super().__init__()
        self.first, self.second, self.fails = nn.Linear(4, 4), nn.Linear(4, 2), fails

    def forward(self, x):
        if isinstance(x, torch.fx.Proxy):
            both: Any = [x, x]
            return self.second(torch.cat(both, 1) if self.fails else x)
        return self.second(self.first(x))


@pytest.mark.parametrize(
    ("fails", "got"), [(True, "RuntimeError: mat1 and mat2"), (False, "another result from")]
)
def test_a_trace_that_is_not_the_net_is_found_out(fails, got):
    with pytest.raises(
        BadInput, match=rf"runs on inputs of shape \(4,\) as torch.fx traced it; got {got}.*a rule"
    ):
        Shadow(Asks(fails)).of(torch.rand(3, 4), "second")


def test_an_input_of_another_shape_gets_a_sentence():
    with pytest.raises(
        BadInput, match=r"inputs of shape \(7, 9, 9\).*; got RuntimeError: .*; check the shape"
    ):
        Shadow(cnn()).sample(torch.rand(2, 5, 4, 4), "conv2", input_shape=(7, 9, 9))
