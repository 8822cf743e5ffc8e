"""PNG files and bytes of a page: written whole, read back as untrusted files. Not for what is in them."""

from __future__ import annotations

import base64
import io
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from .._core import BadInput, read_file, replace_atomically

if TYPE_CHECKING:
    from PIL.Image import Image


def save_png(path: Path, image: Image) -> None:
    """In one step."""
    replace_atomically(path, lambda temporary: image.save(temporary, format="PNG", optimize=True))


def png_bytes(pixels: Pixels) -> bytes:
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="PNG", optimize=True)
    return buffer.getvalue()


def data_uri(png: bytes) -> str:
    """A PNG inside the page."""
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


def read_png(
    path: Path, size: tuple[int, int], channels: int, most_bytes: int, expected: str, do: str
) -> Pixels:
    """The pixels of a file that must have this size (width, height); anything else is refused.

    `expected` and `do` are what the error says.
    """
    from PIL import Image

    try:
        if path.is_symlink():
            raise BadInput(expected, got="another file", do=do)
        content = io.BytesIO(read_file(path, "a picture", most_bytes))
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            picture = Image.open(content, formats=["PNG"])
        with picture:
            if picture.size != size or picture.mode != ("L" if channels == 1 else "RGB"):
                raise BadInput(expected, got=f"{picture.size} {picture.mode} in all", do=do)
            return np.asarray(picture)
    except BadInput:
        raise
    except Exception as error:  # Pillow raises many kinds on broken content, and one of its own on sizes
        raise BadInput(expected, got=type(error).__name__, do=do) from None


Pixels = npt.NDArray[np.uint8]
SCALING = (
    "Each picture has its own brightness: its largest value is shown white and its smallest "
    "(or 0, if nothing is negative) black."
)


def displayed(images: Tensor) -> Pixels:
    """… × C × H × W in any range → bytes as SCALING says; one channel loses its axis, three go last."""
    # Halved against overflow of the difference; what is not finite (a broken file) must not warn.
    values = torch.nan_to_num(images.detach().to(torch.float64)) / 2
    flat = values.flatten(-3)
    low = flat.amin(-1).clamp(max=0)[..., None, None, None]
    high = flat.amax(-1)[..., None, None, None]
    span = high - low
    scaled = torch.where(span > 0, (values - low) / torch.where(span > 0, span, 1), 0.0)
    levels = (scaled * 255).round().to(torch.uint8)
    levels = levels.squeeze(-3) if levels.shape[-3] == 1 else levels.movedim(-3, -1)
    result: Pixels = levels.numpy()
    return result
