"""What `obverse ladder` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...present import Column, open_console, print_grid, say

if TYPE_CHECKING:
    from ..results import Ladder

MEANINGS = {
    "level": "gaps are medians over its edges (sentences give the largest), shares are of all together",
    "focus": "how far P(x | z of the child) depends on z of the parent",
    "broadness": "how far z of the child is not told by z of the parent",
    "decorrelation": "of gates, with activations or gradients",
    "fourth": "of the child's activations, with the parent's gradients",
    "ΔW gap": "norm of the difference ÷ the larger norm, edge by edge",
    "recursion": "the same, where all is computed from events",
    "ΔW %": "of ΔW, less what needs no events, that events explain; – where that is next to nothing",
}
# columns with the largest number go first where there is no room
DROP = {
    "regions": 9,
    "events": 8,
    "fourth": 6,
    "edges": 5,
    "backward %": 4,
    "forward %": 3,
    "recursion": 2,
    "recursion %": 1,
}


def print_ladder(found: Ladder) -> None:
    """Whether events tell what inputs do, by level, and why."""
    from .._words import outlook, training, verdict

    console = open_console()
    say(console, verdict(found), "bold")
    console.print()
    print_grid(console, ladder_columns(found), "")
    for sentence in [*outlook(found), training(found)]:
        if sentence:
            say(console, sentence)


def ladder_columns(found: Ladder) -> list[Column]:
    from .._words import LEVEL_HEADINGS, level_rows

    brackets = {
        "focus": "by chance",
        "ΔW %": "events dealt at random",
    }  # what is beside a number, if anything
    meanings = dict(MEANINGS)
    cells = list(zip(*level_rows(found), strict=True))
    for heading, column in zip(LEVEL_HEADINGS, cells, strict=True):
        if heading in brackets and any("(" in cell for cell in column):
            meanings[heading] += f", in brackets: {brackets[heading]}"
    return [
        Column(heading, column, meanings.get(heading, ""), drop=DROP.get(heading, 0), left=heading == "level")
        for heading, column in zip(LEVEL_HEADINGS, cells, strict=True)
    ]
