"""Intervals of a probability and the error of a mean. Not for the tests of one instrument."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .errors import BadInput


def clopper_pearson(collisions: int, batches: int, confidence: float = 0.95) -> tuple[float, float]:
    """The exact two-sided interval of the collision probability."""
    from scipy import stats

    _check_counts(collisions, batches, confidence)
    found = stats.binomtest(collisions, batches).proportion_ci(confidence, method="exact")
    return float(found.low), float(found.high)


def lower_limit(collisions: int, batches: int, confidence: float = 0.95) -> float:
    """The exact one-sided lower limit of the collision probability."""
    from scipy import stats

    _check_counts(collisions, batches, confidence)
    if collisions == 0:
        return 0.0
    return float(stats.beta.ppf(1 - confidence, collisions, batches - collisions + 1))


def check_confidence(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise BadInput("a confidence in (0, 1)", got=confidence, do="use 0.95, for example")


def _check_counts(collisions: int, batches: int, confidence: float) -> None:
    check_confidence(confidence)
    if batches < 1 or not 0 <= collisions <= batches:
        raise BadInput("0 ≤ collisions ≤ batches, at least one", got=f"{collisions} of {batches}", do="count")


def mean_and_se(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean and its standard error; None for a single value."""
    mean = math.fsum(values) / len(values)
    if len(values) < 2:
        return mean, None
    variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return mean, math.sqrt(variance / len(values))
