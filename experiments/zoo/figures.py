"""The figures of docs/zoo.md: all layers in one map, and figure 4 of the paper for layers of the zoo."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from obverse.present.palette import LIGHT, LIGHT_INK
from obverse.weights._decomposition.marchenko_pastur import density

from .._lab.drawing import new_figure, save, tidy
from .._lab.places import FIGURES

HEAT, FOUR = FIGURES / "zoo-heat.png", FIGURES / "zoo-figure-4.png"
GREY = LIGHT_INK[2]
BEFORE, AFTER = LIGHT[0], LIGHT[1]


def heat_map(tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """One row for each net, its layers from the first (left) to the last; colour is the random share."""
    import matplotlib

    figure = new_figure(9.0, 0.3 * len(tables) + 1.3)
    axes = figure.subplots()
    colours = matplotlib.colormaps["viridis"]
    for at, rows in enumerate(tables.values()):
        edges = np.linspace(0, 1, len(rows) + 1)
        for row, start, stop in zip(rows, edges, edges[1:], strict=False):
            share = row["random_share"]
            width = stop - start
            axes.barh(at, width, 0.86, start, color=GREY if share is None else colours(share), linewidth=0)
            if share is not None and row["random_share_is_bound"]:
                axes.plot([start + width / 2], [at], ".", color="white", markersize=2.2)
    axes.set_yticks(range(len(tables)), list(tables), fontsize=8)
    axes.set_ylim(len(tables) - 0.4, -0.6)
    axes.set_xlim(0, 1)
    tidy(axes, "", "place in the net, from the first layer to the last", "")
    scale = matplotlib.cm.ScalarMappable(matplotlib.colors.Normalize(0, 1), colours)
    figure.colorbar(scale, ax=axes, label="share of the energy like random numbers", shrink=0.6)
    save(figure, HEAT)


def figure_four(settings: Mapping[str, Any], entries: Mapping[str, Any]) -> None:
    """(a) entries, (b) biases, (c) singular values, one row for each layer."""
    figure = new_figure(9.0, 1.75 * len(entries) + 0.4)
    grid = figure.subplots(len(entries), 3, squeeze=False)
    for number, (axes, (name, one)) in enumerate(zip(grid, entries.items(), strict=True)):
        net, _, layer = name.partition("|")
        title = f"{net}\n{layer}, {one['rows']} × {one['columns']}"
        _entries(axes[0], one, settings, title)
        _biases(axes[1], one)
        _values(axes[2], one)
        if number == 0:
            for letter, axis in zip("abc", axes, strict=True):
                axis.annotate(f"({letter})", (1, 1.02), xycoords="axes fraction", ha="right", fontsize=9)
            axes[2].legend(fontsize=7, frameon=False, loc="upper right")
    save(figure, FOUR)


def _entries(axes: Any, one: Mapping[str, Any], settings: Mapping[str, Any], title: str) -> None:
    edges = np.linspace(-settings["edges"], settings["edges"], settings["bins"] + 1)
    axes.stairs(one["entries"]["before"], edges, fill=True, alpha=0.35, color=BEFORE)
    axes.stairs(one["entries"]["after"], edges, color=AFTER)
    x = np.linspace(edges[0], edges[-1], 200)
    axes.plot(x, np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi), "k--", linewidth=0.8)
    tidy(axes, "", "entries ÷ standard deviation", "")
    axes.set_title(title, fontsize=8, loc="left")
    axes.set_yticks([])


def _biases(axes: Any, one: Mapping[str, Any]) -> None:
    tidy(axes, "", "biases", "")
    axes.set_yticks([])
    bias = one["biases"]
    if bias is None:
        axes.text(0.5, 0.5, "no biases, or all 0", ha="center", transform=axes.transAxes, fontsize=8)
        return
    edges = np.linspace(bias["low"], bias["high"], len(bias["counts"]) + 1)
    axes.stairs(bias["counts"], edges, fill=True, alpha=0.35, color=BEFORE)
    axes.axvline(bias["mean"], color="k", linewidth=0.8, linestyle="--")
    ratio = abs(bias["mean"]) / bias["deviation"] if bias["deviation"] else math.inf
    axes.set_title(f"|mean| ÷ standard deviation {ratio:.2g}", fontsize=8, loc="left")


def _values(axes: Any, one: Mapping[str, Any]) -> None:
    short, long = sorted((one["rows"], one["columns"]))
    unit = math.sqrt(long)
    top = 1.5 * (1 + math.sqrt(short / long))
    bins = np.linspace(0, top, 49)
    for kind, look in (
        ("before", {"fill": True, "alpha": 0.35, "color": BEFORE}),
        ("after", {"color": AFTER}),
    ):
        values = np.asarray(one["values"][kind])
        ranks = (np.arange(len(values)) + 0.5) / len(values)
        shares = np.interp(bins, values, ranks, left=0.0, right=1.0)
        axes.stairs(np.diff(shares) / np.diff(bins), bins, label=f"{kind} the profile is taken off", **look)
    x = np.linspace(1e-3, top, 400)
    axes.plot(
        x, density(x * unit, short, long, 1.0) * unit, "k--", linewidth=0.8, label="law of random entries"
    )
    tidy(axes, "", "singular values ÷ (scale · √longer side)", "")
    axes.set_yticks([])
