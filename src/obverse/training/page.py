"""One self-contained HTML page from a run (of a classifier or a generator), a comparison, a search, an audit,
claims, shadows, a memory, a ladder or a diversity test.

Not for computing results.

Everything that comes from a directory is untrusted text: it goes through the template's escaping, and
only the SVG that `figures` draws is put in as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._core import text
from .._core.errors import BadInput, ObverseError
from .._core.files import write_text
from .._core.text import plain, spell
from ..claims._store import NAME as CLAIMS
from ..claims._store import read_sweep
from ..claims.page import render_sweep
from ..data import Dataset, load
from ..diversity.page import PAGE as DIVERSITY_PAGE
from ..diversity.page import diversity_page
from ..diversity.results import NAME as DIVERSITY
from ..identity._recall import NAME as RECALL
from ..identity.page import PAGE, recall_page
from ..ladder.page import ladder_page
from ..ladder.results import NAME as LADDER
from ..present import palette
from ..present.png import SCALING, data_uri
from ..present.template import environment
from ..shadow.page import page_of
from ..shadow.results import NAME as SURVEY
from ..weights._reading import NAME as AUDIT
from ..weights._reading import read_audit
from ..weights.page import render_audit
from . import _words as words
from ._compare import Row
from ._generators.page import PAGE as GENERATOR_PAGE
from ._generators.page import generator_page
from ._rundir import holds_generator
from ._search.page import PAGE as SEARCH_PAGE
from ._search.page import search_page
from ._search.plan import NAME as SEARCH
from ._search.results import NAME as TRIALS
from ._settings import foreign
from ._shown import Results, is_results, read_results
from .charts import figures
from .charts._images import COLUMNS, ZERO, check_images, choose_run, shadow_pictures, triple_png

AGAINST = "against.json"
MAX_CLASSES = 12
MAX_PER_CLASS = 4
LONGEST = 64  # pixels a side; more would not be seen at the size of the page
SHADOW_COLUMNS = (3, 4)  # of the table, left out where no shadows were measured
TILES = (2, 3, 4, 7)  # what a single run shows of it
IMAGE_BYTES = 450_000  # of raw pixels; noise does not compress, and the page should stay below 1 MB


@dataclass(frozen=True)
class Gallery:
    """The pictures of the page, or the sentence that says why there are none."""

    source: str
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    note: str
    pixelated: bool


def build(path: Path, out: Path | None = None, *, data: Dataset | None = None) -> Path:
    """Write the page of a run or comparison directory, `report.html` in it, of a search, `search.html`, of
    an audit, `audit.html`, of a sweep of claims, `claims.html`, of a survey of shadows, `shadow.html`, of a
    memorized data set, `memorize.html`, of a ladder, `ladder.html`, or of a diversity test, `diversity.html`.

    An audit is its audit.json, or a directory that holds one and no run; an against.json beside it is the
    audit that it is compared with. A sweep is its claims.json, or a directory that holds one and neither; a
    survey is its shadow.json, or a directory that holds one and none of these; a memorized data set is its
    memorize.json, a ladder its ladder.json and a diversity test its diversity.json, or a directory that holds
    nothing else that has a page.
    `out` is another place. `data` saves loading the data set for the pictures of a run again; where it
    cannot be loaded, the page says so.
    """
    path = Path(path)
    if holds_generator(path):
        target = _target(out, path / GENERATOR_PAGE)
        write_text(target, generator_page(path, data))
        return target
    if path.name == TRIALS or (path / SEARCH).is_file():
        target = _target(out, (path if path.is_dir() else path.parent) / SEARCH_PAGE)
        write_text(target, search_page(path))
        return target
    if _is_diversity(path):
        target = _target(out, (path if path.is_dir() else path.parent) / DIVERSITY_PAGE)
        write_text(target, diversity_page(path))
        return target
    if _is_ladder(path):
        target = _target(out, (path if path.is_dir() else path.parent) / "ladder.html")
        write_text(target, ladder_page(path))
        return target
    if _is_recall(path):
        target = _target(out, (path if path.is_dir() else path.parent) / PAGE)
        write_text(target, recall_page(path))
        return target
    if _is_survey(path):
        target = _target(out, (path if path.is_dir() else path.parent) / "shadow.html")
        write_text(target, page_of(path))
        return target
    if _is_sweep(path):
        folder = path if path.is_dir() else path.parent
        target = _target(out, folder / "claims.html")
        write_text(target, render_sweep(read_sweep(path)))
        return target
    if path.is_file() or ((path / AUDIT).is_file() and not is_results(path)):
        folder = path if path.is_dir() else path.parent
        audit, against = read_audit(path), folder / AGAINST
        other = read_audit(against) if against.is_file() else None
        target = _target(out, folder / "audit.html")
        write_text(target, render_audit(audit, other))
        return target
    results = read_results(path)
    target = _target(out, path / "report.html")
    write_text(target, render(results, gallery(path, data) if results.shadowed else None))
    return target


def _is_sweep(path: Path) -> bool:
    """A file by its name; a directory if it holds one and nothing else that has a page."""
    if path.is_file():
        return path.name == CLAIMS
    return (path / CLAIMS).is_file() and not (path / AUDIT).is_file() and not is_results(path)


def _is_survey(path: Path) -> bool:
    if path.is_file():
        return path.name == SURVEY
    others = (path / CLAIMS).is_file() or (path / AUDIT).is_file() or is_results(path)
    return (path / SURVEY).is_file() and not others


def _is_recall(path: Path) -> bool:
    if path.is_file():
        return path.name == RECALL
    others = any((path / name).is_file() for name in (CLAIMS, AUDIT, SURVEY)) or is_results(path)
    return (path / RECALL).is_file() and not others


def _is_ladder(path: Path) -> bool:
    if path.is_file():
        return path.name == LADDER
    others = any((path / name).is_file() for name in (CLAIMS, AUDIT, SURVEY, RECALL)) or is_results(path)
    return (path / LADDER).is_file() and not others


def _is_diversity(path: Path) -> bool:
    if path.is_file():
        return path.name == DIVERSITY
    names = (CLAIMS, AUDIT, SURVEY, RECALL, LADDER)
    return (path / DIVERSITY).is_file() and not (
        any((path / name).is_file() for name in names) or is_results(path)
    )


def _target(out: Path | None, usual: Path) -> Path:
    target = usual if out is None else Path(out)
    if target.is_dir():
        target = target / usual.name
    if not target.parent.is_dir():
        raise BadInput(f"a directory for {target}", got=f"no {target.parent}", do="make it first")
    return target


def render(results: Results, pictures: Gallery | None) -> str:
    """The page as text; without pictures where no shadows were measured."""
    from markupsafe import Markup

    from .. import __version__

    names = list(results.plan)
    titles = headings(results)
    kept = [column for column in range(len(titles)) if results.shadowed or column not in SHADOW_COLUMNS]
    rows = [cells(row) for row in results.table.rows]
    return (
        environment()
        .get_template("training/page.html.j2")
        .render(
            results=results,
            title=words.title(results),
            summary=words.summary(results),
            missing=words.missing(results),
            headings=[titles[column] for column in kept],
            rows=[[row[column] for column in kept] for row in rows],
            tiles=[(titles[column], rows[0][column]) for column in TILES if column in kept],
            figures=[
                (shown, [(panel, Markup(panel.svg)) for panel in shown.panels]) for shown in figures(results)
            ],
            swatches={name: Markup(palette.swatch(index)) for index, name in enumerate(names)},
            gallery=pictures,
            columns=COLUMNS,
            scaling=SCALING,
            settings=settings_table(results),
            environment=environment_table(results),
            palette=palette,
            version=__version__,
        )
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
        "seconds a run" if results.is_comparison else "seconds of training",
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
    """The pictures, few and small enough for a page."""
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
        return Gallery("", (), f"No pictures: {error}.", False)
    source = ""
    if (path / "comparison.json").is_file():
        source = f"variant {run.path.parent.name}, seed {settings.seed}"
    rows = tuple(
        (one.name, tuple(data_uri(triple_png(triple, LONGEST)) for triple in one.pixels)) for one in found
    )
    notes = [ZERO] if any(one.has_zero_shadow for one in found) else []
    if count < len(data.classes):
        notes.append(f"The first {count} of {len(data.classes)} classes.")
    return Gallery(source, rows, " ".join(notes), pixelated=max(height, width) <= LONGEST)


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
