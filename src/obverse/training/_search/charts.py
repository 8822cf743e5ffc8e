"""The figures of a search: SVG by hand, from numbers alone. Not for words.

Every coordinate is clipped to its frame, so that nothing a file says can leave it.
"""

from __future__ import annotations

import math

from ..._core import percent
from ...present import Axis, axis_for, coordinate
from .results import SearchResult, Trial, value

CELL_WIDTH, CELL_HEIGHT = 56, 34
NAMES, FOOT = 44, 38  # left of the cells, and below them
WIDTH, HEIGHT = 300, 190  # of the frame of a plot
LEFT, RIGHT, TOP, BELOW = 50, 12, 10, 36
SPAN = 4.0  # errors from so many times the best on have the palest colour
STEPS = 5  # of colour
MOST_CELLS = 30  # lrs or weights in a map; more are drawn as points
MOST_CURVES = 200
TICKS = 6


def shade(error: float | None, best: float | None) -> int:
    """From 0, pale, to STEPS, full: how near an error is to the best, on a logarithmic scale."""
    if error is None or best is None:
        return 0
    floor = 1e-4  # a best error of 0 has no logarithm
    share = math.log(max(error, floor) / max(best, floor)) / math.log(SPAN)
    return round(STEPS * (1 - min(max(share, 0.0), 1.0)))


def landscape(result: SearchResult) -> str:
    """Rate against weight: a map of cells for a grid, points otherwise."""
    cells = max(len(result.lrs), len(result.weights)) <= MOST_CELLS
    return heat_map(result) if result.sampler == "grid" and cells else scatter(result)


def heat_map(result: SearchResult) -> str:
    """One cell a setting: lrs across, weights upwards; empty where there was no trial."""
    best = result.best
    low = best.error if best else None
    found = {(trial.lr, trial.weight): trial for trial in result.trials}
    width, height = CELL_WIDTH * len(result.lrs), CELL_HEIGHT * len(result.weights)
    whole = max(NAMES + width + 4, LEFT + WIDTH + RIGHT)  # so that letters are as large as in the other plots
    parts = [_open("landscape", "Held-out error by lr and weight", whole, height + FOOT, -NAMES, -2)]
    for column, lr in enumerate(result.lrs):
        for line, weight in enumerate(reversed(result.weights)):
            x, y = column * CELL_WIDTH, line * CELL_HEIGHT
            parts.append(_cell(found.get((lr, weight)), x, y, low))
    if best is not None and best.lr in result.lrs and best.weight in result.weights:
        x = result.lrs.index(best.lr) * CELL_WIDTH
        y = (len(result.weights) - 1 - result.weights.index(best.weight)) * CELL_HEIGHT
        size = f'width="{CELL_WIDTH - 4}" height="{CELL_HEIGHT - 4}"'
        parts.append(f'<rect class="best" x="{x + 2}" y="{y + 2}" {size}/>')
    for column, lr in enumerate(result.lrs):
        parts.append(_text(column * CELL_WIDTH + CELL_WIDTH / 2, height + 14, value(lr)))
    for line, weight in enumerate(reversed(result.weights)):
        parts.append(_text(-6, line * CELL_HEIGHT + CELL_HEIGHT / 2, value(weight), "end"))
    parts.append(_text(width / 2, height + 31, "lr across, weight upwards"))
    return "".join(parts) + "</svg>"


def _cell(trial: Trial | None, x: float, y: float, best: float | None) -> str:
    complete = trial is not None and trial.state == "complete"
    kind = f"cell shade-{shade(trial.error, best)}" if trial and complete else "cell none"
    size = f'width="{CELL_WIDTH - 2}" height="{CELL_HEIGHT - 2}"'
    said = "" if trial is None else percent(trial.error) if complete else _mark(trial)
    return f'<rect class="{kind}" x="{x + 1}" y="{y + 1}" {size}/>' + _text(
        x + CELL_WIDTH / 2, y + CELL_HEIGHT / 2, said, "in" if complete else "in soft"
    )


def _mark(trial: Trial) -> str:
    return {"pruned": f"stop {trial.epochs}", "failed": "failed", "running": "…"}[trial.state]


def scatter(result: SearchResult) -> str:
    """One point a trial; the nearer to the best, the stronger its colour."""
    best = result.best
    low = best.error if best else None
    across, up = (axis_for([*ends, *values], span=2.0) for ends, values in _ranges(result))
    parts = [_frame("landscape", "Held-out error by lr and weight", across, up, "lr across, weight upwards")]
    drawn = sorted(result.trials, key=lambda it: shade(it.error, low))
    for trial in drawn[-MOST_CURVES:]:
        place = _place(across, up, trial.lr, trial.weight)
        kind = f"dot shade-{shade(trial.error, low)}" if trial.state == "complete" else "dot none"
        parts.append(f'<circle class="{kind}" {place} r="5.5"/>')
    if best is not None:
        parts.append(f'<circle class="best" {_place(across, up, best.lr, best.weight)} r="8.5"/>')
    return "".join(parts) + "</svg>"


def _ranges(result: SearchResult) -> tuple[tuple[list[float], list[float]], tuple[list[float], list[float]]]:
    lrs, weights = [it.lr for it in result.trials], [it.weight for it in result.trials]
    return (list(result.lrs), lrs), (list(result.weights), weights)


def curves(result: SearchResult) -> str:
    """Held-out error by epoch, a line a trial; the best in colour, a dot where one was stopped early."""
    best = result.best
    shown = sorted(result.trials, key=lambda it: (it is best, -(2.0 if it.error is None else it.error)))
    shown = [it for it in shown if it.curve][-MOST_CURVES:]
    errors = [100 * error for it in shown for _, error in it.curve]
    up, across = axis_for(errors, from_zero=True), Axis(0.0, float(max(result.epochs, 1)) * 1.02)
    parts = [
        _frame("curves", "Held-out error by epoch", across, up, "epoch across, held-out error in % upwards")
    ]
    for trial in shown:
        places = [(across.share(epoch), up.share(100 * error)) for epoch, error in trial.curve]
        path = "L".join(f"{coordinate(WIDTH * x)} {coordinate(HEIGHT * (1 - y))}" for x, y in places)
        kind = "own" if trial is best else "beside"
        parts.append(f'<path class="line {kind}" d="M{path}"/>')
        if trial.state == "pruned" or len(places) == 1:
            end = path.rpartition("L")[2]
            parts.append(f'<path class="stop {kind}" d="M{end}h0"/>')
    return "".join(parts) + "</svg>"


def history(result: SearchResult) -> str:
    """The error of each complete trial by its number, and the smallest so far."""
    done = result.complete
    errors = [100 * trial.error for trial in done if trial.error is not None]
    up = axis_for(errors, from_zero=True)
    across = Axis(0.0, float(max(result.planned, 2)))
    parts = [_frame("history", "Best so far", across, up, "trial across, held-out error in % upwards")]
    least, path = math.inf, ""
    for trial, error in zip(done, errors, strict=True):
        x = coordinate(WIDTH * across.share(trial.number + 0.5))
        if error < least:
            y = coordinate(HEIGHT * (1 - up.share(error)))
            path += f"H{x}V{y}" if path else f"M{x} {y}"
            least = error
        parts.append(f'<path class="stop beside" d="M{x} {coordinate(HEIGHT * (1 - up.share(error)))}h0"/>')
    if path:
        parts.append(f'<path class="line own" d="{path}H{WIDTH}"/>')
    return "".join(parts) + "</svg>"


def _frame(name: str, title: str, across: Axis, up: Axis, words: str) -> str:
    parts = [_open(name, title, LEFT + WIDTH + RIGHT, TOP + HEIGHT + BELOW, -LEFT, -TOP)]
    for tick, label in up.ticks(TICKS):
        y = coordinate(HEIGHT * (1 - up.share(tick)))
        parts.append(f'<path class="axis" d="M0 {y}H{WIDTH}"/>' + _text(-6, float(y), label, "end"))
    parts.append(f'<path class="axis" d="M0 {HEIGHT}H{WIDTH}"/>')
    for tick, label in across.ticks(TICKS):
        parts.append(_text(WIDTH * across.share(tick), HEIGHT + 14, label))
    parts.append(_text(WIDTH / 2, HEIGHT + 31, words))
    return "".join(parts)


def _place(across: Axis, up: Axis, lr: float, weight: float) -> str:
    x, y = WIDTH * across.share(lr), HEIGHT * (1 - up.share(weight))
    return f'cx="{coordinate(x)}" cy="{coordinate(y)}"'


def _text(x: float, y: float, words: str, kind: str = "") -> str:
    """`words` are never text from a file."""
    name = f' class="{kind}"' if kind else ""
    return f'<text{name} x="{coordinate(x)}" y="{coordinate(y)}">{words}</text>' if words else ""


def _open(name: str, title: str, width: float, height: float, x: float, y: float) -> str:
    return (
        f'<svg viewBox="{x} {y} {width} {height}" role="img" aria-labelledby="plot-{name}">'
        f'<title id="plot-{name}">{title}</title>'
    )
