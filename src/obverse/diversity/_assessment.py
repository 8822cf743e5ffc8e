"""One assessment over all tests of a generator: which faults are certain, the worst first. Not for words.

A fault is certain where its test is significant after Holm's correction over all tests that were run, so that
a generator without fault is blamed for anything in at most 1 − confidence of cases. Counts of equal samples
need no test. What is only a bound from one side is no fault.

Precision, recall and coverage are compared with those of held-out real data against the same reference, by
their difference in standard errors. The errors are of a jackknife over ten groups, hence Student's t with 9
degrees of freedom; both share the reference, which makes the test err on the safe side.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from .._core import Record
from ._estimates import Estimate
from ._quality import GROUPS

if TYPE_CHECKING:
    from .results import Diversity

Fault = Literal["constant", "collapsed", "repeats", "copies", "misses", "implausible"]
SEVERITY: tuple[Fault, ...] = ("constant", "collapsed", "repeats", "copies", "misses", "implausible")
NEARLY_NONE = 0.1  # of the share of real data: below it nearly all of the data is missing
LESS_VARIED = 0.5  # of the Vendi score of as many real images
POWER = 0.8  # with which a fault of the size `smallest` would have been found


@dataclass(frozen=True)
class Check(Record):
    """One test of one fault. `p`: of it alone; `adjusted`: after Holm's correction; None for a mere count.

    `value` of the samples beside `real`, of real data; `smallest`: the difference that would have been found
    in 8 of 10 cases, where that is known.
    """

    fault: Fault
    test: str
    p: float | None
    adjusted: float | None
    certain: bool
    value: float | None = None
    real: float | None = None
    smallest: float | None = None


@dataclass(frozen=True)
class Assessment(Record):
    """All checks that could be made, certain faults first, the worst of them first."""

    findings: tuple[Check, ...]
    confidence: float

    checks: ClassVar[Any] = (("a confidence in (0, 1)", lambda one: 0 < one.confidence < 1),)

    @property
    def faults(self) -> tuple[Check, ...]:
        return tuple(one for one in self.findings if one.certain)

    @property
    def worst(self) -> Check | None:
        return next(iter(self.faults), None)

    @property
    def tests(self) -> int:
        """Those that share the chance of a false alarm."""
        return sum(one.p is not None for one in self.findings)


@dataclass(frozen=True)
class _Test:
    fault: Fault
    test: str
    p: float
    value: float | None = None
    real: float | None = None
    error: float | None = None


def assessment(found: Diversity) -> Assessment:
    """The checks that the results of a diversity test allow."""
    b, alpha = found.birthday, 1 - found.birthday.confidence
    certain: list[Check] = []
    if b.constant:
        certain.append(Check("constant", "all samples equal", None, None, True))
    elif b.threshold.origin == "calibrated":
        pass  # real data may repeat itself too: p_real tells
    elif found.distinct is not None and found.distinct < found.examined:
        certain.append(
            Check("repeats", "equal samples", None, None, True, float(found.distinct), float(found.examined))
        )
    elif b.collisions:
        certain.append(Check("repeats", "collisions", None, None, True, b.support_bound))
    tests = _tests(found)
    adjusted = holm([one.p for one in tests])
    checks = certain + [
        Check(
            _named(found, one),
            one.test,
            one.p,
            p,
            p <= alpha,
            one.value,
            one.real,
            None if not one.error else smallest(one.error, alpha, len(tests)),
        )
        for one, p in zip(tests, adjusted, strict=True)
    ]
    order = sorted(checks, key=lambda one: (not one.certain, SEVERITY.index(one.fault)))
    return Assessment(tuple(order), b.confidence)


def nearly_none(value: float | None, real: float | None) -> bool:
    """A share that is next to nothing beside that of real data."""
    return value is not None and real is not None and value <= NEARLY_NONE * real


def _named(found: Diversity, one: _Test) -> Fault:
    """Samples that cover nothing may be noise, which varies; those that vary little too have collapsed."""
    own, real = found.vendi, found.vendi_real
    alike = own is not None and real is not None and own.score <= LESS_VARIED * real.score
    return "collapsed" if one.test == "recall" and nearly_none(one.value, one.real) and alike else one.fault


def _tests(found: Diversity) -> list[_Test]:
    made: list[_Test] = []
    b, m, q, r = found.birthday, found.memorization, found.quality, found.quality_real
    if b.p_real is not None:
        made.append(_Test("repeats", "collisions", b.p_real, b.effective.value, b.threshold.real_support))
    if m is not None and m.sides is not None:
        made.append(_Test("copies", "nearest to training", m.sides.p, m.sides.share, m.sides.expected))
    if q is not None and r is not None:
        made += [
            _lower("misses", "recall", q.recall, r.recall),
            _lower("misses", "coverage", q.coverage, r.coverage),
            _lower("implausible", "precision", q.precision, r.precision),
        ]
    return made


def _lower(fault: Fault, test: str, own: Estimate, real: Estimate) -> _Test:
    error = hypot(own.error, real.error)
    return _Test(fault, test, p_lower(own.value, real.value, error), own.value, real.value, error)


def p_lower(own: float, real: float, error: float) -> float:
    """The chance of a share so far below that of real data, if it is not."""
    from scipy import stats

    if error == 0:  # all groups agree: 0 or 1 on both sides, most often
        return 1.0 if own >= real else 0.0
    return float(stats.t.sf((real - own) / error, GROUPS - 1))


def smallest(error: float, alpha: float, tests: int) -> float:
    """The difference that is found with probability 0.8 at the strictest level of Holm's correction."""
    from scipy import stats

    law = stats.t(GROUPS - 1)
    return float(error * (law.isf(alpha / tests) + law.ppf(POWER)))


def holm(p: list[float]) -> list[float]:
    """Adjusted p-values: each at most alpha where Holm's step-down procedure rejects at alpha."""
    order = sorted(range(len(p)), key=p.__getitem__)
    adjusted, so_far = [0.0] * len(p), 0.0
    for place, index in enumerate(order):
        so_far = max(so_far, min(1.0, (len(p) - place) * p[index]))
        adjusted[index] = so_far
    return adjusted
