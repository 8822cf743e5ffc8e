"""Tasks in several processes of this machine, by joblib. Survives the death of a process.

Each process computes on one thread, so that a result is the same to the bit however many there are.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


def in_processes(
    tasks: Sequence[Task],
    jobs: int,
    perform: Callable[[Task], Result],
    on_death: Callable[[Task], Result],
) -> Iterator[tuple[int, Result]]:
    """`perform` the tasks; the place of each, and its result, when it is there.

    A process that dies takes the results of its fellows along and does not say what it was doing. Tasks
    are begun in order, so it was one of the first that are left: these are done again one at a time. One
    whose process dies then too is given to `on_death`.
    """
    left = dict(enumerate(tasks))
    while left:
        try:
            for at, result in _together(left, jobs, perform):
                del left[at]
                yield at, result
        except BrokenProcessPool:
            for at in list(left)[:jobs]:
                yield at, _alone(at, left.pop(at), jobs, perform, on_death)


def perform_in_worker(
    perform: Callable[[Task], Result], at: int, task: Task
) -> tuple[int, Result]:  # in a process that does nothing else
    """On one thread, from now on.

    For good, because `one_thread` of two tasks in two threads would restore in the wrong order.
    """
    import torch
    from threadpoolctl import threadpool_limits

    torch.set_num_threads(1)
    threadpool_limits(1)
    return at, perform(task)


def _alone(
    at: int,
    task: Task,
    jobs: int,
    perform: Callable[[Task], Result],
    on_death: Callable[[Task], Result],
) -> Result:
    try:
        ((_, result),) = _together({at: task}, jobs, perform)  # as many idle: joblib keeps those it has
    except BrokenProcessPool:
        return on_death(task)
    return result


def _together(
    tasks: dict[int, Task], jobs: int, perform: Callable[[Task], Result]
) -> Iterator[tuple[int, Result]]:
    from joblib import Parallel, delayed

    parallel = Parallel(jobs, backend="loky", batch_size=1, return_as="generator_unordered")
    results = parallel(delayed(perform_in_worker)(perform, at, task) for at, task in list(tasks.items()))
    with warnings.catch_warnings():
        # A process that has grown is replaced: nobody needs to know. Nor that work under way is given up.
        warnings.filterwarnings("ignore", message="A worker stopped while some jobs were given")
        try:
            yield from results
        finally:
            warnings.simplefilter("ignore")
            results.close()
