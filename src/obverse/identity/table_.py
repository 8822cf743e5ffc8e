"""What a memorizing net says in the terminal. Not for files, nor for pages."""

from __future__ import annotations

from ..present.table import Column, open_console, print_grid, say
from ._recall import Recall
from ._words import outlook, rows, verdict


def print_recall(found: Recall) -> None:
    """That every point is labelled right, what that took, and what the net makes of other inputs."""
    console = open_console()
    say(console, verdict(found), "bold")
    console.print()
    print_grid(console, recall_columns(found), "")
    say(console, outlook(found), "bold")


def recall_columns(found: Recall) -> list[Column]:
    names, values, meanings = zip(*rows(found), strict=True)
    return [
        Column("", names, left=True, whole=True),
        Column("measured", values, left=True),
        Column("", meanings, left=True, folded=True, drop=1),
    ]
