"""The figures of docs/inversion.md, and how its results are read. Used by page.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .._lab.places import RUNS

PICTURES = RUNS / "inversion"
SHADOW, CONTROL, PEER, STARTED = (
    "shadow, calibrated",
    "shuffled, calibrated",
    "optimizer",
    "optimizer from shadow",
)
CURVES = {
    "refine": "shadow, then refined",
    PEER: "optimizer from noise",
    STARTED: "optimizer from the shadow",
}
Row = dict[str, Any]
Layer = dict[str, Any]


def layers(results: dict[str, Any]) -> Iterator[tuple[str, str, Layer]]:
    """(net, layer, what was measured) in order."""
    for name, net in results["nets"].items():
        for layer, found in net["layers"].items():
            yield name, layer, found


def row_of(layer: Layer, method: str, steps: int = 0) -> Row:
    return next(row for row in layer["rows"] if (row["method"], row["steps"]) == (method, steps))


def series(layer: Layer, kind: str) -> list[Row]:
    """All rows of one kind by steps; the refined shadows begin with the shadow itself."""
    if kind == "refine":
        refined = [row for row in layer["rows"] if row["method"].startswith("refine ")]
        return [row_of(layer, SHADOW), *refined]
    return [row for row in layer["rows"] if row["method"] == kind]


def draw_curves(results: dict[str, Any], field: str, words: str, place: Path) -> None:
    """A panel a layer: quality against milliseconds an image, refined shadows against the optimizer."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter

    from obverse.present.palette import LIGHT

    nets = list(results["nets"].items())
    figure = Figure(figsize=(10, 2.5 * len(nets)), layout="constrained")
    grid = figure.subplots(len(nets), max(len(net["layers"]) for _, net in nets), squeeze=False)
    for (name, net), line in zip(nets, grid, strict=True):
        for (layer, found), axes in zip(net["layers"].items(), line, strict=False):
            control = row_of(found, CONTROL)[field]
            values = [control]
            for (kind, label), color, marker in zip(CURVES.items(), LIGHT, "os^", strict=False):
                rows = series(found, kind)
                x, y = [1000 * row["seconds"] for row in rows], [row[field] for row in rows]
                axes.plot(x, y, marker=marker, color=color, label=label, markersize=4)
                values += y
            axes.axhline(control, color=LIGHT[6], linestyle=":", label="shadow of shuffled weights")
            axes.set(xscale="log", title=f"{name}, {layer}")
            if field == "error":
                low = max(1e-5, 0.8 * min(values))  # below that all is rounding
                axes.set(yscale="log", ylim=(low, 1.5 * max(values)))
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_minor_formatter(NullFormatter())
            axes.grid(alpha=0.3)
        line[0].set_ylabel(words)
    for axes in grid[-1]:
        axes.set_xlabel("ms an image")
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False)
    save_small(figure, place, dpi=80)


def draw_pictures(results: dict[str, Any], place: Path, images: int = 3) -> None:
    """A row a layer, for each image original, shadow, refined, optimizer."""
    from matplotlib.figure import Figure
    from safetensors.torch import load_file

    from obverse.present.png import displayed

    found = [(name, layer) for name, layer, _ in layers(results)]
    titles = ("original", "shadow", "refined", "optimizer")
    figure = Figure(figsize=(1.0 * images * len(titles) + 1.6, 0.92 * len(found) + 0.3))
    grid = figure.subplots(len(found), images * len(titles), squeeze=False)
    for number, (name, layer) in enumerate(found):
        stored = load_file(PICTURES / f"{name}-{layer}.safetensors")
        for column, axes in enumerate(grid[number]):
            image, kind = divmod(column, len(titles))
            pixels = displayed(stored[titles[kind]][image][None])[0]
            axes.imshow(pixels, cmap="gray", interpolation="nearest")
            axes.axis("off")
            if number == 0:
                axes.set_title(titles[kind], fontsize=9, pad=3)
        first = grid[number][0]
        words = {"fontsize": 9, "ha": "right", "va": "center"}
        first.text(-0.15, 0.5, f"{name}\n{layer}", transform=first.transAxes, **words)
    figure.subplots_adjust(left=0.13, right=0.995, top=0.97, bottom=0.005, wspace=0.06, hspace=0.06)
    save_small(figure, place, dpi=60)


def save_small(figure: Any, place: Path, dpi: int) -> None:
    """As a PNG of 128 colours: a third of the size of all of them, and the eye does not miss the rest."""
    from io import BytesIO

    from PIL import Image

    buffer = BytesIO()
    figure.savefig(buffer, dpi=dpi)
    Image.open(buffer).convert("RGB").quantize(128).save(place, optimize=True)
