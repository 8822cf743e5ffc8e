"""Matrices written into a net: the inverse of reading them, and undone bit by bit."""

from __future__ import annotations

import copy
import warnings

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations, prune

from obverse.weights import weights_of
from obverse.weights._ablation.place import matrix_of, place_of, replaced, with_matrix


class FusedBlock(nn.Module):
    """GPT-2's layers, stored in × out, the first of them query, key and value in one."""

    def __init__(self) -> None:
        super().__init__()
        self.c_attn, self.c_proj = nn.Module(), nn.Module()
        self.c_attn.weight = nn.Parameter(torch.randn(6, 18))
        self.c_attn.bias = nn.Parameter(torch.randn(18))
        self.c_proj.weight = nn.Parameter(torch.randn(6, 6))
        self.c_proj.bias = nn.Parameter(torch.randn(6))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (x @ self.c_attn.weight + self.c_attn.bias).chunk(3, -1)
        mixed: Tensor = (q * k + v) @ self.c_proj.weight + self.c_proj.bias
        return mixed


def tied() -> nn.Module:
    net = nn.Sequential(nn.Linear(6, 6), nn.Linear(6, 6))
    net[1].weight = net[0].weight
    return net


def pruned() -> nn.Module:
    net = nn.Sequential(nn.Linear(6, 5))
    prune.random_unstructured(net[0], "weight", 0.5)
    return net


def older_weight_norm() -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return nn.Sequential(nn.utils.weight_norm(nn.Linear(6, 5)))


NETS = {
    "linear": (lambda: nn.Linear(6, 5), (3, 6)),
    "conv1d": (lambda: nn.Conv1d(4, 6, 3), (2, 4, 7)),
    "conv2d": (lambda: nn.Conv2d(4, 6, (3, 2)), (2, 4, 7, 7)),
    "groups": (lambda: nn.Conv2d(4, 6, 3, groups=2), (2, 4, 7, 7)),
    "transposed": (lambda: nn.ConvTranspose2d(4, 6, 3), (2, 4, 7, 7)),
    "transposed groups": (lambda: nn.ConvTranspose1d(4, 6, 3, groups=2), (2, 4, 7)),
    "channels last": (lambda: nn.Conv2d(4, 6, 3).to(memory_format=torch.channels_last), (2, 4, 7, 7)),
    "lstm": (lambda: nn.LSTM(5, 4, 2, bidirectional=True), (3, 2, 5)),
    "gru": (lambda: nn.GRU(5, 4), (3, 2, 5)),
    "embedding": (lambda: nn.Embedding(9, 4), None),
    "fused": (FusedBlock, (3, 6)),
    "tied": (tied, (3, 6)),
    "half": (lambda: nn.Linear(6, 5).to(torch.bfloat16), None),
    "pruned": (pruned, (3, 6)),
    "weight norm": (lambda: nn.Sequential(parametrizations.weight_norm(nn.Linear(6, 5))), (3, 6)),
    "spectral norm": (lambda: nn.Sequential(parametrizations.spectral_norm(nn.Linear(6, 5))).eval(), (3, 6)),
    "older weight norm": (older_weight_norm, (3, 6)),
}


def state(net: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in net.state_dict().items()}


def run(net: nn.Module, x: Tensor | None) -> Tensor:
    if x is None:
        (weight,) = (one for one in net.parameters() if one.ndim > 1)
        return weight.detach().clone()
    with torch.no_grad():
        found = net(x)
    return (found[0] if isinstance(found, tuple) else found).clone()


@pytest.mark.parametrize("name", NETS)
def test_what_is_written_is_read_again_and_then_the_net_is_as_before(name):
    torch.manual_seed(0)
    make, shape = NETS[name]
    net = make().eval()
    x = None if shape is None else torch.randn(shape)
    own, before = run(net, x), state(net)
    weights = weights_of(net)
    fresh = [torch.randn(one.rows, one.columns).to(torch.bfloat16).float() for one in weights]
    assert all(torch.equal(matrix_of(net, one), one.load()) for one in weights) or "norm" in name
    with replaced(net, zip(weights, fresh, strict=True)):
        treated = run(net, x)
        for weight, matrix in zip(weights, fresh, strict=True):
            torch.testing.assert_close(matrix_of(net, weight), matrix, rtol=0, atol=0)
    assert not torch.equal(treated, own)
    after = state(net)
    assert before.keys() == after.keys()
    assert all(torch.equal(before[key], after[key]) for key in before)
    assert torch.equal(run(net, x), own)


@pytest.mark.parametrize("name", ["linear", "pruned", "weight norm", "older weight norm"])
def test_the_net_is_as_before_after_an_exception(name):
    torch.manual_seed(0)
    make, shape = NETS[name]
    net, x = make().eval(), torch.randn(shape)
    own, before = run(net, x), state(net)
    zeros = [(one, torch.zeros(one.rows, one.columns)) for one in weights_of(net)]
    with pytest.raises(RuntimeError, match="shapes"), replaced(net, zeros):
        run(net, torch.randn(3, 99))
    after = state(net)
    assert all(torch.equal(before[key], after[key]) for key in before)
    assert torch.equal(run(net, x), own)


def test_a_treated_convolution_is_the_convolution_of_its_patches():
    """An oracle that knows nothing of readers: unfold gives patches in the order of flatten(1)."""
    torch.manual_seed(0)
    net, x = nn.Conv2d(3, 5, 3, bias=False), torch.randn(2, 3, 6, 6)
    matrix = torch.randn(5, 27)
    with replaced(net, [(weights_of(net)[0], matrix)]), torch.no_grad():
        found = net(x)
    expected = (matrix @ nn.functional.unfold(x, 3)).reshape(2, 5, 4, 4)
    torch.testing.assert_close(found, expected)


def test_one_gate_changes_alone():
    torch.manual_seed(0)
    net = nn.LSTM(5, 4)
    weight = next(one for one in weights_of(net) if one.name == "weight_ih_l0 (cell gate)")
    with replaced(net, [(weight, torch.zeros(4, 5))]):
        gates = net.weight_ih_l0.detach().chunk(4)
        assert [bool(one.any()) for one in gates] == [True, True, False, True]


def test_tied_weights_change_together():
    net = tied()
    (weight,) = weights_of(net)
    with replaced(net, [(weight, torch.eye(6))]):
        assert torch.equal(net[1].weight, torch.eye(6))


def test_writing_into_a_tensor_leaves_the_tensor():
    net = nn.ConvTranspose2d(4, 6, 3, groups=2)
    (weight,) = weights_of(net)
    whole = place_of(net, weight).read()
    kept = copy.deepcopy(whole)
    written = with_matrix(whole, weight, torch.zeros(weight.rows, weight.columns))
    assert not written.any()
    assert torch.equal(whole, kept)
