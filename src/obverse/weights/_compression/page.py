"""The page of a compression: what was saved, what it cost, layer by layer. Not for compressing anything.

What a record says is untrusted text: it goes through the template's escaping, of bounded length; only the SVG
of `charts`, which is made of numbers and of names that it escapes, is put in as it is.
"""

from __future__ import annotations

from pathlib import Path

from ..._core import NONE, at_most, named, pairs, plain, seconds
from ...present import ResultType, markup, registry, render_page
from .._ablation.words import change
from .charts import bars
from .results import FORMAT, NAME, Compression, read_compression

MOST = 1000


def compression_page(path: Path) -> str:
    """The page of a directory, or of its compression.json."""
    return render_compression(read_compression(path))


def render_compression(found: Compression) -> str:
    """The page as text."""
    layers, more = at_most(found.layers, MOST)
    cost = ""
    if found.measure is not None and found.after is not None:
        unit = " points" if found.measure != "loss" else ""
        cost = (
            f"On {found.inputs:,} inputs the {found.measure} changes by {change(found.measure, found.after)}"
            f"{unit} (paired standard error)."
        )
    return render_page(
        "weights/_compression/page.html.j2",
        name=named(found.model, "This net"),
        summary=plain(f"{found.summary[0].upper()}{found.summary[1:]}.", 600),
        cost=cost,
        recalibrated=found.recalibration_inputs,
        bars=markup(bars(found)) if found.layers else "",
        rows=[
            (
                named(layer.name, "(no name)"),
                f"{layer.rows} × {layer.columns}",
                NONE if layer.rank is None else str(layer.rank),
                f"{layer.before:,}",
                f"{layer.after:,}",
                plain(layer.note, 300),
            )
            for layer in layers
        ],
        more=more,
        settings=pairs({"seconds": seconds(found.seconds), **found.settings}),
        versions=pairs(found.versions),
    )


RESULT = registry.register(
    ResultType(
        NAME, Compression, FORMAT, read_compression, compression_page, html="compression.html", rank=10
    )
)
