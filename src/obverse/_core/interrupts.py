"""Ctrl-C and SIGTERM between two steps instead of in the middle of one. Not for what is saved then."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from .errors import ObverseError


class Interrupted(ObverseError):
    """Stopped by the user (Ctrl-C) or the system, between two steps."""

    def __init__(self, step: int, total: int, run: Path | None) -> None:
        where = f"saved in {run}" if run else "nothing was saved: there is no run directory"
        super().__init__(f"stopped at step {step} of {total}; {where}")


@contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM is Ctrl-C for the duration."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def stop_signals() -> Iterator[threading.Event]:
    """Ctrl-C and SIGTERM set the event instead of breaking a step in two; a second Ctrl-C does break.

    A second SIGTERM does not: ending a launcher and its processes together sends it twice.
    """
    event = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield event
        return

    def on_signal(number: int, frame: FrameType | None) -> None:
        if event.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        event.set()

    previous = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield event
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
