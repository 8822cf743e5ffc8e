"""The page of a diversity test in a real browser: wide and narrow, light and dark, on paper."""

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
from diversity.sample_diversity import hostile, measured
from obverse.app import write_report as build
from obverse.diversity.charts import write_pictures
from obverse.diversity.results import NAME
from saved import write_result


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """With everything, few pictures, no data, no pictures at all, and with untrusted text."""
    made = {}
    for name in ("full", "few", "plain", "points", "hostile"):
        folder = tmp_path_factory.mktemp(name)
        found, pictures = measured("full" if name == "hostile" else name)
        write_result(hostile(found) if name == "hostile" else found, folder / NAME)
        write_pictures(folder, pictures)
        made[name] = build(folder)
    return made


# 2 rows of samples, 12 pairs, 12 copies, 5 paths, 5 directions, 10 labels; figures of support and dimension
COUNTS = {"full": 2 + 12 + 12 + 5 + 5 + 10 + 2, "few": 2 + 12 + 12 + 2, "plain": 2 + 12 + 2, "points": 2}


@pytest.mark.parametrize("kind", ["full", "few", "plain", "points"])
@pytest.mark.parametrize(("size", "scheme"), THREE_VIEWS)
def test_page_is_whole_quiet_and_readable(
    browser: Any, pages: dict[str, Path], kind: str, scheme: str, size: tuple[int, int]
) -> None:
    shown = check_page(browser, pages[kind], (size, scheme), f"diversity-{kind}", texts=40)
    assert len(shown) == COUNTS[kind]
    for one in shown:
        assert min(one["width"], one["height"]) > 20


def test_print_is_light_and_gives_pages(browser: Any, pages: dict[str, Path]) -> None:
    open_page(browser, pages["full"], DESK, "dark", media="print")
    save_screenshot(browser, "diversity-print")
    check_print(browser)


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_hostile_text_runs_nothing_and_breaks_no_layout(
    browser: Any, pages: dict[str, Path], size: tuple[int, int]
) -> None:
    open_page(browser, pages["hostile"], size, "light")
    check_hostile(browser, pages["hostile"], size)
