"""Run directories as the rooms below see them. Not for reading them: see _rundir."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from .._core import GeneratorRun, NetRun, RunAccess


def open_net(path: Path) -> NetRun:
    from ._classify import initial_net, load_trained
    from ._rundir import read_run

    settings = read_run(path).settings

    def trained(data: Any) -> Any:
        return load_trained(settings, data, path / "model.safetensors")

    def initial(data: Any) -> Any:
        model = path / "model.safetensors"
        return initial_net(settings, data, model.stat().st_size if model.is_file() else 0)

    return NetRun(settings.data, settings.data_root, trained, initial)


def open_generator(path: Path) -> GeneratorRun:
    from ._classify import split
    from ._generators.fit import trained_generator
    from ._rundir import read_generator_run
    from ._settings import Settings

    record = read_generator_run(path)
    settings = record.settings
    like = Settings(train_size=settings.train_size, validation=settings.validation, seed=settings.seed)
    return GeneratorRun(settings.data, settings.data_root, trained_generator(record), partial(split, like))


def holds_generator(path: Path) -> bool:
    from . import _rundir

    return _rundir.holds_generator(path)


ACCESS = RunAccess(open_net, open_generator, holds_generator)
