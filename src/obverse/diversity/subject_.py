"""What `obverse diversity` is pointed at: samples or a generator's run, and the data to compare with.

Not for measuring. A run of a generator brings its own data along, unless others are asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from .._core.errors import BadInput, ObverseError

if TYPE_CHECKING:
    from torch import Tensor

    from ._interpolation import Decode
    from ._sources import Source

SPLITS = ("train", "test")
NOTHING = "none"


@dataclass(frozen=True, eq=False)
class Given:
    """Pictures to compare with, with their labels where they have some."""

    name: str
    x: Tensor
    y: Tensor | None = None
    classes: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Subject:
    """Where samples come from; `decode` and `latent` of a generator, None of mere samples."""

    source: Source
    decode: Decode | None
    latent: int | None
    train: Given | None
    real: Given | None
    missing: tuple[str, ...]  # why data that a run names is not there


def open_subject(
    source: str, train: str | None = None, real: str | None = None, data_root: str | None = None
) -> Subject:
    """SOURCE as the command line names it, with --train and --real; `none` for neither."""
    from ..training._rundir import holds_generator
    from ._sources import open_source

    path = Path(source).expanduser()
    asked = {"train": train, "test": real}
    given = {
        split: open_data(text, split, data_root)
        for split, text in asked.items()
        if text is not None and text != NOTHING
    }
    if not holds_generator(path):
        if (path / "config.json").is_file():
            raise BadInput(
                "a run of a generator, samples in a .npy or .npz file, or a folder of pictures",
                got=f"{path}, a run of another kind",
                do="make one with: obverse generate train",
            )
        whole = path.absolute()
        opened = open_source(path, name=whole.name if path.is_dir() else whole.stem)
        return Subject(opened, None, None, given.get("train"), given.get("test"), ())
    from ..training._generators.fit import load_generator

    net = load_generator(path)
    own, missing = _own_data(path, data_root, [split for split, text in asked.items() if text is None])
    given = own | given
    opened = open_source(net.sample, name=path.absolute().name)
    return Subject(opened, net.decode, net.latent, given.get("train"), given.get("test"), missing)


def _own_data(path: Path, root: str | None, splits: list[str]) -> tuple[dict[str, Given], tuple[str, ...]]:
    """The training points of a run and those it was tested on; or why they are not there."""
    from ..data import load
    from ..training._classify import split
    from ..training._rundir import read_generator_run
    from ..training._settings import Settings

    if not splits:
        return {}, ()
    settings = read_generator_run(path).settings
    try:
        data = load(settings.data, root or settings.data_root)
        like = Settings(train_size=settings.train_size, validation=settings.validation, seed=settings.seed)
        train_x, train_y, test_x, test_y = split(like, data)
    except ObverseError:  # its sentence names folders of this machine; --train DATA brings it to light
        name = PurePath(settings.data).name
        return {}, (f"{name}, which the run was trained on, could not be read: give --train and --real",)
    found = {
        "train": Given(f"{data.name}:train", train_x, train_y, data.classes),
        "test": Given(f"{data.name}:test", test_x, test_y, data.classes),
    }
    return {name: found[name] for name in splits}, ()


def open_data(text: str, usual: str, root: str | None = None) -> Given:
    """Pictures by name, as mnist:test; or out of a folder, a .npy or .npz file, with :train or :test for one
    that holds a data set. `usual` is the split of a name without one."""
    from ..data import NAMES, load
    from ..data._unlabelled import load_unlabelled

    base, colon, split = text.rpartition(":")
    if not colon or split not in SPLITS:
        base, split = text, ""
    path = Path(base).expanduser()
    if base in NAMES or (split and path.exists()):
        data = load(base, root)
        chosen = split or usual
        train = chosen == "train"
        x, y = (data.train_x, data.train_y) if train else (data.test_x, data.test_y)
        return Given(f"{data.name}:{chosen}", x, y, data.classes)
    if not path.exists():
        raise BadInput(
            f"a folder of pictures, a .npy or .npz file, or one of {', '.join(NAMES)} with :train or :test",
            got=repr(text),
            do="check the spelling",
        )
    found = load_unlabelled(path)
    return Given(path.name or path.absolute().name, found.x, broken=found.broken)
