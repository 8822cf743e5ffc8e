"""The figures of a diversity test: values with their intervals on one axis. SVG by hand, from numbers alone.

Every coordinate is clipped to its frame, so that nothing a file says can leave it. Not for words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor

from .._core import Record, explained, make_inside, read_record, record_text, write_text
from ..present import Axis, Pixels, coordinate, png_bytes, read_png, save_png
from ._measure import Pictures

if TYPE_CHECKING:
    from PIL.Image import Image

LENGTH, ROW = 340, 44  # of the axis, and of a line with its words above
LEFT, RIGHT, TOP, BELOW = 8, 8, 4, 26
TICKS = 5


class Line(NamedTuple):
    """A value, an interval, or a limit on one side; `words` and `said` are never text from a file."""

    words: str
    said: str
    kind: str  # of letters: a class of the stylesheet
    value: float | None = None
    low: float | None = None
    high: float | None = None
    open_low: bool = False  # the interval has no lower end: at most `high`
    open_high: bool = False  # … no upper end: at least `low`


def lines(name: str, title: str, shown: Sequence[Line], axis: Axis) -> str:
    """Lines below each other, each with its words above; the axis at the bottom."""
    height = ROW * len(shown)
    parts = [
        f'<svg viewBox="{-LEFT} {-TOP} {LEFT + LENGTH + RIGHT} {TOP + height + BELOW}" role="img" '
        f'aria-labelledby="plot-{name}"><title id="plot-{name}">{title}</title>'
    ]
    for value, label in axis.ticks(TICKS):
        x = _at(axis, value)
        side = "start" if x < 16 else "end" if x > LENGTH - 16 else "middle"
        # beside the marks alone: a line through words would make them hard to read
        marks = "".join(f"M{coordinate(x)} {ROW * row + 20}v18" for row in range(len(shown)))
        parts.append(f'<path class="axis" d="{marks}"/>')
        parts.append(f'<text class="{side}" x="{coordinate(x)}" y="{height + 18}">{label}</text>')
    for row, line in enumerate(shown):
        parts += _line(line, axis, ROW * row)
    return "".join(parts) + "</svg>"


def _at(axis: Axis, value: float) -> float:
    return LENGTH * axis.share(value)


def _line(line: Line, axis: Axis, top: float) -> list[str]:
    middle = top + 29
    parts = [
        f'<text class="start" x="0" y="{top + 14}">{line.words}</text>',
        f'<text class="end" x="{LENGTH}" y="{top + 14}">{line.said}</text>',
    ]
    low = 0.0 if line.open_low else None if line.low is None else _at(axis, line.low)
    high = float(LENGTH) if line.open_high else None if line.high is None else _at(axis, line.high)
    if low is not None and high is not None:
        end = coordinate(max(high, low + 1))
        parts.append(f'<path class="span {line.kind}" d="M{coordinate(low)} {middle}H{end}"/>')
        for tip, is_open, turn in ((low, line.open_low, 1), (high, line.open_high, -1)):
            mark = (
                f"M{coordinate(tip + 5 * turn)} {middle - 4}L{coordinate(tip)} {middle}"
                f"L{coordinate(tip + 5 * turn)} {middle + 4}"
                if is_open
                else f"M{coordinate(tip)} {middle - 5}V{middle + 5}"
            )
            parts.append(f'<path class="span {line.kind}" d="{mark}"/>')
    if line.value is not None:
        x = coordinate(_at(axis, line.value))
        parts.append(f'<circle class="dot {line.kind}" cx="{x}" cy="{middle}" r="4.5"/>')
    return parts


FORMAT = 1
FOLDER, NAME = "images", "diversity-pictures.json"
RECORD = f"{FOLDER}/{NAME}"  # what makes pictures those of the result beside them
LONGEST = 64  # pixels a side; more would not be seen at the size of the page
MOST_ROWS, MOST_COLUMNS = 40, 16
BUDGET = 400_000  # bytes of pixels of a sheet: noise does not compress, and the page should stay below 2 MB
MOST_BYTES = 2**21  # of a file
GAPS = 16  # a gap is so small a part of the side of a picture
WIDEST_GAP = 8
GREY = 128  # of the gaps in a file; those of the page are transparent

Which = Literal["samples", "pairs", "nearest", "paths", "directions", "labels"]
KINDS: tuple[Which, ...] = get_args(Which)


@dataclass(frozen=True)
class Sheet(Record):
    """So many rows of so many pictures, side by side; `gap` pixels between them, none in older files."""

    which: Which
    rows: int
    columns: int
    channels: int
    height: int
    width: int
    gap: int = 0

    checks: ClassVar[Any] = (
        (f"gaps of 0 to {WIDEST_GAP} pixels", lambda one: 0 <= one.gap <= WIDEST_GAP),
        (f"1 to {MOST_ROWS} rows", lambda one: 1 <= one.rows <= MOST_ROWS),
        (f"1 to {MOST_COLUMNS} columns", lambda one: 1 <= one.columns <= MOST_COLUMNS),
        ("1 or 3 channels", lambda one: one.channels in (1, 3)),
        (
            f"pictures of 1 to {LONGEST} pixels a side",
            lambda one: 1 <= one.height <= LONGEST and 1 <= one.width <= LONGEST,
        ),
    )

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the whole."""
        across = self.columns * self.width + (self.columns - 1) * self.gap
        return across, self.rows * self.height + (self.rows - 1) * self.gap

    def place(self, row: int, column: int) -> tuple[int, int]:
        """The left upper corner of a picture."""
        return column * (self.width + self.gap), row * (self.height + self.gap)


@dataclass(frozen=True)
class Sheets(Record):
    """What was drawn."""

    sheets: tuple[Sheet, ...]

    checks: ClassVar[Any] = (
        ("each kind once", lambda one: len({sheet.which for sheet in one.sheets}) == len(one.sheets)),
    )


def why_not(shape: Sequence[int]) -> str:
    """Why samples of this shape cannot be shown; empty where they can."""
    if len(shape) == 3 and shape[0] in (1, 3) and min(shape) > 0:
        return ""
    return f"samples of shape {'×'.join(map(str, shape))} are no images of 1 or 3 channels"


def write_pictures(folder: Path, pictures: Pictures) -> None:
    """One sheet for each kind of picture that there is; what an earlier test left there is removed."""
    images = folder / FOLDER
    make_inside(images)
    with explained(images):
        for which in KINDS:
            _file(images, which).unlink(missing_ok=True)
        (images / NAME).unlink(missing_ok=True)
    sheets = []
    for which in KINDS:
        tensor: Tensor | None = getattr(pictures, which)
        if tensor is None or not len(tensor) or why_not(tensor.shape[2:]):
            continue
        sheet, image = _sheet(which, tensor)
        save_png(_file(images, which), image)
        sheets.append(sheet)
    if sheets:
        write_text(images / NAME, record_text(Sheets(tuple(sheets)), FORMAT))
    elif not any(images.iterdir()):
        images.rmdir()


def _file(images: Path, which: Which) -> Path:
    return images / f"diversity-{which}.png"


def _sheet(which: Which, tensor: Tensor) -> tuple[Sheet, Image]:
    """rows × columns × C × H × W as one picture, no larger than the page can use."""
    from PIL import Image

    tensor = tensor[:MOST_ROWS, :MOST_COLUMNS]
    channels, height, width = tensor.shape[2:]
    factor = min(1.0, LONGEST / max(height, width))
    size = (max(1, round(width * factor)), max(1, round(height * factor)))
    room = BUDGET // (channels * size[0] * size[1] * tensor.shape[1])
    tensor = tensor[: max(1, room)]
    levels = shown(tensor)
    rows, columns = tensor.shape[:2]
    gap = min(WIDEST_GAP, max(1, max(size) // GAPS))
    told = Sheet(which, rows, columns, channels, size[1], size[0], gap)
    grey = GREY if channels == 1 else (GREY, GREY, GREY)
    sheet = Image.new("L" if channels == 1 else "RGB", told.size, grey)
    for row in range(rows):
        for column in range(columns):
            picture = Image.fromarray(levels[row, column])
            small = picture if factor == 1 else picture.resize(size, Image.Resampling.BOX)
            sheet.paste(small, told.place(row, column))
    return told, sheet


def shown(images: Tensor) -> Pixels:
    """… × C × H × W as bytes: values in [0, 1] as they are, others from the smallest to the largest of all.

    One scale for a sheet, so that pictures that stand side by side can be compared.
    """
    values = images.detach().to(torch.float64)
    low, high = float(values.min()), float(values.max())
    if low < 0 or high > 1:
        values = (values - low) / max(high - low, torch.finfo(torch.float64).tiny)
    levels = (values * 255).round().to(torch.uint8)
    levels = levels.squeeze(-3) if levels.shape[-3] == 1 else levels.movedim(-3, -1)
    result: Pixels = levels.numpy()
    return result


@dataclass(frozen=True)
class Row:
    """One row of a sheet as a PNG of its own."""

    png: bytes
    columns: int
    width: int
    height: int


def read_pictures(folder: Path) -> dict[str, tuple[Row, ...]]:
    """The rows of each sheet in the directory of a test; none where there are none, an error if broken."""
    images = folder / FOLDER
    if images.is_symlink() or not (images / NAME).is_file():
        return {}
    told = read_record(images / NAME, Sheets, "list of pictures", FORMAT)
    return {sheet.which: _rows(_file(images, sheet.which), sheet) for sheet in told.sheets}


def _rows(path: Path, sheet: Sheet) -> tuple[Row, ...]:
    """The rows, encoded anew: nothing but pixels of the expected number gets through."""
    width, height = sheet.size
    expected = f"a sheet of {width}×{height} pixels in {path.name}"
    pixels = read_png(path, (width, height), sheet.channels, MOST_BYTES, expected, "make the test again")
    tops = (sheet.place(row, 0)[1] for row in range(sheet.rows))
    parts = [_transparent(pixels[top : top + sheet.height], sheet) for top in tops]
    return tuple(Row(png_bytes(part), sheet.columns, width, sheet.height) for part in parts)


def _transparent(row: Pixels, sheet: Sheet) -> Pixels:
    """A row whose gaps show what is behind it; without gaps as it is."""
    if not sheet.gap:
        return np.ascontiguousarray(row)
    colours = row.reshape(*row.shape[:2], -1)
    clear = np.zeros((*row.shape[:2], colours.shape[2] + 1), np.uint8)
    for column in range(sheet.columns):
        left = sheet.place(0, column)[0]
        part = slice(left, left + sheet.width)
        clear[:, part, :-1], clear[:, part, -1] = colours[:, part], 255
    return clear
