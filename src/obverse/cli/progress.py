"""Progress bars with loss, error, speed and time to go; silent when the output is not a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ..randomlike.tables import printable
from .grid import shorten

LONGEST = 40  # letters of a name beside a bar
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


@contextmanager
def layer_progress(title: str) -> Iterator[Callable[[int, int, str], None] | None]:
    """Yields what an audit calls before each layer: one bar, with the layer at work and the time to go."""
    console = Console(stderr=True)
    if not console.file.isatty():
        yield None
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeRemainingColumn(compact=True, elapsed_when_finished=True),
        TextColumn("{task.fields[layer]}", markup=False),
    )
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task(shorten(printable(title), LONGEST), total=None, layer="")

        def on_layer(done: int, total: int, name: str) -> None:
            layer = shorten(printable(name), LONGEST)
            progress.update(bar, completed=done, total=total, layer=layer, refresh=True)

        yield on_layer
