"""The figures of docs/paper.md from any folder of results that run.py has written.

python -m experiments.paper.figures RESULTS FIGURES
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from obverse._core.statistics import mean_and_se
from obverse.present.palette import LIGHT, MARKERS

from .._lab.drawing import new_figure, tidy
from ..mnist import width as wide
from . import run as paper
from .training import read

# Colour and marker of an arm, in every figure. The variants of Figure 7 are never in one with dropout.
LOOK = {
    paper.BACKPROP: (0, 0),
    paper.SHADOW: (1, 1),
    paper.CONTROL: (6, 6),
    paper.DROPOUT: (2, 2),
    paper.BOTH: (3, 3),
    paper.UNSCALED: (5, 9),
    paper.OUTPUT: (5, 5),
    paper.SAMPLING: (2, 7),
    paper.SMOOTHING: (3, 8),
}
LAYERS = ("h1", "h2")
WIDE_STEPS = 600  # of the curves at width 5000: one epoch
STEPS = "steps of 100 images"
DATA = {"mnist": "MNIST", "cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}
Point = Mapping[str, Any]
Curves = dict[str, dict[int, list[Point]]]  # by arm and seed


def curves_of(folder: Path, part: str) -> Curves:
    """Finished curves in the order of the arms; those that diverged have no end and are left out."""
    found: Curves = {}
    for record in read(folder / f"{part}.jsonl").values():
        if not record["diverged"]:
            found.setdefault(record["arm"], {})[record["settings"]["seed"]] = record["curve"]
    return {arm: dict(sorted(found[arm].items())) for arm in paper.ARMS if arm in found}


def title_of(folder: Path, part: str) -> str:
    """Data and width of the runs of a part."""
    settings = next(iter(read(folder / f"{part}.jsonl").values()))["settings"]
    return f"{DATA.get(settings['data'], settings['data'])}, width {settings['hidden'][0]}"


def width_5000(folder: Path) -> Curves:
    """Arms of experiments/mnist beside those of this one, of the published folder."""
    found: Curves = {}
    if folder == paper.FOLDER:
        for record in wide.read(wide.FOLDER / "curves.jsonl"):
            found.setdefault(record["arm"], {}).setdefault(record["seed"], []).append(record)
    found |= curves_of(folder, "mnist-5000")
    return {arm: found[arm] for arm in paper.ARMS if arm in found}


def over_seeds(
    curves: Mapping[int, Sequence[Point]], value: Callable[[Point], float | None]
) -> dict[int, list[float]]:
    """The values of all seeds by step, at the steps that every seed has."""
    by_step: dict[int, list[float]] = {}
    for curve in curves.values():
        for point in curve:
            if (found := value(point)) is not None:
                by_step.setdefault(point["step"], []).append(found)
    return {step: values for step, values in sorted(by_step.items()) if len(values) == len(curves)}


def line(axes: Any, arm: str, by_step: Mapping[int, Sequence[float]], factor: float) -> None:
    """Mean over seeds, band of one standard error."""
    colour, shape = LOOK[arm]
    steps = list(by_step)
    points = [mean_and_se([factor * value for value in values]) for values in by_step.values()]
    mean, band = [m for m, _ in points], [se or 0.0 for _, se in points]
    style = {"color": LIGHT[colour], "marker": MARKERS[shape], "markersize": 3.5, "linewidth": 1.3}
    axes.plot(steps, mean, label=arm, **style)
    low = [m - b for m, b in zip(mean, band, strict=True)]
    high = [m + b for m, b in zip(mean, band, strict=True)]
    axes.fill_between(steps, low, high, color=LIGHT[colour], alpha=0.18, linewidth=0)


def errors(axes: Any, curves: Curves, field: str, title: str, last: int | None = None) -> None:
    """One panel: an error in % against steps, the untrained net left out."""
    for arm, seeds in curves.items():
        by_step = over_seeds(seeds, lambda point: point.get(field))
        shown = {s: v for s, v in by_step.items() if s > 0 and (last is None or s <= last)}
        line(axes, arm, shown, 100)
    low, high = axes.get_ylim()
    if high > 2 * low > 0:
        axes.set_yscale("log")
        ticks = [tick for tick in (1, 1.5, 2, 3, 4, 5, 7, 10, 15, 20, 30, 40, 60, 80) if low <= tick <= high]
        axes.set_yticks(ticks, labels=[f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
    axes.grid(alpha=0.25)
    tidy(axes, title, STEPS, "error, %")


def only(curves: Curves, arms: Iterable[str]) -> Curves:
    wanted = tuple(arms)
    return {arm: curve for arm, curve in curves.items() if arm in wanted}


def legend(figure: Any, axes: Iterable[Any]) -> None:
    """One legend below all panels, each arm once."""
    handles: dict[str, Any] = {}
    for one in axes:
        for handle, label in zip(*one.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    known = [arm for arm in paper.ARMS if arm in handles]
    columns = len(known) if len(known) <= 5 else -(-len(known) // 2)
    lines = [handles[arm] for arm in known]
    figure.legend(lines, known, loc="outside lower center", ncols=columns, frameon=False, fontsize=9)


def grid_of_errors(panels: Sequence[tuple[str, Curves]]) -> Any:
    """Above the errors on test images, below those on their shadows; a column for each of the panels."""
    figure = new_figure(4.6 * len(panels) + 0.4, 6.4)
    axes = figure.subplots(2, len(panels), squeeze=False)
    for column, (title, curves) in enumerate(panels):
        errors(axes[0][column], curves, "test_error", f"{title}: test images")
        errors(axes[1][column], curves, "shadow_error", f"{title}: their shadows")
    legend(figure, axes.flat)
    return figure


def row_of_errors(curves: Curves, last: int) -> Any:
    """Errors on test images and on their shadows side by side, up to a step."""
    figure = new_figure(9.6, 3.9)
    axes = figure.subplots(1, 2)
    for one, name, title in zip(
        axes, ("test_error", "shadow_error"), ("test images", "their shadows"), strict=True
    ):
        errors(one, curves, name, title, last)
    legend(figure, axes)
    return figure


def audits(field: str, layer: str) -> Callable[[Point], float | None]:
    def value(point: Point) -> float | None:
        found: float | None = point["audit"][layer][field] if "audit" in point else None
        return found

    return value


def recovery(layer: str) -> Callable[[Point], float | None]:
    return lambda point: point["recovery_error"][layer]


RANDOM_LIKE: dict[str, tuple[str, Callable[[str], Callable[[Point], float | None]]]] = {
    "how far W has moved": ("‖W − W₀‖ / ‖W₀‖", lambda layer: audits("moved", layer)),
    "spikes beyond the bulk": ("share of the energy", lambda layer: audits("spike_share", layer)),
    "own h down and up, one layer": ("error ÷ that of shuffled W", lambda layer: audits("own_ratio", layer)),
    "h down to pixels and up": ("recovery error", recovery),
}


def random_like(curves: Curves) -> Any:
    """How far each layer is from random weights, along training."""
    figure = new_figure(13, 6.2)
    axes = figure.subplots(len(LAYERS), len(RANDOM_LIKE))
    for row, layer in zip(axes, LAYERS, strict=True):
        for one, (title, (unit, value)) in zip(row, RANDOM_LIKE.items(), strict=True):
            for arm, seeds in curves.items():
                line(one, arm, over_seeds(seeds, value(layer)), 1)
            one.grid(alpha=0.25)
            tidy(one, f"{layer}: {title}", STEPS, unit)
    legend(figure, axes.flat)
    return figure


def save(figure: Any, place: Path) -> None:
    import matplotlib

    place.parent.mkdir(parents=True, exist_ok=True)
    # The same file from the same numbers: no date, no random identifiers.
    with matplotlib.rc_context({"svg.hashsalt": "obverse"}):
        figure.savefig(place, metadata={"Date": None} if place.suffix == ".svg" else None, dpi=90)


def draw_all(folder: Path, figures: Path, form: str = "svg") -> list[Path]:
    """Every figure that the results are there for."""
    mnist, full = curves_of(folder, "mnist-1000"), width_5000(folder)
    drawn: dict[str, Any] = {}
    figure_3 = (*paper.FOUR, paper.CONTROL)
    panels = [
        (title_of(folder, part), only(curves, figure_3))
        for part in ("mnist-1000", "cifar10-1000", "cifar10-5000")
        if (curves := curves_of(folder, part))
    ]
    if panels:
        drawn["figures-3-5"] = grid_of_errors(panels)
    variants = curves_of(folder, "cifar10-500")
    sixth = only(variants, (paper.BACKPROP, paper.SHADOW, paper.OUTPUT))
    seventh = only(variants, (paper.BACKPROP, paper.SHADOW, paper.SAMPLING, paper.SMOOTHING))
    if len(sixth) == 3 and len(seventh) > 2:
        drawn["figures-6-7"] = grid_of_errors([("from h̃2 or h̃3", sixth), ("sampling, smoothing", seventh)])
    if full:
        drawn["width-5000"] = row_of_errors(full, WIDE_STEPS)
    if any("audit" in point for seeds in mnist.values() for curve in seeds.values() for point in curve):
        drawn["random-like"] = random_like(mnist)
    places = []
    for name, figure in drawn.items():
        places.append(figures / f"paper-{name}.{form}")
        save(figure, places[-1])
    return places


if __name__ == "__main__":
    for place in draw_all(Path(sys.argv[1]).resolve(), Path(sys.argv[2])):
        print(place)
