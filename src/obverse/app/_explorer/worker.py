"""A thread that does one thing after the other, and that nobody waits for at the end. Not for what it does.

Executors of the standard library are waited for when the program ends: Ctrl-C would take as long as the
slowest question.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

Job = tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]


class Worker:
    """`first` is called in the thread before anything else."""

    def __init__(self, name: str, first: Callable[[], object]) -> None:
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, args=(first,), name=name, daemon=True)
        self._thread.start()

    def submit(self, work: Callable[..., Any], *arguments: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._jobs.put((future, work, arguments))
        return future

    def close(self) -> None:
        """After what was asked for before."""
        self._jobs.put(None)

    def ended(self, seconds: float) -> bool:
        """Whether its thread ends within so many seconds."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _work(self, first: Callable[[], object]) -> None:
        first()
        while (job := self._jobs.get()) is not None:
            future, work, arguments = job
            try:
                future.set_result(work(*arguments))
            except BaseException as error:
                future.set_exception(error)
