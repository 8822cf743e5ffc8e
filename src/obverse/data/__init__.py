"""Real data sets as tensors, from files and official sources. Not for batching, augmenting or streaming."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .catalog import load
    from .dataset import Dataset
    from .sources import NAMES
else:
    from ..lazily import lazily

    __getattr__ = lazily(
        __name__,
        {
            "Dataset": "dataset",
            "NAMES": "sources",
            "load": "catalog",
        },
    )

__all__ = ["NAMES", "Dataset", "load"]
