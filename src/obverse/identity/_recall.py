"""What a memorizing net is worth, measured: margins, Lipschitz constants, test inputs, a walk in the plane.

All that `obverse memorize` writes and its page shows. Not for building the net: see memorize.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from .._core import BadInput, Progress, Record, read_record, versions
from ..nets import ResidualMemory
from ._lipschitz import local_lipschitz, log10_lipschitz_bound
from ._memorize import QUANTILES, ROWS, Memorized, NotMemorized, export, memorize, quantiles
from ._points import checked, first_equal
from ._walk import Walk, walk
from ._words import outlook, verdict

FORMAT = 1
NAME = "memorize.json"
NET = "memory.safetensors"
LABELS = ("own", "random")
TYPES = ("float64", "float32")
SAMPLED = 500  # points at which the net is differentiated
LONGEST, LARGEST = 1e9, 1e12  # seconds and log₁₀ of a bound, in a file
WIDEST = 1000  # n·k numbers in each of three matrices


def _is_share(value: float | None) -> bool:
    return value is None or 0 <= value <= 1


def _is_sound(facts: Memorized | None) -> bool:
    """What divisions and sentences rely on."""
    return facts is None or (
        facts.points >= 1
        and 0 <= facts.errors <= facts.points
        and facts.budget >= 1
        and facts.distinct >= 1
        and len(facts.margins) == len(QUANTILES)
    )


@dataclass(frozen=True)
class Recall(Record):
    """A memorizing net, and what was measured on it.

    `lipschitz`: QUANTILES of ‖∂ scores/∂ input‖₂ over `sampled` of the points. `chance`: the share of the
    largest class of the test labels. `nearest_accuracy`: of giving a test input the label of the training
    point that is nearest to it behind the projection. With random labels there is nothing to test.
    """

    data: str
    labels: Literal["own", "random"]
    asked_points: int | None  # drawn with the seed; None: all
    asked_width: int | None  # None: chosen
    seed: int
    dtype: Literal["float64", "float32"]  # of the net that is kept
    seconds: float  # building it and checking every point
    facts: Memorized
    float32: Memorized | None
    float32_refused: str  # why it is None; "": was not asked for
    test_points: int
    test_accuracy: float | None
    chance: float | None
    nearest_accuracy: float | None
    sampled: int
    lipschitz: tuple[float, ...]
    log10_bound: float  # of what no change of the scores can exceed
    walk: Walk | None  # None where two dimensions do not tell the points apart
    versions: dict[str, str]

    checks: ClassVar[Any] = (
        (
            "a time and a bound that can be read",
            lambda one: 0 <= one.seconds <= LONGEST and abs(one.log10_bound) <= LARGEST,
        ),
        ("sound facts", lambda one: _is_sound(one.facts) and _is_sound(one.float32)),
        (
            f"{len(QUANTILES)} quantiles",
            lambda one: len(one.lipschitz) == len(QUANTILES),
        ),
        (
            "shares from 0 to 1",
            lambda one: all(map(_is_share, (one.test_accuracy, one.chance, one.nearest_accuracy))),
        ),
        (
            "accuracies of test inputs, all or none",
            lambda one: (
                len({value is None for value in (one.test_accuracy, one.chance, one.nearest_accuracy)}) == 1
                and (one.test_accuracy is None or one.test_points >= 1)
            ),
        ),
    )

    def __str__(self) -> str:
        return f"{verdict(self)} {outlook(self)}"


def read_recall(path: Path) -> Recall:
    """The record in a file, or in the memorize.json of a directory."""
    return read_record(path / NAME if path.is_dir() else path, Recall, "memorized data set", FORMAT)


def recall(
    x: Any,
    y: Any,
    test_x: Any,
    test_y: Any,
    *,
    classes: int | None = None,
    data: str = "",
    labels: str = "own",
    points: int | None = None,
    width: int | None = None,
    float32: bool = True,
    dtype: str = "float64",
    seed: int = 0,
    numbers: Tensor | None = None,
    progress: Progress | None = None,
) -> tuple[ResidualMemory, Recall]:
    """Memorize (x, y) and measure the net; `test_x`, `test_y` may be empty.

    `points` of the rows are drawn with the seed. `labels="random"` puts labels of `random_labels` in place of
    y. `float32` also builds and checks the copy in float32; `dtype` says which of the two is returned.
    `numbers` are what the rows are called.
    """
    x, y, r = checked(x, y, classes)
    _check_settings(len(x), labels, points, width, float32, dtype, seed)
    streams = _generators(seed)
    numbers = torch.arange(len(x)) if numbers is None else numbers
    if points is not None:
        rows = torch.randperm(len(x), generator=streams["points"])[:points].sort().values
        x, y, numbers = x[rows], y[rows], numbers[rows]
    if labels == "random":
        y = random_labels(x, r, streams["labels"])
    began = perf_counter()
    net = memorize(
        x,
        y,
        classes=r,
        width=width,
        generator=torch.Generator().manual_seed(seed),
        numbers=numbers,
        progress=progress,
    )
    seconds = perf_counter() - began
    copy, refused = None, ""
    if float32:
        try:
            copy = export(net, x, y, progress=progress)
        except NotMemorized as error:
            if dtype == "float32":
                raise
            refused = str(error)
    sample = torch.randperm(len(x), generator=streams["sample"])[:SAMPLED]
    tested = _tested(net, x, y, test_x, test_y, progress) if labels == "own" else (None, None, None)
    found = Recall(
        data=data,
        labels="own" if labels == "own" else "random",
        asked_points=points,
        asked_width=width,
        seed=seed,
        dtype="float64" if dtype == "float64" else "float32",
        seconds=seconds,
        facts=_facts(net),
        float32=None if copy is None else _facts(copy),
        float32_refused=refused,
        test_points=len(test_y) if labels == "own" else 0,
        test_accuracy=tested[0],
        chance=tested[1],
        nearest_accuracy=tested[2],
        sampled=len(sample),
        lipschitz=quantiles(local_lipschitz(net, x[sample])),
        log10_bound=log10_lipschitz_bound(net),
        walk=walk(x, y, streams["walk"]),
        versions=versions(),
    )
    if progress:
        progress(len(x), len(x), "done")
    return copy if copy is not None and dtype == "float32" else net, found


def _check_settings(
    rows: int, labels: str, points: int | None, width: int | None, float32: bool, dtype: str, seed: int
) -> None:
    if labels not in LABELS:
        raise BadInput(f"labels out of {', '.join(LABELS)}", got=repr(labels), do="choose one of these")
    if points is not None and (type(points) is not int or not 1 <= points <= rows):
        raise BadInput(f"from 1 to {rows:,} points", got=repr(points), do="leave it out for all of them")
    if width is not None and (type(width) is not int or not 1 <= width <= WIDEST):
        raise BadInput(f"a width from 1 to {WIDEST:,}", got=repr(width), do="leave it out to have it chosen")
    if dtype not in TYPES:
        raise BadInput(f"a dtype out of {', '.join(TYPES)}", got=repr(dtype), do="choose one of these")
    if dtype == "float32" and not float32:
        raise BadInput("a check of the float32 net that is kept", got="none", do="ask for it, or for float64")
    if type(seed) is not int or not 0 <= seed < 2**63:
        raise BadInput("a seed from 0 to 2⁶³ − 1", got=repr(seed), do="use another")


def _generators(seed: int) -> dict[str, torch.Generator]:
    """For what is drawn beside the net, one each, so that none of it depends on whether another was."""
    seeds = torch.randint(2**62, (4,), generator=torch.Generator().manual_seed(seed)).tolist()
    names = ("points", "labels", "sample", "walk")
    return {name: torch.Generator().manual_seed(one) for name, one in zip(names, seeds, strict=True)}


def random_labels(x: Tensor, classes: int, generator: torch.Generator) -> Tensor:
    """A label for each row, uniform; equal rows have equal labels."""
    return torch.randint(classes, (len(x),), generator=generator)[first_equal(x)]


def _facts(net: ResidualMemory) -> Memorized:
    assert isinstance(net.facts, Memorized)
    return net.facts


@torch.no_grad()
def _tested(
    net: ResidualMemory, x: Tensor, y: Tensor, test_x: Any, test_y: Any, progress: Progress | None
) -> tuple[float | None, float | None, float | None]:
    """Accuracy, chance and accuracy of the nearest training point; none without test inputs."""
    if len(test_y) == 0:
        return None, None, None
    test_x, test_y, _ = checked(test_x, test_y, None)
    right = sum(
        int((net(part).argmax(1) == labels).sum())
        for part, labels in _parts(test_x, test_y, "test inputs", progress)
    )
    nearest = nearest_labels(net, x, y, test_x, progress=progress)
    count = len(test_y)
    return (
        right / count,
        int(test_y.bincount().max()) / count,
        int((nearest == test_y).sum()) / count,
    )


@torch.no_grad()
def nearest_labels(
    net: ResidualMemory, x: Tensor, y: Tensor, test_x: Tensor, *, progress: Progress | None = None
) -> Tensor:
    """The label of the training point that is nearest behind the net's projection, for each test input."""
    z = torch.cat([net.project(part) for part in x.split(ROWS)])
    half = z.square().sum(1) / 2
    rows = max(1, ROWS * ROWS // len(z))
    found = []
    for start in range(0, len(test_x), rows):
        if progress:
            progress(start, len(test_x), "nearest points")
        # the smallest ‖a − b‖² has the largest ⟨a, b⟩ − ½‖b‖²
        found.append((net.project(test_x[start : start + rows]) @ z.T - half).argmax(1))
    return y[torch.cat(found)]


def _parts(x: Tensor, y: Tensor, what: str, progress: Progress | None) -> Iterator[tuple[Tensor, Tensor]]:
    for number, (part, labels) in enumerate(zip(x.split(ROWS), y.split(ROWS), strict=True)):
        if progress:
            progress(number * ROWS, len(x), what)
        yield part, labels
