"""Measurements on a Dask cluster. Not for starting one: it is given by its scheduler's address."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

from .._core import BadInput, ObverseError, require
from ._processes import died
from ._work import Task, explain, perform_in_worker
from .results import Measured

PATIENCE = 8  # seconds to wait for the scheduler
RETRIES = 2  # of what goes wrong around a measurement; what goes wrong inside is its result


class ClusterLost(ObverseError):
    def __init__(self, address: str) -> None:
        super().__init__(
            f"expected the cluster at {address} to stay; got: it is gone; with --out, what was finished is "
            "saved: give the same command with another --cluster, or without"
        )


def on_cluster(tasks: Sequence[Task], address: str) -> Iterator[Measured]:
    """Do the tasks on the cluster's workers, and give each result when it is there.

    Dask gives the tasks of a lost worker to another. One that lost several in a row may have been a mere
    neighbour of what killed them, so it is done once more while nothing else is.
    """
    distributed = require("distributed", "cluster")
    with _quiet(), closing(_connect(distributed, address)) as client:
        suspects = []
        for task, measured in _finished(distributed, client, tasks, address):
            if measured is None:
                suspects.append(task)
            else:
                yield measured
        for suspect in suspects:
            for task, measured in _finished(distributed, client, [suspect], address):
                yield measured or died(task)


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
    distributed: Any, client: Any, tasks: Sequence[Task], address: str
) -> Iterator[tuple[Task, Measured | None]]:
    """Each task with what it gave; None for one that Dask gave up, having lost workers over it."""
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        raise BadInput(
            "a cluster with workers", got=f"none at {address}", do=f"start some: dask worker {address}"
        ) from None
    futures = client.map(perform_in_worker, tasks, pure=False, retries=RETRIES)
    of = {future.key: task for future, task in zip(futures, tasks, strict=True)}
    for future in distributed.as_completed(futures, loop=client.loop):
        task = of[future.key]
        measured: Measured | None
        try:
            measured = future.result()  # waits once more where it was lost with its worker
        except distributed.KilledWorker:
            measured = None
        except (distributed.CancelledError, OSError):
            raise ClusterLost(address) from None
        except Exception as error:
            measured = Measured(task.key, task.setting, (), 0.0, explain(error))
        yield task, measured
