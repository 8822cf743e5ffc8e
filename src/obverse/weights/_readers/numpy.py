"""Weights in .npy and .npz files, those of plain numbers. Not for pickled arrays: see arrays."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..._core import BadInput, Header, read_header, read_member, read_member_header
from .stored import Stored, printable

_DO = "write it with numpy.savez(path, **arrays)"
# An honest array of zeros shrinks a thousandfold, a real weight hardly at all: what unfolds to more than the
# larger of these two is there to fill the memory.
_UNFOLDED_BYTES, _UNFOLDED_RATIO = 2**28, 100


def open_npy(path: Path) -> dict[str, Stored]:
    """The one array of an .npy file, named after the file."""

    def load() -> Tensor:
        with _explained(path), path.open("rb") as file:
            read_header(file, path.stat().st_size, str(path), _DO)
            file.seek(0)
            return _as_tensor(np.lib.format.read_array(file, allow_pickle=False))

    with _explained(path), path.open("rb") as file:
        header = read_header(file, path.stat().st_size, str(path), _DO)
    return {path.stem: Stored(header.shape, _dtype(header), load)}


def pickle_in(path: Path) -> int | None:
    """Where the pickle begins in an .npy file of objects; None for one of plain numbers."""
    with _explained(path), path.open("rb") as file:
        version = np.lib.format.read_magic(file)
        if version not in ((1, 0), (2, 0)):
            return None
        read = (
            np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        )
        _, _, dtype = read(file)
        return file.tell() if dtype.hasobject else None


def open_npz(path: Path) -> dict[str, Stored]:
    """The arrays of an .npz file in their order; each is unpacked when it is asked for."""
    tensors = {}
    room = path.stat().st_size
    with _explained(path), zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            where = f"{printable(info.filename)} in {path}"
            if info.file_size > max(_UNFOLDED_BYTES, _UNFOLDED_RATIO * room):
                raise BadInput(
                    f"at most {_UNFOLDED_RATIO} times the size of the file in {where}",
                    got=f"{info.file_size:,} bytes",
                    do="save it with numpy.savez, uncompressed",
                )
            header = read_member_header(archive, info, room, where, _DO)
            name = info.filename.removesuffix(".npy")
            tensors[name] = Stored(header.shape, _dtype(header), _loader(path, info.filename, room))
    return tensors


def _loader(path: Path, member: str, room: int) -> Callable[[], Tensor]:
    def load() -> Tensor:
        where = f"{printable(member)} in {path}"
        with _explained(path), zipfile.ZipFile(path) as archive:
            info = archive.getinfo(member)
            read_member_header(archive, info, room, where, _DO)
            return _as_tensor(read_member(archive, info))

    return load


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except BadInput:
        raise
    except Exception as error:  # zipfile, zlib and NumPy's header parser raise a dozen kinds on broken bytes
        raise BadInput(f"a sound {path.suffix} file in {path}", got=printable(str(error)), do=_DO) from None


def _dtype(header: Header) -> str:
    kind = header.dtype.kind
    return "float64" if kind == "f" and header.dtype.itemsize > 8 else header.dtype.name


def _as_tensor(array: npt.NDArray[Any]) -> Tensor:
    with np.errstate(
        over="ignore"
    ):  # what float32 can't hold becomes infinite, and is refused with its place
        return torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32))
