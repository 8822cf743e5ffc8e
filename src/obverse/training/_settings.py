"""The settings of a training run: one frozen value, each default written once, with its reason.

Not for reading flags: see cli. Settings come from keyword arguments, a TOML file or a run's config.json,
and what is not understood is refused.
"""

from __future__ import annotations

import sys
import tomllib
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import pairwise
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Self, get_args, get_origin, get_type_hints

from .._core import (
    DEVICES,
    BadInput,
    Control,
    Init,
    Labels,
    Net,
    NoSuchFile,
    Optimizer,
    Precision,
    is_device_name,
    printable,
    read_file,
)

MAX_PLAN = 2**20  # bytes of a file of settings, or of the plan of a comparison or a search

# Names that settings had before they took PyTorch's; files and flags with these still work.
RENAMED = {"rate": "lr", "decay": "weight_decay", "drops": "milestones", "batch": "batch_size"}
_noted: set[str] = set()  # old names that a note was printed for


def with_new_names(values: Mapping[str, Any], renamed: Mapping[str, str], source: str) -> dict[str, Any]:
    """The same values under today's names, in their order. Prints one note for each old name, once."""
    old = [name for name in values if name in renamed]
    for name in old:
        if renamed[name] in values:
            raise BadInput(
                f"either {renamed[name]} or its old name {name} in {source}", got="both", do="keep one"
            )
    new = [name for name in old if name not in _noted]
    if new:
        _noted.update(new)
        pairs = ", ".join(f"{name} is now {renamed[name]}" for name in new)
        sys.stderr.write(f"note: old names of settings in {printable(source)}: {pairs}\n")
    return {renamed.get(name, name): value for name, value in values.items()}


class FromMapping:
    """What settings of every kind share: from a mapping with checks, and back for JSON."""

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return tuple(get_type_hints(cls))

    @classmethod
    def tuples(cls) -> tuple[str, ...]:
        """The settings that are lists of whole numbers."""
        return tuple(name for name, hint in get_type_hints(cls).items() if get_origin(hint) is tuple)

    def to_dict(self) -> dict[str, Any]:
        values = {name: getattr(self, name) for name in self.names()}
        return values | {name: list(values[name]) for name in self.tuples()}

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any], source: str) -> Self:
        """Settings from parsed TOML or JSON; unknown names and wrong types are refused by name."""
        hints = get_type_hints(cls)
        values = with_new_names(values, {old: new for old, new in RENAMED.items() if new in hints}, source)
        for name, value in values.items():
            if name not in hints:
                near = get_close_matches(name, hints, n=1)
                raise BadInput(
                    f"a setting of obverse in {source}",
                    got=repr(name),
                    do=f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(hints)}",
                )
            if not _fits(value, hints[name]):
                raise BadInput(
                    f"{name} to be {_spell(hints[name])} in {source}", got=repr(value), do="correct its value"
                )
        return cls(**values)


@dataclass(frozen=True)
class Settings(FromMapping):
    """Everything that decides the numbers of a run.

    `weight` is a number once this is made: 1 for the "mlp", 0 for "allconv", unless it was given.
    """

    data: str = "digits"  # embedded, so that everything works without a download
    data_root: str | None = None
    train_size: int | None = None  # None: all training points; else so many, drawn with the seed
    balanced: bool = False  # the same number of points of each class among those drawn
    validation: int = 0  # so many training points are held out and take the place of the test set

    net: Net = "mlp"
    hidden: tuple[int, ...] = (500, 500)  # two hidden layers as in the paper, a tenth of its width
    dropout: float = 0.0
    uniform_bias: bool = False
    stem: tuple[int, ...] = (16, 3, 1)  # these six are of allconv, and the paper's net for CIFAR
    widths: tuple[int, ...] = (64, 128, 256)
    blocks: int = 9
    norm: bool = False
    shortcut: bool = True
    init: Init = "identity"

    epochs: int = 25
    batch_size: int = 100  # the paper's
    unlabelled: int = 0  # so many of the points that train_size leaves out join each step
    optimizer: Optimizer = "sgd"  # the paper's
    lr: float = 0.05
    momentum: float = 0.9
    augment: bool = False  # pad, crop and mirror images: right for photographs, wrong for digits
    weight_decay: float = 0.0  # none, so that the weights are those of the loss alone
    milestones: tuple[int, ...] = ()  # steps after which lr is divided by ten

    weight: float = None  # type: ignore[assignment]  # by the net; 0 is plain backpropagation
    layer: str | None = None  # None: the highest hidden layer, the paper's h̃2
    keep: float = 1.0
    smooth: bool = False
    match_norm: bool = True
    labels: Labels = "given"
    normalize: bool = False
    control: Control | None = None
    noise: float = 0.5
    denoise: float = 0.0

    device: str = "auto"  # a GPU where there is one; what it was stands in the run's environment
    precision: Precision = "float32"  # bf16 and fp16 halve the bits of products

    seed: int = 0
    evaluate_every: int = 1  # epochs
    checkpoint_every: int | None = None  # steps; None: at the end of each epoch

    def __post_init__(self) -> None:
        for name in TUPLES:
            value = getattr(self, name)  # hidden=50: one of them
            object.__setattr__(self, name, (value,) if isinstance(value, int) else tuple(value))
        if self.weight is None:
            object.__setattr__(self, "weight", float(self.net == "mlp"))
        check(f"net out of {', '.join(get_args(Net))}", self.net, self.net in get_args(Net))
        check("train_size ≥ 1", self.train_size, self.train_size is None or self.train_size >= 1)
        check("validation ≥ 0", self.validation, self.validation >= 0)
        check("hidden widths ≥ 1", self.hidden, all(width >= 1 for width in self.hidden))
        check("dropout in [0, 1)", self.dropout, 0 <= self.dropout < 1)
        check("epochs ≥ 1", self.epochs, self.epochs >= 1)
        check("batch_size ≥ 1", self.batch_size, self.batch_size >= 1)
        check("unlabelled ≥ 0", self.unlabelled, self.unlabelled >= 0)
        optimizers = get_args(Optimizer)
        check(f"optimizer out of {', '.join(optimizers)}", self.optimizer, self.optimizer in optimizers)
        check("lr > 0", self.lr, 0 < self.lr < float("inf"))
        check("momentum in [0, 1)", self.momentum, 0 <= self.momentum < 1)
        check("weight_decay ≥ 0", self.weight_decay, 0 <= self.weight_decay < float("inf"))
        rising = all(first < second for first, second in pairwise((0, *self.milestones)))
        check("milestones as rising numbers of steps, from 1", self.milestones, rising)
        check("weight ≥ 0", self.weight, 0 <= self.weight < float("inf"))
        check("keep in (0, 1]", self.keep, 0 < self.keep <= 1)
        check("noise ≥ 0", self.noise, 0 <= self.noise < float("inf"))
        check("denoise ≥ 0", self.denoise, 0 <= self.denoise < float("inf"))
        check(f"device as {DEVICES}", self.device, is_device_name(self.device))
        precisions = get_args(Precision)
        check(f"precision out of {', '.join(precisions)}", self.precision, self.precision in precisions)
        check("seed ≥ 0", self.seed, self.seed >= 0)
        check("evaluate_every ≥ 1", self.evaluate_every, self.evaluate_every >= 1)
        every = self.checkpoint_every
        check("checkpoint_every ≥ 1", every, every is None or every >= 1)

    @property
    def has_shadows(self) -> bool:
        """Whether a run measures its shadows. Plain training of allconv does not: they cost more than it."""
        return self.net == "mlp" or self.weight > 0

    def lr_at(self, step: int) -> float:
        """The learning rate of a step, counted from 0."""
        return self.lr / 10.0 ** bisect_right(self.milestones, step)


# What only one net looks at.
OF_NET: dict[Net, tuple[str, ...]] = {
    "mlp": ("hidden", "dropout", "uniform_bias"),
    "allconv": ("stem", "widths", "blocks", "norm", "shortcut", "init"),
}
TUPLES = Settings.tuples()
_LARGEST = sys.float_info.max


def read_toml(path: Path) -> dict[str, Any]:
    """The table of a TOML settings file, unchecked; Settings.from_mapping checks it."""
    try:
        return tomllib.loads(read_file(path, "settings", MAX_PLAN).decode())
    except BadInput:
        raise
    except FileNotFoundError:
        raise NoSuchFile(path) from None
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(f"TOML in {path}", got=str(error), do="correct the file") from None


def foreign(settings: Settings) -> dict[str, Net]:
    """The settings that the net does not look at, with the net that does."""
    return {name: net for net, names in OF_NET.items() if net != settings.net for name in names}


def refuse_foreign(settings: Settings) -> None:
    """An error for what would change nothing."""
    default = Settings()
    for name, net in foreign(settings).items():
        value = getattr(settings, name)
        if value != getattr(default, name):
            raise BadInput(
                f"no {name} for the net {settings.net!r}",
                got=f"{name} {value}",
                do=f"leave it out, or set net to {net!r}",
            )


def setting_names() -> tuple[str, ...]:
    return Settings.names()


def check(condition: str, got: object, holds: bool) -> None:
    """An error for a setting out of its range."""
    if not holds:
        raise BadInput(condition, got=got, do="correct this setting")


def _fits(value: Any, hint: Any) -> bool:
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        return value in parts
    if origin is UnionType or (parts and NoneType in parts):
        return any(_fits(value, part) for part in parts)
    if origin is tuple:
        return isinstance(value, list | tuple) and all(_fits(item, parts[0]) for item in value)
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LARGEST
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63
    return isinstance(value, hint)


def _spell(hint: Any) -> str:
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        return " or ".join(repr(part) for part in parts)
    if origin is tuple:
        return "a list of whole numbers"
    if parts:
        return " or ".join(_spell(part) for part in parts)
    names = {
        bool: "true or false",
        int: "a whole number",
        float: "a number",
        str: "text",
        NoneType: "nothing",
    }
    return names.get(hint, str(hint))
