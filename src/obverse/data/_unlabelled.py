"""Reads pictures or points without labels: a folder, a .npy or a .npz file. Not for data sets to train on."""

from __future__ import annotations

import math
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from .._core import BadInput, NoSuchFile, read_header, read_member
from ._dataset import check_room, pixels
from ._folder import GREY, picture_header, picture_pixels
from ._npz import check_member, inputs

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".pgm", ".tif", ".tiff", ".webp")
_DO = "write it with numpy.save(path, x) or numpy.savez(path, x=x)"


@dataclass(frozen=True, eq=False)
class Unlabelled:
    """`x` is float32, N × C × H × W (pixels in [0, 1]) or N × D; `broken` names unreadable pictures."""

    x: torch.Tensor
    broken: tuple[str, ...] = ()


def load_unlabelled(path: Path) -> Unlabelled:
    """A folder of pictures of one size (sub-folders too), or the array of a .npy or .npz file.

    In a .npz with several arrays it is `x` or `samples`. Whole numbers must be uint8, and are divided by 255.
    """
    if path.is_dir():
        return _folder(path)
    if not path.exists():
        raise NoSuchFile(path)
    if path.suffix not in (".npy", ".npz"):
        raise BadInput("a folder of pictures, a .npy or a .npz file", got=path.name, do=_DO)
    try:
        name, array = _npy(path) if path.suffix == ".npy" else _npz(path)
    except BadInput:
        raise
    except Exception as error:  # zipfile, zlib and NumPy's header parser raise a dozen kinds on broken bytes
        raise BadInput(f"a sound {path.suffix} in {path}", got=error, do=_DO) from error
    if array.ndim == 1:
        array = array[:, None]  # numbers: points of one dimension
    return Unlabelled(inputs(path, name, array, False))


def _npy(path: Path) -> tuple[str, npt.NDArray[Any]]:
    with path.open("rb") as file:
        shape = read_header(file, path.stat().st_size, str(path), _DO).shape
        _check_shape(shape, str(path))
        file.seek(0)
        return "the array", np.lib.format.read_array(file, allow_pickle=False)


def _npz(path: Path) -> tuple[str, npt.NDArray[Any]]:
    with zipfile.ZipFile(path) as archive:
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        known = [name for name in members if name in ("x", "samples")]
        names = known or list(members)
        if not members or (len(members) > 1 and not known):
            raise BadInput(
                f"one array in {path}, or one that is called x or samples",
                got=", ".join(sorted(members)[:10]) or "none",
                do=_DO,
            )
        check_member(path, archive, members[names[0]], path.stat().st_size, 4)
        return names[0], read_member(archive, members[names[0]])


def _check_shape(shape: tuple[int, ...], where: str) -> None:
    if not shape or min(shape) < 1:
        raise BadInput(f"at least one value in {where}", got=f"shape {shape}", do=_DO)
    check_room(math.prod(shape), where)


def _folder(path: Path) -> Unlabelled:
    """Headers first, so that sizes are known and agreed before pixels are allocated."""
    files = sorted(
        file
        for file in path.rglob("*")
        if file.suffix.lower() in SUFFIXES
        and not any(part.startswith(".") for part in file.relative_to(path).parts)
    )
    sound: list[Path] = []
    broken: list[str] = []
    grey = True
    first: tuple[int, int] | None = None
    for file in files:
        try:
            size, mode = picture_header(file)
        except BadInput:
            broken.append(str(file.relative_to(path)))
            continue
        first = first or size
        if size != first:
            raise BadInput(
                f"pictures of one size, {first[0]}×{first[1]} as {sound[0]}",
                got=f"{size[0]}×{size[1]} in {file}",
                do="resize or remove it",
            )
        grey = grey and mode in GREY
        sound.append(file)
    if first is None:
        got = f"only broken ones: {', '.join(broken[:5])}" if broken else "none"
        raise BadInput(f"pictures in {path}", got=got, do=f"put some there ({', '.join(SUFFIXES)})")
    channels = 1 if grey else 3
    check_room(len(sound) * channels * first[0] * first[1], str(path))
    levels = np.empty((len(sound), first[1], first[0], channels), np.uint8)
    count = 0
    for file in sound:
        try:
            levels[count] = picture_pixels(file, "L" if grey else "RGB").reshape(levels.shape[1:])
            count += 1
        except BadInput:  # a sound header before broken pixels
            broken.append(str(file.relative_to(path)))
    if not count:
        raise BadInput(
            f"pictures in {path}", got=f"only broken ones: {', '.join(broken[:5])}", do="replace them"
        )
    return Unlabelled(
        pixels(np.ascontiguousarray(levels[:count].transpose(0, 3, 1, 2))), tuple(sorted(broken))
    )
