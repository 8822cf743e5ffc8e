"""Measurements in several processes of this machine, by joblib. Survives the death of a process."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool

from ._work import Task, perform_in_worker
from .results import Measured

DIED = "its process died: killed, out of memory, or ended by the measurement itself"


def in_processes(tasks: Sequence[Task], jobs: int) -> Iterator[Measured]:
    """Do the tasks, and give each result when it is there.

    A process that dies takes the results of its fellows along and does not say what it was doing. Tasks
    are begun in order, so it was one of the first that are left: these are done again one at a time.
    """
    left = {task.key: task for task in tasks}
    while left:
        try:
            for measured in _together(list(left.values()), jobs):
                del left[measured.key]
                yield measured
        except BrokenProcessPool:
            for task in list(left.values())[:jobs]:
                del left[task.key]
                yield _alone(task, jobs)


def died(task: Task) -> Measured:
    return Measured(task.key, task.setting, (), 0.0, DIED)


def _alone(task: Task, jobs: int) -> Measured:
    try:
        (measured,) = _together([task], jobs)  # with as many idle: joblib keeps the processes it has
    except BrokenProcessPool:
        return died(task)
    return measured


def _together(tasks: Sequence[Task], jobs: int) -> Iterator[Measured]:
    from joblib import Parallel, delayed

    parallel = Parallel(jobs, backend="loky", batch_size=1, return_as="generator_unordered")
    results = parallel(delayed(perform_in_worker)(task) for task in tasks)
    with warnings.catch_warnings():
        # A process that has grown is replaced: nobody needs to know. Nor that work under way is given up.
        warnings.filterwarnings("ignore", message="A worker stopped while some jobs were given")
        try:
            yield from results
        finally:
            warnings.simplefilter("ignore")
            results.close()
