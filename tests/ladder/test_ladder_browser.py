"""The page of a ladder in a real browser: wide and narrow, light and dark, on paper."""

from __future__ import annotations

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
from ladder.sample_ladders import hostile, sample_ladder
from obverse.app import write_report as build
from obverse.ladder.results import NAME
from saved import result_text

# The smallest letters in a figure, in CSS pixels as they are shown.
SMALLEST = """
return Math.min(...[...document.querySelectorAll('figure svg[role=img] text')].map(text => {
  const svg = text.ownerSVGElement, scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
  return parseFloat(getComputedStyle(text).fontSize) * scale;
}));
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Of an exact teacher, a lossy one, one with many regions, a real net, and with untrusted text."""
    made = {}
    for name in ("exact", "lossy", "broad", "net", "hostile"):
        folder = tmp_path_factory.mktemp(name)
        found = hostile(sample_ladder("net")) if name == "hostile" else sample_ladder(name)
        (folder / NAME).write_text(result_text(found))
        made[name] = build(folder)
    return made


@pytest.mark.parametrize("kind", ["exact", "lossy", "broad", "net"])
@pytest.mark.parametrize(("size", "scheme"), THREE_VIEWS)
def test_page_is_whole_quiet_and_readable(
    browser: Any, pages: dict[str, Path], kind: str, scheme: str, size: tuple[int, int]
) -> None:
    shown = check_page(browser, pages[kind], (size, scheme), f"ladder-{kind}", texts=60)
    found = sample_ladder(kind)
    figures = (
        3 + len(found.matrices) + (len(found.levels) if found.measured else 0) + 2 * bool(found.training)
    )
    assert len(shown) == figures
    for one in shown:
        assert one["width"] >= 80
    assert browser.execute_script(SMALLEST) >= 8


def test_print_is_light_and_gives_pages(browser: Any, pages: dict[str, Path]) -> None:
    open_page(browser, pages["net"], DESK, "dark", media="print")
    save_screenshot(browser, "ladder-print")
    check_print(browser)


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_hostile_text_runs_nothing_and_breaks_no_layout(
    browser: Any, pages: dict[str, Path], size: tuple[int, int]
) -> None:
    open_page(browser, pages["hostile"], size, "light")
    browser.execute_script("document.querySelector('details').open = true")
    check_hostile(browser, pages["hostile"], size)
