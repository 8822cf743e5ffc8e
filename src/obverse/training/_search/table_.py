"""What a search says in the terminal. Not for files, nor for pages."""

from __future__ import annotations

from ...present.table import Column, open_console, print_grid, say
from .._words import FIXED
from .results import SearchResult
from .words import HEADINGS, ordered, outlook, row, verdict

DROP = {"seconds": 1, "epochs": 2}  # where there is no room


def print_search(result: SearchResult) -> None:
    """Every trial, then the best and how far to trust it."""
    console = open_console()
    if result.trials:
        print_grid(console, search_columns(result), "the best")
    for trial in result.trials:
        if trial.reason:
            say(console, f"trial {trial.number} failed: {trial.reason}", "dim")
    say(console, verdict(result).replace(FIXED, " "), "bold")
    for sentence in outlook(result):
        say(console, sentence.replace(FIXED, " "))


def search_columns(result: SearchResult) -> list[Column]:
    trials = ordered(result)
    best = frozenset(at for at, trial in enumerate(trials) if trial is result.best)
    cells = zip(*map(row, trials), strict=True)
    return [
        Column(
            heading,
            column,
            drop=DROP.get(heading, 0),
            marked=best if heading == "held-out error, %" else frozenset(),
            left=heading == "state",
            styles=tuple("bold green" if at in best else "" for at in range(len(column))),
        )
        for heading, column in zip(HEADINGS, cells, strict=True)
    ]
