"""Precision, recall, density and coverage against plain loops, and where their values are known."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
import torch

from obverse._core.errors import BadInput
from obverse.diversity._estimates import Estimate
from obverse.diversity._quality import expected_coverage, quality

module = import_module("obverse.diversity._quality")


def normal(count, width, seed, **kind):
    return torch.randn(count, width, generator=torch.Generator().manual_seed(seed), **kind)


def plain(samples, real, k):
    """All four, ball by ball."""
    s, r = samples.double().numpy(), real.double().numpy()

    def radius(points, i):
        return sorted(np.linalg.norm(points - points[i], axis=1)[np.arange(len(points)) != i])[k - 1]

    balls, back = [radius(r, j) for j in range(len(r))], [radius(s, i) for i in range(len(s))]
    inside = np.array([[np.linalg.norm(a - b) <= balls[j] for j, b in enumerate(r)] for a in s])
    other = np.array([[np.linalg.norm(a - b) <= back[i] for i, a in enumerate(s)] for b in r])
    return [inside.any(1).mean(), other.any(1).mean(), inside.sum() / (k * len(s)), inside.any(0).mean()]


def four(found):
    return [found.precision, found.recall, found.density, found.coverage]


@pytest.mark.parametrize(
    ("samples", "real", "width", "k"), [(30, 45, 3, 4), (50, 20, 12, 1), (21, 22, 2, 20)]
)
def test_against_plain_loops(samples, real, width, k, monkeypatch):
    a, b = normal(samples, width, 1) + 0.5, normal(real, width, 2)
    found = quality(a, b, k)
    # means of at most 50 numbers that agree exactly
    assert [part.value for part in four(found)] == pytest.approx(plain(a, b, k), rel=1e-12)
    monkeypatch.setattr(module, "BLOCK", 8)
    assert quality(a, b, k) == found


def test_a_point_on_the_border_is_inside():
    """A grid of whole numbers far from 0, where plain distances are exact and most points are on borders."""
    grid = torch.cartesian_prod(torch.arange(6.0), torch.arange(6.0)) + 1000
    for k in (1, 2, 4):
        found = quality(grid + torch.tensor([1.0, 0.0]), grid, k)
        assert [part.value for part in four(found)] == pytest.approx(
            plain(grid + torch.tensor([1.0, 0.0]), grid, k), rel=1e-12
        )


def test_density_of_the_same_distribution_is_one_and_coverage_is_the_formula():
    """In 60 trials, 80 samples and 120 real points in five dimensions."""
    found = [quality(normal(80, 5, seed), normal(120, 5, 1000 + seed), 3) for seed in range(60)]
    for values, wanted in (
        ([one.density.value for one in found], 1.0),
        ([one.coverage.value for one in found], expected_coverage(80, 120, 3)),
    ):
        # four standard errors of the mean over the trials
        assert abs(np.mean(values) - wanted) < 4 * np.std(values, ddof=1) / 60**0.5
    assert found[0].coverage_expected == expected_coverage(80, 120, 3)


def test_the_default_k_is_the_least_that_covers_95_percent():
    # as many samples as real points, many of both: 1 − 2⁻ᵏ
    assert expected_coverage(10**6, 10**6, 5) == pytest.approx(1 - 2**-5, abs=1e-5)
    assert expected_coverage(10**6, 10**6, 4) < 0.95 < expected_coverage(10**6, 10**6, 5)


def test_a_mode_that_was_dropped_costs_recall_and_coverage_not_precision():
    real = torch.cat([normal(300, 4, 1), 50 + normal(300, 4, 2)])
    whole = torch.cat([normal(300, 4, 3), 50 + normal(300, 4, 4)])
    lost = normal(600, 4, 5)
    before, after = quality(whole, real), quality(lost, real)
    assert after.precision.value == pytest.approx(before.precision.value, abs=0.05)
    assert before.recall.value > 0.9
    assert after.recall.value < 0.55
    assert after.coverage.value <= 0.5


def test_an_invented_mode_costs_precision_not_recall():
    real = normal(400, 4, 1)
    invented = torch.cat([normal(400, 4, 2), 50 + normal(400, 4, 3)])
    found = quality(invented, real)
    assert found.precision.value <= 0.5
    assert found.recall.value > 0.9


@pytest.mark.parametrize("shift", [0.0, 0.5])
def test_standard_errors_are_safe_and_not_idle(shift):
    """Over 30 trials: the spread of the values is at most their error, and at least a third of it."""
    found = [quality(normal(200, 8, seed) + shift, normal(200, 8, 500 + seed)) for seed in range(30)]
    for pick in range(4):
        values = [four(one)[pick].value for one in found]
        error = np.sqrt(np.mean([four(one)[pick].error ** 2 for one in found]))
        # a spread over 30 trials is known to 1/√58 = 13 %: three of these
        assert error / 3 < np.std(values, ddof=1) < 1.4 * error


def test_equal_samples_are_no_error():
    found = quality(torch.zeros(30, 3), normal(40, 3, 1))
    assert found.recall.value == 0
    assert found.recall.error == 0
    assert 0 <= found.coverage.value < 1


def test_progress_ends_at_the_end():
    seen = []
    quality(normal(30, 3, 1), normal(30, 3, 2), progress=lambda done, total, what: seen.append((done, total)))
    assert seen == sorted(seen)
    assert seen[-1][0] == seen[-1][1]


def test_the_record_is_plain():
    found = quality(normal(30, 3, 1), normal(30, 3, 2))
    assert found.to_dict()["precision"] == {"value": found.precision.value, "error": found.precision.error}
    assert "precision" in str(found)
    assert str(Estimate(0.5, 0.012)) == "0.5 ± 0.012"


@pytest.mark.parametrize(
    ("samples", "real", "k"),
    [
        (torch.rand(30, 3), torch.rand(30, 4), 5),
        (torch.rand(30, 3), torch.rand(5, 3), 5),
        (torch.rand(30, 3), torch.rand(30, 3), 0),
        (torch.rand(30, 3), torch.rand(30, 3), 2.0),
        (torch.full((30, 3), torch.nan), torch.rand(30, 3), 5),
        (torch.rand(30, 3), torch.ones(30, 3), 5),
    ],
)
def test_bad_input(samples, real, k):
    with pytest.raises(BadInput):
        quality(samples, real, k)
