"""The page of a memorizing net: how its blocks move points, margins, sizes, the table. Not for measuring.

What a record says is untrusted text: it goes through the template's escaping, of bounded length; only the SVG
of `memorize_plot`, which is made of numbers, is put in as it is.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .._core import pairs, seconds
from ..data import NAMES
from ..present import ResultType, markup, registry, render_page
from ._recall import FORMAT, NAME, Recall, read_recall
from ._words import PROMISED, command, name, outlook, rows, verdict
from .charts import accuracies, lipschitz, margins, parameters, walk_panels


def recall_page(path: Path) -> str:
    """The page of a directory, or of its memorize.json."""
    return render_recall(read_recall(path))


def render_recall(found: Recall) -> str:
    """The page as text."""
    return render_page(
        "identity/page.html.j2",
        found=found,
        facts=found.facts,
        walk=found.walk,
        name=name(found),
        known=found.data in NAMES,
        verdict=verdict(found),
        outlook=outlook(found),
        panels=[]
        if found.walk is None
        else [(one.title, markup(one.svg)) for one in walk_panels(found.walk)],
        margins=markup(margins(found)),
        lipschitz=markup(lipschitz(found)),
        parameters=markup(parameters(found)),
        accuracies=markup(accuracies(found)),
        promised=PROMISED,
        rows=rows(found),
        command=command(found),
        settings=pairs(settings(found)),
        versions=pairs(found.versions),
    )


def settings(found: Recall) -> dict[str, Any]:
    """How it was made."""
    return {
        "data": name(found),
        "labels": found.labels,
        "points": f"{found.facts.points:,}" + (" drawn" if found.asked_points is not None else ", all"),
        "width": f"{found.facts.width:,}" + (" asked for" if found.asked_width is not None else ", chosen"),
        "numbers of the net": found.dtype,
        "seed": found.seed,
        "seconds": seconds(found.seconds),
    }


RESULT = registry.register(
    ResultType(NAME, Recall, FORMAT, read_recall, recall_page, html="memorize.html", rank=6)
)
