"""The sentences at the top of the page: right for every shape of result, and no stronger than it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from obverse._core import FIXED, p_value, percent, signed
from obverse.training import _words as words
from obverse.training._compare import Comparison
from obverse.training._shown import Results, read_results


@pytest.fixture(scope="module")
def results(comparison: Path) -> Results:
    return read_results(comparison)


def said(results: Results) -> str:
    return " ".join(words.summary(results)).replace(FIXED, " ")


def with_p(results: Results, *values: float | None) -> Results:
    """The same table with other p values behind the first row."""
    first, *others = results.table.rows
    changed = [
        replace(row, difference=0.01, difference_se=0.002, p_value=p)
        for row, p in zip(others, values, strict=True)
    ]
    return replace(results, table=Comparison((first, *changed)))


def test_numbers() -> None:
    assert percent(0.04204, 0.0012).replace(FIXED, " ") == "4.20 ± 0.12"
    assert signed(-0.0027) == "−0.27"
    assert signed(0.0027) == "+0.27"
    assert signed(-0.00001) == "0.00"
    assert [p_value(p) for p in (None, 0.0499, 0.27)] == ["—", "0.050", "0.27"]
    assert p_value(1e-9).replace(FIXED, " ") == "< 0.001"


def test_large_p_is_not_called_equality(results: Results) -> None:
    text = said(with_p(results, 0.4, 0.2))
    assert "None of the differences to backprop is significant" in text
    assert "closest: shadow +1.00 ± 0.20 points, p = 0.20" in text
    assert "not proof" in text


def test_small_p_is_named_and_corrected_for_the_number_of_tests(results: Results) -> None:
    text = said(with_p(results, 0.04, 0.001))
    assert "dropout +1.00 ± 0.20 points, p = 0.040" in text
    assert "Corrected for two comparisons (p < 0.025), shadow would remain" in text
    assert "none of them would remain" in said(with_p(results, 0.04, 0.3))


def test_p_that_prints_like_the_limit_is_not_called_small(results: Results) -> None:
    assert "None of the differences" in said(with_p(results, 0.0501, None))


@pytest.mark.parametrize(
    ("gaps", "sentence"),
    [
        ((0.0, 0.009, -0.009), "is within one point of the test error for backprop"),
        ((0.0, 0.03, 0.009), "and is more than one point from it for dropout (+3.00 ± 0.00 points)."),
        ((0.02, 0.02, 0.02), "is more than one point from the test error for backprop (+2.00"),
    ],
)
def test_tracking_follows_the_gap(results: Results, gaps: tuple[float, ...], sentence: str) -> None:
    runs = {}
    for (variant, found), gap in zip(results.runs.items(), gaps, strict=True):
        last = [{**run.final, "test_error": 0.1, "shadow_error": 0.1 + gap} for run in found]
        runs[variant] = tuple(replace(run, metrics=(end,)) for run, end in zip(found, last, strict=True))
    assert sentence in said(replace(results, runs=runs))


def test_caveat_about_step_size_only_with_a_second_loss(results: Results) -> None:
    assert "lengthens each step" in said(results)
    plain = {name: replace(settings, weight=0.0) for name, settings in results.plan.items()}
    assert "lengthens each step" not in said(replace(results, plan=plain))


def test_closeness_is_not_praised_in_a_net_that_learned_nothing(results: Results) -> None:
    def at(error: float) -> Results:
        rows = tuple(replace(row, test_error=error) for row in results.table.rows)
        return replace(results, table=Comparison(rows))

    assert "of backprop, dropout and shadow, closeness of the two means little" in said(at(0.9))
    assert "means little" not in said(at(0.1))
