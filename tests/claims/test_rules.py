"""Each rule against trials whose truth is known: its error rates, its edges, and what it must catch."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from obverse import BadInput
from obverse._core import clopper_pearson
from obverse.claims._rates import Along, Exponent, NotGrowing, slope
from obverse.claims._rules import Equal, HoldsIn, MeanBelow, student
from obverse.claims.results import Point


def normal_points(mean, predicted, *, count=50, spread=0.1, settings=4, seed=0):
    random = np.random.default_rng(seed)
    return [
        Point({"at": at}, predicted, tuple(mean + spread * random.standard_normal(count)))
        for at in range(settings)
    ]


def rate_points(exponent, stated, *, error=0.01, count=40, seed=0, bend=0.0, at=(1, 3, 10, 30, 100)):
    """y = x^exponent, with relative scatter, beside a prediction x^stated."""
    random = np.random.default_rng(seed)
    return [
        Point(
            {"x": x},
            x**stated,
            tuple(x ** (exponent + bend * math.log(x)) * np.exp(error * random.standard_normal(count))),
        )
        for x in at
    ]


def test_a_point_s_mean_and_standard_error_are_those_of_scipy():
    values = tuple(np.random.default_rng(1).exponential(size=17))
    point = Point({}, 1.0, values)
    assert point.mean == pytest.approx(np.mean(values), rel=1e-14)
    assert point.error == pytest.approx(stats.sem(values), rel=1e-13)
    assert Point({}, 1.0, (3.0,)).error == math.inf


def test_student_s_quantile_has_the_normal_tail_probability():
    for count in (2, 5, 100):
        assert stats.t.sf(student(3.0, count), count - 1) == pytest.approx(stats.norm.sf(3.0), rel=1e-9)
    assert student(4.0, 10**7) == pytest.approx(4.0, abs=1e-4)
    assert student(4.0, 1) == math.inf


# Equal


def test_equal_holds_fails_and_is_inconclusive():
    assert Equal().judge(normal_points(1.0, 1.0)).verdict == "held"
    assert Equal().judge(normal_points(1.0, 1.2)).verdict == "failed"
    # a standard error of 0.1 cannot tell 1 from 1.2, whatever the mean
    assert Equal().judge(normal_points(1.0, 1.0, count=100, spread=1.0)).verdict == "inconclusive"


def test_equal_fails_if_one_setting_does():
    points = [*normal_points(1.0, 1.0), *normal_points(1.0, 1.2, settings=1)]
    judgement = Equal().judge(points)
    assert judgement.verdict == "failed"
    assert [one.verdict for one in judgement.points] == ["held"] * 4 + ["failed"]
    assert "at 1 of 5 settings" in judgement.sentence


@pytest.mark.slow
def test_equal_rejects_the_truth_as_rarely_as_its_sigmas_say():
    """At 2 sigmas and 12 trials: 4.55 % of 4,000 points, whose binomial standard error is 0.33 %."""
    rule = Equal(sigmas=2.0, resolution=math.inf)
    judged = rule.judge(normal_points(1.0, 1.0, count=12, settings=4000)).points
    share = sum(one.verdict == "failed" for one in judged) / len(judged)
    assert share == pytest.approx(2 * stats.norm.sf(2), abs=4 * 0.0033)


def test_equal_s_tolerance_is_added_to_the_interval():
    points = normal_points(1.02, 1.0, count=1000, spread=0.01)
    assert Equal().judge(points).verdict == "failed"
    assert Equal(tolerance=0.03).judge(points).verdict == "held"
    assert Equal(tolerance=0.03).judge(normal_points(1.05, 1.0, count=1000, spread=0.01)).verdict == "failed"


def test_equal_with_one_trial_is_inconclusive_and_still_has_numbers():
    judged = Equal().judge([Point({}, 1.0, (1.0,))])
    assert judged.verdict == "inconclusive"
    assert judged.points[0].error is None
    assert judged.points[0].low == judged.points[0].high == 1.0


def test_equal_to_zero_is_never_held_without_a_scale():
    """Nothing says what would be near zero: agreement cannot be claimed, disagreement can."""
    assert Equal().judge(normal_points(0.0, 0.0)).verdict == "inconclusive"
    assert Equal().judge(normal_points(1.0, 0.0)).verdict == "failed"
    assert Equal().judge([Point({}, 0.0, (0.0, 0.0))]).verdict == "held"


# MeanBelow


@pytest.mark.parametrize(("bound", "verdict"), [(1.1, "held"), (0.9, "failed"), (1.0, "inconclusive")])
def test_mean_below(bound, verdict):
    # standard errors 0.002: four of them are far less than 0.1
    assert MeanBelow().judge(normal_points(1.0, bound, count=2500)).verdict == verdict


# HoldsIn


@pytest.mark.parametrize(
    ("within", "trials", "verdict"),
    [(200, 200, "held"), (60, 60, "inconclusive"), (170, 200, "failed"), (190, 200, "inconclusive")],
)
def test_holds_in_reads_the_clopper_pearson_interval(within, trials, verdict):
    point = Point({}, 1.0, (0.5,) * within + (1.5,) * (trials - within))
    judgement = HoldsIn(share=0.95, confidence=0.99).judge([point])
    assert judgement.verdict == verdict
    assert judgement.numbers == {"trials": trials, "within": within}


def test_clopper_pearson_by_its_definition():
    """The limits are where the binomial tails are half of 1 − confidence."""
    low, high = clopper_pearson(7, 40, 0.9)
    assert stats.binom.sf(6, 40, low) == pytest.approx(0.05, abs=1e-9)
    assert stats.binom.cdf(7, 40, high) == pytest.approx(0.05, abs=1e-9)
    assert clopper_pearson(40, 40, 0.99)[1] == 1.0


def test_a_value_on_the_bound_is_within():
    assert HoldsIn(share=0.5).judge([Point({}, 1.0, (1.0,) * 50)]).verdict == "held"


# Rates


def test_the_slope_is_that_of_polyfit_with_the_same_weights():
    random = np.random.default_rng(2)
    x, y, errors = random.standard_normal(9), random.standard_normal(9), random.uniform(0.5, 2, 9)
    found = slope(x, y, errors)
    (exponent, constant), covariance = np.polyfit(x, y, 1, w=1 / errors, cov="unscaled")
    assert (found.exponent, found.constant) == pytest.approx((exponent, constant), rel=1e-10)
    residual = ((y - constant - exponent * x) / errors) ** 2
    widening = max(1.0, math.sqrt(residual.sum() / 7))
    assert found.error == pytest.approx(widening * math.sqrt(covariance[0, 0]), rel=1e-10)


def test_the_interval_of_an_exponent_covers_the_truth():
    """99 % intervals from 400 fits: at least 97.5 % (binomial standard error 0.5 %)."""
    rule = Exponent(Along("x"))
    covered = 0
    for seed in range(400):
        numbers = rule.judge(rate_points(-0.5, -0.5, seed=seed, error=0.2, count=10)).numbers
        covered += numbers["low"] <= -0.5 <= numbers["high"]
    assert covered / 400 >= 0.975


def test_exponent():
    assert Exponent(Along("x")).judge(rate_points(-1.0, -1.0)).verdict == "held"
    assert Exponent(Along("x")).judge(rate_points(-1.0, -0.7)).verdict == "failed"
    assert Exponent(Along("x")).judge(rate_points(-1.0, -1.0, error=2.0)).verdict == "inconclusive"


def test_a_bent_curve_does_not_pass_for_a_sharp_exponent():
    """The points have errors of 0.2 %, but no line fits them: the interval must be wide."""
    numbers = Exponent(Along("x")).judge(rate_points(-1.0, -1.0, bend=0.05)).numbers
    assert numbers["high"] - numbers["low"] > 0.1


def test_the_fitted_rate_goes_through_the_points():
    judgement = Exponent(Along("x")).judge(rate_points(-1.0, -1.0))
    assert judgement.fit is not None
    assert judgement.fit({"x": 10}) == pytest.approx(0.1, rel=0.01)  # five standard errors of 0.2 %


def test_along_a_ratio_of_settings():
    rule = Exponent(Along("k/t", lambda setting: setting["k"] / setting["t"]))
    random = np.random.default_rng(0)
    points = [
        Point({"k": 4, "t": t}, 4 / t, tuple(7 * 4 / t * np.exp(0.01 * random.standard_normal(20))))
        for t in (10, 100, 1000)
    ]
    assert rule.judge(points).verdict == "held"
    assert "exponent of k/t" in rule.judge(points).sentence


@pytest.mark.parametrize(
    ("growth", "verdict"), [(0.0, "held"), (-0.4, "held"), (0.3, "failed"), (0.05, "inconclusive")]
)
def test_not_growing(growth, verdict):
    assert NotGrowing(Along("x")).judge(rate_points(growth - 1.0, -1.0)).verdict == verdict


def test_a_free_constant_does_not_matter_to_a_rate():
    points = [Point(point.setting, 1000 * point.predicted, point.values) for point in rate_points(-1.0, -1.0)]
    assert NotGrowing(Along("x")).judge(points).verdict == "held"
    assert Exponent(Along("x")).judge(points).verdict == "held"


def test_trials_without_spread_are_fitted_by_their_scatter():
    points = [Point({"x": x}, 1 / x, (2 / x,)) for x in (1, 10, 100)]
    assert Exponent(Along("x")).judge(points).verdict == "held"


def test_rates_need_three_values_and_positive_means():
    with pytest.raises(BadInput, match="three different values"):
        NotGrowing(Along("x")).judge(rate_points(1, 1, at=(1, 2)))
    with pytest.raises(BadInput, match="positive means"):
        NotGrowing(Along("x")).judge([Point({"x": x}, 1.0, (-1.0, 0.5)) for x in (1, 2, 3)])
    with pytest.raises(BadInput, match="x > 0"):
        NotGrowing(Along("x")).judge([Point({"x": x}, 1.0, (1.0, 1.1)) for x in (0, 1, 2)])


# What every rule must catch


@pytest.mark.parametrize(
    ("rule", "points"),
    [
        (Equal(), normal_points(1.0, 1.0)),
        (Equal(tolerance=0.03), normal_points(-2.0, -2.0)),
        (MeanBelow(), normal_points(1.0, 3.0)),
        (HoldsIn(), normal_points(1.0, 3.0, count=200)),
        (Exponent(Along("x")), rate_points(-0.5, -0.5)),
        (NotGrowing(Along("x")), rate_points(-0.5, -0.5)),
        (NotGrowing(Along("x")), rate_points(-0.6, -0.5)),
    ],
)
def test_a_planted_wrong_prediction_flips_the_verdict(rule, points):
    assert rule.judge(points).verdict == "held"
    wrong = rule.plant_error(points)
    assert [point.values for point in wrong] == [point.values for point in points]
    assert rule.judge(wrong).verdict == "failed"


def test_what_is_planted():
    """Equalities: a factor 1.2; bounds: half the measured value; rates: the exponent off by 0.3."""
    (point, *_) = normal_points(1.0, 2.0)
    assert Equal().plant_error([point])[0].predicted == pytest.approx(2.4)
    assert Equal().plant_error([point], 2)[0].predicted == pytest.approx(2.88)
    (above, *_) = normal_points(3.0, 2.4)  # away from what was measured, where the claim fails already
    assert Equal().plant_error([above])[0].predicted == pytest.approx(2.0)
    assert MeanBelow().plant_error([point])[0].predicted == pytest.approx(point.mean / 2)
    assert HoldsIn().plant_error([point])[0].predicted == pytest.approx(point.mean / 2)
    assert HoldsIn().plant_error([point], 2)[0].predicted == pytest.approx(point.mean / 4)
    rates = rate_points(-1.0, -1.0)
    for rule, power in ((Exponent(Along("x")), -0.7), (NotGrowing(Along("x")), -1.3)):
        assert [one.predicted for one in rule.plant_error(rates)] == pytest.approx(
            [one.setting["x"] ** power for one in rates]
        )
