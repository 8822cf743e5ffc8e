"""Progress bars with loss, error, speed and time to go; silent when the output is not a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

OnRun = Callable[..., dict[str, Any]]


@contextmanager
def training_progress() -> Iterator[OnRun]:
    """Yields `follow(title)`, which returns the display callbacks that `fit` takes, one bar a training."""
    console = Console(stderr=True)
    if not console.file.isatty():  # is_terminal would let FORCE_COLOR draw bars into a log file
        yield lambda title: {}
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]}"),
        TextColumn("error {task.fields[error]}"),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(compact=True, elapsed_when_finished=True),
    )
    with Progress(*columns, console=console) as progress:

        def follow(title: str) -> dict[str, Any]:
            bar = progress.add_task(title, total=None, loss="–", error="–", rate="")

            def on_step(step: int, total: int, loss: float) -> None:
                speed = progress.tasks[bar].speed
                rate = f"{speed:.0f} steps/s" if speed else ""
                progress.update(bar, completed=step, total=total, loss=f"{loss:.3f}", rate=rate)

            def on_record(record: Mapping[str, Any]) -> None:
                if "test_error" in record:
                    progress.update(bar, error=f"{100 * record['test_error']:.2f}%")

            return {"on_step": on_step, "on_record": on_record}

        yield follow
