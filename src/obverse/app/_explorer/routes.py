"""What the page can ask for, by name, and the threads that answer. Not for how it is asked: see server.

Each kind of question has one thread: torch keeps a pool of threads for each that calls it, and memory would
grow with the number of clients. Shadow and audit, which take long for a large net, hold up nobody else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch

from ...diversity.tab import AT_ONCE, MOST_SUPPORT, birthday_answer
from ...ladder._summaries import KINDS
from ...ladder.tab import MOST_LEAVES, MOST_REGIONS, MOST_STEPS, ladder_answer, preset_answer
from ...present.fields import Fields
from ...shadow.tab._bench import MOST_OFFSET, MOST_SIDE, laws, measure_answer, predict_answer
from ...shadow.tab._shadow import MOST_REFINE, MOST_SMOOTH, shadow_answer
from ...weights.tab import audit_answer, shared
from .subject import Subject
from .worker import Worker

Answer = Callable[[Subject, Fields], dict[str, Any]]


def about_answer(subject: Subject, fields: Fields) -> dict[str, Any]:
    """The net, and the bounds of every control."""
    from ... import __version__

    return {
        "version": __version__,
        "net": subject.about(),
        "shared": shared(),
        "shadow": {"most_smooth": MOST_SMOOTH, "most_refine": MOST_REFINE},
        "bench": {"laws": laws(subject), "most_side": MOST_SIDE, "most_offset": MOST_OFFSET},
        "birthday": {"most_support": MOST_SUPPORT, "at_once": AT_ONCE},
        "ladder": {
            "summaries": KINDS,
            "most_leaves": MOST_LEAVES,
            "most_regions": MOST_REGIONS,
            "most_steps": MOST_STEPS,
        },
    }


ROUTES: Mapping[str, Answer] = {
    "about": about_answer,
    "shadow": shadow_answer,
    "predict": predict_answer,
    "measure": measure_answer,
    "audit": audit_answer,
    "birthday": birthday_answer,
    "preset": preset_answer,
    "ladder": ladder_answer,
}
SMALL = 2**22  # weights: below, a second thread costs a slider more than it gives


class Desk:
    """Takes questions and has them answered, those of a kind one after the other."""

    def __init__(self, subject: Subject, secret: str) -> None:
        self._subject, self._secret = subject, secret
        small = sum(one.rows * one.columns for one in subject.weights) <= SMALL
        threads = partial(torch.set_num_threads, 1 if small else torch.get_num_threads())
        self._workers = {name: Worker(f"explore-{name}", threads) for name in ("shadow", "audit", "others")}

    def ask(self, name: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The answer, or whatever error it ended with."""
        worker = self._workers.get(name, self._workers["others"])
        answer: dict[str, Any] = worker.submit(ROUTES[name], self._subject, Fields(body)).result()
        return answer | {"secret": self._secret} if name == "about" else answer

    def close(self) -> None:
        for worker in self._workers.values():
            worker.close()
