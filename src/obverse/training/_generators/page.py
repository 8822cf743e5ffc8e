"""The page of a generator's run: verdict, curves, images, settings. Not for training or measuring.

What a run says is untrusted text: it goes through the template's escaping, of bounded length; only the SVG of
`generator_figures` and of the palette, which are made of numbers, are put in as they are.
"""

from __future__ import annotations

from pathlib import Path

from ..._core import pairs, plain
from ...data import Dataset
from ...present import ResultType, markup, palette, registry, render_page
from .._rundir import FORMAT, GeneratorRecord, holds_generator, read_generator_run
from . import words
from .charts import Album, album, charts
from .results import read_generator_results


def generator_page(path: Path, data: Dataset | None = None) -> str:
    """The page of a run directory; `data` saves loading it for the reconstructions."""
    run = read_generator_results(path)
    return render_generator(run, album(run, data))


def render_generator(run: GeneratorRecord, pictures: Album) -> str:
    """The page as text."""
    return render_page(
        "training/_generators/page.html.j2",
        name=plain(run.path.resolve().name),
        settings=run.settings,
        title=words.title(run),
        verdict=words.verdict(run),
        outlook=words.outlook(run),
        missing=words.missing(run),
        tiles=words.tiles(run),
        charts=[
            (
                chart,
                markup(chart.svg),
                [(markup(palette.swatch(place)), name) for place, name in chart.legend],
            )
            for chart in charts(run)
        ],
        album=pictures,
        command=words.again(run),
        table=words.settings_table(run),
        environment=pairs(run.environment),
    )


RESULT = registry.register(
    ResultType(
        "config.json of a generator",
        GeneratorRecord,
        FORMAT,
        read_generator_run,
        generator_page,
        html="report.html",
        rank=0,
        holds=holds_generator,
    )
)
