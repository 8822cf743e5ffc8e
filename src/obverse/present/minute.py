"""One line a minute about long work whose output is piped, where bars would be noise. Not for terminals.

Work that takes less than a minute prints nothing. The lines come from a thread, so that they come also while
one layer, or one setting, takes longer than that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any

import typer

from .._core import counted, printable

EVERY = 60.0  # seconds


@contextmanager
def every_minute(line: Callable[[], str], every: float | None = None) -> Iterator[None]:
    """Print what `line` returns on standard error every minute meanwhile; nothing where it returns ""."""
    over = threading.Event()

    def repeat() -> None:
        while not over.wait(EVERY if every is None else every):
            if text := line():
                with suppress(OSError, ValueError):  # standard error was closed: the work goes on
                    typer.echo(printable(text), err=True)

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class Counted:
    """How far work is that counts its parts: `tell` is the `progress` that a computation takes."""

    def __init__(self, title: str) -> None:
        self._title, self._began = title, monotonic()
        self._first: tuple[float, int] | None = None  # when the first parts were told, and how many
        self._done, self._total, self._name = 0, 0, ""

    def tell(self, done: int, total: int, name: str) -> None:
        if self._first is None or done < self._done:  # a second stage counts from its own start
            self._first = monotonic(), done
        self._done, self._total, self._name = done, total, name

    def line(self) -> str:
        """`net: 3 of 12, layer2.conv1, 2 min so far, about 6 min left`."""
        parts = [f"{self._title}: {self._done:,} of {self._total:,}" if self._total else self._title]
        if self._name:
            parts.append(self._name)
        parts.append(f"{span(monotonic() - self._began)} so far")
        if self._first is not None and self._done > self._first[1] and self._done < self._total:
            began, before = self._first
            left = (monotonic() - began) / (self._done - before) * (self._total - self._done)
            parts.append(f"about {span(left)} left")
        return ", ".join(parts)


class Trained(Counted):
    """How far a training is; `on_step` and `on_record` are the callbacks that `fit` takes."""

    def __init__(self, title: str) -> None:
        super().__init__(title)
        self._error = ""

    def on_step(self, step: int, total: int, loss: float) -> None:
        self.tell(step, total, f"loss {loss:.3f}{self._error}")

    def on_record(self, record: Mapping[str, Any]) -> None:
        error = record.get("test_error")
        if isinstance(error, int | float):
            self._error = f", error {100 * error:.2f} %"


class Sweeping(Counted):
    """How far a run of several claims is; `settings` is how many there are of each, by its id."""

    def __init__(self, settings: Mapping[str, int]) -> None:
        super().__init__(f"settings of {counted(len(settings), 'claim')}")
        self._state = {id: (0, total) for id, total in settings.items()}

    def tell(self, done: int, total: int, name: str) -> None:
        self._state[name] = done, total
        whole, there = (sum(counts) for counts in zip(*self._state.values(), strict=True))
        super().tell(whole, there, name)


class Pace:
    """How far an audit is, how fast, and how long it will take at that speed."""

    def __init__(self) -> None:
        self._began = monotonic()
        self._before: int | None = None
        self._done, self._total, self._name = 0, 0, ""

    def tell(self, done: int, total: int, name: str) -> str:
        """A note where the first layers were measured by an audit that was interrupted."""
        self._done, self._total, self._name = done, total, name
        if self._before is None:
            self._before = done
            return (
                f"{done} of {counted(total, 'layer')} measured before: the audit is resumed" if done else ""
            )
        return ""

    @property
    def _per_second(self) -> float:
        return (self._done - (self._before or 0)) / max(monotonic() - self._began, 1e-9)

    @property
    def speed(self) -> str:
        return f"{60 * self._per_second:.3g} matrices/min" if self._per_second else ""

    def line(self, title: str) -> str:
        left = self._total - self._done
        parts = [f"{title}: {self._done} of {counted(self._total, 'layer')}", self.speed]
        if self._per_second and left:
            parts.append(f"about {span(left / self._per_second)} left")
        if self._name:
            parts.append(f"at {self._name}")
        return printable(", ".join(part for part in parts if part))


def span(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"
