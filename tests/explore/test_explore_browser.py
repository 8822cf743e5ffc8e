"""The page in a real browser, end to end: every tab, keys, phone, dark, wrong token, a server that dies."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .commands import Running, explorer, start

TABS = ("shadow", "bench", "audit", "birthday", "ladder")
DESK, PHONE = (1200, 900), (390, 844)
LOST = "return document.getElementById('lost').checkVisibility()"  # the notice that the server is gone


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def running(cache: Path) -> Iterator[Running]:
    """The command as a newcomer starts it, with the embedded net."""
    with explorer(cache) as found:
        yield found


def wait(browser: Any, true: Callable[[], Any], what: str, seconds: float = 30) -> Any:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = true()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"expected {what} within {seconds} s; the page says: {text(browser, 'main')[:500]}")


def text(browser: Any, selector: str) -> str:
    found = browser.execute_script("return document.querySelector(arguments[0])?.textContent", selector)
    return str(found or "")


def resize(browser: Any, size: tuple[int, int], scheme: str = "light") -> None:
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size == PHONE},
    )
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )


def open_tab(browser: Any, running: Running, tab: str) -> None:
    """Loaded anew, with its first numbers there."""
    browser.get("about:blank")
    browser.get(f"{running.address.url}#{tab}")
    wait(browser, lambda: text(browser, f"#panel-{tab} .numbers dd").strip(" …–"), f"numbers in {tab}")


def move(browser: Any, control: str, value: float | str) -> None:
    """As a user would: the value changes and the page hears of it."""
    browser.execute_script(
        "const one = document.getElementById(arguments[0]); one.value = arguments[1];"
        "for (const kind of ['input', 'change']) one.dispatchEvent(new Event(kind, {bubbles: true}))",
        control,
        value,
    )


def changes(browser: Any, number: str, control: str, value: float | str) -> tuple[str, str]:
    """A number before and after a control was moved; waits until it is another."""
    before = text(browser, f"#{number}")
    move(browser, control, value)
    wait(browser, lambda: text(browser, f"#{number}").strip(" …–") not in ("", before), f"{number} to change")
    return before, text(browser, f"#{number}")


def errors(browser: Any) -> list[str]:
    return [entry["message"] for entry in browser.get_log("browser")]


@pytest.mark.parametrize(
    ("tab", "number", "control", "value"),
    [
        ("shadow", "recovery", "layer", 0),
        ("shadow", "recovery", "keep", 0.2),
        ("shadow", "cosine", "smooth", 2),
        ("shadow", "recovery", "refine", 20),
        ("bench", "measured", "n", 1500),
        ("bench", "predicted", "m", 800),
        ("bench", "predicted", "k", 60),
        ("bench", "predicted", "t", 200),
        ("bench", "predicted", "offset", 3),
        ("bench", "measured", "law", "student t (5)"),
        ("audit", "audit-error", "audit-keep", 0.3),
        ("birthday", "effective", "support", 2),
        ("birthday", "chance", "size", 200),
        ("birthday", "counted", "batches", 20),
        ("birthday", "effective", "birthday-law", "zipf"),
        ("ladder", "worst", "summary", "xor"),
        ("ladder", "inputs", "leaves", 6),
        ("ladder", "loss", "nodes", 6),
        ("ladder", "loss", "steps", 50),
    ],
)
def test_a_control_moves_a_number(browser, running, tab, number, control, value):
    resize(browser, DESK)
    open_tab(browser, running, tab)
    errors(browser)
    changes(browser, number, control, value)
    assert errors(browser) == []


def test_the_theory_bench_draws_its_curve_and_then_its_points(browser, running):
    open_tab(browser, running, "bench")
    points = "return document.querySelectorAll('#panel-bench .plot circle.point').length"
    wait(browser, lambda: browser.execute_script(points) > 10, "measured points")
    draws = "return Number(document.getElementById('bench-state').textContent.split(' ')[0])"
    first = browser.execute_script(draws)
    wait(browser, lambda: (browser.execute_script(draws) or 0) > (first or 0), "more draws")
    plot = "return document.querySelector('#panel-bench svg[role=img]').textContent"
    errors(browser)
    for axis, words in (("sparsity", "k, non-zeros"), ("kept", "t, inputs kept")):
        move(browser, "axis", axis)
        wait(browser, lambda words=words: words in browser.execute_script(plot), axis)
        wait(browser, lambda: browser.execute_script(points) > 5, "measured points along it")
    assert errors(browser) == []


def test_picking_and_painting(browser, running):
    open_tab(browser, running, "shadow")
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.by import By

    before = text(browser, "#recovery")
    browser.find_elements(By.CSS_SELECTOR, ".gallery button")[20].click()
    wait(browser, lambda: text(browser, "#recovery") != before, "another error for another input")
    before = text(browser, "#recovery")
    canvas = browser.find_element(By.ID, "drawing")
    ActionChains(browser).move_to_element_with_offset(canvas, -50, -50).click_and_hold().move_by_offset(
        60, 60
    ).release().perform()
    wait(browser, lambda: text(browser, "#recovery") != before, "another error for a painted input")
    pressed = "return document.querySelectorAll('.gallery [aria-pressed=true]').length"
    assert browser.execute_script(pressed) == 0
    before = text(browser, "#recovery")
    browser.find_element(By.ID, "clear").click()
    wait(browser, lambda: text(browser, "#recovery") != before, "another error for a black input")


def test_painting_with_the_keyboard(browser, running):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    open_tab(browser, running, "shadow")
    before = text(browser, "#recovery")
    browser.find_element(By.ID, "drawing").send_keys(Keys.ARROW_LEFT, Keys.ARROW_UP, Keys.SPACE)
    wait(browser, lambda: text(browser, "#recovery") != before, "another error after the space bar")


def test_a_region_graph_is_built_by_hand(browser, running):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    open_tab(browser, running, "ladder")
    for _ in range(3):
        browser.find_element(By.ID, "remove").click()
    wait(
        browser,
        lambda: "regions above the leaves" in text(browser, "#panel-ladder .problem"),
        "what is missing",
    )
    for names in (["x1", "x2", "x3"], ["r3", "x4"]):
        for name in names:
            browser.find_element(By.CSS_SELECTOR, f"[data-region={name}]").send_keys(Keys.ENTER)
        browser.find_element(By.ID, "join").click()
    wait(browser, lambda: not text(browser, "#panel-ladder .problem"), "a graph without a problem")
    rows = "return [...document.querySelectorAll('.edges tbody th')].map(e => e.textContent)"
    expected = ["r3 ← x1", "r3 ← x2", "r3 ← x3", "r4 ← r3", "r4 ← x4"]
    wait(browser, lambda: sorted(browser.execute_script(rows)) == expected, "five edges")
    assert "Exact" in text(browser, "#verdict")
    assert len(browser.find_elements(By.CSS_SELECTOR, ".matrices canvas")) == 3


def test_training_is_played_step_by_step(browser, running):
    from selenium.webdriver.common.by import By

    open_tab(browser, running, "ladder")
    before = text(browser, "#loss")
    browser.find_element(By.ID, "play").click()
    wait(browser, lambda: text(browser, "#loss") != before, "the loss to move")
    browser.find_element(By.ID, "play").click()
    assert text(browser, "#play") == "Train, step by step"


def test_collisions_are_drawn_as_they_happen(browser, running):
    open_tab(browser, running, "birthday")
    move(browser, "support", 2)
    ties = "return document.querySelectorAll('#room .tie').length"
    wait(browser, lambda: browser.execute_script(ties) > 3, "lines between equal pictures")
    seen = "return document.querySelectorAll('#history li').length"
    wait(browser, lambda: browser.execute_script(seen) == 100, "a hundred batches")


def test_tabs_by_arrow_keys_and_by_address(browser, running):
    from selenium.webdriver.common.keys import Keys

    open_tab(browser, running, "shadow")
    browser.execute_script("document.getElementById('tab-shadow').focus()")
    for expected in (*TABS[1:], "shadow"):
        browser.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
        assert browser.switch_to.active_element.get_attribute("id") == f"tab-{expected}"
        assert browser.execute_script("return location.hash") == f"#{expected}"
        shown = (
            "return [...document.querySelectorAll('[role=tabpanel]')].filter(e => !e.hidden).map(e => e.id)"
        )
        assert browser.execute_script(shown) == [f"panel-{expected}"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("tab", TABS)
def test_every_tab_fits_is_labelled_and_readable(browser, running, tab, size, scheme):
    resize(browser, size, scheme)
    browser.get_log("performance")
    open_tab(browser, running, tab)
    time.sleep(0.5)  # what arrives later may be wider
    assert browser.execute_script("return document.documentElement.scrollWidth") <= size[0]
    unnamed = """
      const named = e => e.labels?.length || e.getAttribute('aria-label') || e.textContent.trim();
      const seen = 'main input, main select, main button, main [role=img], main canvas:not([aria-hidden])';
      return [...document.querySelectorAll(seen)]
        .filter(e => e.getClientRects().length && !named(e)).map(e => e.outerHTML.slice(0, 80));"""
    assert browser.execute_script(unnamed) == []
    small = """
      return [...document.querySelectorAll('main button, main select, main input[type=range]')]
        .filter(e => e.getClientRects().length && !e.closest('table'))
        .filter(e => e.getBoundingClientRect().height < 24).map(e => e.outerHTML.slice(0, 80));"""
    assert browser.execute_script(small) == []  # WCAG 2.2, target size: 24 pixels
    low = browser.execute_script(CONTRAST)
    assert low == []
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = {
        one["params"]["request"]["url"] for one in messages if one["method"] == "Network.requestWillBeSent"
    }
    origin = f"http://127.0.0.1:{running.address.port}/"
    assert {url for url in sent if not url.startswith((origin, "data:", "chrome:", "about:"))} == set()
    assert errors(browser) == []


# Text of less than 4.5:1 against its background (WCAG AA), with what it says.
CONTRAST = """
const parts = colour => colour.match(/[\\d.]+/g).map(Number);
const linear = v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
const light = colour => {
  const [r, g, b] = parts(colour).slice(0, 3).map(v => linear(v / 255));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const clear = colour => colour === 'transparent' || parts(colour)[3] === 0;
const behind = e => {
  while (e && clear(getComputedStyle(e).backgroundColor)) e = e.parentElement;
  return getComputedStyle(e ?? document.body).backgroundColor;
};
return [...document.querySelectorAll('body *')]
  .filter(e => e.checkVisibility() && e.getClientRects().length && !e.disabled)
  .filter(e => !e.closest('.hidden, .skip, option'))
  .filter(e => [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()))
  .map(e => {
    const style = getComputedStyle(e), ink = e.tagName === 'text' ? style.fill : style.color;
    const [low, high] = [light(ink), light(behind(e))].sort((a, b) => a - b);
    return [e.tagName + ': ' + e.textContent.trim().slice(0, 40), (high + 0.05) / (low + 0.05)];
  })
  .filter(([, ratio]) => ratio < 4.5);
"""


def test_a_wrong_token_is_refused(browser, running):
    for wrong in ("", "x" * 43 + "/"):
        browser.get(f"http://127.0.0.1:{running.address.port}/{wrong}")
        assert "expected the token of this server" in text(browser, "body")
        assert not browser.execute_script("return document.querySelector('[role=tablist]')")


def test_when_the_server_is_killed_the_page_says_so_and_goes_on_with_the_next(browser, cache):
    first = start(cache)
    try:
        open_tab(browser, first, "shadow")
        assert not browser.execute_script(LOST)
        first.stop(signal.SIGKILL)
        first.process.communicate()
        # noticed without a movement, and a movement made meanwhile is not lost
        wait(browser, lambda: "does not answer" in text(browser, "#lost"), "the page to say so")
        before = text(browser, "#recovery")
        move(browser, "layer", 0)
        second = start(cache)
        try:
            assert second.address == first.address
            wait(
                browser,
                lambda: not browser.execute_script(LOST),
                "the notice to go",
            )
            wait(browser, lambda: text(browser, "#recovery") != before, "the movement to be answered")
        finally:
            second.stop()
            second.process.communicate()
    finally:
        if first.process.poll() is None:
            first.stop(signal.SIGKILL)
            first.process.communicate()


def test_a_stranger_on_the_port_is_not_told_the_token(browser, cache):
    """Another user takes the port of a server that was killed, while a page is still open."""
    from http.server import BaseHTTPRequestHandler, HTTPServer
    from threading import Thread

    first = start(cache)
    open_tab(browser, first, "shadow")
    first.stop(signal.SIGKILL)
    first.process.communicate()
    heard: list[str] = []

    class Stranger(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"proof": "0"}')

        def log_message(self, format: str, *args: Any) -> None:
            pass

    wait(browser, lambda: "does not answer" in text(browser, "#lost"), "the page to say so")
    with HTTPServer(("127.0.0.1", first.address.port), Stranger) as stranger:
        Thread(target=stranger.serve_forever, daemon=True).start()
        wait(browser, lambda: len(heard) >= 3, "the page to try")
        stranger.shutdown()
    assert not [path for path in heard if first.address.token in path]
    assert "does not answer" in text(browser, "#lost")


def test_another_net_at_the_same_address_is_loaded(browser, cache, tmp_path):
    factory = tmp_path / "mynets.py"
    factory.write_text(
        "from torch import nn\n"
        "def small(): return nn.Sequential(nn.Flatten(), nn.Linear(64, 40), nn.ReLU(), nn.Linear(40, 10))\n"
    )
    first = start(cache)
    open_tab(browser, first, "shadow")
    first.stop(signal.SIGTERM)
    first.process.communicate()
    import os

    before = os.getcwd()
    os.chdir(tmp_path)  # where the command looks for the module
    try:
        with explorer(cache, "mynets:small", "--data", "digits") as second:
            assert second.address == first.address
            wait(browser, lambda: "mynets:small" in text(browser, "#subject"), "the other net")
            wait(browser, lambda: text(browser, "#recovery").strip(" …–"), "its numbers")
    finally:
        os.chdir(before)
