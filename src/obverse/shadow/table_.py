"""What a survey of shadows says in the terminal. Not for files, nor for pages."""

from __future__ import annotations

from ..present.table import NONE, Column, open_console, print_grid, say
from ._words import SHUFFLED, cosine, digits, notices, percent, shape, subject, summary
from .results import Survey


def print_survey(survey: Survey) -> None:
    """What was measured, the table, what must be known to read it, and how far up the net can draw."""
    console = open_console()
    say(console, subject(survey))
    print_grid(console, survey_columns(survey), "")
    for notice in notices(survey):
        say(console, f"note: {notice}", "yellow")
    say(console, summary(survey), "bold")


def survey_columns(survey: Survey) -> list[Column]:
    """All there is to show; `grid` leaves out what has no room."""
    layers = survey.layers

    def pair(own: str, other: str) -> str:
        return NONE if own == other == NONE else f"{own} ({other})"

    def column(title: str, cells: list[str], meaning: str = "", drop: int = 0) -> Column:
        return Column(title, tuple(cells), meaning, drop=drop)

    return [
        Column("layer", tuple(one.name for one in layers), left=True),
        column("h", [shape(one.shape) for one in layers], drop=3),
        column(
            "same label %",
            [pair(percent(one.own.agreement), percent(one.shuffled.agreement)) for one in layers],
            f"the net calls shadow and input the same, in brackets: shadows by {SHUFFLED}",
        ),
        column(
            "chance",
            [percent(one.own.chance) for one in layers],
            "the same if the labels were dealt at random",
            drop=4,
        ),
        column(
            "error",
            [pair(digits(one.own.error), digits(one.shuffled.error)) for one in layers],
            "of recovering h from its shadow, Σ‖ĥ − h‖²/Σ‖h‖²",
        ),
        column(
            "mean's",
            [pair(digits(one.own.varying), digits(one.shuffled.varying)) for one in layers],
            "the error of the mean of h in place of ĥ; more is worse than knowing nothing",
            drop=5,
        ),
        column(
            "cosine",
            [pair(cosine(one.own.cosine), cosine(one.shuffled.cosine)) for one in layers],
            "of input and shadow",
            drop=1,
        ),
        column(
            "scale",
            [digits(one.scale) for one in layers],
            "calibrated" if survey.calibrated else "calibrated, not used here",
            drop=2,
        ),
        column("theory's", [digits(one.theory_scale) for one in layers], drop=2),
        column(
            "level",
            [digits(one.level) for one in layers],
            "factor for the whole way down" + ("" if survey.calibrated else ", not used here"),
            drop=6,
        ),
    ]
