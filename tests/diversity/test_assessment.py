"""The assessment: the worst certain fault leads, and nothing is certain that chance explains."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from scipy import stats
from torch import Tensor

from diversity.sample_diversity import generator, sample_diversity
from obverse.data import load
from obverse.diversity import assess, birthday_test
from obverse.diversity._assessment import error_interval, holm, p_lower, share_interval
from obverse.diversity._estimates import Estimate
from obverse.diversity._findings import FINDINGS, findings
from obverse.diversity._quality_test import Lower
from obverse.diversity._smallest import least_difference
from obverse.diversity._verdict import outlook, verdict
from obverse.diversity.page import render_diversity
from obverse.diversity.results import Diversity


def clean(**birthday: Any) -> Diversity:
    """Every test without a fault; then changes of the birthday test."""
    found = sample_diversity("full")
    assert found.quality is not None
    assert found.memorization is not None
    assert found.memorization.sides is not None
    assert found.discrepancy is not None
    assert found.quality_test is not None
    half = Estimate(0.8, 0.03)
    fine = replace(found.quality, precision=half, recall=half, coverage=half)
    sides = replace(found.memorization.sides, p=0.5)
    return replace(
        found,
        quality=fine,
        quality_real=fine,
        memorization=replace(found.memorization, sides=sides),
        discrepancy=replace(found.discrepancy, p=0.5),
        quality_test=replace(
            found.quality_test, **dict.fromkeys(("precision", "recall", "coverage"), Lower(0.5, 0.03))
        ),
        birthday=replace(found.birthday, **{"p_real": 0.5, "constant": False, **birthday}),
    )


def with_recall(found: Diversity, value: float, error: float = 0.03, p: float = 0.0001) -> Diversity:
    assert found.quality is not None
    assert found.quality_test is not None
    return replace(
        found,
        quality=replace(found.quality, recall=Estimate(value, error)),
        quality_test=replace(found.quality_test, recall=Lower(p, 0.03)),
    )


def with_copies(found: Diversity, p: float) -> Diversity:
    m = found.memorization
    assert m is not None
    assert m.sides is not None
    return replace(found, memorization=replace(m, sides=replace(m.sides, p=p)))


def test_nothing_leads_where_nothing_is_wrong():
    found = clean()
    assert found.assessment.worst is None
    assert verdict(found) == "No fault found at these sizes: 150 samples, 6 tests (95 %)."
    assert outlook(found)[0].startswith("These sizes would have shown in 8 of 10 cases: ")
    told = found.to_dict()
    assert told["assessment"]["findings"][0]["certain"] is False
    assert told["verdict"] == found.verdict == str(found).split("\n")[0].removeprefix("full: ")


def test_the_worst_certain_fault_leads_and_the_others_follow():
    found = with_copies(with_recall(clean(), 0.3), 0.001)
    assert [one.fault for one in found.assessment.faults] == ["copies", "misses"]
    assert verdict(found).startswith("This generator copies its training set")
    assert outlook(found)[0].startswith("This generator misses part of the data: its recall is 30.0 %")
    repeats = replace(found, birthday=replace(found.birthday, p_real=1e-4, collisions=3, support_bound=900.0))
    effective = replace(found.birthday.effective, value=238.0, low=184.0, high=313.0)
    repeats = replace(repeats, birthday=replace(repeats.birthday, effective=effective))
    assert verdict(repeats).startswith(
        "This generator repeats itself: it has effectively about 238 images (184 to 313, 95 %), real data"
    )
    same = replace(repeats, birthday=replace(repeats.birthday, constant=True))
    assert verdict(same) == "This generator makes one image: all 200 samples are equal."


def test_a_bound_from_below_never_leads_where_recall_is_gone():
    found = with_recall(clean(collisions=0, support_bound=None, support_at_least=3_300.0, p_real=1.0), 0.0)
    assert found.vendi is not None
    assert found.vendi_real is not None
    alike = replace(found, vendi=replace(found.vendi, score=1.5), vendi_real=replace(found.vendi, score=4.7))
    assert verdict(alike).startswith(
        "This generator has collapsed: 0.0 % of real images lie among its samples"
    )
    assert "3,300" not in verdict(alike)
    varied = replace(found, vendi=found.vendi_real)  # noise is no collapse
    assert verdict(varied).startswith("This generator misses nearly all of the data: its recall is 0.0 %")


def test_a_small_p_is_no_fault_where_many_tests_were_made():
    found = with_copies(clean(), 0.03)
    assert found.memorization is not None
    assert found.memorization.copied  # by itself
    assert found.assessment.worst is None
    said = " ".join(outlook(found))
    assert "It copies" not in said
    assert "not significant among so many tests (p = 0.18, corrected for 6 tests)" in said


def test_files_that_are_equal_are_counted():
    """600 files of 200 images: the bound of a birthday test says at most 1,500."""
    data = load("digits")
    images = data.train_x[:200]
    pool = images[torch.cat([torch.arange(200), torch.randint(200, (400,), generator=generator(1))])]
    pool = pool[torch.randperm(600, generator=generator(2))]
    found, _ = assess(pool, samples=150, generator=generator())
    assert (found.distinct, found.examined) == (200, 600)
    first = (
        "This generator repeats itself: only 200 of 600 samples are different, the others are exact "
        "duplicates"
    )
    assert verdict(found).startswith(f"{first}. By how often samples collide it has effectively about ")
    assert "at most" not in verdict(found)
    beside, _ = assess(pool, real=data.test_x[:150], samples=150, generator=generator())
    assert (beside.distinct_real, beside.p_distinct) == (150, 0.001)
    assert verdict(beside).startswith(f"{first}; 150 of 150 real ones are (p = 0.005, corrected for 6 tests")


def test_a_continuous_generator_gets_its_bound_with_the_caveat():
    def sampler(count: int, source: torch.Generator) -> Tensor:
        return torch.rand(count, 4, generator=source)

    alone = birthday_test(sampler, 20, 10, generator=generator())
    assert str(alone).endswith("(95 %); only exact duplicates count")
    found, _ = assess(sampler, samples=100, budget=2000, generator=generator())
    assert verdict(found).startswith("No fault found in 100 samples, but little was looked for")
    assert "counting every difference, however small" in " ".join(outlook(found))


@pytest.mark.parametrize("p", [[0.01, 0.04, 0.03], [0.5], [], [0.2, 0.001, 0.9, 0.02]])
def test_holm_by_its_steps(p):
    """Reject from the smallest on while p₍ᵢ₎ ≤ α/(m − i): the smallest α that rejects is the adjusted p."""
    for alpha in (0.001, 0.01, 0.05, 0.1, 0.3, 0.7, 0.99):
        rejected = set()
        for place, index in enumerate(sorted(range(len(p)), key=p.__getitem__)):
            if p[index] > alpha / (len(p) - place):
                break
            rejected.add(index)
        assert {i for i, one in enumerate(holm(p)) if one <= alpha * (1 + 1e-12)} == rejected


def test_the_difference_that_would_be_found_is_found_in_eight_of_ten_cases():
    """Student's t of ten groups, simulated: differences of the size `smallest`, errors estimated anew."""
    numbers = torch.randn(20_000, 10, generator=generator(), dtype=torch.float64)
    groups = 10**0.5 * numbers + least_difference(1.0, 0.01, 10)  # means have the error 1
    errors = groups.std(1) / 10**0.5
    found = (groups.mean(1) / errors > stats.t.isf(0.01, 9)).double().mean()
    # t + t₀.₈ is an approximation of the noncentral law: known to be within 0.05 here
    assert float(found) == pytest.approx(0.8, abs=0.05)
    assert p_lower(0.5, 0.5, 0.0) == 1
    assert p_lower(0.0, 0.5, 0.0) == 0
    assert p_lower(0.2, 0.5, 0.1) == pytest.approx(float(stats.t.cdf(-3, 9)))


def test_every_check_has_its_number_its_interval_and_what_it_could_have_seen():
    found = with_recall(clean(), 0.3)
    rows = {row[1]: dict(zip(FINDINGS, row, strict=True)) for row in findings(found)}
    recall = rows["recall"]
    # of 30 in 100, Clopper and Pearson's: wider than 2.262 standard errors of 0.03
    assert recall["samples"] == "30.0 % (21.2 to 40.0 %)"
    assert (recall["found"], recall["real data"]) == ("yes, p < 0.001", "80.0 %")
    (check,) = (one for one in found.assessment.findings if one.test == "recall")
    # a permuted value with the deviation 0.03, at 5 % over six tests, and 0.8 beyond that
    assert check.smallest == pytest.approx(0.03 * (stats.norm.isf(0.05 / 6) + stats.norm.ppf(0.8)))
    assert (
        recall["what 8 of 10 cases would have shown"] == "a recall lower by 10 points than that of real data"
    )
    assert all(len(row) == len(FINDINGS) for row in findings(sample_diversity("plain")))


def test_where_nothing_of_a_share_is_left_to_lose_no_smallest_loss_is_promised():
    found = clean()
    assert found.quality_real is not None
    tiny = replace(found.quality_real, recall=Estimate(0.05, 0.03))
    (check,) = (one for one in replace(found, quality_real=tiny).assessment.findings if one.test == "recall")
    assert check.smallest is None


def test_an_interval_at_the_end_of_the_scale_has_a_width():
    """A recall of 0 has a jackknife error of 0: the limit is that of none of n, 1 − 0.025^(1/n)."""
    assert error_interval(Estimate(0.0, 0.0), 100, 0.95) == pytest.approx((0.0, 1 - 0.025**0.01))
    assert share_interval(1.0, 50, 0.95) == pytest.approx((0.025**0.02, 1.0))
    low, high = error_interval(Estimate(0.5, 0.1), 100, 0.95)
    assert low == pytest.approx(0.5 - 0.1 * stats.t.isf(0.025, 9))
    assert high == pytest.approx(1 - low)
    exact = stats.binomtest(30, 100).proportion_ci(0.95)
    assert share_interval(0.3, 100, 0.95) == pytest.approx((exact.low, exact.high))


def test_the_title_is_no_name_of_a_folder():
    page = render_diversity(clean())
    assert "<h1>Has this generator learned the distribution?</h1>" in page
    assert '<p class="subject">a generator of shape 1×8×8: full</p>' in page
    assert page.index(clean().verdict.split(":")[0]) < page.index("What was looked for")


def test_samples_that_differ_in_any_way_are_said_to_where_nothing_else_is_known():
    found = clean()
    assert found.discrepancy is not None
    other = replace(found, discrepancy=replace(found.discrepancy, value=0.02, deviation=0.004, p=0.001))
    assert verdict(other) == (
        "The samples of this generator differ from real data: their squared discrepancy is 0.0200, by chance "
        "it would be 0 ± 0.00400 (p = 0.006, corrected for 6 tests)."
    )
    worse = with_recall(other, 0.3)
    assert verdict(worse).startswith("This generator misses part of the data")
    assert "differ from real data" in outlook(worse)[0]


def test_older_records_are_judged_by_the_errors_of_the_jackknife():
    found = replace(with_recall(clean(), 0.6), quality_test=None)
    (check,) = (one for one in found.assessment.findings if one.test == "recall")
    assert check.p == pytest.approx(float(stats.t.sf(0.2 / (0.03 * 2**0.5), 9)))
    assert check.smallest == pytest.approx(least_difference(0.03 * 2**0.5, 0.05 / 6, 10))
