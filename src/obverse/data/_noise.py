"""Wrong labels: flipped at random, or people's own from a file such as CIFAR-10N's. Not for the inputs.

A file from elsewhere is data. The official CIFAR-10_human.pt is a pickle; it is read by torch's restricted
unpickler, and what it calls numpy's is replaced by records that only remember what they were given.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from .._core import BadInput, NoSuchFile, read_header

MAX_BYTES = 64 * 2**20  # twenty times the official file
_DO = "give the file as its authors publish it, or a .npy of whole numbers"


def flip_labels(y: Tensor, share: float, classes: int, generator: torch.Generator | None = None) -> Tensor:
    """A copy of y in which exactly round(share · len(y)) labels, drawn at random, are another class.

    Each of the other classes is as likely. The number is exact, not one of independent coins, so that
    two draws differ in which labels are wrong and not in how many.
    """
    if not 0 <= share <= 1:
        raise BadInput("a share in [0, 1]", got=share, do="use 0.2 for a fifth of the labels")
    if classes < 2:
        raise BadInput("at least 2 classes to flip between", got=classes, do="check the number of classes")
    if y.dim() != 1 or y.dtype != torch.int64:
        got = f"{y.dtype} of shape {tuple(y.shape)}"
        raise BadInput("a row of int64 labels", got=got, do="pass the labels as class numbers")
    if len(y) and not 0 <= int(y.min()) <= int(y.max()) < classes:
        got = f"{int(y.min())} to {int(y.max())}"
        raise BadInput(f"labels 0 to {classes - 1}", got=got, do="check labels and classes")
    rows = torch.randperm(len(y), generator=generator)[: round(share * len(y))]
    shift = torch.randint(1, classes, (len(rows),), generator=generator)
    flipped = y.clone()
    flipped[rows] = (y[rows] + shift) % classes
    return flipped


def read_labels(path: Path, key: str | None = None, count: int = 50_000, classes: int = 10) -> Tensor:
    """Labels from a .npy of whole numbers, or those named `key` in a torch-saved dict of numpy arrays.

    The second is how CIFAR-10N comes: clean_label, aggre_label, worse_label, random_label1 to 3. Length,
    type and range are checked; nothing in the file is run.
    """
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        raise NoSuchFile(path) from None
    except OSError as error:
        raise BadInput(f"a file of labels {path}", got=error.strerror, do="check the path") from None
    if size > MAX_BYTES:
        raise BadInput(f"at most {MAX_BYTES:,} bytes in {path}", got=f"{size:,}", do=_DO)
    is_saved = path.suffix == ".pt"
    labels = _named(_read_saved(path, size), key, path) if is_saved else _read_npy(path, size, key)
    if labels.dtype.kind not in "iu" or labels.shape != (count,):
        got = f"{labels.dtype} of shape {labels.shape}"
        raise BadInput(f"{count:,} whole numbers in a row in {path}", got=got, do=_DO)
    if count and not 0 <= int(labels.min()) <= int(labels.max()) < classes:
        raise BadInput(
            f"labels 0 to {classes - 1} in {path}", got=f"{labels.min()} to {labels.max()}", do=_DO
        )
    return torch.from_numpy(labels.astype(np.int64))


def _read_npy(path: Path, size: int, key: str | None) -> npt.NDArray[Any]:
    if key is not None:
        raise BadInput(f"no key for {path}, which is one array", got=repr(key), do="leave the key out")
    try:
        with path.open("rb") as stream:
            read_header(stream, size, str(path), _DO)
            stream.seek(0)
            return np.lib.format.read_array(stream, allow_pickle=False)
    except BadInput:
        raise
    except Exception as error:  # numpy's header parser fails on broken bytes in many ways
        raise BadInput(f"a .npy array in {path}", got=_shortly(error), do=_DO) from None


class _Type:
    """In the place of numpy.dtype: remembers the code of a type and its byte order."""

    def __init__(self, code: str, *_: object) -> None:
        self.code, self.order = code, "="

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.order = state[1]

    def found(self) -> np.dtype[Any]:
        code, order = str(self.code), str(self.order)
        if code not in {f"{kind}{width}" for kind in "iu" for width in (1, 2, 4, 8)} or order not in "<>|=":
            raise ValueError(f"numbers of type {order}{code}"[:60])
        return np.dtype(code).newbyteorder("=" if order == "|" else order)  # type: ignore[arg-type]


class _Array:
    """In the place of numpy.ndarray: remembers shape, type and bytes, for numpy to see once checked."""

    shape: tuple[int, ...] = ()
    type: _Type | None = None
    content: bytes = b""

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, self.shape, self.type, _, self.content = state

    def found(self) -> npt.NDArray[Any]:
        if type(self.type) is not _Type or type(self.content) is not bytes:
            raise ValueError("an array without type or content")
        if type(self.shape) is not tuple or any(type(size) is not int for size in self.shape[:9]):
            raise ValueError("an array without a shape")
        row = np.frombuffer(self.content, self.type.found())
        if self.shape != row.shape:
            raise ValueError(f"{len(row):,} numbers for shape {self.shape[:9]}"[:60])
        return row


def _reconstruct(*_: object) -> _Array:
    """In the place of numpy's function of this name, which would make an array of any size asked for."""
    return _Array()


_PLACES = [
    (_Type, "numpy.dtype"),
    (_Array, "numpy.ndarray"),
    (_reconstruct, "numpy.core.multiarray._reconstruct"),
    (_reconstruct, "numpy._core.multiarray._reconstruct"),  # numpy 2
]


def _read_saved(path: Path, size: int) -> dict[str, Any]:
    """The dict in a torch-saved file, its arrays as records."""
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                claimed = sum(info.file_size for info in archive.infolist())
            if claimed > size:  # torch stores without compressing
                raise ValueError(f"{claimed:,} bytes packed into {size:,}")
        with torch.serialization.safe_globals(_PLACES):  # type: ignore[arg-type]
            found = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a broken or hostile pickle may fail in any way
        raise BadInput(f"a torch-saved dict of arrays in {path}", got=_shortly(error), do=_DO) from None
    if not isinstance(found, dict):
        raise BadInput(f"a dict of arrays in {path}", got=type(found).__name__, do=_DO)
    return found


def _shortly(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _named(found: dict[str, Any], key: str | None, path: Path) -> npt.NDArray[Any]:
    names = sorted(name for name in found if isinstance(name, str))
    if key not in names:
        raise BadInput(
            f"a key out of {', '.join(names)[:200]} for {path}", got=repr(key), do="pass one of these"
        )
    record = found[key]
    if type(record) is not _Array:
        raise BadInput(f"a numpy array named {key} in {path}", got=type(record).__name__, do=_DO)
    try:
        return record.found()
    except (ValueError, TypeError) as error:
        raise BadInput(f"whole numbers in a row named {key} in {path}", got=error, do=_DO) from None
