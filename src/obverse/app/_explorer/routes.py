"""What the page can ask for, by name, and the threads that answer. Not for how it is asked: see server.

Each kind of question has one thread: torch keeps a pool of threads for each that calls it, and memory would
grow with the number of clients. Shadow and audit, which take long for a large net, hold up nobody else.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from importlib import import_module
from typing import Any

import torch

from ...present import Answer, Fields, Tab
from .subject import Subject
from .worker import Worker

ROOMS = ("shadow", "weights", "diversity", "ladder")  # which have tabs, in their `tab` modules
TABS: tuple[Tab, ...] = tuple(tab for room in ROOMS for tab in import_module(f"obverse.{room}.tab").TABS)


def about_answer(subject: Subject, fields: Fields) -> dict[str, Any]:
    """The net, and the bounds of every control."""
    from ... import __version__

    found: dict[str, Any] = {"version": __version__, "net": subject.about()}
    for tab in TABS:
        found |= tab.about(subject)
    return found


ROUTES: Mapping[str, Answer] = {"about": about_answer} | {
    name: answer for tab in TABS for name, answer in tab.answers.items()
}
SLOW = ("shadow", "ways", "audit", "others")  # questions with a thread each, and all others in one
PATIENCE = 0.2  # seconds to wait for a thread that is to end
SMALL = 2**22  # weights: below, a second thread costs a slider more than it gives


class Router:
    """Takes questions and has them answered, those of a kind one after the other."""

    def __init__(self, subject: Subject, secret: str) -> None:
        self._subject, self._secret = subject, secret
        small = sum(one.rows * one.columns for one in subject.weights) <= SMALL
        threads = partial(torch.set_num_threads, 1 if small else torch.get_num_threads())
        self._workers = {name: Worker(f"explore-{name}", threads) for name in SLOW}

    def ask(self, name: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The answer, or whatever error it ended with."""
        worker = self._workers.get(name, self._workers["others"])
        answer: dict[str, Any] = worker.submit(ROUTES[name], self._subject, Fields(body)).result()
        return answer | {"secret": self._secret} if name == "about" else answer

    def close(self) -> bool:
        """Whether all threads have ended; one that is in the middle of an answer may take long."""
        for worker in self._workers.values():
            worker.close()
        return all(worker.ended(PATIENCE) for worker in self._workers.values())
