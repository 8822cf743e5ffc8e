"""Weights of TensorFlow.js: a model.json and its shards. Not for running a graph.

The manifest says which numbers lie in which shard; each tensor is read by itself, from as many shards as it
lies in. A layers-model names its variables as Keras does; in a graph the operations say what is a weight.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..._core import BadInput, read_file, read_json
from .disk import inside, read_span
from .keras_config import read_config
from .keras_layout import as_torch
from .layout import weights_in
from .stored import Stored, Weight, printable
from .tf_graph import graph_weights

_DO = "convert or download the model again"
_MANIFEST = "weightsManifest"
_LARGEST = 2**28  # bytes of a model.json
_MOST_TEXTS = 2**17  # in a tensor of texts, whose lengths stand between them
_TYPES = {
    "float32": torch.float32,
    "float16": torch.float16,
    "int32": torch.int32,
    "uint8": torch.uint8,
    "uint16": torch.uint16,
    "bool": torch.bool,
    "complex64": torch.complex64,
}
_QUANTIZED = {"uint8", "uint16", "float16"}


def open_tfjs(path: Path) -> tuple[Weight, ...]:
    """The weights that a model.json lists, quantized ones as the numbers they stand for."""
    model = read_json(path, "a model of TensorFlow.js", _LARGEST)
    tensors: dict[str, Stored] = {}
    for group in _listed(model.get(_MANIFEST), f'"{_MANIFEST}"', path):
        shards = _Shards.of(path, _listed(_member(group, "paths"), "paths of shards", path))
        place = 0
        for entry in _listed(_member(group, "weights"), "weights", path):
            name, stored, place = _stored(path, entry, shards, place)
            if name in tensors:
                raise BadInput(f"each weight once in {path}", got=f"{printable(name)} twice", do=_DO)
            tensors[name] = stored
    topology = model.get("modelTopology")
    if isinstance(topology, dict) and isinstance(topology.get("node"), list):
        return weights_in(*graph_weights(tensors, topology["node"], path))
    named = {tuple(name.split("/")): one for name, one in tensors.items()}
    config = topology.get("model_config", topology) if isinstance(topology, dict) else None
    found, layers = as_torch(named, read_config(config))
    return weights_in(found, str(path), layers, file=True)


def is_tfjs(path: Path) -> bool:
    """Whether a .json file is such a model: one that cannot be read is when it is called like one."""
    named = path.name.lower().endswith("model.json")
    try:
        if not named and _MANIFEST.encode() not in read_file(path, "JSON", _LARGEST):
            return False  # a tokenizer, say, which takes long to parse
        return _MANIFEST in read_json(path, "a model of TensorFlow.js", _LARGEST)
    except (BadInput, OSError):
        return named


def shards_of(path: Path) -> set[str]:
    """The files that a model.json names; those that are not text are found out when they are opened."""
    groups = read_json(path, "a model of TensorFlow.js", _LARGEST).get(_MANIFEST)
    found = (
        one.get("paths") for one in (groups if isinstance(groups, list) else ()) if isinstance(one, dict)
    )
    return {name for paths in found if isinstance(paths, list) for name in paths if isinstance(name, str)}


def _member(group: object, key: str) -> Any:
    return group.get(key) if isinstance(group, dict) else None


def _listed(value: object, what: str, path: Path) -> list[Any]:
    if not isinstance(value, list):
        raise BadInput(f"a list of {what} in {path}", got=repr(value)[:100], do=_DO)
    return value


@dataclass(frozen=True)
class _Shards:
    """Files that count as one, in their order: each with the place of its first byte."""

    files: tuple[tuple[Path, int, int], ...]
    length: int

    @classmethod
    def of(cls, path: Path, names: list[Any]) -> _Shards:
        files, place = [], 0
        for name in names:
            file = inside(path.parent, name, path)
            size = file.stat().st_size
            files.append((file, place, size))
            place += size
        return cls(tuple(files), place)

    def read(self, start: int, length: int, where: str) -> Tensor:
        parts = [
            read_span(
                file, max(start - first, 0), min(start + length, first + size) - max(start, first), where
            )
            for file, first, size in self.files
            if first < start + length and start < first + size
        ]
        return parts[0] if len(parts) == 1 else torch.cat([torch.zeros(0, dtype=torch.uint8), *parts])


def _stored(path: Path, entry: object, shards: _Shards, start: int) -> tuple[str, Stored, int]:
    """One entry of the manifest: its name, how to read it, and where the next one begins."""
    if not isinstance(entry, dict) or not isinstance(name := entry.get("name"), str):
        raise BadInput(f"the name of each weight in {path}", got=repr(entry)[:100], do=_DO)
    where = f"{printable(name)} in {path}"
    sides = _listed(entry.get("shape"), f"sides for {where}", path)
    if len(sides) > 32 or not all(type(side) is int and 0 <= side < 2**53 for side in sides):
        raise BadInput(f"a shape for {where}", got=str(sides)[:100], do=_DO)
    shape, kind, packed = tuple(sides), entry.get("dtype"), entry.get("quantization")
    if kind == "string":
        return name, Stored(shape, kind, _no_numbers), _after_texts(shards, math.prod(shape), start, where)
    held = packed.get("dtype") if isinstance(packed, dict) else kind
    allowed = _TYPES if packed is None else _QUANTIZED
    if not isinstance(kind, str) or not isinstance(held, str) or kind not in _TYPES or held not in allowed:
        got = f"{printable(str(kind))}, {printable(str(held))}"
        raise BadInput(f"a known type of numbers for {where}", got=got, do=_DO)
    dtype, scale, least = _TYPES[held], 1.0, 0.0
    if packed is not None and held != "float16":
        scale, least = (_number(packed.get(key), key, where) for key in ("scale", "min"))
    length = math.prod(shape) * dtype.itemsize
    if start + length > shards.length:
        got = f"{shards.length:,} bytes in its shards"
        raise BadInput(f"{length:,} bytes from {start:,} for {where}", got=got, do=_DO)
    load = partial(_load, shards, start, length, dtype, shape, where, scale, least)
    seen = "float32" if packed is not None and kind == "float32" else kind
    return name, Stored(shape, seen, load), start + length


def _number(value: object, what: str, where: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or abs(value) > 1e300:
        raise BadInput(f"a number as {what} of {where}", got=repr(value)[:100], do=_DO)
    return float(value)


def _no_numbers() -> Tensor:
    raise BadInput("numbers", got="texts", do=_DO)


def _load(
    shards: _Shards,
    start: int,
    length: int,
    dtype: torch.dtype,
    shape: tuple[int, ...],
    where: str,
    scale: float,
    least: float,
) -> Tensor:
    values = shards.read(start, length, where)
    if start % dtype.itemsize:  # a view needs its numbers where they would lie in memory
        values = values.clone()
    numbers = values.view(dtype).reshape(shape)
    if dtype in (torch.uint8, torch.uint16):
        return numbers.to(torch.float32) * scale + least
    return numbers


def _after_texts(shards: _Shards, count: int, start: int, where: str) -> int:
    if count > min(_MOST_TEXTS, shards.length // 4):
        raise BadInput(f"at most {_MOST_TEXTS:,} texts in {where}", got=f"{count:,}", do=_DO)
    for _ in range(count):
        if start + 4 > shards.length:
            raise BadInput(f"a text's length in {where}", got="the end of its shards", do=_DO)
        start += 4 + int.from_bytes(shards.read(start, 4, where).numpy().tobytes(), "little")
    return start
