"""The value every loader returns, and the split and size limit they share. Not for reading files."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from .._core import BadInput, OneLine, shape

# The whole set is held in memory as float32. More than this belongs to a streaming loader, and a file that
# claims more is far likelier to be broken: CIFAR-10, the largest known set, takes 0.7 GiB.
MAX_BYTES = 8 * 2**30


@dataclass(frozen=True, eq=False, repr=False)
class Dataset(OneLine):
    """Inputs and labels, already split.

    `train_x` and `test_x` are float32 (float64 if asked for), N × C × H × W for images (pixels in [0, 1]) or
    N × D for flat inputs; `train_y` and `test_y` are int64 indices into `classes`. `train_rows` says where
    each training point stands in a source that was shuffled.
    """

    name: str
    train_x: torch.Tensor
    train_y: torch.Tensor
    test_x: torch.Tensor
    test_y: torch.Tensor
    classes: tuple[str, ...]
    train_rows: torch.Tensor | None = None

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of one input: (C, H, W) or (D,)."""
        return tuple(self.train_x.shape[1:])

    def __str__(self) -> str:
        return (
            f"{self.name}: {len(self.train_y):,} train + {len(self.test_y):,} test, "
            f"{shape(self.input_shape)}, {len(self.classes)} classes"
        )

    def __repr__(self) -> str:
        return f"<Dataset {self}>"


def pixels(levels: npt.NDArray[np.uint8]) -> torch.Tensor:
    """Grey levels 0..255 as float32 in [0, 1]."""
    return torch.from_numpy(levels).to(torch.float32).div_(255)


def split(
    name: str, x: torch.Tensor, y: torch.Tensor, classes: tuple[str, ...], test: int | None = None
) -> Dataset:
    """The same random split on every machine; a fifth is kept for testing unless `test` says how many.

    The permutation is `RandomState(0)`'s: NumPy has frozen that stream, while those of newer generators
    (and torch's) may change between versions.
    """
    if len(y) < 2:
        raise BadInput(
            f"at least 2 examples in {name}, to split into train and test",
            got=len(y),
            do="add examples, or give train and test apart",
        )
    count = max(1, len(y) // 5) if test is None else test
    order = torch.from_numpy(np.random.RandomState(0).permutation(len(y)))
    kept, held = order[count:], order[:count]
    return Dataset(name, x[kept], y[kept], x[held], y[held], classes, kept)


def check_room(values: int, what: str) -> None:
    """Refuse what would not fit as float32, before anything is allocated."""
    if values * 4 > MAX_BYTES:
        raise BadInput(
            f"at most {MAX_BYTES / 2**30:g} GiB as float32 in {what}",
            got=f"{values * 4 / 2**30:,.1f} GiB",
            do="use fewer or smaller inputs: the whole set is held in memory",
        )
