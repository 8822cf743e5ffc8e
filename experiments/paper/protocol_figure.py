"""The figure of the paper's own protocol: three columns, a row for each data set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from obverse._core.statistics import mean_and_se
from obverse.present.palette import LIGHT, MARKERS

from .._lab.drawing import new_figure, tidy
from .protocol import COLUMNS, NARROW
from .protocol_curves import (
    LATER,
    SHOWN,
    Curves,
    column_of,
    curves_of,
    epoch_of,
    mean_curve,
    over_seeds,
    title,
)

TICKS = (1, 1.5, 2, 3, 4, 5, 7, 10, 15, 20, 30, 40, 60, 80, 95)


def panel(axes: Any, curves: Curves, column: str) -> None:
    for arm, place in SHOWN[column].items():
        if arm not in curves:
            continue
        mean = mean_curve(curves[arm])
        bands = [mean_and_se(over_seeds(curves[arm], step))[1] or 0.0 for step in mean]
        points = [100 * error for error in mean.values()]
        label = arm.removesuffix(LATER).replace(", SHADOW's step", "")
        style = {"color": LIGHT[place], "marker": MARKERS[place], "markersize": 2.5, "linewidth": 1.2}
        axes.plot(list(mean), points, label=label, **style)
        low = [point - 100 * band for point, band in zip(points, bands, strict=True)]
        high = [point + 100 * band for point, band in zip(points, bands, strict=True)]
        axes.fill_between(list(mean), low, high, color=LIGHT[place], alpha=0.18, linewidth=0)


def draw(folder: Path) -> Any:
    """Three columns, a row for each data set; what was not run says so."""
    figure = new_figure(12.4, 9.4)
    axes = figure.subplots(len(NARROW), len(COLUMNS))
    handles: dict[str, Any] = {}
    for row, part in zip(axes, NARROW, strict=True):
        curves = curves_of(folder, part)
        for one, column in zip(row, COLUMNS, strict=True):
            mine, _ = column_of(curves, column, epoch_of(part))
            tidy(one, f"{title(part)}: {column}", "steps of 100 images", "test error, %")
            if not mine:
                one.text(0.5, 0.5, "not run", ha="center", va="center", transform=one.transAxes)
                one.set_xticks([])
                one.set_yticks([])
                continue
            panel(one, mine, column)
            one.grid(alpha=0.25)
            low, high = one.get_ylim()
            if high > 2 * low > 0:
                one.set_yscale("log")
                marks = [
                    n for n in (1, 1.5, 2, 3, 4, 5, 7, 10, 15, 20, 30, 40, 60, 80, 95) if low <= n <= high
                ]
                one.set_yticks(marks, labels=[f"{mark:g}" for mark in marks])
                one.minorticks_off()
            for handle, label in zip(*one.get_legend_handles_labels(), strict=True):
                handles.setdefault(label, handle)
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4, frameon=False)
    return figure
