"""How many samples it takes to see a fault, as the bench of metrics has counted it. Not for measuring.

Faults were planted in MNIST, by features of a net, and looked for at the strictest level of Holm's correction
over seven tests at 5 %; a small support counts as found where its bound is below the large one. See
docs/metric-bench.md. Other data, and other features, take other numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._core import clopper_pearson

POWER = 0.95


@dataclass(frozen=True)
class Tried:
    """Of `draws` generators with the fault, `found` were found out with so many samples."""

    samples: int
    found: int
    draws: int


@dataclass(frozen=True)
class Question:
    """A fault, the test that finds it, and the sizes that were tried, the smallest first."""

    fault: str
    test: str
    tried: tuple[Tried, ...]

    @property
    def enough(self) -> Tried | None:
        """The least size that found 95 % of them, as larger ones did; None if none did."""
        found = None
        for one in reversed(self.tried):
            if one.found < POWER * one.draws:
                break
            found = one
        return found

    def to_dict(self) -> dict[str, Any]:
        one = self.enough
        return {
            "fault": self.fault,
            "test": self.test,
            "samples": None if one is None else one.samples,
            "tried": [vars(tried) for tried in self.tried],
        }


def plan_rows() -> list[tuple[str, str, str, str]]:
    """(fault, samples, test, how often) for the terminal."""
    rows = []
    for question in PLAN:
        one = question.enough
        last = question.tried[-1]
        samples = f"more than {last.samples:,}" if one is None else f"{one.samples:,}"
        rows.append((question.fault, samples, question.test, _often(one or last)))
    return rows


def _often(one: Tried) -> str:
    low, high = clopper_pearson(one.found, one.draws)
    return (
        f"{one.found:,} of {one.draws:,} found with {one.samples:,} ({100 * low:.0f} to {100 * high:.0f} %)"
    )


PLAN: tuple[Question, ...] = (
    Question(
        "exact copies of training images in 1 % of the samples, beside 10,000 of them and 10,000 held out",
        "nearest to training",
        (Tried(500, 11, 40), Tried(1000, 35, 40), Tried(2000, 40, 40), Tried(4000, 40, 40)),
    ),
    Question(
        "10,000 equally likely images in place of 1,000,000, by exact duplicates in one batch",
        "birthday test",
        (
            Tried(100, 787, 2000),
            Tried(150, 1350, 2000),
            Tried(200, 1722, 2000),
            Tried(250, 1926, 2000),
            Tried(300, 1980, 2000),
        ),
    ),
    Question(
        "5 of 100 modes missing, beside as many real images on either side",
        "coverage",
        (Tried(500, 3, 40), Tried(1000, 7, 40), Tried(2000, 19, 40)),
    ),
)
