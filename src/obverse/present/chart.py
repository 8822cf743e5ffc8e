"""Small charts as SVG: coordinates, lines, dots, bars, ticks, the frame. Not for what they show."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
WIDTH, HEIGHT = 150, 80  # of the frame, in CSS pixels at its natural size; ticks stand below it


def coordinate(value: float) -> str:
    """A tenth of a pixel is more than can be seen."""
    return f"{value:.1f}".removesuffix(".0")


def across(values: npt.ArrayLike, low: float, high: float, length: float = WIDTH) -> Array:
    """Where values lie between `low` and `high`, from 0 to `length` and never beyond."""
    with np.errstate(all="ignore"):
        share = (np.asarray(values, dtype=np.float64) - low) / np.float64(high - low)
    result: Array = np.clip(np.nan_to_num(share, nan=0.0), 0.0, 1.0) * length
    return result


def up(values: npt.ArrayLike, high: float) -> Array:
    """The vertical coordinate of heights between 0 and `high`."""
    result: Array = HEIGHT - across(values, 0.0, high, HEIGHT)
    return result


def line(x: Array, y: Array) -> str:
    return "M" + "L".join(f"{coordinate(a)} {coordinate(b)}" for a, b in zip(x, y, strict=True))


def dots(x: Array, y: Array) -> str:
    """Lines of no length, which a round cap makes dots."""
    return "".join(f"M{coordinate(a)} {coordinate(b)}h0" for a, b in zip(x, y, strict=True))


def steps(x: Array, y: Array) -> str:
    """The outline of bars between the edges `x`, of heights `y`; equal neighbours are one bar."""
    start = coordinate(x[0])
    parts, place, level = [f"M{start} {HEIGHT}"], start, ""
    for right, top in zip(map(coordinate, x[1:]), map(coordinate, y), strict=True):
        if right == place:  # outside the frame
            continue
        if top == level:
            parts[-1] = f"H{right}"
        else:
            parts += [f"V{top}", f"H{right}"]
        place, level = right, top
    return "".join(parts) + f"V{HEIGHT}"


def path(kind: str, d: str) -> str:
    return f'<path class="{kind}" d="{d}"/>'


def tick(x: float, label: str, anchor: str = "middle") -> str:
    """A label below the frame; `label` is never text from a file."""
    place = "" if anchor == "middle" else f' class="{anchor}"'
    return f'<text x="{coordinate(x)}" y="{HEIGHT + 13}"{place}>{label}</text>'


def svg_frame(title: str, parts: Iterable[str]) -> str:
    """One small multiple; its frame is 150 × 80, with room for ticks below."""
    return f'<svg viewBox="-2 -2 154 98" role="img" aria-label="{title}">{"".join(parts)}</svg>'
