"""The classifier task: its data, its pairing, its numbers against plain recomputation."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace

import pytest
import torch
from safetensors.torch import save_file
from torch.nn import functional as F

from obverse import BadInput
from obverse._core.random import BATCHES, INITIAL, SAMPLES, Streams, derive_generator, derive_seed
from obverse._core.tensors import load_weights
from obverse.data import load
from obverse.nets import relu_mlp
from obverse.training import ClassifierTask, Settings, fit, initial_net, load_trained
from obverse.training._classify import split
from obverse.training._compare import variant_settings
from obverse.training._variants import VARIANTS
from training.helpers import tiny_data

SMALL = Settings(hidden=(8, 6), epochs=2, batch_size=16, lr=0.1)


def rows(x: torch.Tensor) -> set[bytes]:
    return {row.numpy().tobytes() for row in x}


def test_data_and_task_are_given_back_without_the_garbage_collector():
    """A search makes one task after another, each with its own points of a data set."""

    def trained() -> list[weakref.ref]:
        task = ClassifierTask(replace(SMALL, validation=5, weight=1.0), tiny_data())
        fit(task, 1)
        return [weakref.ref(task), weakref.ref(task.train_x)]

    trained()  # what torch imports at first use keeps hold of its callers
    gc.collect()
    gc.disable()
    try:
        assert [one() for one in trained()] == [None, None]
    finally:
        gc.enable()


# The split


def test_without_a_wish_the_split_is_the_data_sets_own():
    data = tiny_data()
    for given, expected in zip(
        split(SMALL, data), (data.train_x, data.train_y, data.test_x, data.test_y), strict=True
    ):
        assert given is expected


@pytest.mark.parametrize(("size", "validation"), [(None, 5), (20, 0), (20, 7), (40, 39), (1, 0)])
def test_sizes_and_disjointness(size, validation):
    data = tiny_data()
    settings = replace(SMALL, train_size=size, validation=validation)
    x, y, test_x, test_y = split(settings, data)
    total = 40 if size is None else size
    assert (len(x), len(y)) == (total - validation,) * 2
    assert len(test_x) == len(test_y) == (validation or len(data.test_x))
    assert len(rows(x)) == len(x)
    assert not rows(x) & rows(test_x)
    whole = dict(zip(map(bytes, (row.numpy().tobytes() for row in data.train_x)), data.train_y, strict=True))
    assert all(whole[row.numpy().tobytes()] == label for row, label in zip(x, y, strict=True))
    if validation:
        assert rows(test_x) <= rows(data.train_x)


def test_the_points_depend_on_the_seed_and_on_nothing_else():
    data = tiny_data()
    settings = replace(SMALL, train_size=20)
    first, again, other = (split(replace(settings, seed=seed), data)[0] for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert rows(first) != rows(other)
    # Holding some out takes them away from the training points that there would be without.
    x, _, held, _ = split(replace(settings, validation=5), data)
    assert rows(x) | rows(held) == rows(first)


@pytest.mark.parametrize(
    "wrong", [{"train_size": 41}, {"train_size": 5, "validation": 5}, {"validation": 40}]
)
def test_more_points_than_there_are_is_refused(wrong):
    with pytest.raises(BadInput, match="train_size ≤ 40 and validation < train_size for tiny"):
        ClassifierTask(replace(SMALL, **wrong), tiny_data())


def test_smoothing_what_is_not_an_image_is_refused_at_once():
    with pytest.raises(BadInput, match=r"images for smooth; got inputs of shape \(16,\)"):
        ClassifierTask(replace(SMALL, smooth=True), tiny_data(features=(16,)))
    ClassifierTask(replace(SMALL, smooth=True), tiny_data())


# Paired training


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_starts_from_the_same_net_and_sees_the_same_batches(variant):
    data = tiny_data()
    plain = ClassifierTask(replace(SMALL, weight=0.0, seed=4), data)
    task = ClassifierTask(variant_settings(replace(SMALL, seed=4), variant, 1.0), data)
    for (name, own), (_, theirs) in zip(
        task.net.named_parameters(), plain.net.named_parameters(), strict=True
    ):
        # With one bias a layer there is one number where the others have many, all 0 at the start.
        assert torch.equal(own, theirs) or (variant == "uniform-bias" and name.endswith("bias"))
    assert seen_batches(task) == seen_batches(plain)


def seen_batches(task: ClassifierTask) -> list[bytes]:
    seen: list[bytes] = []

    def note(module: torch.nn.Module, args: tuple[torch.Tensor, ...]) -> None:
        seen.append(args[0].numpy().tobytes())

    task.loss.register_forward_pre_hook(note)
    for epoch in range(2):
        for index in range(task.steps_per_epoch):
            task.step(epoch, index)
    return seen


def test_an_epoch_sees_every_point_once_in_an_order_of_its_own():
    task = ClassifierTask(replace(SMALL, weight=0.0), tiny_data())
    assert task.steps_per_epoch == 3  # 40 points: 16, 16, 8
    seen = seen_batches(task)
    first, second = (b"".join(seen[:3]), b"".join(seen[3:]))
    length = task.train_x[0].numel() * 4
    points = [[epoch[at : at + length] for at in range(0, len(epoch), length)] for epoch in (first, second)]
    assert sorted(points[0]) == sorted(points[1]) == sorted(rows(task.train_x))
    assert points[0] != points[1]


def test_weight_zero_is_plain_sgd_with_momentum_to_the_bit():
    settings = replace(SMALL, weight=0.0, momentum=0.8, seed=9)
    data = tiny_data()
    task = ClassifierTask(settings, data)
    records = fit(task, settings.epochs, seed=settings.seed)

    net = relu_mlp((1, 4, 4), (8, 6), 3, generator=derive_generator(9, INITIAL))
    velocity = {name: torch.zeros_like(parameter) for name, parameter in net.named_parameters()}
    for epoch in range(2):
        order = torch.randperm(40, generator=derive_generator(9, BATCHES, epoch))
        losses = []
        for start in range(0, 40, 16):
            batch = order[start : start + 16]
            loss = F.cross_entropy(net(data.train_x[batch]), data.train_y[batch])
            gradients = torch.autograd.grad(loss, list(net.parameters()))
            with torch.no_grad():
                for (name, parameter), gradient in zip(net.named_parameters(), gradients, strict=True):
                    velocity[name] = velocity[name] * 0.8 + gradient
                    parameter.add_(velocity[name], alpha=-0.1)
            losses.append(loss.item())
        assert records[epoch + 1]["train_loss"] == sum(losses) / 3
    for name, parameter in net.named_parameters():
        assert torch.equal(task.model()[name], parameter)


def test_signs_of_the_training_points_decide_the_last_relu():
    data = tiny_data()
    assert not ClassifierTask(SMALL, data).shadow.signed
    assert ClassifierTask(SMALL, replace(data, train_x=data.train_x - 0.5)).shadow.signed


# What is measured


@pytest.mark.parametrize("points", [None, 7])  # 7: batches of the evaluation that do not divide the test set
def test_evaluation_against_plain_matrix_products(points, monkeypatch):
    if points:
        monkeypatch.setattr("obverse.training._classify.EVALUATION_BATCH", points)
    data = load("digits")
    settings = Settings(hidden=(20, 15), epochs=3, train_size=300, batch_size=50, normalize=True)
    task = ClassifierTask(settings, data)
    fit(task, 3)
    measured = task.evaluate()

    (w1, b1), (w2, b2), (w3, b3) = (
        (task.net.get_submodule(name).weight.detach().double(), task.net.get_submodule(name).bias.double())
        for name in ("h1", "h2", "h3")
    )
    x = data.test_x.flatten(1).double()

    def up(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        h1 = (x @ w1.T + b1).relu()
        h2 = (h1 @ w2.T + b2).relu()
        return h1, h2, h2 @ w3.T + b3

    def normed(shadow: torch.Tensor) -> torch.Tensor:
        return shadow * x.norm(dim=1, keepdim=True) / shadow.norm(dim=1, keepdim=True).clamp_min(1e-300)

    h1, h2, out = up(x)
    twin = normed(((h2 @ w2).relu() @ w1).relu())
    label, twin_label = out.argmax(1), up(twin)[2].argmax(1)
    assert measured["test_error"] == (label != data.test_y).double().mean().item()
    assert measured["shadow_error"] == (twin_label != data.test_y).double().mean().item()
    assert measured["label_agreement"] == (label == twin_label).double().mean().item()
    from_output = normed((((out @ w3).relu() @ w2).relu() @ w1).relu())
    for name, h, index, shadow in (
        ("h1", h1, 0, normed((h1 @ w1).relu())),
        ("h2", h2, 1, twin),
        ("h3", out, 2, from_output),
    ):
        error = ((up(shadow)[index] - h).square().sum() / h.square().sum()).item()
        # float32 against float64, some hundred terms a sum
        assert measured["recovery_error"][name] == pytest.approx(error, rel=1e-4)


def test_evaluation_is_repeatable_and_leaves_training_alone():
    task = ClassifierTask(replace(SMALL, keep=0.5, dropout=0.5), tiny_data())
    before = {name: tensor.clone() for name, tensor in task.tensors().items()}
    state = torch.get_rng_state()
    assert task.evaluate() == task.evaluate()
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(tensor, before[name]) for name, tensor in task.tensors().items())


def test_with_validation_the_held_out_points_are_measured():
    data = tiny_data()
    task = ClassifierTask(replace(SMALL, validation=10), data)
    label = task.net.eval()(task.test_x).argmax(1)
    assert len(task.test_x) == 10
    assert task.evaluate()["test_error"] == (label != task.test_y).double().mean().item()


# Weights from files


def test_weights_that_are_not_the_nets_own_are_refused():
    net = initial_net(SMALL, tiny_data())
    good = dict(net.state_dict())
    assert good.keys() == {f"h{layer}.{part}" for layer in (1, 2, 3) for part in ("weight", "bias")}
    wrong = [
        ({name: good[name] for name in good if name != "h2.bias"}, "a difference in h2.bias"),
        ({**good, "extra": torch.zeros(1)}, "a difference in extra"),
        ({**good, "h1.bias": torch.zeros(7)}, r"a difference in h1.bias \(7,\)"),
        (
            {**good, "h1.bias": torch.zeros(8, dtype=torch.float64)},
            r"a difference in h1.bias \(8,\) torch.float64",
        ),
    ]
    for tensors, said in wrong:
        with pytest.raises(BadInput, match=f"h1.weight .* in somewhere; got {said}"):
            load_weights(net, tensors, "somewhere")


def test_a_checkpoint_must_have_exactly_the_state_of_the_task():
    data = tiny_data()
    task = ClassifierTask(SMALL, data)
    task.step(0, 0)
    good = task.tensors()
    ClassifierTask(SMALL, data).restore(good)
    wrong = [
        {name: good[name] for name in good if name != "optimizer.h1.weight.momentum_buffer"},
        {**good, "optimizer.h1.weight.momentum_buffer": torch.zeros(3)},
        {**good, "optimizer.h1.weight.other": torch.zeros(3)},
        {**good, "unknown": torch.zeros(3)},
        {name: good[name] for name in good if name != "data"},
        {**good, "data": good["data"].float()},
    ]
    for tensors in wrong:
        with pytest.raises(BadInput, match="in the checkpoint; got a difference in") as caught:
            ClassifierTask(SMALL, data).restore(tensors)
        assert "tensor(" not in str(caught.value)
    with pytest.raises(BadInput, match="training points"):
        ClassifierTask(SMALL, data).restore({**good, "data": good["data"] + 1})


def test_without_momentum_a_checkpoint_is_the_weights_alone():
    settings = replace(SMALL, momentum=0.0)
    data = tiny_data()
    task = ClassifierTask(settings, data)
    task.step(0, 0)
    assert not [name for name in task.tensors() if name.startswith("optimizer")]
    second = ClassifierTask(settings, data)
    second.restore(task.tensors())
    task.step(0, 1)
    second.step(0, 1)
    assert all(torch.equal(tensor, second.tensors()[name]) for name, tensor in task.tensors().items())


def test_a_trained_net_comes_back_in_evaluation_mode_or_is_refused(tmp_path):
    data = tiny_data()
    settings = replace(SMALL, dropout=0.5)
    task = ClassifierTask(settings, data)
    path = tmp_path / "model.safetensors"
    with pytest.raises(BadInput, match="No such file or directory; resume the run"):
        load_trained(settings, data, path)
    fit(task, 1, run=tmp_path)
    net = load_trained(settings, data, path)
    assert not net.training
    assert torch.equal(net(data.test_x), task.net.eval()(data.test_x))
    with pytest.raises(BadInput, match=r"model\.safetensors; got a difference in"):
        load_trained(replace(settings, hidden=(8, 7)), data, str(path))
    save_file({"h1.weight": torch.zeros(1)}, path)
    with pytest.raises(BadInput, match="a difference in"):
        load_trained(settings, data, path)
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(BadInput, match="safetensors in"):
        load_trained(settings, data, path)


# Randomness that belongs to samples


def test_the_random_numbers_of_a_sample_are_fixed_by_seed_step_and_place():
    task = ClassifierTask(replace(SMALL, seed=4), tiny_data())
    whole = task.streams(7, 0, 16).bits(5)
    assert torch.equal(whole, Streams(derive_seed(4, SAMPLES, 7) + torch.arange(16)).bits(5))
    assert torch.equal(task.streams(7, 6, 9).bits(5), whole[6:9])
    for other in (
        task.streams(8, 0, 16),
        ClassifierTask(replace(SMALL, seed=5), tiny_data()).streams(7, 0, 16),
    ):
        assert not (other.bits(5) == whole).any()


@pytest.mark.parametrize("more", [{"dropout": 0.5}, {"keep": 0.5}, {"control": "noise"}, {"augment": True}])
def test_a_step_uses_the_streams_of_its_samples_and_nothing_else(more):
    data = tiny_data()
    losses = []
    for torchs_own in (0, 1):
        task = ClassifierTask(replace(SMALL, **more), data)
        torch.manual_seed(torchs_own)
        state = torch.random.get_rng_state()
        losses.append([task.step(0, 0), task.step(0, 1)])
        assert torch.equal(torch.random.get_rng_state(), state)
    assert losses[0] == losses[1]
    other = ClassifierTask(replace(SMALL, **more), data)
    other.streams = lambda number, start, stop: Streams(torch.arange(start, stop))
    assert other.step(0, 0) != losses[0][0]
