"""The page of an audit in a real browser: read, sorted, filtered, printed, and without scripts."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from browsing import (
    DESK,
    VIEWS,
    check_page,
    check_print,
    open_page,
    requests,
    save_screenshot,
)
from obverse.weights.page import render_audit
from weights.sample_audits import audit_of, before_training, many_layers, sample_audit

OPEN_ALL = """
for (const one of document.querySelectorAll('details')) one.open = true;
for (const one of document.querySelectorAll('.layer')) one.style.contentVisibility = 'visible';
"""
SHOWN = """
return [...document.querySelectorAll('.layer')].filter(e => !e.hidden)
  .map(e => e.querySelector('h3').textContent);
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder, audit = tmp_path_factory.mktemp("audit"), sample_audit()
    texts = {
        "audit": render_audit(audit),
        "against": render_audit(audit, before_training(audit)),
        "many": render_audit(many_layers(200)),
    }
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in texts}


def names(browser: Any) -> list[str]:
    found: list[str] = browser.execute_script(SHOWN)
    return found


@pytest.mark.parametrize("kind", ["audit", "against"])
@pytest.mark.parametrize(("size", "scheme"), VIEWS)
def test_page_is_whole_quiet_and_readable(
    browser: Any, pages: dict[str, Path], kind: str, scheme: str, size: tuple[int, int]
) -> None:
    check_page(browser, pages[kind], (size, scheme), kind, texts=500, prepare=OPEN_ALL, figures=".cell svg")
    boxes = browser.execute_script(
        "return [...document.querySelectorAll('.cell svg')].map(e => e.getBoundingClientRect().toJSON())"
    )
    assert len(boxes) == 8 * 7 - 2  # eight layers are judged, two of them have no offsets
    assert min(box["width"] for box in boxes) >= 130
    assert max(box["right"] for box in boxes) <= size[0]


def test_layers_can_be_sorted(browser: Any, pages: dict[str, Path]) -> None:
    open_page(browser, pages["audit"], DESK, "light")
    audit = sample_audit()
    order = [layer.name for layer in audit.layers]
    assert names(browser) == order
    spectra = {layer.name: layer.parts for layer in audit.layers}
    ratios = {layer.name: layer.ratio for layer in audit.layers}
    worst = ("structured otherwise", "mostly signal", "signal in a random bulk", "untouched", "not judged")
    sizes = {layer.name: layer.rows * layer.columns for layer in audit.layers}
    verdicts = {layer.name: layer.verdict for layer in audit.layers}

    def last_if_none(value: float | None) -> float:
        return float("inf") if value is None else -value

    expected = {
        "name": sorted(order),
        "verdict": sorted(order, key=lambda name: worst.index(verdicts[name])),
        "ratio": sorted(order, key=lambda name: last_if_none(ratios[name] and ratios[name].value)),
        "distance": sorted(
            order, key=lambda name: last_if_none(spectra[name] and spectra[name].distance.value)
        ),
        "rank": sorted(order, key=lambda name: last_if_none(spectra[name] and spectra[name].rank)),
        "random": sorted(
            order, key=lambda name: last_if_none(spectra[name] and -spectra[name].random_share.value)
        ),
        "size": sorted(order, key=lambda name: -sizes[name]),
        "order": order,
    }
    chosen = Select(browser.find_element(By.ID, "sort"))
    for key, wanted in expected.items():
        chosen.select_by_value(key)
        assert names(browser) == wanted, key
    browser.find_element(By.ID, "reverse").click()
    assert names(browser) == order[::-1]
    chosen.select_by_value("ratio")
    assert names(browser)[-1] == order[-1]  # what was not measured stays last
    assert verdicts[names(browser)[-2]] == "mostly signal"


def test_layers_can_be_filtered_by_keyboard(browser: Any, pages: dict[str, Path]) -> None:
    open_page(browser, pages["against"], DESK, "light")
    field = browser.find_element(By.ID, "name")
    field.send_keys("ROW_")
    assert names(browser) == ["block.3.row_scales.weight"]
    assert browser.find_element(By.ID, "shown").text == "1 of 9 layers"
    field.send_keys(Keys.ENTER)  # a form that is sent would load another page
    assert names(browser) == ["block.3.row_scales.weight"]
    field.send_keys(Keys.BACKSPACE * 4)
    assert len(names(browser)) == 9
    box = browser.find_element(By.CSS_SELECTOR, "input[value=good]")
    box.send_keys(Keys.SPACE)
    assert len(names(browser)) == 4
    browser.find_element(By.ID, "changed").send_keys(Keys.SPACE)
    changed = ["spiked", "correlated", "pruned"]
    assert [name.split(".")[2] for name in names(browser)] == changed
    summary = browser.find_element(By.CSS_SELECTOR, ".layer:not([hidden]) summary")
    summary.send_keys(Keys.ENTER)
    assert browser.find_element(By.CSS_SELECTOR, ".layer:not([hidden]) .findings").is_displayed()


def test_two_hundred_layers_sort_and_filter_at_once(browser: Any, pages: dict[str, Path]) -> None:
    started = time.perf_counter()
    open_page(browser, pages["many"], DESK, "light")
    assert time.perf_counter() - started < 5
    assert len(names(browser)) == 200
    milliseconds = browser.execute_script("""
        const begun = performance.now(), sort = document.getElementById('sort');
        for (const one of [...sort.options].reverse()) {
          sort.value = one.value;
          sort.dispatchEvent(new Event('input', {bubbles: true}));
          document.body.offsetHeight;  // lay it out
        }
        return (performance.now() - begun) / sort.options.length;
    """)
    assert milliseconds < 500  # about 20 on a quiet core; half a second is where waiting begins


def test_page_is_complete_without_scripts(browser: Any, pages: dict[str, Path]) -> None:
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        open_page(browser, pages["audit"], DESK, "light")
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert not browser.find_element(By.ID, "tools").is_displayed()
    assert names(browser) == [layer.name for layer in sample_audit().layers]


def test_print_is_light_and_gives_pages(browser: Any, pages: dict[str, Path]) -> None:
    open_page(browser, pages["audit"], DESK, "dark", media="print")
    save_screenshot(browser, "audit-print")
    assert not browser.find_element(By.ID, "tools").is_displayed()
    check_print(browser)


def test_hostile_names_run_nothing(browser: Any, tmp_path: Path) -> None:
    attack = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
    layer = replace(sample_audit().layers[0], name=attack, kind=attack, sentence=attack)
    page = tmp_path / "page.html"
    page.write_text(render_audit(audit_of([layer, layer], attack)), encoding="utf-8")
    open_page(browser, page, DESK, "light")
    assert browser.get_log("browser") == []
    assert requests(browser) == [page.as_uri()]
    assert browser.execute_script("return document.querySelectorAll('img').length") == 0
    # even a script that got into the page would not run
    browser.execute_script("""
        const one = document.createElement('div');
        one.innerHTML = '<img src="data:," onerror="document.title = 1">';
        document.body.append(one);
        const two = document.createElement('script');
        two.textContent = "document.title = 'owned'";
        document.body.append(two);
    """)
    assert browser.title.startswith("What in ")
    assert any("Content Security Policy" in entry["message"] for entry in browser.get_log("browser"))
