"""What the workers of a search are doing: a bar for all trials and one a worker; silent elsewhere than on a
terminal. Not for the table at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from .words import value
from .worker import Event

OnEvent = Callable[[int, Event], None]


@contextmanager
def search_progress(trials: int) -> Iterator[OnEvent | None]:
    """Yields what a search calls with a worker's number and what it does."""
    console = Console(stderr=True)
    if not console.file.isatty():
        yield None
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[said]}", markup=False),
        TimeRemainingColumn(compact=True, elapsed_when_finished=True),
    )
    with Progress(*columns, console=console) as progress:
        whole = progress.add_task("trials", total=trials, said="")
        bars: dict[int, TaskID] = {}

        def on_event(worker: int, event: Event) -> None:
            kind = event["kind"]
            if kind == "end":
                best = event["best"]
                said = "" if best is None else f"best {100 * best:.2f} %"
                progress.update(whole, completed=event["finished"], said=said)
                return
            if worker not in bars:
                bars[worker] = progress.add_task("", total=None, said="")
            if kind == "gone":
                progress.remove_task(bars.pop(worker))
            elif kind == "wait":
                running = ", ".join(map(str, event["trials"][:5]))
                progress.update(bars[worker], description=f"waits for trial {running}", total=None, said="")
            else:
                title = "best, on all points"
                if kind == "step":
                    setting = f"rate {value(event['rate'])}, weight {value(event['weight'])}"
                    title = f"trial {event['trial']}: {setting}"
                progress.update(
                    bars[worker],
                    description=title,
                    completed=event["step"],
                    total=event["total"],
                    said=f"loss {event['loss']:.3f}",
                )

        yield on_event
