"""Which training points a step sees, and a fingerprint of them. Not for what is done with them."""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor

from .._core import BATCHES, BadInput, derive_generator


class Batches:
    """Every epoch all points in a new order, cut into batches: a function of the seed and the epoch."""

    def __init__(self, points: int, size: int, seed: int) -> None:
        self.points, self.size, self.seed = points, size, seed
        self._epoch, self._order = -1, torch.zeros(0, dtype=torch.int64)

    def __len__(self) -> int:
        """How many make an epoch; the last may be smaller."""
        return -(-self.points // self.size)

    def rows(self, epoch: int, index: int) -> Tensor:
        if self._epoch != epoch:
            generator = derive_generator(self.seed, BATCHES, epoch)
            self._epoch, self._order = epoch, torch.randperm(self.points, generator=generator)
        return self._order[index * self.size : (index + 1) * self.size]


def fingerprint(*tensors: Tensor) -> Tensor:
    """SHA-256 of shapes and values, as bytes: tells whether a resumed run sees the same data."""
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(str(tuple(tensor.shape)).encode())
        digest.update(tensor.contiguous().numpy().data)
    return torch.tensor(list(digest.digest()), dtype=torch.uint8)


def refuse_other_data(own: Tensor, kept: Tensor, name: str) -> None:
    if not torch.equal(own, kept):
        raise BadInput(
            f"the training points that the run began with in {name}",
            got="others",
            do="restore the data, or start a new run",
        )
