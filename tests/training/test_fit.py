"""The training loop: whatever stops a run, resuming it gives the bits of the run that nothing stopped."""

from __future__ import annotations

import errno
import json
import math
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from obverse import BadInput
from obverse._core.files import WriteFailed
from obverse._core.locks import RunLocked, locked
from obverse.training import ClassifierTask, Diverged, Interrupted, Settings, create_run, fit, read_run
from obverse.training._checkpoint import load_checkpoint
from training.helpers import (
    ENVIRONMENT,
    Crasher,
    files_below,
    flags,
    metrics_without_seconds,
    obverse,
    resume,
    tensor_bytes,
    tiny_data,
    tiny_npz,
    train,
)

# Everything random at once, and checkpoints in the middle of epochs: 3 epochs of 13 steps.
SETTINGS = Settings(
    hidden=(16, 16), epochs=3, dropout=0.3, keep=0.5, weight=0.5, checkpoint_every=5, seed=3, lr=0.02
)
WHOLE_RUN = {
    ".lock",
    "config.json",
    "metrics.jsonl",
    "model.safetensors",
    "checkpoint/latest.json",
    "checkpoint/step-000000039.safetensors",
}


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("uninterrupted") / "run"
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    train(SETTINGS, path)
    torch.set_num_threads(threads)
    assert files_below(path) == WHOLE_RUN
    return path


def assert_same_run(path: Path, expected: Path) -> None:
    assert tensor_bytes(path) == tensor_bytes(expected)
    assert metrics_without_seconds(path) == metrics_without_seconds(expected)
    assert files_below(path) == files_below(expected)


# Kill −9


def start_or_resume(path: Path, **more: Any) -> dict[str, Any]:
    """A job that does what a user does after a crash."""
    start = ["train", *flags(SETTINGS), "--no-report", "--out", str(path)]
    return {
        "words": ["train", "--resume", str(path), "--no-report"],
        "or_else": {"unless": str(path / "config.json"), "words": start},
        **more,
    }


def kill_often(jobs: Crasher, paths: Mapping[Path, list[tuple[str, int]]], uninterrupted: Path) -> list[int]:
    """Kill each run at each of its points in turn, resume it in between and at the end, and compare."""
    todo = [
        start_or_resume(path, **more)
        for path, points in paths.items()
        for more in [*({"kill": point} for point in points), {}]
    ]
    done = jobs(*todo)
    for job, result in zip(todo, done, strict=True):
        assert result["code"] in ((0, -9) if "kill" in job else (0,)), result["output"]
    for path in paths:
        assert_same_run(path, uninterrupted)
    return [result["code"] for result in done]


def test_kill_9_at_random_moments_then_resume_gives_the_same_bits(jobs, tmp_path, uninterrupted):
    chance = random.Random(2)
    steps = [("step", chance.randint(2, 12)) for _ in range(4)]  # four kills, less than 39 steps in all
    files = [
        (kind, chance.randint(1, 14)) for kind in ("fsync", "replace", "after-replace", "write", "unlink")
    ]
    anywhere = [("any", chance.randint(3, 60)) for _ in range(3)]
    chance.shuffle(files)
    paths = {tmp_path / "steps": steps, tmp_path / "files": files, tmp_path / "anywhere": anywhere}
    codes = kill_often(jobs, paths, uninterrupted)
    assert codes.count(-9) >= 9  # a point may lie behind the end of what was left to do


@pytest.mark.slow
def test_kill_9_at_every_step_and_every_operation_on_a_file(jobs, tmp_path, uninterrupted):
    points = [("step", number) for number in range(1, 40)] + [("any", number) for number in range(1, 150)]
    paths = {tmp_path / f"{kind}-{number}": [(kind, number)] for kind, number in points}
    codes = kill_often(jobs, paths, uninterrupted)
    assert codes.count(-9) > 100
    assert codes[-2] == 0, "raise the number of points: the last one is no longer behind the end"


@pytest.mark.slow
def test_a_run_killed_at_every_step_still_arrives(jobs, tmp_path, uninterrupted):
    every = replace(SETTINGS, checkpoint_every=1)
    train(every, tmp_path / "expected")
    path = tmp_path / "run"
    create_run(path, every)
    resume_once = {"words": ["train", "--resume", str(path), "--no-report"]}
    done = jobs(*[{**resume_once, "kill": ("step", 2)} for _ in range(39)], resume_once)
    assert [job["code"] for job in done] == [-9] * 38 + [0, 0]
    assert tensor_bytes(path) == tensor_bytes(tmp_path / "expected")
    assert tensor_bytes(path)[0] == tensor_bytes(uninterrupted)[0]


# A signal from outside, to a process that knows nothing of tests

LONG = replace(SETTINGS, epochs=30, checkpoint_every=7, batch_size=20)  # 390 steps; the data come below


@pytest.fixture(scope="module")
def long_uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("long")
    settings = replace(LONG, data=str(tiny_npz(folder / "data.npz", points=390)))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    train(settings, folder / "run")
    torch.set_num_threads(threads)
    return folder / "run"


def signalled(path: Path, settings: Settings, number: signal.Signals) -> tuple[int, str]:
    """Start `obverse train`, send the signal once the first checkpoint is there; exit code and stderr."""
    words = ["train", *flags(settings), "--no-report", "--out", str(path)]
    process = subprocess.Popen(
        [sys.executable, "-m", "obverse", *words], stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
    )
    with process:
        until = time.monotonic() + 120
        while not (path / "checkpoint" / "latest.json").exists() and process.poll() is None:
            assert time.monotonic() < until
            time.sleep(0.001)
        process.send_signal(number)
        return process.wait(timeout=120), process.communicate()[1]


@pytest.mark.slow  # two threads per step, on cores that other tests use
def test_kill_9_from_outside_then_resume_under_another_number_of_threads(tmp_path, long_uninterrupted):
    path = tmp_path / "run"
    assert signalled(path, read_run(long_uninterrupted).settings, signal.SIGKILL)[0] == -9
    assert not (path / "model.safetensors").exists()
    done = obverse("train", "--resume", path, "--no-report", OMP_NUM_THREADS="2")
    assert (done.returncode, done.stderr) == (0, "")
    assert_same_run(path, long_uninterrupted)


@pytest.mark.parametrize(
    "number",
    [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)],
    ids=lambda number: number.name,
)
def test_a_polite_signal_saves_and_says_how_to_resume(tmp_path, long_uninterrupted, number):
    path = tmp_path / "run"
    settings = read_run(long_uninterrupted).settings
    code, said = signalled(path, settings, number)
    assert code == 130
    lines = said.splitlines()
    assert lines[0] == f"resume with: obverse train --resume {path}"
    step, total = (int(word) for word in lines[1].split(";")[0].split() if word.isdigit())
    assert lines[1:] == [f"obverse: stopped at step {step} of {total}; saved in {path}"]
    found = load_checkpoint(path / "checkpoint")
    assert found is not None
    assert (found[0], total) == (step, 30 * 13)  # not the last regular checkpoint: the step of the signal
    resume(settings, path)
    assert_same_run(path, long_uninterrupted)


# The same in this process, with a task as small as the protocol allows


class Walk:
    """A random walk: its state is the sum of every random number so far, so a lost one shows."""

    steps_per_epoch = 4

    def __init__(self, before: Callable[[int], None] = lambda step: None) -> None:
        self.state = torch.zeros(3, dtype=torch.float64)
        self.before = before
        self.seen: list[int] = []
        self.evaluations = 0

    def step(self, epoch: int, index: int) -> float:
        step = epoch * self.steps_per_epoch + index
        self.before(step)
        self.seen.append(step)
        self.state = self.state + torch.rand(3, dtype=torch.float64)
        return float(self.state.sum())

    def evaluate(self) -> dict[str, Any]:
        self.evaluations += 1
        torch.rand(5)  # must not matter
        return {"where": self.state.tolist(), "never": math.nan}

    def tensors(self) -> dict[str, Tensor]:
        return {"state": self.state}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        self.state = tensors["state"]

    def model(self) -> dict[str, Tensor]:
        return {"state": self.state}


def test_any_task_can_be_fitted_without_a_directory():
    task = Walk()
    steps: list[tuple[int, int]] = []
    seen: list[Mapping[str, Any]] = []
    records = fit(
        task,
        3,
        seed=5,
        on_step=lambda step, total, loss: steps.append((step, total)),
        on_record=seen.append,
    )
    assert task.seen == list(range(12))
    assert steps == [(step, 12) for step in range(1, 13)]
    assert records == seen
    assert [(record["epoch"], record["step"]) for record in records] == [(0, 0), (1, 4), (2, 8), (3, 12)]
    assert records[0]["train_loss"] is None
    assert records[-1]["where"] == task.state.tolist()
    assert records[-1]["never"] is None  # JSON has no NaN


def test_evaluation_every_so_many_epochs_and_at_the_end():
    task = Walk()
    records = fit(task, 5, evaluate_every=2)
    assert ["where" in record for record in records] == [True, False, True, False, True, True]
    assert task.evaluations == 4


def test_the_train_loss_of_an_epoch_is_the_mean_of_its_steps(tmp_path):
    losses: list[float] = []
    note = {"on_step": lambda step, total, loss: losses.append(loss)}
    with pytest.raises(RuntimeError, match="crash"):
        fit(Walk(crash_at(6)), 2, run=tmp_path, checkpoint_every=1, **note)
    records = fit(Walk(), 2, run=tmp_path, checkpoint_every=1, **note)
    for epoch in (1, 2):
        assert records[epoch]["train_loss"] == pytest.approx(
            sum(losses[4 * epoch - 4 : 4 * epoch]) / 4, rel=1e-15
        )


def crash_at(step: int) -> Callable[[int], None]:
    def before(at: int) -> None:
        if at == step:
            raise RuntimeError("crash")

    return before


def test_the_walk_goes_on_where_it_was_saved_and_repeats_what_was_not(tmp_path):
    whole = Walk()
    fit(whole, 3, seed=5)
    with pytest.raises(RuntimeError, match="crash"):
        fit(Walk(crash_at(10)), 3, seed=5, run=tmp_path, checkpoint_every=3)
    assert len(metrics_without_seconds(tmp_path)) == 3
    second = Walk()
    fit(second, 3, seed=5, run=tmp_path, checkpoint_every=3)
    assert second.seen == [9, 10, 11]
    assert torch.equal(second.state, whole.state)
    assert [record["epoch"] for record in metrics_without_seconds(tmp_path)] == [0, 1, 2, 3]


def test_another_seed_is_another_walk():
    first, second = Walk(), Walk()
    fit(first, 1, seed=0)
    fit(second, 1, seed=1)
    assert not torch.equal(first.state, second.state)


def test_a_finished_run_is_left_as_it_is(tmp_path):
    fit(Walk(), 2, run=tmp_path)
    before = {name: (tmp_path / name).read_bytes() for name in files_below(tmp_path)}
    task = Walk()
    records = fit(task, 2, run=tmp_path)
    assert task.seen == []
    assert [record["epoch"] for record in records] == [0, 1, 2]
    assert {name: (tmp_path / name).read_bytes() for name in files_below(tmp_path)} == before


def test_the_callers_random_numbers_are_left_alone(tmp_path):
    torch.manual_seed(11)
    expected = torch.rand(3)
    torch.manual_seed(11)
    fit(Walk(), 2, run=tmp_path)
    with pytest.raises(RuntimeError, match="crash"):
        fit(Walk(crash_at(1)), 1)
    assert torch.equal(torch.rand(3), expected)


def test_evaluating_more_often_does_not_change_the_training():
    nets = []
    for every in (1, 3):
        task = ClassifierTask(replace(SETTINGS, train_size=200, evaluate_every=every))
        fit(task, 3, seed=3, evaluate_every=every)
        nets.append(task.model())
    assert all(torch.equal(nets[0][name], nets[1][name]) for name in nets[0])


def test_checkpoints_and_a_directory_do_not_change_the_training(uninterrupted, tmp_path):
    task = ClassifierTask(SETTINGS)
    records = fit(task, SETTINGS.epochs, seed=SETTINGS.seed)
    train(replace(SETTINGS, checkpoint_every=None), tmp_path)
    assert tensor_bytes(tmp_path) == tensor_bytes(uninterrupted)
    logged = metrics_without_seconds(uninterrupted)
    assert [{key: record[key] for key in record if key != "seconds"} for record in records] == logged


# Signals in this process


def test_ctrl_c_waits_for_the_step_saves_and_resumes(tmp_path):
    whole = Walk()
    fit(whole, 3)
    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    stopped = Walk(lambda step: signal.raise_signal(signal.SIGINT) if step == 5 else None)
    with pytest.raises(Interrupted, match=f"stopped at step 6 of 12; saved in {tmp_path}"):
        fit(stopped, 3, run=tmp_path)
    assert stopped.seen == [0, 1, 2, 3, 4, 5]
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == handlers
    resumed = Walk()
    fit(resumed, 3, run=tmp_path)
    assert resumed.seen == [6, 7, 8, 9, 10, 11]
    assert torch.equal(resumed.state, whole.state)


def test_ctrl_c_in_the_last_step_finishes_the_run(tmp_path):
    task = Walk(lambda step: signal.raise_signal(signal.SIGINT) if step == 3 else None)
    fit(task, 1, run=tmp_path)
    assert (tmp_path / "model.safetensors").exists()


def test_the_second_ctrl_c_stops_at_once_and_loses_only_what_was_not_saved(tmp_path):
    def twice(step: int) -> None:
        if step == 6:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        fit(Walk(twice), 3, run=tmp_path)
    resumed = Walk()
    fit(resumed, 3, run=tmp_path)
    assert resumed.seen[0] == 4


def test_a_second_sigterm_changes_nothing(tmp_path):
    """Who ends a launcher and its processes together sends it twice: once to each, and once passed on."""

    def twice(step: int) -> None:
        if step == 6:
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(Interrupted, match="stopped at step 7 of 12"):
        fit(Walk(twice), 3, run=tmp_path)
    resumed = Walk()
    fit(resumed, 3, run=tmp_path)
    assert resumed.seen[0] == 7


def test_without_a_directory_ctrl_c_is_a_keyboard_interrupt():
    # An Exception would be swallowed by whatever tries several fits, such as a grid search.
    with pytest.raises(KeyboardInterrupt):
        fit(Walk(lambda step: signal.raise_signal(signal.SIGINT)), 1)


def test_a_run_in_another_thread_works(tmp_path):
    records: list[Any] = []
    thread = threading.Thread(target=lambda: records.extend(fit(Walk(), 2, run=tmp_path)))
    thread.start()
    thread.join()
    assert len(records) == 3


# Divergence


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_not_finite_stops_and_names_step_checkpoint_and_hint(tmp_path, bad):
    class Bad(Walk):
        def step(self, epoch: int, index: int) -> float:
            loss = super().step(epoch, index)
            return bad if (epoch, index) == (1, 2) else loss

    with pytest.raises(Diverged) as caught:
        fit(Bad(), 3, run=tmp_path)
    assert str(caught.value) == (
        f"expected a finite loss; got a loss of {bad} at step 7; last good checkpoint: step 4 in {tmp_path}; "
        "try a smaller lr, or a smaller weight or normalize=true with shadows"
    )
    found = load_checkpoint(tmp_path / "checkpoint")
    assert found is not None
    assert found[0] == 4


def test_weights_that_are_not_finite_are_never_saved(tmp_path):
    class Overflow(Walk):
        def step(self, epoch: int, index: int) -> float:
            super().step(epoch, index)
            if (epoch, index) == (1, 3):
                self.state = self.state * math.inf
            return 1.0

    with pytest.raises(Diverged, match=r"not finite in state at step 8; last good .* step 4"):
        fit(Overflow(), 2, run=tmp_path)
    found = load_checkpoint(tmp_path / "checkpoint")
    assert found is not None
    assert found[0] == 4
    assert torch.isfinite(found[1]["state"]).all()
    assert not (tmp_path / "model.safetensors").exists()
    with pytest.raises(Diverged, match="last good checkpoint: none"):
        fit(Overflow(), 2)


def test_a_huge_rate_diverges_on_the_command_line_and_the_last_good_checkpoint_stays(jobs, tmp_path):
    path = tmp_path / "run"
    settings = replace(SETTINGS, dropout=0.0, lr=1e9, momentum=0.0, checkpoint_every=1)
    first, again = jobs(
        {"words": ["train", *flags(settings), "--no-report", "--out", str(path)]},
        {"words": ["train", "--resume", str(path), "--no-report"]},
    )
    assert first["code"] == again["code"] == 2
    assert first["output"].startswith("obverse: expected a finite loss; got ")
    assert first["output"].count("\n") == 1
    found = load_checkpoint(path / "checkpoint")
    assert found is not None
    assert f"last good checkpoint: step {found[0]} in {path}; try a smaller lr" in first["output"]
    assert all(torch.isfinite(tensor).all() for tensor in found[1].values())
    assert again["output"] == first["output"]  # the same step, the same checkpoint


# Full disks and other processes


def test_a_real_full_disk_loses_nothing(jobs, tmp_path, uninterrupted):
    """A limit on the size of a file stands for the disk: the tensors (13 KB) no longer fit."""
    path = tmp_path / "run"
    killed, full = jobs(start_or_resume(path, kill=("step", 12)), start_or_resume(path, file_size=8000))
    assert killed["code"] == -9
    before = load_checkpoint(path / "checkpoint")
    assert before is not None
    assert before[0] == 10
    target = path / "checkpoint" / "step-000000015.safetensors"
    assert (full["code"], full["output"]) == (
        2,
        f"obverse: expected to write {target}; got: File too large; what was saved before is intact: "
        "free space or permissions there, then try again (a run: resume it)\n",
    )
    assert files_below(path / "checkpoint") == {"latest.json", "step-000000010.safetensors"}
    assert not [name for name in files_below(path) if name.endswith(".tmp")]
    assert jobs(start_or_resume(path))[0]["code"] == 0
    assert_same_run(path, uninterrupted)


def test_a_full_disk_while_the_log_is_written_loses_nothing(jobs, tmp_path):
    """The limit lies within a line of metrics.jsonl: half of it is on disk when the write fails."""
    path = tmp_path / "run"
    settings = ["train", *flags(replace(SETTINGS, hidden=(2,))), "--no-report", "--out", str(path)]
    create, full, again = jobs(
        {"words": settings, "kill": ("step", 1)},
        {"words": ["train", "--resume", str(path), "--no-report"], "file_size": 900},
        {"words": ["train", "--resume", str(path), "--no-report"]},
    )
    assert create["code"] == -9
    assert full["code"] == 2, full
    assert "File too large; what was saved before is intact" in full["output"]
    assert again["code"] == 0, again
    train(replace(SETTINGS, hidden=(2,)), tmp_path / "expected")
    assert_same_run(path, tmp_path / "expected")


def test_enospc_at_any_write_loses_nothing(tmp_path, monkeypatch):
    whole = Walk()
    fit(whole, 3)
    fsync = os.fsync
    countdown = 0

    def fail(descriptor: int) -> None:
        nonlocal countdown
        countdown -= 1
        if countdown == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", fail)
    failures = 0
    for number in range(1, 60):
        path = tmp_path / str(number)
        countdown = number
        try:
            fit(Walk(), 3, run=path)
        except WriteFailed as error:
            failures += 1
            assert "No space left on device; what was saved before is intact" in str(error)  # noqa: PT017
            assert not [name for name in files_below(path) if name.endswith(".tmp")]
        countdown = 0
        resumed = Walk()
        fit(resumed, 3, run=path)
        assert torch.equal(resumed.state, whole.state)
        assert [record["step"] for record in metrics_without_seconds(path)] == [0, 4, 8, 12]
    assert 15 < failures < 59  # every write has failed once, and the last number lies behind them all


def test_a_second_process_is_kept_out_of_the_run(tmp_path):
    with locked(tmp_path), pytest.raises(RunLocked):
        fit(Walk(), 1, run=tmp_path)


# What else could be wrong on resuming


def cut_off(path: Path, settings: Settings = SETTINGS) -> None:
    """A run that stopped after 7 steps."""
    create_run(path, settings)
    task = ClassifierTask(settings, tiny_data())
    step = task.step
    crash = crash_at(7)

    def crashing(epoch: int, index: int) -> float:
        crash(epoch * task.steps_per_epoch + index)
        return step(epoch, index)

    task.step = crashing
    with pytest.raises(RuntimeError, match="crash"):
        fit(task, settings.epochs, run=path, checkpoint_every=2)


SMALL = Settings(hidden=(6,), epochs=4, batch_size=10)


def test_other_data_than_the_run_began_with_is_refused(tmp_path):
    cut_off(tmp_path, SMALL)
    data = tiny_data()
    assert len(resume(SMALL, tmp_path, data)) == 5
    cut_off(tmp_path / "again", SMALL)
    changed = data.train_x.clone()
    changed[0] += 1e-3
    for other in (
        replace(data, train_x=changed),
        replace(data, train_y=data.train_y.roll(1)),
        replace(data, train_x=data.train_x[:-1], train_y=data.train_y[:-1]),
    ):
        with pytest.raises(BadInput, match="training points that the run began with"):
            resume(SMALL, tmp_path / "again", other)
    with pytest.raises(BadInput, match="a difference in"):
        resume(SMALL, tmp_path / "again", tiny_data(features=(1, 5, 5)))
    assert len(resume(SMALL, tmp_path / "again", data)) == 5


@pytest.mark.parametrize(
    "extra",
    [
        {},
        {"loss_sum": "1", "seconds": 0, "records": 1},
        {"loss_sum": 1, "seconds": None, "records": 1},
        {"loss_sum": 1, "seconds": 0, "records": -1},
        {"loss_sum": 1, "seconds": 0, "records": 3},  # more than metrics.jsonl has
        {"loss_sum": 1, "seconds": 0, "records": [1]},
    ],
    ids=str,
)
def test_a_checkpoint_with_a_strange_record_is_refused(tmp_path, extra):
    cut_off(tmp_path, SMALL)
    before = (tmp_path / "metrics.jsonl").read_bytes()
    pointer = tmp_path / "checkpoint" / "latest.json"
    pointer.write_text(json.dumps(json.loads(pointer.read_text()) | {"extra": extra}))
    with pytest.raises(BadInput, match="a checkpoint of at most 16 steps and 2 records"):
        resume(SMALL, tmp_path, tiny_data())
    assert (tmp_path / "metrics.jsonl").read_bytes() == before


def test_a_checkpoint_behind_the_end_is_refused(tmp_path):
    cut_off(tmp_path, SMALL)
    with pytest.raises(BadInput, match="at most 4 steps"):
        resume(replace(SMALL, epochs=1), tmp_path, tiny_data())


def test_metrics_that_were_lost_are_noticed(tmp_path):
    cut_off(tmp_path, SMALL)
    (tmp_path / "metrics.jsonl").unlink()
    with pytest.raises(BadInput, match="0 records"):
        resume(SMALL, tmp_path, tiny_data())


def test_the_seconds_of_an_epoch_are_kept_over_a_crash(tmp_path):
    cut_off(tmp_path, SMALL)
    found = load_checkpoint(tmp_path / "checkpoint")
    assert found is not None
    pointer = tmp_path / "checkpoint" / "latest.json"
    content = json.loads(pointer.read_text())
    content["extra"]["seconds"] = 1000.0
    pointer.write_text(json.dumps(content))
    resume(SMALL, tmp_path, tiny_data())
    epochs = [record["seconds"] for record in read_run(tmp_path).metrics]
    assert epochs[2] >= 1000 > max(epochs[:2] + epochs[3:])
