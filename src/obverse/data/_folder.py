"""Reads a folder of images, one sub-folder a class. Not for resizing: all images must have one size."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from .._core import BadInput
from ._dataset import Dataset, check_room, pixels, split

if TYPE_CHECKING:
    from PIL.Image import Image

# Raster formats that Pillow decodes by itself; others (EPS) would start a program, or hold several frames.
FORMATS = ("PNG", "JPEG", "BMP", "PPM", "TIFF", "WEBP")
GREY = {"1", "L", "LA"}
_COLOUR = {"P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr"}
# Far above any image a net is fed whole; checked on the header, before pixels are decoded.
MAX_PIXELS = 4096 * 4096

_Sample = tuple[Path, int]


def load_folder(path: Path) -> Dataset:
    """`path/train/<class>/…` and `path/test/<class>/…`, or `path/<class>/…`, split 80/20 with a fixed seed.

    Grey if every image is grey, RGB otherwise; transparency is dropped. Names that start with a dot, and
    loose files beside the class folders, are not looked at.
    """
    if (path / "train").is_dir() and (path / "test").is_dir():
        classes = _classes(path / "train")
        extra = sorted(set(_classes(path / "test")) - set(classes))
        if extra:
            raise BadInput(
                f"only classes of {path / 'train'} in {path / 'test'}",
                got=", ".join(extra),
                do="add training images of these classes or remove the folders",
            )
        train, test = _samples(path / "train", classes), _samples(path / "test", classes)
        x, y = _read(train + test)
        held = len(train)
        return Dataset(path.name, x[:held], y[:held], x[held:], y[held:], classes)
    classes = _classes(path)
    return split(path.name, *_read(_samples(path, classes)), classes)


def _classes(path: Path) -> tuple[str, ...]:
    names = sorted(entry.name for entry in path.iterdir() if entry.is_dir() and entry.name[0] != ".")
    if not names:
        raise BadInput(
            f"a sub-folder for each class in {path}", got="none", do="sort the images into <class>/<image>"
        )
    return tuple(names)


def _samples(path: Path, classes: tuple[str, ...]) -> list[_Sample]:
    samples: list[_Sample] = []
    for label, name in enumerate(classes):
        if not (path / name).is_dir():
            continue  # a class of train that test has no example of
        files = sorted(entry for entry in (path / name).iterdir() if entry.name[0] != ".")
        if not files:
            raise BadInput(f"images in {path / name}", got="none", do="add some or remove the folder")
        samples += [(file, label) for file in files]
    return samples


def _read(samples: list[_Sample]) -> tuple[torch.Tensor, torch.Tensor]:
    """Two passes: the headers first, so that sizes are known and agreed before pixels are allocated."""
    first: tuple[int, int] | None = None
    grey = True
    for file, _ in samples:
        size, mode = picture_header(file)
        first = first or size
        if size != first:
            raise BadInput(
                f"images of one size, {first[0]}×{first[1]} as {samples[0][0]}",
                got=f"{size[0]}×{size[1]} in {file}",
                do="resize or remove it",
            )
        grey = grey and mode in GREY
    assert first is not None  # _classes and _samples let no empty folder pass
    width, height = first
    channels = 1 if grey else 3
    check_room(len(samples) * channels * height * width, str(samples[0][0].parents[1]))
    levels = np.empty((len(samples), height, width, channels), np.uint8)
    for row, (file, _) in zip(levels, samples, strict=True):
        row[:] = picture_pixels(file, "L" if grey else "RGB").reshape(row.shape)
    x = pixels(np.ascontiguousarray(levels.transpose(0, 3, 1, 2)))
    return x, torch.tensor([label for _, label in samples], dtype=torch.int64)


def picture_header(file: Path) -> tuple[tuple[int, int], str]:
    with _open(file) as image:
        size, mode = image.size, image.mode
    if size[0] * size[1] > MAX_PIXELS:
        raise _bad(file, f"at most {MAX_PIXELS:,} pixels", f"{size[0]}×{size[1]}")
    if mode not in GREY | _COLOUR:
        raise _bad(file, "8-bit grey or colour", f"mode {mode}")
    return size, mode


def picture_pixels(file: Path, mode: str) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    try:
        with _open(file) as image:
            return np.asarray(image.convert(mode), np.uint8)
    except BadInput:
        raise
    except Exception as error:  # Pillow's decoders raise many kinds on broken content
        raise _bad(file, "an image that can be decoded", error) from error


def _open(file: Path) -> Image:
    from PIL import Image

    if not file.is_file():
        raise _bad(file, "images only", "a folder" if file.is_dir() else "no file")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            return Image.open(file, formats=FORMATS)
    except Exception as error:
        raise _bad(file, f"an image ({', '.join(FORMATS)})", error) from error


def _bad(file: Path, expected: str, got: object) -> BadInput:
    return BadInput(f"{expected}, as {file}", got=got, do="convert or remove it")
