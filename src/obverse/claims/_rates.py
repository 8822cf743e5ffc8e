"""Rules about rates: fitted exponents and one-sided Õ bounds, with their intervals. Not for measuring."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import exp, isfinite, log, sqrt
from typing import ClassVar

from .._core import BadInput
from ._rules import Judgement, Rule, judged_point, signed, two_errors
from .results import Kind, Point, Setting, Verdict


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

    kind: ClassVar[Kind] = "exponent"
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
            f"exponent of {self.along.variable} "
            + signed(f"{fitted.exponent:.3f} ({low:.3f} to {high:.3f}), predicted {stated:.3g}"),
            {"exponent": fitted.exponent, "low": low, "high": high, "predicted": stated},
            tuple(judged_point(point, two_errors(point), None, "") for point in points),
            lambda setting: fitted.at(log(self.along(setting))),
        )

    def plant_error(self, points: Sequence[Point], times: float = 1.0) -> list[Point]:
        return [
            Point(point.setting, point.predicted * self.along(point.setting) ** (0.3 * times), point.values)
            for point in points
        ]


@dataclass(frozen=True)
class NotGrowing(Rule):
    """A one-sided Õ bound: the ratio to the stated rate, logarithms included, does not grow along a variable.

    `tolerance` is the exponent of growth that is taken for none: 0.05 is a quarter over two decades.
    """

    kind: ClassVar[Kind] = "rate"
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
            f"{self.along.variable} as the power "
            + signed(f"{fitted.exponent:.3f} ({low:.3f} to {high:.3f})"),
            {"growth": fitted.exponent, "low": low, "high": high, "constant": max(ratios)},
            tuple(
                judged_point(point, two_errors(point), None, f"÷ rate {ratio:.3g}")
                for point, ratio in zip(points, ratios, strict=True)
            ),
            None,
        )

    def plant_error(self, points: Sequence[Point], times: float = 1.0) -> list[Point]:
        return [
            Point(point.setting, point.predicted * self.along(point.setting) ** (-0.3 * times), point.values)
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


def _fit(points: Sequence[Point], logs: Sequence[float], rates: Sequence[float]) -> Line:
    """log(mean) − rate against log x, weighted by the standard errors."""
    for point in points:
        if not point.mean > 0:
            raise BadInput("positive means for a rate", got=point.mean, do="measure a size, not a difference")
    heights = [log(point.mean) - rate for point, rate in zip(points, rates, strict=True)]
    errors = [point.error / point.mean if isfinite(point.error) else 0.0 for point in points]
    return slope(logs, heights, errors)
