"""Sentences that several decisions say."""

from __future__ import annotations

from collections.abc import Sequence

from ..._core import in_percent, listed, printable
from .._difference.results import Difference
from ..results import Audit
from .candidates import MOST_NAMED


def begun(found: Audit | Difference, flags: str) -> str:
    """Of what, and by what."""
    if isinstance(found, Difference):
        return f"obverse audit {printable(found.tuned)} --against {printable(found.base)} {flags}"
    return f"obverse audit {printable(found.model)} {flags}"


def stands_out(found: Audit | Difference) -> str:
    """From what, and how surely."""
    if isinstance(found, Difference):
        return f"stands out of the change from base to tuned{chance(found)}"
    return f"stands out from noise{chance(found)}"


def chance(found: Audit | Difference) -> str:
    """The level, where it is known."""
    known = found.settings.get("alpha") if isinstance(found, Difference) else found.thresholds.get("level")
    level = known if isinstance(known, float) else None
    return f" (in noise a false one is found with a chance of {in_percent(level)})" if level else ""


def more_directions(names: Sequence[str], what: str) -> list[str]:
    if not names:
        return []
    return [f"There may be more directions in {listed(names, MOST_NAMED)}: {what} is a lower bound there."]


def unproven(found: Audit | Difference) -> str:
    """Of ranks."""
    if isinstance(found, Difference):
        return (
            "Known is this one change: that fine-tuning again, or on other data, needs the same ranks, is "
            "unproven."
        )
    return base_unproven("where fine-tuning helps, or with which rank")


def base_unproven(what: str) -> str:
    return f"Not known: that the spectrum of a base layer predicts {what}, is unproven."
