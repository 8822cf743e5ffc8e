"""The intrinsic dimension against the formulas written out, and on manifolds of known dimension."""

from __future__ import annotations

from math import log, pi

import numpy as np
import pytest
import torch

from obverse._core.errors import BadInput
from obverse.diversity._dimension import estimate, interval, intrinsic_dimension


def uniform(generator, *shape):
    return torch.rand(*shape, generator=generator, dtype=torch.float64)


def sphere(d, count, generator):
    x = torch.randn(count, d + 1, generator=generator, dtype=torch.float64)
    return x / x.norm(dim=1, keepdim=True)


def torus(d, count, generator):
    angle = 2 * pi * uniform(generator, count, d)
    return torch.cat([angle.cos(), angle.sin()], 1)


def linear(d, count, generator):
    """A Gaussian on a random subspace of R^100."""
    basis = torch.linalg.qr(torch.randn(100, d, generator=generator, dtype=torch.float64)).Q
    return torch.randn(count, d, generator=generator, dtype=torch.float64) @ basis.T


def swiss_roll(d, count, generator):
    turn = 1.5 * pi * (1 + 2 * uniform(generator, count))
    return torch.stack([turn * turn.cos(), 21 * uniform(generator, count), turn * turn.sin()], 1)


def cube(d, count, generator):
    return uniform(generator, count, d)


def trials(make, d, count, number, method="twonn"):
    generator = torch.Generator().manual_seed(d)
    return [intrinsic_dimension(make(d, count, generator), method) for _ in range(number)]


def neighbours(points, k):
    """Sorted distances and indices, in plain numpy."""
    x = points.double().numpy()
    distance = np.sqrt(((x[:, None] - x[None]) ** 2).sum(2))
    np.fill_diagonal(distance, np.inf)
    order = np.argsort(distance, axis=1)[:, :k]
    return np.take_along_axis(distance, order, 1), order


def test_the_likelihood_is_the_printed_formula():
    """MacKay and Ghahramani: the mean of the inverses of Levina and Bickel's estimate at each point."""
    points = torch.randn(60, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    distance, _ = neighbours(points, 7)
    inverse = [sum(log(row[6] / row[j]) for j in range(6)) / 6 for row in distance]
    found = intrinsic_dimension(points, "likelihood", k=7)
    assert found.value == pytest.approx(1 / (sum(inverse) / 60), rel=1e-10)


def test_twonn_maximizes_the_likelihood_of_censored_exponentials():
    points = torch.randn(50, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    distance, _ = neighbours(points, 2)
    length = sorted(log(b / a) for a, b in distance)
    found = intrinsic_dimension(points).value

    def likelihood(d):  # 45 are seen, of 5 it is known that they are no smaller
        return sum(log(d) - d * value for value in length[:45]) - 5 * d * length[44]

    for factor in (0.999, 1.001):
        assert likelihood(found) > likelihood(found * factor)


@pytest.mark.parametrize("k", [2, 5])
def test_the_error_sums_over_pairs_that_share_a_neighbour(k):
    points = torch.randn(40, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    distance, index = neighbours(points, k)
    value, error = estimate(torch.from_numpy(distance), torch.from_numpy(index))
    ratio = np.log(distance[:, -1:] / distance[:, :-1]).mean(1)
    seen = np.ones(40)
    if k == 2:
        limit = sorted(ratio)[35]
        seen, ratio = (ratio <= limit) * 1.0, np.minimum(ratio, limit)
    rest = seen - value * ratio
    near = [{i, *index[i].tolist()} for i in range(40)]
    total = sum(rest[i] * rest[j] for i in range(40) for j in range(40) if near[i] & near[j])
    assert error == pytest.approx(max(total, (rest**2).sum()) ** 0.5 / ratio.sum(), rel=1e-9)


def test_the_interval_is_symmetric_on_a_log_scale():
    low, high = interval(4.0, 0.4, None, 0.95)
    assert low * high == pytest.approx(16)
    assert high == pytest.approx(4 * np.exp(1.959964 * 0.1), rel=1e-6)


@pytest.mark.parametrize(("true", "bias"), [(2.0, 0.03), (6.0, 0.04), (6.0, -0.04)])
def test_the_allowance_is_the_bias_that_falls_with_the_squared_distance(true, bias):
    """An estimate of d·exp(bias) from n points, where bias goes like n^(−2/d), and no chance at all."""
    value, at_half = true * np.exp(bias), true * np.exp(bias * 2 ** (2 / true))
    low, high = interval(value, 1e-12, at_half, 0.95)
    # to first order: the exponent has the estimate in the place of d
    assert (low if bias > 0 else high) == pytest.approx(true, rel=0.1 * abs(bias))


@pytest.mark.parametrize(("true", "bias"), [(2.0, 0.03), (6.0, 0.04), (6.0, -0.04)])
def test_the_allowance_for_a_border_is_the_bias_that_falls_with_the_distance(true, bias):
    value, at_half = true * np.exp(bias), true * np.exp(bias * 2 ** (1 / true))
    low, high = interval(value, 1e-12, at_half, 0.95, border=True)
    assert (low if bias > 0 else high) == pytest.approx(true, rel=0.1 * abs(bias))
    wider = interval(value, 0.1 * value, at_half, 0.95, border=True)
    chance = 1.959964 * 0.1 + 0.1 / (2 ** (1 / value) - 1)
    assert wider[1] == pytest.approx(high * np.exp(chance), rel=1e-6)


def test_no_more_dimensions_than_features():
    found = [one for one in trials(cube, 2, 100, 20) if one.value < 2]
    assert len(found) > 3
    assert max(one.high for one in found) == 2


@pytest.mark.parametrize(
    ("make", "d"),
    [(sphere, 1), (sphere, 3), (torus, 2), (linear, 1), (linear, 3), (swiss_roll, 2)],
)
def test_intervals_hold_the_dimension(make, d):
    """95 % intervals in 30 trials: 24 or more, which chance would miss once in 3,000 (binomial)."""
    held = sum(one.low <= d <= one.high for one in trials(make, d, 300, 30))
    assert held >= 24


@pytest.mark.parametrize(("make", "d"), [(torus, 3), (swiss_roll, 2), (cube, 5)])
def test_intervals_of_the_likelihood_hold_the_dimension(make, d):
    """95 % intervals in 30 trials: 24 or more, which chance would miss once in 3,000 (binomial)."""
    held = sum(one.low <= d <= one.high for one in trials(make, d, 300, 30, "likelihood"))
    assert held >= 24


def test_the_result_says_where_its_coverage_was_not_measured():
    (few,), (many,) = trials(swiss_roll, 2, 300, 1), trials(linear, 10, 300, 1)
    assert "may hold less often" not in str(few)
    assert str(many).endswith("above 5 dimensions such intervals may hold less often than they say)")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "d", "method"),
    [(make, d, "twonn") for make in (sphere, torus, linear) for d in (1, 2, 3, 5)]
    + [(make, d, "likelihood") for make in (sphere, torus, linear, cube) for d in (1, 2, 3, 5)]
    + [(swiss_roll, 2, "likelihood")],
)
def test_intervals_have_their_coverage(make, d, method):
    """95 % intervals in 100 trials of 500 points: 87 or more, which chance would miss once in 1,000."""
    held = sum(one.low <= d <= one.high for one in trials(make, d, 500, 100, method))
    assert held >= 87


@pytest.mark.slow
@pytest.mark.parametrize(("make", "d"), [(sphere, 10), (linear, 10), (sphere, 20), (linear, 20)])
def test_intervals_lose_some_of_it_in_many_dimensions(make, d):
    """7 of 10 at least, as the docstring says; 19 of 40 is three standard deviations less."""
    held = sum(one.low <= d <= one.high for one in trials(make, d, 500, 40))
    assert held >= 19


@pytest.mark.slow
@pytest.mark.parametrize("method", ["twonn", "likelihood"])
@pytest.mark.parametrize(("make", "d"), [(sphere, 2), (linear, 5), (linear, 20)])
def test_errors_are_the_spread(make, d, method):
    """Also where there is bias. 40 trials know a spread to 1/√78 = 11 %: three of these, and 10 %."""
    found = trials(make, d, 250, 40, method)
    spread = np.std([one.value for one in found], ddof=1)
    error = np.mean([one.error for one in found])
    assert 0.57 < spread / error < 1.43


@pytest.mark.parametrize("make", [sphere, linear, cube])
@pytest.mark.parametrize("d", [1, 2, 4, 7, 10, 15, 20])
def test_dimensions_come_out_in_order_within_the_known_bias(make, d):
    """One of 1,000 points: at most 25 % too low up to 20 dimensions, and never 20 % too high."""
    found = intrinsic_dimension(make(d, 1000, torch.Generator().manual_seed(d)))
    assert 0.75 * d < found.value + 2 * found.error
    assert found.value - 2 * found.error < 1.2 * d


def test_many_dimensions_are_underestimated_and_half_of_the_points_say_so():
    """What the docstring says of 20 dimensions; the means of 10 trials, with errors near 0.25."""
    found = trials(linear, 20, 1000, 10)
    assert 15.5 < np.mean([one.value for one in found]) < 17.7
    assert np.mean([one.at_half for one in found]) < np.mean([one.value for one in found])


def test_a_few_near_duplicates_do_not_matter_much():
    """1 % of the points come twice, 1e-6 apart: their ratios are of size e^10."""
    points = linear(5, 800, torch.Generator().manual_seed(0))
    copies = points[:8] + 1e-6 * linear(5, 8, torch.Generator().manual_seed(1))
    one, other = intrinsic_dimension(points), intrinsic_dimension(torch.cat([points, copies]))
    assert abs(other.value - one.value) < 2 * one.error


def test_duplicates_are_counted_and_left_out():
    points = sphere(2, 300, torch.Generator().manual_seed(0))
    one, other = (
        intrinsic_dimension(points),
        intrinsic_dimension(torch.cat([points, points[:50], points[:7]])),
    )
    assert (other.duplicates, other.points) == (57, 300)
    assert other.value == pytest.approx(one.value, rel=1e-12)
    assert "57 duplicates left out" in str(other)
    assert "duplicates" not in str(one)


def test_scale_does_not_matter():
    points = sphere(2, 200, torch.Generator().manual_seed(0))
    one, other = (intrinsic_dimension(factor * points).value for factor in (1, 1024))
    assert other == pytest.approx(one, rel=1e-12)


def test_the_record_is_plain_and_progress_ends():
    seen = []
    found = intrinsic_dimension(
        sphere(2, 100, torch.Generator().manual_seed(0)),
        progress=lambda done, total, what: seen.append((done, total)),
    )
    assert found.to_dict()["method"] == "twonn"
    assert seen[-1][0] == seen[-1][1]
    few = intrinsic_dimension(sphere(2, 25, torch.Generator().manual_seed(0)))
    assert few.at_half is None


@pytest.mark.parametrize(
    ("points", "settings", "sentence"),
    [
        (torch.rand(19, 3), {}, "20 different points"),
        (torch.rand(15, 3).repeat(4, 1), {}, "20 different points"),
        (torch.rand(30, 3), {"method": "likelihood", "k": 20}, "40 different points"),
        (torch.rand(30, 3), {"method": "box"}, "twonn"),
        (torch.rand(30, 3), {"k": 3}, "k = 2"),
        (torch.rand(30, 3), {"method": "likelihood", "k": 2}, "from 3"),
        (torch.rand(30, 3), {"confidence": 1.0}, "confidence"),
        (torch.ones(30, 3), {}, "differ"),
        (torch.full((30, 3), torch.inf), {}, "finite"),
        (torch.arange(30.0)[:, None], {}, "different distances"),
    ],
)
def test_bad_input(points, settings, sentence):
    with pytest.raises(BadInput, match=sentence):
        intrinsic_dimension(points, **settings)


def test_neighbours_at_distance_0_are_refused():
    with pytest.raises(BadInput, match="distance 0"):
        estimate(torch.tensor([[0.0, 1.0], [0.5, 1.0]]), torch.tensor([[1, 1], [0, 0]]))
