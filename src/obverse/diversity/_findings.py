"""What a diversity test looked for and what of it is certain, row by row. Not for sentences: see verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from .._core import NONE, number
from ._numbers import about, chance, percent
from ._verdict import overlooked

if TYPE_CHECKING:
    from ._assessment import Check, Fault
    from .results import Diversity

LOOKED_FOR: Mapping[Fault, str] = {
    "constant": "makes one image",
    "collapsed": "collapsed",
    "repeats": "repeats itself",
    "copies": "copies its training set",
    "misses": "misses part of the data",
    "implausible": "makes implausible samples",
    "differs": "differs from real data",
}
COUNTS = ("equal samples", "collisions")  # tests whose values are numbers of images
FINDINGS = ("fault", "by", "samples", "real data", "found", "what 8 of 10 cases would have shown")
TESTS = {
    "two-sample": "two-sample test (kernel)",
    "collisions": "effective number of images",
    "nearest to training": "nearest to a training image",
}


def findings(found: Diversity) -> list[tuple[str, ...]]:
    """One row a test, as FINDINGS has the columns; certain faults first."""
    return [_finding(found, one) for one in found.assessment.findings]


def _finding(found: Diversity, one: Check) -> tuple[str, ...]:
    seen = ("yes" if one.certain else "no") + ("" if one.adjusted is None else f", {chance(one.adjusted)}")
    if one.test == "equal samples":
        own = f"{found.distinct or 0:,} of {found.examined:,} different"
        real = NONE if found.distinct_real is None else f"{found.distinct_real:,} of {found.real or 0:,}"
    elif one.fault == "differs":
        own, real = NONE if one.value is None else number(one.value), "0"
    elif one.fault == "constant":
        own, real = "all equal", NONE
    else:
        write = about if one.test in COUNTS else percent
        own, real = write(one.value), write(one.real)
        if one.value is not None and one.low is not None and one.high is not None:
            own += f" ({write(one.low).removesuffix(' %')} to {write(one.high)})"
    least = overlooked(one) or NONE
    return (LOOKED_FOR[one.fault], TESTS.get(one.test, one.test), own, real, seen, least)


def finding_rows(found: Diversity) -> list[tuple[str, str, str]]:
    """The same for the terminal, where a row is short."""
    made = []
    for fault, test, own, real, seen, least in findings(found):
        beside = "" if real == NONE else f"; real data {real}"
        shown = "" if least == NONE else f"; 8 of 10 cases would have shown {least}"
        made.append((fault, seen, f"{test}: {own}{beside}{shown}"))
    return made
