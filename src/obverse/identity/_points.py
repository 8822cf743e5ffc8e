"""Data sets as tensors: points as rows, whole labels, which points are equal. Not for memorizing them."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._core import BadInput

MOST_CLASSES = 2**16  # their targets are compared with each other
LARGEST = 1e300  # beyond it differences overflow
SHOWN = 5  # pairs of indices in an error
_UNSIGNED = {torch.uint16, torch.uint32, torch.uint64}  # torch can hardly compute with them


def checked(x: Any, y: Any, classes: int | None = None) -> tuple[Tensor, Tensor, int]:
    """Points as rows, labels as int64, the number of classes; what can't be memorized is refused."""
    x, y = _tensor(x, "points"), _tensor(y, "labels")
    if x.dim() < 2 or x.numel() < 1:
        raise BadInput(
            "points one a row, each of at least one number",
            got=f"a tensor of shape {tuple(x.shape)}",
            do="for points that are single numbers, x[:, None]",
        )
    if x.is_floating_point() and not (largest := x.abs().max()) <= LARGEST:
        wrong = "NaN or infinity" if not torch.isfinite(x).all() else f"{largest:.3g}"
        raise BadInput(f"numbers up to {LARGEST:g}", got=wrong, do="drop or rescale such points")
    if y.dim() != 1 or len(y) != len(x):
        raise BadInput(
            f"{len(x):,} labels, one a point",
            got=f"a tensor of shape {tuple(y.shape)}",
            do="check the labels",
        )
    if y.is_floating_point() or int(y.min()) < 0:
        got = f"{y.dtype}" if y.is_floating_point() else f"a label of {int(y.min())}"
        raise BadInput("labels as whole numbers from 0", got=got, do="number the classes")
    y = y.long()
    most = int(y.max()) + 1
    if classes is not None and (type(classes) is not int or classes < max(2, most)):
        raise BadInput(
            f"at least {max(2, most)} classes, for labels up to {most - 1}", got=repr(classes), do="raise it"
        )
    found = max(2, most) if classes is None else classes
    if found > MOST_CLASSES:
        raise BadInput(
            f"at most {MOST_CLASSES:,} classes", got=f"{found:,}", do="number those that occur from 0 on"
        )
    return x.reshape(len(x), -1), y, found


def _tensor(values: Any, what: str) -> Tensor:
    """Real numbers in memory; lists in double precision."""
    if isinstance(values, Tensor):
        if values.is_complex() or values.layout != torch.strided:
            raise BadInput(
                f"{what} as real dense numbers", got=f"{values.dtype}, {values.layout}", do="convert them"
            )
        values = values.detach().cpu()
        if values.dtype not in _UNSIGNED:
            small = values.is_floating_point() and (values.itemsize == 1 or values.dtype == torch.bfloat16)
            wanted = torch.float32 if small else torch.uint8 if values.dtype == torch.bool else values.dtype
            simple: Tensor = values.to(wanted)
            return simple
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise BadInput(
            f"{what} as an array of numbers", got=f"no array: {error}", do="check their sizes"
        ) from None
    if array.dtype.kind not in "biuf":
        raise BadInput(f"{what} as an array of numbers", got=f"an array of {array.dtype}", do="convert them")
    if array.dtype.kind == "u" and array.size and int(array.max()) >= 2**63:
        raise BadInput(f"{what} below 2⁶³", got=int(array.max()), do="rescale them")
    if array.dtype.kind == "f":
        wanted = array.dtype.newbyteorder("=") if array.dtype.itemsize <= 8 else np.dtype(np.float64)
    else:
        wanted = np.dtype(np.uint8 if array.dtype.itemsize == 1 and array.dtype.kind != "i" else np.int64)
    return torch.from_numpy(np.array(array, dtype=wanted, order="C"))


def first_equal(x: Tensor) -> Tensor:
    """For each row the index of the first row that equals it."""
    first: dict[bytes, int] = {}
    # −0 equals 0, and bytes do not know it; a hash, as the key would be 12 kB of an image
    rows = (hashlib.sha256((row + 0).numpy().tobytes()).digest() for row in x)
    return torch.tensor([first.setdefault(key, index) for index, key in enumerate(rows)])


def distinct(x: Tensor, y: Tensor, numbers: Tensor | None = None) -> Tensor:
    """Index of the first of each group of equal rows, in order; a group with two labels is refused.

    `numbers` are the names of the rows in that refusal (default: 0, 1, …).
    """
    first = first_equal(x)
    wrong = (y != y[first]).nonzero().squeeze(1).tolist()
    if wrong:
        numbers = torch.arange(len(x)) if numbers is None else numbers
        pairs = [
            f"{int(numbers[first[one]])} and {int(numbers[one])} (labels {int(y[first[one]])}, {int(y[one])})"
            for one in wrong[:SHOWN]
        ]
        more = f" and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
        raise BadInput(
            "one label for equal points: no function gives two",
            got=f"equal points {', '.join(pairs)}{more}",
            do="drop one of each pair or correct its label",
        )
    found: Tensor = first.unique()
    return found
