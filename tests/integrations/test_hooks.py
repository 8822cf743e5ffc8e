"""The callbacks with trainers that have just what trainers have: they need neither package."""

from __future__ import annotations

import sys
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from obverse import BadInput, ObverseError
from obverse.integrations import read_history
from obverse.integrations._hooks import LightningHooks, TransformersHooks


class Logger:
    def __init__(self) -> None:
        self.seen: list[tuple[int, dict[str, float]]] = []

    def log_metrics(self, metrics: dict[str, float], step: int) -> None:
        self.seen.append((step, metrics))


def net() -> nn.Module:
    return nn.Sequential(nn.Linear(40, 40))


def lightning_run(
    hooks: LightningHooks, folder: Any, *, epochs: int = 3, batches: int = 4, zero: bool = True
) -> Any:
    """What Lightning calls, in its order."""
    loggers = [Logger(), Logger()]
    trainer = SimpleNamespace(
        is_global_zero=zero, loggers=loggers, global_step=0, current_epoch=0, default_root_dir=str(folder)
    )
    module = net()
    hooks.on_fit_start(trainer, module)
    for epoch in range(epochs):
        trainer.current_epoch = epoch
        for batch in range(4):
            trainer.global_step += 1
            hooks.on_train_batch_end(trainer, module, None, None, batch)
        hooks.on_train_epoch_end(trainer, module)
    return trainer


def test_lightning_by_epochs(tmp_path):
    trainer = lightning_run(Long(every_n_epochs=2), tmp_path / "long", epochs=4)
    found = read_history(tmp_path / "long")
    assert [(point.step, point.epoch) for point in found] == [(0, 0), (2, 2), (4, 4)]
    for logger in trainer.loggers:
        assert [step for step, _ in logger.seen] == [0, 8, 16]  # what loggers count by
        assert logger.seen[0][1] == found.points[0].metrics()


class Long(LightningHooks):
    """A training that has gone on for days when it begins."""

    def begin(self, net: nn.Module, folder: Any, log: Any) -> None:
        super().begin(net, folder, log)
        self.watch._began -= 1e6


class LongOther(TransformersHooks):
    def begin(self, net: nn.Module, folder: Any, log: Any) -> None:
        super().begin(net, folder, log)
        self.watch._began -= 1e6


def test_lightning_by_steps_and_in_a_place_of_its_own(tmp_path):
    hooks = Long(tmp_path / "mine.jsonl", every_n_steps=5)
    lightning_run(hooks, tmp_path / "root")
    assert [point.step for point in hooks.history] == [0, 5, 10]
    assert read_history(tmp_path / "mine.jsonl") == hooks.history
    assert not (tmp_path / "root").exists()


def test_lightning_on_another_process(tmp_path):
    hooks = Long()
    lightning_run(hooks, tmp_path / "root", zero=False)
    assert hooks.history.points == ()
    assert not (tmp_path / "root").exists()


def transformers_run(hooks: TransformersHooks, folder: Any, *, zero: bool = True) -> list[dict[str, float]]:
    """What Hugging Face's Trainer calls: two epochs of three steps."""
    logged: list[dict[str, float]] = []
    if hooks.trainer == "given":
        hooks.trainer = SimpleNamespace(log=logged.append)
    args = SimpleNamespace(output_dir=str(folder))
    state = SimpleNamespace(is_world_process_zero=zero, global_step=0, epoch=0.0)
    hooks.on_train_begin(args, state, None, model=net(), optimizer=None)
    for epoch in range(2):
        for batch in range(3):
            state.global_step += 1
            state.epoch = epoch + (batch + 1) / 3
            hooks.on_step_end(args, state, None, model=None)
        hooks.on_epoch_end(args, state, None, model=None)
    return logged


def test_transformers_by_epochs_and_steps(tmp_path):
    hooks = LongOther("given")
    logged = transformers_run(hooks, tmp_path)
    assert [point.step for point in read_history(tmp_path)] == [0, 1, 2]
    assert logged == [point.metrics() for point in hooks.history]
    hooks = LongOther(path=tmp_path / "b.jsonl", every_n_steps=2)
    assert transformers_run(hooks, tmp_path) == []  # without the trainer to the file alone
    assert [point.step for point in read_history(tmp_path / "b.jsonl")] == [0, 2, 4, 6]
    hooks = LongOther(path=tmp_path / "c.jsonl")
    transformers_run(hooks, tmp_path, zero=False)
    assert not (tmp_path / "c.jsonl").exists()


def test_both_kinds_of_interval_are_refused():
    with pytest.raises(BadInput, match="every_n_epochs or every_n_steps"):
        LightningHooks(every_n_epochs=1, every_n_steps=2)


@pytest.mark.parametrize("name", ["lightning", "transformers"])
def test_without_the_package_a_sentence_says_what_to_install(monkeypatch, name):
    for package in ("lightning", "lightning.pytorch", "pytorch_lightning", "transformers"):
        monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"obverse.integrations.{name}", raising=False)
    with pytest.raises(ObverseError, match=f"pip install {name}"):
        import_module(f"obverse.integrations.{name}")


def test_inputs_reach_the_shadow(tmp_path):
    hooks = Long(inputs=torch.rand(4, 40))
    lightning_run(hooks, tmp_path, epochs=1)
    assert all(one.recovery is not None for point in hooks.history for one in point.layers)
