"""The page of a ladder: verdict, region graph, shares, P matrices, tables. Not for measuring.

What a record says is untrusted text: it goes through the template's escaping, of bounded length; only the SVG
of `ladder_plot`, which is made of numbers and of names that it escapes, is put in as it is.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .._core import NONE, named, pairs, percent, seconds, unbroken
from ..present import ResultType, markup, registry, render_page
from ._agreement import LITTLE
from ._words import (
    EDGE_HEADINGS,
    LEVEL_HEADINGS,
    LIKE,
    PARTLY,
    command,
    edge_rows,
    has_chance,
    has_control,
    is_known,
    level_rows,
    outlook,
    title,
    training,
    verdict,
)
from .charts import (
    CURVES,
    LOSSES,
    SHADES,
    Panel,
    drawn,
    graph_panels,
    matrix,
    swatch,
    sweep_panels,
    training_panels,
)
from .results import FORMAT, NAME, Ladder, Matrix, read_ladder


def ladder_page(path: Path) -> str:
    """The page of a directory, or of its ladder.json."""
    return render_ladder(read_ladder(path))


def render_ladder(found: Ladder) -> str:
    """The page as text."""

    def shown(panels: list[Panel]) -> list[tuple[Panel, str]]:
        return [(panel, markup(panel.svg)) for panel in panels]

    levels, edges = level_rows(found), edge_rows(found)
    return render_page(
        "ladder/page.html.j2",
        found=found,
        title=title(found),
        verdict=fixed(verdict(found)),
        outlook=[fixed(sentence) for sentence in outlook(found)],
        graphs=shown(graph_panels(found)),
        drawn=drawn(found),
        like=LIKE,
        partly=PARTLY,
        little=f"{100 * LITTLE:g}",
        chance=has_chance(found),
        control=has_control(found),
        sweeps=shown(sweep_panels(found)) if found.measured else [],
        curves=[
            (name, markup(swatch(colour)))
            for key, colour, name in CURVES
            if any((one.net, one.images, one.shuffled) == key for one in found.measured)
        ],
        trainings=shown(training_panels(found.training)) if found.training else [],
        training=training(found),
        losses=[(name, markup(swatch(colour))) for _, colour, name in LOSSES],
        matrices=[
            (caption(one), note(one), markup(matrix(one, at))) for at, one in enumerate(found.matrices)
        ],
        shades=SHADES,
        level_table=table(LEVEL_HEADINGS, levels),
        edge_table=table(EDGE_HEADINGS, edges),
        command=command(found),
        known=is_known(found),
        settings=pairs(settings(found)),
        versions=pairs(found.versions),
    )


def fixed(text: str) -> str:
    return unbroken(text, " %")


def table(headings: tuple[str, ...], rows: list[tuple[str, ...]]) -> tuple[list[str], list[list[str]]]:
    """Headings and rows without the columns that say nothing."""
    kept = [at for at in range(len(headings)) if any(row[at] != NONE for row in rows)]
    return [headings[at] for at in kept], [[row[at] for at in kept] for row in rows]


def caption(one: Matrix) -> str:
    return f"{named(one.child)} given {named(one.parent)}"


def note(one: Matrix) -> str:
    rows, columns = one.shape
    cut = (rows, columns) != (len(one.rows), len(one.rows[0]))
    return f"{rows:,} × {columns:,}" + (f", the first {len(one.rows)} × {len(one.rows[0])}" if cut else "")


def settings(found: Ladder) -> dict[str, Any]:
    """How it was made."""
    made: dict[str, Any] = {
        "inputs": f"{found.inputs:,}" + (" images" if found.kind == "net" else ""),
        "loss on inputs": f"{found.loss:.4g}",
        "loss by events": f"{found.reformulated_loss:.4g}",
    }
    if found.accuracy is not None:
        made["test accuracy"] = f"{percent(found.accuracy)} %"
    made |= {name: value for name, value in found.settings.items() if value is not None}
    return {**made, "seconds": seconds(found.seconds)}


RESULT = registry.register(
    ResultType(NAME, Ladder, FORMAT, read_ladder, ladder_page, html="ladder.html", rank=7)
)
