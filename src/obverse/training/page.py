"""One self-contained HTML page of a run or a comparison. Not for computing results.

Everything that comes from a directory is untrusted text: it goes through the template's escaping, and
only the SVG that `charts` draws is put in as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._core import ObverseError, plain, spell, text
from ..data import Dataset, load
from ..present import SCALING, ResultType, data_uri, markup, palette, registry, render_page
from . import _words as words
from ._compare import Row
from ._rundir import FORMAT
from ._settings import foreign
from ._shown import Results, is_results, read_results
from .charts import figures
from .charts._images import COLUMNS, ZERO, check_images, choose_run, shadow_pictures, single_png, triple_png

MAX_CLASSES = 12
MAX_PER_CLASS = 4
LEADS = 6  # images at the top
LONGEST = 64  # pixels a side; more would not be seen at the size of the page
SHADOW_COLUMNS = (3, 4)  # of the table, left out where no shadows were measured
TILES = (2, 3, 4, 7)  # what a single run shows of it
IMAGE_BYTES = 450_000  # of raw pixels; noise does not compress, and the page should stay below 1 MB


@dataclass(frozen=True)
class Lead:
    """An image of a class, and its shadows by the net before and after training."""

    name: str
    original: str
    untrained: str
    trained: str


@dataclass(frozen=True)
class Gallery:
    """The images of the page, or the sentence that says why there are none."""

    source: str
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    note: str
    pixelated: bool
    variant: str = ""  # whose shadows these are
    leads: tuple[Lead, ...] = ()  # the first image of some classes, for the top of the page


def run_page(path: Path, data: Dataset | None = None) -> str:
    """The page of a run or comparison directory.

    `data` saves loading the data set for the images again; where it cannot be loaded, the page says so.
    """
    results = read_results(path)
    return render(results, gallery(path, data) if results.shadowed else None)


def render(results: Results, pictures: Gallery | None) -> str:
    """The page as text; without images where no shadows were measured."""
    names = list(results.plan)
    titles = headings(results)
    kept = [column for column in range(len(titles)) if results.shadowed or column not in SHADOW_COLUMNS]
    rows = [cells(row) for row in results.table.rows]
    return render_page(
        "training/page.html.j2",
        results=results,
        title=words.title(results),
        lead=words.lead(results, pictures.variant) if pictures and pictures.leads else "",
        summary=words.summary(results),
        missing=words.missing(results),
        headings=[titles[column] for column in kept],
        rows=[[row[column] for column in kept] for row in rows],
        tiles=[(titles[column], rows[0][column]) for column in TILES if column in kept],
        figures=[
            (shown, [(panel, markup(panel.svg)) for panel in shown.panels]) for shown in figures(results)
        ],
        swatches={name: markup(palette.swatch(index)) for index, name in enumerate(names)},
        gallery=pictures,
        columns=COLUMNS,
        scaling=SCALING,
        settings=settings_table(results),
        environment=environment_table(results),
    )


def headings(results: Results) -> list[str]:
    first = results.table.rows[0].variant
    return [
        "variant",
        "runs",
        f"{results.error_name},{text.FIXED}%",
        f"shadow error,{text.FIXED}%",
        f"same label,{text.FIXED}%",
        f"difference to {first}, points",
        "p",
        "seconds per run" if results.is_comparison else "seconds of training",
    ]


def cells(row: Row) -> list[str]:
    """A row of the table as text, in the order of `headings`."""
    difference = "—" if row.difference is None else text.signed(row.difference, row.difference_se)
    return [
        row.variant,
        str(row.runs),
        text.percent(row.test_error, row.test_error_se),
        text.percent(row.shadow_error, row.shadow_error_se),
        text.percent(row.label_agreement),
        difference,
        text.p_value(row.p_value),
        text.seconds(row.seconds),
    ]


def gallery(path: Path, data: Dataset | None = None) -> Gallery:
    """The images, few and small enough for a page."""
    try:
        run = choose_run(path)
        settings = run.settings
        data = load(settings.data, settings.data_root) if data is None else data
        check_images(data)
        channels, height, width = data.input_shape
        count = min(MAX_CLASSES, len(data.classes))
        size = 3 * channels * min(height, LONGEST) * min(width, LONGEST)
        per_class = max(1, min(MAX_PER_CLASS, IMAGE_BYTES // (count * size)))
        found = shadow_pictures(run.path, per_class, classes=count, data=data)
    except ObverseError as error:
        return Gallery("", (), f"No images: {error}.", False)
    source = ""
    if (path / "comparison.json").is_file():
        source = f"variant {run.path.parent.name}, seed {settings.seed}"
    rows = tuple(
        (one.name, tuple(data_uri(triple_png(triple, LONGEST)) for triple in one.pixels)) for one in found
    )
    notes = [ZERO] if any(one.has_zero_shadow for one in found) else []
    if count < len(data.classes):
        notes.append(f"The first {count} of {len(data.classes)} classes.")
    leads = tuple(
        Lead(one.name, *(data_uri(single_png(one.pixels[0, at], LONGEST)) for at in (2, 0, 1)))
        for one in found[:LEADS]
    )
    return Gallery(source, rows, " ".join(notes), max(height, width) <= LONGEST, run.path.parent.name, leads)


def settings_table(results: Results) -> dict[str, Any]:
    """What differs between the variants, and what they have in common; the seed is said elsewhere."""
    plan = {name: _shown_settings(results, name) for name in results.plan}
    first = next(iter(plan.values()))
    differing = [key for key in first if len({values[key] for values in plan.values()}) > 1]
    return {
        "differing": differing,
        "rows": [
            (name, [(values[key], values[key] != first[key]) for key in differing])
            for name, values in plan.items()
        ],
        "common": [(key, value) for key, value in first.items() if key not in differing],
    }


def _shown_settings(results: Results, variant: str) -> dict[str, str]:
    settings = results.plan[variant]
    values = settings.to_dict()
    # The seeds are listed of their own; where data lie would name the machine or its user.
    for name in ("data_root", "seed", *foreign(settings)):
        del values[name]
    seeds = ", ".join(str(seed) for seed in results.seeds)
    shown = {key: spell(value) for key, value in values.items()} | {"data": words.data_name(settings)}
    return {key: plain(value) for key, value in shown.items()} | {"seeds": seeds}


def environment_table(results: Results) -> list[tuple[str, str]]:
    """What the runs were made with; values that changed between runs are all given."""
    seen: dict[str, list[str]] = {}
    for runs in results.runs.values():
        for run in runs:
            for key, value in list(run.environment.items())[:40]:
                texts = seen.setdefault(plain(key), [])
                text = plain(spell(value))
                if text not in texts:
                    texts.append(text)
    return [(key, ", ".join(texts)) for key, texts in seen.items()]


RESULT = registry.register(
    ResultType(
        "comparison.json or config.json",
        Results,
        FORMAT,
        read_results,
        run_page,
        html="report.html",
        rank=2,
        holds=is_results,
        any_folder=True,
    )
)
