"""What a net generates, as images: shadow at the start, shadow at the end, original (Figure 2).

Not for measuring shadows. Images are made again from the weights, never read from a run directory.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..._core import BadInput, explained, make_inside, plain, replace_atomically
from ...data import Dataset, load
from ...present import SCALING, Pixels, displayed
from ...shadow import Shadow
from .. import ClassifierTask, RunRecord, Settings, load_trained, read_comparison, read_run

if TYPE_CHECKING:
    from PIL.Image import Image

COLUMNS = ("start", "end", "original")


ZERO = "A shadow that is black throughout is zero: no unit of its layer responds to the image."


@dataclass(frozen=True, eq=False)
class ClassPictures:
    """Some examples of one class: N × 3 (start, end, original) × H × W, and × 3 for colour; 0 to 255."""

    name: str
    pixels: Pixels

    @property
    def has_zero_shadow(self) -> bool:
        shadows = self.pixels[:, :2].reshape(2 * len(self.pixels), -1)
        return not shadows.any(axis=1).all()


def choose_run(path: Path) -> RunRecord:
    """The run to show: the directory itself, or of a comparison the first finished run with shadows."""
    if not (path / "comparison.json").is_file():
        return read_run(path)
    runs = [run for found in read_comparison(path).values() for run in found]
    if not runs:
        raise BadInput(f"a finished run in {path}", got="none", do="go on with the comparison")
    return min(runs, key=lambda run: (run.settings.weight == 0, run.settings.control is not None))


def shadow_pictures(
    run: Path, per_class: int = 3, seed: int = 0, *, classes: int | None = None, data: Dataset | None = None
) -> list[ClassPictures]:
    """For each class some test images and their shadows, by the net before and after training.

    Both shadows are made with the run's own settings and the same randomness. `seed` chooses the images;
    `classes` stops after so many; `data` saves loading it again.
    """
    if per_class < 1:
        raise BadInput("per_class ≥ 1", got=per_class, do="ask for at least one image a class")
    record = choose_run(run)
    settings = record.settings
    data = load(settings.data, settings.data_root) if data is None else data
    check_images(data)
    trained = load_trained(settings, data, record.path / "model.safetensors")  # refuses sizes it has not
    task = ClassifierTask(settings, data)
    final = Shadow(trained, input_shape=data.input_shape, signed=task.shadow.signed)
    order = torch.randperm(len(task.test_y), generator=torch.Generator().manual_seed(seed))
    shown = []
    for label, name in list(enumerate(data.classes))[:classes]:
        rows = order[task.test_y[order] == label][:per_class]
        if len(rows):
            x = task.test_x[rows]
            both = [_shadows(shadow, x, settings, seed + label) for shadow in (task.shadow, final)]
            stacked = torch.stack([*both, x], dim=1)  # N × 3 × C × H × W
            shown.append(ClassPictures(name, displayed(stacked)))
    return shown


def check_images(data: Dataset) -> None:
    shape = data.input_shape
    if len(shape) != 3 or shape[0] not in (1, 3):
        raise BadInput(
            "images with 1 or 3 channels to draw",
            got=f"inputs of shape {'×'.join(map(str, shape))} in {data.name}",
            do="use a data set of images; the numbers are in the report all the same",
        )


def _shadows(shadow: Shadow, x: Tensor, settings: Settings, seed: int) -> Tensor:
    return shadow.of(
        x,
        settings.layer,
        settings.keep,
        torch.Generator().manual_seed(seed),
        smooth=settings.smooth,
        match_norm=settings.match_norm,
    )


def shadow_grid(path: Path, out: Path | None = None, per_class: int = 3, seed: int = 0) -> Path:
    """Draw the images of a run (or of a comparison's first run with shadows) into one PNG.

    A row for each class, triples of shadow at the start, shadow at the end, original; by default
    images/shadows.png in the directory.
    """
    own = path / "images" / "shadows.png"
    out = own if out is None else out
    image = _sheet(shadow_pictures(path, per_class, seed))
    if out == own:
        make_inside(out.parent)
    else:  # a place of the user's own, who may have put a link there
        with explained(out):
            out.parent.mkdir(parents=True, exist_ok=True)
    replace_atomically(out, lambda temporary: image.save(temporary, format="PNG", optimize=True))
    return out


def single_png(pixels: Pixels, longest: int = 64) -> bytes:
    """One image as a PNG of at most `longest` pixels a side."""
    buffer = io.BytesIO()
    image = _picture(pixels, min(1.0, longest / max(pixels.shape[:2])))
    image.save(buffer, format="PNG", optimize=True)
    return buffer.getvalue()


def triple_png(triple: Pixels, longest: int = 64) -> bytes:
    """One triple side by side as a PNG, its images at most `longest` pixels a side."""
    gap = 1
    pictures = [_picture(one, min(1.0, longest / max(one.shape[:2]))) for one in triple]
    width, height = pictures[0].size
    sheet = _new("RGBA", (3 * width + 2 * gap, height), (0, 0, 0, 0))
    for place, picture in enumerate(pictures):
        sheet.paste(picture.convert("RGBA"), (place * (width + gap), 0))
    grey = triple.ndim == 3
    buffer = io.BytesIO()
    # Grey with transparency for the gaps is a third of the size of colour.
    sheet.convert("LA" if grey else "RGBA").save(buffer, format="PNG", optimize=True)
    return buffer.getvalue()


def _sheet(pictures: list[ClassPictures]) -> Image:
    """Rows of triples on white, with the class at the left and column titles on top."""
    from PIL import ImageDraw

    height, width = pictures[0].pixels.shape[2:4]
    factor = max(1, round(64 / max(height, width)))
    side_w, side_h = width * factor, height * factor
    gap, group, margin, top = 4, 24, 20, 62
    font, small = _font(16), _font(12)
    names = [plain(one.name, 24) for one in pictures]
    label = round(max(font.getlength(name) for name in names)) + 20
    triple = 3 * side_w + 2 * gap
    columns = max(len(one.pixels) for one in pictures)
    total_w = margin + label + columns * triple + (columns - 1) * group + margin
    words = f"Shadow of the untrained net (start), of the trained net (end), and the image itself. {SCALING}"
    if any(one.has_zero_shadow for one in pictures):
        words = f"{words} {ZERO}"
    caption = _wrapped(words, total_w - 2 * margin, small)
    rows_end = top + len(pictures) * (side_h + gap * 3)
    sheet = _new("RGB", (total_w, rows_end + 14 + 18 * len(caption) + margin), (255, 255, 255))
    draw = ImageDraw.Draw(sheet)
    left = margin + label
    for column in range(columns):
        for place, title in enumerate(COLUMNS):
            x = left + column * (triple + group) + place * (side_w + gap) + side_w / 2
            draw.text((x, top - 10), title, fill=(70, 70, 70), font=small, anchor="ms")
    for row, (one, name) in enumerate(zip(pictures, names, strict=True)):
        y = top + row * (side_h + gap * 3)
        draw.text((margin, y + side_h / 2), name, fill=(20, 20, 20), font=font, anchor="lm")
        for column, triple_pixels in enumerate(one.pixels):
            for place, pixels in enumerate(triple_pixels):
                x = left + column * (triple + group) + place * (side_w + gap)
                sheet.paste(_picture(pixels, factor), (round(x), y))
    draw.text((margin, 16), "Shadows, class by class", fill=(20, 20, 20), font=font)
    for line, words in enumerate(caption):
        draw.text((margin, rows_end + 14 + 18 * line), words, fill=(70, 70, 70), font=small)
    return sheet


def _new(mode: str, size: tuple[int, int], fill: tuple[int, ...]) -> Image:
    from PIL import Image

    return Image.new(mode, size, fill)


def _picture(pixels: Pixels, factor: float) -> Image:
    """Bytes as an image; made larger pixel by pixel, smaller by averaging."""
    from PIL import Image

    picture = Image.fromarray(pixels)
    if factor == 1:
        return picture
    size = (max(1, round(picture.width * factor)), max(1, round(picture.height * factor)))
    return picture.resize(size, Image.Resampling.NEAREST if factor > 1 else Image.Resampling.BOX)


def _font(size: int) -> Any:
    """DejaVu Sans, which matplotlib brings along: no font of the machine is needed."""
    import matplotlib
    from PIL import ImageFont

    return ImageFont.truetype(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf", size)


def _wrapped(text: str, width: float, font: Any) -> list[str]:
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if font.getlength(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines
