"""A run directory: config.json, metrics.jsonl, checkpoint/, model.safetensors. Not for training.

A run is of a classifier or, where its config.json says so, of a generator; who reads one refuses the other.
Every stage of a run can be done alone on the directory it finds; files in it are data, read with checks.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from .._core import (
    BadInput,
    ObverseError,
    Result,
    append_text,
    explained,
    locked,
    make_inside,
    quoted,
    read_json,
    read_lines,
    remove_temporaries,
    write_json,
    write_text,
)
from ._device import choose_device
from ._generators.settings import GeneratorSettings, foreign
from ._settings import Settings

FORMAT = 1
GENERATOR = "generator"  # the kind of a run; that of a classifier says none
MAX_CONFIG = 2**20  # bytes of config.json; two thousand are usual
# Of metrics.jsonl: bytes, lines (one per epoch) and bytes in a line. A line has a few hundred.
MAX_METRICS, MAX_RECORDS, MAX_LINE = 2**26, 2**20, 2**16
MAX_NUMBERS = 2**26  # of one image that a generator makes
OF_SHADOWS = ("shadow_error", "label_agreement")  # only where a run measures them


@dataclass(frozen=True)
class RunRecord(Result):
    """What a run directory says: its settings, where it was made, one record an epoch."""

    path: Path
    settings: Settings
    environment: dict[str, Any]
    metrics: tuple[dict[str, Any], ...]

    @property
    def finished(self) -> bool:
        return (self.path / "model.safetensors").is_file()

    @property
    def final(self) -> dict[str, Any]:
        """The last record, with the numbers that a finished run has; an error if it has none yet."""
        if not self.metrics:
            raise BadInput(
                f"at least one epoch in {self.path}", got="an empty metrics.jsonl", do="resume the run"
            )
        last = self.metrics[-1]
        measured = OF_SHADOWS if self.settings.has_shadows else ()
        needed = ("test_error", *measured, "seconds")
        missing = [name for name in needed if not isinstance(last.get(name), int | float)]
        if missing:
            raise BadInput(
                f"numbers for {', '.join(missing)} in the last record of {self.path}",
                got=last,
                do="resume the run or restore its metrics.jsonl",
            )
        return last


@dataclass(frozen=True)
class GeneratorRecord:
    """What the run directory of a generator says; the shape of an image, so that samples need no data."""

    path: Path
    settings: GeneratorSettings
    input_shape: tuple[int, ...]
    environment: dict[str, Any]
    metrics: tuple[dict[str, Any], ...]

    @property
    def finished(self) -> bool:
        return (self.path / "model.safetensors").is_file()


def create_run(path: Path, settings: Settings, launchers: Sequence[str] = ()) -> None:
    """A new, empty run directory; an existing run is never overwritten.

    `launchers` are those that may restart its processes, by which these know the run again.
    """
    more = {"launchers": list(launchers)} if launchers else {}
    _create(path, {"settings": settings.to_dict()}, choose_device(settings.device).type, more)


def ready_run(path: Path, settings: Settings, what: str, do: str) -> RunRecord:
    """The run in a directory, made if there is none; refused if it has other settings.

    `what` names the run and `do` says what to do about another one, both for that refusal.
    """
    make_inside(path)
    if not (path / "config.json").exists():
        create_run(path, settings)
    run = read_run(path)
    if run.settings != settings:
        raise BadInput(f"the settings of {what} in {path}", got="others", do=do)
    return run


def create_generator_run(path: Path, settings: GeneratorSettings, input_shape: Sequence[int]) -> None:
    """The same for a generator. What its model does not look at is left out: its default may change."""
    unseen = foreign(settings)
    values = {name: value for name, value in settings.to_dict().items() if name not in unseen}
    _create(path, {"kind": GENERATOR, "input_shape": list(input_shape), "settings": values})


def _create(
    path: Path, config: Mapping[str, Any], device: str = "cpu", more: Mapping[str, Any] | None = None
) -> None:
    with explained(path):
        path.mkdir(parents=True, exist_ok=True)
    with locked(path):
        if (path / "config.json").exists():
            command = "obverse generate train" if holds_generator(path) else "obverse train"
            raise BadInput(
                "a directory without a run",
                got=f"{path}, which holds one",
                do=f"resume it with: {command} --resume {quoted(path)} — or choose another --out",
            )
        remove_temporaries(path / "config.json")
        environment = describe_environment(device) | dict(more or {})
        write_json(path / "config.json", {"format": FORMAT, **config, "environment": environment})


def read_run(path: Path) -> RunRecord:
    """Read the run directory of a classifier, refusing what is not understood."""
    config = _config(path)
    if config.get("kind") == GENERATOR:
        raise BadInput(
            "a run of a classifier, made by `obverse train`",
            got=f"a run of a generator in {path}",
            do="use it with obverse generate, obverse report or obverse diversity",
        )
    settings = Settings.from_mapping(config["settings"], str(path / "config.json"))
    return RunRecord(path, settings, config["environment"], tuple(read_metrics(path)))


def read_generator_run(path: Path) -> GeneratorRecord:
    """Read the run directory of a generator, refusing what is not understood."""
    config = _config(path)
    if config.get("kind") != GENERATOR:
        raise BadInput(
            "a run of a generator, made by `obverse generate train`",
            got=f"a run of a classifier in {path}",
            do="use it with obverse sample, obverse shadow or obverse report",
        )
    where = str(path / "config.json")
    settings = GeneratorSettings.from_mapping(config["settings"], where)
    found = config.get("input_shape")
    shape = tuple(found) if isinstance(found, list) and len(found) in (1, 3) else ()
    whole = shape and all(type(size) is int and 1 <= size <= MAX_NUMBERS for size in shape)
    if not whole or prod(shape) > MAX_NUMBERS or None in (settings.epochs, settings.evaluate_every):
        raise BadInput(
            f"an input_shape of one or three sizes, epochs and evaluate_every in {where}",
            got=f"{str(found)[:60]}, {settings.epochs} and {settings.evaluate_every}",
            do="restore it or start a new run",
        )
    return GeneratorRecord(path, settings, shape, config["environment"], tuple(read_metrics(path)))


def holds_generator(path: Path) -> bool:
    """Whether the run in this directory says that it is of a generator; no errors: a reader has those."""
    try:
        return _read_config(path).get("kind") == GENERATOR
    except ObverseError:
        return False


def _read_config(path: Path) -> dict[str, Any]:
    return read_json(path / "config.json", "the config.json of a run", MAX_CONFIG)


def _config(path: Path) -> dict[str, Any]:
    """The config.json with settings and an environment, their content unchecked."""
    config = _read_config(path)
    if config.get("format") != FORMAT or not isinstance(config.get("settings"), dict):
        raise BadInput(
            f"a run of format {FORMAT}",
            got=f"format {config.get('format')!r} in {path / 'config.json'}",
            do="use the version of obverse that wrote it",
        )
    if config.get("kind") not in (None, GENERATOR):
        raise BadInput(
            f"a run of a classifier or a generator in {path}",
            got=f"a run of the kind {str(config['kind'])[:60]!r}",
            do="use the version of obverse that wrote it",
        )
    environment = config.get("environment")
    return config | {"environment": environment if isinstance(environment, dict) else {}}


def append_metrics(path: Path, record: Mapping[str, Any]) -> None:
    """One more line, on disk before this returns."""
    append_text(path / "metrics.jsonl", json.dumps(record, allow_nan=False) + "\n")


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The complete lines of metrics.jsonl; a last line that a crash cut short is left out."""
    found = read_lines(
        path / "metrics.jsonl",
        "the records of a run",
        largest=MAX_METRICS,
        most=MAX_RECORDS,
        longest=MAX_LINE,
    )
    return list(found.records)


def keep_metrics(path: Path, count: int) -> None:
    """Drop what was written after the checkpoint that a resumed run starts from."""
    kept = read_metrics(path)[:count]
    write_text(path / "metrics.jsonl", "".join(json.dumps(record) + "\n" for record in kept))


def describe_environment(device: str = "cpu") -> dict[str, Any]:
    """What the numbers depend on besides the settings; nothing that names the machine or its user."""
    import torch

    from .. import __version__
    from ._distributed import size

    return {
        "obverse": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "threads": torch.get_num_threads(),
        "device": device,
        "processes": size(),
    }
