"""What prediction and measurement must do for a claim to hold, each rule with its statistical meaning.

Pure functions of the trials: nothing is measured here. A rule that finds too few trials to tell says so,
and never takes them for agreement.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import exp, inf, isfinite, log, sqrt

from ..errors import BadInput
from .results import Judged, Point, Setting, Verdict


@dataclass(frozen=True)
class Judgement:
    """A rule's answer: the verdict, a sentence, its numbers, and each setting judged."""

    verdict: Verdict
    sentence: str
    numbers: dict[str, float]
    points: tuple[Judged, ...]
    fit: Callable[[Setting], float] | None = None  # the fitted rate, constant included


class Rule(ABC):
    """How a claim is judged."""

    @property
    @abstractmethod
    def meaning(self) -> str:
        """The statistical meaning of "held", in one sentence."""

    @abstractmethod
    def judge(self, points: Sequence[Point]) -> Judgement: ...

    @abstractmethod
    def misled(self, points: Sequence[Point]) -> list[Point]:
        """The same trials beside a wrong prediction of the kind this rule must catch.

        Equalities: a factor 1.2; bounds: half of what was measured; rates: the exponent off by 0.3.
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
            judged.append(_judged(point, width, verdict, note))
        worst = max(points, key=lambda point: abs(point.mean - point.predicted) / (abs(point.predicted) or 1))
        off = (worst.mean - worst.predicted) / (abs(worst.predicted) or 1)
        numbers = {"largest_relative_deviation": off}
        return _together(judged, numbers, f"largest deviation {100 * off:+.2g} %")

    def misled(self, points: Sequence[Point]) -> list[Point]:
        return [Point(point.setting, 1.2 * point.predicted, point.values) for point in points]


@dataclass(frozen=True)
class MeanBelow(Rule):
    """The mean over trials is at most the bound, setting by setting."""

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
            judged.append(_judged(point, width, verdict, f"measured ÷ bound {_share(point):.3g}"))
        largest = max(map(_share, points))
        return _together(judged, {"largest_share_of_bound": largest}, f"up to {largest:.3g} of the bound")

    def misled(self, points: Sequence[Point]) -> list[Point]:
        return [Point(point.setting, point.mean / 2, point.values) for point in points]


@dataclass(frozen=True)
class HoldsIn(Rule):
    """Each trial is at most the bound, with probability at least `share` (Clopper–Pearson interval)."""

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
            judged.append(_judged(point, student(2.0, len(point.values)) * point.error, verdict, note))
        trials = sum(len(point.values) for point in points)
        within = sum(value <= point.predicted for point in points for value in point.values)
        numbers = {"trials": float(trials), "within": float(within)}
        return _together(judged, numbers, f"bound held in {within} of {trials} trials")

    def misled(self, points: Sequence[Point]) -> list[Point]:
        return [Point(point.setting, point.mean / 2, point.values) for point in points]


@dataclass(frozen=True)
class Along:
    """The variable of a rate: its name, and how a setting gives it."""

    variable: str
    of: Callable[[Setting], float] | None = field(default=None, compare=False)

    def __call__(self, setting: Setting) -> float:
        value = float(setting[self.variable]) if self.of is None else float(self.of(setting))
        if not value > 0:
            raise BadInput(f"{self.variable} > 0 for a rate", got=value, do="leave it out of the grid")
        return value


@dataclass(frozen=True)
class Exponent(Rule):
    """The measured quantity grows as the prediction's power of a variable."""

    along: Along
    confidence: float = 0.99
    resolution: float = 0.1  # of the exponent: a wider interval cannot tell rates apart

    @property
    def meaning(self) -> str:
        return (
            f"the predicted exponent of {self.along.variable} inside the {100 * self.confidence:g} % "
            f"interval of the fitted one; inconclusive where its half-width is above {self.resolution:g}"
        )

    def judge(self, points: Sequence[Point]) -> Judgement:
        logs = [log(self.along(point.setting)) for point in points]
        stated = slope(logs, [log(point.predicted) for point in points], [0.0] * len(points)).exponent
        fitted = _fit(points, logs, [0.0] * len(points))
        low, high = fitted.interval(self.confidence)
        if not low <= stated <= high:
            verdict: Verdict = "failed"
        else:
            verdict = "held" if (high - low) / 2 <= self.resolution else "inconclusive"
        return Judgement(
            verdict,
            f"exponent of {self.along.variable} {fitted.exponent:.3f} ({low:.3f} to {high:.3f}), "
            f"predicted {stated:.3g}",
            {"exponent": fitted.exponent, "low": low, "high": high, "predicted": stated},
            tuple(
                _judged(point, student(2.0, len(point.values)) * point.error, None, "") for point in points
            ),
            lambda setting: fitted.at(log(self.along(setting))),
        )

    def misled(self, points: Sequence[Point]) -> list[Point]:
        return [
            Point(point.setting, point.predicted * self.along(point.setting) ** 0.3, point.values)
            for point in points
        ]


@dataclass(frozen=True)
class NotGrowing(Rule):
    """A one-sided Õ bound: the ratio to the stated rate, logarithms included, does not grow along a variable.

    `tolerance` is the exponent of growth that is taken for none: 0.05 is a quarter over two decades.
    """

    along: Along
    confidence: float = 0.99
    tolerance: float = 0.05

    @property
    def meaning(self) -> str:
        return (
            f"measured ÷ stated rate does not grow with {self.along.variable}: the "
            f"{100 * self.confidence:g} % interval of its exponent lies below {self.tolerance:g}; "
            "failed where it lies above"
        )

    def judge(self, points: Sequence[Point]) -> Judgement:
        logs = [log(self.along(point.setting)) for point in points]
        rates = [log(point.predicted) for point in points]
        fitted = _fit(points, logs, rates)
        low, high = fitted.interval(self.confidence)
        if high <= self.tolerance:
            verdict: Verdict = "held"
        else:
            verdict = "failed" if low > self.tolerance else "inconclusive"
        ratios = [point.mean / point.predicted for point in points]
        return Judgement(
            verdict,
            f"measured ÷ rate from {min(ratios):.3g} to {max(ratios):.3g}, growing with "
            f"{self.along.variable} as the power {fitted.exponent:.3f} ({low:.3f} to {high:.3f})",
            {"growth": fitted.exponent, "low": low, "high": high, "constant": max(ratios)},
            tuple(
                _judged(point, student(2.0, len(point.values)) * point.error, None, f"÷ rate {ratio:.3g}")
                for point, ratio in zip(points, ratios, strict=True)
            ),
            None,
        )

    def misled(self, points: Sequence[Point]) -> list[Point]:
        return [
            Point(point.setting, point.predicted * self.along(point.setting) ** -0.3, point.values)
            for point in points
        ]


@dataclass(frozen=True)
class Line:
    """log y = constant + exponent · log x, with the exponent's standard error."""

    exponent: float
    constant: float
    error: float
    freedom: int

    def interval(self, confidence: float) -> tuple[float, float]:
        from scipy import stats

        width = float(stats.t.isf((1 - confidence) / 2, self.freedom)) * self.error
        return self.exponent - width, self.exponent + width

    def at(self, x: float) -> float:
        return exp(self.constant + self.exponent * x)


def slope(x: Sequence[float], y: Sequence[float], errors: Sequence[float]) -> Line:
    """Weighted least squares. Where the points scatter more than their errors say, the interval is widened
    by as much (the Birge ratio): a bent curve must not look like a sharp exponent."""
    import numpy as np

    if len(set(x)) < 3:
        raise BadInput("three different values of a rate's variable", got=len(set(x)), do="add settings")
    known = np.asarray(errors, dtype=float)
    weights = np.ones(len(x)) if known.min() <= 0 else known**-2
    across, up = np.asarray(x), np.asarray(y)
    middle = np.average(across, weights=weights)
    spread = float((weights * (across - middle) ** 2).sum())
    exponent = float((weights * (across - middle) * up).sum()) / spread
    constant = float(np.average(up, weights=weights)) - exponent * middle
    freedom = len(x) - 2
    scatter = float((weights * (up - constant - exponent * across) ** 2).sum()) / freedom
    widening = sqrt(scatter) if known.min() <= 0 else max(1.0, sqrt(scatter))
    return Line(exponent, constant, widening / sqrt(spread), freedom)


def clopper_pearson(successes: int, trials: int, confidence: float) -> tuple[float, float]:
    """The exact two-sided interval of a probability."""
    from scipy import stats

    found = stats.binomtest(successes, trials).proportion_ci(confidence, method="exact")
    return float(found.low), float(found.high)


def _fit(points: Sequence[Point], logs: Sequence[float], rates: Sequence[float]) -> Line:
    """log(mean) − rate against log x, weighted by the standard errors."""
    for point in points:
        if not point.mean > 0:
            raise BadInput("positive means for a rate", got=point.mean, do="measure a size, not a difference")
    heights = [log(point.mean) - rate for point, rate in zip(points, rates, strict=True)]
    errors = [point.error / point.mean if isfinite(point.error) else 0.0 for point in points]
    return slope(logs, heights, errors)


def _share(point: Point) -> float:
    return point.mean / point.predicted if point.predicted else inf


def _judged(point: Point, width: float, verdict: Verdict | None, note: str) -> Judged:
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
