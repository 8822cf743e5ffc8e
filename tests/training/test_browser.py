"""The page in a real browser: wide and narrow, light and dark, and on paper."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from browsing import DESK, VIEWS, check_page, check_print, contrast, open_page, requests, save_screenshot
from obverse.app import write_report as build


@pytest.fixture(scope="module")
def pages(comparison: Path, page: Path) -> dict[str, Path]:
    run = comparison / "runs" / "shadow" / "seed-0"
    return {"comparison": page, "run": build(run, page.with_name("run.html"))}


@pytest.mark.parametrize("kind", ["comparison", "run"])
@pytest.mark.parametrize(("size", "scheme"), VIEWS)
def test_page_is_whole_quiet_and_readable(
    browser: Any, pages: dict[str, Path], kind: str, scheme: str, size: tuple[int, int]
) -> None:
    shown = check_page(browser, pages[kind], (size, scheme), kind, texts=100)
    assert browser.execute_script("return innerWidth") == size[0]
    # 18 lead, then 10 classes × 4, and the figures
    assert len(shown) == (67 if kind == "comparison" else 63)
    assert min(min(one["width"], one["height"]) for one in shown) > 20
    page = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (contrast(page, "rgb(0, 0, 0)") < 2) == (scheme == "dark")


@pytest.mark.parametrize("kind", ["comparison", "run"])
def test_print_is_light_even_in_dark_mode_and_gives_pages(
    browser: Any, pages: dict[str, Path], kind: str
) -> None:
    open_page(browser, pages[kind], DESK, "dark", media="print")
    save_screenshot(browser, f"{kind}-print")
    assert len(check_print(browser, "rgb(255, 240, 194)")) > 20_000


def test_hostile_text_runs_nothing(browser: Any, single: Path) -> None:
    config = json.loads((single / "config.json").read_text())
    attack = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
    config["settings"]["data"] = attack
    config["environment"] = {attack: attack, "style": "</style></title>" + attack}
    (single / "config.json").write_text(json.dumps(config))
    page = build(single)
    open_page(browser, page, DESK, "light")
    assert browser.get_log("browser") == []
    assert requests(browser) == [page.as_uri()]
    assert "owned" not in browser.title.split("—")[-1]
    assert browser.execute_script("return document.querySelectorAll('script, img').length") == 0
    assert "onerror" in browser.execute_script("return document.body.innerText")
