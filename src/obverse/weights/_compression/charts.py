"""The bars of a compression: weights before and after, layer by layer. SVG by hand, from numbers."""

from __future__ import annotations

from html import escape

from ..._core import named
from ...present import axis_for, coordinate
from .results import Compression

WIDTH, ROW, NAMES = 520, 24, 190
MOST_ROWS = 100


def bars(found: Compression) -> str:
    """A bar per layer as long as its weights, filled as far as they are still there."""
    layers = found.layers[:MOST_ROWS]
    axis = axis_for([0.0, *(float(layer.before) for layer in layers)], span=float("inf"), from_zero=True)
    height = ROW * len(layers)
    parts = [
        f'<svg viewBox="{-NAMES} -6 {NAMES + WIDTH + 30} {height + 34}" role="img" aria-labelledby="bars">'
        '<title id="bars">Weights of each layer before and after</title>'
    ]
    for value, label in axis.ticks(6):
        x = coordinate(WIDTH * axis.share(value))
        parts.append(
            f'<path class="axis" d="M{x} 0V{height}"/><text x="{x}" y="{height + 16}">{label}</text>'
        )
    for at, layer in enumerate(layers):
        y, said = ROW * at, named(layer.name)
        cut = said if len(said) <= 30 else f"{said[:13]}…{said[-16:]}"
        ends = [coordinate(WIDTH * axis.share(float(many))) for many in (layer.before, layer.after)]
        parts.append(
            f'<text class="end" x="-10" y="{coordinate(y + ROW / 2)}">{escape(cut)}</text>'
            f'<path class="before" d="M0 {y + 5}H{ends[0]}V{y + ROW - 5}H0z"/>'
            f'<path class="after" d="M0 {y + 5}H{ends[1]}V{y + ROW - 5}H0z"/>'
        )
    return "".join(parts) + "</svg>"
