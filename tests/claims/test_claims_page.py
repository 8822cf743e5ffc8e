"""The page of a sweep says what the sweep says; its plots are where the numbers are."""

from __future__ import annotations

import base64
import hashlib
import math
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from claims.sample_sweeps import (
    ATTACK,
    TRACE,
    broken,
    hostile,
    many_claims,
    outcome,
    sample_sweep,
    settings,
    sweep_of,
)
from obverse._core.errors import BadInput
from obverse._core.records import record_text
from obverse._core.text import short
from obverse.app import write_report as build
from obverse.claims._rates import Along, Exponent, NotGrowing
from obverse.claims._rules import Equal
from obverse.claims._series import MOST_CATEGORIES, MOST_SERIES, curves
from obverse.claims._store import FORMAT, NAME
from obverse.claims.charts import HEIGHT, LABELS, NAMES, RIGHT, TOTAL, plot
from obverse.claims.page import alike, duration, grouped, render_sweep, summary
from obverse.claims.results import Outcome, Sweep
from obverse.present.axis import Axis, axis_for, labels
from weights.test_audit_page import HUGE, ROUNDING, TINY, extreme, words
from weights.test_audit_page import Reader as AuditReader

WIDTH = TOTAL - LABELS - RIGHT


class Reader(AuditReader):
    """The same with the text of each claim's card."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        super().handle_starttag(tag, attrs)
        if tag == "article":
            self.cards.append("")
            self._in_card = True


@pytest.fixture(scope="module")
def sweep() -> Sweep:
    return sample_sweep()


@pytest.fixture(scope="module")
def page(sweep: Sweep) -> str:
    return render_sweep(sweep)


# --- axes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "logarithmic"),
    [
        ((1.0, 9.9), False),
        ((1.0, 10.1), True),
        ((0.0, 1.0, 50.0), True),
        ((-1e-9, 1.0, 50.0), False),
        ((1e-7, 1e-3), True),
        ((5.0,), False),
        ((), False),
    ],
)
def test_axis_is_logarithmic_beyond_a_decade(values: tuple[float, ...], logarithmic: bool) -> None:
    assert axis_for(values).logarithmic is logarithmic


def test_values_lie_where_their_size_puts_them() -> None:
    linear, powers = Axis(-2.0, 6.0), Axis(1.0, 100.0, logarithmic=True)
    assert [linear.share(value) for value in (-2, 0, 6, 7)] == [0, 0.25, 1, 1]
    assert [powers.share(value) for value in (1, 10, 100, 1e9, 0)] == [0, 0.5, 1, 1, 0]
    zero = Axis(1.0, 100.0, logarithmic=True, zero=True)
    assert zero.share(0) < zero.share(1) < zero.share(10)


def test_zero_has_a_place_of_its_own_on_a_logarithmic_axis() -> None:
    axis = axis_for((0.0, 1.0, 1000.0))
    assert [label for _, label in axis.ticks()] == ["0", "1", "10", "100", "1,000"]
    assert axis.share(0.0) < axis.share(1.0)


def test_measured_values_rarely_begin_at_zero_without_need() -> None:
    assert axis_for((3.0, 9.0), from_zero=True).low == 0
    assert axis_for((7.0, 9.0), from_zero=True).low > 6
    assert axis_for((3.0, 9.0)).low > 2


@pytest.mark.parametrize(
    "values", [(1, 2, 3), (0.9995, 1.0005), (1e6, 1.2e6), (-3e-7, 5e-7), (3, 40), (5,), (2e5, 9e5)]
)
def test_tick_labels_say_their_values(values: tuple[float, ...]) -> None:
    ticks = axis_for(values).ticks()
    assert len(ticks) >= 3
    said = []
    for _, label in ticks:
        raised = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹−", "-0123456789-", ",")
        digits, _, power = label.partition("·10")
        said.append(float(digits.translate(raised)) * 10.0 ** float(power.translate(raised) or 0))
    assert said == pytest.approx([value for value, _ in ticks], rel=1e-12, abs=1e-20)
    assert len({label for _, label in ticks}) == len(ticks)


def test_labels_are_written_as_a_person_would() -> None:
    assert labels([0.0, 0.05, 0.1]) == ["0", "0.05", "0.10"]
    assert labels([-2e-7, 0.0, 2e-7]) == ["−2·10⁻⁷", "0", "2·10⁻⁷"]
    assert labels([0.0, 2000.0]) == ["0", "2,000"]
    assert [short(one) for one in (0, 0.3, 500, 1e-7, 2e5, 12345, -4.0)] == [
        "0", "0.3", "500", "10⁻⁷", "2·10⁵", "12,345", "−4"
    ]  # fmt: skip


@pytest.mark.parametrize(
    "values",
    [(HUGE,), (-HUGE, HUGE), (TINY,), (TINY, HUGE), (TINY, 2e-323), (0.0, TINY, 1.0), (1e300, 3e300)],
)
def test_any_numbers_have_a_place_and_labels(values: tuple[float, ...]) -> None:
    for axis in (axis_for(values), axis_for(values, from_zero=True), axis_for(values, span=2.0)):
        assert all(0 <= axis.share(value) <= 1 for value in (*values, 0.0, -HUGE, HUGE))
        assert 1 <= len(axis.ticks()) <= 12


# --- plots, read back from their coordinates -------------------------------------------------------------


def spots(svg: str, marker: int = 0) -> np.ndarray:
    found = re.findall(rf'<use href="#mark-{marker}" x="([\d.]+)" y="([\d.]+)"/>', svg)
    return np.array([[float(x), float(y)] for x, y in found])


def lines(svg: str, kind: str = "curve") -> list[np.ndarray]:
    found = re.findall(rf'<path class="{kind}" d="M([^"]*)"/>', svg)
    return [np.array([[float(part) for part in spot.split()] for spot in d.split("L")]) for d in found]


def drawn(one: Outcome) -> str:
    found = plot(one)
    assert found is not None
    return found.svg


def test_points_bars_and_line_are_where_the_numbers_are() -> None:
    """Against log₁₀ worked out here: the frame reaches 5 % of the decades beyond the outermost values."""
    kept = (20, 50, 100, 200, 500, 1000, 2000)
    one = outcome(
        "a", settings("t", kept), lambda s: 2 / s["t"], Equal(), truth=lambda s: 3 / s["t"], spread=0.5
    )
    svg = drawn(one)
    x = np.log10(kept)
    pad = 0.05 * (x[-1] - x[0])
    expected_x = (x - x[0] + pad) / (x[-1] - x[0] + 2 * pad) * WIDTH
    near = [end for point in one.points for end in (point.low, point.high) if abs(end / point.mean - 1) < 0.7]
    everything = np.log10([*(point.mean for point in one.points), *(2 / t for t in kept), *near])
    low, high = everything.min(), everything.max()
    pad = 0.05 * (high - low)

    def height(values: Any) -> np.ndarray:
        return (1 - (np.log10(values) - low + pad) / (high - low + 2 * pad)) * HEIGHT

    found = spots(svg)
    assert found[:, 0] == pytest.approx(expected_x, abs=ROUNDING)
    assert found[:, 1] == pytest.approx(height([point.mean for point in one.points]), abs=ROUNDING)
    (line,) = lines(svg)
    assert line[:, 0] == pytest.approx(expected_x, abs=ROUNDING)
    assert line[:, 1] == pytest.approx(height([2 / t for t in kept]), abs=ROUNDING)
    bars = re.findall(r"M([\d.]+) ([\d.]+)V([\d.]+)", re.findall(r'class="whisker" d="([^"]*)"', svg)[0])
    assert [float(bar[0]) for bar in bars] == pytest.approx(expected_x, abs=ROUNDING)
    assert [float(bar[1]) for bar in bars] == pytest.approx(height([p.low for p in one.points]), abs=ROUNDING)
    assert [float(bar[2]) for bar in bars] == pytest.approx(
        height([p.high for p in one.points]), abs=ROUNDING
    )


def test_curves_run_along_the_axis_whatever_the_order_of_the_grid() -> None:
    shuffled = settings("t", (400, 100, 300, 200))
    (line,) = lines(drawn(outcome("a", shuffled, lambda s: s["t"], Equal())))
    assert list(line[:, 0]) == sorted(line[:, 0])
    assert list(line[:, 1]) == sorted(line[:, 1], reverse=True)  # y runs down the page


def test_failed_settings_are_ringed() -> None:
    wrong = outcome(
        "a",
        settings("t", (10, 20, 30)),
        lambda s: 1.0,
        Equal(),
        truth=lambda s: 2.0 if s["t"] == 20 else 1.0,
        spread=0.01,
    )
    svg = drawn(wrong)
    (ring,) = re.findall(r'<use href="#ring" x="([\d.]+)" y="([\d.]+)"/>', svg)
    assert [float(part) for part in ring] == list(spots(svg)[1])


def test_series_have_a_colour_and_a_marker_each(sweep: Sweep) -> None:
    (one,) = [one for one in sweep if one.id == "alm.thm2.3"]
    found = plot(one)
    assert found is not None
    assert found.names == ("k = 5", "k = 20", "k = 80")
    for index in range(3):
        assert len(spots(found.svg, index)) == 4
        assert len(lines(found.svg, f"curve s{index}")) == 1
        assert f'<g class="s{index}">' in found.svg
    legend = render_sweep(sweep_of([one])).split('<ul class="legend">')[1].split("</ul>")[0]
    assert re.findall(r'href="#mark-(\d)"/></svg>([^<]*)<', legend) == [
        ("0", "k = 5"),
        ("1", "k = 20"),
        ("2", "k = 80"),
    ]


def test_settings_that_differ_at_one_place_are_told_apart() -> None:
    grid = [{"t": t, "m": m, "trials": 10 * t} for m in (5, 6) for t in (10, 20, 30)]
    found = curves(outcome("a", grid, lambda s: s["m"], Equal()))
    assert [one.name for one in found.series] == ["m = 5", "m = 6"]
    assert [one.places for one in found.series] == [(10, 20, 30)] * 2
    assert {one.predicted for one in found.series} == {(5.0,) * 3, (6.0,) * 3}


def test_fitted_rate_is_dashed_and_meets_its_points(sweep: Sweep) -> None:
    (one,) = [one for one in sweep if one.id == "alm.prop2.2"]
    svg = drawn(one)
    (fitted,) = lines(svg, "fitted")
    found = spots(svg)
    assert fitted[:, 0] == pytest.approx(found[:, 0], abs=ROUNDING)
    # 60 trials of relative spread 0.1: standard error 1.3 %, of a decade-wide axis under one pixel
    assert fitted[:, 1] == pytest.approx(found[:, 1], abs=4)
    (stated,) = lines(svg)
    assert stated[:, 1] == pytest.approx(found[:, 1], abs=4)  # its constant fitted, too
    apart = replace(one, curve=(*one.curve, (one.curve[0][0], 2 * one.curve[0][1])))
    assert 'class="fitted apart"' in drawn(apart)


@pytest.mark.parametrize("power", [1.0, -1.0], ids=["with the axis", "against it"])
def test_rate_meets_the_end_from_which_it_should_not_grow(power: float) -> None:
    """The variable of the rate is t or 1/t: what grows with it stands above the line at the far end."""
    along = Along("variable", lambda s: s["t"] ** power)
    one = outcome(
        "a",
        settings("t", (10, 20, 40, 80)),
        lambda s: 7 * along(s),
        NotGrowing(along),
        truth=lambda s: along(s) ** 1.5,
        spread=0.02,
    )
    assert one.verdict == "failed"
    svg = drawn(one)
    (line,) = lines(svg)
    above = line[:, 1] - spots(svg)[:, 1]
    if power < 0:
        above = above[::-1]
    assert above[0] == pytest.approx(0, abs=2 * ROUNDING)
    assert (np.diff(above) > 5).all()
    found = plot(one)
    assert found is not None
    assert found.constant.endswith("first point" if power > 0 else "last point")
    assert words(Reader(render_sweep(sweep_of([one]))).text).count(found.constant) == 1


def test_a_rate_is_drawn_on_logarithmic_axes() -> None:
    grid = settings("t", (10, 20, 40, 80))
    straight = outcome("a", grid, lambda s: s["t"] ** 0.5, Exponent(Along("t")), spread=0.01)
    (line,) = lines(drawn(straight))
    slopes = np.diff(line[:, 1]) / np.diff(line[:, 0])
    assert slopes == pytest.approx(slopes.mean(), rel=0.01)


def test_strings_along_the_axis_are_categories(sweep: Sweep) -> None:
    (one,) = [one for one in sweep if one.id == "alm.universal"]
    svg = drawn(one)
    labels = re.findall(r'class="end middle category">([^<]*)<', svg)
    assert labels == [point.setting["law"] for point in one.points]
    found, ends = spots(svg), TOTAL - NAMES - RIGHT
    assert list(found[:, 1]) == sorted(found[:, 1])
    values = np.array([point.mean for point in one.points])
    # linear in the value, the same for all
    scale = np.polyfit(values, found[:, 0], 1)
    assert found[:, 0] == pytest.approx(np.polyval(scale, values), abs=2 * ROUNDING)
    assert found[:, 0].max() <= ends
    assert len(re.findall(r"M([\d.]+) [\d.]+v", re.findall(r'class="curve" d="([^"]*)"', svg)[0])) == len(
        values
    )


def test_one_setting_is_a_line_of_its_own(sweep: Sweep) -> None:
    (one,) = [one for one in sweep if one.id == "alm.thm3.2"]
    svg = drawn(one)
    assert "layers = 3" in svg
    assert len(spots(svg)) == 1
    alone = replace(one, points=(replace(one.points[0], count=1, error=None, low=0.4, high=0.4, mean=0.4),))
    assert "whisker" not in drawn(alone)


def test_a_bar_without_end_does_not_squeeze_the_points() -> None:
    one = outcome("a", settings("t", (1, 2, 3)), lambda s: s["t"], Equal(), spread=0.01)
    wide = replace(one, points=(replace(one.points[0], low=-1e6, high=1e6), *one.points[1:]))
    heights = spots(drawn(wide))[:, 1]
    # cut at twice the largest value to either side: 12 units in the frame and its margins, 2 between points
    assert np.ptp(heights) == pytest.approx(HEIGHT * 2 / 12 / 1.1, rel=0.05)


def test_twins_have_the_same_axes(sweep: Sweep) -> None:
    printed, corrected = (one for one in sweep if one.id.startswith("alm.support"))
    both = [plot(one, (printed, corrected)) for one in (printed, corrected)]
    assert both[0] is not None
    assert both[1] is not None
    labels = [re.findall(r"<text[^>]*>([^<]*)<", one.svg) for one in both if one]
    assert labels[0] == labels[1]
    other = replace(corrected, quantity="another")
    apart = plot(printed, (printed, other))
    assert apart is not None
    assert apart.svg == drawn(printed)


def test_many_series_and_categories_are_bounded_and_counted() -> None:
    grid = [{"t": t, "k": k} for k in range(20) for t in (1, 2)]
    found = plot(outcome("a", grid, lambda s: 1.0, Equal(), series="k"))
    assert found is not None
    assert len(found.names) == MOST_SERIES
    assert found.left_out == 2 * (20 - MOST_SERIES)
    named = plot(outcome("a", settings("t", [f"law {i}" for i in range(50)]), lambda s: 1.0, Equal()))
    assert named is not None
    assert named.left_out == 50 - MOST_CATEGORIES
    one = outcome("a", grid, lambda s: 1.0, Equal(), series="k")
    assert f"Not drawn: {2 * (20 - MOST_SERIES)} points" in words(Reader(render_sweep(sweep_of([one]))).text)


# --- what the page says ----------------------------------------------------------------------------------


def test_summary_counts_every_verdict(sweep: Sweep, page: str) -> None:
    said = "Of 12 claims, 7 held, 3 failed, 1 stayed inconclusive and 1 crashed, in a full sweep of 7 minutes"
    said += " with seed 0."
    assert summary(sweep) == said
    text = words(Reader(page).text)
    assert said in text
    differing = [outcome.id for outcome in sweep if outcome.verdict != outcome.expected]
    assert f"{len(differing)} verdicts differ from what was expected: {', '.join(differing)}." in text
    assert "found at full settings" not in text
    assert "found at full settings" in render_sweep(replace(sweep, quick=True))
    fine = sweep_of(list(sweep)[:1], quick=True, seconds=41.24, seed=7)
    assert summary(fine) == "Of 1 claim, 1 held, in a quick sweep of 41.2 seconds with seed 7."
    assert "No verdict differs from what was expected." in words(Reader(render_sweep(fine)).text)
    assert "This sweep holds no claims" in render_sweep(sweep_of([]))


def test_times_are_told_in_fitting_units() -> None:
    assert [duration(one) for one in (3.21, 45.0, 600.0, 7200.0)] == [
        "3.21 seconds", "45.0 seconds", "10 minutes", "2.00 hours"
    ]  # fmt: skip


def test_every_claim_has_a_row_and_a_card(sweep: Sweep, page: str) -> None:
    found = Reader(page)
    text = words(found.text)
    assert len(found.cards) == len(sweep.outcomes)
    rows = re.findall(r"<tr data-tone.*", page)
    assert len(rows) == len(sweep.outcomes)
    order = [one for group in grouped(sweep.outcomes) for one in group]
    for one, row, card in zip(order, rows, map(words, found.cards), strict=True):
        plain = words(Reader(row).text)
        for part in (one.id, one.title, one.reading, one.verdict, one.sentence):
            assert words(part) in plain
            assert words(part) in card
        for part in (one.statement, one.source, one.place, one.rule, one.remark, f"seed {one.seed}"):
            assert words(part) in card
        assert f'href="#claim-{one.id}"' in row
        assert f"claim-{one.id}" in found.ids
        assert ("expected: held" in plain) == one.surprising
    assert "as expected" in text


def test_twins_stand_together_the_printed_one_first() -> None:
    base = outcome("x", settings("t", (1, 2)), lambda s: 1.0, Equal())
    made = [
        replace(base, id="exact", twin="printed", reading="exact"),
        replace(base, id="alone"),
        replace(base, id="printed", twin="exact"),
        replace(base, id="lost", twin="nowhere"),
        replace(base, id="third", twin="printed", reading="corrected"),
        replace(base, id="itself", twin="itself"),
    ]
    assert [[one.id for one in group] for group in grouped(made)] == [
        ["printed", "exact", "third"], ["alone"], ["lost"], ["itself"]
    ]  # fmt: skip
    page = render_sweep(sweep_of(made))
    assert '<a href="#claim-exact">exact</a> (exact)' in page
    assert "nowhere, not in this sweep" in page
    assert page.count('class="group several"') == 1


def test_table_of_settings_holds_every_number() -> None:
    one = outcome("a", settings("t", (100, 200), n=1000), lambda s: 2 / s["t"], Equal(), spread=0.02, seed=5)
    (card,) = Reader(render_sweep(sweep_of([one]))).cards
    details = words(card).split("Settings and numbers")[1]
    for point in one.points:
        assert point.error is not None
        predicted, mean, error = alike(point.predicted, point.mean, point.error)
        assert f"t = {point.setting['t']}" in details
        assert f"{predicted}{mean} ± {error}{point.count}{point.verdict}{point.note}" in details
    assert "n = 1000" not in details  # the same everywhere, and said so below the plot
    assert "Everywhere n = 1000" in words(card)
    assert "seed 5" in details
    assert "largest relative deviation" in details


def test_mean_and_prediction_have_the_digits_of_the_error() -> None:
    assert alike(0.1, 0.10036, 0.000234) == ("0.10000", "0.10036", "0.00023")
    assert alike(1252.0, 1250.12, 2.8) == ("1,252.0", "1,250.1", "2.8")
    assert alike(1.0, -1.0, 0.1) == ("1.00", "−1.00", "0.10")
    assert alike(1.0, 2.0, None) == ("1.00", "2.00", "")
    assert alike(1e-9, 2e-9, 3e-12) == ("1·10⁻⁹", "2·10⁻⁹", "3·10⁻¹²")
    assert alike(0.0, 0.0, 0.0) == ("0", "0", "0")


def test_bars_are_told_in_standard_errors() -> None:
    one = outcome("a", settings("t", (1, 2)), lambda s: 1.0, Equal(), count=1000)
    # 4 standard deviations of a normal law as quantiles of Student's t: 4.02, and more of 5 trials
    assert "Bars: ± 4 standard errors" in words(Reader(render_sweep(sweep_of([one]))).text)
    few = outcome("a", settings("t", (1, 2)), lambda s: 1.0, Equal(), count=5)
    width = f"{stats.t.isf(stats.norm.sf(4), 4):.2g}"
    assert f"Bars: ± {width} standard errors" in words(Reader(render_sweep(sweep_of([few]))).text)


def test_crash_is_shown_line_by_line(sweep: Sweep, page: str) -> None:
    (shown,) = re.findall(r"<pre[^>]*>(.*?)</pre>", page, re.DOTALL)
    assert shown.replace("&#34;", '"').replace("&quot;", '"') == TRACE
    long = broken("a", "first\n" + "x\n" * 5000 + "the reason")
    (shown,) = re.findall(r"<pre[^>]*>(.*?)</pre>", render_sweep(sweep_of([long])), re.DOTALL)
    assert shown.endswith("the reason")
    assert len(shown) < 4100


# --- untrusted files -------------------------------------------------------------------------------------


def test_text_from_a_file_is_only_text(sweep: Sweep) -> None:
    bad = sweep_of([hostile(one) for one in sweep], versions={ATTACK: ATTACK})
    page = render_sweep(bad)
    found = Reader(page)  # asserts that nothing has an on… or style attribute
    assert found.tags.count("script") == 1
    assert "b" not in found.tags
    assert "alert(2)" in found.text
    assert "x" * 1600 not in found.text.replace("x" * 3900, "")  # of a crash up to 4000 letters are shown
    assert len(found.ids) == len(set(found.ids))
    assert len(page) < 1_000_000


def test_names_in_a_plot_are_only_text() -> None:
    along = drawn(outcome("a", settings("<b>&t", (1, 2)), lambda s: 1.0, Equal(), axis="<b>&t"))
    named = drawn(outcome("a", settings("t", ("<b>&", "y")), lambda s: 1.0, Equal()))
    for svg in (along, named):
        assert "b" not in Reader(svg).tags
        assert svg.count(">&lt;b&gt;&amp;") == 1


@pytest.mark.parametrize("name", ["a b", "tools", "x" * 300, "", "claim-a", "ĥ", 'a"onclick=1'])
def test_ids_of_claims_are_never_other_ids(sweep: Sweep, name: str) -> None:
    one = replace(sweep.outcomes[0], id=name)
    found = Reader(render_sweep(sweep_of([one, replace(one), replace(one, id="a")])))
    assert len(found.ids) == len(set(found.ids))
    assert all(one == "data:," or one[1:] in found.ids for one in found.references)


def mixed(one: Outcome, number: float) -> Outcome:
    """One point of many is out of all proportion."""
    points = (extreme(one.points[0], number), *one.points[1:]) if one.points else ()
    return replace(one, points=points)


@pytest.mark.parametrize("number", [HUGE, -HUGE, TINY, 0.0, -1.0])
@pytest.mark.parametrize("change", [extreme, mixed])
def test_any_numbers_stay_inside_the_frame(sweep: Sweep, number: float, change: Any) -> None:
    page = render_sweep(sweep_of([change(one, number) for one in sweep]))
    assert not re.search(r"\b(nan|inf)\b", page.split("<main>")[1].split("<script>")[0])
    for box, svg in re.findall(r'<svg viewBox="([^"]*)" role="img"(.*?)</svg>', page, re.DOTALL):
        left, top, width, height = map(float, box.split())
        pairs = re.findall(r"[ML]([\d.e+-]+) ([\d.e+-]+)", svg)
        pairs += re.findall(r'x="([\d.e+-]+)" y="([\d.e+-]+)"', svg)
        assert pairs
        for x, y in pairs:
            assert left <= float(x) <= left + width
            assert top <= float(y) <= top + height
        assert all(0 <= float(x) <= width for x in re.findall(r"H([\d.e+-]+)", svg))
        assert all(0 <= float(y) <= height for y in re.findall(r"V([\d.e+-]+)", svg))


def test_settings_without_the_axis_break_nothing(sweep: Sweep) -> None:
    one = sweep.outcomes[0]
    for setting in ({}, {"t": None}, {"t": (1, 2)}, {"t": True}):
        bare = replace(one, points=tuple(replace(point, setting=setting) for point in one.points))
        assert render_sweep(sweep_of([bare])).count("<article") == 1
    lost = replace(one.points[0], mean=math.inf, predicted=math.nan)
    assert plot(replace(one, points=(lost,))) is None
    assert "Nothing was measured" in render_sweep(sweep_of([replace(one, points=())]))


# --- the page as a file ----------------------------------------------------------------------------------


def test_page_stands_alone_and_runs_only_its_own_script(page: str) -> None:
    found = Reader(page)
    assert len(found.ids) == len(set(found.ids))
    assert all(one == "data:," or one[1:] in found.ids for one in found.references)
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == f"'sha256-{digest}'"


def test_page_is_the_same_every_time(sweep: Sweep, page: str) -> None:
    assert render_sweep(sweep) == page


def test_eighty_claims_are_quick_and_small() -> None:
    sweep = many_claims(80)
    started = time.process_time()  # not the clock's: other tests may share the core
    page = render_sweep(sweep)
    assert time.process_time() - started < 3  # the bar; about 0.3 s
    assert len(page.encode()) < 1_000_000  # about 0.34 MB


def test_build_takes_a_directory_or_the_file_itself(sweep: Sweep, page: str, tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(record_text(sweep, FORMAT), encoding="utf-8")
    assert build(tmp_path) == tmp_path / "claims.html"
    assert (tmp_path / "claims.html").read_text(encoding="utf-8") == page
    assert build(tmp_path / NAME, tmp_path / "other.html").read_text(encoding="utf-8") == page
    with pytest.raises(BadInput, match="make it first"):
        build(tmp_path, tmp_path / "nowhere" / "page.html")
    (tmp_path / "config.json").write_text('{"format": 7}')  # no sound run, but a run
    with pytest.raises(BadInput, match="format 7"):
        build(tmp_path)
    assert build(tmp_path / NAME) == tmp_path / "claims.html"


def test_broken_file_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text("{")
    with pytest.raises(BadInput, match="in JSON"):
        build(tmp_path)
    assert not (tmp_path / "claims.html").exists()
