"""Run claims: every measurement once, here, in processes or on a cluster; go on where a sweep stopped.

Not for choosing which claims, nor for showing what came out.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Generator, Sequence
from contextlib import closing, nullcontext
from importlib.metadata import version
from math import prod
from pathlib import Path

from .._core import (
    BadInput,
    Interrupted,
    ObverseError,
    Progress,
    in_processes,
    on_cluster,
    one_thread,
)
from ._claim import Claim
from ._outcome import crashed, judge
from ._store import open_store
from ._work import Task, explain, make_task, perform
from .results import Measured, Outcome, Sweep


class SweepInterrupted(Interrupted):
    """Stopped by the user (Ctrl-C), between or within measurements."""

    def __init__(self, done: int, total: int, out: Path | None) -> None:
        then = (
            f"saved in {out}: the same command with the same --out goes on from there"
            if out
            else "nothing was saved: with --out DIR the same command could go on from there"
        )
        ObverseError.__init__(self, f"stopped after {done} of {total} measurements; {then}")


def run(
    claims: Sequence[Claim],
    *,
    quick: bool = False,
    seed: int = 0,
    jobs: int = 1,
    out: Path | None = None,
    cluster: str | None = None,
    progress: Progress | None = None,
) -> Sweep:
    """Measure and judge claims. The numbers do not depend on `jobs`, `cluster`, or the order of the claims.

    Args:
        claims: which; those that are `long` too, if they are given.
        quick: the small grids.
        seed: another one gives other draws everywhere.
        jobs: processes; with 1 everything is done in this one.
        out: a folder for every measurement as it ends, and the result; what it holds is not measured again.
        cluster: the address of a Dask scheduler, in place of `jobs`.
        progress: called with a claim's id, how many of its measurements are done, and of how many: at the
            start, and when one of them ends.
    """
    if not claims:
        raise BadInput("claims to run", got="none", do="see: obverse claims list")
    if jobs < 1:
        raise BadInput("jobs ≥ 1", got=jobs, do="use 1 for this process alone")
    started = time.perf_counter()
    plans = [_Plan(claim, quick, seed) for claim in claims]
    tasks = {task.key: task for plan in plans for task in plan.tasks if task.key not in plan.refused}
    done: dict[str, Measured] = {}
    with open_store(out) if out else nullcontext() as store:
        if store:
            done = {key: found for key in tasks if (found := store.read(key))}
        report_progress(progress, plans, done)
        try:
            todo = [task for key, task in tasks.items() if key not in done]
            with closing(_performed(todo, jobs, cluster)) as results:
                for measured in results:
                    if store:
                        store.save(measured)
                    done[measured.key] = measured
                    report_progress(progress, [plan for plan in plans if plan.needs(measured)], done)
        except KeyboardInterrupt:
            raise SweepInterrupted(len(done), len(tasks), out) from None
        outcomes = tuple(plan.outcome(done) for plan in plans)
        sweep = Sweep(outcomes, seed, quick, time.perf_counter() - started, _versions())
        if store:
            store.finish(sweep)
    return sweep


class _Plan:
    """A claim and its measurements; one whose measurements cannot even be named has crashed already.

    Settings outside the claim's domain are not measured.
    """

    def __init__(self, claim: Claim, quick: bool, seed: int) -> None:
        self.claim, self.quick, self.seed, self.crash = claim, quick, seed, ""
        self.tasks: list[Task] = []
        self.refused: dict[str, Measured] = {}
        try:
            self.tasks = [make_task(claim.measure, setting, seed) for setting in claim.settings(quick)]
        except Exception as error:
            self.crash = explain(error)
        for task in self.tasks:
            try:
                claim.check(task.setting)
            except Exception as error:
                self.refused[task.key] = Measured(task.key, task.setting, (), 0.0, explain(error))

    def needs(self, measured: Measured) -> bool:
        return any(task.key == measured.key for task in self.tasks)

    def outcome(self, done: dict[str, Measured]) -> Outcome:
        if self.crash:
            return crashed(self.claim, self.crash, quick=self.quick, seed=self.seed)
        measured = [self.refused.get(task.key) or done[task.key] for task in self.tasks]
        return judge(self.claim, measured, quick=self.quick, seed=self.seed)


def _performed(tasks: Sequence[Task], jobs: int, cluster: str | None) -> Generator[Measured, None, None]:
    if not tasks:
        return
    if cluster is None and jobs == 1:
        with one_thread():
            yield from map(perform, tasks)
        return
    longest_first = sorted(tasks, key=_cost, reverse=True)
    found = (
        on_cluster(longest_first, cluster, perform, _died, _failed)
        if cluster
        else in_processes(longest_first, jobs, perform, _died)
    )
    for _, measured in found:
        yield measured


DIED = "its process died: killed, out of memory, or ended by the measurement itself"


def _died(task: Task) -> Measured:
    return Measured(task.key, task.setting, (), 0.0, DIED)


def _failed(task: Task, error: Exception) -> Measured:
    return Measured(task.key, task.setting, (), 0.0, explain(error))


def _cost(task: Task) -> float:
    """The size of W times the trials, where a setting names them: only for a good order."""
    sizes = (task.setting.get(name, 1) for name in ("n", "m", "trials"))
    return prod(size for size in sizes if isinstance(size, int | float))


def report_progress(progress: Progress | None, plans: Sequence[_Plan], done: dict[str, Measured]) -> None:
    if progress:
        for plan in plans:
            known = [task for task in plan.tasks if task.key in done or task.key in plan.refused]
            progress(len(known), len(plan.tasks), plan.claim.id)


def _versions() -> dict[str, str]:
    from .. import __version__

    packages = {name: version(name) for name in ("torch", "numpy", "scipy")}
    return {"obverse": __version__, **packages, "python": platform.python_version()}
