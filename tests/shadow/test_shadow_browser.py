"""The page of a survey in a real browser: wide and narrow, light and dark, on paper, with untrusted text."""

from __future__ import annotations

import json
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
    open_page,
    save_screenshot,
)
from obverse.app import write_report as build
from obverse.shadow.charts import FOLDER, NAME
from obverse.shadow.results import NAME as SURVEY
from saved import result_text
from shadow.sample_surveys import ATTACK, hostile, sample_survey, surveyed


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A survey as it is; one with many layers and every notice; one with untrusted text."""
    made = {}
    for name in ("small", "many", "hostile"):
        folder = tmp_path_factory.mktemp(name)
        result, _ = surveyed(folder, 3)
        if name == "many":
            layers = sample_survey(40).layers
            result = replace(result, random_weights=True, switches=True, match_norm=True, layers=layers)
        if name == "hostile":
            result = hostile(result)
            told = json.loads((folder / FOLDER / NAME).read_text())
            for row in told["rows"]:
                row |= {"layer": ATTACK, "labels": [[ATTACK] * 4] * 6}
            (folder / FOLDER / NAME).write_text(json.dumps(told | {"given": [ATTACK] * 4}))
        (folder / SURVEY).write_text(result_text(result))
        made[name] = build(folder)
    return made


@pytest.mark.parametrize("kind", ["small", "many"])
@pytest.mark.parametrize(("size", "scheme"), THREE_VIEWS)
def test_page_is_whole_quiet_and_readable(
    browser: Any, pages: dict[str, Path], kind: str, scheme: str, size: tuple[int, int]
) -> None:
    shown = check_page(browser, pages[kind], (size, scheme), f"shadow-{kind}", texts=100)
    # three curves; of a measured survey four more, of what is kept, and 3 rows of 7 strips of 4 pictures
    assert len(shown) == 3 + (4 + 84 if kind == "small" else 0)
    for one in shown:
        assert min(one["width"], one["height"]) >= 24
        assert one["natural"] is None or one["natural"] == 8


def test_inputs_shadows_fitted_images_and_controls_stand_side_by_side(
    browser: Any, pages: dict[str, Path]
) -> None:
    places = """
        return [...document.querySelectorAll('.row > .ways')].slice(1).map(row =>
          [...row.querySelectorAll('.strip')].map(strip => [
            strip.getBoundingClientRect().left,
            ...[...strip.querySelectorAll('img')].map(e => e.getBoundingClientRect().top)]));
    """
    open_page(browser, pages["small"], DESK, "light")
    rows = browser.execute_script(places)
    assert len(rows) == 3
    for row in rows:
        assert len(row) == 7  # in one line, and in the same columns as the row above
        assert len({top for strip in row for top in strip[1:]}) == 1
        assert [strip[0] for strip in row] == [strip[0] for strip in rows[0]]
        assert [strip[0] for strip in row] == sorted({strip[0] for strip in row})
    open_page(browser, pages["small"], PHONE, "light")
    rows = browser.execute_script(places)
    assert all(len({strip[0] for strip in row}) == 2 for row in rows)  # two columns
    captions = "return [...document.querySelectorAll('.caption')].filter(e => e.checkVisibility()).length"
    assert browser.execute_script(captions) == 21


def test_print_is_light_and_gives_pages(browser: Any, pages: dict[str, Path]) -> None:
    open_page(browser, pages["many"], DESK, "dark", media="print")
    save_screenshot(browser, "shadow-print")
    check_print(browser)


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_hostile_text_runs_nothing_and_breaks_no_layout(
    browser: Any, pages: dict[str, Path], size: tuple[int, int]
) -> None:
    open_page(browser, pages["hostile"], size, "light")
    check_hostile(browser, pages["hostile"], size)
