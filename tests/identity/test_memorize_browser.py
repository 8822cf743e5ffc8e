"""The page of a memorized data set in a real browser: wide and narrow, light and dark, on paper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from identity.sample_memories import hostile, sample_memory
from obverse.app import write_report as build
from obverse.identity._recall import NAME
from saved import result_text
from training.test_browser import (
    CLIPPED,
    DESK,
    PHONE,
    SIZES,
    TEXT_COLOURS,
    THREE_VIEWS,
    check_hostile,
    check_print,
    contrast,
    open_page,
    requests,
    save_screenshot,
)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """With own labels, with random ones, of many classes, and by a stranger."""
    made = {}
    for name, found in (
        ("own", sample_memory()),
        ("random", sample_memory("random")),
        ("many", sample_memory(classes=40)),
        ("hostile", hostile(sample_memory())),
    ):
        folder = tmp_path_factory.mktemp(name)
        (folder / NAME).write_text(result_text(found))
        made[name] = build(folder)
    return made


@pytest.mark.parametrize("kind", ["own", "random", "many"])
@pytest.mark.parametrize(("size", "scheme"), THREE_VIEWS)
def test_page_is_whole_quiet_and_readable(
    browser: Any, pages: dict[str, Path], kind: str, scheme: str, size: tuple[int, int]
) -> None:
    open_page(browser, pages[kind], size, scheme)
    save_screenshot(browser, f"memorize-{kind}-{size[0]}-{scheme}")
    assert browser.get_log("browser") == []
    assert requests(browser) == [pages[kind].as_uri()]
    assert browser.execute_script("return document.documentElement.scrollWidth") <= size[0]
    shown = browser.execute_script(SIZES)
    assert len(shown) == (7 if kind == "random" else 8)  # four stages, four figures
    for one in shown:
        assert one["shown"]
        assert min(one["width"], one["height"]) >= 80
        assert one["right"] <= size[0]
    assert browser.execute_script(CLIPPED) == []
    colours = browser.execute_script(TEXT_COLOURS)
    assert len(colours) > 100
    assert [where for where, ink, page in colours if contrast(ink, page) < 4.5] == []  # WCAG AA


def test_print_is_light_and_gives_pages(browser: Any, pages: dict[str, Path]) -> None:
    open_page(browser, pages["own"], DESK, "dark", media="print")
    save_screenshot(browser, "memorize-print")
    check_print(browser)


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_hostile_text_runs_nothing_and_breaks_no_layout(
    browser: Any, pages: dict[str, Path], size: tuple[int, int]
) -> None:
    open_page(browser, pages["hostile"], size, "light")
    check_hostile(browser, pages["hostile"], size)
