"""The page in a real browser: every tab, keys, phone, dark, wrong token; and end to end, a server that dies.

The server runs in this process; the slow tests start the command as a newcomer does.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.commands import explorer, start
from app.conftest import serving
from obverse.app._explorer.address import Address
from obverse.app._explorer.server import Server
from obverse.app.explore import _subject

TABS = ("shadow", "bench", "audit", "birthday", "ladder")
DESK, PHONE = (1200, 900), (390, 844)
VIEWS = [pytest.param(DESK, "light", id="desk-light"), pytest.param(PHONE, "dark", id="phone-dark")]
LOST = "return document.getElementById('lost').checkVisibility()"  # the notice that the server is gone


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def address(server: Server) -> Address:
    return server.at


def wait(browser: Any, true: Callable[[], Any], what: str, seconds: float = 90) -> Any:
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


def open_tab(browser: Any, address: Address, tab: str) -> None:
    """Loaded anew, with its first numbers there."""
    browser.get("about:blank")
    browser.get(f"{address.url}#{tab}")
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
def test_a_control_moves_a_number(browser, address, tab, number, control, value):
    resize(browser, DESK)
    open_tab(browser, address, tab)
    errors(browser)
    changes(browser, number, control, value)
    assert errors(browser) == []


def test_the_theory_bench_draws_its_curve_and_then_its_points(browser, address):
    open_tab(browser, address, "bench")
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


def test_every_layer_is_shown_by_every_way_down(browser, address):
    resize(browser, DESK)
    open_tab(browser, address, "shadow")
    errors(browser)
    count = "return document.querySelectorAll('#ways .layer').length"
    layers = "return Number(document.getElementById('layer').max) + 1"
    wait(browser, lambda: browser.execute_script(count) == browser.execute_script(layers), "all layers")
    wait(browser, lambda: text(browser, "#ways-state").startswith("Refined: 10 gradient steps"), "the end")
    words = "return [...document.querySelectorAll('#ways .layer:first-child span')].map(e => e.textContent)"
    assert browser.execute_script(words) == [
        "input", "shadow (transpose)", "shadow, weights shuffled", "fitted", "fitted, refined",
        "fitted, weights shuffled", "fitted, untrained",
    ]  # fmt: skip
    shown = text(browser, "#ways")
    browser.execute_script("document.querySelectorAll('.gallery button')[20].click()")
    wait(browser, lambda: text(browser, "#ways") != shown, "those of another input")
    assert "null" not in text(browser, "#panel-shadow")
    assert errors(browser) == []


def test_picking_and_painting(browser, address):
    open_tab(browser, address, "shadow")
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
    before = text(browser, "#recovery")
    browser.find_element(By.ID, "clear").click()
    wait(browser, lambda: text(browser, "#recovery") != before, "another error for a black input")


def test_painting_with_the_keyboard(browser, address):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    open_tab(browser, address, "shadow")
    before = text(browser, "#recovery")
    browser.find_element(By.ID, "drawing").send_keys(Keys.ARROW_LEFT, Keys.ARROW_UP, Keys.SPACE)
    wait(browser, lambda: text(browser, "#recovery") != before, "another error after the space bar")


def test_a_region_graph_is_built_by_hand(browser, address):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    open_tab(browser, address, "ladder")
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


def test_a_region_stays_the_same_button_when_numbers_arrive(browser, address):
    """One that is replaced between press and release is not clicked."""
    open_tab(browser, address, "ladder")
    browser.execute_script(
        "window.before = [...document.querySelectorAll('[data-region]')]; before[2].focus()"
    )
    changes(browser, "loss", "nodes", 5)
    browser.execute_script("document.getElementById('remove').click()")
    wait(browser, lambda: text(browser, "#panel-ladder .problem"), "two regions at the top")
    last, *others = browser.execute_script("return before.map(e => e.isConnected).reverse()")
    assert not last
    assert all(others)
    assert browser.execute_script("return document.activeElement === before[2]")


def test_training_is_played_step_by_step(browser, address):
    from selenium.webdriver.common.by import By

    open_tab(browser, address, "ladder")
    before = text(browser, "#loss")
    browser.find_element(By.ID, "play").click()
    wait(browser, lambda: text(browser, "#loss") != before, "the loss to move")
    browser.find_element(By.ID, "play").click()
    assert text(browser, "#play") == "Train, step by step"


def test_collisions_are_drawn_as_they_happen(browser, address):
    open_tab(browser, address, "birthday")
    move(browser, "support", 2)
    ties = "return document.querySelectorAll('#room .tie').length"
    wait(browser, lambda: browser.execute_script(ties) > 3, "lines between equal images")
    seen = "return document.querySelectorAll('#history li').length"
    wait(browser, lambda: browser.execute_script(seen) == 100, "a hundred batches")


def test_tabs_by_arrow_keys_and_by_address(browser, address):
    from selenium.webdriver.common.keys import Keys

    open_tab(browser, address, "shadow")
    browser.execute_script("document.getElementById('tab-shadow').focus()")
    for expected in (*TABS[1:], "shadow"):
        browser.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
        assert browser.switch_to.active_element.get_attribute("id") == f"tab-{expected}"
        assert browser.execute_script("return location.hash") == f"#{expected}"
        shown = (
            "return [...document.querySelectorAll('[role=tabpanel]')].filter(e => !e.hidden).map(e => e.id)"
        )
        assert browser.execute_script(shown) == [f"panel-{expected}"]


@pytest.mark.parametrize(("size", "scheme"), VIEWS)
@pytest.mark.parametrize("tab", TABS)
def test_every_tab_fits_is_labelled_and_readable(browser, address, tab, size, scheme):
    resize(browser, size, scheme)
    browser.get_log("performance")
    open_tab(browser, address, tab)
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
    origin = f"http://127.0.0.1:{address.port}/"
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


def test_what_is_chosen_is_shown_and_told(browser, address):
    from selenium.webdriver.common.by import By

    resize(browser, DESK)
    open_tab(browser, address, "ladder")
    region = browser.find_element(By.CSS_SELECTOR, "[data-region=x1]")
    region.click()
    chosen = "return document.querySelector('[data-region=x1]').getAttribute('aria-pressed')"
    assert browser.execute_script(chosen) == "true"
    width = "return getComputedStyle(document.querySelector('[data-region=x1] rect')).strokeWidth"
    assert browser.execute_script(width) == "3px"
    browser.find_element(By.CSS_SELECTOR, ".edges button").click()
    current = "return document.querySelectorAll('.edges tr[aria-current=true]').length"
    assert browser.execute_script(current) == 1
    assert browser.execute_script("return document.activeElement.dataset.edge") == "r0 x1"


def test_skipping_to_the_content_stays_on_the_tab(browser, address):
    open_tab(browser, address, "bench")
    browser.execute_script("document.querySelector('.skip').click()")
    wait(browser, lambda: browser.execute_script("return document.activeElement.id") == "main", "the content")
    assert browser.execute_script("return document.getElementById('panel-bench').checkVisibility()")


def test_beside_an_error_nothing_of_an_older_graph_stays(browser, address):
    open_tab(browser, address, "ladder")
    move(browser, "leaves", 8)  # with a teacher that tells everything: too many labels
    wait(browser, lambda: "at most 64 events" in text(browser, "#panel-ladder .problem"), "what is wrong")
    assert text(browser, "#worst").strip() == "–"
    assert browser.execute_script("return document.querySelectorAll('.edges, .matrices canvas').length") == 0
    move(browser, "summary", "majority")
    wait(browser, lambda: text(browser, "#inputs").strip() == "256", "the graph with a teacher that sums up")


def test_answers_that_come_late_are_not_paired_with_other_settings(browser, address):
    """While a slider is dragged, a deviation of many standard errors would be one of two settings."""
    open_tab(browser, address, "bench")
    move(browser, "law", "normal")
    worst = 0.0
    for step in range(60):
        move(browser, "offset", 1 + step / 20)
        time.sleep(0.03)
        said = text(browser, "#away")
        if "× its standard error" in said:
            worst = max(worst, abs(float(said.split("×")[0].split()[-1].replace("−", "-"))))
    # 4 for chance and what the normal approximation is off by at t = 500, 2 % of some 0.4 % standard error
    assert worst < 15


def test_long_names_and_inputs_that_are_no_pictures(browser, tmp_path, monkeypatch):
    import numpy as np

    (tmp_path / "oddnets.py").write_text(
        "from torch import nn\n"
        "def odd():\n"
        "    net = nn.Sequential()\n"
        "    net.add_module('a_layer_with_a_name_that_goes_on_' * 5, nn.Linear(12, 40))\n"
        "    net.add_module('relu', nn.ReLU())\n"
        "    net.add_module('<img src=x onerror=alert(1)>', nn.Linear(40, 3))\n"
        "    return net\n"
    )
    random = np.random.default_rng(0)
    np.savez(tmp_path / "flat.npz", x=random.random((60, 12)).astype("float32"), y=np.arange(60) % 3)
    monkeypatch.chdir(tmp_path)
    with serving(_subject("oddnets:odd", "flat.npz", None, None, [], None, 0)) as odd:
        for size in (DESK, PHONE):
            resize(browser, size)
            for tab in ("shadow", "audit"):
                open_tab(browser, odd.at, tab)
                assert browser.execute_script("return document.documentElement.scrollWidth") <= size[0]
        open_tab(browser, odd.at, "shadow")
        heights = "return [...document.querySelectorAll('.gallery button')].map(e => e.offsetHeight)"
        assert min(browser.execute_script(heights)) >= 24
        assert "no images" in text(browser, "#panel-shadow")
        assert browser.execute_script("return document.querySelectorAll('img').length") == 0
        assert errors(browser) == []
    resize(browser, DESK)


def test_a_wrong_token_is_refused(browser, address):
    for wrong in ("", "x" * 43 + "/"):
        browser.get(f"http://127.0.0.1:{address.port}/{wrong}")
        assert "expected the token of this server" in text(browser, "body")
        assert not browser.execute_script("return document.querySelector('[role=tablist]')")


@pytest.mark.slow
def test_when_the_server_is_killed_the_page_says_so_and_goes_on_with_the_next(browser, cache):
    first = start(cache)
    try:
        open_tab(browser, first.address, "shadow")
        assert not browser.execute_script(LOST)
        first.stop(signal.SIGKILL)
        first.process.communicate()
        # noticed without a movement, and a movement made meanwhile is not lost
        wait(browser, lambda: "does not answer" in text(browser, "#lost"), "the page to say so")
        before = text(browser, "#recovery")
        move(browser, "layer", 0)
        second = start(cache)
        try:
            assert second.address.port == first.address.port
            assert second.address.token != first.address.token
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


class Stranger:
    """Somebody else's server on the port of one that was killed; keeps what it hears."""

    def __init__(self, port: int) -> None:
        from http.server import BaseHTTPRequestHandler, HTTPServer

        heard: list[str] = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                heard.append(f"{self.path} {self.headers}")
                body = b'{"salt": "00", "proof": "0"}'
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.heard = heard
        self._server = HTTPServer(("127.0.0.1", port), Handler)

    def __enter__(self) -> Stranger:
        from threading import Thread

        Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.mark.slow
def test_what_a_stranger_on_the_port_hears_is_good_for_nothing(browser, cache):
    """Another user takes the port of a server that was killed, while a page is open and a slider is moved."""
    first = start(cache)
    open_tab(browser, first.address, "shadow")
    secret = json.loads((cache / "obverse" / "explore" / "address.json").read_text())["secret"]
    first.stop(signal.SIGKILL)
    first.process.communicate()
    with Stranger(first.address.port) as stranger:
        move(browser, "layer", 0)
        wait(browser, lambda: "does not answer" in text(browser, "#lost"), "the page to say so")
        wait(browser, lambda: len(stranger.heard) >= 3, "the page to try")
        assert secret not in "".join(stranger.heard)
    with explorer(cache) as second:
        assert second.address.port == first.address.port
        assert second.address.token not in "".join(stranger.heard)
        wait(browser, lambda: not browser.execute_script(LOST), "the page to find its own server")
        assert browser.execute_script("return location.pathname") == f"/{second.address.token}/"
        move(browser, "layer", 1)
        wait(browser, lambda: text(browser, "#recovery").strip(" …–"), "a number of the new server")


@pytest.mark.slow
def test_another_net_at_the_same_address_is_loaded(browser, cache, tmp_path):
    factory = tmp_path / "mynets.py"
    factory.write_text(
        "from torch import nn\n"
        "def small(): return nn.Sequential(nn.Flatten(), nn.Linear(64, 40), nn.ReLU(), nn.Linear(40, 10))\n"
    )
    first = start(cache)
    open_tab(browser, first.address, "shadow")
    first.stop(signal.SIGTERM)
    first.process.communicate()
    import os

    before = os.getcwd()
    os.chdir(tmp_path)  # where the command looks for the module
    try:
        with explorer(cache, "mynets:small", "--data", "digits") as second:
            assert second.address.port == first.address.port
            wait(browser, lambda: "mynets:small" in text(browser, "#subject"), "the other net")
            wait(browser, lambda: text(browser, "#recovery").strip(" …–"), "its numbers")
    finally:
        os.chdir(before)
