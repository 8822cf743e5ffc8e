"""What tests of pages in a real browser share: views, scripts that look at a page, and what all must be."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest

SCREENSHOTS = Path(__file__).parents[1] / ".screenshots"
DESK, TABLET, PHONE = (1100, 800), (760, 800), (360, 740)
# Every size and both schemes, not their product: dark changes colours alone (tests/present/test_palette.py).
VIEWS = [
    pytest.param(DESK, "light", id="desk-light"),
    pytest.param(PHONE, "dark", id="phone-dark"),
]
THREE_VIEWS = [*VIEWS, pytest.param(TABLET, "dark", id="tablet-dark")]

# Every element with text of its own: its colour and the nearest background that is not transparent.
TEXT_COLOURS = """
const opaque = colour => !colour.endsWith(', 0)') && colour !== 'transparent';
return [...document.querySelectorAll('body *')].filter(e =>
  e.getClientRects().length && [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())
).map(e => {
  let back = e;
  while (back && !opaque(getComputedStyle(back).backgroundColor)) back = back.parentElement;
  const style = getComputedStyle(e);
  return [e.tagName + ': ' + e.textContent.trim().slice(0, 40),
          e.tagName.toLowerCase() === 'text' ? style.fill : style.color,
          getComputedStyle(back || document.body).backgroundColor];
});
"""
SIZES = """
return [...document.querySelectorAll('figure svg[role=img], img')].map(e => {
  const box = e.getBoundingClientRect();
  return {width: box.width, height: box.height, right: box.right, natural: e.naturalWidth,
          shown: e.checkVisibility()};
});
"""
FIGURES = "figure svg[role=img]"
# Matplotlib laid the figures out with its own font; the page's must not push text over an edge.
CLIPPED = """
return [...document.querySelectorAll('figure svg[role=img] text')].filter(text => {
  const inner = text.getBoundingClientRect(), outer = text.ownerSVGElement.getBoundingClientRect();
  return inner.left < outer.left - 1 || inner.right > outer.right + 1
      || inner.top < outer.top - 1 || inner.bottom > outer.bottom + 1;
}).map(text => text.textContent);
"""


def open_page(browser: Any, page: Path, size: tuple[int, int], scheme: str, media: str = "") -> None:
    browser.get_log("browser"), browser.get_log("performance")  # what earlier pages left
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size == PHONE},
    )
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"media": media, "features": [{"name": "prefers-color-scheme", "value": scheme}]},
    )
    browser.get(page.as_uri())


def save_screenshot(browser: Any, name: str) -> None:
    """For somebody who wants to look: with OBVERSE_SCREENSHOTS=1, into .screenshots."""
    if os.environ.get("OBVERSE_SCREENSHOTS") != "1":
        return
    height = browser.execute_script("return document.documentElement.scrollHeight")
    width = browser.execute_script("return innerWidth")
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
    shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
    SCREENSHOTS.mkdir(exist_ok=True)
    (SCREENSHOTS / f"report-{name}.png").write_bytes(base64.b64decode(shot["data"]))


def check_page(
    browser: Any,
    page: Path,
    view: tuple[tuple[int, int], str],
    name: str,
    *,
    texts: int,
    prepare: str = "",
    figures: str = "figure svg[role=img]",
) -> list[dict[str, Any]]:
    """Whole, quiet and readable in a (size, scheme): what every page must be. The sizes of its images.

    Nothing is logged, nothing else is loaded, nothing is wider than the screen, no text of the `figures` runs
    over an edge, and each of more than `texts` texts has the contrast of WCAG AA.
    """
    size, scheme = view
    open_page(browser, page, size, scheme)
    browser.execute_script(prepare)
    save_screenshot(browser, f"{name}-{size[0]}-{scheme}")
    assert browser.get_log("browser") == []
    assert requests(browser) == [page.as_uri()]
    width, clipped, colours, shown = browser.execute_script(
        f"return [document.documentElement.scrollWidth, (() => {{{CLIPPED.replace(FIGURES, figures)}}})(), "
        f"(() => {{{TEXT_COLOURS}}})(), (() => {{{SIZES}}})()]"
    )
    assert width <= size[0]
    assert clipped == []
    assert len(colours) > texts
    assert [where for where, ink, back in colours if contrast(ink, back) < 4.5] == []
    for one in shown:
        assert one["shown"]
        assert one["right"] <= size[0]
        assert one["natural"] is None or one["natural"] > 0
    return list(shown)


def check_hostile(browser: Any, page: Path, size: tuple[int, int]) -> None:
    """Untrusted text on an open page is shown, runs nothing, loads nothing and breaks no layout."""
    assert browser.get_log("browser") == []
    assert requests(browser) == [page.as_uri()]
    assert browser.execute_script("return document.querySelectorAll('script, b').length") == 0
    assert browser.execute_script("return document.documentElement.scrollWidth") <= size[0]
    assert "alert(1)" in browser.execute_script("return document.body.innerText")


def check_print(browser: Any, *other: str) -> bytes:
    """Light and readable, on the two grounds of every page or on `other` ones; the PDF that comes out."""
    colours = browser.execute_script(TEXT_COLOURS)
    assert {page for _, _, page in colours} <= {"rgb(255, 255, 255)", "rgb(245, 246, 248)", *other}
    assert min(contrast(ink, page) for _, ink, page in colours) >= 4.5
    pdf = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {})["data"])
    assert pdf.startswith(b"%PDF")
    return pdf


def requests(browser: Any) -> list[str]:
    """What the page asked for: not what it holds itself (data:), nor parts of the browser, which loads them
    when it first draws a field with a button."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [one["params"] for one in messages if one["method"] == "Network.requestWillBeSent"]
    urls = [one["request"]["url"] for one in sent]
    return [url for url in urls if not url.startswith(("data:", "chrome://"))]


def contrast(one: str, other: str) -> float:
    """The WCAG contrast ratio of two CSS rgb() colours."""

    def luminance(colour: str) -> float:
        parts = [float(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)
