"""Tables that fit the terminal: columns go, names get shorter, stars stand where colours cannot. No contents.

Whatever is printed through here is cleaned first: a layer may be called anything.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Sequence
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
_NUMBER = re.compile(r"\d+")
_SLOT = "\ue000"  # in place of a number
_KEPT = f"{_SLOT})"  # of what is left out of a word
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
    stands_in: bool = False  # gets the star of a row where all columns that have it had to go

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
    """Those columns that say something and have room beside names of `NAME` letters, no two names alike."""
    kept = [replace(column, cells=tuple(map(printable, column.cells))) for column in columns]
    kept[1:] = [column for column in kept[1:] if set(column.cells) != {NONE}]

    def room() -> int:
        return width - sum(column.width + GAP for column in kept[1:])

    def drop_until(wanted: int) -> None:
        while room() < wanted and any(column.drop for column in kept):
            gone = max(kept, key=lambda column: column.drop)
            kept.remove(gone)
            elsewhere = frozenset[int]().union(*(column.marked for column in kept))
            kept[:] = [
                replace(column, marked=column.marked | gone.marked - elsewhere)
                if column.stands_in
                else column
                for column in kept
            ]

    if kept[0].whole:
        drop_until(kept[0].width)
        return kept
    drop_until(min(kept[0].width, NAME))
    names = shorten_all(kept[0].cells, max(room(), FEWEST))
    drop_until(max(map(len, names), default=0))  # short names that are alike would be no names
    return [replace(kept[0], cells=names), *kept[1:]]


def shorten(name: str, width: int) -> str:
    """A dotted name in at most `width` letters: outer parts to their initials, then an ellipsis inside.

    Numbers stay, because they tell layers apart.

    >>> shorten("model.layers.31.self_attn.q_proj", 24)
    'm.l.31.self_attn.q_proj'
    """
    short = shorten_all([name], width)[0]
    return short if len(short) <= width else _cut(name, width)


def shorten_all(names: Sequence[str], width: int) -> tuple[str, ...]:
    """Names in `width` letters where that is possible, no two that differ becoming alike.

    Words become initials, or as many letters as tell them from the others in their place: outer ones first,
    then those of the last part, and of these first the ones that are the same in all names. Numbers stay, and
    names that differ in nothing else are shortened alike.

    >>> shorten_all(["lstm.weight_ih_l0 (input gate)", "lstm.weight_hh_l0 (input gate)"], 22)
    ('l.w_ih_l0 (input gate)', 'l.w_hh_l0 (input gate)')
    """
    numbers = {name: _NUMBER.findall(name) for name in names}
    kinds: dict[str, list[str]] = {}
    for name in names:
        kinds.setdefault(_NUMBER.sub(_SLOT, name.replace(_SLOT, "?")), []).append(name)
    split = {kind: _words(kind) for kind in kinds}
    beside: dict[tuple[str, ...], set[str]] = {}
    for words in split.values():
        for at, word in enumerate(words):
            beside.setdefault(words[:at], set()).add(word)
    initials = {before: _initials(words) for before, words in beside.items()}
    found: dict[str, str] = {}
    for kind, words in split.items():
        leaf = max((at + 1 for at, word in enumerate(words) if word.endswith(".")), default=0)

        def order(at: int, words: tuple[str, ...] = words, leaf: int = leaf) -> tuple[bool, bool, int]:
            return at >= leaf, at >= leaf and len(beside[words[:at]]) > 1, at

        digits = max(sum(map(len, numbers[name])) for name in kinds[kind]) - kind.count(_SLOT)
        short = list(words)
        for at in sorted(range(len(words)), key=order):
            if sum(map(len, short)) + digits <= width:
                break
            short[at] = initials[words[:at]][words[at]]
        found |= {name: _filled("".join(short), numbers[name]) for name in kinds[kind]}
        if len(kinds[kind]) == 1 and len(found[kinds[kind][0]]) > width:
            found[kinds[kind][0]] = _cut(kinds[kind][0], width)
    alike = Counter(found[name] for name in found)
    return tuple(found[name] if alike[found[name]] == 1 else name for name in names)


def _filled(short: str, numbers: Sequence[str]) -> str:
    """The numbers back in their places."""
    first, *others = short.split(_SLOT)
    return first + "".join(number + other for number, other in zip(numbers, others, strict=True))


def _words(name: str) -> tuple[str, ...]:
    """Dotted parts, and the words of the last one, each with what ends it."""
    outer, dot, leaf = name.rpartition(".")
    return (*re.findall(r"[^.]*\.", outer + dot), *re.findall(r"[^_ ]*[_ ]|[^_ ]+", leaf))


def _initials(words: Collection[str]) -> dict[str, str]:
    """As few letters as tell the words from each other, their digits and what ends them; none longer."""
    chosen: dict[str, str] = {}
    for word in sorted(words):
        letters, end = (word[:-1], word[-1]) if word[-1:] in "._ " else (word, "")
        taken = {*chosen.values(), *words} - {word}
        cut = range(2 if letters.startswith("(") else 1, len(letters))
        tries = (letters[:at] + "".join(one for one in letters[at:] if one in _KEPT) for at in cut)
        chosen[word] = next((f"{short}{end}" for short in tries if f"{short}{end}" not in taken), word)
    return chosen


def _cut(name: str, width: int) -> str:
    """An ellipsis inside: the end of a name says more than its beginning."""
    tail = 2 * (width - 1) // 3
    return f"{name[: width - 1 - tail]}…{name[len(name) - tail :]}"
