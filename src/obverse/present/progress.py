"""Progress bars with loss, error, speed and time to go; where there is no terminal, one line a minute."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from .._core import printable, show_downloads
from .minute import EVERY, Counted, Pace, Sweeping, Trained, every_minute
from .table import shorten

LONGEST = 40  # letters of a name beside a bar
BARS = 8  # of claims at a time: more would not leave room for what was on the screen
OnRun = Callable[..., dict[str, Any]]


@contextmanager
def training_progress(every: float = EVERY) -> Iterator[OnRun]:
    """Yields `follow(title)`, which returns the display callbacks that `fit` takes, one bar a training."""
    console = Console(stderr=True)
    if not console.file.isatty():  # is_terminal would let FORCE_COLOR draw bars into a log file
        told = [Counted("preparing")]  # the last one is under way

        def follow_piped(title: str) -> dict[str, Any]:
            run = Trained(title)
            told.append(run)
            return {"on_step": run.on_step, "on_record": run.on_record}

        with every_minute(lambda: told[-1].line(), every):
            yield follow_piped
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


def _counting() -> tuple[ProgressColumn, ...]:
    """What a bar shows that counts parts: its name, how many are done, the time to go."""
    return (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeRemainingColumn(compact=True, elapsed_when_finished=True),
    )


@contextmanager
def layer_progress(title: str, every: float = EVERY) -> Iterator[Callable[[int, int, str], None]]:
    """Yields what long work calls before each of its parts: one bar, with that part and the time to go."""
    console = Console(stderr=True)
    if not console.file.isatty():
        count = Counted(title)
        with every_minute(count.line, every):
            yield count.tell
        return
    layer_column = TextColumn("{task.fields[layer]}", markup=False)
    with Progress(*_counting(), layer_column, console=console) as progress:
        bar = progress.add_task(shorten(printable(title), LONGEST), total=None, layer="")

        def on_layer(done: int, total: int, name: str) -> None:
            layer = shorten(printable(name), LONGEST)
            progress.update(bar, completed=done, total=total, layer=layer, refresh=True)

        yield on_layer


@contextmanager
def audit_progress(title: str, every: float = EVERY) -> Iterator[Callable[[int, int, str], None]]:
    """Yields what an audit calls when a layer is done: one line with layer, matrices per minute, time to go.

    On a terminal it is one that changes; elsewhere there is one line every so many seconds, also while a
    large layer takes longer. What was measured by an earlier audit counts as done, not as speed.
    """
    console = Console(stderr=True)
    pace = Pace()
    if not console.file.isatty():
        with every_minute(lambda: pace.line(title), every):
            yield lambda done, total, name: _resumed_line(pace.tell(done, total, name))
        return
    columns = (
        *_counting(),
        *(TextColumn(f"{{task.fields[{name}]}}", markup=False) for name in ("speed", "layer")),
    )
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task(shorten(printable(title), LONGEST), total=None, layer="", speed="")

        def on_layer(done: int, total: int, name: str) -> None:
            if note := pace.tell(done, total, name):
                progress.console.print(note, markup=False, highlight=False)
            layer = shorten(printable(name), LONGEST)
            progress.update(bar, completed=done, total=total, layer=layer, speed=pace.speed, refresh=True)

        yield on_layer


def _resumed_line(note: str) -> None:
    if note:
        typer.echo(note, err=True)


@contextmanager
def claims_progress(
    settings: Mapping[str, int], every: float = EVERY
) -> Iterator[Callable[[int, int, str], None]]:
    """Yields what a sweep calls after each setting: a bar for all, and one each for the next few claims.

    `settings` is how many there are of each claim, by its id. A claim's bar goes when it has been measured,
    and makes room for the next one.
    """
    console = Console(stderr=True)
    if not console.file.isatty():
        sweeping = Sweeping(settings)
        with every_minute(sweeping.line, every):
            yield sweeping.tell
        return
    with Progress(*_counting(), console=console) as progress:
        whole = progress.add_task(f"0 of {len(settings)} claims", total=None)
        bars: dict[str, TaskID] = {}
        state = {id: (0, total) for id, total in settings.items()}

        def refresh() -> None:
            left = [id for id, (done, total) in state.items() if done < total]
            at_work = sorted(left, key=lambda id: state[id][0] == 0)[:BARS]  # those begun come first
            for id in bars.keys() - at_work:
                progress.remove_task(bars.pop(id))
            for id in at_work:
                if id not in bars:
                    bars[id] = progress.add_task(shorten(printable(id), LONGEST), total=None)
                done, total = state[id]
                progress.update(bars[id], completed=done, total=total)
            done, total = (sum(counts) for counts in zip(*state.values(), strict=True))
            title = f"{len(state) - len(left)} of {len(state)} claims"
            progress.update(whole, completed=done, total=total, description=title, refresh=True)

        def on_point(done: int, total: int, id: str) -> None:
            state[id] = done, total
            refresh()

        refresh()
        yield on_point


@contextmanager
def download_bar(name: str, start: int, total: int | None) -> Iterator[Callable[[int], None]]:
    """A bar on the terminal; silence in logs and pipes."""
    console = Console(stderr=True)
    if not console.file.isatty():
        yield lambda count: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(name, total=total, completed=start)
        yield lambda count: bar.advance(task, count)


show_downloads(download_bar)
