"""Reads .npy arrays, alone or in a zip, without trusting their headers. Not for what the numbers mean."""

from __future__ import annotations

import math
import zipfile
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt

from .errors import BadInput

_DEFLATE_RATIO = 1032  # the most deflate can do: a member that claims more is lying
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


@dataclass(frozen=True)
class Header:
    """What an array says about itself."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


def read_header(stream: BinaryIO, size: int, where: str, do: str) -> Header:
    """The header of an array of `size` bytes in all; everything it promises must agree with that."""
    version = np.lib.format.read_magic(stream)
    if version not in _HEADERS:
        raise BadInput(f".npy version 1.0 or 2.0 for {where}", got=version, do=do)
    shape, _, dtype = _HEADERS[version](stream)
    if dtype.hasobject:
        raise BadInput(f"plain numbers for {where}", got="pickled objects, which are never loaded", do=do)
    # A negative side could make up for itself in the product.
    if any(side < 0 for side in shape) or stream.tell() + math.prod(shape) * dtype.itemsize != size:
        raise BadInput(f"a size that fits shape {shape} of {dtype} for {where}", got=f"{size:,} bytes", do=do)
    return Header(shape, dtype)


def read_member_header(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, room: int, where: str, do: str
) -> Header:
    """The same for a member of a zip file of `room` bytes, whose own sizes must agree with it first."""
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise BadInput(f"stored or deflated data for {where}", got=f"compression {info.compress_type}", do=do)
    ratio = _DEFLATE_RATIO if info.compress_type == zipfile.ZIP_DEFLATED else 1
    if info.compress_size > room or info.file_size > info.compress_size * ratio:
        raise BadInput(f"a size that fits the file for {where}", got=f"{info.file_size:,} bytes", do=do)
    with archive.open(info) as stream:
        return read_header(cast(BinaryIO, stream), info.file_size, where, do)


def read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> npt.NDArray[Any]:
    """The array itself, once its header has been checked."""
    with archive.open(info) as stream:
        return np.lib.format.read_array(stream, allow_pickle=False)
