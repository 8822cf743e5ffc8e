"""Tasks on a Dask cluster. Not for starting one: it is given by its scheduler's address."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, TypeVar

from .errors import BadInput, ObverseError, require
from .processes import perform_in_worker

PATIENCE = 8  # seconds to wait for the scheduler
RETRIES = 2  # of what goes wrong around a task; what goes wrong inside is its result

Task = TypeVar("Task")
Result = TypeVar("Result")


class ClusterLost(ObverseError):
    def __init__(self, address: str) -> None:
        super().__init__(
            f"expected the cluster at {address} to stay; got: it is gone; with --out, what was finished is "
            "saved: give the same command with another --cluster, or without"
        )


def on_cluster(
    tasks: Sequence[Task],
    address: str,
    perform: Callable[[Task], Result],
    on_death: Callable[[Task], Result],
    on_error: Callable[[Task, Exception], Result],
) -> Iterator[tuple[int, Result]]:
    """`perform` the tasks on the cluster's workers; the place of each, and its result, when it is there.

    Dask gives the tasks of a lost worker to another. One that lost several in a row may have been a mere
    neighbour of what killed them, so it is done once more while nothing else is, and then given to
    `on_death`. `on_error` is for what goes wrong around a task.
    """
    distributed = require("distributed", "cluster")
    with _quiet(), closing(_connect(distributed, address)) as client:

        def finished(places: Sequence[int]) -> Iterator[tuple[int, tuple[Result] | None]]:
            return _finished(
                distributed, client, {at: tasks[at] for at in places}, address, perform, on_error
            )

        suspects = []
        for at, result in finished(range(len(tasks))):
            if result is None:
                suspects.append(at)
            else:
                yield at, result[0]
        for suspect in suspects:
            for at, result in finished([suspect]):
                yield at, on_death(tasks[at]) if result is None else result[0]


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what distributed logs: a cluster that is gone is one sentence here, and pages there."""
    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.client")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _connect(distributed: Any, address: str) -> Any:
    """A client of the scheduler.

    One that fails to connect is closed here. Left to the garbage collector it would be closed wherever that
    happens to run, and there waits for a lock that distributed holds while it starts the next client.
    """
    client = distributed.Client.__new__(distributed.Client)
    try:
        client.__init__(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        client.close()
        raise BadInput(
            "the address of a running Dask scheduler, such as tcp://host:8786",
            got=f"{address}: {error}".splitlines()[0],
            do="start one with: dask scheduler",
        ) from None
    return client


def _finished(
    distributed: Any,
    client: Any,
    tasks: dict[int, Task],
    address: str,
    perform: Callable[[Task], Result],
    on_error: Callable[[Task, Exception], Result],
) -> Iterator[tuple[int, tuple[Result] | None]]:
    """Each task with what it gave; None for one that Dask gave up, having lost workers over it."""
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        raise BadInput(
            "a cluster with workers", got=f"none at {address}", do=f"start some: dask worker {address}"
        ) from None
    places = list(tasks)
    futures = client.map(
        perform_in_worker, [perform] * len(tasks), places, list(tasks.values()), pure=False, retries=RETRIES
    )
    of = {future.key: at for future, at in zip(futures, places, strict=True)}
    for future in distributed.as_completed(futures, loop=client.loop):
        at = of[future.key]
        result: tuple[Result] | None
        try:
            result = (future.result()[1],)  # waits once more where it was lost with its worker
        except distributed.KilledWorker:
            result = None
        except (distributed.CancelledError, OSError):
            raise ClusterLost(address) from None
        except Exception as error:
            result = (on_error(tasks[at], error),)
        yield at, result
