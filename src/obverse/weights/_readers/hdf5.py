"""Numbers in an HDF5 file, alone or inside an archive. Not for what they mean: see keras.

The package h5py says what is where; the bytes are read and unpacked here, and no more than was promised.
Links, which can lead to other files, and data kept in other files are not followed; no filter is loaded.
"""

from __future__ import annotations

import itertools
import math
import mmap
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..._core import BadInput, require
from .disk import Window, read_span
from .stored import Stored, printable

DO = "save it again with Keras"
_LARGEST_TEXT = 2**26  # of an architecture
_MOST_NAMES = 2**17
_HEAP = b"GCOL\x01"  # how one begins
_GZIP, _SHUFFLE, _CHECKSUM = 1, 2, 3
# As for .npz: what unfolds to more than the larger of these is there to fill the memory.
_UNFOLDED_BYTES, _UNFOLDED_RATIO = 2**28, 100


@dataclass(frozen=True)
class Region:
    """The part of a file that is an HDF5 file: all of it, or a member of an archive."""

    path: Path
    start: int
    length: int


def _check_heaps(region: Region) -> None:
    """Refuse a heap of texts in which an object takes no room: HDF5's library would walk it for ever."""
    granularity = region.start % mmap.ALLOCATIONGRANULARITY
    with (
        region.path.open("rb") as file,
        mmap.mmap(
            file.fileno(),
            region.length + granularity,
            access=mmap.ACCESS_READ,
            offset=region.start - granularity,
        ) as content,
    ):
        at = content.find(_HEAP, granularity)
        while at >= 0:
            (size,) = struct.unpack("<Q", content[at + 8 : at + 16].ljust(8, b"\xff"))
            if at + size <= len(content) and not _ends(content, at + 16, at + size):
                raise BadInput(f"a sound HDF5 file in {region.path}", got="a heap without an end", do=DO)
            at = content.find(_HEAP, at + 1)


def _ends(content: mmap.mmap, place: int, end: int) -> bool:
    """Whether a walk from object to object, as the library takes it, comes to the end of a heap."""
    for _ in range(_MOST_NAMES):
        if end - place < 16:
            return True
        index, _, _, size = struct.unpack_from("<HHIQ", content, place)
        step = 16 + -(-size // 8) * 8 if index else size
        if not step:
            return False
        place += step
    return False


class _Padded(Window):
    """Behind its end come zeros, as from a file on disk: h5py asks again for ever for what never comes."""

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        count = super().readinto(buffer)
        buffer[count:] = bytes(len(buffer) - count)
        return len(buffer)


@contextmanager
def opened(region: Region) -> Iterator[Any]:
    """The HDF5 file, for reading; whatever is wrong with it, in a sentence."""
    h5py = require("h5py", "keras")
    try:
        _check_heaps(region)
        with region.path.open("rb") as whole:
            window = _Padded(whole, region.start, region.length)
            with h5py.File(window, "r") as file:
                if file.userblock_size:
                    got = f"{file.userblock_size:,} bytes of something else before it"
                    raise BadInput(f"an HDF5 file from its first byte in {region.path}", got=got, do=DO)
                yield file
    except (BadInput, MemoryError):
        raise
    except Exception as error:  # h5py raises a dozen kinds on broken bytes
        got = printable(str(error)[:300])
        raise BadInput(f"a sound HDF5 file in {region.path}", got=got, do=DO) from None


def attribute(group: Any, name: str) -> Any:
    """An attribute of bounded size, or None."""
    if name not in group.attrs:
        return None
    about = group.attrs.get_id(name)
    count = math.prod(about.shape or ())
    if not count:
        return np.zeros(0)
    if count > _MOST_NAMES or about.get_storage_size() > _LARGEST_TEXT:
        return None
    return group.attrs[name]


def child(group: Any, name: str) -> Any:
    """What lies there itself; a link to another place or another file leads nowhere."""
    import h5py

    if not name or not isinstance(group.get(name, getlink=True), h5py.HardLink):
        return None
    return group[name]


def dataset_in(region: Region, dataset: Any, name: str) -> Stored:
    """Where the numbers of a dataset are and how to read them, once they have been found to be there."""
    import h5py

    where = f"{printable(name)} in {region.path}"
    shape, dtype = dataset.shape, dataset.dtype
    if shape is None or dtype.kind not in "fiubV" or dtype.names or dtype.subdtype:
        return _unread(shape or (), "data", where, "no numbers")
    if dtype.kind == "V":  # as Keras keeps bfloat16, which HDF5 doesn't have
        if dtype.itemsize != 2 or attribute(dataset, "dtype") not in ("bfloat16", b"bfloat16"):
            return _unread(shape, "data", where, "no numbers")
        kind = "bfloat16"
    else:
        kind = "float64" if dtype.kind == "f" and dtype.itemsize > 8 else dtype.name
    plist = dataset.id.get_create_plist()
    if plist.get_external_count() or dataset.is_virtual:
        return _unread(shape, kind, where, "numbers in another file, which is not read")
    filters = [plist.get_filter(at)[0] for at in range(plist.get_nfilters())]
    if strange := [one for one in filters if one not in (_GZIP, _SHUFFLE, _CHECKSUM)]:
        return _unread(shape, kind, where, f"numbers packed by filter {strange[0]}, which is not loaded")
    length, stored = math.prod(shape) * dtype.itemsize, dataset.id.get_storage_size()
    most = max(_UNFOLDED_BYTES, _UNFOLDED_RATIO * region.length) if _GZIP in filters else region.length
    if length > most or stored > region.length:
        got = f"shape {shape} of {dtype}, {stored:,} bytes in the file"
        raise BadInput(f"the numbers of {where} to fit the file", got=got, do=DO)
    layout = plist.get_layout()
    if layout == h5py.h5d.CONTIGUOUS:
        start = dataset.id.get_offset()
        if length and (start is None or stored < length or start + length > region.length):
            raise BadInput(f"{length:,} bytes for {where}", got=f"{stored:,} within the file", do=DO)
        read = partial(_in_one_piece, region, start, length, dtype, shape, where)
    elif layout == h5py.h5d.CHUNKED:
        read = partial(_in_chunks, region, _Chunks.of(region, dataset, filters, where), where)
    else:  # in the head of the file: of 64 kB at most
        values = dataset[()]
        read = partial(np.asarray, values)
    return Stored(shape, kind, partial(_as_tensor, read, kind))


def _unread(shape: tuple[int, ...], kind: str, where: str, why: str) -> Stored:
    def load() -> Tensor:
        raise BadInput(f"numbers for {where}", got=why, do=DO)

    return Stored(shape, kind, load, unreadable="" if why == "no numbers" else f"{why}; {DO}")


def _in_one_piece(
    region: Region, start: int, length: int, dtype: Any, shape: tuple[int, ...], where: str
) -> npt.NDArray[Any]:
    if not length:
        return np.zeros(shape, dtype)
    content = read_span(region.path, region.start + start, length, where).numpy()
    values: npt.NDArray[Any] = content.view(dtype).reshape(shape)
    return values


@dataclass(frozen=True)
class _Chunks:
    """The pieces of a dataset: where each belongs, and where its bytes are."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    sides: tuple[int, ...]  # of a chunk
    filters: tuple[int, ...]
    places: tuple[tuple[tuple[int, ...], int, int, int], ...]  # first entry, filters left out, start, length

    @classmethod
    def of(cls, region: Region, dataset: Any, filters: list[int], where: str) -> _Chunks:
        sides, size = dataset.chunks, dataset.dtype.itemsize
        count = math.prod(-(-whole // one) for whole, one in zip(dataset.shape, sides, strict=True))
        most = max(_UNFOLDED_BYTES, _UNFOLDED_RATIO * region.length)
        if dataset.id.get_num_chunks() != count or count * math.prod(sides) * size > most:
            got = f"{dataset.id.get_num_chunks():,} of {' × '.join(map(str, sides))}"
            raise BadInput(f"{count:,} pieces of fitting size for {where}", got=got, do=DO)
        places: list[tuple[tuple[int, ...], int, int, int]] = []

        def keep(one: Any) -> None:
            places.append((one.chunk_offset, one.filter_mask, one.byte_offset, one.size))

        if count:
            dataset.id.chunk_iter(keep)
        grid = [range(0, whole, one) for whole, one in zip(dataset.shape, sides, strict=True)]
        if {one[0] for one in places} != set(itertools.product(*grid)) or len(places) != count:
            raise BadInput(f"each piece of {where} once", got="others", do=DO)
        if any(start is None or start + length > region.length for _, _, start, length in places):
            raise BadInput(f"the pieces of {where} within the file", got="others", do=DO)
        return cls(dataset.shape, dataset.dtype, sides, tuple(filters), tuple(places))


def _in_chunks(region: Region, chunks: _Chunks, where: str) -> npt.NDArray[Any]:
    values = np.empty(chunks.shape, chunks.dtype)
    size = math.prod(chunks.sides) * chunks.dtype.itemsize
    for first, left_out, start, length in chunks.places:
        content = read_span(region.path, region.start + start, length, where).numpy().tobytes()
        for at in reversed(range(len(chunks.filters))):
            if not left_out >> at & 1:
                content = _undone(chunks.filters[at], content, size, chunks.dtype.itemsize)
        if len(content) != size:
            raise BadInput(f"pieces of {size:,} bytes for {where}", got=f"{len(content):,}", do=DO)
        piece = np.frombuffer(content, chunks.dtype).reshape(chunks.sides)
        ends = tuple(min(a + b, whole) for a, b, whole in zip(first, chunks.sides, chunks.shape, strict=True))
        taken = tuple(slice(a, b) for a, b in zip(first, ends, strict=True))
        values[taken] = piece[tuple(slice(0, b - a) for a, b in zip(first, ends, strict=True))]
    return values


def _undone(filter_: int, content: bytes, size: int, itemsize: int) -> bytes:
    """What it was before this filter; a checksum of four bytes may still stand behind it."""
    if filter_ == _GZIP:
        try:
            return zlib.decompressobj().decompress(content, size + 4 + 1)
        except zlib.error:
            return b""
    if filter_ == _CHECKSUM:
        return content[:-4]
    count = len(content) // itemsize
    turned = np.frombuffer(content, np.uint8, count * itemsize).reshape(itemsize, count).T
    return turned.tobytes() + content[count * itemsize :]


def _as_tensor(read: Callable[[], npt.NDArray[Any]], kind: str) -> Tensor:
    """In the machine's own order of bytes; what float32 can't hold becomes infinite, and is refused."""
    array = read()
    if kind == "bfloat16":
        return torch.from_numpy(np.ascontiguousarray(array).view(np.int16)).view(torch.bfloat16)
    if array.dtype.isnative and array.dtype.itemsize <= 8 and array.dtype.kind == "f":
        return torch.from_numpy(np.ascontiguousarray(array))
    with np.errstate(over="ignore"):
        return torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32))
