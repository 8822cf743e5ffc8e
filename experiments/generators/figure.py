"""The figure of docs/generators.md: samples of every generator, beside their effective support and FID."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from obverse.present.palette import FAINT, GREY, LIGHT

from .._lab.drawing import new_figure, save
from .run import OUT, slug


def draw(entries: dict[str, Any], place: Path) -> None:
    figure = new_figure(11, 0.62 * len(entries) + 0.9)
    left, middle, right = figure.subplots(1, 3, width_ratios=(14, 5, 5))
    strips(left, list(entries))
    supports(middle, entries)
    distances(right, entries)
    save(figure, place)


def strips(axes: Any, names: list[str]) -> None:
    from PIL import Image

    rows = [np.asarray(Image.open(OUT / f"{slug(name)}.png")) for name in names]
    axes.imshow(np.concatenate(rows), cmap="gray_r", vmin=0, vmax=255, interpolation="nearest", aspect="auto")
    axes.set_yticks([28 * row + 14 for row in range(len(names))], names)
    axes.set_xticks([])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_title("the first samples", fontsize=10, loc="left")


def supports(axes: Any, entries: dict[str, Any]) -> None:
    """N_eff from counted pairs with its interval; the bound as a tick; an arrow where nothing collided."""
    for row, one in enumerate(entries.values()):
        test = one["birthday"]
        found = test["effective"]
        if found["value"] is None:
            axes.plot(test["support_at_least"], row, marker=">", color=GREY)
            continue
        axes.plot([found["low"], found["high"]], [row, row], color=LIGHT[0])
        axes.plot(found["value"], row, "o", color=LIGHT[0])
        axes.plot(test["support_bound"], row, "|", color=LIGHT[1], markersize=12)
    real = next(iter(entries.values()))["birthday"]["threshold"]["real_support"]
    axes.axvline(real, color=GREY, linewidth=0.8, linestyle=":")
    axes.set_xscale("log")
    axes.set_title("N_eff in pixels", fontsize=10, loc="left")
    level(axes, len(entries))


def distances(axes: Any, entries: dict[str, Any]) -> None:
    for row, one in enumerate(entries.values()):
        axes.plot(max(one["moments"]["fid"], 1e-2), row, "o", color=LIGHT[0])
    axes.axvline(next(iter(entries.values()))["moments"]["fid"], color=GREY, linewidth=0.8, linestyle=":")
    axes.set_xscale("log")
    axes.set_title("FID in features", fontsize=10, loc="left")
    level(axes, len(entries))


def level(axes: Any, rows: int) -> None:
    """Rows at the height of the strips."""
    axes.set_ylim(rows - 0.5, -0.5)
    axes.set_yticks([])
    axes.spines[["top", "right", "left"]].set_visible(False)
    for row in range(rows):
        axes.axhline(row, color=FAINT, linewidth=0.6, zorder=0)
