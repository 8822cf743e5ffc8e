"""Layers in several processes or on a cluster: each worker opens the source itself and measures its own.

Not for weights in memory, which no other process has.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NoReturn

import scipy.linalg  # noqa: F401  -- its BLAS takes no limit that was set before it was loaded

from .. import __version__
from .._core import BadInput, ObverseError, in_processes, on_cluster
from ._layer import audit_layer
from ._origin import origin_of
from ._readers.open import open_weights
from ._readers.stored import Weight
from ._settings import Settings
from .results import LayerAudit


@dataclass(frozen=True)
class Task:
    """A layer to be measured, as it is sent to a worker."""

    source: str
    place: int  # among the weights of its source
    name: str
    files: tuple[tuple[str, int, str], ...]  # what must be the same there
    settings: Settings
    version: str


@dataclass(frozen=True)
class Refused:
    """A sentence in place of a result: exceptions of ours do not survive the way back."""

    sentence: str


def apart(
    weights: Mapping[int, Weight], settings: Settings, jobs: int, cluster: str | None
) -> Generator[tuple[int, LayerAudit], None, None]:
    """The audits of all weights, each with its number, as they are finished; largest first."""
    places = sorted(weights, key=lambda at: -weights[at].rows * weights[at].columns)
    sources = {one.source: one for one in weights.values()}  # one weight of each
    files = {path: origin_of([one]).lasting for path, one in sources.items()}
    tasks = [
        Task(one.source, one.place, one.name, files[one.source], settings, __version__)
        for one in map(weights.__getitem__, places)
    ]
    found = (
        on_cluster(tasks, cluster, measure, _died, _failed)
        if cluster
        else in_processes(tasks, jobs, measure, _died)
    )
    for at, result in found:
        if isinstance(result, Refused):
            raise ObverseError(result.sentence)
        yield places[at], result


def measure(task: Task) -> LayerAudit | Refused:
    """The audit of one layer, wherever this runs."""
    try:
        if task.version != __version__:
            raise BadInput(
                f"obverse {task.version} where layers are measured, as here",
                got=__version__,
                do="install the same version on every machine",
            )
        return audit_layer(_opened(task.source, task.files)[task.place], task.settings)
    except ObverseError as error:
        return Refused(str(error))


@lru_cache(maxsize=4)
def _opened(source: str, files: tuple[tuple[str, int, str], ...]) -> tuple[Weight, ...]:
    """Once in a process, not once for each layer."""
    weights = open_weights(source)
    if origin_of(weights).lasting != files:
        raise BadInput(
            f"{source} with the same files for every worker",
            got="another there",
            do="copy the same files to every machine, or give a path that all of them share",
        )
    return weights


def _died(task: Task) -> NoReturn:
    raise ObverseError(
        f"expected the process that measures {task.name} to live; got: it died, killed or out of memory; "
        "use fewer processes at once: each needs three times the memory of its layer in float32, and more"
    )


def _failed(task: Task, error: Exception) -> NoReturn:
    raise ObverseError(f"expected {task.name} to be measured on the cluster; got: {error!r}; try again")
