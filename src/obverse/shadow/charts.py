"""The curves of a survey over the layers of the net: SVG by hand, from numbers alone. Not for pictures.

Every coordinate is clipped to its frame, so that nothing a file says can leave it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from .._core import Progress, Record, explained, make_inside, read_record, record_text, text, write_text
from ..present import Axis, Pixels, axis_for, coordinate, displayed, png_bytes, read_png, save_png
from ._beside import WAYS, Beside, order
from ._survey import Surveyor
from .results import Survey

if TYPE_CHECKING:
    from PIL.Image import Image

WIDTH, HEIGHT = 250, 130  # of the frame
LEFT, RIGHT, TOP, BELOW = 44, 10, 8, 22
MOST_DOTS = 40  # points that are marked
MOST_TICKS = 6
Values = Sequence[float | None]


@dataclass(frozen=True)
class Panel:
    """One quantity over the layers: of the net, of the net with its weights shuffled, and of `others`, each
    with the name that the stylesheet has for it."""

    name: str  # of letters: part of an id
    title: str
    own: Values
    shuffled: Values
    axis: Axis
    others: tuple[tuple[str, Values], ...] = ()


def panels(survey: Survey) -> list[Panel]:
    """What can be drawn; a quantity that no layer has is left out."""
    made = []
    for name, title in (
        ("agreement", "same label, share of inputs"),
        ("error", "recovery error of h"),
        ("cosine", "cosine of input and shadow"),
    ):
        own, shuffled = (
            [getattr(getattr(layer, side), name) for layer in survey.layers] for side in ("own", "shuffled")
        )
        known = [value for value in (*own, *shuffled) if value is not None]
        if known:
            axis = axis_for(known, from_zero=True) if name == "error" else Axis(min(0.0, *known, 0.0), 1.0)
            made.append(Panel(name, title, own, shuffled, axis))
    return made


def kept_panels(survey: Survey) -> list[Panel]:
    """What is kept of an input over depth, beside all controls; empty for a file that does not say."""
    layers = survey.layers
    made = []
    for name, quantity, title in (
        ("kept-found", "found", f"found again by h, share of {survey.among}"),
        ("kept-pixels", "found_pixels", f"found again by pixels, share of {survey.among}"),
        ("kept-centred", "centred", "cosine without the mean input"),
        ("kept-error", "error", "recovery error of h"),
    ):
        own, shuffled, fresh = (
            [None if (one := getattr(layer, side)) is None else getattr(one, quantity) for layer in layers]
            for side in ("own", "shuffled", "untrained")
        )
        others: list[tuple[str, Values]] = [("untrained", fresh)]
        if quantity == "error":
            others += [
                ("unrelated", [layer.own.unrelated for layer in layers]),
                ("mean", [layer.own.varying for layer in layers]),
                ("blank", [layer.own.blank for layer in layers]),
            ]
        others = [(kind, values) for kind, values in others if any(value is not None for value in values)]
        every = [own, shuffled, *(values for _, values in others)]
        known = [value for values in every for value in values if value is not None]
        if not any(layer.own.found is not None for layer in layers) or not known:
            continue
        axis = axis_for(known, from_zero=True) if quantity == "error" else Axis(min(0.0, *known, 0.0), 1.0)
        made.append(Panel(name, title, own, shuffled, axis, tuple(others)))
    return made


def draw(panel: Panel) -> str:
    """One panel as an SVG that the page's stylesheet colours."""
    count, name = len(panel.own), f"plot-{panel.name}"
    parts = [
        f'<svg viewBox="{-LEFT} {-TOP} {LEFT + WIDTH + RIGHT} {TOP + HEIGHT + BELOW}" role="img" '
        f'aria-labelledby="{name}"><title id="{name}">{panel.title}, layer by layer</title>'
    ]
    for value, label in panel.axis.ticks(MOST_TICKS - 1):
        y = coordinate(_up(panel.axis, value))
        parts.append(
            f'<path class="axis" d="M0 {y}H{WIDTH}"/><text class="end" x="-6" y="{y}">{label}</text>'
        )
    for place in _marks(count):
        parts.append(f'<text x="{coordinate(_across(place, count))}" y="{HEIGHT + 15}">{place + 1}</text>')
    for kind, values in (*panel.others, ("shuffled", panel.shuffled), ("own", panel.own)):
        parts.append(_curve(kind, values, panel.axis))
    return "".join(parts) + "</svg>"


def _curve(kind: str, values: Values, axis: Axis) -> str:
    """A line through the values that are there, broken where one is missing, with dots if there are few."""
    count = len(values)
    line, dots, joined = "", "", False
    for place, value in enumerate(values):
        if value is None:
            joined = False
            continue
        point = f"{coordinate(_across(place, count))} {coordinate(_up(axis, value))}"
        line += f"{'L' if joined else 'M'}{point}"
        dots += f"M{point}h0"
        joined = True
    marked = f'<path class="dots {kind}" d="{dots}"/>' if count <= MOST_DOTS and dots else ""
    return f'<path class="curve {kind}" d="{line}"/>{marked}' if line else ""


def _across(place: int, count: int) -> float:
    return WIDTH * (0.5 if count == 1 else 0.04 + 0.92 * place / (count - 1))


def _up(axis: Axis, value: float) -> float:
    return HEIGHT * (1 - axis.share(value))


def _marks(count: int) -> list[int]:
    """Which layers are numbered: the first, the last, and some between that are far enough apart."""
    if count <= 8:
        return list(range(count))
    step = -(-(count - 1) // 6)
    apart = 0.75 * step
    inner = [place for place in range(step - 1, count, step) if apart <= place <= count - 1 - apart]
    return [0, *inner, count - 1]


FORMAT = 2
FOLDER, NAME, INPUT = "images", "shadow-pictures.json", "shadow-input.png"
RECORD = f"{FOLDER}/{NAME}"  # what makes pictures those of the result beside them
LONGEST = 64  # pixels a side; more would not be seen at the size of the page
MOST_EXAMPLES = 4  # beside each other in each column
MOST_ROWS = 40
ROWS = 12  # layers in the picture, unless told otherwise
BUDGET = 1_000_000  # bytes of pixels: noise does not compress, and the page should stay below 2 MB
MOST_BYTES = 2**20  # of one strip
MOST_NOTES = 50
_OURS = re.compile(r"shadow-(input|pictures|\d\d(-[a-z-]{1,30})?)\.(png|json)")


@dataclass(frozen=True)
class PictureRow(Record):
    """The ways down from one layer that were drawn, in the order of WAYS, and the labels that the net gives
    to the images of each; "" for none."""

    layer: str
    ways: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Pictures(Record):
    """Examples that were drawn: the label each has, and the one that the net gives it; "" for none. `steps`
    are those of the refined images; `missing` are sentences about what is not there."""

    channels: int
    height: int
    width: int
    given: tuple[str, ...]
    said: tuple[str, ...]
    rows: tuple[PictureRow, ...]
    steps: int
    missing: tuple[str, ...]

    checks: ClassVar[Any] = (
        ("1 or 3 channels", lambda one: one.channels in (1, 3)),
        (f"pictures of 1 to {LONGEST} pixels a side", lambda one: _fits(one.height) and _fits(one.width)),
        (f"1 to {MOST_EXAMPLES} examples", lambda one: 1 <= len(one.given) <= MOST_EXAMPLES),
        (f"at most {MOST_ROWS} rows", lambda one: len(one.rows) <= MOST_ROWS),
        ("known ways down, each once", lambda one: all(map(_in_order, one.rows))),
        ("a label for each picture", lambda one: _counts(one) == {len(one.given)}),
        (f"at most {MOST_NOTES} notes", lambda one: len(one.missing) <= MOST_NOTES),
    )


def _fits(side: int) -> bool:
    return 1 <= side <= LONGEST


def _in_order(row: PictureRow) -> bool:
    return len(row.labels) == len(row.ways) and row.ways == tuple(way.name for way in order(row.ways))


def _counts(one: Pictures) -> set[int]:
    return {len(one.said)} | {len(labels) for row in one.rows for labels in row.labels}


def why_not(shape: Sequence[int]) -> str:
    """Why inputs of this shape cannot be shown; empty where they can."""
    if len(shape) == 3 and shape[0] in (1, 3) and min(shape) > 0:
        return ""
    return f"inputs of shape {text.shape(shape)} are no images of 1 or 3 channels"


def spread(names: Sequence[str], most: int) -> tuple[str, ...]:
    """At most so many, evenly chosen, first and last among them."""
    if len(names) <= most:
        return tuple(names)
    if most < 2:
        return tuple(names[-1:])
    return tuple(names[round(place * (len(names) - 1) / (most - 1))] for place in range(most))


def layout(shape: Sequence[int], rows: int) -> tuple[int, int]:
    """(examples, longest side in pixels) for which the page has room; each row repeats the inputs."""
    channels, height, width = shape
    strips = rows * (len(WAYS) + 1) + 1
    factor = min(1.0, LONGEST / max(height, width))
    size = channels * max(1.0, height * factor) * max(1.0, width * factor)
    count = max(1, min(MOST_EXAMPLES, int(BUDGET / (size * strips))))
    shrink = min(1.0, (BUDGET / (size * strips * count)) ** 0.5)
    return count, max(1, int(factor * shrink * max(height, width)))


def choose_examples(y: Tensor, count: int) -> Tensor:
    """Row numbers: the first of each class, then the second of each, …; sorted by class."""
    turn = torch.zeros_like(y)
    for label in y.unique():
        turn[y == label] = torch.arange(int((y == label).sum()))
    chosen = sorted(range(len(y)), key=lambda row: (int(turn[row]), int(y[row])))[:count]
    return torch.tensor(sorted(chosen, key=lambda row: (int(y[row]), row)), dtype=torch.int64)


def write_pictures(
    folder: Path,
    surveyor: Surveyor,
    x: Tensor,
    y: Tensor,
    layers: Sequence[str],
    *,
    classes: Sequence[str],
    restore: Callable[[Tensor], Tensor] = lambda x: x,
    most: int = ROWS,
    progress: Progress | None = None,
) -> None:
    """Draw examples out of x from at most `most` of the layers, by every way down; `restore` turns inputs
    into pixels again.

    What an earlier survey left in the folder is removed, also where the inputs are no images.
    """
    images = folder / FOLDER
    make_inside(images)
    with explained(images):
        for old in images.iterdir():
            if _OURS.fullmatch(old.name):
                old.unlink()
    if why_not(x.shape[1:]):
        return
    names = spread(layers, most)
    count, side = layout(tuple(x.shape[1:]), len(names))
    chosen = choose_examples(y, count)
    x, y = x[chosen], y[chosen]

    def labels(inputs: Tensor) -> tuple[str, ...]:
        found = surveyor.labels(inputs)
        return ("",) * len(inputs) if found is None else tuple(_name(one, classes) for one in found.tolist())

    first = _strip(displayed(restore(x)), side)
    save_png(images / INPUT, first)
    beside = Beside(surveyor)
    rows = []
    for place, (layer, found) in enumerate(beside.draw(x, names), start=1):
        if progress:
            progress(place - 1, len(names), f"images of {layer}")
        for way, shadows in found.items():
            save_png(images / _file(place, way), _strip(displayed(restore(shadows)), side))
        rows.append(PictureRow(layer, tuple(found), tuple(labels(shadows) for shadows in found.values())))
    given = tuple(_name(one, classes) for one in y.tolist())
    channels = 1 if first.mode == "L" else 3
    width = first.width // len(x)
    missing = tuple(beside.missing[:MOST_NOTES])
    told = Pictures(channels, first.height, width, given, labels(x), tuple(rows), beside.steps, missing)
    write_text(images / NAME, record_text(told, FORMAT))


def _name(label: int, classes: Sequence[str]) -> str:
    return classes[label] if label < len(classes) else str(label)


def _file(place: int, way: str) -> str:
    return f"shadow-{place:02d}-{way}.png"


def _strip(pixels: Pixels, longest: int) -> Image:
    """Images side by side, made smaller where they are larger than that."""
    from PIL import Image

    pictures = [Image.fromarray(one) for one in pixels]
    width, height = pictures[0].size
    factor = min(1.0, longest / max(width, height))
    size = (max(1, round(width * factor)), max(1, round(height * factor)))
    strip = Image.new(pictures[0].mode, (size[0] * len(pictures), size[1]))
    for place, picture in enumerate(pictures):
        small = picture if factor == 1 else picture.resize(size, Image.Resampling.BOX)
        strip.paste(small, (place * size[0], 0))
    return strip


@dataclass(frozen=True)
class Strips:
    """What was read back: each strip as its pictures, PNGs of their own."""

    told: Pictures
    inputs: tuple[bytes, ...]
    rows: tuple[tuple[tuple[bytes, ...], ...], ...]  # of each row its ways, in the order of the row


def read_pictures(folder: Path) -> Strips | None:
    """The pictures in the directory of a survey; None where there are none, an error if they are broken."""
    images = folder / FOLDER
    if images.is_symlink() or not (images / NAME).is_file():
        return None
    told = read_record(images / NAME, Pictures, "list of pictures", FORMAT)

    def read(name: str) -> tuple[bytes, ...]:
        return _pictures(images / name, told)

    rows = [
        tuple(read(_file(place, way)) for way in row.ways) for place, row in enumerate(told.rows, start=1)
    ]
    return Strips(told, read(INPUT), tuple(rows))


def _pictures(path: Path, told: Pictures) -> tuple[bytes, ...]:
    """The pictures of a strip, encoded anew: nothing but pixels of the expected number gets through."""
    count = len(told.given)
    expected = f"a strip of {count} pictures of {told.width}×{told.height} pixels in {path}"
    size = (count * told.width, told.height)
    pixels = read_png(path, size, told.channels, MOST_BYTES, expected, "make the survey again")
    parts = np.split(pixels, count, axis=1)
    return tuple(png_bytes(np.ascontiguousarray(part)) for part in parts)
