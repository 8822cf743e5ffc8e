"""The training loop: any Task, interruptible and resumable to the bit. Not for what a step does.

The randomness of a step is seeded from (seed, step), so a checkpoint needs no generator state and a
resumed run repeats exactly what the uninterrupted one did.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

import torch
from torch import Tensor

from ..errors import ObverseError
from .checkpoint import load_checkpoint, save_checkpoint
from .files import replace_atomically
from .rundir import append_metrics, keep_metrics, locked, read_metrics
from .seeds import STEPS, derive_seed


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


class Interrupted(ObverseError):
    """Stopped by the user (Ctrl-C) or the system, between two steps."""

    def __init__(self, step: int, total: int, run: Path | None) -> None:
        where = f"saved in {run}" if run else "nothing was saved: there is no run directory"
        super().__init__(f"stopped at step {step} of {total}; {where}")


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
) -> list[dict[str, Any]]:
    """Train for so many epochs and return the records of metrics.jsonl.

    With `run` (a run directory) it continues from the checkpoint found there, logs to metrics.jsonl,
    saves every `checkpoint_every` steps (by default at the end of each epoch) and on Ctrl-C, and leaves
    model.safetensors at the end. `on_step(step, total, loss)` and `on_record(record)` are for display.
    """
    with torch.random.fork_rng(devices=[]), locked(run) if run else nullcontext(), _stop_signals() as stopped:
        loop = _Loop(task, epochs, seed, run)
        loop.start(on_record)
        total = epochs * task.steps_per_epoch
        while loop.step < total:
            loss = loop.advance()
            if on_step:
                on_step(loop.step, total, loss)
            epoch_ends = loop.step % task.steps_per_epoch == 0
            if epoch_ends:
                epoch = loop.step // task.steps_per_epoch
                loop.end_epoch(epoch, epoch % evaluate_every == 0 or epoch == epochs, on_record)
            if run:
                due = epoch_ends if checkpoint_every is None else loop.step % checkpoint_every == 0
                if due or stopped.is_set() or loop.step == total:
                    loop.save()
            if stopped.is_set() and loop.step < total:
                raise Interrupted(loop.step, total, run)
        if run:
            loop.save_model()
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
        found = load_checkpoint(self.run / "checkpoint") if self.run else None
        if found is not None and self.run is not None:
            self.step, tensors, extra = found
            self.task.restore(tensors)
            self.loss_sum, self.seconds = float(extra["loss_sum"]), float(extra["seconds"])
            keep_metrics(self.run, int(extra["records"]))
            self.records = read_metrics(self.run)
            self.saved_at = self.step
            return
        if self.run is not None:
            keep_metrics(self.run, 0)
        self._log(
            {"epoch": 0, "step": 0, "train_loss": None, **self.task.evaluate(), "seconds": 0.0}, on_record
        )

    def advance(self) -> float:
        started = time.perf_counter()
        epoch, index = divmod(self.step, self.task.steps_per_epoch)
        torch.manual_seed(derive_seed(self.seed, STEPS, self.step))
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
        record |= self.task.evaluate() if evaluate else {}
        self._log(record | {"seconds": round(self.seconds, 3)}, on_record)
        self.loss_sum = self.seconds = 0.0

    def save(self) -> None:
        if self.run is None or self.saved_at == self.step:
            return
        tensors = self.task.tensors()
        broken = [name for name, tensor in tensors.items() if not torch.isfinite(tensor).all()]
        if broken:
            raise self._diverged(f"values that are not finite in {broken[0]}")
        extra = {"loss_sum": self.loss_sum, "seconds": self.seconds, "records": len(self.records)}
        save_checkpoint(self.run / "checkpoint", self.step, tensors, extra)
        self.saved_at = self.step

    def save_model(self) -> None:
        from safetensors.torch import save_file

        assert self.run is not None
        model = {name: tensor.detach().contiguous() for name, tensor in self.task.model().items()}
        replace_atomically(self.run / "model.safetensors", lambda temporary: save_file(model, temporary))

    def _log(self, record: dict[str, Any], on_record: Callable[[Mapping[str, Any]], None] | None) -> None:
        record = _json_safe(record)
        self.records.append(record)
        if self.run is not None:
            append_metrics(self.run, record)
        if on_record:
            on_record(record)

    def _diverged(self, what: str) -> Diverged:
        kept = "none" if self.saved_at is None else f"step {self.saved_at} in {self.run}"
        return Diverged(
            f"expected a finite loss; got {what} at step {self.step}; last good checkpoint: {kept}; "
            "try a smaller rate, or a smaller weight or normalize=true with shadows"
        )


def _json_safe(value: Any) -> Any:
    """NaN and infinity become None: JSON has neither."""
    if isinstance(value, Mapping):
        return {key: _json_safe(item) for key, item in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


@contextmanager
def _stop_signals() -> Iterator[threading.Event]:
    """Ctrl-C and SIGTERM set the event instead of breaking a step in two; the second one does break."""
    event = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield event
        return

    def on_signal(number: int, frame: FrameType | None) -> None:
        if event.is_set():
            raise KeyboardInterrupt
        event.set()

    previous = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield event
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
