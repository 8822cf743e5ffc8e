"""Run directories, for rooms below the one that makes them. Not for reading one: `training` does that.

Commands take the directory of a run in place of a net or of samples. Their rooms stand below `training` and
may not import it, so it lends them these functions when it is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import ObverseError


@dataclass(frozen=True)
class NetRun:
    """The run of a classifier: the data it names, and its net once these are loaded."""

    data: str
    data_root: str | None
    trained: Callable[[Any], Any]  # Dataset → net
    initial: Callable[[Any], Any]  # … before training


@dataclass(frozen=True)
class GeneratorRun:
    """The run of a generator; `split` cuts its data into training and held-out points, as training did."""

    data: str
    data_root: str | None
    net: Any
    split: Callable[[Any], tuple[Any, Any, Any, Any]]  # Dataset → train_x, train_y, test_x, test_y


@dataclass(frozen=True)
class RunAccess:
    """What is lent."""

    open_net: Callable[[Path], NetRun]
    open_generator: Callable[[Path], GeneratorRun]
    holds_generator: Callable[[Path], bool]


_LENT: list[RunAccess] = []


def lend_runs(access: RunAccess) -> None:
    """For `training` alone."""
    _LENT[:] = [access]


def run_access() -> RunAccess:
    """What opens run directories."""
    if not _LENT:
        raise ObverseError("expected obverse.training to open a run directory; got: not imported; import it")
    return _LENT[0]
