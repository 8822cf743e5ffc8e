"""Tables that fit the terminal: columns go, names get shorter, stars stand where colours cannot. No contents.

Whatever is printed through here is cleaned first: a layer may be called anything.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from .._core import NONE, printable

if TYPE_CHECKING:
    from rich.console import Console

GAP = 2  # letters between columns
NAME = 20  # of a long name so many letters are shown, before another column has to go
FEWEST = 10  # … and so many at the very least
SENTENCE = 24  # letters on a line of a column of sentences, at least
PIPED = 100  # columns where nothing says how wide the output is


@dataclass(frozen=True)
class Column:
    """A title and a text a row; `marked` rows get a star, and colour on a terminal."""

    title: str
    cells: tuple[str, ...]
    meaning: str = ""
    marked: frozenset[int] = frozenset()
    drop: int = 0  # columns with the largest number go first where there is no room; 0: never
    left: bool = False
    styles: tuple[str, ...] = ()  # of each cell, in place of the mark's
    whole: bool = False  # names that are there to be copied: never shortened
    folded: bool = False  # sentences: onto as many lines as they need in the room that is left

    @cached_property
    def shown(self) -> tuple[str, ...]:
        return tuple(f"{text}*" if at in self.marked else text for at, text in enumerate(self.cells))

    @cached_property
    def width(self) -> int:
        longest = max(map(len, (self.title, *self.shown)))
        return min(longest, SENTENCE) if self.folded else longest

    def style(self, at: int) -> str:
        return self.styles[at] if self.styles else "red" if at in self.marked else ""


def open_console() -> Console:
    """A console on stdout as wide as its terminal, or as COLUMNS says, or of `PIPED` columns."""
    from rich.console import Console

    known = Console().is_terminal or os.environ.get("COLUMNS")
    return Console(width=None if known else PIPED, highlight=False, markup=False, emoji=False)


def say(console: Console, text: str, style: str = "") -> None:
    """A line of text, folded on a terminal and left whole in a file."""
    from rich.text import Text

    console.print(Text(printable(text), style), soft_wrap=not console.is_terminal)


def print_grid(console: Console, columns: Sequence[Column], star: str) -> None:
    """The table, and below it what its columns and its star mean; the first column holds names."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    columns = fit(columns, console.width)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0))
    for column in columns:
        table.add_column(
            column.title,
            justify="left" if column.left else "right",
            no_wrap=not column.folded,
            overflow="fold" if column.folded else "ellipsis",
        )
    for at in range(len(columns[0].cells)):
        table.add_row(*(Text(column.shown[at], column.style(at)) for column in columns))
    console.print(table)
    said = [f"{column.title}: {column.meaning}" for column in columns if column.meaning]
    if any(column.marked for column in columns):
        said.append(f"*: {star}")
    console.print()
    if said:
        console.print(Text("; ".join(said), "dim"))
        console.print()


def fit(columns: Sequence[Column], width: int) -> list[Column]:
    """Those columns that say something and have room beside names of `NAME` letters."""
    kept = [replace(column, cells=tuple(map(printable, column.cells))) for column in columns]
    kept[1:] = [column for column in kept[1:] if set(column.cells) != {NONE}]
    wanted = kept[0].width if kept[0].whole else min(kept[0].width, NAME)

    def room() -> int:
        return width - sum(column.width + GAP for column in kept[1:])

    while room() < wanted and any(column.drop for column in kept):
        kept.remove(max(kept, key=lambda column: column.drop))
    if kept[0].whole:
        return kept
    names = tuple(shorten(name, max(room(), FEWEST)) for name in kept[0].cells)
    return [replace(kept[0], cells=names), *kept[1:]]


def shorten(name: str, width: int) -> str:
    """A dotted name in at most `width` letters: outer parts to their initials, then an ellipsis inside.

    Numbers stay, because they tell layers apart.

    >>> shorten("model.layers.31.self_attn.q_proj", 24)
    'm.l.31.self_attn.q_proj'
    """
    parts = name.split(".")
    for at in range(len(parts) - 1):
        if len(".".join(parts)) <= width:
            break
        parts[at] = parts[at][:1] + "".join(filter(str.isdigit, parts[at][1:]))
    short = ".".join(parts)
    if len(short) <= width:
        return short
    tail = 2 * (width - 1) // 3  # the end of a name says more than its beginning
    return f"{name[: width - 1 - tail]}…{name[len(name) - tail :]}"
