"""Weights in .safetensors, one file or a folder of shards with its index. Not for other formats."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import Tensor

from ..._core import BadInput, parse_json, read_json
from .disk import inside
from .stored import Stored, printable

DTYPES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "C64": "complex64",
}
_BITS = re.compile(r"[A-Z]+(\d{1,2})(_.*)?")
_LARGEST_HEADER = 2**24  # that is read a second time, to say what is wrong with it


def open_safetensors(path: Path) -> dict[str, Stored]:
    """The tensors of one file, in the order a reader expects: layer 2 before layer 10."""
    tensors = {}
    with _opened(path) as file:
        for name in sorted(file.keys(), key=natural):
            entry = file.get_slice(name)
            dtype = entry.get_dtype()
            shape = tuple(entry.get_shape())
            tensors[name] = Stored(
                shape, DTYPES.get(dtype, dtype.lower()), _loader(path, name), read=_reader(path, name)
            )
    return tensors


def is_safetensors(path: Path) -> bool:
    """Whether a file begins as one: with the length of a header that has room in it."""
    with path.open("rb") as file:
        head = file.read(10)
    return head[8:] == b'{"' and int.from_bytes(head[:8], "little") <= path.stat().st_size - 8


def open_shards(index: Path) -> dict[str, Stored]:
    """The tensors that a *.safetensors.index.json says are in the files beside it."""
    names = weight_map(index)
    shards: dict[str, dict[str, Stored]] = {}
    tensors = {}
    for name in sorted(names, key=natural):
        shard = names[name]
        if not isinstance(shard, str) or shard not in shards:
            shards[shard] = open_safetensors(inside(index.parent, shard, index))
        if name not in shards[shard]:
            raise BadInput(
                f"the tensor {printable(name)} in {printable(shard)}, as {index} says",
                got=f"{len(shards[shard])} others",
                do="download the model again",
            )
        tensors[name] = shards[shard][name]
    return tensors


def shard_names(index: Path) -> set[str]:
    """The files that an index names; those that are not text are found out when they are opened."""
    return {name for name in weight_map(index).values() if isinstance(name, str)}


def weight_map(index: Path) -> dict[str, Any]:
    """Tensors and their files."""
    names = read_json(index, "the index of a sharded model").get("weight_map")
    if not isinstance(names, dict) or not names:
        raise BadInput(f'tensors and their files as "weight_map" in {index}', got=names, do="restore it")
    return names


def _loader(path: Path, name: str) -> Callable[[], Tensor]:
    # The file is mapped anew for each tensor: a mapping that stays open keeps what was read in memory.
    def load() -> Tensor:
        with _opened(path) as file:
            tensor: Tensor = file.get_tensor(name)
            return tensor

    return load


def _reader(path: Path, name: str) -> Callable[[slice, slice], Tensor]:
    def read(rows: slice, columns: slice) -> Tensor:
        with _opened(path) as file:
            tensor: Tensor = file.get_slice(name)[rows, columns]
            return tensor

    return read


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            yield file
    except SafetensorError as error:
        got = _culprit(path) or error
        raise BadInput(f"safetensors in {path}", got=got, do="download or save it again") from None
    except OSError as error:
        raise BadInput(f"to read {path}", got=error.strerror or error, do="check the path") from None


def _culprit(path: Path) -> str | None:
    """The first tensor whose shape does not fit its place in the file: the library does not name it."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        room = path.stat().st_size - 8 - size
        if size > _LARGEST_HEADER or room < 0:
            return None
        try:
            header = parse_json(file.read(size).decode())
            for name, entry in header.items():
                if name != "__metadata__" and (wrong := misplaced(entry, room)):
                    return f"{printable(name)}: {wrong}"
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            pass  # not even the form is right: the library's own words are better
    return None


def misplaced(entry: dict[str, Any], room: int) -> str | None:
    """What of one tensor's entry does not fit `room` bytes of data, or its own shape."""
    (start, end), shape, match = entry["data_offsets"], entry["shape"], _BITS.fullmatch(entry["dtype"])
    if len(shape) > 16 or not all(type(one) is int and 0 <= one < 2**63 for one in (start, end, *shape)):
        raise ValueError("no sizes at all")
    bits = math.prod(shape) * (int(match[1]) if match else 8)  # BOOL takes a byte
    if start <= end <= room and bits == 8 * (end - start):
        return None
    return f"{entry['dtype']} of shape {shape} at bytes {start} to {end} of {room}"


def natural(name: str) -> str:
    """Sorts layer 2 before layer 10."""
    return re.sub(r"\d+", lambda number: number[0].zfill(9), name)
