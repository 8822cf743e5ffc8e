"""From a matplotlib figure to SVG that can live inside a page. Not for what is drawn.

Several of them share one HTML document, in light, in dark and on paper: so ids get a prefix, ink becomes
`currentColor`, series become CSS variables, and text stays text in the page's own font.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from .palette import LIGHT, colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Drawn with these colours, which are then replaced; nothing else uses them.
INK, GRID, PAGE = "#010203", "#040506", "#070809"
_SERIES = [f"#0a0b{index:02x}" for index in range(len(LIGHT))]
_CSS = {INK: "currentColor", GRID: "var(--grid)", PAGE: "var(--page)"} | {
    sentinel: colour(index) for index, sentinel in enumerate(_SERIES)
}

_STYLE = {
    "axes.axisbelow": True,
    "axes.edgecolor": GRID,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.facecolor": "none",
    "font.size": 12,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "lines.linewidth": 1.8,
    "lines.markersize": 6,
    "savefig.facecolor": "none",
    "svg.fonttype": "none",
    "svg.hashsalt": "obverse",
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": GRID,
    "xtick.labelcolor": INK,
    "ytick.color": GRID,
    "ytick.labelcolor": INK,
}


def sentinel(index: int) -> str:
    """The colour to draw a series with, so that it becomes the variant's CSS variable."""
    return _SERIES[index % len(_SERIES)]


class Drawing:
    """One figure under way; `svg` is there once the `drawing` block has ended."""

    def __init__(self, figure: Figure, axes: Axes) -> None:
        self.figure, self.axes = figure, axes
        self.svg = ""


@contextmanager
def drawing(name: str, title: str, size: tuple[int, int]) -> Iterator[Drawing]:
    """Draw one figure of `size` (CSS pixels at its natural width); `name` keeps its ids apart.

    No global state: the style holds inside the block only, and no pyplot is involved.
    """
    from matplotlib import style
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with style.context(_STYLE, after_reset=True):
        figure = Figure(figsize=(size[0] / 72, size[1] / 72), layout="constrained")
        FigureCanvasSVG(figure)
        result = Drawing(figure, figure.subplots())
        yield result
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    result.svg = inline(buffer.getvalue(), name, title)


def inline(text: str, name: str, title: str) -> str:
    """Matplotlib's SVG document as an element for an HTML page."""
    root = ElementTree.fromstring(text)
    for parent in list(root.iter()):
        for child in list(parent):
            if _tag(child) in ("metadata", "style"):  # a <style> would reach the whole page
                parent.remove(child)
    for element in root.iter():
        element.tag = _tag(element)
        for key, value in list(element.attrib.items()):
            del element.attrib[key]
            element.set(key.rpartition("}")[2], _for_page(key.rpartition("}")[2], value, name))
    view = root.get("viewBox", "")
    root.attrib.clear()
    root.attrib.update({"viewBox": view, "role": "img", "aria-labelledby": f"{name}-title"})
    label = ElementTree.Element("title", {"id": f"{name}-title"})
    label.text = title
    root.insert(0, label)
    return ElementTree.tostring(root, encoding="unicode")


def _tag(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _for_page(key: str, value: str, name: str) -> str:
    if key == "id":
        return f"{name}-{value}"
    if key == "href":
        return value.replace("#", f"#{name}-", 1)
    if key == "style":
        value = re.sub(r"font-family:[^;]*;?|stroke-linejoin:[^;]*;?", "", value)
        value = re.sub(r"font: ([\d.]+px)[^;]*", r"font-size: \1", value)
        value = re.sub("#[0-9a-f]{6}", lambda found: _CSS.get(found[0], found[0]), value)
    return re.sub(r"url\(#", f"url(#{name}-", value)
