"""Reads the binary version of CIFAR-10 and CIFAR-100. Not for the pickled one: pickles can run code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from .._core import BadInput
from ._dataset import check_room
from ._sources import CIFAR_PIXELS


def read_cifar(
    paths: Sequence[Path], label_bytes: int, classes: int
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Images (N × 3 × 32 × 32) and labels of all files in turn.

    Each record is its label bytes, then 1,024 red, green and blue levels. CIFAR-100 has two labels, coarse
    and fine; the last one, the fine one, is used.
    """
    record = label_bytes + CIFAR_PIXELS
    counts = [_records(path, record) for path in paths]
    check_room(sum(counts) * CIFAR_PIXELS, ", ".join(str(path) for path in paths))
    rows = np.empty((sum(counts), record), np.uint8)
    start = 0
    for path, count in zip(paths, counts, strict=True):
        part = rows[start : start + count]
        try:
            content = np.fromfile(path, np.uint8, part.size)
        except OSError as error:
            raise _bad(path, "a readable file", error) from error
        if content.size != part.size:
            raise _bad(path, f"{part.size:,} bytes", f"{content.size:,}")
        part[:] = content.reshape(part.shape)
        worst = part[:, label_bytes - 1].max()
        if worst >= classes:
            raise _bad(path, f"labels 0 to {classes - 1}", worst)
        start += count
    labels = rows[:, label_bytes - 1].copy()
    return rows[:, label_bytes:].reshape(-1, 3, 32, 32), labels


def _records(path: Path, record: int) -> int:
    try:
        size = path.stat().st_size
    except OSError as error:
        raise _bad(path, "a readable file", error) from error
    if size == 0 or size % record:
        raise _bad(path, f"whole records of {record:,} bytes", f"{size:,} bytes")
    return size // record


def _bad(path: Path, expected: str, got: object) -> BadInput:
    return BadInput(
        f"{expected} in {path}",
        got=got,
        do="delete the file and load again, or put a sound copy in its place",
    )
