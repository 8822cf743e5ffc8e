"""One assessment over all tests of a generator: which faults are certain, the worst first. Not for words.

A fault is certain where its test is significant after Holm's correction over all tests that were run, so that
a generator without fault is blamed for anything in at most 1 − confidence of cases. Without real data, counts
of equal samples need no test. What is only a bound from one side is no fault.

Precision, recall and coverage are compared with those of held-out real data against the same reference, by
permutation. Older records, which have no such test, are judged by the difference in standard errors of a
jackknife over ten groups, by Student's t with 9 degrees of freedom, which errs on the safe side.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot, isfinite
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from .._core import Record
from ._bounds import effective_support_bound
from ._estimates import Estimate
from ._quality import GROUPS
from ._smallest import POWER, least_copies, least_difference, least_drop, least_support

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._birthday import Birthday
    from ._quality_test import Lower
    from .results import Diversity

Fault = Literal["constant", "collapsed", "repeats", "copies", "misses", "implausible", "differs"]
SEVERITY: tuple[Fault, ...] = get_args(Fault)  # the worst first
NEARLY_NONE = 0.1  # of the share of real data: below it nearly all of the data is missing
LESS_VARIED = 0.5  # of the Vendi score of as many real images


@dataclass(frozen=True)
class Check(Record):
    """One test of one fault. `p`: of it alone; `adjusted`: after Holm's correction; None for a mere count.

    `value` of the samples from `low` to `high` at the confidence of the assessment, beside `real`, of real
    data. `smallest`: the fault that would have been found in 8 of 10 cases, where that is known: of a share
    the difference; of “nearest to training” the share of exact copies; of repeats how many equally likely
    images a generator may have to be found out.
    """

    fault: Fault
    test: str
    p: float | None
    adjusted: float | None
    certain: bool
    value: float | None = None
    real: float | None = None
    smallest: float | None = None
    low: float | None = None
    high: float | None = None


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
    """`p` is None for a count; `smallest` takes the level at which the test is made."""

    fault: Fault
    test: str
    p: float | None
    certain: bool = False  # of a count
    value: float | None = None
    real: float | None = None
    ends: tuple[float | None, float | None] = (None, None)
    smallest: Callable[[float], float | None] = lambda level: None


def assessment(found: Diversity) -> Assessment:
    """The checks that the results of a diversity test allow."""
    b, alpha = found.birthday, 1 - found.birthday.confidence
    made = [
        *_constant(b),
        *_equal(found),
        *_collisions(b),
        *_copies(found),
        *_shares(found),
        *_differs(found),
    ]
    adjusted = iter(holm([one.p for one in made if one.p is not None]))
    strictest = alpha / max(1, sum(one.p is not None for one in made))
    checks = []
    for one in made:
        p = None if one.p is None else next(adjusted)
        checks.append(
            Check(
                _named(found, one),
                one.test,
                one.p,
                p,
                one.certain if p is None else p <= alpha,
                one.value,
                one.real,
                _finite(one.smallest(strictest)),
                *one.ends,
            )
        )
    order = sorted(checks, key=lambda one: (not one.certain, SEVERITY.index(one.fault)))
    return Assessment(tuple(order), b.confidence)


def _finite(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None


def nearly_none(value: float | None, real: float | None) -> bool:
    """A share that is next to nothing beside that of real data."""
    return value is not None and real is not None and value <= NEARLY_NONE * real


def _named(found: Diversity, one: _Test) -> Fault:
    """Samples that cover nothing may be noise, which varies; those that vary little too have collapsed."""
    own, real = found.vendi, found.vendi_real
    alike = own is not None and real is not None and own.score <= LESS_VARIED * real.score
    return "collapsed" if one.test == "recall" and nearly_none(one.value, one.real) and alike else one.fault


def _constant(b: Birthday) -> list[_Test]:
    return [_Test("constant", "all samples equal", None, True)] if b.constant else []


def _equal(found: Diversity) -> list[_Test]:
    """Equal samples: beside those of real data where both were counted, else as they are."""
    count, many, p = found.distinct, found.examined, found.p_distinct
    calibrated = found.birthday.threshold.origin == "calibrated"  # real data may repeat itself too
    if count is None or found.birthday.constant or (calibrated and p is None):
        return []
    return [
        _Test(
            "repeats",
            "equal samples",
            p,
            count < many,
            float(count),
            None if found.distinct_real is None else float(found.distinct_real),
            smallest=lambda level: effective_support_bound(POWER, many) if p is None else None,
        )
    ]


def _collisions(b: Birthday) -> list[_Test]:
    e, limit = b.effective, b.threshold
    if b.p_real is None and b.constant:
        return []
    return [
        _Test(
            "repeats",
            "collisions",
            b.p_real,
            b.collisions > 0,
            e.value,
            None if b.p_real is None else limit.real_support,
            (e.low, e.high),
            lambda level: least_support(b.batch_size, b.batches, limit, level),
        )
    ]


def _copies(found: Diversity) -> list[_Test]:
    m = found.memorization
    if m is None or m.sides is None:
        return []
    s, count = m.sides, m.samples
    ends = share_interval(s.share, count, found.birthday.confidence)
    return [
        _Test(
            "copies",
            "nearest to training",
            s.p,
            value=s.share,
            real=s.expected,
            ends=ends,
            smallest=lambda level: least_copies(s, count, level),
        )
    ]


def _shares(found: Diversity) -> list[_Test]:
    q, r = found.quality, found.quality_real
    if q is None or r is None:
        return []
    confidence, tests = found.birthday.confidence, found.quality_test
    counts: tuple[tuple[Fault, str, int], ...] = (
        ("misses", "recall", q.real),
        ("misses", "coverage", q.real),
        ("implausible", "precision", q.samples),
    )
    return [
        _lower(
            fault,
            name,
            getattr(q, name),
            getattr(r, name),
            None if tests is None else getattr(tests, name),
            error_interval(getattr(q, name), count, confidence),
        )
        for fault, name, count in counts
    ]


def _differs(found: Diversity) -> list[_Test]:
    d = found.discrepancy
    return [] if d is None else [_Test("differs", "two-sample", d.p, value=d.value, real=0.0)]


def _lower(
    fault: Fault,
    test: str,
    own: Estimate,
    real: Estimate,
    lower: Lower | None,
    ends: tuple[float, float],
) -> _Test:
    error = hypot(own.error, real.error)

    def least(level: float) -> float | None:
        if lower is not None:
            size = least_drop(lower.deviation, level)
        else:
            size = least_difference(error, level, GROUPS)
        return size if 0 < size <= real.value else None  # there is no more to lose than all

    p = p_lower(own.value, real.value, error) if lower is None else lower.p
    return _Test(fault, test, p, value=own.value, real=real.value, ends=ends, smallest=least)


def p_lower(own: float, real: float, error: float) -> float:
    """The chance of a share so far below that of real data, if it is not."""
    from scipy import stats

    if error == 0:  # all groups agree: 0 or 1 on both sides, most often
        return 1.0 if own >= real else 0.0
    return float(stats.t.sf((real - own) / error, GROUPS - 1))


def error_interval(one: Estimate, count: int, confidence: float) -> tuple[float, float]:
    """Of a share of so many points: by its jackknife error, and no narrower than if all balls were known.

    At 0 and 1 the jackknife has no error to speak of.
    """
    from scipy import stats

    off = one.error * float(stats.t.isf((1 - confidence) / 2, GROUPS - 1))
    low, high = share_interval(one.value, count, confidence)
    return max(0.0, min(low, one.value - off)), min(1.0, max(high, one.value + off))


def share_interval(share: float, count: int, confidence: float) -> tuple[float, float]:
    """Clopper and Pearson's, of samples that are independent; halves (of ties) count as what they are."""
    from scipy import stats

    tail, hits = (1 - confidence) / 2, min(1.0, max(0.0, share)) * count
    low = float(stats.beta.ppf(tail, hits, count - hits + 1)) if hits > 0 else 0.0
    high = float(stats.beta.isf(tail, hits + 1, count - hits)) if hits < count else 1.0
    return low, high


def holm(p: list[float]) -> list[float]:
    """Adjusted p-values: each at most alpha where Holm's step-down procedure rejects at alpha."""
    order = sorted(range(len(p)), key=p.__getitem__)
    adjusted, so_far = [0.0] * len(p), 0.0
    for place, index in enumerate(order):
        so_far = max(so_far, min(1.0, (len(p) - place) * p[index]))
        adjusted[index] = so_far
    return adjusted
