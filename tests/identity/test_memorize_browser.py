"""The page of a memorized data set in a real browser: wide and narrow, light and dark, on paper."""

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
from identity.sample_memories import hostile, sample_memory
from obverse.app import write_report as build
from obverse.identity._recall import NAME
from saved import result_text


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """With own labels, with random ones, of many classes, and with untrusted text."""
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
    shown = check_page(browser, pages[kind], (size, scheme), f"memorize-{kind}", texts=100)
    assert len(shown) == (7 if kind == "random" else 8)  # four stages, four figures
    for one in shown:
        assert min(one["width"], one["height"]) >= 80


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
