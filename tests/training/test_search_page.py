"""The page of a search says what the record says; its figures are where the numbers are."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from browsing import (
    DESK,
    PHONE,
    THREE_VIEWS,
    check_hostile,
    check_page,
    check_print,
    contrast,
    open_page,
)
from obverse._core.errors import BadInput
from obverse._core.text import FIXED
from obverse.app import write_report as build
from obverse.training._search.charts import (
    CELL_HEIGHT,
    CELL_WIDTH,
    HEIGHT,
    STEPS,
    WIDTH,
    curves,
    heat_map,
    history,
    landscape,
    scatter,
    shade,
)
from obverse.training._search.page import render_search
from obverse.training._search.results import NAME, SearchResult, read_result, verdict, write_result
from obverse.training._search.words import ordered, outlook, row
from training.sample_searches import RATES, WEIGHTS, hostile, sample_search
from weights.test_audit_page import ROUNDING, Reader, words


def text_of(found: SearchResult) -> str:
    return words(Reader(render_search(found)).text)


def said(found: SearchResult) -> str:
    return " ".join([verdict(found), *outlook(found)]).replace(FIXED, " ")


# --- words ---


def test_the_verdict_is_the_best_with_its_standard_error() -> None:
    assert said(sample_search()) == (
        # √(0.02·0.98/10,000) = 0.0014
        "Best of 9 complete trials: lr 0.016, weight 0.5, with 2.00 ± 0.14 % error on 10,000 held-out "
        "points. "
        "Of 12 planned trials, 1 was stopped early by the median rule, 1 failed and 1 is not finished, so "
        "that this may change. "
        "No other trial lies within one standard error of it. As the best of many it is chosen for its luck "
        "too: expect a little more error on new points. "
        # √(0.018·0.982/10,000) = 0.0013
        "Trained again on all 60,000 training points, it has 1.80 ± 0.13 % error on 10,000 test points, "
        "which nothing was chosen by."
    )


def test_rivals_edges_and_a_failure_are_said() -> None:
    # Of 100 points it is 1.4 points of error: trials 5 and 7 are one away, and 7 failed. Of 20 it is 3.13:
    # 3, which was stopped, 4, 5, 8 and 9 are up to three away.
    assert "1 other trial lies within one standard error of it" in said(sample_search(held_out=100))
    assert "4 other trials lie within" in said(
        sample_search(held_out=20)
    )  # 3.13: up to 3 points away, both ways
    assert "at the edge of the grid: the largest lr" in said(sample_search(lrs=RATES[:3]))
    found = sample_search()
    assert found.retrained is not None
    failed = replace(found.retrained, test_error=None, reason="why")
    assert "it failed: why" in said(replace(found, retrained=failed))
    nothing = replace(found, trials=(), retrained=None)
    assert said(nothing).startswith("No trial of 12 is complete yet")
    plain = sample_search(trials=found.trials[:3])
    assert "plain training, lr 0.016, weight 0" in said(plain)


def test_the_table_has_the_best_first_and_what_did_not_end_last() -> None:
    found = sample_search()
    order = [trial.number for trial in ordered(found)]
    assert order == [6, 5, 4, 8, 9, 2, 10, 1, 0, 3, 11, 7]
    assert row(found.trials[3]) == ("3", "0.064", "0", "12.50", "stopped early", "2", "1.50")
    assert row(found.trials[7])[3:6] == ("—", "failed", "0")
    page = render_search(found)
    cells = [
        re.sub(r"<[^>]*>", " ", line).split() for line in page.splitlines() if 'role="rowheader"' in line
    ]
    expected = [" ".join(row(trial)).split() for trial in ordered(found)]
    expected[0].insert(1, "best")
    assert cells == expected
    text = text_of(found)
    assert "a loss of nan" in text
    assert (
        text.index(words(verdict(found))) < text.index("Where the error is small") < text.index("All trials")
    )


def test_the_optimizer_is_the_one_of_the_settings() -> None:
    text = text_of(sample_search(settings={"optimizer": "adam"}))
    assert "adam" in text
    assert "of SGD" not in text, "the rate is that of whichever optimizer it was"


# --- figures ---


def test_shades_go_from_the_best_to_four_times_it() -> None:
    assert [shade(error, 0.02) for error in (0.02, 0.04, 0.08, 0.5)] == [STEPS, round(STEPS / 2), 0, 0]
    assert shade(0.0, 0.0) == STEPS
    assert (shade(None, 0.1), shade(0.1, None)) == (0, 0)


def test_the_map_has_each_error_in_its_cell() -> None:
    found = sample_search()
    svg = heat_map(found)
    form = r'<rect class="cell ([^"]*)" x="([\d.]+)" y="([\d.]+)"[^>]*/><text class="[^"]*"[^>]*>([^<]*)<'
    cells = {(float(x), float(y)): (kind, label) for kind, x, y, label in re.findall(form, svg)}
    assert len(cells) == 12
    for trial in found.trials:
        x = RATES.index(trial.lr) * CELL_WIDTH + 1
        y = (2 - WEIGHTS.index(trial.weight)) * CELL_HEIGHT + 1  # the smallest weight is at the bottom
        expected = {3: "stop 2", 7: "failed", 11: "…"}.get(trial.number, f"{100 * (trial.error or 0):.2f}")
        kind, label = cells[x, y]
        assert label == expected
        assert kind == (f"shade-{shade(trial.error, 0.02)}" if trial.state == "complete" else "none")
    (best,) = re.findall(r'<rect class="best" x="([\d.]+)" y="([\d.]+)"', svg)
    assert tuple(map(float, best)) == (2 * CELL_WIDTH + 2, CELL_HEIGHT + 2)


def test_points_of_tpe_lie_where_their_settings_are() -> None:
    found = sample_search("tpe")
    svg = scatter(found)
    assert landscape(found) == svg
    assert landscape(sample_search()) == heat_map(sample_search())
    drawn = [
        (float(x), float(y))
        for x, y in re.findall(r'<circle class="dot[^"]*" cx="([\d.]+)" cy="([\d.]+)"', svg)
    ]
    assert len(drawn) == 12
    # logarithmic axes: equal ratios of rates are equal distances
    places = sorted(drawn)
    rates = sorted(trial.lr for trial in found.trials)
    slope = (places[-1][0] - places[0][0]) / math.log(rates[-1] / rates[0])
    for (x, _), rate in zip(places, rates, strict=True):
        assert x == pytest.approx(places[0][0] + slope * math.log(rate / rates[0]), abs=3 * ROUNDING)
    assert svg.count('class="best"') == 1


def test_curves_and_history_follow_the_errors() -> None:
    found = sample_search()
    svg = curves(found)
    lines = re.findall(r'<path class="line (\w+)" d="M([^"]*)"', svg)
    assert len(lines) == 11, "all but the one that failed"
    assert [kind for kind, _ in lines].index("own") == 10, "the best is drawn last, above the others"
    best = [tuple(map(float, place.split())) for place in lines[-1][1].split("L")]
    assert len(best) == 5
    assert [x for x, _ in best] == sorted(x for x, _ in best)
    assert [y for _, y in best] == sorted(y for _, y in best), "errors fall, so the line goes down the page"
    assert svg.count('class="stop') == 2, "one was stopped, one has a single epoch"
    path = re.search(
        r'<path class="line own" d="M([\d.]+) ([\d.]+)((?:H[\d.]+V[\d.]+)*)H(\d+)"', history(found)
    )
    assert path is not None
    steps = [float(y) for y in re.findall(r"V([\d.]+)", path[3])]
    falls = [number for number in range(7) if number not in (0, 3)]  # each complete one up to 6 is better
    assert len(steps) == len(falls)
    assert steps == sorted(steps)
    assert history(found).count('class="stop') == 9


def test_nothing_leaves_its_frame() -> None:
    for found in (hostile(sample_search()), hostile(sample_search("tpe"))):
        for svg in (scatter(found), curves(found), history(found)):
            for x, y in re.findall(r'c?x="(-?[\d.]+)" c?y="(-?[\d.]+)"', svg):
                assert -60 <= float(x) <= WIDTH + 1
                assert -1 <= float(y) <= HEIGHT + 40
            assert "nan" not in svg
            assert "inf" not in svg


# --- the file ---


def test_a_page_of_nothing_yet_and_of_many_trials(tmp_path: Path) -> None:
    empty = sample_search(trials=(), retrained=None)
    assert "No trial has begun." in text_of(empty)
    one = sample_search().trials[0]
    many = tuple(replace(one, number=number) for number in range(1500))
    text = render_search(sample_search(trials=many, planned=1500))
    assert len(text) < 1_000_000
    assert "500 more are in trials.json." in text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("number", -1),
        ("lr", 0.0),
        ("lr", "fast"),
        ("weight", -1.0),
        ("error", 1.5),
        ("error", None),
        ("seconds", -1.0),
        ("state", "<b>"),
        ("curve", [[1, 0.5], [1, 0.5]]),
        ("curve", [[0, 0.5]]),
        ("curve", [[1, 2.0]]),
        ("reason", "x" * 20_000),
        ("more", 1),
    ],
)
def test_a_hostile_record_is_refused(tmp_path: Path, name: str, value: Any) -> None:
    write_result(tmp_path, sample_search())
    record = json.loads((tmp_path / NAME).read_text())
    record["trials"][0][name] = value
    (tmp_path / NAME).write_text(json.dumps(record))
    with pytest.raises(BadInput):
        read_result(tmp_path)


def test_numbers_of_another_search_are_refused(tmp_path: Path) -> None:
    write_result(tmp_path, sample_search())
    record = json.loads((tmp_path / NAME).read_text())
    for name, value in (("lrs", []), ("lrs", [2, 1]), ("weights", [-1]), ("held_out", 0), ("planned", 0)):
        (tmp_path / NAME).write_text(json.dumps(record | {name: value}))
        with pytest.raises(BadInput):
            read_result(tmp_path)


# --- in a browser ---


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    made = {}
    for name, found in (
        ("grid", sample_search()),
        ("tpe", sample_search("tpe")),
        ("hostile", hostile(sample_search())),
    ):
        folder = tmp_path_factory.mktemp(name)
        write_result(folder, found)
        made[name] = build(folder / NAME)
        assert made[name].name == "search.html"
    return made


@pytest.mark.parametrize("kind", ["grid", "tpe"])
@pytest.mark.parametrize(("size", "scheme"), THREE_VIEWS)
def test_page_is_whole_quiet_and_readable(
    browser: Any, pages: dict[str, Path], kind: str, scheme: str, size: tuple[int, int]
) -> None:
    shown = check_page(browser, pages[kind], (size, scheme), f"search-{kind}", texts=100)
    assert len(shown) == 3
    for one in shown:
        assert min(one["width"], one["height"]) >= 80


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_numbers_can_be_read_on_every_shade(browser: Any, pages: dict[str, Path], scheme: str) -> None:
    open_page(browser, pages["grid"], DESK, scheme)
    colours = browser.execute_script(
        "const canvas = document.createElement('canvas').getContext('2d');"
        "const rgb = colour => { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);"
        " const [r, g, b] = canvas.getImageData(0, 0, 1, 1).data; return `rgb(${r}, ${g}, ${b})`; };"
        "return [...document.querySelectorAll('rect.cell:not(.none)')].map(e => ["
        " rgb(getComputedStyle(e.nextElementSibling).fill), rgb(getComputedStyle(e).fill)]);"
    )
    assert len(colours) == 9
    assert min(contrast(ink, ground) for ink, ground in colours) >= 4.5  # WCAG AA


def test_print_is_light_and_gives_pages(browser: Any, pages: dict[str, Path]) -> None:
    open_page(browser, pages["grid"], DESK, "dark", media="print")
    check_print(browser)


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_hostile_text_runs_nothing_and_breaks_no_layout(
    browser: Any, pages: dict[str, Path], size: tuple[int, int]
) -> None:
    open_page(browser, pages["hostile"], size, "light")
    check_hostile(browser, pages["hostile"], size)
