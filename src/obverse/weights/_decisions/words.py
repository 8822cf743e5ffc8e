"""Sentences that several decisions say."""

from __future__ import annotations

from collections.abc import Sequence

from ..._core import in_percent, listed, printable
from ..results import Audit
from .candidates import MOST_NAMED


def begun(audit: Audit, flags: str) -> str:
    """Of what, and by what."""
    return f"obverse audit {printable(audit.model)} {flags}"


def chance(audit: Audit) -> str:
    """The level of the audit, where it is known."""
    level = audit.thresholds.get("level")
    return f" (in noise a false one is found with a chance of {in_percent(level)})" if level else ""


def more_directions(names: Sequence[str], what: str) -> list[str]:
    if not names:
        return []
    return [f"There may be more directions in {listed(names, MOST_NAMED)}: {what} is a lower bound there."]


def base_unproven(what: str) -> str:
    return f"Not known: that the spectrum of a base layer predicts {what}, is unproven."
