"""What prediction and measurement must do for a claim to hold, each rule with its statistical meaning.

Pure functions of the trials: nothing is measured here. A rule that finds too few trials to tell says so,
and never takes them for agreement.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import ClassVar

from .._core import clopper_pearson
from .results import Judged, Kind, Point, Setting, Verdict


@dataclass(frozen=True)
class Judgement:
    """A rule's answer: the verdict, a sentence, its numbers, and each setting judged."""

    verdict: Verdict
    sentence: str
    numbers: dict[str, float]
    points: tuple[Judged, ...]
    fit: Callable[[Setting], float] | None = None  # the fitted rate, constant included


class Rule(ABC):
    """How a claim is judged; `kind` says what its predictions are."""

    kind: ClassVar[Kind] = "value"

    @property
    @abstractmethod
    def meaning(self) -> str:
        """The statistical meaning of "held", in one sentence."""

    @abstractmethod
    def judge(self, points: Sequence[Point]) -> Judgement: ...

    @abstractmethod
    def plant_error(self, points: Sequence[Point], times: float = 1.0) -> list[Point]:
        """The same trials beside a wrong prediction of the kind this rule must catch.

        Equalities: a factor 1.2, away from what was measured; bounds: half of what was measured; rates: the
        exponent off by 0.3. With `times`, an error so many times as large (on a logarithmic scale).
        """


def student(sigmas: float, count: int) -> float:
    """So many standard deviations of a normal law as a quantile of Student's t for `count` trials."""
    from scipy import stats

    if count < 2:
        return inf
    return float(stats.t.isf(stats.norm.sf(sigmas), count - 1))


@dataclass(frozen=True)
class Equal(Rule):
    """The mean equals the prediction, setting by setting.

    `tolerance` is for predictions that are approximate, relative, and must be argued for where it is used.
    `resolution` is the relative half-width of the interval from which on the trials are too few to tell.
    """

    sigmas: float = 4.0
    tolerance: float = 0.0
    resolution: float = 0.08

    @property
    def meaning(self) -> str:
        about = f", plus {100 * self.tolerance:g} %," if self.tolerance else ""
        return (
            f"measured mean within {self.sigmas:g} standard errors{about} of the prediction at every setting"
            f"; inconclusive where these are more than {100 * self.resolution:g} % of the prediction"
        )

    def judge(self, points: Sequence[Point]) -> Judgement:
        judged = []
        for point in points:
            width = student(self.sigmas, len(point.values)) * point.error
            size = abs(point.predicted)
            off = abs(point.mean - point.predicted)
            if off > width + self.tolerance * size:
                verdict: Verdict = "failed"
            else:
                verdict = "held" if width <= self.resolution * size else "inconclusive"
            ratio = point.mean / point.predicted if point.predicted else inf
            note = f"measured ÷ predicted {ratio:.3f}" if isfinite(ratio) else f"off by {off:.2g}"
            judged.append(judged_point(point, width, verdict, note))
        worst = max(points, key=lambda point: abs(point.mean - point.predicted) / (abs(point.predicted) or 1))
        off = (worst.mean - worst.predicted) / (abs(worst.predicted) or 1)
        numbers = {"largest_relative_deviation": off}
        return _together(judged, numbers, f"largest deviation {percent(off)}")

    def plant_error(self, points: Sequence[Point], times: float = 1.0) -> list[Point]:
        factor = float(1.2**times)

        def wrong(point: Point) -> float:
            below = abs(point.mean) > abs(point.predicted)
            return point.predicted / factor if below else point.predicted * factor

        return [Point(point.setting, wrong(point), point.values) for point in points]


@dataclass(frozen=True)
class MeanBelow(Rule):
    """The mean over trials is at most the bound, setting by setting."""

    kind: ClassVar[Kind] = "bound"
    sigmas: float = 4.0

    @property
    def meaning(self) -> str:
        return f"measured mean plus {self.sigmas:g} standard errors at most the bound at every setting"

    def judge(self, points: Sequence[Point]) -> Judgement:
        judged = []
        for point in points:
            width = student(self.sigmas, len(point.values)) * point.error
            if point.mean + width <= point.predicted:
                verdict: Verdict = "held"
            else:
                verdict = "failed" if point.mean - width > point.predicted else "inconclusive"
            judged.append(judged_point(point, width, verdict, f"measured ÷ bound {_share(point):.3g}"))
        largest = max(map(_share, points))
        return _together(judged, {"largest_share_of_bound": largest}, f"up to {largest:.3g} of the bound")

    def plant_error(self, points: Sequence[Point], times: float = 1.0) -> list[Point]:
        return half_of_measured(points, times)


@dataclass(frozen=True)
class HoldsIn(Rule):
    """Each trial is at most the bound, with probability at least `share` (Clopper–Pearson interval)."""

    kind: ClassVar[Kind] = "bound"
    share: float = 0.95
    confidence: float = 0.99

    @property
    def meaning(self) -> str:
        return (
            f"bound held in at least {100 * self.share:g} % of trials at every setting, by the Clopper–"
            f"Pearson interval of {100 * self.confidence:g} % confidence; inconclusive where it reaches to "
            "both sides"
        )

    def judge(self, points: Sequence[Point]) -> Judgement:
        judged = []
        for point in points:
            within = sum(value <= point.predicted for value in point.values)
            low, high = clopper_pearson(within, len(point.values), self.confidence)
            if low >= self.share:
                verdict: Verdict = "held"
            else:
                verdict = "failed" if high < self.share else "inconclusive"
            note = f"within in {within} of {len(point.values)} ({low:.3f}–{high:.3f})"
            judged.append(judged_point(point, two_errors(point), verdict, note))
        trials = sum(len(point.values) for point in points)
        within = sum(value <= point.predicted for point in points for value in point.values)
        numbers = {"trials": float(trials), "within": float(within)}
        return _together(judged, numbers, f"bound held in {within} of {trials} trials")

    def plant_error(self, points: Sequence[Point], times: float = 1.0) -> list[Point]:
        return half_of_measured(points, times)


def half_of_measured(points: Sequence[Point], times: float) -> list[Point]:
    return [Point(point.setting, point.mean / 2**times, point.values) for point in points]


def percent(share: float) -> str:
    """With its sign, to two digits.

    >>> percent(-0.0123), percent(2.64)
    ('−1.2 %', '+260 %')
    """
    return signed(f"{float(f'{100 * share:.2g}'):+g} %")


def signed(text: str) -> str:
    """Numbers in a sentence, with a minus sign for the hyphen that Python writes."""
    return text.replace("-", "−")


def two_errors(point: Point) -> float:
    """Half an interval to draw, where the verdict rests on another one."""
    return student(2.0, len(point.values)) * point.error


def _share(point: Point) -> float:
    return point.mean / point.predicted if point.predicted else inf


def judged_point(point: Point, width: float, verdict: Verdict | None, note: str) -> Judged:
    known = isfinite(width)
    return Judged(
        setting=dict(point.setting),
        predicted=point.predicted,
        count=len(point.values),
        mean=point.mean,
        error=point.error if isfinite(point.error) else None,
        low=point.mean - width if known else min(point.values),
        high=point.mean + width if known else max(point.values),
        verdict=verdict,
        note=note,
    )


def _together(judged: Sequence[Judged], numbers: dict[str, float], more: str) -> Judgement:
    """Failed if any setting failed, inconclusive if any is, otherwise held."""
    seen = [one.verdict for one in judged]
    verdict: Verdict = "failed" if "failed" in seen else "inconclusive" if "inconclusive" in seen else "held"
    count = seen.count(verdict)
    settings = "at every setting" if count == len(seen) else f"at {count} of {len(seen)} settings"
    return Judgement(verdict, f"{settings}; {more}", numbers, tuple(judged))
