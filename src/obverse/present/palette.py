"""One colour and one marker a variant, the same in every figure and table. Not for drawing.

Any two series stay as far apart for the common forms of colour blindness as the closest two of Okabe and
Ito's palette do, and each has at least 3:1 against its page (a test measures both). Past seven variants the
colours repeat, and the marker tells them apart. Figures take every colour from here.
"""

from __future__ import annotations

LIGHT = ("#2b4bb7", "#a62d00", "#137948", "#ca649b", "#ac8800", "#4497dd", "#2d364f")
DARK = ("#6fa6fd", "#ff7553", "#4edd9a", "#ff90c3", "#f7c13f", "#a7e4ff", "#758886")
LIGHT_PAGE, DARK_PAGE = "#ffffff", "#14161a"
# Of figures outside pages: text, what matters less, rules. Those of pages are in page.css.
LIGHT_INK, DARK_INK = ("#1c1f24", "#565d68", "#d5d9df"), ("#e7e9ec", "#a5adb8", "#3a3f48")
GREY, FAINT = "#6b7178", "#e5e7eb"  # of what is not a series: guides and rules
TINTS = ("#f1e7c8", "#e0cf98")  # of regions behind series
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p", "<", ">", "*", "h", "d", "8")


def colour(index: int) -> str:
    """The CSS value of a variant's colour; the page defines --series-0, … for light and dark."""
    return f"var(--series-{index % len(LIGHT)})"


def marker(index: int) -> str:
    return MARKERS[index % len(MARKERS)]


def shape(index: int, size: float) -> str:
    """The variant's marker as the path of an SVG, around 0."""
    from matplotlib.markers import MarkerStyle
    from matplotlib.path import Path
    from matplotlib.transforms import Affine2D

    style = MarkerStyle(marker(index))
    path = style.get_path().transformed(style.get_transform() + Affine2D().scale(size, -size))
    letters = {Path.MOVETO: "M", Path.LINETO: "L", Path.CURVE3: "Q", Path.CURVE4: "C", Path.CLOSEPOLY: "Z"}
    parts = []
    for points, code in path.iter_segments():
        numbers = "" if code == Path.CLOSEPOLY else " ".join(f"{value:.2f}" for value in points)
        parts.append(f"{letters[code]}{numbers}")
    return "".join(parts)


def swatch(index: int) -> str:
    """A small inline SVG: the variant's line and marker, without ids, so that it may be repeated."""
    return (
        '<svg class="swatch" viewBox="-14 -7 28 14" aria-hidden="true">'
        f'<path d="M-13 0H13" style="stroke: {colour(index)}; stroke-width: 2"/>'
        f'<path d="{shape(index, 9)}" style="fill: {colour(index)}"/></svg>'
    )
