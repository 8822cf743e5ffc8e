"""Results made visible: one self-contained page and a picture of shadows. Not for computing results."""

from ..training.charts._images import ClassPictures, shadow_grid, shadow_pictures
from ..training.page import build

__all__ = ["ClassPictures", "build", "shadow_grid", "shadow_pictures"]
