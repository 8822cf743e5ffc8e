"""One worker of a search: takes trials until none is left. In this process, or as a process of its own.

Not for planning, nor for what comes after the trials: see search.
"""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..._core import Interrupted, ObverseError, stop_signals
from ...data import Dataset
from .._classify import ClassifierTask, fit_classifier
from .._fit import Diverged
from .._rundir import read_run, ready_run
from .._settings import Settings, foreign
from .plan import data_name, load_planned, read_plan
from .results import Retrained, SearchResult, write_result
from .study import Claim, Study

POLL = 0.5  # seconds between two looks at trials that others run
SHOWN = 0.2  # seconds between two messages about steps
TRIALS = "trials"

# What a worker says: {"kind": "step" | "end" | "wait", …}
Event = Mapping[str, Any]
OnEvent = Callable[[Event], None]


class _Pruned(Exception):
    """Out of `fit`, at the end of an epoch."""


def work(study: Study, on_event: OnEvent | None = None) -> None:
    """Run trials of the search until all are finished, here or elsewhere."""
    plan = study.plan
    tell = on_event or (lambda event: None)
    data: Dataset | None = None
    with threads(plan.threads), stop_signals() as stopped:
        while True:
            if stopped.is_set():
                raise KeyboardInterrupt
            claim = study.claim()
            if claim is None:
                running = study.running()
                if not running:
                    return
                tell({"kind": "wait", "trials": running, "elsewhere": study.elsewhere()})
                time.sleep(POLL)
                continue
            try:
                data = load_planned(plan) if data is None else data
                _run(study, claim, data, tell, stopped)
            finally:
                claim.release()
            tell(so_far(save(study)))


def _run(study: Study, claim: Claim, data: Dataset, tell: OnEvent, stopped: threading.Event) -> None:
    """Train one setting, from its checkpoint if there is one, and tell the study how it ended."""
    path = trial_path(study.path, claim.number)
    settings = study.plan.settings(claim.lr, claim.weight)
    run = ready_run(path, settings, f"trial {claim.number}", "move this run away")
    seen = time.monotonic() - SHOWN

    def on_step(step: int, total: int, loss: float) -> None:
        nonlocal seen
        if time.monotonic() - seen >= SHOWN:
            seen = time.monotonic()
            told = {"trial": claim.number, "lr": claim.lr, "weight": claim.weight, "loss": loss}
            tell({"kind": "step", "step": step, "total": total, **told})

    def report(record: Mapping[str, Any]) -> int:
        """The epoch, if the record has an error to tell; else 0."""
        if record["epoch"] == 0 or not isinstance(record.get("test_error"), int | float):
            return 0
        study.report(claim, record["epoch"], record["test_error"])
        return int(record["epoch"])

    def stop(epoch: int) -> None:
        if 0 < epoch < settings.epochs and study.should_stop(claim, epoch):  # at its end it is complete
            raise _Pruned

    def on_record(record: Mapping[str, Any]) -> None:
        stop(report(record))

    try:
        # What the worker that began it has not reported. It went on after each of these epochs but the last.
        reported = [report(record) for record in run.metrics]
        if not run.finished:
            stop(max(reported, default=0))
            task = ClassifierTask(settings, data)
            fit_classifier(task, path, on_step=on_step, on_record=on_record, stopped=stopped)
    except _Pruned:
        study.tell(claim, "pruned", None, seconds=_seconds(path))
    except Diverged as diverged:
        study.tell(claim, "failed", None, seconds=_seconds(path), reason=str(diverged))
    else:
        study.tell(claim, "complete", float(read_run(path).final["test_error"]), seconds=_seconds(path))


def trial_path(path: Path, number: int) -> Path:
    return path / TRIALS / f"{number:04d}"


def _seconds(path: Path) -> float:
    """Of training, as far as it was logged."""
    seconds = (record.get("seconds") for record in read_run(path).metrics)
    return math.fsum(one for one in seconds if isinstance(one, int | float))


def so_far(result: SearchResult) -> Event:
    """How far all workers are together."""
    best = None if result.best is None else result.best.error
    return {"kind": "end", "finished": result.finished, "best": best}


def save(study: Study, retrained: Retrained | None = None) -> SearchResult:
    """Write what is known to the search directory."""
    result = known(study, retrained)
    with study.alone():
        write_result(study.path, result)
    return result


def known(study: Study, retrained: Retrained | None = None) -> SearchResult:
    """What the study says of all trials."""
    from ..._core import versions

    plan = study.plan
    unseen = ("data", "data_root", "lr", "weight", "validation", *foreign(plan.base))
    trials = tuple(study.trials())
    return SearchResult(
        data=data_name(plan.base.data),
        train_points=plan.train_points,
        held_out=plan.base.validation,
        test_points=plan.test_points,
        epochs=plan.base.epochs,
        sampler=plan.sampler,
        pruner=plan.pruner,
        lrs=plan.lrs,
        weights=plan.weights,
        planned=plan.trials,
        trials=trials,
        retrained=retrained,
        settings={name: getattr(plan.base, name) for name in Settings.names() if name not in unseen},
        versions=versions(),
    )


@contextmanager
def threads(count: int) -> Iterator[None]:
    """So many threads of torch for the duration."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def main() -> None:
    """A process of its own: reads where to work from stdin, writes an event a line to stdout."""
    asked = json.loads(sys.stdin.readline())

    def say(event: Event) -> None:
        try:
            sys.stdout.write(json.dumps(event) + "\n")
            sys.stdout.flush()
        except BrokenPipeError:  # the parent process has ended: stop as if told to
            sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
            signal.raise_signal(signal.SIGTERM)

    code = 0
    try:
        path = Path(asked["path"])
        work(Study(path, read_plan(path), asked["storage"]), say)
    except (Interrupted, KeyboardInterrupt):
        code = 130
    except ObverseError as error:
        code = 2
        say({"kind": "error", "said": str(error)})
    with suppress(BrokenPipeError):
        sys.stdout.flush()
    sys.exit(code)
