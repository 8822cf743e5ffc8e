"""NumPy arrays as a pickle describes them: shape, type, where their bytes are. Not for following a pickle.

Bytes of any length stay in the file. Old pickles keep them as text: its letters are the bytes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..._core import BadInput
from .disk import read_span
from .stored import Stored, printable

LONG = 1024  # bytes and letters; what is longer stays in the file
DEEPEST = 16  # of lists in mappings in lists
_DO = "write it with numpy.savez(path, **arrays)"
_NUMBERS = re.compile(r"f(2|4|8|16)|[iu][1248]|b1|c(8|16)")
CALLED = {
    *(f"numpy.{core}.multiarray.{name}" for core in ("core", "_core") for name in ("_reconstruct", "scalar")),
    *(f"numpy.{core}.numeric._frombuffer" for core in ("core", "_core")),
    *("numpy.dtype", "numpy.ndarray", "_codecs.encode"),
}


@dataclass(frozen=True)
class Raw:
    """Bytes that lie in the file; as text, a letter above 127 takes two."""

    start: int
    length: int
    is_text: bool = False


@dataclass(eq=False)
class Type:
    """A type of numbers, as numpy.dtype was told it."""

    name: Any
    order: Any = "="
    plain: bool = True


@dataclass(eq=False)
class Array:
    """An array; nothing of it is checked yet."""

    shape: Any = ()
    type: Any = None
    fortran: bool = False
    data: Any = None

    @property
    def items(self) -> list[Any]:
        """What an array of objects holds."""
        return self.data if isinstance(self.data, list) else []


def call(path: str, arguments: Any) -> Any:
    """What one of `CALLED` would give, put together without calling."""
    last = path.rpartition(".")[2]
    if last == "_reconstruct":
        return Array()
    if last == "dtype":
        return Type(arguments[0])
    if last == "_frombuffer":
        data, kind, shape, order = arguments
        return Array(shape, kind, order == "F", data)
    if last == "encode" and arguments[1] in ("latin1", "latin-1"):
        text = arguments[0]
        if isinstance(text, Raw):
            return Raw(text.start, text.length, is_text=True)
        return text.encode("latin-1")
    return None


def build(target: Type | Array, state: Any) -> None:
    """The attributes that an array or a type is given once it is made."""
    if isinstance(target, Type):
        target.order, target.plain = state[1], state[3] is None
    else:
        _, target.shape, target.type, target.fortran, target.data = state


def arrays_in(content: object) -> dict[tuple[str, ...], Array]:
    """Every array of numbers, each under the first name that leads to it."""
    found: dict[tuple[str, ...], Array] = {}
    seen: set[int] = set()
    waiting: list[tuple[tuple[str, ...], Any]] = [((), content)]
    while waiting:
        path, one = waiting.pop()
        if not isinstance(one, Array | Mapping | list | tuple) or id(one) in seen or len(path) > DEEPEST:
            continue
        seen.add(id(one))
        below: Any = ()
        if isinstance(one, Array) and not isinstance(one.data, list):
            found[path] = one
        elif isinstance(one, Array):
            single = len(one.items) == 1 and one.shape == ()
            below = [(path if single else (*path, str(at)), item) for at, item in enumerate(one.items)]
        elif isinstance(one, Mapping):
            below = [((*path, name), item) for name, item in one.items()]
        else:
            names = ("weights", "biases") if _is_layer(one) else range(len(one))
            below = [((*path, str(name)), item) for name, item in zip(names, one, strict=True)]
        waiting += reversed(below)
    return found


def _is_layer(items: Any) -> bool:
    """A matrix and then its bias, as some write each layer."""
    shapes = [one.shape for one in items if isinstance(one, Array) and type(one.shape) is tuple]
    return len(items) == len(shapes) == 2 and len(shapes[0]) > 1 and len(shapes[1]) == 1


def stored_array(path: Path, name: str, array: Array) -> Stored:
    """How to read this array, once its description has been found to fit its bytes and the file."""
    where = f"{printable(name)} in {path}"
    kind, shape, data = array.type, array.shape, array.data
    if type(shape) is not tuple or len(shape) > 32 or not all(_is_side(side) for side in shape):
        raise BadInput(f"a shape for {where}", got="something else", do=_DO)
    sound = isinstance(kind, Type) and kind.plain and isinstance(kind.name, str)
    if not sound or not _NUMBERS.fullmatch(kind.name) or kind.order not in ("<", ">", "=", "|"):
        return Stored(shape, "data", partial(_no_numbers, where))
    dtype = np.dtype(kind.name).newbyteorder(kind.order)
    length = math.prod(shape) * dtype.itemsize
    if isinstance(data, str):
        data = data.encode("latin-1", "replace")
    if not isinstance(data, Raw | bytes | bytearray):
        raise BadInput(f"the numbers of {where}", got="none", do=_DO)
    held = data.length if isinstance(data, Raw) else len(data)
    as_text = isinstance(data, Raw) and data.is_text
    if not (length <= held <= 2 * length if as_text else held == length):
        got = f"{held:,} bytes"
        raise BadInput(f"{length:,} bytes for {where}, {dtype} of shape {shape}", got=got, do=_DO)
    load = partial(_load, path, where, data, dtype, shape, bool(array.fortran))
    return Stored(shape, "float64" if dtype.kind == "f" and dtype.itemsize > 8 else dtype.name, load)


def _is_side(side: object) -> bool:
    return type(side) is int and 0 <= side < 2**53


def _no_numbers(where: str) -> Tensor:
    raise BadInput(f"numbers for {where}", got="objects or texts", do=_DO)


def _load(
    path: Path, where: str, data: Any, dtype: np.dtype[Any], shape: tuple[int, ...], fortran: bool
) -> Tensor:
    if isinstance(data, Raw):
        content = read_span(path, data.start, data.length, where).numpy()
        data = (
            content.tobytes().decode("utf-8", "replace").encode("latin-1", "replace")
            if data.is_text
            else content
        )
    length = math.prod(shape) * dtype.itemsize
    if len(data) != length:
        raise BadInput(f"{length:,} bytes for {where}", got=f"{len(data):,}", do=_DO)
    array = np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")
    with np.errstate(
        over="ignore"
    ):  # what float32 can't hold becomes infinite, and is refused with its place
        return torch.from_numpy(np.array(array, dtype=np.float32, order="C"))
