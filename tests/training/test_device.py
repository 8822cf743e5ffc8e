"""Devices and precision: half the bits learn as much, and nothing is tied to a processor."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from obverse import BadInput
from obverse._core.choices import is_device_name
from obverse._core.tensors import load_tensors
from obverse.data import load
from obverse.training import ClassifierTask, Interrupted, Settings, create_run, fit, fit_classifier, read_run
from obverse.training._device import choose_device
from training.helpers import metrics_without_seconds, resume, tensor_bytes, tiny_data, train

HALVES = {"bf16": torch.bfloat16, "fp16": torch.float16}
SMALL = Settings(hidden=(8, 6), epochs=2, batch_size=16, lr=0.05, keep=0.5, dropout=0.2)
NO_GPU = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")


# Half precision


@pytest.mark.slow
@pytest.mark.parametrize("precision", HALVES)
@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_half_the_bits_learn_digits_as_well(precision, weight):
    settings = Settings(hidden=(64, 64), epochs=6, weight=weight, normalize=True)
    data = load("digits")
    errors = {}
    for one in ("float32", precision):
        task = ClassifierTask(replace(settings, precision=one), data)
        errors[one] = fit(task, 6)[-1]["test_error"]
        assert all(tensor.dtype == torch.float32 for tensor in task.model().values())
    assert errors["float32"] < 0.1
    # 500 test points, and nets that differ by rounding: the difference of two such errors below 10 % has a
    # standard error below √(2 · 0.1 · 0.9 / 500) = 1.9 %, were they independent.
    assert abs(errors[precision] - errors["float32"]) < 3 * 0.019


@pytest.mark.parametrize("precision", HALVES)
def test_products_are_in_half_the_bits_in_both_passes_and_in_the_shadow(precision, monkeypatch):
    task = ClassifierTask(replace(SMALL, precision=precision), tiny_data())
    task.step(0, 0)  # the first one checks the trace of the net, in passes of its own
    passes, shadows = [], []
    task.net.h2.register_forward_hook(lambda module, args, output: passes.append(output.dtype))
    original = task.shadow._sample

    def remember(*args, **keywords):
        shadows.append(original(*args, **keywords))
        return shadows[-1]

    monkeypatch.setattr(task.shadow, "_sample", remember)
    task.step(0, 1)
    assert passes == [HALVES[precision]] * 2
    assert [shadow.dtype for shadow in shadows] == [HALVES[precision]]
    assert all(weight.grad.dtype == torch.float32 for weight in task.net.parameters())
    passes.clear()
    task.evaluate()  # what is measured is measured in full
    assert set(passes) == {torch.float32}


@pytest.mark.parametrize("precision", HALVES)
@pytest.mark.parametrize("labels", ["given", "net", "consistency"])
def test_the_loss_is_near_that_of_float32(precision, labels):
    losses = []
    for one in ("float32", precision):
        task = ClassifierTask(replace(SMALL, precision=one, labels=labels), tiny_data())
        losses.append(task.step(0, 0))
    # A product of 8 significant bits is off by 2⁻⁹ at most; ten of them follow each other here.
    assert losses[1] == pytest.approx(losses[0], rel=10 * 2**-9)
    assert losses[1] != losses[0]


def test_the_scale_of_fp16_survives_a_stop(tmp_path):
    settings = replace(SMALL, precision="fp16", checkpoint_every=1)
    data = tiny_data()
    train(settings, tmp_path / "whole", data)
    path = tmp_path / "cut"
    create_run(path, settings)
    task = ClassifierTask(settings, data)
    task.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**60)  # overflows: the first steps are skipped

    class Stop(Exception):
        pass

    def stop(step: int, total: int, loss: float) -> None:
        if step == 3:
            raise Stop

    before = {name: tensor.clone() for name, tensor in task.model().items()}
    with pytest.raises(Stop):
        fit_classifier(task, path, on_step=stop)
    saved = load_tensors(path / "checkpoint" / "step-000000002.safetensors")
    assert saved["scaler"].tolist() == [2.0**58, 0]  # halved twice
    assert all(torch.equal(saved[f"net.{name}"], tensor) for name, tensor in before.items())
    assert not saved["optimizer.h1.weight.momentum_buffer"].any()

    other = ClassifierTask(settings, data)
    other.restore(saved)
    assert other.scaler.state_dict() == task_state(2.0**58)
    # From here the run goes on like one that has lost nothing but the skipped steps.
    whole = metrics_without_seconds(tmp_path / "whole")
    resume(settings, path, data)
    assert [record["step"] for record in metrics_without_seconds(path)] == [
        record["step"] for record in whole
    ]
    final = load_tensors(path / "checkpoint" / "step-000000006.safetensors")["scaler"]
    assert final[0] < 2.0**58


def task_state(scale: float) -> dict[str, float]:
    return torch.amp.GradScaler("cpu", init_scale=scale).state_dict()


@pytest.mark.parametrize("precision", HALVES)
def test_a_run_that_was_cut_off_is_resumed_to_the_bit(precision, tmp_path):
    settings = replace(SMALL, precision=precision, checkpoint_every=2)
    data = tiny_data()
    train(settings, tmp_path / "whole", data)
    path = tmp_path / "cut"
    create_run(path, settings)

    def stop(step: int, total: int, loss: float) -> None:
        if step == 3:
            raise Interrupted(step, total, path)

    with pytest.raises(Interrupted):
        fit_classifier(ClassifierTask(settings, data), path, on_step=stop)
    resume(settings, path, data)
    assert tensor_bytes(path) == tensor_bytes(tmp_path / "whole")
    assert metrics_without_seconds(path) == metrics_without_seconds(tmp_path / "whole")


@pytest.mark.parametrize("wrong", [[0.0, 0.0], [float("inf"), 0.0], [float("nan"), 0.0], [2.0, -1.0]])
def test_a_scale_that_is_none_is_refused(wrong):
    task = ClassifierTask(replace(SMALL, precision="fp16"), tiny_data())
    tensors = task.tensors() | {"scaler": torch.tensor(wrong, dtype=torch.float64)}
    with pytest.raises(BadInput, match="the scale of fp16 in the checkpoint"):
        task.restore(tensors)


def test_a_checkpoint_without_a_scale_is_not_one_of_fp16():
    full = ClassifierTask(SMALL, tiny_data())
    half = ClassifierTask(replace(SMALL, precision="fp16"), tiny_data())
    for task, tensors in ((half, full.tensors()), (full, half.tensors())):
        with pytest.raises(BadInput, match="a difference in scaler"):
            task.restore(tensors)


# Devices


@pytest.mark.parametrize("name", ["auto", "cpu", "cuda", "cuda:0", "cuda:12"])
def test_names_of_devices(name):
    assert is_device_name(name)
    assert Settings(device=name).device == name


@pytest.mark.parametrize("name", ["", "gpu", "meta", "cuda:", "cuda:-1", "cpu:0", "cuda:1 ", "CPU"])
def test_other_names_are_refused(name):
    assert not is_device_name(name)
    with pytest.raises(BadInput, match="device as auto, cpu, cuda or cuda:N"):
        Settings(device=name)


@NO_GPU
def test_without_a_gpu_auto_is_the_processor_and_cuda_is_refused(tmp_path: Path):
    assert choose_device("auto") == choose_device("cpu") == torch.device("cpu")
    for name in ("cuda", "cuda:1"):
        with pytest.raises(BadInput, match=f"as device '{name}' asks for; got 0 that torch can use"):
            ClassifierTask(replace(SMALL, device=name), tiny_data())
    create_run(tmp_path, SMALL)
    assert read_run(tmp_path).environment["device"] == "cpu"


def test_each_process_takes_the_gpu_of_its_own_number(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    for name, local, expected in (
        ("auto", None, "cuda:0"),
        ("auto", "1", "cuda:1"),
        ("cuda", "1", "cuda:1"),
        ("cuda:0", "1", "cuda:0"),
        ("cpu", "1", "cpu"),
    ):
        monkeypatch.delenv("LOCAL_RANK", raising=False)
        if local is not None:
            monkeypatch.setenv("LOCAL_RANK", local)
        assert str(choose_device(name)) == expected
    monkeypatch.setenv("LOCAL_RANK", "2")
    with pytest.raises(BadInput, match="a GPU with the number 2"):
        choose_device("auto")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert str(choose_device("cuda")) == "cuda:1"
    with pytest.raises(BadInput, match="device cuda for several processes"):
        choose_device("cuda:1")


META = {
    "plain": {"weight": 0.0},
    "shadow, sampling": {},
    "noise": {"control": "noise"},
    "consistency, smoothing": {"labels": "consistency", "smooth": True},
    "augmented": {"augment": True, "labels": "net"},
}


@pytest.mark.parametrize("variant", META)
def test_the_computation_of_a_step_stays_on_its_device(variant):
    """On torch's device without numbers, where a tensor made elsewhere is an error."""
    settings = replace(SMALL, **META[variant])
    task = ClassifierTask(settings, tiny_data())
    task.step(0, 0)  # with numbers once: a Shadow checks its trace of the net by them
    task.device = torch.device("meta")
    task.net.to(task.device).train()
    x, y = task.train_x[:16].to(task.device), task.train_y[:16].to(task.device)
    loss = task.batch_loss(x, y, task.streams(0, 0, 16))
    assert loss.device.type == "meta"
    loss.backward()
    for weight in task.net.parameters():
        assert weight.grad is not None
        assert weight.grad.device.type == "meta"
