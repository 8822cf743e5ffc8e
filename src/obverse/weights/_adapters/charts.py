"""The map of an adapter: a row a layer, a square a direction, as dark as its share of the energy. SVG."""

from __future__ import annotations

from html import escape

from ..._core import named
from ...present import coordinate
from .results import AdapterAudit

CELL, ROW, NAMES, WIDTH = 22, 20, 250, 520
MOST_ROWS, MOST_DIRECTIONS = 256, 64
LONGEST = 38


def energy_map(found: AdapterAudit) -> str:
    """Directions from left to right, strongest first; the root of the share, so that weak ones are seen."""
    layers = [layer for layer in found.layers if not layer.is_zero][:MOST_ROWS]
    if not layers:
        return ""
    most = min(MOST_DIRECTIONS, max(len(layer.values) for layer in layers))
    width = min(CELL, WIDTH / most)
    whole = coordinate(NAMES + 8 + max(most * width, 60))
    parts = [
        f'<svg viewBox="{-NAMES} -2 {whole} {ROW * len(layers) + 24}" '
        'role="img" aria-labelledby="energy"><title id="energy">Share of the energy of each direction</title>'
    ]
    for at, layer in enumerate(layers):
        y, name = ROW * at, named(layer.name)
        cut = name if len(name) <= LONGEST else f"…{name[1 - LONGEST :]}"
        parts.append(f'<text class="end" x="-8" y="{coordinate(y + ROW / 2)}">{escape(cut)}</text>')
        largest = layer.values[0]
        energy = sum((value / largest) ** 2 for value in layer.values)
        for place, value in enumerate(layer.values[:most]):
            share = (value / largest) ** 2 / energy
            size = f'width="{coordinate(width - 1)}" height="{ROW - 1}"'
            said = f"{name}, direction {place + 1}: {100 * share:.2g} % of the energy"
            parts.append(
                f'<rect class="cell" x="{coordinate(place * width)}" y="{y}" {size} '
                f'style="fill-opacity:{share**0.5:.3f}"><title>{escape(said)}</title></rect>'
            )
    base = ROW * len(layers) + 15
    for place in {0, most // 2, most - 1}:
        parts.append(f'<text x="{coordinate((place + 0.5) * width)}" y="{base}">{place + 1}</text>')
    return "".join(parts) + "</svg>"
