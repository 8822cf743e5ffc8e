"""What people try first works, and what cannot work is answered with a sentence; through the public API."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import obverse
from obverse import BadInput, Shadow, ShadowClassifier, ShadowLoss
from obverse.data import Dataset
from obverse.diversity import (
    assess,
    birthday_test,
    intrinsic_dimension,
    memorization,
    moments,
    quality,
    vendi,
)
from obverse.nets import relu_mlp
from obverse.shadow import recovery, survey
from obverse.training import ClassifierTask, Settings
from obverse.weights import ablate, decompose

X = torch.rand(30, 1, 4, 4, generator=torch.Generator().manual_seed(0))
Y = torch.arange(30) % 3
OTHERS = {
    "array": X.numpy(),
    "read-only array": np.broadcast_to(X.numpy(), X.shape),
    "array backwards": X.numpy()[:, :, ::-1][:, :, ::-1],
    "list": X.tolist(),
    "float64": X.double(),
    "float64 array": X.double().numpy(),
    "float16": X.half().float().half(),
}


@pytest.fixture
def net() -> nn.Sequential:
    return nn.Sequential(
        nn.Flatten(), nn.Linear(16, 20), nn.ReLU(), nn.Linear(20, 12), nn.ReLU(), nn.Linear(12, 3)
    )


class Output(OrderedDict):
    """As a Hugging Face ModelOutput: a mapping whose values are attributes, too."""

    def __init__(self, logits: Tensor) -> None:
        super().__init__(logits=logits)
        self.logits = logits


class Wrapped(nn.Module):
    """A net as Hugging Face has them."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Tensor) -> Output:
        return Output(self.net(x))


class Branching(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            x = 2 * x
        return self.linear(x)


class Generator(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(100, 5)
        self.drop = nn.Dropout(0.5)

    def forward(self, z: Tensor) -> Tensor:
        return self.drop(self.linear(z))


# --- shadows ---


def test_a_layer_of_a_sequential_may_be_named_by_its_number(net):
    shadow = Shadow(net)
    assert torch.equal(shadow.of(X, 3), shadow.of(X, "3"))
    assert torch.equal(shadow.hidden(X, [3])[3], shadow.infer(X, 3))
    assert ShadowLoss(net, layer=3).layer == "3"
    with pytest.raises(BadInput, match="expected a layer out of 1, 3, 5; got '7'"):
        shadow.of(X, 7)


@pytest.mark.parametrize("kind", OTHERS)
def test_inputs_are_taken_as_people_have_them(net, kind):
    x, shadow = OTHERS[kind], Shadow(net)
    expected = X.half().float() if kind == "float16" else X
    assert torch.equal(shadow.of(x, "3"), shadow.of(expected, "3"))
    assert shadow.of(x, "3").dtype == torch.float32
    assert torch.equal(shadow.infer(x, "3"), shadow.infer(expected, "3"))
    assert shadow.calibrate(x) == Shadow(net).calibrate(expected)
    assert recovery(shadow, x).errors == recovery(shadow, expected).errors
    assert survey(net, x, Y.numpy()).layers == survey(net, expected, Y).layers
    assert torch.equal(ShadowLoss(net)(x, Y.numpy()), ShadowLoss(net)(expected, Y))
    assert ablate(net, x, Y.numpy(), curve=False).untreated == ablate(net, expected, Y, curve=False).untreated


def test_hidden_values_are_taken_as_people_have_them(net):
    shadow = Shadow(net, input_shape=(1, 4, 4))
    h = shadow.infer(X, "3").detach()
    assert torch.equal(shadow.sample(h.double().numpy(), "3"), shadow.sample(h, "3"))
    assert torch.equal(shadow.from_hidden(X.numpy(), h.numpy(), "3"), shadow.from_hidden(X, h, "3"))


def test_a_net_in_float64_takes_float32(net):
    found = Shadow(net.double()).of(X, "3")
    assert found.dtype == torch.float64


@pytest.mark.parametrize(
    ("x", "said"),
    [
        ((255 * X).to(torch.uint8), "got uint8; convert them as for training: x.float() / 255"),
        (np.array(["a", "b"]), "expected inputs as a tensor or an array of numbers; got <U1"),
        ([["a"]], "expected inputs as a tensor or an array of numbers; got list"),
        (None, "expected inputs as a tensor or an array of numbers; got NoneType"),
    ],
)
def test_what_are_no_inputs_gets_a_sentence(net, x, said):
    for call in (Shadow(net).of, Shadow(net).calibrate, lambda x: ShadowLoss(net)(x, Y)):
        with pytest.raises(BadInput) as caught:
            call(x)
        assert said in str(caught.value)


def test_the_loss_called_as_other_losses_are_gets_a_sentence(net):
    with pytest.raises(BadInput) as caught:
        ShadowLoss(net)(net(X), Y)
    assert "expected loss(x, y), with the inputs x: this loss runs the net itself" in str(caught.value)
    assert "pass x in place of net(x)" in str(caught.value)
    with pytest.raises(
        BadInput, match="check the shape"
    ):  # no output of a net: a wrong shape is no such call
        ShadowLoss(net)(torch.rand(30, 5), Y)
    ShadowLoss(net)(X.clone().requires_grad_() * 2, Y)  # inputs that were computed are inputs


def test_a_model_output_stands_for_its_logits(net):
    wrapped = Wrapped(net)
    assert torch.equal(Shadow(wrapped).of(X, "net.3"), Shadow(net).of(X, "3"))
    assert torch.equal(ShadowLoss(wrapped)(X, Y), ShadowLoss(net)(X, Y))
    assert torch.equal(ShadowLoss(wrapped, 0.0)(X, Y), ShadowLoss(net, 0.0)(X, Y))
    assert survey(wrapped, X, Y).layers[0].own == survey(net, X, Y).layers[0].own
    assert ablate(wrapped, X, Y, curve=False).untreated == ablate(net, X, Y, curve=False).untreated
    assert len(obverse.audit(wrapped).layers) == 3


def test_a_net_that_branches_on_data_is_refused_with_the_place():
    line = inspect.getsourcelines(Branching.forward)[1] + 1
    where = f"in {Path(__file__).name}, line {line}"
    for nest, module in ((False, ""), (True, " in '1'")):
        with pytest.raises(BadInput) as caught:
            Shadow(nn.Sequential(nn.Flatten(), Branching()) if nest else Branching())
        assert f"TraceError{module} {where}" in str(caught.value)
        assert str(Path(__file__).parent) not in str(caught.value)


# --- widths, devices ---


def test_one_hidden_layer_may_be_a_number():
    torch.manual_seed(0)
    one = relu_mlp((1, 4, 4), 50, 3)
    torch.manual_seed(0)
    same = relu_mlp((1, 4, 4), (50,), 3)
    assert all(map(torch.equal, one.parameters(), same.parameters()))
    assert Settings(hidden=50) == Settings(hidden=(50,))
    points = X.flatten(1).numpy()
    found = ShadowClassifier(hidden=50, epochs=20, random_state=0).fit(points, points[:, 0] > 0.5)
    assert found.hidden == 50  # scikit-learn's rule: parameters stay as they were given
    assert found.net_[1].out_features == 50
    with pytest.raises(BadInput, match=r"sizes of at least 1; got .*hidden=\(0,\)"):
        relu_mlp((1, 4, 4), 0, 3)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_device_that_is_not_there_gets_a_sentence():
    data = Dataset("noise", X, Y, X, Y, ("a", "b", "c"))
    with pytest.raises(BadInput) as caught:
        ClassifierTask(Settings(device="cuda", hidden=5), data)
    assert "expected a GPU with the number 0, as device 'cuda' asks for; got 0 that torch" in str(
        caught.value
    )


# --- samples ---


def test_a_generator_is_a_module_and_the_size_of_its_seeds():
    net = Generator().train()
    found = birthday_test(net, 10, 5, latent=100, generator=torch.Generator().manual_seed(0))
    again = birthday_test(net, 10, 5, latent=(100,), generator=torch.Generator().manual_seed(0))
    assert found.to_dict() == again.to_dict()
    assert not found.collisions  # without dropout as with it, samples differ
    assert net.training
    assert net.drop.training
    assert birthday_test(Wrapped(net), 10, 5, latent=100).samples == 50
    for given, said in (
        ({}, "expected latent, the size of the seeds of the generator Generator; got none; pass latent=100"),
        ({"latent": 7}, "expected a generator Generator that takes seeds of shape (7,)"),
        ({"latent": 0}, "got latent=0"),
    ):
        with pytest.raises(BadInput) as caught:
            birthday_test(net, 10, 5, **given)
        assert said in str(caught.value)
    assert net.training


def test_a_sampler_may_leave_the_generator_out():
    def run(sampler: Any, seed: int = 0) -> Any:
        return birthday_test(sampler, 10, 5, generator=torch.Generator().manual_seed(seed)).to_dict()

    def two(n: int, generator: torch.Generator) -> Tensor:
        return torch.randint(40, (n, 1), generator=generator).float()

    alone: list[Any] = [
        lambda n: torch.randint(40, (n, 1)).float(),
        lambda n: np.random.default_rng(n).random((n, 3), np.float32) + torch.rand(1).numpy(),
    ]
    for sampler in (two, *alone):
        state = torch.get_rng_state()
        assert run(sampler) == run(sampler)
        assert torch.equal(
            torch.get_rng_state(), state
        )  # a generator was given: the global one is left alone
    assert run(alone[0]) != run(alone[0], 1)
    with pytest.raises(BadInput, match=r"expected sampler\(n, generator\)"):
        run(lambda: torch.rand(3))


def test_measures_of_samples_take_arrays():
    one, two, three = (np.random.default_rng(seed).normal(size=(60, 3)) for seed in range(3))
    tensors = [torch.from_numpy(array) for array in (one, two, three)]
    assert quality(one, two) == quality(*tensors[:2])
    assert vendi(one) == vendi(tensors[0])
    for measure, count in ((moments, 2), (memorization, 3), (intrinsic_dimension, 1)):
        found = [
            measure(*points[:count], generator=torch.Generator().manual_seed(0))
            for points in ((one, two, three), tensors)
        ]
        assert found[0] == found[1]


# --- weights ---


def test_weights_may_be_arrays():
    matrix = np.random.default_rng(0).normal(size=(40, 50)).astype(np.float32)
    assert decompose(matrix).summary.grade == "untouched"
    (layer,) = obverse.audit({"a.weight": matrix})
    assert (layer.rows, layer.columns) == (40, 50)
    with pytest.raises(BadInput, match=r"a matrix alone is for obverse\.weights\.decompose"):
        obverse.audit(matrix)
    with pytest.raises(BadInput, match="expected a matrix as a tensor or an array of numbers; got <U1"):
        decompose(np.array([["a"]]))


# --- first looks ---


def test_quick_looks_at_less(net):
    x, y = torch.rand(300, 1, 4, 4), torch.randint(3, (300,))
    assert obverse.audit({"a": torch.randn(40, 50)}, quick=True).settings["samples"] == 8
    assert obverse.audit({"a": torch.randn(40, 50)}, quick=True, exact=True).settings["exact"] is True
    assert survey(net, x, y, quick=True).layers == survey(net, x[:40], y[:40]).layers
    generators = [torch.Generator().manual_seed(0) for _ in range(2)]
    found, same = (
        ablate(net, *inputs, quick=quick, curve=False, generator=generator)
        for inputs, quick, generator in zip(
            ((x, y), (x[:200], y[:200])), (True, False), generators, strict=True
        )
    )
    assert found.inputs == 200
    assert found.layers == same.layers
    assert assess(torch.rand(1500, 3), quick=True)[0].samples == 1000
