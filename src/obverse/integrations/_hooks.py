"""What trainers call, without their packages: the callbacks add these to the trainers' own base classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import nn

from .._core import BadInput
from ._watch import Watch
from .results import History


class Hooks:
    """Settings of a `Watch` that is made when the training begins, as only then the net is known."""

    def __init__(
        self,
        path: Path | str | None = None,
        *,
        every_n_epochs: int | None = None,
        every_n_steps: int | None = None,
        at_most: float | None = 0.05,
        inputs: Any = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if every_n_epochs is not None and every_n_steps is not None:
            raise BadInput("every_n_epochs or every_n_steps", got="both", do="leave one out")
        self.by_steps = every_n_steps is not None
        self.every = every_n_steps if every_n_steps is not None else every_n_epochs or 1
        self.settings = {"at_most": at_most, "inputs": inputs, "seed": seed}
        self.path = path
        self.watch: Watch | None = None

    @property
    def history(self) -> History:
        """What was measured so far, in this process."""
        return History(()) if self.watch is None else self.watch.history

    def begin(self, net: nn.Module, folder: Path | str | None, log: Any) -> None:
        """Measure the net as it is before training, in `folder` unless a path was given."""
        path = folder if self.path is None else self.path
        if path is not None and not Path(path).suffix:
            Path(path).mkdir(parents=True, exist_ok=True)
        self.watch = Watch(net, path, every=self.every, log=log, **self.settings)

    def step(self, count: int, epoch: float | None, *, at: int | None = None) -> None:
        """After `count` steps or epochs; `at` is what loggers count by."""
        if self.watch is not None:
            self.watch(count, epoch=epoch)


class LightningHooks(Hooks):
    """Of a Lightning trainer, whichever loggers it has."""

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        if not trainer.is_global_zero:
            return

        def log(numbers: dict[str, float], step: int) -> None:
            for logger in trainer.loggers:
                logger.log_metrics(numbers, step=trainer.global_step)

        self.begin(pl_module, trainer.default_root_dir, log)
        done = trainer.global_step if self.by_steps else trainer.current_epoch
        self.step(done, trainer.current_epoch)

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if self.by_steps and (self.watch is None or _is_new(self.watch, trainer.global_step)):
            self.step(trainer.global_step, trainer.current_epoch)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        if not self.by_steps:
            self.step(trainer.current_epoch + 1, trainer.current_epoch + 1)


class TransformersHooks(Hooks):
    """Of a Hugging Face Trainer. Given the trainer, numbers go through its `log` to what it reports to."""

    def __init__(self, trainer: Any = None, path: Path | str | None = None, **settings: Any) -> None:
        super().__init__(path, **settings)
        self.trainer = trainer

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **more: Any) -> None:
        if not state.is_world_process_zero:
            return

        def log(numbers: dict[str, float], step: int) -> None:
            if self.trainer is not None:
                self.trainer.log(numbers)

        self.begin(model, args.output_dir, log)
        self.step(state.global_step if self.by_steps else round(state.epoch or 0), state.epoch)

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        if self.by_steps:
            self.step(state.global_step, state.epoch)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        if not self.by_steps:
            self.step(round(state.epoch or 0), state.epoch)


def _is_new(watch: Watch, step: int) -> bool:
    """With accumulated gradients several batches end at one step."""
    points = watch.history.points
    return not points or points[-1].step != step
