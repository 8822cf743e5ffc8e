"""The curves of a generator's training, each an inline SVG with its caption. Not for reading results."""

from __future__ import annotations

import io
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from ..._core import BadInput, ObverseError, explained, make_inside, plain
from ...data import GREY, Dataset, load, picture_header, picture_pixels
from ...generative import VAE, Mixture
from ...present import INK, Pixels, data_uri, drawing, marker, save_png, sentinel
from .._rundir import GeneratorRecord
from .fit import Model, generator_task, load_generator

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from PIL.Image import Image

SIZE = (400, 280)
MOST_LINES = 7  # as many as there are colours
Pick = Callable[[Mapping[str, Any]], float | None]


@dataclass(frozen=True)
class Line:
    """One number a record, with the place of its colour and marker."""

    name: str
    pick: Pick
    place: int
    dashed: bool = False


@dataclass(frozen=True)
class Chart:
    """A figure of the page: its SVG, and (place, name) of each line for the legend."""

    title: str
    caption: str
    svg: str
    legend: tuple[tuple[int, str], ...]


def key(name: str, sign: float = 1.0) -> Pick:
    def pick(record: Mapping[str, Any]) -> float | None:
        value = record.get(name)
        return None if value is None else sign * float(value)

    return pick


def item(name: str, index: int) -> Pick:
    return lambda record: record[name][index] if name in record else None


def charts(run: GeneratorRecord) -> list[Chart]:
    """Every part of the loss, in reading order."""
    held = "held out" if run.settings.validation else "test"
    return _game(run, held) if run.settings.is_game else _vae(run, held)


def _vae(run: GeneratorRecord, held: str) -> list[Chart]:
    bound = [Line(held, key("test_elbo"), 0), Line("training", key("train_loss", -1.0), 1, True)]
    if "test_elbo_binarized" in run.metrics[-1]:
        bound.append(Line(f"{held}, pixels 0 or 1", key("test_elbo_binarized"), 2))
    return [
        _chart(
            run,
            "bound",
            "The bound",
            bound,
            "nats per image",
            "The ELBO: reconstruction less KL, a bound from below of log p(x). Higher is better.",
        ),
        _chart(
            run,
            "reconstruction",
            "Reconstruction",
            [
                Line(held, key("test_reconstruction"), 0),
                Line("training", key("train_reconstruction"), 1, True),
            ],
            "nats per image",
            "log p(x|z) of an image, its z drawn by the encoder. Higher is better.",
        ),
        _chart(
            run,
            "kl",
            "KL of the code",
            [Line(held, key("test_kl"), 0), Line("training", key("train_kl"), 1, True)],
            "nats per image",
            "What the code z says about its image: KL[q(z|x) ‖ N(0, I)]. At 0 it says nothing.",
        ),
    ]


def _game(run: GeneratorRecord, held: str) -> list[Chart]:
    made = [
        _chart(
            run,
            "gap",
            "The critic’s gap",
            [
                Line(f"{held} images", key("test_gap"), 0),
                Line("training images", key("train_gap"), 1, True),
            ],
            "gap",
            "Mean score of real images less that of samples, after the epoch. At 0 the critic sees no "
            "difference. Where the lines part, it knows the training images.",
        ),
        _chart(
            run,
            "critic",
            "In training",
            [
                Line("gap", key("critic_gap"), 0),
                Line("generator’s loss", key("generator_loss"), 2),
            ],
            "mean over the epoch",
            "The critic raises the gap, the generator lowers its part of it. The level of the generator’s "
            "loss alone means nothing: scores have no zero.",
        ),
        _chart(
            run,
            "penalty",
            "Gradient penalty",
            [Line("penalty", key("penalty"), 3)],
            "mean over the epoch",
            "(slope − 1)² of the critic between real images and samples: near 0 it has the slope that the "
            "Wasserstein distance asks for.",
        ),
    ]
    if run.settings.model == "mixture":
        made += _weights(run)
    return made


def _weights(run: GeneratorRecord) -> list[Chart]:
    count = run.settings.components
    shown = min(count, MOST_LINES)
    more = f" The first {shown} of {count}." if shown < count else ""
    made = [
        _chart(
            run,
            name,
            title,
            [Line(f"{index + 1}", item(name, index), index) for index in range(shown)],
            "weight",
            f"{about}{more}",
            zero=True,
            level=1 / count,
        )
        for name, title, about in (
            ("weights", "Weights of the generators", "Dotted: all alike. How often each is drawn."),
            ("critic_weights", "Weights of the critics", "Dotted: all alike. How much each counts."),
        )
    ]
    entropy = _chart(
        run,
        "entropy",
        "Entropy of the weights",
        [
            Line("generators", key("weights_entropy"), 0),
            Line("critics", key("critic_weights_entropy"), 1, True),
        ],
        "nats",
        f"Dotted: log {count}, all alike. At 0 one alone is left.",
        level=log(count),
    )
    return [*made, entropy]


def _chart(
    run: GeneratorRecord,
    name: str,
    title: str,
    lines: Sequence[Line],
    label: str,
    caption: str,
    *,
    zero: bool = False,
    level: float | None = None,
) -> Chart:
    """One point an evaluation. The untrained net is left out where there is more to see: it would flatten
    everything else."""
    from matplotlib.ticker import MaxNLocator

    first = 1 if run.metrics[-1]["epoch"] > 0 and not zero else 0
    measured = "test_gap" if run.settings.is_game else "test_elbo"
    drawn = []
    with drawing(name, f"{title} by epoch", SIZE) as figure:
        for line in lines:
            points = [
                (int(record["epoch"]), value)
                for record in run.metrics
                if measured in record
                and record["epoch"] >= first
                and (value := line.pick(record)) is not None
            ]
            if points:
                _draw(figure.axes, points, line)
                drawn.append((line.place, line.name))
        if level is not None:
            figure.axes.axhline(level, color=INK, linewidth=1, linestyle=(0, (1, 2)))
        if zero:
            figure.axes.set_ylim(bottom=0)
        figure.axes.set_xlabel("epoch")
        figure.axes.set_ylabel(label)
        figure.axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True, min_n_ticks=1))
        figure.axes.yaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10]))
    return Chart(title, caption, figure.svg, tuple(drawn))


def _draw(axes: Axes, points: Sequence[tuple[int, float]], line: Line) -> None:
    colour, step = sentinel(line.place), max(1, round(len(points) / 7))
    axes.plot(
        [epoch for epoch, _ in points],
        [value for _, value in points],
        color=colour,
        linestyle=(0, (4, 2)) if line.dashed else "-",
        marker=marker(line.place),
        markevery=(line.place % step, step),  # about seven a line, and not on top of one another
        markeredgewidth=0,
    )


ROW = 10  # samples and pairs on the page are multiples of it, so that rows are full
SAMPLES = 80  # at most
PAIRS = 20
STRIP = 12  # images of a component, and of an epoch
STAGES = 8  # epochs that are shown
MOST_COMPONENTS = 12
LONGEST = 64  # pixels a side; more would not be seen at the size of the page
BUDGET = 600_000  # bytes of raw pixels of the page: it should stay near 1 MB
MOST_PIXELS = 4096 * 4096  # of a sheet
GAP = 1
_STAGE = re.compile(r"epoch-(\d{1,9})\.png")


@dataclass(frozen=True)
class Strip:
    """A row of images in one sheet, with what stands beside it."""

    label: str
    uri: str


@dataclass(frozen=True)
class Album:
    """The images of the page; `notes` say why some are missing."""

    samples: tuple[str, ...] = ()
    pairs: tuple[str, ...] = ()
    components: tuple[Strip, ...] = ()
    stages: tuple[Strip, ...] = ()
    notes: tuple[str, ...] = ()
    pixelated: bool = True


def levels(images: Tensor) -> Pixels:
    """n × C × H × W in [0, 1] → bytes n × H × W, and × 3 for colour."""
    scaled = (images.detach().to(torch.float32).nan_to_num().clamp(0, 1) * 255).round().to(torch.uint8)
    found: Pixels = (scaled[:, 0] if scaled.shape[1] == 1 else scaled.movedim(1, -1)).numpy()
    return found


def check_pictures(shape: tuple[int, ...]) -> None:
    if len(shape) != 3 or shape[0] not in (1, 3):
        raise BadInput(
            "images with 1 or 3 channels to draw",
            got=f"samples of shape {'×'.join(map(str, shape))}",
            do="write them as numbers: --out FILE.npz",
        )


def sheet(pixels: Pixels, columns: int) -> Pixels:
    """Images row by row, with dark grey lines between them; what is left of the last row is grey too."""
    count, height, width = pixels.shape[:3]
    rows = -(-count // columns)
    size = (rows * (height + GAP) - GAP, columns * (width + GAP) - GAP)
    if size[0] * size[1] > MOST_PIXELS:
        raise BadInput(
            f"at most {MOST_PIXELS:,} pixels in one image",
            got=f"{size[1]:,} × {size[0]:,}",
            do="ask for fewer samples, or write a folder or an .npz",
        )
    result = np.full((*size, *pixels.shape[3:]), 64, np.uint8)
    for place, one in enumerate(pixels):
        top, left = place // columns * (height + GAP), place % columns * (width + GAP)
        result[top : top + height, left : left + width] = one
    return result


def _image(pixels: Any, factor: float) -> Image:
    """Bytes as an image; made larger pixel by pixel, smaller by averaging."""
    from PIL import Image

    image = Image.fromarray(pixels)
    size = (max(1, round(image.width * factor)), max(1, round(image.height * factor)))
    return image.resize(size, Image.Resampling.NEAREST if factor >= 1 else Image.Resampling.BOX)


def write_png(path: Path, pixels: Pixels, factor: int = 1) -> None:
    """One image, in one step."""
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    save_png(path, _image(pixels, factor))


def stage_name(epoch: int) -> str:
    return f"epoch-{epoch:06d}.png"


def stage_epochs(epochs: int) -> set[int]:
    """The epochs whose samples are kept: the start, the end, and between them ever further apart."""
    between = (round(epochs ** (step / (STAGES - 2))) for step in range(STAGES - 1))
    return {0, *between}


def keep_stages(net: Model, epochs: int, run: Path, seed: int) -> Callable[[Mapping[str, Any]], None]:
    """What `fit` calls with each record, to keep samples from the same seeds at some epochs in images/."""
    kept = stage_epochs(epochs)

    def on_record(record: Mapping[str, Any]) -> None:
        if record["epoch"] in kept:
            made = net.sample(STRIP, torch.Generator().manual_seed(seed))
            make_inside(run / "images")
            write_png(run / "images" / stage_name(record["epoch"]), sheet(levels(made), STRIP))

    return on_record


def album(record: GeneratorRecord, data: Dataset | None = None) -> Album:
    """Everything there is to show of a run."""
    try:
        check_pictures(record.input_shape)
    except BadInput:
        return Album(notes=("No images: the samples are not images.",))
    notes: list[str] = []
    samples: tuple[str, ...] = ()
    pairs: tuple[str, ...] = ()
    components: tuple[Strip, ...] = ()
    stages: tuple[Strip, ...] = ()
    channels, height, width = record.input_shape
    size = channels * min(height, LONGEST) * min(width, LONGEST)
    try:
        net = load_generator(record.path)
        generator = torch.Generator().manual_seed(record.settings.seed)
        made = levels(net.sample(_rows(SAMPLES, BUDGET // 3 // size), generator))
        samples = tuple(_uri(one) for one in made)
        components = _components(net, generator, max(3, min(STRIP, BUDGET // 6 // (size * MOST_COMPONENTS))))
        if isinstance(net, VAE):
            pairs = _pairs(net, record, data, _rows(PAIRS, BUDGET // 6 // (2 * size)))
    except ObverseError as error:
        notes.append(f"Some images are missing: {_said(error, record)}.")
    try:
        stages = _stages(record)
    except ObverseError as error:
        notes.append(f"No samples along training: {_said(error, record)}.")
    return Album(samples, pairs, components, stages, tuple(notes), max(height, width) <= LONGEST)


def _said(error: ObverseError, record: GeneratorRecord) -> str:
    """The sentence without the folder of the run, which would name the machine or its user."""
    return plain(str(error).replace(f"{record.path.parent}{os.sep}", ""), 400)


def _rows(most: int, room: int) -> int:
    """At most so many, and as there is room for, in full rows; one row at least."""
    return max(ROW, min(most, room) // ROW * ROW)


@torch.no_grad()
def _pairs(net: VAE, record: GeneratorRecord, data: Dataset | None, count: int) -> tuple[str, ...]:
    settings = record.settings
    data = load(settings.data, settings.data_root) if data is None else data
    if data.input_shape != record.input_shape:
        raise BadInput(
            f"images of the shape {record.input_shape}", got=f"{data.input_shape}", do="restore the data"
        )
    task = generator_task(settings, data)
    x = task.test_x[:count]
    both = torch.stack((x, net(x)), dim=1)  # the image above its reconstruction
    return tuple(_uri(sheet(levels(pair), 1)) for pair in both)


@torch.no_grad()
def _components(net: Model, generator: torch.Generator, count: int) -> tuple[Strip, ...]:
    if not isinstance(net, Mixture):
        return ()
    z = torch.randn(count, net.latent - 1, generator=generator)
    weights = net.weights()[0].tolist()
    order = sorted(range(len(weights)), key=lambda index: -weights[index])[:MOST_COMPONENTS]
    return tuple(
        Strip(f"{weights[index]:.3f}", _uri(sheet(levels(net.generators[index](z)), count), count))
        for index in order
    )


def _stages(record: GeneratorRecord) -> tuple[Strip, ...]:
    folder = record.path / "images"
    found = {
        int(match[1]): path
        for path in (sorted(folder.iterdir()) if folder.is_dir() else ())
        if (match := _STAGE.fullmatch(path.name))
    }
    channels, height, width = record.input_shape
    expected = (STRIP * (width + GAP) - GAP, height)
    strips = []
    chosen = sorted(found)
    if len(chosen) > STAGES:
        chosen = [chosen[round(place * (len(chosen) - 1) / (STAGES - 1))] for place in range(STAGES)]
    for epoch in chosen:
        size, mode = picture_header(found[epoch])
        if size != expected or (mode in GREY) != (channels == 1):
            raise BadInput(
                f"an image of {expected[0]}×{expected[1]} in {found[epoch].name}",
                got=f"{size[0]}×{size[1]}, {mode}",
                do="restore it or delete it",
            )
        pixels = picture_pixels(found[epoch], "L" if channels == 1 else "RGB")
        strips.append(Strip(f"epoch {epoch:,}", _uri(pixels, STRIP)))
    return tuple(strips)


def _uri(pixels: Any, across: int = 1) -> str:
    """An image, or `across` of them beside one another, at most LONGEST pixels a side each, as a URI."""
    height, width = pixels.shape[:2]
    factor = min(1.0, LONGEST / max(height, math.ceil(width / across)))
    buffer = io.BytesIO()
    _image(pixels, factor).save(buffer, format="PNG", optimize=True)
    return data_uri(buffer.getvalue())
