"""Finds a data set by name or path and returns it whole. Not for how its files are fetched or laid out."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import torch

from .._core import NAMES, BadInput, NoSuchFile, cache_folder, looks_like_a_path
from ._cifar import read_cifar
from ._dataset import Dataset, pixels, split
from ._fetch import absent, ensure, locate
from ._folder import load_folder
from ._idx import read_idx
from ._npz import load_npz
from ._sources import KNOWN, MNIST_CLASSES, Known


def load(
    name_or_path: str | os.PathLike[str],
    root: str | os.PathLike[str] | None = None,
    *,
    exact: bool = False,
) -> Dataset:
    """A data set by name (see `NAMES`), or from a folder of images or an .npz file.

    Known data sets live in `root/<name>` and are downloaded there once. `root` is, in this order: the
    argument, the environment variable OBVERSE_DATA, the user's cache folder. `exact` keeps the numbers of
    an .npz in float64; otherwise inputs are float32.

    >>> print(load("digits"))
    digits: 1,297 train + 500 test, 1×8×8, 10 classes
    """
    if name_or_path == "digits":
        return _digits()
    if isinstance(name_or_path, str) and name_or_path in KNOWN:
        return _known(name_or_path, data_folder(root) / name_or_path)
    given = os.fspath(name_or_path)
    path = _absolute(given)
    try:
        if given and path.is_dir():
            return load_folder(path)
        if path.suffix == ".npz" and path.is_file():
            return load_npz(path, exact)
    except OSError as error:
        raise BadInput(f"a readable {path}", got=error, do="check the permissions") from error
    if looks_like_a_path(given) and not path.exists():
        raise NoSuchFile(given)
    raise BadInput(
        f"one of {', '.join(NAMES)}, a folder of images or an .npz file",
        got=repr(given),
        do="convert it with numpy.savez(path, x=…, y=…)"
        if path.exists()
        else f"check the spelling: there is no {path} either",
    )


def data_folder(root: str | os.PathLike[str] | None = None) -> Path:
    """Where known data sets are kept; nothing is made there."""
    place = os.fspath(root) if root is not None else os.environ.get("OBVERSE_DATA")
    if place:
        return _absolute(place)
    return cache_folder()


def present_sets(root: str | os.PathLike[str] | None = None) -> tuple[str, ...]:
    """The names of the data sets that are there already; the digits always are."""
    folder = data_folder(root)
    return ("digits", *(name for name, known in KNOWN.items() if not absent(known.files, folder / name)))


def _absolute(place: str) -> Path:
    return Path(os.path.expanduser(place)).absolute()


def _digits() -> Dataset:
    """scikit-learn's 1,797 digits of 8 × 8; 500 of them, always the same, are for testing."""
    from sklearn.datasets import load_digits

    found = load_digits()
    x = torch.from_numpy(found.images.astype(np.float32)).div_(16).unsqueeze(1)
    return split("digits", x, torch.from_numpy(found.target.astype(np.int64)), MNIST_CLASSES, test=500)


def _known(name: str, folder: Path) -> Dataset:
    known = KNOWN[name]
    ensure(name, known, folder)
    read = _read_idx_set if known.format == "idx" else _read_cifar_set
    return read(name, known, [locate(folder, file) for file in known.files])


def _read_idx_set(name: str, known: Known, paths: list[Path]) -> Dataset:
    train_x, test_x = (
        pixels(read_idx(path, 3, (count, 28, 28))).unsqueeze(1)
        for path, count in ((paths[0], known.train), (paths[2], known.test))
    )
    labels = []
    for path, count in ((paths[1], known.train), (paths[3], known.test)):
        y = read_idx(path, 1, (count,))
        if y.max() >= len(known.classes):
            raise BadInput(
                f"labels 0 to {len(known.classes) - 1} in {path}",
                got=y.max(),
                do="delete the file and load again",
            )
        labels.append(torch.from_numpy(y).to(torch.int64))
    return Dataset(name, train_x, labels[0], test_x, labels[1], known.classes)


def _read_cifar_set(name: str, known: Known, paths: list[Path]) -> Dataset:
    """The last file is the test set, those before it the training set."""
    train_x, train_y = _cifar_part(known, paths[:-1], known.train)
    test_x, test_y = _cifar_part(known, paths[-1:], known.test)
    return Dataset(name, train_x, train_y, test_x, test_y, known.classes)


def _cifar_part(known: Known, paths: list[Path], count: int) -> tuple[torch.Tensor, torch.Tensor]:
    x, y = read_cifar(paths, known.label_bytes, len(known.classes))
    if len(y) != count:
        raise BadInput(
            f"{count:,} images in {', '.join(str(path) for path in paths)}",
            got=f"{len(y):,}",
            do="delete the files and load again",
        )
    return pixels(x), torch.from_numpy(y).to(torch.int64)
