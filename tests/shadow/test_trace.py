"""From modules to layers: names, order, reuse, function calls, and what is refused."""

from collections import OrderedDict

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from obverse._core.errors import BadInput
from obverse.nets import relu_mlp
from obverse.shadow import Activation, Rule, Shadow, register_rule, trace


class Net(nn.Module):
    """A module from its children and one function of (self, x)."""

    def __init__(self, function, **children) -> None:
        super().__init__()
        self._function = function
        for name, child in children.items():
            setattr(self, name, child)

    def forward(self, x):
        return self._function(self, x)


def names(net: nn.Module) -> list[tuple[str, list[str], str | None]]:
    """(layer, the norms folded into it, its activation) for each layer."""
    return [
        (layer.name, [norm.name for norm in layer.norms], layer.activation and layer.activation.name)
        for layer in trace(net).layers.values()
    ]


def check_inference(net: nn.Module, x: torch.Tensor) -> None:
    """The graph computes what the net computes in evaluation mode, and generates something of x's shape."""
    shadow = Shadow(net)
    top = shadow.layers[-1]
    with torch.no_grad():
        assert torch.equal(shadow.infer(x, top), net.eval()(x))
    for layer in shadow.layers:
        x_shadow = shadow.of(x, layer)
        assert x_shadow.shape == x.shape
        assert x_shadow.isfinite().all()


# Chains


def test_relu_mlp_has_the_papers_layers():
    net = relu_mlp((1, 2, 2), (5, 4), 3, dropout=0.5)
    assert names(net) == [("h1", [], "relu1"), ("h2", [], "relu2"), ("h3", [], None)]
    check_inference(net, torch.rand(3, 1, 2, 2))


def test_a_subclass_with_a_forward_of_its_own_is_looked_into_and_keeps_its_name():
    net = relu_mlp((1, 2, 2), (5, 4), 3, uniform_bias=True)
    layers = trace(net).layers
    assert list(layers) == ["h1", "h2", "h3"]
    assert [layer.activation and layer.activation.name for layer in layers.values()] == [
        "relu1",
        "relu2",
        None,
    ]
    check_inference(net, torch.rand(3, 1, 2, 2))


def test_nested_sequentials_have_dotted_names():
    net = nn.Sequential(
        OrderedDict(
            body=nn.Sequential(nn.Flatten(), nn.Sequential(nn.Linear(4, 5), nn.ReLU())),
            head=nn.Sequential(nn.Identity(), nn.Linear(5, 2)),
        )
    )
    assert names(net) == [("body.1.0", [], "body.1.1"), ("head.1", [], None)]
    assert trace(net).is_chain
    check_inference(net, torch.rand(3, 2, 2))


def test_a_norm_belongs_to_the_map_before_it():
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(2, 3, 1))
    assert names(net) == [("0", ["1"], "2"), ("4", [], None)]


def test_a_single_module_is_a_net():
    assert names(nn.Linear(3, 2)) == [("Linear", [], None)]
    assert names(nn.Conv2d(3, 2, 1)) == [("Conv2d", [], None)]
    check_inference(nn.Linear(3, 2), torch.rand(4, 3))


def test_a_relu_object_used_twice_is_two_stages():
    relu = nn.ReLU()
    net = nn.Sequential(nn.Linear(4, 5), relu, nn.Linear(5, 3), relu, nn.Linear(3, 2))
    assert names(net) == [("0", [], "1"), ("2", [], "1@2"), ("4", [], None)]
    check_inference(net, torch.rand(2, 4))


def test_a_linear_layer_used_twice_is_two_layers():
    tied = nn.Linear(4, 4)
    net = nn.Sequential(tied, nn.ReLU(), tied)
    assert names(net) == [("0", [], "1"), ("0@2", [], None)]
    check_inference(net, torch.rand(2, 4))


def test_a_relu_elsewhere_than_behind_a_map_belongs_to_no_layer():
    assert names(nn.Sequential(nn.ReLU(), nn.Linear(3, 2))) == [("1", [], None)]
    assert names(nn.Sequential(nn.Linear(3, 2), nn.ReLU(), nn.ReLU())) == [("0", [], "1")]


def test_linear_after_linear_has_no_relu_in_the_reverse():
    first, second = nn.Linear(4, 6, dtype=torch.float64), nn.Linear(6, 3, dtype=torch.float64)
    shadow = Shadow(nn.Sequential(first, second), scale=1.0)
    h = torch.randn(5, 3, dtype=torch.float64)
    below = h @ second.weight.detach()
    assert (below < 0).any()
    torch.testing.assert_close(shadow.sample(h, "1"), (below @ first.weight.detach()).clamp(min=0))


# Joins


class Residual(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels)
        self.conv2, self.bn2 = nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        y += x
        return self.relu(y)


class PreActivation(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.bn, self.conv = nn.BatchNorm2d(channels), nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x):
        return x + self.conv(F.relu(self.bn(x)))


class Dense(nn.Module):
    def __init__(self, channels: int, growth: int) -> None:
        super().__init__()
        self.a = nn.Conv2d(channels, growth, 3, padding=1)
        self.b = nn.Conv2d(channels + growth, growth, 3, padding=1)

    def forward(self, x):
        x = torch.cat([x, F.relu(self.a(x))], 1)
        return torch.cat([x, F.relu(self.b(x))], dim=1)


class SqueezeExcite(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.pool, self.down, self.up = (
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(channels, 2, 1),
            nn.Conv2d(2, channels, 1),
        )

    def forward(self, x):
        return x * torch.sigmoid(self.up(F.relu(self.down(self.pool(x)))))


def wrapped(**middle: nn.Module) -> nn.Module:
    """Middle modules of 4 channels between a stem and a head."""
    width = 8 if "dense" in middle else 4
    return nn.Sequential(OrderedDict(stem=nn.Conv2d(1, 4, 3), **middle, head=nn.Conv2d(width, 3, 1)))


def test_a_residual_block_is_a_layer_by_the_name_of_the_block():
    net = wrapped(block1=Residual(4), block2=Residual(4))
    assert names(net) == [
        ("stem", [], None),
        ("block1.conv1", ["block1.bn1"], "block1.relu"),
        ("block1.conv2", ["block1.bn2"], None),
        ("block1", [], "block1.relu@2"),
        ("block2.conv1", ["block2.bn1"], "block2.relu"),
        ("block2.conv2", ["block2.bn2"], None),
        ("block2", [], "block2.relu@2"),
        ("head", [], None),
    ]
    assert not trace(net).is_chain
    assert Shadow(net).default_layer == "block2"
    check_inference(net, torch.rand(2, 1, 6, 6))


def test_a_block_used_twice_has_numbered_layers():
    block = Residual(4)
    net = nn.Sequential(nn.Conv2d(1, 4, 3), block, block)
    assert [name for name, _, _ in names(net)] == [
        "0",
        "1.conv1",
        "1.conv2",
        "1",
        "1.conv1@2",
        "1.conv2@2",
        "1@2",
    ]
    check_inference(net, torch.rand(2, 1, 6, 6))


def test_a_pre_activation_norm_belongs_to_no_layer():
    net = wrapped(block1=PreActivation(4), block2=PreActivation(4))
    assert [name for name, _, _ in names(net)] == [
        "stem", "block1.conv", "block1", "block2.conv", "block2", "head",
    ]  # fmt: skip
    assert all(norms == [] for _, norms, _ in names(net))
    check_inference(net, torch.rand(2, 1, 6, 6))


def test_concatenations_are_layers_too():
    net = wrapped(dense=Dense(4, 2))
    assert names(net) == [
        ("stem", [], None),
        ("dense.a", [], "relu"),
        ("cat", [], None),
        ("dense.b", [], "relu_1"),
        ("dense", [], None),
        ("head", [], None),
    ]
    check_inference(net, torch.rand(2, 1, 6, 6))


def test_neither_squeeze_and_excite_nor_the_maps_of_its_gate_are_layers():
    net = wrapped(act=nn.ReLU(), se=SqueezeExcite(4))
    assert names(net) == [
        ("stem", [], "act"),
        ("head", [], None),
    ]
    check_inference(net, torch.rand(2, 1, 6, 6))


def test_the_default_layer_lies_on_the_way_to_the_output():
    assert Shadow(wrapped(act=nn.ReLU(), se=SqueezeExcite(4))).default_layer == "stem"


def test_a_layer_can_be_named_by_the_module_that_returns_it():
    shadow = Shadow(wrapped(block=Residual(4)))
    assert shadow.layer("block.bn2") is shadow.layer("block.conv2")
    assert shadow.layer("block.relu") is shadow.layer("block.conv1")
    assert shadow.layer("block.relu@2") is shadow.layer("block")


@pytest.mark.parametrize(
    "join",
    [
        lambda a, b: torch.cat([a, b], 1),
        lambda a, b: torch.cat((a, b), dim=1),
        lambda a, b: torch.cat(tensors=(a, b), dim=-1),
        lambda a, b: torch.concat([a, b], axis=1),  # type: ignore[call-arg]
        lambda a, b: torch.hstack([a, b]),
    ],
)
def test_every_way_to_write_a_concatenation_gives_the_same_shadow(join):
    parts = {"a": nn.Linear(3, 4), "b": nn.Linear(3, 5), "top": nn.Linear(9, 2)}
    net = Net(lambda self, x: self.top(join(self.a(x), self.b(x))), **parts).double()
    plain = Net(lambda self, x: self.top(torch.cat([self.a(x), self.b(x)], 1)), **parts)
    h = torch.randn(6, 2, dtype=torch.float64)
    shadow = Shadow(net)
    torch.testing.assert_close(shadow.sample(h, "top"), Shadow(plain).sample(h, "top"))
    check_inference(net, torch.rand(2, 3, dtype=torch.float64))


@pytest.mark.parametrize(
    "add",
    [lambda a, b: a + b, torch.add, lambda a, b: a.add(b), lambda a, b: a.add_(b), lambda a, b: sum([a, b])],
)
def test_every_way_to_write_an_addition_gives_the_same_shadow(add):
    parts = {"a": nn.Linear(3, 4), "b": nn.Linear(3, 4), "top": nn.Linear(4, 2)}
    net = Net(lambda self, x: self.top(F.relu(add(self.a(x), self.b(x)))), **parts).double()
    plain = Net(lambda self, x: self.top(F.relu(self.a(x) + self.b(x))), **parts)
    h = torch.randn(6, 2, dtype=torch.float64)
    torch.testing.assert_close(Shadow(net).sample(h, "top"), Shadow(plain).sample(h, "top"))
    check_inference(net, torch.rand(2, 3, dtype=torch.float64))


def test_what_is_subtracted_comes_down_with_its_sign():
    net = Net(lambda self, x: x - self.f(x), f=nn.Linear(3, 3, bias=False)).double()
    shadow = Shadow(net, scale=1.0, signed=True)
    h = torch.randn(4, 3, dtype=torch.float64)
    size = float(net.f.weight.detach().square().sum()) / 3
    # paths of energies 1 and n s²: (1·h + n s²·(−Wᵀh)) / (1 + n s²), with the scale 1 in place of 1/n s²
    expected = (h - size * (h @ net.f.weight.detach())) / (1 + size)
    torch.testing.assert_close(shadow.sample(h, shadow.layers[-1]), expected)


# Function calls


class Functional(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 4, 3), nn.Conv2d(4, 5, 2)
        self.fc1, self.fc2 = nn.Linear(5, 8), nn.Linear(8, 3)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.dropout(F.leaky_relu(self.conv2(x), 0.2), training=self.training)
        x = F.relu(self.fc1(torch.flatten(x, 1)), inplace=True)
        return self.fc2(x.view(x.size(0), -1))


def test_functions_are_the_modules_they_stand_for():
    net = Functional()
    assert names(net) == [
        ("conv1", [], "relu"), ("conv2", [], "leaky_relu"), ("fc1", [], "relu_1"), ("fc2", [], None),
    ]  # fmt: skip
    check_inference(net, torch.rand(2, 1, 6, 6))
    modules = nn.Sequential(
        net.conv1, nn.ReLU(), nn.MaxPool2d(2), net.conv2, nn.LeakyReLU(0.2), nn.Dropout(), nn.Flatten(),
        net.fc1, nn.ReLU(), net.fc2,
    )  # fmt: skip
    h = torch.randn(2, 3)
    twin = Shadow(modules, input_shape=(1, 6, 6)).sample(h, "9")
    assert torch.equal(Shadow(net, input_shape=(1, 6, 6)).sample(h, "fc2"), twin)


@pytest.mark.parametrize("end", [nn.Softmax(1), nn.LogSoftmax(1)])
def test_what_comes_after_the_last_layer_is_harmless(end):
    body = nn.Linear(3, 2)
    h = torch.randn(4, 2)
    assert names(nn.Sequential(body, end)) == [("0", [], None)]
    assert torch.equal(Shadow(nn.Sequential(body, end)).sample(h), Shadow(nn.Sequential(body)).sample(h))


def test_arguments_with_a_default_keep_it():
    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(3, 4), nn.Linear(4, 2)

        def forward(self, x, mask=None, rectify=True):
            x = self.a(x)
            if mask is not None:
                x = x * mask
            return self.b(F.relu(x) if rectify else x)

    assert names(Masked()) == [("a", [], "relu"), ("b", [], None)]
    check_inference(Masked(), torch.rand(2, 3))


def test_a_net_that_branches_on_its_mode_is_traced_as_in_evaluation():
    class Auxiliary(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b, self.extra = nn.Linear(3, 4), nn.Linear(4, 2), nn.Linear(4, 2)

        def forward(self, x):
            x = F.relu(self.a(x))
            return (self.b(x), self.extra(x)) if self.training else self.b(x)

    net = Auxiliary().train()
    assert [name for name, _, _ in names(net)] == ["a", "b"]
    assert net.training
    assert net.a.training


def test_layers_whose_result_the_net_throws_away_do_no_harm():
    def forward(self, x):
        x = self.a(x)
        self.unused(x)
        return self.b(x)

    net = Net(forward, a=nn.Linear(3, 4), unused=nn.Linear(4, 2), b=nn.Linear(4, 2))
    check_inference(net, torch.rand(2, 3))


def test_tracing_and_generating_leave_the_net_as_it_was():
    net = wrapped(block=Residual(4)).train()
    x = torch.rand(3, 1, 6, 6)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    Shadow(net).of(x)
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert all(module.training for module in net.modules())
    assert net.block.relu.inplace
    assert not any(module._forward_hooks for module in net.modules())


# Refusals


class Strange(nn.Module):
    def forward(self, x):
        return torch.sin(x)


class Branching(nn.Module):
    """Cannot be traced: what it does depends on the values."""

    def forward(self, x):
        return x if x.sum() > 0 else -x


def test_an_unknown_module_is_named_with_the_way_to_register_it():
    net = nn.Sequential(OrderedDict(a=nn.Linear(3, 3), odd=nn.Softmax(1), b=nn.Linear(3, 2)))
    with pytest.raises(BadInput) as caught:
        trace(net)
    sentence = str(caught.value)
    assert "'odd', a Softmax" in sentence
    assert "obverse.shadow.register_rule(Softmax, Rule(reverse=" in sentence


def test_an_unknown_function_is_named_by_its_node():
    net = nn.Sequential(nn.Linear(3, 3), Strange(), nn.Linear(3, 2))
    with pytest.raises(BadInput) as caught:
        trace(net)
    sentence = str(caught.value)
    assert "'sin', a call of sin" in sentence
    assert "torch.fx node sin" in sentence
    assert "register_rule(" in sentence


def test_unknown_steps_above_every_layer_or_beside_the_way_down_are_no_matter():
    assert names(nn.Sequential(nn.Linear(3, 2), Strange())) == [("0", [], None)]
    gated = Net(lambda self, x: self.b(x * torch.sigmoid(torch.sin(x))), b=nn.Linear(3, 2))
    assert names(gated) == [("b", [], None)]


@pytest.mark.parametrize(
    "combine",
    [
        lambda a, b: a * b,
        lambda a, b: a @ b.transpose(0, 1),
        lambda a, b: a / b,
        lambda a, b: torch.maximum(a, b),
        lambda a, b: torch.stack([a, b]),
    ],
)
def test_two_tensors_in_an_operation_without_rule_are_refused(combine):
    net = Net(
        lambda self, x: self.top(combine(self.a(x), self.b(x))), a=nn.Linear(3, 4), b=nn.Linear(3, 4),
        top=nn.Linear(4, 2),
    )  # fmt: skip
    with pytest.raises(BadInput, match="steps that can be reversed below every layer; got '"):
        trace(net)


@pytest.mark.parametrize(
    "join",
    [
        lambda self, x: torch.cat([self.constant.expand(2, 4), self.a(x)], 1),
        lambda self, x: torch.cat(self.a(x).chunk(2, 1), 1),
        lambda self, x: torch.cat([self.a(x), self.a(x)], 0),
    ],
    ids=["with a constant", "of pieces", "along the batch"],
)
def test_concatenations_that_cannot_be_cut_are_refused_with_a_sentence(join):
    net = Net(lambda self, x: self.top(join(self, x)), a=nn.Linear(3, 4), top=nn.Linear(4, 2))
    net.constant = nn.Parameter(torch.ones(1, 4))
    with pytest.raises(BadInput):
        Shadow(net).graph.shapes((3,))


def test_a_module_that_branches_on_its_input_is_refused_by_name():
    net = nn.Sequential(OrderedDict(a=nn.Linear(3, 3), odd=Branching(), b=nn.Linear(3, 2)))
    with pytest.raises(BadInput) as caught:
        trace(net)
    sentence = str(caught.value)
    assert "expected a net that torch.fx can trace" in sentence
    assert "'odd'" in sentence
    assert "register_rule(" in sentence


@pytest.mark.usefixtures("rules")
def test_a_rule_makes_such_a_module_one_step():
    register_rule(Branching, Rule(reverse=lambda module, h, shape: h, exact=True))
    net = nn.Sequential(OrderedDict(a=nn.Linear(3, 3), odd=Branching(), b=nn.Linear(3, 2)))
    assert names(net) == [("a", [], None), ("b", [], None)]
    check_inference(net, torch.rand(2, 3))


@pytest.mark.usefixtures("rules")
def test_an_activation_from_outside_is_one_line():
    register_rule(Strange, Activation(slope=lambda module: 1.0))
    net = nn.Sequential(nn.Linear(3, 4), Strange(), nn.Linear(4, 2)).double()
    assert names(net) == [("0", [], "1"), ("2", [], None)]
    h = torch.randn(5, 2, dtype=torch.float64)
    below = torch.sin(0.5 * h @ net[2].weight.detach())
    expected = 0.5 * below @ net[0].weight.detach()
    torch.testing.assert_close(Shadow(net, scale=0.5, signed=True).sample(h, "2"), expected)


def test_compiled_nets_are_declined_with_a_sentence():
    net = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 2))
    with pytest.raises(BadInput, match=r"torch\.compile.*the module itself, and compile after that"):
        trace(torch.compile(net, backend="eager"))
    with pytest.raises(BadInput, match=r"torch\.compile"):
        trace(nn.Sequential(torch.compile(net[0], backend="eager"), net[2]))


def test_nets_with_two_inputs_are_refused():
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Linear(3, 3)

        def forward(self, x, y):
            return self.a(x) + y

    with pytest.raises(BadInput, match=r"expected a net with one input; got a second one, 'y'"):
        trace(Two())


@pytest.mark.parametrize("net", [nn.Sequential(), nn.Sequential(nn.Flatten()), nn.ReLU()])
def test_a_net_without_layers_is_refused(net):
    with pytest.raises(BadInput, match="expected a net with at least one linear layer or convolution; got "):
        trace(net)


def test_a_layer_that_mixes_the_batch_is_refused_by_name():
    net = nn.Sequential(OrderedDict(flat=nn.Flatten(0), unflat=nn.Unflatten(0, (-1, 3)), top=nn.Linear(3, 2)))
    with pytest.raises(BadInput, match=r"'flat' \(Flatten\) to keep the batch as its first dimension"):
        Shadow(net).of(torch.rand(2, 3))


def test_an_in_place_activation_whose_input_is_read_again_is_refused_or_right():
    net = Net(
        lambda self, x: (lambda y: self.relu(y) + y)(self.a(x)), a=nn.Linear(3, 4), relu=nn.ReLU(inplace=True)
    )
    x = torch.randn(5, 3)
    try:
        shadow = Shadow(net)
    except BadInput as refusal:
        assert "relu" in str(refusal)  # noqa: PT017
    else:
        # y is rectified when it is read again, so that the sum is twice the layer
        assert torch.equal(2 * shadow.infer(x, shadow.layers[-1]), net(x))
