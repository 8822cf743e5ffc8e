"""Closed forms of the birthday test, against exact fractions, enumeration and SciPy's distributions."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import comb, exp, expm1, inf, log, log1p, prod, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import log as mp_log
from mpmath import log1p as mp_log1p
from mpmath import mpf, workdps
from mpmath import sqrt as mp_sqrt
from scipy import stats

from obverse._core.errors import BadInput
from obverse._core.statistics import clopper_pearson, lower_limit
from obverse.claims.gan._forward_bounds import forward_bound, forward_bound_printed
from obverse.diversity._bounds import (
    Collisions,
    effective_support_bound,
    log_no_collision,
    popular_estimate,
    printed_bound,
    support_at_least,
)

EPS = np.finfo(float).eps
# Bisection ends within a few roundings of N, or of ln N up to 40; sums of logarithms lose M roundings.
CLOSE = 1e-11


def apart(samples: int, support: float | Fraction) -> Fraction:
    """Π_{k<M} (1 − k/N)₊ in exact arithmetic; a float stands for the fraction that it is."""
    return prod((max(1 - k / Fraction(support), Fraction(0)) for k in range(samples)), start=Fraction(1))


def no_collision(masses: list[Fraction], samples: int) -> Fraction:
    """By going through all outcomes."""
    return sum(
        (
            prod((masses[i] for i in outcome), start=Fraction(1))
            for outcome in product(range(len(masses)), repeat=samples)
            if len(set(outcome)) == samples
        ),
        start=Fraction(0),
    )  # fmt: skip


@given(st.integers(1, 60), st.integers(1, 10**7))
def test_no_collision_among_equal_chances(samples, support):
    true = apart(samples, support)
    if true == 0:
        assert log_no_collision(samples, support) == -inf
        return
    with workdps(50):
        expected = float(mp_log(mpf(true.numerator) / true.denominator))
    # A rounding for each term and sum; k/N is rounded too, which counts N/(N − k)-fold where M is near N.
    error = samples * EPS * support / (support - samples + 1)
    assert log_no_collision(samples, support) == pytest.approx(expected, rel=2 * error, abs=0)


@pytest.mark.parametrize(("samples", "support"), [(23, 365), (2, 2), (9, 10), (118, 10**4), (1178, 10**6)])
def test_the_bound_is_the_support_of_a_uniform_law(samples, support):
    collision = -expm1(log_no_collision(samples, support))
    # γ is rounded, which counts L/(1 − γ)-fold where nearly all batches collide: at most 300 here.
    assert effective_support_bound(collision, samples) == pytest.approx(support, rel=1e3 * CLOSE)


@given(st.integers(2, 200), st.floats(1e-6, 1 - 1e-6))
def test_the_bound_solves_its_equation(samples, collision):
    bound = effective_support_bound(collision, samples)
    kept = 1 - Fraction(collision)
    excess = bound - (samples - 1)  # what bisection is relative to
    assert excess > 0
    error = max(CLOSE * excess, 4 * EPS * bound)
    assert apart(samples, bound + error) >= kept * (1 - Fraction(samples * 4 * EPS))
    assert apart(samples, bound - error) <= kept * (1 + Fraction(samples * 4 * EPS))


def test_the_ends():
    assert effective_support_bound(0.0, 5) == inf
    assert effective_support_bound(1.0, 5) == 4
    assert printed_bound(0.0, 5) == popular_estimate(0.0, 5) == inf
    assert log_no_collision(1, 1) == 0
    assert effective_support_bound(0.25, 2) == pytest.approx(4, rel=CLOSE)  # two samples: 1/γ


@given(st.lists(st.integers(1, 20), min_size=1, max_size=5), st.integers(2, 5))
def test_any_law_collides_no_more_than_its_effective_support_says(weights, samples):
    """The theorem itself in exact arithmetic, and that the bound from the exact γ covers 1/q."""
    masses = [Fraction(weight, sum(weights)) for weight in weights]
    q = sum(mass**2 for mass in masses)
    different = no_collision(masses, samples)
    assert different >= apart(samples, 1 / q)
    # Where γ rounds to 1 or the law is uniform there is equality.
    assert effective_support_bound(float(1 - different), samples) >= float(1 / q) * (1 - 1e3 * CLOSE)


@pytest.mark.parametrize(
    ("collisions", "batches", "bound"), [(5, 10, 317_308), (25, 50, 169_201), (100, 200, 137_915)]
)
def test_known_bounds_of_400_samples_a_batch(collisions, batches, bound):
    assert round(effective_support_bound(lower_limit(collisions, batches, 0.95), 400)) == bound


@given(st.integers(2, 2000), st.floats(0.01, 1.2))
def test_the_printed_bound_is_above_while_the_logarithm_is_moderate(samples, share):
    """ln 1/(1−γ) ≤ 1.2√M, where the term that it leaves out is less than what it has too much."""
    collision = -expm1(-min(share * sqrt(samples), 30.0))
    assert printed_bound(collision, samples) >= effective_support_bound(collision, samples)


@pytest.mark.parametrize(("support", "samples"), [(10, 9), (10, 10), (100, 40)])
def test_the_printed_bound_is_below_where_nearly_every_batch_collides(support, samples):
    collision = -expm1(log_no_collision(samples, support))
    assert printed_bound(collision, samples) < 0.998 * support


@pytest.mark.parametrize(("support", "samples", "above"), [(365, 23, 0.0443), (10**6, 1178, 0.0008)])
def test_how_close_the_printed_bound_is(support, samples, above):
    collision = -expm1(log_no_collision(samples, support))
    assert printed_bound(collision, samples) / support - 1 == pytest.approx(above, abs=6e-5)  # as rounded


@given(st.integers(2, 500), st.floats(1e-12, 0.999), st.floats(0.5, 1.0))
def test_the_printed_formula(samples, collision, mass):
    with workdps(50):
        lost = -mp_log1p(-mpf(collision))
        below = -3 + mp_sqrt(9 + 24 * lost / samples) - 2 * samples * (1 - mpf(mass)) ** 2
        whole = 2 * samples * (1 - mpf(mass)) ** 2
        true, cancelled = 2 * samples * mpf(mass) ** 2 / below, float((abs(below) + 2 * whole) / abs(below))
    # The difference in the denominator cancels digits; nothing else does.
    assert printed_bound(collision, samples, mass) == pytest.approx(float(true), rel=20 * EPS * cancelled)


def test_the_printed_bound_turns_negative():
    collision = forward_bound(100, 10_000, 0.9)
    assert sqrt(-2 * log1p(-collision)) / 100 < 1 - 0.9
    assert printed_bound(collision, 100, 0.9) < 0
    assert printed_bound(forward_bound(12, 100, 0.95), 12, 0.95) > 100  # and where it is positive it holds


@given(st.integers(2, 500), st.floats(1e-6, 0.999999))
def test_the_popular_estimate_is_below(samples, collision):
    expected = comb(samples, 2) / log(1 / (1 - collision))
    # 1 − γ is rounded in the oracle: by ε/γ of its logarithm at most.
    assert popular_estimate(collision, samples) == pytest.approx(expected, rel=4 * EPS / collision)
    bound = effective_support_bound(collision, samples)
    assert popular_estimate(collision, samples) < bound * (1 + CLOSE)
    if collision > 1e-3:
        assert popular_estimate(collision, samples) < bound


def test_the_popular_estimate_is_0_979_of_365():
    collision = -expm1(log_no_collision(23, 365))
    assert popular_estimate(collision, 23) / 365 == pytest.approx(0.979, abs=5e-4)


def test_the_printed_forward_bound_is_no_bound():
    true, printed = forward_bound(100, 10_000, 0.5), forward_bound_printed(100, 10_000, 0.5)
    assert (round(true, 4), round(printed, 4)) == (0.1163, 0.2192)
    squared = forward_bound_printed(100, 10_000, 0.5, power=2)
    assert round(squared, 4) == 0.1164
    assert true < squared
    assert printed == pytest.approx(1 - exp(-9900 * 0.5 / 20_000), rel=8 * EPS)


@given(st.integers(2, 30), st.integers(1, 50), st.fractions(0, 1, max_denominator=20))
def test_the_forward_bound_in_fractions(samples, support, mass):
    different = sum(
        comb(samples, j) * mass**j * (1 - mass) ** (samples - j) * apart(j, support)
        for j in range(samples + 1)
    )
    # SciPy's binomial probabilities are good to 1e-13 or so.
    assert forward_bound(samples, support, float(mass)) == pytest.approx(float(1 - different), abs=1e-12)


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
    st.integers(2, 5),
    st.fractions(Fraction(1, 10), 1, max_denominator=10),
    st.integers(1, 4),
)
def test_no_law_with_that_mass_on_so_many_points_collides_less(weights, samples, mass, rest):
    """Any masses on the N points, and the rest on some more: by going through all outcomes."""
    on = [mass * Fraction(weight, sum(weights)) for weight in weights]
    collision = 1 - no_collision(on + [(1 - mass) / rest] * rest, samples)
    assert forward_bound(samples, len(weights), float(mass)) <= float(collision) + 1e-12  # as above


@pytest.mark.parametrize("mass", [0.3, 0.7, 1.0])
def test_the_forward_bound_is_met_by_simulation(mass):
    rng = np.random.default_rng(0)
    runs, samples, support = 40_000, 12, 100
    points = rng.integers(support, size=(runs, samples))
    own = support + np.arange(samples)  # the diffuse rest
    ordered = np.sort(np.where(rng.random(points.shape) < mass, points, own), axis=1)
    share = (ordered[:, 1:] == ordered[:, :-1]).any(1).mean()
    expected = forward_bound(samples, support, mass)
    assert share == pytest.approx(expected, abs=4 * sqrt(expected * (1 - expected) / runs))  # standard errors


@given(st.integers(1, 300), st.floats(0.0, 1.0), st.sampled_from([0.5, 0.9, 0.95, 0.999]))
def test_limits_of_a_probability_solve_their_equations(batches, share, confidence):
    collisions = round(share * batches)
    low, high = clopper_pearson(collisions, batches, confidence)
    limit, tail = lower_limit(collisions, batches, confidence), 1 - confidence
    # SciPy solves for the limits to about 1e-12, and tails follow within B times that.
    if collisions:
        assert stats.binom.sf(collisions - 1, batches, low) == pytest.approx(tail / 2, rel=1e-8)
        assert stats.binom.sf(collisions - 1, batches, limit) == pytest.approx(tail, rel=1e-8)
    else:
        assert low == limit == 0
    if collisions < batches:
        assert stats.binom.cdf(collisions, batches, high) == pytest.approx(tail / 2, rel=1e-8)
    else:
        assert high == 1
    assert low <= limit


@pytest.mark.parametrize("batches", [1, 7, 50])
def test_the_bound_covers_with_the_confidence_asked_for_whatever_the_law(batches):
    """Coverage summed over all outcomes, exactly: never below 95 %."""
    for collision in np.linspace(0.01, 0.99, 99):
        chances = stats.binom.pmf(np.arange(batches + 1), batches, collision)
        covered = [lower_limit(seen, batches, 0.95) <= collision for seen in range(batches + 1)]
        assert chances @ covered >= 0.95 - 1e-12  # rounding of the sum


@given(st.integers(2, 300), st.integers(1, 1000), st.sampled_from([0.5, 0.95, 0.999]))
def test_what_no_collision_says(samples, batches, confidence):
    """On so many equal points B batches pass without a collision with probability 1 − confidence."""
    least = support_at_least(samples, batches, confidence)
    logarithm = log(1 - confidence)
    assert batches * log_no_collision(samples, least) == pytest.approx(logarithm, rel=1e-6)
    smaller = samples - 1 + 0.99 * (least - samples + 1)
    assert batches * log_no_collision(samples, smaller) < logarithm


@pytest.mark.parametrize(
    "call",
    [
        lambda: effective_support_bound(0.5, 1),
        lambda: effective_support_bound(-0.1, 5),
        lambda: effective_support_bound(float("nan"), 5),
        lambda: printed_bound(1.1, 5),
        lambda: popular_estimate(0.5, 0),
        lambda: support_at_least(5, 0),
        lambda: support_at_least(1, 5),
        lambda: support_at_least(5, 5, 1.0),
        lambda: clopper_pearson(3, 2),
        lambda: clopper_pearson(-1, 2),
        lambda: lower_limit(0, 0),
        lambda: lower_limit(1, 2, 0.0),
    ],
)
def test_refused(call):
    with pytest.raises(BadInput):
        call()


@pytest.mark.parametrize(("chance", "samples"), [(0.0, 5), (0.5, 23), (0.9, 400), (1.0, 2)])
def test_collisions_have_the_formulas_as_methods(chance: float, samples: int) -> None:
    found = Collisions(chance, samples)
    assert found.effective_support_bound() == effective_support_bound(chance, samples)
    assert found.printed_bound() == printed_bound(chance, samples)
    assert found.printed_bound(0.75) == printed_bound(chance, samples, 0.75)
    assert found.popular_estimate() == popular_estimate(chance, samples)
