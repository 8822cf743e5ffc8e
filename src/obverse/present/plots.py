"""Matplotlib drawings that several rooms share: rows with intervals, bars, curves. Not for what they show.

Text of any origin is shortened, printed as it is (no mathematics) and limited to letters the font has.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from .._core import named, short
from . import palette as palette
from .axis import Axis
from .table import shorten_all

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAME = 34  # letters of a name beside a row
MOST_ROWS = 40  # rows with names; more than these are left out, and the figure says how many
ROW, EDGES = 0.27, 1.0  # inches of a row, and of what stands above and below all rows
MISSING = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True)
class Ink:
    """The colours of a figure."""

    ink: str
    soft: str
    grid: str
    page: str
    colours: tuple[str, ...]

    def series(self, index: int) -> str:
        return self.colours[index % len(self.colours)]


LIGHT_INK = Ink(*palette.LIGHT_INK, palette.LIGHT_PAGE, palette.LIGHT)
DARK_INK = Ink(*palette.DARK_INK, palette.DARK_PAGE, palette.DARK)


class Mark(NamedTuple):
    """A value on a row, its interval if there is one; `hollow` for what is a control or a reference."""

    value: float | None
    low: float | None = None
    high: float | None = None
    series: int = 0
    hollow: bool = False


def drawable(text: str, longest: int = 120) -> str:
    """A text of any origin, every letter of which the figures' font has."""
    has = _letters()
    return "".join(letter if letter.isascii() or ord(letter) in has else MISSING for letter in named(text))[
        :longest
    ]


@cache
def _letters() -> frozenset[int]:
    from matplotlib.font_manager import findfont, get_font

    return frozenset(get_font(findfont("DejaVu Sans")).get_charmap())


def finite(*values: float | None) -> bool:
    return all(value is not None and math.isfinite(value) for value in values)


def rows_size(count: int, width: float = 6.4) -> tuple[float, float]:
    return width, EDGES + ROW * max(3, min(count, MOST_ROWS) + (count > MOST_ROWS))


def name_rows(axes: Axes, names: Sequence[str], ink: Ink) -> None:
    """Rows from the top; the caller draws at 0, 1, … and has cut them to `MOST_ROWS`."""
    said = shorten_all([drawable(name) or "(no name)" for name in names], NAME)
    axes.set_yticks(range(len(said)), [cut if len(cut) <= NAME else f"{cut[: NAME - 1]}…" for cut in said])
    for label in axes.get_yticklabels():
        label.set_parse_math(False)
    pad = 0.4 * max(0, 3 - len(said))  # one bar need not fill the figure
    axes.set_ylim(len(said) - 0.4 + pad, -0.6 - pad)
    if axes.get_xscale() == "linear":
        axes.locator_params(axis="x", nbins=6)
    axes.grid(False, axis="y")
    axes.tick_params(axis="y", length=0)


def along(axes: Axes, label: str, count: int = 0, what: str = "rows") -> None:
    """What stands along the horizontal axis, and below it that `count` rows are missing."""
    more = f"and {count:,} more {what}: to_frame() has all" if count > 0 else ""
    axes.set_xlabel("\n".join(text for text in (label, more) if text))


def interval_rows(
    axes: Axes, ink: Ink, rows: Sequence[tuple[str, Sequence[Mark]]], label: str = "", what: str = "rows"
) -> None:
    """Named rows, each with one or more values and their intervals."""
    shown = rows[:MOST_ROWS]
    for y, (_, marks) in enumerate(shown):
        for at, mark in enumerate(marks):
            place = y + (0.22 * (at - (len(marks) - 1) / 2) if len(marks) > 1 else 0.0)
            colour = ink.series(mark.series)
            if mark.low is not None and mark.high is not None and finite(mark.low, mark.high):
                axes.plot([mark.low, mark.high], [place, place], color=colour, linewidth=1.6)
            if mark.value is not None and finite(mark.value):
                axes.plot(
                    [mark.value],
                    [place],
                    marker=palette.marker(mark.series),
                    markersize=6,
                    color=colour,
                    markerfacecolor="none" if mark.hollow else colour,
                    linestyle="none",
                )
    name_rows(axes, [name for name, _ in shown], ink)
    along(axes, label, len(rows) - len(shown), what)


def bar_rows(
    axes: Axes,
    ink: Ink,
    rows: Sequence[tuple[str, Sequence[float | None]]],
    label: str = "",
    what: str = "rows",
    *,
    errors: Sequence[Sequence[float | None]] = (),
    said: Callable[[float], str] | None = None,
) -> None:
    """Named rows, a bar per series beside each other; `said` writes each value at the end of its bar."""
    shown = rows[:MOST_ROWS]
    count = max((len(values) for _, values in shown), default=1)
    height = 0.76 / count
    for at in range(count):
        for y, (_, values) in enumerate(shown):
            value = values[at] if at < len(values) else None
            if value is None or not finite(value):
                continue
            place = y + height * (at - (count - 1) / 2)
            axes.barh(place, value, height=0.92 * height, color=ink.series(at), linewidth=0)
            error = errors[y][at] if errors and at < len(errors[y]) else None
            if error is not None and error > 0 and finite(error):
                axes.errorbar(value, place, xerr=error, color=ink.ink, linewidth=1.2, capsize=2)
            if said is not None:
                axes.annotate(
                    said(value), (value, place), xytext=(4, 0), textcoords="offset points", va="center"
                )
    name_rows(axes, [name for name, _ in shown], ink)
    along(axes, label, len(rows) - len(shown), what)
    if said is not None:
        axes.margins(x=0.16)


def curve(
    axes: Axes,
    ink: Ink,
    x: Sequence[float],
    y: Sequence[float | None],
    index: int = 0,
    *,
    label: str = "",
    spread: Sequence[float] | None = None,
    dashed: bool = False,
    marked: bool = True,
) -> None:
    """A line, broken where a value is missing; a band of ± `spread` around it."""
    values = [value if value is not None and math.isfinite(value) else math.nan for value in y]
    colour = ink.series(index)
    many = len(values) > MOST_ROWS
    options: dict[str, Any] = {"label": drawable(label, 60)} if label else {}
    if marked and (not many or len(values) == 1):
        options |= {"marker": palette.marker(index), "markersize": 5}
        if dashed:
            options["markerfacecolor"] = "none"
    axes.plot(x, values, color=colour, linestyle=(0, (4, 2)) if dashed else "-", **options)
    if spread is not None:
        low, high = (
            [value + sign * error for value, error in zip(values, spread, strict=True)] for sign in (-1, 1)
        )
        axes.fill_between(x, low, high, color=colour, alpha=0.16, linewidth=0)


def reference(
    axes: Axes,
    ink: Ink,
    value: float | None,
    label: str = "",
    *,
    across: bool = False,
    index: int | None = None,
) -> None:
    """A thin dashed line at a value: upright, or `across`."""
    if not finite(value) or value is None:
        return
    line = axes.axhline if across else axes.axvline
    colour = ink.soft if index is None else ink.series(index)
    line(value, color=colour, linewidth=1.1, linestyle=(0, (4, 3)), label=label or "_", zorder=1)


def legend(axes: Axes, ink: Ink) -> None:
    """Below the axes, where it hides nothing; none where there is nothing to distinguish."""
    handles, labels = axes.get_legend_handles_labels()
    if not handles:
        return
    box = axes.legend(
        handles,
        labels,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.01),
        ncols=2 if max(map(len, labels)) < 24 else 1,
        frameon=False,
        fontsize="small",
        borderaxespad=0.0,
        handlelength=1.8,
    )
    for text in box.get_texts():
        text.set_parse_math(False)
        text.set_color(ink.ink)


def swatch(axes: Axes, colour: str, label: str, **options: Any) -> None:
    """An entry of the legend for what was drawn in many pieces."""
    axes.plot([], [], color=colour, label=drawable(label, 60), **options)


def fill_swatch(axes: Axes, colour: str, label: str) -> None:
    axes.fill_between([], [], color=colour, label=drawable(label, 60), linewidth=0)


def finish(axes: Axes) -> None:
    """The labels of logarithmic axes, as numbers are written everywhere else; for when all is drawn."""
    for axis, scale, limits in (
        (axes.xaxis, axes.get_xscale(), axes.get_xlim()),
        (axes.yaxis, axes.get_yscale(), axes.get_ylim()),
    ):
        if scale not in ("log", "symlog"):
            continue
        low, high = min(limits), max(limits)
        if scale == "log":
            ticks = Axis(low, high, logarithmic=True).ticks()
        else:
            linear = axis.get_transform().linthresh  # type: ignore[attr-defined]
            sizes = _decades(linear, max(abs(low), abs(high)))
            values = [0.0, *sizes, *(-size for size in sizes)] if low < 0 else [0.0, *sizes]
            ticks = [(value, short(value)) for value in sorted(values)]
        inside = [(value, label) for value, label in ticks if low <= value <= high]
        axis.set_ticks([value for value, _ in inside], [label for _, label in inside])
        axis.set_ticks([], minor=True)


def _decades(low: float, high: float) -> list[float]:
    """At most four powers of ten from `low` to `high`."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(max(high, low)) + 1e-9)
    step = max(1, math.ceil((last - first + 1) / 4))
    return [10.0**power for power in range(last, first - 1, -step)]


def whole_ticks(axes: Axes) -> None:
    """Counts along the horizontal axis: no halves."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(nbins=7, integer=True, min_n_ticks=1))
