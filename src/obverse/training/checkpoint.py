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

from ..errors import BadInput
from .files import TEMPORARY, explained, read_json, replace_atomically, write_json

FORMAT = 1
POINTER = "latest.json"
_NAME = re.compile(r"step-\d{9}\.safetensors")


def save_checkpoint(folder: Path, step: int, tensors: Mapping[str, Tensor], extra: Mapping[str, Any]) -> None:
    """Write a checkpoint; older ones are deleted once the new one is complete."""
    from safetensors.torch import save_file

    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"step-{step:09d}.safetensors"
    contiguous = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    replace_atomically(path, lambda temporary: save_file(contiguous, temporary))
    pointer = {
        "format": FORMAT,
        "file": path.name,
        "sha256": _digest(path),
        "step": step,
        "extra": dict(extra),
    }
    write_json(folder / POINTER, pointer)
    for other in folder.iterdir():
        if other.name != path.name and (_NAME.fullmatch(other.name) or other.name.endswith(TEMPORARY)):
            other.unlink(missing_ok=True)


def load_checkpoint(folder: Path) -> tuple[int, dict[str, Tensor], dict[str, Any]] | None:
    """(step, tensors, extra) of the last complete checkpoint; None if there never was one.

    What it does not understand is refused: another format, a file outside the folder, a wrong checksum.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    pointer_path = folder / POINTER
    if not pointer_path.exists():
        return None
    pointer = read_json(pointer_path, "a checkpoint pointer")
    name, step, extra = pointer.get("file"), pointer.get("step"), pointer.get("extra")
    if pointer.get("format") != FORMAT:
        raise BadInput(
            f"checkpoint format {FORMAT}",
            got=f"{pointer.get('format')!r} in {pointer_path}",
            do="resume with the version of obverse that wrote it",
        )
    if not (isinstance(name, str) and _NAME.fullmatch(name)):
        raise BadInput(f"a checkpoint file name in {pointer_path}", got=repr(name), do="restore the run")
    if not (isinstance(step, int) and step >= 0 and isinstance(extra, dict)):
        raise BadInput(
            f"a step and its record in {pointer_path}", got=f"{step!r}, {extra!r}", do="restore the run"
        )
    path = folder / name
    if not path.is_file() or _digest(path) != pointer.get("sha256"):
        raise BadInput(
            f"{path} with the checksum in {POINTER}",
            got="another content" if path.exists() else "no such file",
            do="restore the file from a copy, or start a new run",
        )
    try:
        return step, load_file(path), extra
    except SafetensorError as error:
        raise BadInput(f"safetensors in {path}", got=str(error), do="restore it from a copy") from None


def _digest(path: Path) -> str:
    with explained(path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
