"""The figures of docs/identity.md from results. Used by page.py."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from obverse.identity._walk import Walk
from obverse.present.palette import GREY, LIGHT, MARKERS, TINTS

from .._lab.drawing import new_figure, save, tidy


def draw_factors(found: dict[str, Any], place: Path) -> None:
    """Singular values of I + A_1 by number of layers, and ‖A_i‖ beside its bounds."""
    figure = new_figure(10, 3.6)
    left, right = figure.subplots(1, 2)
    rows = found["random"]["rows"]
    for row in rows:
        left.scatter(
            [row["layers"]] * len(row["values"]), row["values"], s=9, color=LIGHT[0], alpha=0.6, linewidths=0
        )
    left.axhline(1, color=GREY, linewidth=0.8, linestyle="--")
    left.set_xscale("log", base=2)
    tidy(left, "a random matrix, d = 32", "layers l", "singular values of I + A_i")
    layers = [row["layers"] for row in rows]
    for index, (name, label) in enumerate((("random", "random"), ("half turn", "half a turn, R = −I"))):
        values = [row["norm"] for row in found[name]["rows"]]
        right.plot(
            layers, values, color=LIGHT[index], marker=MARKERS[index], markersize=5, label=f"‖A_i‖, {label}"
        )
        limits = [row["bound"] for row in found[name]["rows"]]
        right.plot(
            layers, limits, color=LIGHT[index], linestyle="--", linewidth=1, label=f"guarantee, {label}"
        )
    printed = [row["printed"] for row in rows]
    right.plot(layers, printed, color=GREY, linestyle=":", label="printed (4π + 3γ)/l, random")
    right.set_xscale("log", base=2)
    right.set_yscale("log")
    tidy(right, "the largest step", "layers l", "‖A_i‖")
    right.legend(frameon=False, fontsize=8)
    save(figure, place)


def draw_block(walked: Walk, place: Path, stages: Sequence[int] | None = None) -> None:
    """Points before and after some blocks; the half-planes where the units of the last one answer."""
    last = len(walked.moved)
    chosen = (0, 1, max(2, last // 2), last) if stages is None else stages
    figure = new_figure(12, 3.3)
    everything = [point for stage in walked.positions for point in stage]
    side = 1.15 * max(max(abs(a), abs(b)) for a, b in everything)
    for axes, stage in zip(figure.subplots(1, len(chosen)), chosen, strict=True):
        axes.set(xlim=(-side, side), ylim=(-side, side), aspect="equal", xticks=[], yticks=[])
        axes.set_title("start" if stage == 0 else f"after block {stage} of {last}", fontsize=10, loc="left")
        _shade(axes, walked.units[stage - 1] if stage else (), side)
        moved = set(walked.moved[stage - 1]) if stage else set()
        done = {one for block in walked.moved[:stage] for one in block}
        for index, target in enumerate(walked.targets):
            how = {"marker": MARKERS[index], "edgecolors": LIGHT[index % len(LIGHT)]}
            axes.scatter(*target, s=150, facecolors="none", **how)
        for one, (label, now) in enumerate(zip(walked.labels, walked.positions[stage], strict=True)):
            index = walked.classes.index(label)
            colour = LIGHT[index % len(LIGHT)]
            if one in moved:
                before = walked.positions[stage - 1][one]
                axes.annotate(
                    "", now, before, arrowprops={"arrowstyle": "->", "color": colour, "linewidth": 1.4}
                )
            kind = {"facecolors": colour if one in done else "white", "edgecolors": colour}
            axes.scatter(*now, s=36, zorder=3, marker=MARKERS[index], **kind)
    save(figure, place)


def _shade(axes: Any, units: Sequence[tuple[float, float, float]], side: float) -> None:
    import numpy as np

    if not units:
        return
    line = np.linspace(-side, side, 400)
    across, up = np.meshgrid(line, line)
    answers = sum((a * across + b * up + shift > 0).astype(float) for a, b, shift in units)
    axes.contourf(across, up, answers, levels=[0.5, 1.5, 9], colors=list(TINTS), zorder=0)


def draw_sizes(sizes: dict[str, Any], place: Path) -> None:
    """Parameters ÷ n ln n, room for thresholds and steepness against the number of points, by width."""
    from math import log

    figure = new_figure(11, 3.4)
    one, two, three = figure.subplots(1, 3)
    groups: dict[str, list[dict[str, Any]]] = {"chosen": []}
    for found in sizes.values():
        widest = max(other["width"] for other in sizes.values() if other["points"] == found["points"])
        for name in (["chosen"] if found["width"] == widest else []) + [f"k = {found['width']}"]:
            groups.setdefault(name, []).append(found)
    for index, name in enumerate(("chosen", "k = 1", "k = 2", "k = 4", "k = 8")):
        rows = [row for row in groups.get(name, ()) if "gap" in row]
        points = [row["points"] for row in rows]
        how = {"color": LIGHT[index], "marker": MARKERS[index], "markersize": 5, "label": name}
        one.plot(points, [row["parameters"] / (row["points"] * log(row["points"])) for row in rows], **how)
        two.plot(points, [row["gap"] for row in rows], **how)
        three.plot(points, [row["steepness"]["median"] for row in rows], **how)
    for axes in (two, three):
        axes.set_yscale("log")
    for axes in (one, two, three):
        axes.set_xscale("log")
    one.axhline(3, color=GREY, linestyle="--", linewidth=0.8)
    one.set_ylim(0, 4.2)
    tidy(one, "how small", "points n", "parameters ÷ n ln n")
    tidy(two, "how tight", "points n", "room for the hardest threshold ÷ ‖z‖²")
    tidy(three, "how steep", "points n", "‖Jacobian‖ at training points, median")
    one.legend(frameon=False, fontsize=8, ncols=2)
    save(figure, place)


def draw_landscape(found: dict[str, Any], place: Path) -> None:
    """Descent and gradients from near-zero weights, and critical points from many starts, for both nets."""
    figure = new_figure(10, 7)
    (first, second), (third, fourth) = figure.subplots(2, 2)
    depths = sorted({run["layers"] for run in found["descent"]})
    shades = {depth: 0.35 + 0.65 * index / (len(depths) - 1) for index, depth in enumerate(depths)}
    for run in found["descent"]:
        colour = LIGHT[0] if run["net"] == "residual" else LIGHT[1]
        ends = run["layers"] in (depths[0], depths[-1])
        first.plot(
            [step + 1 for step in run["steps"]],
            run["losses"],
            color=colour,
            alpha=shades[run["layers"]],
            label=f"{run['net']}, {run['layers']} layers" if ends else None,
        )
    first.set(xscale="log", yscale="log", ylim=(1e-12, None))
    tidy(first, "loss along training from near-zero weights", "step + 1", "f − f_opt")
    first.legend(frameon=False, fontsize=8, loc="lower left")
    for index, run in enumerate(found["gradients"]):
        colour = LIGHT[0] if run["net"] == "residual" else LIGHT[1]
        small = run["spread"] == min(other["spread"] for other in found["gradients"])
        second.plot(
            run["layers"], run["expected"], color=colour, linestyle="-" if small else "--", linewidth=1
        )
        label = f"{run['net']}, weights N(0, {run['spread']:g}/d)"
        second.scatter(run["layers"], run["measured"], color=colour, marker=MARKERS[index], s=22, label=label)
    second.set_yscale("log")
    tidy(
        second,
        "gradient at such a start (lines: exact expectation)",
        "layers l",
        "‖∂f/∂A_i‖, root mean square",
    )
    second.legend(frameon=False, fontsize=8, loc="lower left")
    for axes, net in ((third, "residual"), (fourth, "plain")):
        kinds = {"global minimum": LIGHT[0], "saddle": LIGHT[1], "other": GREY}
        for index, (kind, colour) in enumerate(kinds.items()):
            points = [
                (norm, max(excess, 1e-34))
                for run in found["critical_points"]
                if run["net"] == net
                for norm, excess, own in zip(run["norm"], run["excess"], run["kind"], strict=True)
                if own == kind and norm < 4
            ]
            if points:
                across, up = zip(*points, strict=True)
                axes.scatter(
                    across, up, s=14, color=colour, marker=MARKERS[index], alpha=0.6, linewidths=0, label=kind
                )
        axes.axvline(1, color=GREY, linestyle="--", linewidth=0.8)
        axes.set(yscale="log", xlim=(0, 4))
        tidy(axes, f"critical points of the {net} net", "‖A‖, the largest layer", "f − f_opt (1e−34: zero)")
        axes.legend(frameon=False, fontsize=8, loc="center right")
    save(figure, place)


def draw_allconv(found: dict[str, Any], place: Path) -> None:
    """Test error by epoch: the mean over seeds, and each seed faintly."""
    figure = new_figure(7, 3.8)
    axes = figure.subplots()
    for index, one in enumerate(found["variants"]):
        runs = [[100 * error for error in run["test_errors"]] for run in one["runs"] if not run["diverged"]]
        if not runs:
            continue
        epochs = range(len(runs[0]))
        for run in runs:
            axes.plot(epochs, run, color=LIGHT[index], alpha=0.25, linewidth=1)
        means = [sum(values) / len(values) for values in zip(*runs, strict=True)]
        how = {"color": LIGHT[index], "marker": MARKERS[index], "markersize": 5}
        axes.plot(epochs, means, label=f"{one['variant']}, rate {one['rate']:g}", **how)
    axes.set_ylim(0, 95)
    tidy(axes, "CIFAR-10, the small all-convolutional net", "epoch", "test error %")
    axes.legend(frameon=False, fontsize=8, loc="lower left")
    save(figure, place)
