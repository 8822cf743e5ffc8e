"""The page of an adapter: what its updates are made of, layer by layer. Not for measuring anything.

What a record says is untrusted text: it goes through the template's escaping, of bounded length; only the SVG
of `charts`, which is made of numbers and of names that it escapes, is put in as it is.
"""

from __future__ import annotations

from pathlib import Path

from ..._core import NONE, at_most, named, number, pairs, plain, seconds
from ...present import ResultType, markup, registry, render_page
from .charts import MOST_DIRECTIONS, energy_map
from .results import FORMAT, NAME, AdaptedLayer, AdapterAudit, read_adapter
from .words import remark, turn, uneven

MOST = 1000


def adapter_page(path: Path) -> str:
    """The page of a directory, or of its adapter.json."""
    return render_adapter(read_adapter(path))


def render_adapter(found: AdapterAudit) -> str:
    """The page as text."""
    layers, more = at_most(found.layers, MOST)
    titles = ["layer", "shape", "rank", "90 %", "99 %", "effective", "uneven", "norm"]
    if found.base:
        titles += ["of base", "above", "signal"]
    return render_page(
        "weights/_adapters/page.html.j2",
        name=named(found.model, "An adapter"),
        base=named(found.base),
        summary=plain(f"{found.summary[0].upper()}{found.summary[1:]}.", 600),
        notes=[plain(note, 600) for note in found.notes[:20]],
        energy=markup(energy_map(found)),
        most=MOST_DIRECTIONS,
        titles=titles,
        rows=[(_cells(layer, bool(found.base)), plain(remark(layer), 300)) for layer in layers],
        more=more,
        settings=pairs({"seconds": seconds(found.seconds), **found.settings}),
        versions=pairs(found.versions),
    )


def _cells(layer: AdaptedLayer, on_base: bool) -> list[str]:
    def count(value: int | None) -> str:
        return NONE if value is None else str(value)

    cells = [
        named(layer.name, "(no name)"),
        f"{layer.rows} × {layer.columns}",
        str(layer.rank),
        count(layer.for_90),
        count(layer.for_99),
        NONE if layer.effective_rank is None else f"{layer.effective_rank:.1f}",
        uneven(layer),
        number(layer.norm),
    ]
    if on_base:
        one = layer.on_base
        cells += (
            [NONE] * 3 if one is None else [f"{number(100 * one.relative)} %", count(one.above), turn(one)]
        )
    return cells


RESULT = registry.register(
    ResultType(NAME, AdapterAudit, FORMAT, read_adapter, adapter_page, html="adapter.html", rank=11)
)
