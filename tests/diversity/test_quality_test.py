"""Precision, recall, density and coverage beside real data: by their definition, and at their level."""

from __future__ import annotations

import pytest
import torch

from diversity.sample_diversity import generator
from obverse._core.errors import BadInput
from obverse.diversity import quality, quality_test
from obverse.diversity._quality_test import NAMES, _Deal


def test_the_numbers_of_a_choice_are_those_of_quality():
    source = generator(1)
    points, reference = torch.randn(80, 3, generator=source), torch.randn(50, 3, generator=source)
    chosen = torch.rand(80, generator=source) < 0.5
    found = dict(zip(NAMES, _Deal(points, reference, 3)(chosen).tolist(), strict=True))
    expected = quality(points[chosen], reference, 3)
    for name in NAMES:
        assert found[name] == pytest.approx(getattr(expected, name).value, abs=1e-12), name


def test_real_points_are_blamed_no_more_often_than_the_level():
    """150 draws at 5 %: within three standard errors."""
    source = generator(2)
    few = dict.fromkeys(NAMES, 0)
    for _ in range(150):
        sets = (torch.randn(40, 2, generator=source) for _ in range(3))
        found = quality_test(*sets, 3, shuffles=39, generator=source)
        for name in NAMES:
            few[name] += getattr(found, name).p <= 0.05
    assert max(few.values()) <= 7.5 + 3 * (150 * 0.05 * 0.95) ** 0.5
    # of so few points hardly any lies outside: precision has too few values for a p of 5 %
    assert min(few[name] for name in NAMES if name != "precision") >= 1, "a test that never speaks is none"


@pytest.mark.parametrize(
    ("fault", "seen", "fine"), [("half", "recall", "precision"), ("noise", "precision", "")]
)
def test_what_is_missing_and_what_is_implausible_is_told_apart(fault, seen, fine):
    source = generator(3)
    samples, other, reference = (torch.randn(150, 2, generator=source) for _ in range(3))
    samples = samples.abs() if fault == "half" else 3 * samples
    found = quality_test(samples, other, reference, shuffles=99, generator=source)
    assert getattr(found, seen).p == 0.01
    assert not fine or getattr(found, fine).p > 0.05
    assert found.coverage.p == 0.01
    assert 0 < found.coverage.deviation < 0.1
    assert "coverage p = 0.01" in str(found)


def test_what_makes_no_sense_is_refused():
    x = torch.randn(9, 2, generator=generator())
    for settings in ({"k": 9}, {"shuffles": 0}):
        with pytest.raises(BadInput):
            quality_test(x, x, x, **settings)
    with pytest.raises(BadInput, match="one number of features"):
        quality_test(x, x, torch.randn(9, 3, generator=generator()), 2)
