"""The training loop: any Task, interruptible and resumable to the bit. Not for what a step does.

The randomness of a step is seeded from (seed, step), so a checkpoint needs no generator state and a
resumed run repeats exactly what the uninterrupted one did. Of several processes that train one net all go
through the same steps; the first alone reads, measures, writes and displays, and all stop at the same step.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from .._core import (
    STEPS,
    BadInput,
    Interrupted,
    ObverseError,
    derive_seed,
    locked,
    remove_temporaries,
    save_tensors,
    seed_global,
    stop_signals,
)
from ._checkpoint import checkpoint_name, load_checkpoint, remove_leftovers, save_checkpoint
from ._distributed import any_of, by_first, is_first
from ._rundir import append_metrics, keep_metrics, read_metrics


class Task(Protocol):
    """What `fit` needs to know of a thing that can be trained: a classifier, a VAE, a GAN."""

    @property
    def steps_per_epoch(self) -> int: ...

    def step(self, epoch: int, index: int) -> float:
        """Do one update with batch `index` of `epoch` (from 0); return its loss."""

    def evaluate(self) -> dict[str, Any]:
        """Numbers to log, JSON-safe; must not change what training does next."""

    def tensors(self) -> dict[str, Tensor]:
        """Everything that must survive a crash: weights, optimizer state."""

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Take back what `tensors` gave; refuse what does not fit."""

    def model(self) -> dict[str, Tensor]:
        """The weights for model.safetensors."""


class Diverged(ObverseError):
    """The loss or a weight is no longer finite."""


def fit(
    task: Task,
    epochs: int,
    *,
    seed: int = 0,
    run: Path | None = None,
    evaluate_every: int = 1,
    checkpoint_every: int | None = None,
    on_step: Callable[[int, int, float], None] | None = None,
    on_record: Callable[[Mapping[str, Any]], None] | None = None,
    stopped: threading.Event | None = None,
) -> list[dict[str, Any]]:
    """Train for so many epochs and return the records of metrics.jsonl.

    With `run` (a run directory) it continues from the checkpoint found there, logs to metrics.jsonl,
    saves every `checkpoint_every` steps (by default at the end of each epoch) and on Ctrl-C, and leaves
    model.safetensors at the end. `on_step(step, total, loss)` and `on_record(record)` are for display.
    `stopped`, from `stop_signals`, is for who goes on after this training: a signal that comes at its very
    end stops nothing here, and is still to be seen there.
    """
    with (
        torch.random.fork_rng(devices=[]),
        locked(run) if run and is_first() else nullcontext(),
        _watching(stopped, run) as stopped,
    ):
        if run and is_first():
            for name in ("metrics.jsonl", "model.safetensors"):
                remove_temporaries(run / name)
        loop = _Loop(task, epochs, seed, run)
        loop.start(on_record)
        total = epochs * task.steps_per_epoch
        while loop.step < total:
            loss = loop.advance()
            if on_step and is_first():
                on_step(loop.step, total, loss)
            stop = any_of(stopped.is_set())
            epoch_ends = loop.step % task.steps_per_epoch == 0
            if epoch_ends:
                epoch = loop.step // task.steps_per_epoch
                loop.end_epoch(epoch, epoch % evaluate_every == 0 or epoch == epochs, on_record)
            if run:
                due = epoch_ends if checkpoint_every is None else loop.step % checkpoint_every == 0
                if due or stop or loop.step == total:
                    loop.save()
            if stop and loop.step < total:
                raise Interrupted(loop.step, total, run)
        loop.finish()
        return loop.records


class _Loop:
    """The state of one fit: where it is, and what has been logged."""

    def __init__(self, task: Task, epochs: int, seed: int, run: Path | None) -> None:
        self.task, self.epochs, self.seed, self.run = task, epochs, seed, run
        self.step = 0
        self.records: list[dict[str, Any]] = []
        self.loss_sum, self.seconds = 0.0, 0.0  # of the epoch under way
        self.saved_at: int | None = None

    def start(self, on_record: Callable[[Mapping[str, Any]], None] | None) -> None:
        run = self.run
        found = by_first(lambda: _read(run)) if run is not None else None
        if found is not None and run is not None:
            self._resume(run, *found)
            return
        if run is not None and is_first():
            keep_metrics(run, 0)
        start = {"epoch": 0, "step": 0, "train_loss": None}
        self._log(start | by_first(self.task.evaluate) | {"seconds": 0.0}, on_record)

    def _resume(
        self,
        run: Path,
        step: int,
        tensors: Mapping[str, Tensor],
        extra: Mapping[str, Any],
        logged: list[dict[str, Any]],
    ) -> None:
        loss_sum, seconds, count = (extra.get(name) for name in ("loss_sum", "seconds", "records"))
        total = self.epochs * self.task.steps_per_epoch
        if not (
            isinstance(loss_sum, int | float)
            and isinstance(seconds, int | float)
            and isinstance(count, int)
            and 0 <= count <= len(logged)
            and step <= total
        ):
            raise BadInput(
                f"a checkpoint of at most {total} steps and {len(logged)} records in {run}",
                got=f"step {step} with {dict(extra)}",
                do="restore the run, or start a new one",
            )
        self.task.restore(tensors)
        self.step = self.saved_at = step
        self.records, self.loss_sum, self.seconds = logged[:count], float(loss_sum), float(seconds)
        if is_first():
            keep_metrics(run, count)
            remove_leftovers(run / "checkpoint", checkpoint_name(step))

    def advance(self) -> float:
        started = time.perf_counter()
        epoch, index = divmod(self.step, self.task.steps_per_epoch)
        seed_global(derive_seed(self.seed, STEPS, self.step))
        loss = self.task.step(epoch, index)
        self.step += 1
        if not math.isfinite(loss):
            raise self._diverged(f"a loss of {loss}")
        self.loss_sum += loss
        self.seconds += time.perf_counter() - started
        return loss

    def end_epoch(
        self, epoch: int, evaluate: bool, on_record: Callable[[Mapping[str, Any]], None] | None
    ) -> None:
        record = {"epoch": epoch, "step": self.step, "train_loss": self.loss_sum / self.task.steps_per_epoch}
        record |= by_first(self.task.evaluate) if evaluate else {}
        self._log(record | {"seconds": round(self.seconds, 3)}, on_record)
        self.loss_sum = self.seconds = 0.0

    def save(self) -> None:
        if self.run is None or self.saved_at == self.step:
            return
        tensors = self.task.tensors()
        self._check_finite(tensors)
        extra = {"loss_sum": self.loss_sum, "seconds": self.seconds, "records": len(self.records)}
        if is_first():
            save_checkpoint(self.run / "checkpoint", self.step, tensors, extra)
        self.saved_at = self.step

    def finish(self) -> None:
        model = self.task.model()
        self._check_finite(model)
        if self.run is not None and is_first():
            save_tensors(self.run / "model.safetensors", model)

    def _log(self, record: dict[str, Any], on_record: Callable[[Mapping[str, Any]], None] | None) -> None:
        record = _json_safe(record)
        self.records.append(record)
        if not is_first():
            return
        if self.run is not None:
            append_metrics(self.run, record)
        if on_record:
            on_record(record)

    def _check_finite(self, tensors: Mapping[str, Tensor]) -> None:
        for name, tensor in tensors.items():
            if not torch.isfinite(tensor).all():
                raise self._diverged(f"values that are not finite in {name}")

    def _diverged(self, what: str) -> Diverged:
        kept = "none" if self.saved_at is None else f"step {self.saved_at} in {self.run}"
        return Diverged(
            f"expected a finite loss; got {what} at step {self.step}; last good checkpoint: {kept}; "
            "try a smaller lr, or a smaller weight or normalize=true with shadows"
        )


def _read(
    run: Path,
) -> tuple[int, dict[str, Tensor], dict[str, Any], list[dict[str, Any]]] | None:
    """The last checkpoint of a run and what it has logged; None if there is no checkpoint."""
    found = load_checkpoint(run / "checkpoint")
    return None if found is None else (*found, read_metrics(run))


def _json_safe(value: Any) -> Any:
    """NaN and infinity become None: JSON has neither."""
    if isinstance(value, Mapping):
        return {key: _json_safe(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json_safe(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _watching(stopped: threading.Event | None, run: Path | None) -> AbstractContextManager[threading.Event]:
    # Where nothing can be saved, Ctrl-C stays what it always is.
    if stopped is None and run is not None:
        return stop_signals()
    return nullcontext(stopped or threading.Event())
