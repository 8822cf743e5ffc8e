"""Real data sets as tensors, from files and official sources. Not for batching, augmenting or streaming."""

from .catalog import NAMES, load
from .dataset import Dataset

__all__ = ["NAMES", "Dataset", "load"]
