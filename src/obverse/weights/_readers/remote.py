"""Safetensors on a hub: headers first, then one tensor's range at a time. Not for finding the file.

What a header promises is checked against the size of the file before memory is taken. What is in the cache of
huggingface_hub already is read there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..._core import MAX_JSON, BadInput, parse_json
from .address import Address, is_safe
from .arrays import named_weights
from .held import Held
from .hub_errors import library, refusals
from .ranges import RemoteFile
from .safetensors import DTYPES, misplaced, natural, open_safetensors, weight_map
from .stored import Stored, Weight, printable

INDEX = ".safetensors.index.json"
_GUESS = 2**16  # bytes that are asked for at first: most headers are shorter
_LONGEST_HEADER = 25_000_000  # bytes, as in huggingface_hub
_TORCH = {code: getattr(torch, name) for code, name in DTYPES.items()} | {
    "F8_E8M0": torch.float8_e8m0fnu,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U64": torch.uint64,
    "U32": torch.uint32,
    "U16": torch.uint16,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
_PACKED = ("F4", "F6_E2M3", "F6_E3M2")  # which the format has, and torch has no type for
_AT_ONCE = 8  # headers
_DO = "download or convert the model again"


def open_remote(address: Address) -> tuple[Weight, ...]:
    """The matrices of a safetensors file of one commit, or of the shards that an index of it names."""
    held = Held()
    tensors = (_open_shards if address.path.endswith(INDEX) else open_one)(address, held)
    weights = named_weights(tensors, str(address))
    held.shared = {name for name, count in Counter(one.tensor for one in weights).items() if count > 1}
    return weights


def fetched(address: Address, limit: int | None = None) -> Path:
    """The whole file, from the library's cache or through it: with its progress, resumed where it was cut.

    Of more than `limit` bytes nothing is fetched.
    """
    found = _cached(address)
    if found is not None:
        return found
    package = library()
    with refusals(address):
        if limit is not None:
            url = package.hf_hub_url(address.repository, address.path, revision=address.revision)
            size = package.get_hf_file_metadata(url).size
            if size is None or size > limit:
                got, do = ("no size", "check HF_ENDPOINT") if size is None else (f"{size:,}", _DO)
                raise BadInput(f"at most {limit:,} bytes of {address.short}", got=got, do=do)
        return Path(package.hf_hub_download(address.repository, address.path, revision=address.revision))


def _cached(address: Address) -> Path | None:
    """The whole file, where the library has it already; nobody is asked."""
    with refusals(address):
        find = library().try_to_load_from_cache
        found = find(address.repository, address.path, revision=address.revision)
    return Path(found) if isinstance(found, str) else None


def open_one(address: Address, held: Held) -> dict[str, Stored]:
    """The tensors of one file, from the cache or the hub, in the order a reader expects."""
    path = _cached(address)
    if path is not None:
        return open_safetensors(path)
    file, header, start = _header(RemoteFile(address))
    return {
        name: Stored(
            tuple(entry["shape"]),
            DTYPES.get(entry["dtype"], entry["dtype"].lower()),
            partial(held.load, name, partial(_load, file, name, entry, start)),
            read=_reader(file, name, entry, start, held),
        )
        for name, entry in sorted(header.items(), key=lambda item: natural(item[0]))
    }


def _open_shards(address: Address, held: Held) -> dict[str, Stored]:
    names = weight_map(fetched(address, limit=MAX_JSON))
    folder = address.path.rpartition("/")[0]
    shards = sorted({str(shard) for shard in names.values()})
    for shard in shards:
        if not is_safe(shard) or not shard.endswith(".safetensors"):
            do = "name one of its files; nothing outside it is read"
            raise BadInput(f"files of {address.repository} in {address.short}", got=printable(shard), do=do)
    places = [replace(address, path=f"{folder}/{shard}" if folder else shard) for shard in shards]
    with ThreadPoolExecutor(min(_AT_ONCE, len(places))) as pool:
        opened = dict(zip(shards, pool.map(partial(open_one, held=held), places), strict=True))
    tensors = {}
    for name in sorted(names, key=natural):
        shard = str(names[name])
        if name not in opened[shard]:
            raise BadInput(
                f"the tensor {printable(name)} in {printable(shard)}, as {address.short} says",
                got=f"{len(opened[shard])} others",
                do="report it to who uploaded the model",
            )
        tensors[name] = opened[shard][name]
    return tensors


def _header(file: RemoteFile) -> tuple[RemoteFile, Mapping[str, Any], int]:
    """What a file says that it holds, once it is found to fit the file, and where its data begin."""
    file, content = file.begin(_GUESS)
    size = file.size or 0
    length = int.from_bytes(content[:8], "little")
    if len(content) < 8 or length > size - 8:
        got = f"a header of {length:,} bytes in a file of {size:,}" if len(content) >= 8 else f"{size} bytes"
        raise BadInput(f"safetensors in {file.name}", got=got, do=_DO)
    if length > _LONGEST_HEADER:
        do = "this is no file of weights"
        raise BadInput(
            f"a header of at most {_LONGEST_HEADER:,} bytes in {file.name}", got=f"{length:,}", do=do
        )
    more = 8 + length - len(content)
    if more > 0:
        content += file.read(len(content), more, "the header").numpy().tobytes()
    try:
        header = parse_json(content[8 : 8 + length].decode())
        entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
        wrong = _first_wrong(entries, size - 8 - length) or _no_text(header.get("__metadata__", {}), entries)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        got = f"another header ({type(error).__name__}: {printable(str(error))})"
        raise BadInput(f"safetensors in {file.name}", got=got, do=_DO) from None
    if wrong:
        raise BadInput(f"safetensors in {file.name}", got=wrong, do=_DO)
    return file, entries, 8 + length


def _first_wrong(entries: Mapping[str, Any], room: int) -> str:
    """What of the entries does not fit the data: each its shape, and all of them together the file."""
    for name, entry in entries.items():
        found = misplaced(entry, room)
        if found is None and entry["dtype"] not in (*_TORCH, *_PACKED):
            found = f"numbers of type {printable(entry['dtype'])}"
        if found:
            return f"{printable(name)}: {found}"
    end = 0
    for name, entry in sorted(entries.items(), key=lambda item: item[1]["data_offsets"]):
        first, last = entry["data_offsets"]
        if first != end:
            return f"{printable(name)} from byte {first:,} on, where the one before ends at {end:,}"
        end = last
    return "" if end == room else f"{room - end:,} bytes after the last tensor"


def _no_text(metadata: object, entries: Mapping[str, Any]) -> str:
    """Names and remarks are text, by the format: JSON can hold half a character, too."""
    remarks = metadata.items() if isinstance(metadata, dict) else [(0, 0)]
    for one in (*(part for pair in remarks for part in pair), *entries):
        if not isinstance(one, str) or any("\ud800" <= letter <= "\udfff" for letter in one):
            return f"{printable(str(one))} where text belongs"
    return ""


def _load(file: RemoteFile, name: str, entry: Mapping[str, Any], start: int) -> Tensor:
    dtype, (first, last), title = _TORCH.get(entry["dtype"]), entry["data_offsets"], printable(name)
    if dtype is None:
        got = printable(entry["dtype"])
        raise BadInput(f"numbers that torch knows in {title} of {file.name}", got=got, do="dequantize them")
    return file.read(start + first, last - first, title).view(dtype).reshape(entry["shape"])


def _reader(
    file: RemoteFile, name: str, entry: Mapping[str, Any], start: int, held: Held
) -> Callable[[slice, slice], Tensor] | None:
    """Parts of a matrix, all of which is fetched when the first is asked for."""
    dtype, (first, last), shape = _TORCH.get(entry["dtype"]), entry["data_offsets"], tuple(entry["shape"])
    if dtype is None or len(shape) != 2 or first == last:
        return None
    fetch = partial(file.hand_on, start + first, last - first, printable(name))
    return partial(held.part, name, fetch, dtype, shape)
