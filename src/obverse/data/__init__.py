"""Real data sets as tensors, from files and official sources. Not for batching, augmenting or streaming."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .._core.choices import NAMES
    from ._catalog import load
    from ._dataset import Dataset
else:
    from .._core.lazily import lazily

    __getattr__ = lazily(
        __name__,
        {
            "Dataset": "_dataset",
            "NAMES": "_sources",
            "load": "_catalog",
        },
    )

__all__ = ["NAMES", "Dataset", "load"]
