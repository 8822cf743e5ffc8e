"""Training the all-convolutional net: its batches, steps and numbers by hand; resumed to the bit."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from obverse import BadInput
from obverse._core.random import BATCHES, SAMPLES, Streams, derive_generator, derive_seed
from obverse.data._augment import pad_crop_flip
from obverse.shadow._recovery import relative_error
from obverse.training import (
    ClassifierTask,
    Settings,
    compare,
    create_run,
    initial_net,
    load_trained,
    read_run,
)
from obverse.training import _classify as classify
from obverse.training._compare import read_plan, variant_settings
from training.helpers import (
    Crasher,
    files_below,
    flags,
    metrics_without_seconds,
    resume,
    tensor_bytes,
    tiny_data,
    tiny_npz,
    train,
)

SMALL = Settings(
    net="allconv", stem=(3, 3, 1), widths=(4, 6), blocks=1, epochs=2, batch_size=16, lr=0.1, momentum=0.5
)
IMAGES = {"features": (3, 8, 8)}


def seen(task: ClassifierTask, steps: int) -> list[Tensor]:
    """The inputs that the loss gets in the first steps."""
    found: list[Tensor] = []
    task.loss.register_forward_pre_hook(lambda module, args: found.append(args[0].clone()))
    for number in range(steps):
        task.step(*divmod(number, task.steps_per_epoch))
    return found


# The net and its batches


def test_the_net_is_that_of_the_settings_and_takes_off_the_mean_of_the_data():
    data = tiny_data(**IMAGES)
    net = initial_net(replace(SMALL, norm=True, shortcut=False), data)
    shapes = [tuple(p.shape[:2]) for p in net.parameters() if p.dim() == 4]
    assert shapes == [(3, 3), (4, 3), (4, 4), (6, 4), (6, 6)]
    assert isinstance(net.norm, torch.nn.BatchNorm2d)
    assert not net.stage1[0].shortcut
    mean = data.train_x.double().numpy().mean((0, 2, 3))
    np.testing.assert_allclose(net.centre.mean.numpy(), mean, rtol=1e-5)  # float32 over 2,560 pixels


def test_inits_share_the_projection_and_the_seed_decides_all():
    data = tiny_data(**IMAGES)
    first, again, other, he = (
        initial_net(replace(SMALL, **change), data).state_dict()
        for change in ({}, {"epochs": 1}, {"seed": 1}, {"init": "he"})
    )
    assert all(torch.equal(tensor, again[name]) for name, tensor in first.items())
    assert not any(
        torch.equal(tensor, other[name]) for name, tensor in first.items() if name != "centre.mean"
    )
    assert torch.equal(first["output.weight"], he["output.weight"])
    assert not torch.equal(first["stage1.0.conv1.weight"], he["stage1.0.conv1.weight"])


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            replace(SMALL, dropout=0.5),
            "no dropout for the net 'allconv'; got dropout 0.5; .* set net to 'mlp'",
        ),
        (replace(SMALL, hidden=(8,)), "no hidden for the net 'allconv'"),
        (replace(SMALL, uniform_bias=True), "no uniform_bias for the net 'allconv'"),
        (
            Settings(hidden=(8,), blocks=2),
            "no blocks for the net 'mlp'; got blocks 2; .* set net to 'allconv'",
        ),
        (Settings(hidden=(8,), shortcut=False), "no shortcut for the net 'mlp'"),
        (replace(SMALL, blocks=0), "at least one class, block and width"),
        (replace(SMALL, widths=(6, 4)), "widths that do not shrink"),
        (replace(SMALL, stem=(3, 3)), "a stem of channels, odd kernel and stride"),
    ],
)
def test_settings_that_make_no_net_or_would_change_nothing_are_refused(settings, said):
    with pytest.raises(BadInput, match=said):
        ClassifierTask(settings, tiny_data(**IMAGES))


def test_flat_inputs_are_refused():
    data = tiny_data(features=(16,))
    with pytest.raises(BadInput, match="channels × height × width"):
        ClassifierTask(SMALL, data)
    with pytest.raises(BadInput, match=r"images for augment; got inputs of shape \(16,\)"):
        ClassifierTask(Settings(hidden=(4,), augment=True), data)


def streams(seed: int, step: int, count: int) -> Streams:
    """One for each place in the batch of a step."""
    return Streams(derive_seed(seed, SAMPLES, step) + torch.arange(count))


def test_augmented_batches_are_the_plain_ones_changed_with_the_steps_own_seed():
    data = tiny_data(**IMAGES)
    settings = replace(SMALL, seed=5)
    plain = seen(ClassifierTask(settings, data), 6)
    changed = seen(ClassifierTask(replace(settings, augment=True), data), 6)
    for step, (x, y) in enumerate(zip(plain, changed, strict=True)):
        assert torch.equal(y, pad_crop_flip(x, streams(5, step, len(x))))
    # The same batch in another epoch is cut otherwise, also where one net is an mlp.
    whole = Settings(hidden=(4,), batch_size=40, augment=True, weight=0.0)
    first, second = seen(ClassifierTask(whole, data), 2)
    order = torch.randperm(40, generator=derive_generator(0, BATCHES, 0))
    assert torch.equal(first, pad_crop_flip(data.train_x[order], streams(0, 0, 40)))
    assert not torch.equal(first.sort(0).values, second.sort(0).values)


# A step, by hand


def test_steps_are_sgd_with_momentum_decay_and_dropped_rates():
    data = tiny_data(**IMAGES)
    settings = replace(SMALL, weight_decay=0.01, milestones=(1, 3))
    task = ClassifierTask(settings, data)
    twin = copy.deepcopy(task.net).train()
    velocity = {name: torch.zeros_like(p) for name, p in twin.named_parameters()}
    for number, rate in enumerate((0.1, 0.01, 0.01, 0.001)):
        epoch, index = divmod(number, task.steps_per_epoch)
        order = torch.randperm(40, generator=derive_generator(0, BATCHES, epoch))
        rows = order[16 * index : 16 * (index + 1)]
        twin.zero_grad()
        loss = F.cross_entropy(twin(data.train_x[rows]), data.train_y[rows])
        loss.backward()
        assert task.step(epoch, index) == pytest.approx(float(loss.detach()), rel=1e-6)
        with torch.no_grad():
            for name, p in twin.named_parameters():
                velocity[name] = 0.5 * velocity[name] + p.grad + 0.01 * p
                p -= rate * velocity[name]
    for (name, own), (_, theirs) in zip(task.net.named_parameters(), twin.named_parameters(), strict=True):
        # Some roundings of float32 in each of four steps; a wrong rate or decay would show at 1e-3.
        torch.testing.assert_close(own, theirs, rtol=1e-5, atol=1e-7, msg=name)


# What is measured


def test_plain_training_measures_the_error_alone_and_in_batches(monkeypatch):
    data = tiny_data(**IMAGES)
    task = ClassifierTask(replace(SMALL, norm=True), data)
    task.step(0, 0)
    net = copy.deepcopy(task.net).eval()
    wrong = sum(int(net(x[None]).argmax()) != int(y) for x, y in zip(data.test_x, data.test_y, strict=True))
    sizes: list[int] = []
    monkeypatch.setattr(classify, "CONV_BATCH", 7)
    task.net.register_forward_pre_hook(lambda module, args: sizes.append(len(args[0])))
    assert task.evaluate() == {"test_error": wrong / 20}
    assert sizes == [7, 7, 6]
    before = {name: tensor.clone() for name, tensor in task.tensors().items()}
    task.evaluate()
    assert all(torch.equal(tensor, before[name]) for name, tensor in task.tensors().items())


@pytest.mark.parametrize("layer", [None, "stage1.0", "stem"])
def test_with_shadows_the_layer_of_the_loss_is_measured(layer):
    data = tiny_data(**IMAGES)
    task = ClassifierTask(replace(SMALL, weight=0.5, layer=layer), data)
    for index in range(3):
        task.step(0, index)
    found = task.evaluate()
    name = layer or "stage2.0"
    net, shadow = task.net.eval(), task.shadow
    with torch.no_grad():
        twin = shadow.of(data.test_x, name, match_norm=True)
        label, twin_label = net(data.test_x).argmax(-1), net(twin).argmax(-1)
        h, again = (shadow.infer(x, name) for x in (data.test_x, twin))
    assert found == {
        "test_error": (label != data.test_y).double().mean().item(),
        "shadow_error": (twin_label != data.test_y).double().mean().item(),
        "label_agreement": (label == twin_label).double().mean().item(),
        "recovery_error": {name: pytest.approx(relative_error(again, h), rel=1e-5)},
    }


def test_it_learns(tmp_path):
    data = tiny_data(points=150, **IMAGES)
    records = train(replace(SMALL, epochs=15, momentum=0.9), tmp_path / "run", data)
    assert records[0]["test_error"] > 0.4  # three classes
    assert records[-1]["test_error"] == 0.0  # well separated ones
    assert records[-1].keys() == {"epoch", "step", "train_loss", "test_error", "seconds"}
    net = load_trained(SMALL, data, tmp_path / "run" / "model.safetensors")
    assert bool((net(data.test_x).argmax(-1) == data.test_y).all())


# Whatever stops a run, resuming it gives the same bits

EVERYTHING = Settings(
    net="allconv", stem=(4, 3, 1), widths=(4, 6), blocks=1, norm=True, augment=True, weight_decay=1e-3,
    milestones=(4, 11), epochs=3, train_size=64, batch_size=8, checkpoint_every=5, seed=3, lr=0.05,
)  # fmt: skip
PLAIN = {
    "plain": {},
    "shadows": {"weight": 0.5, "keep": 0.5},
    "no shortcut": {"shortcut": False, "init": "he"},
}


def assert_same_run(path: Path, expected: Path) -> None:
    assert tensor_bytes(path) == tensor_bytes(expected)
    assert metrics_without_seconds(path) == metrics_without_seconds(expected)
    assert files_below(path) == files_below(expected)


@pytest.mark.parametrize("change", PLAIN.values(), ids=PLAIN)
def test_a_run_cut_off_at_any_checkpoint_is_resumed_to_the_bit(change, tmp_path):
    settings = replace(EVERYTHING, **change)
    assert settings.has_shadows == ("weight" in change)
    train(settings, tmp_path / "whole")
    cut = tmp_path / "cut"
    create_run(cut, settings)
    task = ClassifierTask(settings)
    for stop in (7, 14, 15):  # within an epoch, before and after a drop, and twice without a new checkpoint

        def crash(step: int, total: int, loss: float, stop: int = stop) -> None:
            if step == stop:
                raise RuntimeError("crash")

        task = ClassifierTask(settings)
        with pytest.raises(RuntimeError, match="crash"):
            classify.fit_classifier(task, cut, on_step=crash)
    resume(settings, cut)
    assert_same_run(cut, tmp_path / "whole")


@pytest.mark.slow  # kills of an mlp's training are in test_fit
def test_kill_9_then_resume_gives_the_same_bits(jobs: Crasher, tmp_path):
    path = tmp_path / "killed"
    start = ["train", *flags(EVERYTHING), "--no-report", "--out", str(path)]
    job = {
        "words": ["train", "--resume", str(path), "--no-report"],
        "or_else": {"unless": str(path / "config.json"), "words": start},
    }
    points = [("step", 8), ("any", 12), ("write", 2)]
    done = jobs(*({**job, "kill": point} for point in points), job)
    assert [result["code"] for result in done] == [-9] * len(points) + [0], done
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    train(EVERYTHING, tmp_path / "whole")
    torch.set_num_threads(threads)
    assert_same_run(path, tmp_path / "whole")


# Comparisons


def test_a_comparison_has_shadows_where_they_are_trained_with(tmp_path):
    base = replace(SMALL, data=str(tiny_npz(tmp_path / "data.npz", **IMAGES)), epochs=1)
    table = compare(base, ("backprop", "shadow", "shadow-output"), (0, 1), tmp_path / "out", weight=0.5)
    plain, shadow, output = table.rows
    assert (plain.shadow_error, plain.shadow_error_se, plain.label_agreement) == (None, None, None)
    assert shadow.shadow_error is not None
    assert output.label_agreement is not None
    assert variant_settings(base, "shadow-output", 0.5).layer == "output"
    assert json.loads(json.dumps(table.to_dict()))["rows"][0]["shadow_error"] is None
    assert str(table).count("\n") == 2
    with pytest.raises(BadInput, match="no dropout for the net 'allconv'"):
        compare(base, ("backprop", "dropout"), (0,), tmp_path / "refused")
    assert not (tmp_path / "refused").exists()


def test_a_comparison_from_before_there_were_other_nets_goes_on(tmp_path):
    base = Settings(data=str(tiny_npz(tmp_path / "data.npz")), hidden=(4,), epochs=1, batch_size=20)
    out = tmp_path / "out"
    compare(base, ("backprop",), (0,), out)
    plan = json.loads((out / "comparison.json").read_text())
    for name in (
        "augment",
        "net",
        "stem",
        "widths",
        "blocks",
        "norm",
        "shortcut",
        "init",
        "weight_decay",
        "milestones",
    ):
        del plan["base"][name]
    (out / "comparison.json").write_text(json.dumps(plan))
    before = (out / "comparison.json").read_bytes()
    (read_run(out / "runs" / "backprop" / "seed-0").path / "model.safetensors").unlink()
    assert compare(base, ("backprop",), (0,), out).rows[0].runs == 1
    assert (out / "comparison.json").read_bytes() == before
    assert read_plan(out).base == base
    with pytest.raises(BadInput, match="choose another --out"):
        compare(base, ("backprop",), (0, 1), out)
