"""From modules to layers: names, order, reuse, and what is refused."""

from collections import OrderedDict

import pytest
import torch
from torch import nn

from obverse.errors import BadInput
from obverse.nets import relu_mlp
from obverse.shadow import Shadow, trace


def names(net: nn.Module) -> list[tuple[str, list[str], str | None]]:
    """(layer, names before it, its activation) for each layer."""
    return [
        (layer.name, [stage.name for stage in layer.before], layer.activation and layer.activation.name)
        for layer in trace(net)
    ]


def test_relu_mlp_has_the_papers_layers():
    assert names(relu_mlp((1, 2, 2), (5, 4), 3, dropout=0.5)) == [
        ("h1", ["flatten"], "relu1"),
        ("h2", ["dropout1"], "relu2"),
        ("h3", ["dropout2"], None),
    ]


def test_nested_sequentials_are_one_chain_with_dotted_names():
    net = nn.Sequential(
        OrderedDict(
            body=nn.Sequential(nn.Flatten(), nn.Sequential(nn.Linear(4, 5), nn.ReLU())),
            head=nn.Sequential(nn.Identity(), nn.Linear(5, 2)),
        )
    )
    assert names(net) == [
        ("body.1.0", ["body.0"], "body.1.1"),
        ("head.1", ["head.0"], None),
    ]
    x = torch.rand(3, 2, 2)
    assert torch.equal(Shadow(net).infer(x, "head.1"), net(x))


def test_a_relu_object_used_twice_is_two_stages():
    relu = nn.ReLU()
    layers = trace(nn.Sequential(nn.Linear(4, 5), relu, nn.Linear(5, 3), relu, nn.Linear(3, 2)))
    assert [layer.name for layer in layers] == ["0", "2", "4"]
    assert [layers[0].output.call, layers[1].output.call] == [0, 1]
    assert layers[2].activation is None


def test_a_linear_layer_used_twice_is_two_layers():
    tied = nn.Linear(4, 4)
    net = nn.Sequential(tied, nn.ReLU(), tied)
    assert [(layer.name, layer.map.call) for layer in trace(net)] == [("0", 0), ("2", 1)]


def test_linear_after_linear_has_no_relu_in_the_reverse():
    first, second = nn.Linear(4, 6, dtype=torch.float64), nn.Linear(6, 3, dtype=torch.float64)
    shadow = Shadow(nn.Sequential(first, second), scale=1.0)
    h = torch.randn(5, 3, dtype=torch.float64)
    below = h @ second.weight.detach()
    assert (below < 0).any()
    torch.testing.assert_close(shadow.sample(h, "1"), (below @ first.weight.detach()).clamp(min=0))


def test_a_single_linear_module_is_a_net():
    assert names(nn.Linear(3, 2)) == [("Linear", [], None)]


class Custom(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 2)

    def forward(self, x):
        return self.linear(x)


class Residual(nn.Sequential):
    """Looks like a chain and is none: its forward adds the input."""

    def forward(self, x):
        return x + super().forward(x)


@pytest.mark.parametrize("kind", [Custom, Residual])
def test_what_is_no_chain_is_refused_by_name(kind):
    module = Custom() if kind is Custom else Residual(nn.Linear(3, 3))
    with pytest.raises(
        BadInput, match=rf"got layer '{kind.__name__}' of type {kind.__name__}; build the net as"
    ):
        trace(module)
    with pytest.raises(BadInput, match=rf"got layer '1.0' of type {kind.__name__}; .*register_rule"):
        trace(nn.Sequential(nn.Linear(3, 3), nn.Sequential(module)))


@pytest.mark.parametrize(
    "modules",
    [
        [nn.ReLU(), nn.Linear(3, 2)],
        [nn.Linear(3, 2), nn.ReLU(), nn.ReLU()],
        [nn.Linear(3, 2), nn.Dropout(), nn.ReLU()],
    ],
)
def test_a_relu_that_belongs_to_no_layer_is_refused(modules):
    with pytest.raises(
        BadInput, match=r"expected each ReLU right behind an affine layer; got ReLU '.'.*; put it"
    ):
        trace(nn.Sequential(*modules))


def test_other_activations_are_refused_by_name():
    with pytest.raises(BadInput, match="layer '1' of type Tanh"):
        trace(nn.Sequential(nn.Linear(3, 2), nn.Tanh()))


@pytest.mark.parametrize("net", [nn.Sequential(), nn.Sequential(nn.Flatten())])
def test_a_net_without_layers_is_refused(net):
    with pytest.raises(BadInput, match="expected a net with at least one linear layer; got Sequential; pass"):
        trace(net)
