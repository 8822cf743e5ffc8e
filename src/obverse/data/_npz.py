"""Reads a data set from one .npz file. Not for pickled arrays: those are refused, they can run code."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from .._core import BadInput, read_member, read_member_header
from ._dataset import Dataset, check_room, pixels, split

_MAX_CLASSES = 2**16  # labels index a tuple of class names
_SPLIT = ("train_x", "train_y", "test_x", "test_y")
_DO = "write it with numpy.savez(path, x=…, y=…)"


def load_npz(path: Path, exact: bool = False) -> Dataset:
    """`train_x, train_y, test_x, test_y`, or `x, y`, which are split 80/20 with a fixed seed.

    x is N × D, N × H × W or N × C × H × W, uint8 (divided by 255) or floating (taken as it is); y holds the
    classes 0, 1, … as integers. Inputs become float32, or with `exact` float64, and then x may hold any
    integers.
    """
    arrays = _read(path, 8 if exact else 4)
    if "x" in arrays:
        x, y = inputs(path, "x", arrays["x"], exact), _labels(path, "y", arrays["y"], len(arrays["x"]))
        return split(path.stem, x, y, _names(y))
    train_x, test_x = (inputs(path, key, arrays[key], exact) for key in ("train_x", "test_x"))
    train_y = _labels(path, "train_y", arrays["train_y"], len(train_x))
    test_y = _labels(path, "test_y", arrays["test_y"], len(test_x))
    if train_x.shape[1:] != test_x.shape[1:]:
        raise _bad(
            f"inputs of one shape in {path}",
            f"train_x {tuple(train_x.shape)} and test_x {tuple(test_x.shape)}",
        )
    return Dataset(path.stem, train_x, train_y, test_x, test_y, _names(torch.cat((train_y, test_y))))


def _read(path: Path, itemsize: int) -> dict[str, npt.NDArray[Any]]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            wanted = _SPLIT if members.keys() >= set(_SPLIT) else ("x", "y")
            if not members.keys() >= set(wanted):
                names = ", ".join(sorted(members)[:10]) or "none"
                raise _bad(f"arrays x, y or {', '.join(_SPLIT)} in {path}", names)
            room = path.stat().st_size
            for name in wanted:
                check_member(path, archive, members[name], room, itemsize)
            return {name: read_member(archive, members[name]) for name in wanted}
    except BadInput:
        raise
    except Exception as error:  # zipfile, zlib and NumPy's header parser raise a dozen kinds on broken bytes
        raise _bad(f"a sound .npz in {path}", error) from error


def check_member(
    path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo, room: int, itemsize: int
) -> None:
    """Everything the headers promise must agree and fit the file, before an array is allocated."""
    where = f"{info.filename} in {path}"
    shape = read_member_header(archive, info, room, where, _DO).shape
    if not shape or min(shape) < 1:
        raise _bad(f"at least one value for {where}", f"shape {shape}")
    check_room(math.prod(shape) * itemsize // 4, where)


def inputs(path: Path, key: str, array: npt.NDArray[Any], exact: bool) -> torch.Tensor:
    if array.ndim not in (2, 3, 4):
        raise _bad(f"{key} as N×D, N×H×W or N×C×H×W in {path}", f"shape {array.shape}")
    if array.ndim == 4 and array.shape[1] > 4 and array.shape[3] in (1, 3, 4):
        raise BadInput(
            f"{key} as N×C×H×W in {path}",
            got=f"shape {array.shape}",
            do="put the channels first: x.transpose(0, 3, 1, 2)",
        )
    if array.dtype == np.uint8:
        x = pixels(array)
    elif np.issubdtype(array.dtype, np.floating) or (exact and np.issubdtype(array.dtype, np.integer)):
        kind = np.float64 if exact else np.float32
        with np.errstate(over="ignore"):  # what float32 can't hold becomes infinite, and is refused below
            x = torch.from_numpy(np.ascontiguousarray(array, dtype=kind))
        if not bool(torch.isfinite(x).all()):
            raise _bad(f"finite {kind.__name__} values for {key} in {path}", "NaN or infinity")
    else:
        raise BadInput(
            f"uint8 or floating values for {key} in {path}", got=array.dtype, do="write x.astype(float)"
        )
    return x.unsqueeze(1) if x.ndim == 3 else x.contiguous()


def _labels(path: Path, key: str, array: npt.NDArray[Any], count: int) -> torch.Tensor:
    if array.shape != (count,):
        raise _bad(f"{count} labels as {key} in {path}, one for each input", f"shape {array.shape}")
    if not np.issubdtype(array.dtype, np.integer):
        raise _bad(f"integers for {key} in {path}", array.dtype)
    low, high = int(array.min()), int(array.max())
    if low < 0 or high >= _MAX_CLASSES:
        raise _bad(f"labels from 0 to at most {_MAX_CLASSES - 1:,} for {key} in {path}", f"{low} to {high}")
    return torch.from_numpy(array.astype(np.int64))


def _names(labels: torch.Tensor) -> tuple[str, ...]:
    return tuple(str(index) for index in range(int(labels.max()) + 1))


def _bad(expected: str, got: object) -> BadInput:
    return BadInput(expected, got=got, do=_DO)
