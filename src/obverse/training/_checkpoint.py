"""Checkpoints: tensors in safetensors, the rest in JSON, never pickle. Not for what a task stores.

`latest.json` names the tensor file and its SHA-256 and is renamed into place last, so at every moment
it points at a complete pair: the new one or the one before.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from .._core import (
    TEMPORARY,
    BadInput,
    explained,
    make_inside,
    parse_tensors,
    read_file,
    read_json,
    save_tensors,
    write_json,
)

FORMAT = 1
POINTER = "latest.json"
MAX_POINTER = 2**20  # bytes; a few hundred are usual
_NAME = re.compile(r"step-\d{9,}\.safetensors")


def save_checkpoint(folder: Path, step: int, tensors: Mapping[str, Tensor], extra: Mapping[str, Any]) -> None:
    """Write a checkpoint; older ones are deleted once the new one is complete."""
    make_inside(folder)
    path = folder / checkpoint_name(step)
    pointer = {
        "format": FORMAT,
        "file": path.name,
        "sha256": save_tensors(path, tensors),
        "step": step,
        "extra": dict(extra),
    }
    write_json(folder / POINTER, pointer)
    remove_leftovers(folder, path.name)


def checkpoint_name(step: int) -> str:
    return f"step-{step:09d}.safetensors"


def remove_leftovers(folder: Path, current: str) -> None:
    """Delete what is older than the `current` tensor file, and what a crash cut off."""
    make_inside(folder)
    with explained(folder):
        for other in folder.iterdir():
            if other.name != current and (_NAME.fullmatch(other.name) or other.name.endswith(TEMPORARY)):
                other.unlink(missing_ok=True)


def load_checkpoint(folder: Path) -> tuple[int, dict[str, Tensor], dict[str, Any]] | None:
    """(step, tensors, extra) of the last complete checkpoint; None if there never was one.

    What it does not understand is refused: another format, a file outside the folder, a wrong checksum.
    """
    pointer_path = folder / POINTER
    if not pointer_path.exists():
        return None
    pointer = read_json(pointer_path, "a checkpoint pointer", MAX_POINTER)
    name, step, extra = pointer.get("file"), pointer.get("step"), pointer.get("extra")
    if pointer.get("format") != FORMAT:
        raise BadInput(
            f"checkpoint format {FORMAT}",
            got=f"{pointer.get('format')!r} in {pointer_path}",
            do="resume with the version of obverse that wrote it",
        )
    if type(step) is not int or step < 0 or not isinstance(extra, dict):
        raise BadInput(
            f"a step and its record in {pointer_path}", got=f"{step!r}, {extra!r}", do="restore the run"
        )
    path = folder / checkpoint_name(step)
    if name != path.name:
        raise BadInput(f"the file {path.name} in {pointer_path}", got=repr(name), do="restore the run")
    try:
        content = read_file(path, "the tensors of a checkpoint")
    except OSError as error:
        raise BadInput(
            f"the tensors of a checkpoint in {path}", got=error.strerror, do="restore it from a copy"
        ) from None
    if hashlib.sha256(content).hexdigest() != pointer.get("sha256"):
        raise BadInput(
            f"{path} with the checksum in {POINTER}",
            got="another content",
            do="restore the file from a copy, or start a new run",
        )
    return step, parse_tensors(content, path), extra
