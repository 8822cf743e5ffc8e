"""What a diversity test says in the terminal. Not for files, nor for pages."""

from __future__ import annotations

from ..present.table import Column, open_console, print_grid, say
from ._verdict import notices, outlook, verdict
from ._words import rows, skipped
from .results import Diversity


def print_diversity(found: Diversity) -> None:
    """The verdict, what belongs to it, all numbers, and what was not tested."""
    console = open_console()
    say(console, verdict(found), "bold")
    for sentence in outlook(found):
        say(console, sentence)
    for sentence in notices(found):
        say(console, sentence, "yellow")
    console.print()
    print_grid(console, diversity_columns(found), "")
    for what, reason in skipped(found):
        say(console, f"not tested: {what}: {reason}", "dim")


def diversity_columns(found: Diversity) -> list[Column]:
    names, values, meanings = zip(*rows(found), strict=True)
    return [
        Column("", names, left=True, whole=True),
        Column("measured", values, left=True),
        Column("", meanings, left=True, folded=True, drop=1),
    ]
