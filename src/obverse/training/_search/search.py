"""Search for the learning rate and the shadows' weight, as the paper does: on held-out points, in several
processes, resumable at any moment; then train the best on everything. Needs the extra `search` (Optuna).

Not for the plan, the study or one worker: see search_plan, search_study, search_worker. Every trial is a run
directory of its own; what is known at any time is in trials.json.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from ..._core import BadInput, Interrupted, ObverseError, Progress, make_inside, quoted, terminable
from .._classify import ClassifierTask, fit_classifier
from .._fit import Diverged
from .._rundir import read_run, ready_run
from .plan import NAME, SearchPlan, load_planned, make_plan, read_plan, write_plan
from .results import NAME as TRIALS
from .results import Retrained, SearchResult, read_result
from .study import LOCKS, Study, waiting_lock
from .worker import Event, known, save, so_far, threads, work

__all__ = ["BEST", "SearchPlan", "SearchResult", "make_plan", "read_plan", "read_result", "search"]

BEST = "best"
START = "from obverse.training._search.worker import main; main()"


class SearchInterrupted(Interrupted):
    """Stopped by the user (Ctrl-C) or the system; what was trained is saved."""

    def __init__(self, path: Path) -> None:
        ObverseError.__init__(self, f"stopped; everything is saved in {path}")


def search(
    plan: SearchPlan,
    out: Path,
    *,
    storage: str | None = None,
    jobs: int = 1,
    retrain: bool = True,
    take_over: bool = False,
    progress: Progress | None = None,
) -> SearchResult:
    """Run a plan into the directory `out`, or resume it there.

    Args:
        plan: from `make_plan`, or from `read_plan` to resume.
        out: for the plan, the study, a run directory per trial, and `best`.
        storage: the address of a database that keeps the study in place of a file in `out`; other
            directories, on this or other machines, join a search by the same plan with the same storage.
        jobs: worker processes; with 1 everything is done in this one. The numbers of a trial do not depend
            on it; which settings `tpe` chooses and what `median` stops do.
        retrain: train the best on all points at the end, and test that.
        take_over: take trials that run elsewhere, as far as the study knows: nobody runs them any more.
        progress: told of the trials that are finished, all of them, and the best error so far.
    """

    def tell(worker: int, event: Event) -> None:
        if progress and event["kind"] == "end":
            best = event["best"]
            what = "no error yet" if best is None else f"best error {100 * best:.2f} %"
            progress(event["finished"], plan.trials, what)

    return run_search(plan, out, storage=storage, jobs=jobs, retrain=retrain, take_over=take_over, tell=tell)


def run_search(
    plan: SearchPlan,
    out: Path,
    *,
    storage: str | None = None,
    jobs: int = 1,
    retrain: bool = True,
    take_over: bool = False,
    tell: Callable[[int, Event], None],
) -> SearchResult:
    """As `search`; `tell` is called with a worker's number, from 0, and everything that it does."""
    if jobs < 1:
        raise BadInput("jobs ≥ 1", got=jobs, do="use 1 for this process alone")
    began = (out / NAME).exists()
    plan = _settle(plan, out)
    try:
        study = Study(out, plan, storage)  # refuses a bad storage before any process is started
    except ObverseError:
        if not began:  # the corrected command may be for another kind of storage
            (out / NAME).unlink(missing_ok=True)
        raise
    if take_over:
        study.take_over()
    if not (out / TRIALS).exists():
        save(study)  # `obverse report` has something to show from now on
    try:
        tell(0, so_far(known(study)))
        if jobs == 1:
            work(study, lambda event: tell(0, event))
        else:
            _work_together(out, storage, jobs, plan.threads, tell)
        result = save(study)
        if result.best is not None and (retrain or (out / BEST / "model.safetensors").is_file()):
            result = save(study, _retrain(plan, out, result, lambda event: tell(0, event)))
    except (KeyboardInterrupt, Interrupted):
        raise SearchInterrupted(out) from None
    return result


def _settle(plan: SearchPlan, out: Path) -> SearchPlan:
    """Write the plan, or find the same one there."""
    if not (out / NAME).exists():
        make_inside(out / LOCKS)
        with waiting_lock(out / LOCKS / "study"):
            if not (out / NAME).exists():
                write_plan(out, plan)
    found = read_plan(out)
    if not found.same_search(plan) or found.shared != plan.shared:
        raise BadInput(
            f"the search of {out / NAME}",
            got="another one",
            do=f"choose another --out, or go on with: obverse search --resume {quoted(out)}",
        )
    return found


def _work_together(
    out: Path, storage: str | None, jobs: int, count: int, tell: Callable[[int, Event], None]
) -> None:
    """Start so many workers and wait for them. One that dies is not replaced: others take up its trial."""
    events: queue.Queue[tuple[int, Event | None]] = queue.Queue()
    # The address may hold a password: it goes through a pipe, where no list of processes shows it.
    asked = json.dumps({"path": str(out.absolute()), "storage": storage}) + "\n"
    environment = {**os.environ, "OMP_NUM_THREADS": str(count)}
    workers: list[subprocess.Popen[str]] = []
    listeners: list[threading.Thread] = []
    errors: dict[int, str] = {}
    try:
        with terminable():
            for number in range(jobs):
                worker = subprocess.Popen(
                    [sys.executable, "-P", "-c", START],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    env=environment,
                    start_new_session=True,  # Ctrl-C comes here alone, and is passed on once
                )
                workers.append(worker)
                listeners.append(threading.Thread(target=_listen, args=(number, worker, asked, events)))
                listeners[-1].start()
            left = jobs
            while left:
                number, event = events.get()
                if event is None:
                    left -= 1
                    workers[number].wait()
                    code = workers[number].returncode
                    tell(number, {"kind": "gone", "code": code, "said": errors.get(number, "")})
                elif event["kind"] == "error":
                    errors[number] = event["said"]
                else:
                    tell(number, event)
    finally:
        for worker in workers:
            if worker.poll() is None:
                worker.send_signal(signal.SIGTERM)
        for worker in workers:
            worker.wait()  # until it has saved
        for listener in listeners:
            listener.join()
    codes = [worker.returncode for worker in workers]
    if 0 in codes:  # it has seen all trials finished
        return
    if 130 in codes:
        raise SearchInterrupted(out)
    if errors:
        raise ObverseError(errors[min(errors)])
    raise ObverseError(
        f"expected a worker to end well; got the exit codes {', '.join(map(str, codes))} (negative: "
        "killed, −9 often for want of memory); with fewer jobs, go on with: obverse search --resume "
        f"{quoted(out)}"
    )


def _listen(
    number: int, worker: subprocess.Popen[str], asked: str, events: queue.Queue[tuple[int, Event | None]]
) -> None:
    """In a thread: hand a worker its job, and pass on what it says until it ends."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    try:
        with worker.stdout:
            with worker.stdin:
                worker.stdin.write(asked)
            for line in worker.stdout:
                events.put((number, json.loads(line)))
    except (OSError, ValueError):  # it died before it read, or in the middle of a line
        pass
    finally:
        events.put((number, None))


def _retrain(plan: SearchPlan, out: Path, result: SearchResult, tell: Callable[[Event], None]) -> Retrained:
    """The best setting on all points, into out/best; what is there already is kept."""
    best, path = result.best, out / BEST
    assert best is not None
    settings = plan.final_settings(best.lr, best.weight)
    with waiting_lock(out / LOCKS / BEST):  # another command may be at it: then it is done afterwards
        run = ready_run(path, settings, "the best trial", "move this run away, then resume")
        count = run.environment.get("threads")
        reason = ""
        if not run.finished:

            def on_step(step: int, total: int, loss: float) -> None:
                tell({"kind": "best", "step": step, "total": total, "loss": loss})

            with threads(count if type(count) is int and 1 <= count <= 1024 else plan.threads):
                try:
                    fit_classifier(ClassifierTask(settings, load_planned(plan)), path, on_step=on_step)
                except Diverged as diverged:
                    reason = str(diverged)
        run = read_run(path)
        seconds = sum(float(record.get("seconds") or 0.0) for record in run.metrics)
        error = None if reason else float(run.final["test_error"])
    return Retrained(best.lr, best.weight, error, seconds, reason)
