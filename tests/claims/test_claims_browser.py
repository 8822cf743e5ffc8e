"""The page of a sweep in a real browser: read, filtered, followed, printed, and without scripts."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from browsing import (
    DESK,
    PHONE,
    VIEWS,
    check_page,
    check_print,
    open_page,
    requests,
    save_screenshot,
)
from claims.sample_sweeps import hostile, many_claims, sample_sweep, sweep_of
from obverse.claims.page import render_sweep

OPEN_ALL = """
for (const one of document.querySelectorAll('details')) one.open = true;
for (const one of document.querySelectorAll('.group')) one.style.contentVisibility = 'visible';
"""
SHOWN = """
return [...document.querySelectorAll(arguments[0])].filter(e => e.checkVisibility())
  .map(e => e.textContent);
"""
ROWS, CARDS = ".overview th a", ".claim .line code"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("claims")
    texts = {
        "claims": render_sweep(sample_sweep()),
        "many": render_sweep(many_claims(80)),
        "hostile": render_sweep(sweep_of([hostile(one) for one in sample_sweep().outcomes[:4]])),
    }
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in texts}


def shown(browser: Any, what: str = CARDS) -> list[str]:
    found: list[str] = browser.execute_script(SHOWN, what)
    return found


@pytest.mark.parametrize(("size", "scheme"), VIEWS)
def test_page_is_whole_quiet_and_readable(
    browser: Any, pages: dict[str, Path], scheme: str, size: tuple[int, int]
) -> None:
    check_page(browser, pages["claims"], (size, scheme), "claims", texts=400, prepare=OPEN_ALL)
    boxes = browser.execute_script(
        "return [...document.querySelectorAll('figure > svg')].map(e => e.getBoundingClientRect().toJSON())"
    )
    assert len(boxes) == 11  # one of the twelve claims crashed
    assert min(box["width"] for box in boxes) >= 290
    assert max(box["right"] for box in boxes) <= size[0]


def test_twins_stand_side_by_side_with_their_plots_in_line(browser: Any, pages: dict[str, Path]) -> None:
    open_page(browser, pages["claims"], (1280, 800), "light")
    boxes = browser.execute_script("""
        return ['alm.support', 'alm.support.corrected'].map(id =>
          document.querySelector(`[id="claim-${id}"] figure`).getBoundingClientRect().toJSON());
    """)
    assert boxes[0]["right"] < boxes[1]["left"]
    assert boxes[0]["top"] == boxes[1]["top"]
    open_page(browser, pages["claims"], PHONE, "light")
    tops = browser.execute_script("""
        return ['alm.support', 'alm.support.corrected'].map(id =>
          document.getElementById(`claim-${id}`).getBoundingClientRect().top);
    """)
    assert tops[0] < tops[1]


def test_claims_can_be_filtered_by_keyboard(browser: Any, pages: dict[str, Path]) -> None:
    open_page(browser, pages["claims"], DESK, "light")
    everything = shown(browser)
    assert len(everything) == 12
    assert shown(browser, ROWS) == everything
    field = browser.find_element(By.ID, "name")
    field.send_keys("LEMMAb")
    twins = ["alm.lemmaB.1.square", "alm.lemmaB.1.square.exact"]
    assert shown(browser, ROWS) == twins
    assert shown(browser) == twins
    assert browser.find_element(By.ID, "shown").text == "2 of 12 claims"
    field.send_keys(Keys.ENTER)  # a form that is sent would load another page
    assert shown(browser) == twins
    field.send_keys(Keys.BACKSPACE * 6)
    field.send_keys("beyond the")  # the reading counts, too
    assert shown(browser) == ["alm.universal"]
    field.send_keys(Keys.BACKSPACE * 10)
    for tone in ("good", "mixed", "broken"):
        browser.find_element(By.CSS_SELECTOR, f"input[value={tone}]").send_keys(Keys.SPACE)
    assert shown(browser) == ["alm.eq2", "alm.support", "alm.universal"]
    browser.find_element(By.ID, "changed").send_keys(Keys.SPACE)
    assert shown(browser) == shown(browser, ROWS) == ["alm.universal"]
    groups = browser.execute_script(
        "return [...document.querySelectorAll('.group')].filter(e => e.checkVisibility()).length"
    )
    assert groups == 1  # empty ones would leave lines
    summary = browser.find_element(By.CSS_SELECTOR, ".claim:not([hidden]) summary")
    summary.send_keys(Keys.ENTER)
    assert browser.find_element(By.CSS_SELECTOR, ".claim:not([hidden]) details table").is_displayed()


def test_link_to_a_twin_that_is_filtered_out_shows_it(browser: Any, pages: dict[str, Path]) -> None:
    open_page(browser, pages["claims"], DESK, "light")
    browser.find_element(By.CSS_SELECTOR, "input[value=good]").send_keys(Keys.SPACE)
    assert "alm.support.corrected" not in shown(browser)
    printed = browser.find_element(By.ID, "claim-alm.support")
    browser.execute_script("arguments[0].scrollIntoView()", printed)
    printed.find_element(By.LINK_TEXT, "alm.support.corrected").click()
    assert "alm.support.corrected" in shown(browser)
    assert browser.current_url.endswith("#claim-alm.support.corrected")


def test_overview_leads_to_the_cards(browser: Any, pages: dict[str, Path]) -> None:
    open_page(browser, pages["many"], DESK, "light")
    browser.find_element(By.LINK_TEXT, "alm.thm2.3.4").click()
    time.sleep(0.2)  # cards off the screen are laid out as they come near
    top = browser.execute_script(
        "return document.getElementById('claim-alm.thm2.3.4').getBoundingClientRect().top"
    )
    assert -1 <= top < DESK[1] / 2


def test_eighty_claims_are_laid_out_once_a_letter(browser: Any, pages: dict[str, Path]) -> None:
    """Counted, not timed: a filter that reads what it just changed would lay all out for each card."""
    open_page(browser, pages["many"], DESK, "light")
    browser.execute_cdp_cmd("Performance.enable", {})

    def layouts() -> int:
        metrics = browser.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
        return next(int(one["value"]) for one in metrics if one["name"] == "LayoutCount")

    before = layouts()
    browser.execute_script("""
        const field = document.getElementById('name');
        for (const text of ['a', 'al', 'alm', '']) {
          field.value = text;
          field.dispatchEvent(new Event('input', {bubbles: true}));
          document.body.offsetHeight;  // lay it out
        }
    """)
    assert 1 <= layouts() - before <= 8  # one for each of four letters, and what the browser does besides


def test_page_is_complete_without_scripts(browser: Any, pages: dict[str, Path]) -> None:
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        open_page(browser, pages["claims"], DESK, "light")
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert not browser.find_element(By.ID, "tools").is_displayed()
    assert len(shown(browser)) == 12


def test_print_is_light_and_gives_pages(browser: Any, pages: dict[str, Path]) -> None:
    open_page(browser, pages["claims"], DESK, "dark", media="print")
    save_screenshot(browser, "claims-print")
    assert not browser.find_element(By.ID, "tools").is_displayed()
    check_print(browser, "rgb(255, 240, 194)")


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_hostile_text_runs_nothing_and_breaks_no_layout(
    browser: Any, pages: dict[str, Path], size: tuple[int, int]
) -> None:
    open_page(browser, pages["hostile"], size, "light")
    browser.execute_script(OPEN_ALL)
    assert browser.get_log("browser") == []
    assert requests(browser) == [pages["hostile"].as_uri()]
    assert browser.execute_script("return document.querySelectorAll('b').length") == 0
    assert browser.execute_script("return document.documentElement.scrollWidth") <= size[0]
    # even a script that got into the page would not run
    browser.execute_script("""
        const one = document.createElement('script');
        one.textContent = "document.title = 'owned'";
        document.body.append(one);
    """)
    assert browser.title.startswith("What the theory says")
    assert any("Content Security Policy" in entry["message"] for entry in browser.get_log("browser"))
