"""The page of a search: the best setting, what it is worth, every trial. Not for searching.

What a record says is untrusted text: it goes through the template's escaping, of bounded length; only the SVG
of `search_plot`, which is made of numbers, is put in as it is.
"""

from __future__ import annotations

from pathlib import Path

from ..._core import at_most, pairs, plain
from ...present import ResultType, markup, registry, render_page
from .charts import STEPS, curves, history, landscape
from .plan import NAME as PLAN
from .results import FORMAT, NAME, SearchResult, read_result, verdict
from .words import HEADINGS, ordered, outlook, row


def search_page(path: Path) -> str:
    """The page of a search directory, or of its trials.json."""
    return render_search(read_result(path))


def render_search(result: SearchResult) -> str:
    """The page as text."""
    shown, left_out = at_most(ordered(result), 1000)
    drawn = bool(result.trials)
    return render_page(
        "training/_search/page.html.j2",
        result=result,
        name=plain(result.data, 60),
        verdict=verdict(result),
        outlook=[plain(said, 1000) for said in outlook(result)],
        landscape=markup(landscape(result)) if drawn else "",
        curves=markup(curves(result)) if any(trial.curve for trial in result.trials) else "",
        history=markup(history(result)) if result.complete else "",
        steps=STEPS,
        headings=HEADINGS,
        rows=[(row(trial), trial is result.best, plain(trial.reason, 300)) for trial in shown],
        left_out=left_out,
        settings=pairs(_settings(result)),
        versions=pairs(result.versions),
    )


def _settings(result: SearchResult) -> dict[str, object]:
    return {
        "data": result.data,
        "training points": f"{result.train_points:,}",
        "held-out points": f"{result.held_out:,}",
        "test points": f"{result.test_points:,}",
        "sampler": result.sampler,
        "pruner": result.pruner,
        **result.settings,
    }


RESULT = registry.register(
    ResultType(
        NAME,
        SearchResult,
        FORMAT,
        read_result,
        search_page,
        html="search.html",
        rank=1,
        holds=lambda path: (path / PLAN).is_file(),
    )
)
