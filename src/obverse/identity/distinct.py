"""Which points of a data set are distinct; equal points with different labels are refused by index."""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor

from ..errors import BadInput

SHOWN = 5  # pairs of indices in an error


def distinct(x: Tensor, y: Tensor) -> Tensor:
    """Index of the first of each group of equal rows, in order; all of a group must have one label."""
    first: dict[bytes, int] = {}
    conflicts = []
    labels = y.tolist()
    for index, row in enumerate(x.flatten(1)):
        # −0 equals 0, and bytes do not know it; a hash in place of 12 kB of an image as the key
        key = hashlib.sha256((row + 0).numpy().tobytes()).digest()
        known = first.setdefault(key, index)
        if labels[known] != labels[index]:
            conflicts.append((known, index))
    if conflicts:
        pairs = ", ".join(f"{a} and {b} (labels {labels[a]}, {labels[b]})" for a, b in conflicts[:SHOWN])
        more = f" and {len(conflicts) - SHOWN} more" if len(conflicts) > SHOWN else ""
        raise BadInput(
            "one label for equal points: no function gives two",
            got=f"equal points {pairs}{more}",
            do="drop one of each pair or correct its label",
        )
    return torch.tensor(list(first.values()))
