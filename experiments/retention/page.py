"""The figures and the table of docs/shadow.md: what each layer of AlexNet still sees, over its layers.

    python -m experiments.retention.page

From results/ alone; the image is drawn anew where those that run.py left in runs/ are still there.
"""

from __future__ import annotations

import io
from typing import Any

from obverse.present.palette import GREY, LIGHT
from obverse.shadow.results import LayerSurvey, Survey, read_survey

from .._lab.drawing import new_figure, save, tidy
from .._lab.places import DOCS, FIGURES
from .._lab.tables import put_between_marks, table
from .run import FOLDER, IMAGES, LAYERS

ROWS = {
    "fitted": "fitted",
    "refined": "refined",
    "transpose": "transpose",
    "fitted-shuffled": "fitted, weights\nshuffled",
    "fitted-untrained": "fitted,\nuntrained",
}
COLOURS = 200  # of the picture: more are not seen


def draw_images(shown: int, rows: dict[str, str], name: str, width: float = 8.4) -> None:
    """One image: the original and its layers across, ways down from top to bottom."""
    from PIL import Image
    from safetensors.torch import load_file

    stored = load_file(IMAGES)
    figure = new_figure(width, 0.22 + (width - 1.0) / (len(LAYERS) + 1) * len(rows))
    grid = figure.subplots(len(rows), len(LAYERS) + 1, squeeze=False)
    for line, (way, words) in zip(grid, rows.items(), strict=True):
        for axes, (layer, title) in zip(line, {"": "original", **LAYERS}.items(), strict=True):
            key = f"{layer}|{way}" if layer else "original"
            axes.axis("off")
            if key in stored and (layer or way == next(iter(rows))):
                axes.imshow(stored[key][shown].permute(1, 2, 0).numpy(), interpolation="nearest")
            if way == next(iter(rows)):
                axes.set_title(title, fontsize=10, pad=4)
        line[1].text(-0.06, 0.5, words, transform=line[1].transAxes, fontsize=9, ha="right", va="center")
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=100)
    picture = Image.open(buffer).convert("RGB").quantize(COLOURS)
    picture.save(FIGURES / name, optimize=True)


CURVES = {
    "own": ("this net", LIGHT[0], "-", "o"),
    "shuffled": ("weights shuffled", LIGHT[1], "--", "s"),
    "untrained": ("untrained", LIGHT[2], ":", "^"),
}


def draw_curves(surveys: dict[str, Survey], name: str) -> None:
    """Three quantities over the layers, the fitted reverse above, the transpose below."""
    figure = new_figure(9.0, 0.6 + 2.3 * len(surveys))
    grid = figure.subplots(len(surveys), 3, squeeze=False)
    for line, (reverse, found) in zip(grid, surveys.items(), strict=True):
        places = list(range(1, len(found.layers) + 1))
        for axes, (quantity, words) in zip(
            line,
            {
                "error": "recovery error of h",
                "found": f"found again by h among {found.among}",
                "centred": "cosine without the mean image",
            }.items(),
            strict=True,
        ):
            for side, (label, colour, style, mark) in CURVES.items():
                values = [
                    getattr(one, side) and getattr(getattr(one, side), quantity) for one in found.layers
                ]
                if any(value is not None for value in values):
                    axes.plot(places, values, style, color=colour, marker=mark, markersize=4, label=label)
            if quantity == "error":
                others: dict[str, tuple[str, Any]] = {
                    "unrelated": ("another image", "--"),
                    "varying": ("mean of h", ":"),
                }
                for control, (label, style) in others.items():
                    values = [getattr(one.own, control) for one in found.layers]
                    axes.plot(places, values, style, color=GREY, linewidth=1, label=label)
                axes.set_yscale("log")
            else:
                axes.set_ylim(min(0.0, axes.get_ylim()[0]), 1.03)
            axes.set_xticks(places)
            axes.grid(alpha=0.3)
            tidy(
                axes,
                words if reverse == "fitted" else "",
                "layer" if line is grid[-1] else "",
                reverse if quantity == "error" else "",
            )
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False)
    save(figure, FIGURES / name)


def numbers(found: Survey) -> str:
    """One row a layer: what is kept, each beside its controls."""

    def three(layer: LayerSurvey, quantity: str, form: str, scale: float = 1.0) -> str:
        sides = [side for side in (layer.own, layer.shuffled, layer.untrained) if side is not None]
        values = [getattr(side, quantity) for side in sides]
        return " / ".join("–" if value is None else format(scale * value, form) for value in values)

    rows = [
        [
            LAYERS[one.name],
            three(one, "error", ".2f"),
            three(one, "varying", ".2f"),
            f"{one.own.unrelated:.2f}",
            three(one, "found", ".0f", 100),
            three(one, "found_pixels", ".0f", 100),
            three(one, "centred", ".2f"),
        ]
        for one in found.layers
    ]
    found_by = f"% of {found.among}"
    head = ["layer", "recovery error", "mean of h", "another image"]
    return table([*head, f"found by h, {found_by}", f"by pixels, {found_by}", "centred cosine"], rows)


TITLES = {
    "fitted": "The fitted reverse, this net / weights shuffled / untrained:",
    "transpose": "The transpose, calibrated, this net / weights shuffled:",
}


def page() -> None:
    files = {reverse: FOLDER / f"alexnet-{reverse}.json" for reverse in TITLES}
    surveys = {reverse: read_survey(file) for reverse, file in files.items() if file.exists()}
    draw_curves(surveys, "retention-curve.svg")
    if IMAGES.exists():
        draw_images(1, ROWS, "retention.png")
    told = [part for reverse, found in surveys.items() for part in (TITLES[reverse], numbers(found))]
    put_between_marks(DOCS / "shadow.md", "\n\n".join(told) + "\n")


if __name__ == "__main__":
    page()
