"""Weights in Keras' files: .h5 and .hdf5 of any version, and .keras. Not for running a model."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..._core import BadInput, parse_json, require
from .disk import member, read_span
from .hdf5 import DO, Region, attribute, child, dataset_in, opened
from .keras_config import Config, read_config
from .keras_config import Path as Place
from .keras_layout import as_torch
from .layout import weights_in
from .stored import Stored, Weight, printable

_DEEPEST, _MOST_NAMES = 32, 2**17
_LARGEST_TEXT = 2**26  # of an architecture
_WEIGHTS = "model.weights.h5"
_ZIP = b"PK\x03\x04"
_SKIPPED = {"optimizer_weights", "optimizer", "_optimizer"}


def open_keras(path: Path) -> tuple[Weight, ...]:
    """The weights of a model or of its weights alone, their kernels turned as PyTorch has them."""
    require("h5py", "keras")
    with path.open("rb") as file:
        is_zip = file.read(4) == _ZIP
    region, config = _archived(path) if is_zip else (Region(path, 0, path.stat().st_size), None)
    with opened(region) as file:
        config = config or _architecture(attribute(file, "model_config"), path)
        variables = dict(_variables(file, region))
    tensors, layers = as_torch(variables, config)
    return weights_in(tensors, str(path), layers, file=True)


def _archived(path: Path) -> tuple[Region, Config]:
    """Where the weights lie in a .keras file, and the architecture beside them."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [info.filename for info in archive.infolist()]
            found = {
                info.filename: member(path, info, DO)
                for info in archive.infolist()
                if info.filename in (_WEIGHTS, "config.json")
            }
    except BadInput:
        raise
    except Exception as error:  # zipfile raises a dozen kinds on broken bytes
        raise BadInput(f"a sound .keras file in {path}", got=error, do=DO) from None
    if _WEIGHTS not in found:
        got = ", ".join(printable(name) for name in sorted(names)[:5]) or "no members"
        raise BadInput(f"{_WEIGHTS} in {path}", got=got, do=DO)
    region, text = Region(path, found[_WEIGHTS].start, found[_WEIGHTS].length), found.get("config.json")
    if text is None or text.length > _LARGEST_TEXT:
        return region, Config()
    return region, _architecture(read_span(path, text.start, text.length, text.title).numpy().tobytes(), path)


def _architecture(text: object, path: Path) -> Config:
    if not isinstance(text, str | bytes):
        return Config()
    try:
        return read_config(parse_json(text if isinstance(text, str) else text.decode()))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"the architecture in {path} in JSON", got=printable(str(error)), do=DO) from None


def _variables(file: Any, region: Region) -> Iterator[tuple[Place, Stored]]:
    """Every variable with its layers; those of an optimizer are left out.

    Files of Keras 1 and 2 list the layers in the order of the net; of others all that is there is taken.
    """
    import h5py

    root = child(file, "model_weights")
    top = root if isinstance(root, h5py.Group) else file
    names = _texts(top, "layer_names")
    if names is None:
        yield from _walked(top, region)
        return
    seen: set[Place] = set()
    for name in names:
        group = child(top, name)
        if not isinstance(group, h5py.Group):
            continue
        for one in _texts(group, "weight_names") or ():
            dataset = group
            for part in one.split("/"):
                dataset = child(dataset, part) if isinstance(dataset, h5py.Group) else None
            if not isinstance(dataset, h5py.Dataset):
                raise BadInput(
                    f"the variable {printable(one)} that {region.path} lists", got="none there", do=DO
                )
            place = _place(one.split("/"))
            place = (name, *place) if len(place) == 1 or place in seen else place
            if place not in seen:
                seen.add(place)
                yield place, dataset_in(region, dataset, one)


def _texts(group: Any, name: str) -> list[str] | None:
    """A list of names; where it is too long for HDF5, Keras spreads it over name0, name1, …"""
    found = attribute(group, name)
    parts = [] if found is None else [np.ravel(found)]
    while found is None and len(parts) < _MOST_NAMES:
        part = attribute(group, f"{name}{len(parts)}")
        if part is None:
            break
        parts.append(np.ravel(part))
    if not parts:
        return None
    texts = (one for part in parts for one in part.tolist())
    return [one.decode(errors="replace") if isinstance(one, bytes) else str(one) for one in texts]


def _place(parts: list[str]) -> Place:
    """The 0 of kernel:0 says nothing."""
    return (*parts[:-1], re.sub(r":\d+$", "", parts[-1]))


def _walked(top: Any, region: Region) -> Iterator[tuple[Place, Stored]]:
    import h5py

    seen: set[int] = set()
    waiting: list[tuple[Place, Any]] = [((), top)]
    count = 0
    while waiting:
        place, one = waiting.pop()
        if isinstance(one, h5py.Dataset):
            yield _place(list(place)), dataset_in(region, one, "/".join(place))
            continue
        mark = h5py.h5o.get_info(one.id).addr
        if mark in seen or len(place) > _DEEPEST:  # two names for one group, or one that holds itself
            continue
        seen.add(mark)
        if not all(isinstance(name, str) for name in one):  # else bytes
            raise BadInput(f"names in UTF-8 in {region.path}", got="other bytes", do=DO)
        names = [name for name in sorted(one, key=_natural) if place or name not in _SKIPPED]
        count += len(names)
        if count > _MOST_NAMES:
            raise BadInput(f"at most {_MOST_NAMES:,} names in {region.path}", got="more", do=DO)
        found = [((*place, name), child(one, name)) for name in names]
        waiting += reversed([two for two in found if isinstance(two[1], h5py.Group | h5py.Dataset)])


def _natural(name: str) -> str:
    return re.sub(r"\d+", lambda number: number[0].zfill(9), name[:1000])
