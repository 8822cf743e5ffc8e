"""Running graphs backwards: joins against dense matrices, scales by simulation, nothing shared or changed."""

from itertools import pairwise
from math import sqrt

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

from obverse.shadow import Rule, Shadow, register_rule
from obverse.shadow._join import Estimate, join, length, portion, union


def rand(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


class Net(nn.Module):
    """A module from linear children without bias and one function of (self, x)."""

    def __init__(self, function, **sizes: tuple[int, int]) -> None:
        super().__init__()
        self._function = function
        for seed, (name, (inputs, outputs)) in enumerate(sizes.items()):
            layer = nn.Linear(inputs, outputs, bias=False, dtype=torch.float64)
            layer.weight.data.copy_(rand(outputs, inputs, seed=seed) / sqrt(inputs))
            setattr(self, name, layer)

    def forward(self, x):
        return self._function(self, x)


def weights(net: nn.Module) -> list[Tensor]:
    return [parameter.detach() for parameter in net.parameters()]


def energy(weight: Tensor) -> Tensor:
    return weight.square().sum(1).mean()


@torch.no_grad()
def matrix(net: nn.Module, inputs: int) -> Tensor:
    return net(torch.eye(inputs, dtype=torch.float64)).T


def top(net: nn.Module, h: Tensor, inputs: int) -> Tensor:
    """x̃ from the highest layer, nothing cut off at the input."""
    shadow = Shadow(net, signed=True)
    return shadow.sample(h, shadow.layers[-1], input_shape=(inputs,))


# Linear nets: x̃ = Mᵀh / E, E the paths' energies added up


def test_a_chain():
    net = Net(lambda self, x: self.b(self.a(x)), a=(5, 7), b=(7, 4))
    a, b = weights(net)
    h = rand(3, 4)
    torch.testing.assert_close(top(net, h, 5), h @ matrix(net, 5) / (energy(a) * energy(b)))


def test_a_residual_block():
    net = Net(lambda self, x: x + self.f(x), f=(5, 5))
    (f,) = weights(net)
    h = rand(3, 5)
    torch.testing.assert_close(top(net, h, 5), h @ matrix(net, 5) / (1 + energy(f)))


def test_two_maps_added():
    net = Net(lambda self, x: self.a(x) + self.b(x), a=(5, 4), b=(5, 4))
    a, b = weights(net)
    h = rand(3, 4)
    torch.testing.assert_close(top(net, h, 5), h @ matrix(net, 5) / (energy(a) + energy(b)))


def test_two_maps_subtracted():
    net = Net(lambda self, x: self.a(x) - self.b(x), a=(5, 4), b=(5, 4))
    a, b = weights(net)
    h = rand(3, 4)
    torch.testing.assert_close(top(net, h, 5), h @ matrix(net, 5) / (energy(a) + energy(b)))


def test_a_factor_on_one_path():
    net = Net(lambda self, x: self.a(x) + 3 * self.b(x), a=(5, 4), b=(5, 4))
    a, b = weights(net)
    h = rand(3, 4)
    torch.testing.assert_close(top(net, h, 5), h @ matrix(net, 5) / (energy(a) + 9 * energy(b)))


@pytest.mark.parametrize("slope", [0.0, 0.5])
def test_an_activation_on_one_path_lets_through_its_part_of_the_energy(slope):
    """E r(z)² of a symmetric z is (1 + slope²)/2 of E z²."""
    net = Net(lambda self, x: x + F.leaky_relu(self.f(x), slope), f=(5, 5))
    (f,) = weights(net)
    h = rand(3, 5)
    through = energy(f) * (1 + slope**2) / 2
    below = torch.where(h > 0, h, slope * h) @ f / energy(f)
    torch.testing.assert_close(top(net, h, 5), (h + through * below) / (1 + through))


@pytest.mark.parametrize("sizes", [(3, 3), (2, 6)])
def test_two_maps_side_by_side_have_the_energy_of_the_whole_exactly(sizes):
    net = Net(lambda self, x: torch.cat([self.a(x), self.b(x)], 1), a=(5, sizes[0]), b=(5, sizes[1]))
    whole = matrix(net, 5)
    h = rand(3, sum(sizes))
    torch.testing.assert_close(top(net, h, 5), h @ whole / energy(whole))


def test_a_dense_block():
    net = Net(lambda self, x: torch.cat([x, self.f(x)], 1), f=(4, 6))
    whole = matrix(net, 4)
    h = rand(3, 10)
    torch.testing.assert_close(top(net, h, 4), h @ whole / energy(whole))


def test_blocks_in_a_row():
    """Between two blocks every path meets: energies begin anew, and the estimates of the blocks multiply."""
    net = Net(lambda self, x: (lambda y: y + self.g(y))(x + self.f(x)), f=(5, 5), g=(5, 5))
    f, g = weights(net)
    h = rand(3, 5)
    torch.testing.assert_close(top(net, h, 5), h @ matrix(net, 5) / ((1 + energy(f)) * (1 + energy(g))))


def test_a_block_inside_a_block():
    def forward(self, x):
        y = self.a(x)
        return x + y + self.b(y)

    net = Net(forward, a=(5, 5), b=(5, 5))
    a, b = weights(net)
    h = rand(3, 5)
    expected = h @ matrix(net, 5) / (1 + energy(a) * (1 + energy(b)))
    torch.testing.assert_close(top(net, h, 5), expected)


def test_a_concatenation_in_the_middle():
    """y = C[Ax; Bx] with 4 + 4 units: each part carries half of C's energy."""
    net = Net(lambda self, x: self.c(torch.cat([self.a(x), self.b(x)], 1)), a=(5, 4), b=(5, 4), c=(8, 3))
    a, b, c = weights(net)
    h = rand(3, 3)
    expected = h @ matrix(net, 5) / (energy(c) * (energy(a) + energy(b)) / 2)
    torch.testing.assert_close(top(net, h, 5), expected)


def test_what_is_used_in_one_part_only_keeps_its_scale():
    """y = [Ax; Bu], u = Ux: u is generated from its part alone, as if the other were not there."""
    net = Net(lambda self, x: torch.cat([self.a(x), self.b(self.u(x))], 1), a=(5, 6), u=(5, 4), b=(4, 2))
    a, u, b = weights(net)
    h = rand(3, 8)
    size = (6 * energy(a) + 2 * energy(b) * energy(u)) / 8
    torch.testing.assert_close(top(net, h, 5), h @ matrix(net, 5) / size)


def test_a_residual_block_in_one_part_is_not_counted_twice():
    """y = [v + Fv; Wx], v = Vx: both paths into v explain the same half of y."""

    def forward(self, x):
        v = self.v(x)
        return torch.cat([v + self.f(v), self.w(x)], 1)

    net = Net(forward, v=(5, 4), f=(4, 4), w=(5, 4))
    v, f, w = weights(net)
    h = rand(3, 8)
    size = (energy(v) * (1 + energy(f)) + energy(w)) / 2
    torch.testing.assert_close(top(net, h, 5), h @ matrix(net, 5) / size)


def test_an_addend_that_is_broadcast_comes_down_as_its_mean():
    """y = x + mean(Fx): the mean's estimate is the mean of h, and its energy that of a mean of 5."""
    net = Net(lambda self, x: x + self.f(x).mean(1, keepdim=True), f=(5, 5))
    (f,) = weights(net)
    h = rand(3, 5)
    below = h.mean(1, keepdim=True).expand(-1, 5) @ f / energy(f)
    share = energy(f) / 5
    torch.testing.assert_close(top(net, h, 5), (h + share * below) / (1 + share))


# The scale in high dimension: ⟨h, Mx̃⟩/‖h‖² = 1


WIDE = 400
NETS = {
    "x + Fx": lambda: Net(lambda self, x: x + self.f(x), f=(WIDE, WIDE)),
    "Ax + Bx": lambda: Net(lambda self, x: self.a(x) + self.b(x), a=(WIDE, WIDE), b=(WIDE, WIDE)),
    "Ax − 3Bx": lambda: Net(lambda self, x: self.a(x) - 3 * self.b(x), a=(WIDE, WIDE), b=(WIDE, WIDE)),
    "[Ax; Bx]": lambda: Net(
        lambda self, x: torch.cat([self.a(x), self.b(x)], 1), a=(WIDE, 300), b=(WIDE, 100)
    ),
    "[x; Fx]": lambda: Net(lambda self, x: torch.cat([x, self.f(x)], 1), f=(WIDE, 100)),
    "C[Ax; Bx]": lambda: Net(
        lambda self, x: self.c(torch.cat([self.a(x), 2 * self.b(x)], 1)),
        a=(WIDE, 200), b=(WIDE, 200), c=(WIDE, WIDE),
    ),
    "[v + Fv; Wx]": lambda: Net(
        lambda self, x: (lambda v: torch.cat([v + self.f(v), self.w(x)], 1))(self.v(x)),
        v=(WIDE, 200), f=(200, 200), w=(WIDE, 200),
    ),
    "blocks": lambda: Net(
        lambda self, x: (lambda y: y + self.g(y))(x + self.f(x)), f=(WIDE, WIDE), g=(WIDE, WIDE)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NETS)
def test_the_scale_of_a_linear_net_with_joins(name):
    net = NETS[name]()
    outputs = matrix(net, WIDE).shape[0]
    h = rand(200, outputs, seed=99)
    x = top(net, h, WIDE)
    with torch.no_grad():
        ratio = (net(x) * h).sum(1) / h.square().sum(1)
    # Over h the mean is tr(MMᵀ)/(rows·E): right but for how far Σ‖row‖² of M is from the sum of its paths'
    # energies: products of independent Gaussian weights, which agree to about 1/WIDE; three joins deep: 3.
    error = 4 * float(ratio.std()) / sqrt(len(h)) + 12 / WIDE
    assert abs(float(ratio.mean()) - 1) < error


def test_both_halves_of_a_concatenation_are_recovered_alike():
    net = NETS["[v + Fv; Wx]"]()
    h = rand(300, 400, seed=99)
    with torch.no_grad():
        y = net(top(net, h, WIDE))
    first, second = (
        (y * h)[:, part].sum(1) / h.square()[:, part].sum(1) for part in (slice(200), slice(200, 400))
    )
    # The block's half has twice the energy of the other, and x̃ = Mᵀh/E has one E for all: 2/1.5 and 1/1.5.
    assert float(first.mean()) == pytest.approx(4 / 3, abs=0.1)  # to 1/√(rows·inputs) and the spread over h
    assert float(second.mean()) == pytest.approx(2 / 3, abs=0.1)


# join itself


def test_one_estimate_is_itself_and_alone_it_begins_anew():
    one = Estimate(rand(2, 3), 5.0, ((0.0, 0.5),))
    assert join([one]) is one
    alone = join([one], alone=True)
    assert (alone.energy, alone.share) == (1.0, ((0.0, 1.0),))
    assert torch.equal(alone.value, one.value)


@given(st.lists(st.tuples(st.floats(0.01, 10), st.booleans(), st.booleans()), min_size=2, max_size=5))
def test_join_is_the_dense_formula(paths):
    """M has two halves, each a sum of some Mᵢ: ΣMᵢᵀh over the mean energy of the halves explained."""
    paths = [(e, low or not high, high) for e, low, high in paths]  # each explains something
    shares = [((0.0, 0.5),) * low + ((0.5, 1.0),) * high for _, low, high in paths]
    values = [rand(2, 3, seed=seed) for seed in range(len(paths))]
    joined = join([Estimate(v, e, s) for v, (e, _, _), s in zip(values, paths, shares, strict=True)])
    halves = [[e for e, *covers in paths if covers[half]] for half in (0, 1)]
    explained = [half for half in halves if half]
    mean = sum(sum(half) for half in explained) / len(explained)
    assert joined.energy == pytest.approx(mean, rel=1e-12)
    expected = sum(e * v for v, (e, _, _) in zip(values, paths, strict=True)) / mean
    torch.testing.assert_close(joined.value, expected)
    assert length(joined.share) == pytest.approx(len(explained) / 2, rel=1e-12)


def test_joining_dead_paths_is_their_mean():
    values = [rand(2, 3), rand(2, 3, seed=1)]
    joined = join([Estimate(value, 0.0) for value in values])
    torch.testing.assert_close(joined.value, (values[0] + values[1]) / 2)


intervals = st.lists(st.tuples(st.integers(0, 39), st.integers(1, 10)), min_size=1, max_size=4).map(
    lambda pairs: [(begin, min(40, begin + size)) for begin, size in pairs]
)


@given(intervals)
def test_union_and_length_count_points_once(pairs):
    merged = union([((low / 40, high / 40),) for low, high in pairs])
    points = {point for low, high in pairs for point in range(low, high)}
    assert length(merged) == pytest.approx(len(points) / 40, abs=1e-9)
    assert all(high < low for (_, high), (low, _) in pairwise(merged))


def test_a_portion_of_a_share_and_too_many_pieces():
    assert portion(((0.0, 0.5), (0.6, 0.8)), 0.5, 1.0) == ((0.25, 0.5), (0.7, 0.8))
    many = union([((i / 100, i / 100 + 0.005),) for i in range(100)])
    assert len(many) == 1
    assert length(many) == pytest.approx(0.5, rel=1e-9)


# Nothing is changed, nothing leaks


@pytest.mark.parametrize("inplace", [False, True])
@pytest.mark.parametrize(
    "function",
    [
        lambda self, x: self.a(x) + self.relu(self.b(x)),
        lambda self, x: torch.cat([self.a(x), self.relu(self.b(x))], 1),
        lambda self, x: self.relu(self.a(x)) - self.relu(self.b(x)),
    ],
)
def test_neither_h_nor_the_other_path_is_changed_in_place(function, inplace):
    net = Net(function, a=(5, 4), b=(5, 4))
    net.relu = nn.ReLU(inplace=inplace)
    shadow = Shadow(net, scale=1.0, signed=True)
    h = rand(3, net(rand(1, 5)).shape[1])
    before = h.clone()
    x = shadow.sample(h, shadow.layers[-1])
    assert torch.equal(h, before)
    net.relu = nn.ReLU(inplace=False)
    torch.testing.assert_close(x, Shadow(net, scale=1.0, signed=True).sample(h, shadow.layers[-1]))
    x.zero_()
    assert torch.equal(h, before)


def test_a_net_whose_layer_is_its_input_gives_a_copy_of_h():
    net = Net(lambda self, x: x + self.f(x), f=(4, 4))
    nn.init.zeros_(net.f.weight)
    h = rand(2, 4)
    before = h.clone()
    x = top(net, h, 4)
    torch.testing.assert_close(x, h)  # a block of zeros: all energy is the skip connection's
    x.zero_()
    assert torch.equal(h, before)


def test_keep_drops_below_the_layer_generated_from_and_is_divided_out():
    net = Net(lambda self, x: self.b(F.relu(self.a(x))), a=(3, 2000), b=(2000, 2))
    h = rand(1, 2)
    shadow = Shadow(net, signed=True)
    whole = F.relu(h @ net.b.weight.detach() * 2 / energy(net.b.weight.detach()))
    drawn = shadow.sample(h.repeat(400, 1), "b", keep={"b": 0.25}, generator=torch.Generator().manual_seed(0))
    a = net.a.weight.detach()
    expected = whole @ a / energy(a)
    # Each entry is a sum over units, kept with ρ and divided by it: the mean is unchanged.
    spread = drawn.std(0) / sqrt(400)
    assert ((drawn.mean(0) - expected[0]).abs() < 5 * spread).all()
    assert (drawn.std(0) > 0).all()


def test_a_deep_net_neither_over_nor_underflows():
    class Block(nn.Module):
        def __init__(self, seed: int) -> None:
            super().__init__()
            self.f = nn.Linear(8, 8, bias=False)
            self.f.weight.data.copy_(1e3 * rand(8, 8, seed=seed))

        def forward(self, x):
            return x + F.relu(self.f(x))

    net = nn.Sequential(*[Block(seed) for seed in range(60)]).double()  # energies of 10⁶ sixty times: 10³⁶⁰
    shadow = Shadow(net)
    x = shadow.sample(rand(2, 8).abs(), shadow.layers[-1], input_shape=(8,))
    assert x.isfinite().all()
    assert (x != 0).any()


@pytest.mark.usefixtures("rules")
def test_a_linear_step_from_outside_is_scaled_by_probing():
    class Triple(nn.Module):
        def forward(self, x):
            return torch.tensor(3.0).item() * x

    register_rule(Triple, Rule(reverse=lambda module, h, shape: 3 * h))
    net = nn.Sequential(Triple(), nn.Linear(4, 4, bias=False)).double()
    nn.init.eye_(net[1].weight)
    h = rand(3, 4)
    torch.testing.assert_close(Shadow(net, scale=1.0, signed=True).sample(h, "1"), h / 3)


def test_pooling_between_layers_by_hand():
    """Convolution 1×1, ReLU, average pooling, linear: spread over the windows, rectified, taken down."""
    net = nn.Sequential(
        nn.Conv2d(1, 2, 1, bias=False), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(8, 3, bias=False)
    ).double()
    h = rand(5, 3)
    conv, linear = net[0].weight.detach()[:, 0, 0, 0], net[4].weight.detach()
    pooled = (2 * h @ linear / energy(linear)).reshape(5, 2, 2, 2)
    # the adjoint of a mean of 4 is a quarter each, its energy 4·(1/4)²: h on every pixel
    hidden = pooled.repeat_interleave(2, 2).repeat_interleave(2, 3).clamp(min=0)
    expected = (2 * torch.einsum("c,ncyx->nyx", conv, hidden) / conv.square().mean()).clamp(min=0)
    shadow = Shadow(net, input_shape=(1, 4, 4))
    torch.testing.assert_close(shadow.sample(h, "4"), expected[:, None])


class Broadcast(nn.Module):
    """A factor, or a gate, larger than what it multiplies."""

    def __init__(self, gate: bool) -> None:
        super().__init__()
        self.up, self.gate = nn.Conv2d(1, 2, 1, bias=False), gate
        self.head = nn.Linear(2 * 4 * 4, 3)

    def forward(self, x):
        value = self.up(x).mean((2, 3), keepdim=True)
        wide = torch.sigmoid(x) if self.gate else torch.ones(4, 4, dtype=torch.float64)
        return self.head((value * wide).flatten(1))


@pytest.mark.parametrize("gate", [False, True])
def test_a_value_that_a_factor_or_gate_broadcasts_comes_down_in_its_own_shape(gate):
    net = Broadcast(gate).double()
    x = torch.rand(2, 1, 4, 4, dtype=torch.float64)
    result = Shadow(net).of(x, "head")
    assert result.shape == x.shape
    assert result.isfinite().all()
