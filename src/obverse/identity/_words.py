"""What a memorizing net says, in plain sentences; for the page and the terminal. Not for measuring."""

from __future__ import annotations

import shlex
from functools import partial
from math import sqrt
from typing import TYPE_CHECKING

from .._core import NONE, named, number, plain, seconds
from .._core import percent as _percent
from ._memorize import QUANTILES

if TYPE_CHECKING:
    from ._recall import Recall

FAR = 3.0  # standard errors from which on an accuracy is not chance
PROMISED = 3  # times n ln n + r²: what the net may have
MEDIAN = QUANTILES.index(0.5)


def name(found: Recall) -> str:
    return named(found.data, "the data")


percent = partial(_percent, decimals=1, missing=NONE)


def verdict(found: Recall) -> str:
    """What was built and that it holds."""
    facts = found.facts
    right = facts.points - facts.errors
    labels = ", with random labels," if found.labels == "random" else ""
    blocks = "block" if facts.blocks == 1 else "blocks"
    return (
        f"{right:,} of {facts.points:,} points of {name(found)}{labels} labelled right "
        f"({100 * right / facts.points:.2f} %) without training: {facts.blocks:,} residual {blocks} of width "
        f"{facts.width:,}, built and checked on every point in {seconds(found.seconds)} seconds."
    )


def standard_error(found: Recall) -> float:
    """Of the accuracy that chance has, binomial."""
    chance = found.chance or 0.0
    return sqrt(chance * (1 - chance) / max(1, found.test_points))


def generalizes(found: Recall) -> bool:
    """Whether the accuracy is beyond what chance can be."""
    if found.test_accuracy is None or found.chance is None:
        return False
    return found.test_accuracy > found.chance + FAR * standard_error(found)


def outlook(found: Recall) -> str:
    """What it makes of inputs that it has not seen."""
    if found.labels == "random":
        return "Random labels say nothing of other inputs: there is nothing to test."
    if found.test_accuracy is None:
        return "There are no test inputs."
    right = (
        f"{percent(found.test_accuracy)} % of {found.test_points:,} test inputs labelled right, by chance "
        f"{percent(found.chance)} ± {percent(standard_error(found))} %"
    )
    if not generalizes(found):
        return f"It does not generalize: {right}."
    nearest = (
        f"the nearest training point behind the same projection gets {percent(found.nearest_accuracy)} %"
    )
    slack = FAR * 0.5 / sqrt(max(1, found.test_points))
    if (found.nearest_accuracy or 0.0) > found.test_accuracy + slack:
        return f"It generalizes a little: {right}. But {nearest}: the blocks lose what the projection knows."
    return f"It generalizes: {right}, and {nearest}."


def rows(found: Recall) -> list[tuple[str, str, str]]:
    """(what, how much, what that means)."""
    facts = found.facts
    made = [
        (
            "parameters",
            f"{facts.parameters:,} = {facts.constant:.2f}·(n ln n + r²)",
            f"n = {facts.distinct:,} distinct points, r = {facts.classes:,} classes; "
            + (
                f"at most {PROMISED} are promised"
                if facts.constant <= PROMISED
                else f"the width asked for is beyond the {PROMISED} that are promised"
            ),
        ),
        (
            "projection",
            f"{facts.inputs:,} → {facts.width:,}",
            f"{facts.projection:,} numbers more, random weights and centres, beside the budget",
        ),
        (
            "blocks × width",
            f"{facts.blocks:,} × {facts.width:,}",
            f"each moves {facts.width:,} of the points",
        ),
        (
            "smallest margin",
            number(facts.margin),
            f"lead of the right score; {number(facts.ideal_margin)} with every point exactly at its target",
        ),
        (
            "hardest threshold",
            NONE if facts.gap is None else f"{number(facts.gap)} of ‖z‖²",
            "its room" + ("" if facts.closest is None else f", at {_pair(*facts.closest)}"),
        ),
        (
            "local Lipschitz",
            f"{number(found.lipschitz[MEDIAN])}, at most {number(found.lipschitz[-1])}",
            f"‖∂ scores/∂ input‖, median and largest of {found.sampled:,} points",
        ),
        (
            "bound of it",
            f"10^{found.log10_bound:,.1f}",  # far beyond what a float can hold
            "from the norms of the weights, which no input can exceed",
        ),
        ("float32", *float32(found)),
    ]
    if found.test_accuracy is not None:
        made.append(
            (
                "test accuracy",
                f"{percent(found.test_accuracy)} %",
                f"by chance {percent(found.chance)} %, nearest training point behind the projection "
                f"{percent(found.nearest_accuracy)} %",
            )
        )
    return made


def _pair(first: int, second: int) -> str:
    return f"point {first:,} beside " + ("the targets" if first == second else f"point {second:,}")


def float32(found: Recall) -> tuple[str, str]:
    if found.float32 is not None:
        return "ok", f"all points checked, smallest margin {number(found.float32.margin)}"
    if found.float32_refused:
        return "refused", plain(found.float32_refused, 400)
    return NONE, "not checked"


def command(found: Recall) -> str:
    """What makes it again; where the data lie is not said, as that would name the machine or its user."""
    words = ["obverse", "memorize", named(found.data, "DATA")]
    if found.asked_points is not None:
        words += ["--points", str(found.asked_points)]
    if found.labels == "random":
        words += ["--labels", "random"]
    if found.asked_width is not None:
        words += ["--width", str(found.asked_width)]
    if found.float32 is None and not found.float32_refused:
        words += ["--no-float32"]
    if found.dtype != "float64":
        words += ["--dtype", found.dtype]
    if found.seed:
        words += ["--seed", str(found.seed)]
    return shlex.join([*words, "--out", "DIR"])
