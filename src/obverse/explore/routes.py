"""What the page can ask for, by name, and the threads that answer. Not for how it is asked: see server.

All questions about the net run on one thread: torch keeps a pool of threads for each that calls it, and
memory would grow with the number of clients. The audit, which takes seconds, has a thread of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

from ..ladder.summaries import KINDS
from .audit_tab import audit_answer, shared
from .bench_tab import AXES, MOST_OFFSET, MOST_SIDE, laws, measure_answer, predict_answer
from .birthday_tab import AT_ONCE, LAWS, MOST_BATCHES, MOST_SIZE, MOST_SUPPORT, birthday_answer
from .fields import Fields
from .ladder_tab import MOST_LEAVES, MOST_REGIONS, MOST_STEPS, PRESETS, ladder_answer, preset_answer
from .shadow_tab import MOST_REFINE, MOST_SMOOTH, SAMPLES, shadow_answer
from .subject import Subject

Answer = Callable[[Subject, Fields], dict[str, Any]]


def about_answer(subject: Subject, fields: Fields) -> dict[str, Any]:
    """The net, and the bounds of every control."""
    from .. import __version__

    return {
        "version": __version__,
        "net": subject.about(),
        "shared": shared(),
        "shadow": {"most_smooth": MOST_SMOOTH, "most_refine": MOST_REFINE, "samples": SAMPLES},
        "bench": {"laws": laws(subject), "axes": AXES, "most_side": MOST_SIDE, "most_offset": MOST_OFFSET},
        "birthday": {
            "laws": LAWS,
            "most_support": MOST_SUPPORT,
            "most_size": MOST_SIZE,
            "most_batches": MOST_BATCHES,
            "at_once": AT_ONCE,
        },
        "ladder": {
            "summaries": KINDS,
            "presets": PRESETS,
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
SLOW = frozenset({"audit"})
SMALL = 2**22  # weights: below, a second thread costs a slider more than it gives


class Desk:
    """Takes questions and answers them one after the other."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        small = sum(one.rows * one.columns for one in subject.weights) <= SMALL
        threads = 1 if small else torch.get_num_threads()
        self._quick = ThreadPoolExecutor(1, "explore", torch.set_num_threads, (threads,))
        self._slow = ThreadPoolExecutor(1, "explore-audit")

    def ask(self, name: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The answer, or whatever error it ended with."""
        pool = self._slow if name in SLOW else self._quick
        return pool.submit(ROUTES[name], self._subject, Fields(body)).result()

    def close(self) -> None:
        for pool in (self._quick, self._slow):
            pool.shutdown(wait=False, cancel_futures=True)
