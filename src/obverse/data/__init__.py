"""Real data sets as tensors, from files and official sources. Not for batching, augmenting or streaming."""

from typing import TYPE_CHECKING

from .._core import lazily

if TYPE_CHECKING:
    from .._core import NAMES
    from ._augment import pad_crop_flip
    from ._catalog import data_folder, load, present_sets
    from ._dataset import Dataset, check_room
    from ._folder import GREY, picture_header, picture_pixels
    from ._unlabelled import load_unlabelled

__getattr__, __dir__ = lazily(__name__)

__all__ = [
    "GREY",
    "NAMES",
    "Dataset",
    "check_room",
    "data_folder",
    "load",
    "load_unlabelled",
    "pad_crop_flip",
    "picture_header",
    "picture_pixels",
    "present_sets",
]
