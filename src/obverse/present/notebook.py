"""`plot`, `html` and `frame` of any result, by what its room has registered. Not for what is in them."""

from __future__ import annotations

import inspect
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from .._core import NONE, BadInput, at_most, listed, named, number, plain, printable, require, spell
from . import palette
from .plots import DARK_INK, LIGHT_INK, Ink, drawable, finish
from .registry import Look, Panel, look_of
from .registry import Table as Table
from .template import environment

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EXTRA = "notebook"
MOST_ROWS, MOST_COLUMNS = 10, 12  # of the table in a cell
LONGEST = 240  # letters of a cell, and of the sentence above
COLUMNS = 3  # of several figures side by side
DPI = 110
LARGEST = 60.0  # inches of a figure, either way


def plot(
    result: Any,
    ax: Axes | None = None,
    what: str | Sequence[str] | None = None,
    *,
    figsize: tuple[float, float] | None = None,
    dpi: float | None = None,
    title: str | None = None,
    dark: bool = False,
    **options: Any,
) -> Any:
    """See `Shown.plot`."""
    look = _look(result)
    panels = _chosen(look, result, what)
    if ax is not None:
        for name, value in (("figsize", figsize), ("dpi", dpi)):
            if value is not None:
                raise BadInput(f"{name} for a new figure", got="ax, too", do="give one of the two")
        if len(panels) > 1 and what is not None:
            raise BadInput("one figure for one ax", got=f"{len(panels)}", do="leave ax out")
        with _words_as_they_are():
            _draw(panels[:1], result, [ax], ink_of(ax), options)
            if title is not None:
                ax.set_title(drawable(title))
        return ax
    return _figure(panels, result, figsize, dpi, title, DARK_INK if dark else LIGHT_INK, options)


def _look(result: Any) -> Look:
    look = look_of(type(result))
    if look is None:
        raise BadInput("a result that has a figure", got=type(result).__name__, do="print it")
    return look


def _chosen(look: Look, result: Any, what: str | Sequence[str] | None) -> list[Panel]:
    """The figures asked for; without a name, all that there is something to draw of."""
    there = {panel.name: panel for panel in look.panels if panel.there(result)}
    if what is None:
        return list(there.values())
    asked = [what] if isinstance(what, str) else list(what)
    wrong = [name for name in asked if name not in there]
    if wrong or not asked:
        have = listed([repr(name) for name in there]) or "no figure: there is nothing to draw"
        raise BadInput(f"what as {have}", got=", ".join(map(repr, wrong)) or "nothing", do="choose of these")
    return [there[name] for name in asked]


def _figure(
    panels: Sequence[Panel],
    result: Any,
    figsize: tuple[float, float] | None,
    dpi: float | None,
    title: str | None,
    ink: Ink,
    options: Mapping[str, Any],
) -> Any:
    from matplotlib import style

    sizes = [panel.size(result) if callable(panel.size) else panel.size for panel in panels] or [(5.6, 1.6)]
    columns = min(COLUMNS, len(sizes))
    rows = [sizes[at : at + columns] for at in range(0, len(sizes), columns)]
    heights = [max(height for _, height in row) for row in rows]
    widths = [max(row[at][0] for row in rows if at < len(row)) for at in range(columns)]
    size = figsize or (min(sum(widths), LARGEST), min(sum(heights) + 0.3 * (title is not None), LARGEST))
    with style.context(_style(ink), after_reset=True):
        figure = _new_figure()(figsize=size, dpi=dpi or DPI, layout="constrained")
        grid = figure.add_gridspec(len(rows), columns, width_ratios=widths, height_ratios=heights)
        places = [figure.add_subplot(grid[at // columns, at % columns]) for at in range(len(sizes))]
        _draw(panels, result, places, ink, options)
        if title is not None:
            figure.suptitle(drawable(title), color=ink.ink, parse_math=False)
    return figure


def _draw(
    panels: Sequence[Panel], result: Any, places: Sequence[Axes], ink: Ink, options: Mapping[str, Any]
) -> None:
    known = {name for panel in panels for name in _options(panel)}
    for name in options:
        if name not in known:
            every = ["ax", "what", "figsize", "dpi", "title", "dark", *sorted(known)]
            raise BadInput(
                f"an option of plot, such as {listed(every)}", got=repr(name), do="use one of them"
            )
    if not panels:
        _nothing(places[0], ink)
    for panel, axes in zip(panels, places, strict=False):
        panel.draw(
            result, axes, ink, **{name: one for name, one in options.items() if name in _options(panel)}
        )
        finish(axes)


def _options(panel: Panel) -> list[str]:
    kinds = inspect.signature(panel.draw).parameters.values()
    return [one.name for one in kinds if one.kind is inspect.Parameter.KEYWORD_ONLY]


def _nothing(axes: Axes, ink: Ink) -> None:
    axes.set_axis_off()
    axes.text(0.5, 0.5, "nothing to draw", ha="center", va="center", color=ink.soft, transform=axes.transAxes)


def _style(ink: Ink) -> dict[str, Any]:
    return {
        "axes.axisbelow": True,
        "axes.edgecolor": ink.grid,
        "axes.facecolor": ink.page,
        "axes.grid": True,
        "axes.labelcolor": ink.ink,
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlesize": "medium",
        "axes.titlelocation": "left",
        "figure.facecolor": ink.page,
        "font.size": 9.5,
        "grid.color": ink.grid,
        "grid.linewidth": 0.7,
        "lines.linewidth": 1.6,
        "savefig.facecolor": "auto",
        "text.color": ink.ink,
        "text.parse_math": False,
        "xtick.color": ink.grid,
        "xtick.labelcolor": ink.ink,
        "ytick.color": ink.grid,
        "ytick.labelcolor": ink.ink,
    }


@contextmanager
def _words_as_they_are() -> Iterator[None]:
    """A name like `$x$` is a name."""
    from matplotlib import rc_context

    with rc_context({"text.parse_math": False}):
        yield


def ink_of(axes: Axes) -> Ink:
    """The colours that suit axes of somebody else: dark ones get the colours for a dark page."""
    from matplotlib.colors import to_rgba

    for colour in (axes.get_facecolor(), axes.figure.get_facecolor(), "white"):
        red, green, blue, alpha = to_rgba(colour)
        if alpha > 0.5:
            break
    return DARK_INK if 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.4 else LIGHT_INK


_FIGURES: list[Any] = []


def _new_figure() -> Any:
    """A Figure that a notebook shows by itself, with or without pyplot in it."""
    if not _FIGURES:
        from matplotlib.figure import Figure

        class ResultFigure(Figure):
            """A matplotlib Figure that pyplot does not know of."""

            def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
                buffer = io.BytesIO()
                self.savefig(buffer, format="png", dpi=2 * self.dpi)
                width, height = (round(side * self.dpi) for side in self.get_size_inches())
                return buffer.getvalue(), {"width": width, "height": height}

        _FIGURES.append(ResultFigure)
    return _FIGURES[0]


# --- HTML ---


def html(result: Any) -> str:
    """See `Shown._repr_html_`."""
    look = look_of(type(result))
    table = _fields(result) if look is None else look.table(result)
    words = str(result).split("\n", 1)[0] if look is None else look.words(result)
    rows, more = at_most(table.rows, MOST_ROWS)
    cells = [[plain(cell, LONGEST) for cell in row[:MOST_COLUMNS]] for row in rows]
    columns = range(min(len(table.headings), MOST_COLUMNS))
    text = (
        environment()
        .get_template("present/notebook.html.j2")
        .render(
            palette=palette,
            kind=type(result).__name__,
            words=plain(words, 2 * LONGEST),
            headings=[plain(heading, 60) for heading in table.headings[:MOST_COLUMNS]],
            numeric=[bool(at) and all(_is_numeric(row[at]) for row in cells) for at in columns],
            rows=cells,
            more=more,
            more_columns=len(table.headings) - len(columns),
        )
    )
    return printable(text, keep="\n")


def _is_numeric(cell: str) -> bool:
    return len(cell) <= 40 and (
        cell in ("", NONE, "—") or cell.lstrip("+−-≤≥<~ \N{NO-BREAK SPACE}")[:1].isdigit()
    )


def _fields(result: Any) -> Table:
    """What a result without a table of its own holds: numbers and words, and of lists how long they are."""
    return Table(("", "value"), [(name, cell(value)) for name, value in _named(result).items()])


def cell(value: Any) -> str:
    """A value of any kind as a short text."""
    if value is None:
        return NONE
    if isinstance(value, bool | str):
        return named(spell(value))
    if isinstance(value, int | float):
        return number(value)
    if hasattr(value, "shape"):
        return "×".join(map(str, value.shape)) or "a number"
    if isinstance(value, tuple | list | Mapping):
        return f"{len(value):,} of them"
    return plain(str(value))


def _named(value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return {str(name): one for name, one in value.items()}
    return {one.name: getattr(value, one.name) for one in fields(value)} if is_dataclass(value) else {}


# --- tables ---


def frame(result: Any) -> Any:
    """See `Shown.to_frame`."""
    pandas = require("pandas", EXTRA)
    look = look_of(type(result))
    items = list((result,) if look is None else look.items(result))
    rows = [flat(item) for item in items]
    names = list(dict.fromkeys(name for row in rows for name in row))
    # what is None in one row and has parts in another is there by its parts
    parted = {name for name in names if any(one.startswith(f"{name}_") for one in names)}
    empty = {name for name in parted if all(row.get(name) is None for row in rows)}
    return pandas.DataFrame(rows, columns=[name for name in names if name not in empty])


PAIR = 4  # a list of numbers of so many is spread over as many columns


def flat(item: Any, before: str = "") -> dict[str, Any]:
    """A row: plain values by name, those inside another value as `outer_inner`; long lists are left out."""
    row: dict[str, Any] = {}
    for name, value in _named(item).items():
        name = f"{before}{name}"
        if value is None or isinstance(value, bool | int | float | str):
            row[name] = value
        elif is_dataclass(value) or isinstance(value, Mapping):
            row |= flat(value, f"{name}_")
        elif isinstance(value, tuple | list) and 0 < len(value) <= PAIR and all(map(_is_plain, value)):
            ends: Sequence[Any] = ("low", "high") if name.endswith("interval") else range(len(value))
            row |= {f"{name}_{end}": one for end, one in zip(ends, value, strict=True)}
    return row


def _is_plain(value: Any) -> bool:
    return isinstance(value, int | float) and (isinstance(value, int) or math.isfinite(value))
