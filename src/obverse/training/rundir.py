"""A run directory: config.json, metrics.jsonl, checkpoint/, model.safetensors. Not for training.

Every stage of a run can be done alone on the directory it finds; files in it are data, read with checks.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import BadInput, ObverseError
from ..files import explained, parse_json, read_json, write_json, write_text
from .settings import Settings

FORMAT = 1
OF_SHADOWS = ("shadow_error", "label_agreement")  # only where a run measures them


class RunLocked(ObverseError):
    def __init__(self, path: Path) -> None:
        super().__init__(
            f"expected {path} to be free; got: another process is working in it; "
            "wait for it to end, or choose another directory"
        )


@dataclass(frozen=True)
class RunRecord:
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


def create_run(path: Path, settings: Settings) -> None:
    """A new, empty run directory; an existing run is never overwritten."""
    with explained(path):
        path.mkdir(parents=True, exist_ok=True)
    with locked(path):
        if (path / "config.json").exists():
            raise BadInput(
                "a directory without a run",
                got=f"{path}, which holds one",
                do=f"resume it with: obverse train --resume {path} — or choose another --out",
            )
        write_json(
            path / "config.json",
            {"format": FORMAT, "settings": settings.to_dict(), "environment": describe_environment()},
        )


def read_run(path: Path) -> RunRecord:
    """Read a run directory, refusing what is not understood."""
    config = read_json(path / "config.json", "the config.json of a run")
    if config.get("format") != FORMAT or not isinstance(config.get("settings"), dict):
        raise BadInput(
            f"a run of format {FORMAT}",
            got=f"format {config.get('format')!r} in {path / 'config.json'}",
            do="use the version of obverse that wrote it",
        )
    settings = Settings.from_mapping(config["settings"], str(path / "config.json"))
    environment = config.get("environment")
    return RunRecord(
        path, settings, environment if isinstance(environment, dict) else {}, tuple(read_metrics(path))
    )


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep every other process out of this run directory for the duration."""
    from filelock import FileLock, Timeout

    lock = FileLock(path / ".lock", timeout=0)
    with explained(path):
        try:
            lock.acquire()
        except Timeout:  # itself an OSError
            raise RunLocked(path) from None
    try:
        yield
    finally:
        lock.release()


def append_metrics(path: Path, record: Mapping[str, Any]) -> None:
    """One more line, on disk before this returns."""
    with explained(path), (path / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(record, allow_nan=False) + "\n")
        file.flush()
        os.fsync(file.fileno())


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The complete lines of metrics.jsonl; a last line that a crash cut short is left out."""
    file = path / "metrics.jsonl"
    records: list[dict[str, Any]] = []
    if not file.exists():
        return records
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").removesuffix("\n").split("\n")
    except OSError as error:
        raise BadInput(f"records in {file}", got=error.strerror, do="restore it") from None
    for number, line in enumerate(lines, start=1):
        try:
            record = parse_json(line)
        except (ValueError, RecursionError) as error:
            if number == len(lines):
                break
            raise BadInput(f"JSON in line {number} of {file}", got=error, do="restore it") from None
        if not isinstance(record, dict):
            raise BadInput(f"a JSON object in line {number} of {file}", got=record, do="restore it")
        records.append(record)
    return records


def keep_metrics(path: Path, count: int) -> None:
    """Drop what was written after the checkpoint that a resumed run starts from."""
    kept = read_metrics(path)[:count]
    write_text(path / "metrics.jsonl", "".join(json.dumps(record) + "\n" for record in kept))


def describe_environment() -> dict[str, Any]:
    """What the numbers depend on besides the settings; nothing that names the machine or its user."""
    import torch

    from .. import __version__

    return {
        "obverse": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "threads": torch.get_num_threads(),
        "device": "cpu",
    }
