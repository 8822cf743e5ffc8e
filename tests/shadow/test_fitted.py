"""The fitted reverse of whole nets: against ridge regression by hand, as a function of h, at its edges."""

import copy
import pickle

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge as Peer
from torch import nn

from obverse import BadInput, Shadow, ShadowLoss
from obverse.nets import small_resnet
from obverse.shadow import Rule, recovery, register_rule
from obverse.shadow._activations import SelfGate
from obverse.shadow._reversal import _RULES, Activation

IMAGE = (1, 8, 8)


def digits(count=80):
    from sklearn.datasets import load_digits

    return torch.tensor(load_digits().images[:count, None] / 16, dtype=torch.float32)


def flat_net():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Flatten(), nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 30), nn.ReLU(), nn.Linear(30, 10)
    )


def conv_net():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(64, 10),
    )  # fmt: skip


def fitted(net, x=None):
    shadow = Shadow(net, reverse="fitted")
    shadow.calibrate(digits() if x is None else x)
    return shadow


def test_two_layers_are_two_regressions_by_hand():
    """From h of the second layer: ridge to the first, cut at 0, ridge to the input on what that gave."""
    net, x = flat_net().double(), digits().double()
    shadow = fitted(net, x)
    way = shadow.fitted("3")
    first, second = way.steps
    with torch.no_grad():
        lower, upper = net[:3](x).numpy(), net[:5](x).numpy()
    down = Peer(alpha=first.strength).fit(upper, lower)
    delivered = np.maximum(down.predict(upper), 0)
    last = Peer(alpha=second.strength).fit(delivered, x.flatten(1).numpy())
    fresh = torch.tensor(np.random.default_rng(0).normal(size=(5, 30)) ** 2)
    wanted = np.maximum(last.predict(np.maximum(down.predict(fresh.numpy()), 0)), 0)
    told = shadow.sample(fresh, "3").flatten(1).numpy()
    np.testing.assert_allclose(told, wanted, atol=1e-8)  # double: rounding, times condition numbers of 10⁶
    assert (first.tensor, first.features, first.targets) == ("2", 30, 48)
    assert (second.tensor, second.features, second.targets) == ("0", 48, 64)


def test_what_nothing_is_lost_in_comes_back():
    """Square maps without activations: what is left is the least ridge, 1e-6 of the mean eigenvalue."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(12, 12), nn.Linear(12, 12)).double()
    x = torch.rand(100, 12, dtype=torch.float64)
    shadow = fitted(net, x)
    fresh = torch.rand(20, 12, dtype=torch.float64)
    found = shadow.of(fresh, "1")
    assert float((found - fresh).square().sum() / fresh.square().sum()) < 1e-3


@pytest.mark.parametrize("make", [flat_net, conv_net, lambda: small_resnet(IMAGE, classes=10)])
def test_it_recovers_what_the_transpose_loses(make):
    """On other inputs than those of the fit: better than the calibrated transpose, and than any control."""
    torch.manual_seed(3)
    net, x = make().eval(), digits(160)
    shadow, transpose = fitted(net, x[:80]), Shadow(net)
    transpose.calibrate(x[:80])
    test = x[80:]
    names = shadow.layers[-3:-1]
    ours, theirs = (recovery(one, test, layers=names).errors for one in (shadow, transpose))
    for name, h in shadow.hidden(test, names).items():
        unrelated = float((h.roll(1, 0) - h).square().sum() / h.square().sum())
        mean = float((h.mean(0) - h).square().sum() / h.square().sum())
        assert ours[name] < min(theirs[name], unrelated, mean), name


def test_it_is_a_function_of_h():
    shadow = fitted(conv_net())
    x = digits(90)[80:]
    h = shadow.infer(x, "4")
    assert torch.equal(shadow.of(x, "4"), shadow.sample(h, "4"))
    assert torch.equal(shadow.from_hidden(torch.rand(10, *IMAGE), h, "4"), shadow.sample(h, "4"))


def test_inference_recovers_the_same_after_a_copy():
    shadow = fitted(conv_net())
    x = digits(90)[80:]
    want = shadow.of(x)
    pickled = pickle.loads(pickle.dumps(shadow))  # noqa: S301  (our own)
    for other in (copy.deepcopy(shadow), pickled, shadow.like(shadow.net)):
        torch.testing.assert_close(other.of(x), want)


def test_images_do_not_get_negative_where_inputs_are_not():
    shadow = fitted(conv_net())
    assert float(shadow.of(digits(90)[80:]).min()) >= 0
    signed = fitted(conv_net(), 2 * torch.randn(40, *IMAGE, generator=torch.Generator().manual_seed(0)))
    assert signed.signed
    assert float(signed.of(digits(90)[80:] - 0.5).min()) < 0


def test_keep_drops_and_keeps_the_mean():
    """One layer: each pixel is kept with probability ρ and then divided by it. 4 standard errors of 4,000."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 20))
    shadow = fitted(net)
    h = shadow.infer(digits(1), "1")
    whole = shadow.sample(h, "1")
    draws = shadow.sample(h.expand(4000, -1), "1", keep=0.25, generator=torch.Generator().manual_seed(1))
    bright = whole[0] > 0.2
    share = (draws[:, bright] > 0).double().mean(0)
    assert float((share - 0.25).abs().max()) < 4 * (0.25 * 0.75 / 4000) ** 0.5
    torch.testing.assert_close(draws.max(0).values[bright], 4 * whole[0][bright])
    again = shadow.sample(h.expand(4000, -1), "1", keep=0.25, generator=torch.Generator().manual_seed(1))
    assert torch.equal(draws, again)


def test_refinement_goes_on_from_it():
    shadow = fitted(conv_net())
    x = digits(100)[80:]
    h = shadow.infer(x, "4")

    def error(steps):
        return float((shadow.infer(shadow.of(x, "4", refine=steps), "4") - h).detach().square().sum())

    assert error(10) < 0.5 * error(0)


def test_training_with_it():
    net = conv_net()
    loss = ShadowLoss(fitted(net))
    loss(digits(20), torch.arange(20) % 10).backward()
    assert all(bool(one.grad.isfinite().all()) for one in net.parameters())


def test_what_it_does_not_do_says_so():
    shadow = fitted(conv_net())
    x = digits(10)
    with pytest.raises(BadInput, match="no switches with the fitted reverse"):
        shadow.of(x, switches=True)
    with pytest.raises(BadInput, match="the transpose for a loss on the shadow itself"):
        shadow.direction(x)
    with pytest.raises(BadInput, match="no scale for the fitted reverse"):
        shadow.scale = 0.5
    with pytest.raises(BadInput, match="reverse out of"):
        Shadow(conv_net(), reverse="inverse")
    with pytest.raises(BadInput, match="call calibrate"):
        Shadow(conv_net(), reverse="fitted").of(x)
    with pytest.raises(BadInput, match="as those it was fitted on"):
        fitted(conv_net()[:3]).sample(torch.zeros(2, 8, 9, 9), input_shape=(1, 9, 9))
    with pytest.raises(BadInput, match="at least 8 inputs"):
        Shadow(conv_net(), reverse="fitted").calibrate(digits(7))


def test_broken_weights_are_a_sentence():
    net = conv_net()
    with torch.no_grad():
        net[4].weight[0] = float("nan")
    with pytest.raises(BadInput, match="finite activations"):
        Shadow(net, reverse="fitted").calibrate(digits())


def test_dead_units_and_constant_layers_give_finite_images():
    net = conv_net()
    with torch.no_grad():
        net[4].weight.zero_()
        net[4].bias.fill_(-1)  # all of this layer is dead
        net[7].weight.zero_()
    shadow = fitted(net)
    for name in shadow.layers:
        assert bool(shadow.of(digits(90)[80:], name).isfinite().all()), name
    # nothing is known of the input: its mean is what comes back
    torch.testing.assert_close(shadow.of(digits(2), "4")[0], shadow.of(digits(2), "4")[1])


def test_a_layer_without_a_fitted_rule_goes_by_its_adjoint_and_is_named(rules):
    class Mine(nn.Linear):
        def forward(self, x):
            return 2 * super().forward(x)

    def back(module, h, shape):
        return 2 * h @ module.weight

    register_rule(Mine, Rule(reverse=back, energy=lambda m, s: (2 * m.weight).square().sum(1)))
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), Mine(64, 40), nn.ReLU(), nn.Linear(40, 10))
    found = Shadow(net, reverse="fitted").calibrate(digits())
    assert found.adjoint == ("1",)
    assert "no fitted rule, by their adjoint: 1" in str(found)
    assert fitted(flat_net()).fitted().adjoint == ()


def test_the_report_says_what_was_fitted():
    found = Shadow(conv_net(), reverse="fitted").calibrate(digits())
    assert [one.tensor for one in found.fits] == ["3", "input"]
    assert found.inputs == 80
    assert found.fits[0].features == 16 * 4  # 2 × 2 outputs of the stride saw a cell
    assert found.fits[0].targets == 8 * 4
    assert str(found).startswith("fitted on 80 inputs, from the top down")
    assert all(one.error is None or 0 <= one.error < 1.5 for one in found.fits)


class Joins(nn.Module):
    """A norm that is not folded, a concatenation, a gate, a sum with a shortcut, and a mean over places."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(1, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.left, self.right = nn.Conv2d(8, 6, 3, padding=1), nn.Conv2d(8, 6, 1)
        self.deep = nn.Conv2d(12, 12, 3, padding=1, groups=12)
        self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(12, 12, 1), nn.Sigmoid())
        self.down = nn.Conv2d(12, 16, 3, stride=2, padding=1)
        self.short = nn.Conv2d(12, 16, 1, stride=2)
        self.head = nn.Linear(16, 10)

    def forward(self, x):
        x = self.stem(x)
        y = torch.relu(self.norm(x))
        y = torch.cat((self.left(y).relu(), nn.functional.silu(self.right(y))), 1)
        y = y + self.deep(y)
        y = y * self.gate(y)
        y = torch.relu(self.down(y) + self.short(y))
        return self.head(y.mean((2, 3)))


def test_joins_of_every_kind():
    torch.manual_seed(0)
    net, x = Joins().eval(), digits(120)
    shadow = fitted(net, x[:80])
    names = shadow.layers[:-1]  # the top of a fresh net hardly varies
    errors = recovery(shadow, x[80:], layers=names).errors
    h = shadow.hidden(x[80:])
    for name, error in errors.items():
        mean = float((h[name].mean(0) - h[name]).square().sum() / h[name].square().sum())
        assert error < 0.7 * mean, name  # at the worst layer it was 0.4 of it


def test_tokens():
    """Linear layers over the last dimension, layer norm, and sums: rows are tokens."""

    class Mixer(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Linear(8, 16)
            self.norm = nn.LayerNorm(16)
            self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 16)
            self.across = nn.Linear(8, 8)
            self.head = nn.Linear(16, 10)

        def forward(self, x):
            x = self.embed(x.flatten(1, 2))
            x = x + self.down(nn.functional.gelu(self.up(self.norm(x))))
            x = x + self.across(x.transpose(1, 2)).transpose(1, 2)
            return self.head(x.mean(1))

    torch.manual_seed(0)
    x = digits(120)
    shadow = fitted(Mixer(), x[:80])
    errors = recovery(shadow, x[80:], layers=[one for one in shadow.layers if one != "head"]).errors
    assert max(errors.values()) < 0.05


def test_bounds_of_activations_hold_and_are_reached():
    """Nothing an activation gives lies outside its bounds, and it comes within 1 % of each that is finite."""
    grid = torch.linspace(-300, 300, 600_001, dtype=torch.float64)
    seen = 0
    for kind, rule in _RULES.items():
        if not isinstance(rule, Activation) or kind.__module__ != "torch.nn.modules.activation":
            continue
        module = kind().double()
        low, high = rule.bounds(module)
        with torch.no_grad():
            values = module(grid) if kind is not nn.RReLU else module.eval()(grid)
        assert low <= float(values.min()), kind
        assert float(values.max()) <= high, kind
        assert low == -float("inf") or float(values.min()) - low < 0.01
        assert high == float("inf") or high - float(values.max()) < 0.01
        seen += low > -float("inf")
    assert seen >= 12
    assert _RULES[SelfGate].bounds(SelfGate(())) == (-float("inf"), float("inf"))


def test_rows_are_as_many_as_their_products_allow():
    from obverse.shadow._samples import FEWEST, MOST, WORK, affordable

    for width in (1, 64, 576, 1152, 2304, 4608, 25088):
        rows = affordable(width)
        assert FEWEST <= rows <= MOST
        cost = rows * width * min(rows, width)
        assert cost <= WORK or rows == FEWEST
        assert cost > 0.9 * WORK or rows in (FEWEST, MOST)


def bad(kind):
    net = conv_net().eval()
    with torch.no_grad():
        if kind == "NaN":
            net[0].weight[0] = float("nan")
        elif kind == "overflow":
            net[0].weight.mul_(1e30)
            net[4].weight.mul_(1e30)
        elif kind == "dead units":
            net[4].weight[:4], net[4].bias[:4] = 0, -1
        elif kind == "dead layer":
            net[4].weight.zero_()
            net[4].bias.fill_(-1)
        elif kind == "constant layer":
            net[7].weight.zero_()
    return net


@pytest.mark.parametrize("reverse", ["transpose", "fitted"])
@pytest.mark.parametrize("kind", ["NaN", "overflow"])
def test_activations_that_are_no_numbers_are_named(kind, reverse):
    shadow = Shadow(bad(kind), reverse=reverse)
    with pytest.raises(BadInput, match=r"finite activations to (fit|calibrate).*NaN or infinity at '"):
        shadow.calibrate(digits())


@pytest.mark.parametrize("reverse", ["transpose", "fitted"])
@pytest.mark.parametrize("kind", ["dead units", "dead layer", "constant layer"])
def test_what_is_dead_or_constant_gives_finite_images(kind, reverse):
    shadow = Shadow(bad(kind), reverse=reverse)
    for x in (digits(), digits()[:1].expand(20, -1, -1, -1).clone(), torch.zeros(20, *IMAGE)):
        shadow.calibrate(x)
        for name in shadow.layers:
            assert bool(shadow.of(digits()[:4], name).isfinite().all()), name


def test_few_inputs_are_said_to_be_few():
    assert "fewer than 50 inputs" in str(Shadow(conv_net(), reverse="fitted").calibrate(digits(20)))
    assert "fewer than" not in str(Shadow(conv_net(), reverse="fitted").calibrate(digits(50)))
