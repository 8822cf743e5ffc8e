"""Weights in the files of torch.save, new (zip) and old, and of TorchScript. Not for pickled modules.

The pickle inside is never run (see torch_pickle), and the numbers are read straight from their place in the
file, so no more of it is in memory than the tensor asked for.
"""

from __future__ import annotations

import io
import math
import mmap
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, cast

from torch import Tensor

from ..._core import BadInput
from .disk import Span, member, read_span
from .state_dict import find_tensors
from .stored import Stored, printable
from .torch_pickle import DO, Described, Module, Storage, read_pickle

_LARGEST_PICKLE = 64 * 2**20  # names, shapes and plain values; a thousand tensors take 0.2 MB
_MAGIC, _VERSION = 0x1950A86A20F9469CFC6C, 1001  # of the old format
_MARK = _MAGIC.to_bytes(10, "little")
_ZIP = b"PK\x03\x04"
_READ = ("data.pkl", "data/", "byteorder")  # of an archive; the code of TorchScript is not looked at
_AGAIN = "download it, or save it with torch.save, again"


def open_torch(path: Path) -> dict[str, Stored]:
    """The tensors of the state dict in a .pt file, wherever in the checkpoint it is."""
    with path.open("rb") as file:
        is_zip = file.read(4) == _ZIP
    content, records = _read_zip(path) if is_zip else _read_legacy(path)
    if isinstance(content, Described):
        content = {path.stem: content}
    if isinstance(content, Module):
        content = _flat(content)
    if not isinstance(content, dict):
        raise BadInput(f"a state dict in {path}", got=f"a {type(content).__name__}", do=DO)
    found = find_tensors(content, Described, str(path))
    return {name: _stored(path, name, tensor, records) for name, tensor in found.items()}


def is_torch(path: Path) -> bool:
    """Whether torch.save wrote it: a zip archive, or the old format's mark."""
    with path.open("rb") as file:
        head = file.read(32)
    return head[:4] == _ZIP or _MARK in head


def _flat(module: Module) -> dict[str, Described]:
    """The tensors of a module of TorchScript and of those in it, by the names of a state dict."""
    found: dict[str, Described] = {}
    seen: set[int] = set()
    waiting: list[tuple[str, Module]] = [("", module)]
    while waiting:
        prefix, one = waiting.pop()
        if id(one) in seen:  # two names for one module, or one that holds itself
            continue
        seen.add(id(one))
        found |= {prefix + name: value for name, value in one.items() if isinstance(value, Described)}
        below = [(f"{prefix}{name}.", value) for name, value in one.items() if isinstance(value, Module)]
        waiting += reversed(below)
    return found


def _stored(path: Path, name: str, tensor: Described, records: Mapping[str, Span]) -> Stored:
    """Where to read this tensor, once its description has been found to fit the storage and the file."""
    title, storage, itemsize = printable(name), tensor.storage, tensor.dtype.itemsize
    record = records.get(storage.key)
    if record is None:
        raise BadInput(f"the data of {title} in {path}", got=f"no record {printable(storage.key)}", do=_AGAIN)
    if storage.count * storage.dtype.itemsize != record.length:
        raise BadInput(
            f"{storage.count:,} numbers of {storage.dtype} in {record.title} of {path}, for {title}",
            got=f"{record.length:,} bytes",
            do=_AGAIN,
        )
    numbers = (tensor.offset, *tensor.shape, *tensor.stride)
    sizes = all(type(number) is int and 0 <= number < 2**63 for number in numbers)
    if not sizes or len(tensor.shape) != len(tensor.stride):
        raise BadInput(f"a shape and strides for {title} in {path}", got="something else", do=_AGAIN)
    reach = sum((side - 1) * step for side, step in zip(tensor.shape, tensor.stride, strict=True))
    count = math.prod(tensor.shape)
    first, span = tensor.offset * itemsize, (reach + 1) * itemsize if count else 0
    # Strides of 0 could repeat a few numbers without end; no real file holds less than it unfolds to.
    if first + span > record.length or count * itemsize > path.stat().st_size:
        raise BadInput(
            f"{title} in {path} to fit its {record.length:,} bytes",
            got=f"{tensor.dtype} of shape {tensor.shape} with strides {tensor.stride}",
            do=_AGAIN,
        )

    def load() -> Tensor:
        values = read_span(path, record.start + first, span, title).view(tensor.dtype)
        return values.as_strided(tensor.shape, tensor.stride)

    dtype = str(tensor.dtype).removeprefix("torch.")
    return Stored(tensor.shape, dtype, load, (storage.key, tensor.offset, tensor.shape, tensor.stride))


def _read_zip(path: Path) -> tuple[Any, dict[str, Span]]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = {info.filename: info for info in archive.infolist()}
        folder = _folder(path, members)
        records = {
            name.removeprefix(folder): member(path, info, _AGAIN)
            for name, info in members.items()
            if name.removeprefix(folder).startswith(_READ)
        }
    except BadInput:
        raise
    except Exception as error:  # zipfile raises a dozen kinds on broken bytes
        raise BadInput(f"a sound archive of torch.save in {path}", got=error, do=_AGAIN) from None
    if (order := records.get("byteorder")) and _content(path, order) != sys.byteorder.encode():
        raise BadInput(f"{sys.byteorder}-endian numbers in {path}", got="others", do="save it again here")
    content = read_pickle(io.BytesIO(_content(path, records["data.pkl"])), f"data.pkl of {path}")
    data = {name: record for name, record in records.items() if name.startswith("data/")}
    return content, {name.removeprefix("data/"): record for name, record in data.items()}


def _content(path: Path, record: Span) -> bytes:
    # Not ZipFile.read, which insists on checksums: torch can be told not to write them.
    if record.length > _LARGEST_PICKLE:
        title = f"{record.title} of {path}"
        raise BadInput(f"at most {_LARGEST_PICKLE:,} bytes in {title}", got=f"{record.length:,}", do=DO)
    return read_span(path, record.start, record.length, record.title).numpy().tobytes()


def _folder(path: Path, members: Mapping[str, zipfile.ZipInfo]) -> str:
    """The folder in the archive that everything is in."""
    mains = [name for name in members if name.rpartition("/")[2] == "data.pkl" and name.count("/") == 1]
    if len(mains) != 1:
        names = ", ".join(printable(name) for name in sorted(members)[:5]) or "no members"
        raise BadInput(f"the one data.pkl that torch.save writes in {path}", got=names, do=_AGAIN)
    return mains[0].removesuffix("data.pkl")


def _read_legacy(path: Path) -> tuple[Any, dict[str, Span]]:
    """Five pickles (magic number, version, system, content, keys), then count and bytes of each storage."""
    where, storages = str(path), dict[str, Storage]()
    length = min(_LARGEST_PICKLE, path.stat().st_size)
    # Mapped, so that a text of 4 GB which is not there is not made room for.
    with path.open("rb") as file, mmap.mmap(file.fileno(), length, access=mmap.ACCESS_READ) as mapped:
        head = cast(BinaryIO, mapped)
        if mapped[:1] != b"\x80" or read_pickle(head, where) != _MAGIC:
            raise BadInput(f"a file of torch.save in {path}", got="other bytes", do=_AGAIN)
        version, system = read_pickle(head, where), read_pickle(head, where)
        if version != _VERSION or type(system) is not dict:
            raise BadInput(f"version {_VERSION} of torch's old format in {path}", got="another", do=_AGAIN)
        if system.get("little_endian") is not (sys.byteorder == "little"):
            raise BadInput(f"{sys.byteorder}-endian numbers in {path}", got="others", do="save it again here")
        content, keys = read_pickle(head, where, storages), read_pickle(head, where)
        place = mapped.tell()
    return content, _old_records(path, place, keys, storages)


def _old_records(path: Path, place: int, keys: Any, storages: Mapping[str, Storage]) -> dict[str, Span]:
    records: dict[str, Span] = {}
    room = path.stat().st_size
    for key in keys if type(keys) is list else ():
        storage = storages.get(key) if isinstance(key, str) else None
        if storage is None:
            raise BadInput(f"only storages that are used in {path}", got="another", do=_AGAIN)
        record = Span(place + 8, storage.count * storage.dtype.itemsize, f"storage {printable(key)}")
        place = record.start + record.length
        if place > room or _count(path, record) != storage.count:
            raise BadInput(f"{storage.count:,} numbers in {record.title} of {path}", got="fewer", do=_AGAIN)
        records[key] = record
    return records


def _count(path: Path, record: Span) -> int:
    return int.from_bytes(read_span(path, record.start - 8, 8, record.title).numpy().tobytes(), "little")
