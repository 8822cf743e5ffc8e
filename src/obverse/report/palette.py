"""One colour and one marker a variant, the same in every figure and table. Not for drawing.

The hues are those that stay apart for the common forms of colour blindness, each darkened for white
paper and lightened for a dark page: at least 3:1 against both backgrounds (a test checks it). Past seven
variants the colours repeat, and the marker tells them apart.
"""

from __future__ import annotations

LIGHT = ("#1b5fa8", "#b93a00", "#00805c", "#b85a95", "#a98600", "#3a97c9", "#3f444b")
DARK = ("#6ea8f0", "#ff8348", "#3ecf9f", "#f0a3cf", "#e6c24a", "#9fe3fb", "#868e99")
LIGHT_PAGE, DARK_PAGE = "#ffffff", "#14161a"
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
