"""The page of a survey: pictures from every layer, curves, the table. Not for measuring anything.

What a survey says is untrusted text: it goes through the template's escaping, of bounded length; only the SVG
of `shadow_plot` is put in as it is, and pictures as the PNGs that `shadow_strips` made of their pixels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._core import FIXED, NONE, ObverseError, at_most, named, pairs, plain, seconds, shape
from ..present import SCALING, ResultType, data_uri, markup, registry, render_page
from ._beside import Way, order
from ._words import cosine, digits, kept, notices, percent, subject, summary
from .charts import Strips, draw, kept_panels, panels, read_pictures, why_not
from .results import FORMAT, NAME, LayerSurvey, Survey, read_survey


@dataclass(frozen=True)
class Shot:
    """One picture, and what the net calls it; `same` is None where there is nothing to compare."""

    uri: str
    label: str
    same: bool | None
    alt: str


@dataclass(frozen=True)
class Column:
    """The images of one layer by one way down; none where it was not drawn."""

    way: Way
    shots: tuple[Shot, ...]


@dataclass(frozen=True)
class Row:
    """The images of one layer, side by side."""

    number: int
    layer: LayerSurvey
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class Gallery:
    """The pictures of the page, or the sentence that says why there are none."""

    inputs: tuple[Shot, ...] = ()
    ways: tuple[Way, ...] = ()
    rows: tuple[Row, ...] = ()
    missing: str = ""
    left_out: int = 0  # layers without a picture
    steps: int = 0  # of the refined images
    notes: tuple[str, ...] = ()  # what is not there, from the file


def survey_page(path: Path) -> str:
    """The page of a survey's directory, or of its shadow.json with the pictures beside it."""
    survey = read_survey(path)
    return render_survey(survey, gallery(survey, path if path.is_dir() else path.parent))


def gallery(survey: Survey, folder: Path) -> Gallery:
    """The pictures that lie beside a survey."""
    if reason := why_not(survey.input_shape):
        return Gallery(missing=f"No pictures: {plain(reason)}.")
    try:
        strips = read_pictures(folder)
    except ObverseError as error:
        said = str(error).replace(f"{folder}/", "")  # where it lies would name the machine or its user
        return Gallery(missing=f"No pictures: {plain(said, 400)}.")
    if strips is None:
        return Gallery(missing="No pictures: there are none beside the survey.")
    return shots(survey, strips)


def shots(survey: Survey, strips: Strips) -> Gallery:
    """The pictures with their labels; a row for a layer that the survey does not have is left out."""
    told = strips.told
    numbers = {layer.name: number for number, layer in reversed(list(enumerate(survey.layers, start=1)))}
    inputs = tuple(
        _shot(png, said, given, f"Input {place}, {_quoted(given)}")
        for place, (png, said, given) in enumerate(
            zip(strips.inputs, told.said, told.given, strict=True), start=1
        )
    )
    kept = [(row, pngs) for row, pngs in zip(told.rows, strips.rows, strict=True) if row.layer in numbers]
    ways = tuple(order({name for row, _ in kept for name in row.ways}))
    rows = []
    for row, pngs in kept:
        number = numbers[row.layer]
        drawn = dict(zip(row.ways, zip(pngs, row.labels, strict=True), strict=True))
        columns = tuple(
            Column(way, _shots(way, number, told.said, *drawn.get(way.name, ((), ())))) for way in ways
        )
        rows.append(Row(number, survey.layers[number - 1], columns))
    left_out = len(survey.layers) - len(rows)
    notes = tuple(plain(one, 400) for one in told.missing)
    return Gallery(inputs, ways, tuple(rows), left_out=left_out, steps=told.steps, notes=notes)


def _shots(
    way: Way, number: int, said: Sequence[str], pngs: Sequence[bytes], labels: Sequence[str]
) -> tuple[Shot, ...]:
    found = zip(pngs, labels, said, strict=True) if pngs else ()
    return tuple(
        _shot(png, label, other, f"{way.words} of input {place} from layer {number}")
        for place, (png, label, other) in enumerate(found, start=1)
    )


def _shot(png: bytes, label: str, other: str, alt: str) -> Shot:
    uri = data_uri(png)
    known = bool(label) and bool(other)
    said = f"; the net says {_quoted(label)}" if label else ""
    return Shot(uri, named(label), label == other if known else None, alt + said)


def _quoted(label: str) -> str:
    return f"“{named(label)}”"


def render_survey(survey: Survey, pictures: Gallery) -> str:
    """The page as text."""
    shown, more = at_most(survey.layers, 1000)
    return render_page(
        "shadow/page.html.j2",
        survey=survey,
        summary=summary(survey),
        notices=notices(survey),
        subject=subject(survey),
        gallery=pictures,
        count=max(1, len(pictures.inputs)),
        ways=len(pictures.ways),
        scaling=SCALING,
        panels=[(panel, markup(draw(panel))) for panel in panels(survey)],
        kept=kept(survey),
        kept_panels=[(panel, markup(draw(panel))) for panel in kept_panels(survey)],
        controls=controls(survey),
        kept_headings=KEPT,
        kept_rows=[(one.name, kept_cells(one)) for one in shown],
        headings=HEADINGS,
        rows=[(one.name, cells(number, one)) for number, one in enumerate(shown, start=1)],
        more=more,
        spread=f"{100 * 0.5 / survey.samples**0.5:.1f}" if survey.samples > 0 else NONE,
        settings=pairs(settings(survey)),
        versions=pairs(survey.versions),
        percent=percent,
        shape=shape,
    )


# (group, heading, what the cell is called where the table is folded for a phone)
HEADINGS = (
    ("", "h", "shape of h"),
    (f"same label,{FIXED}%", "net", f"same label,{FIXED}%"),
    (f"same label,{FIXED}%", "shuffled", "… shuffled weights"),
    (f"same label,{FIXED}%", "chance", "… by chance"),
    ("recovery error", "net", "recovery error"),
    ("recovery error", "(mean’s)", "… of the mean of h"),
    ("recovery error", "shuffled", "… shuffled weights"),
    ("recovery error", "(mean’s)", "… of the mean of its h"),
    ("cosine", "net", "cosine"),
    ("cosine", "shuffled", "… shuffled weights"),
    ("scale", "calibrated", "scale, calibrated"),
    ("scale", "theory’s", "… theory’s"),
    ("scale", "level", "level"),
)


def cells(number: int, layer: LayerSurvey) -> list[str]:
    """A row of the table as text, in the order of HEADINGS."""
    own, shuffled = layer.own, layer.shuffled
    return [
        shape(layer.shape),
        percent(own.agreement),
        percent(shuffled.agreement),
        percent(own.chance),
        digits(own.error),
        f"({digits(own.varying)})",
        digits(shuffled.error),
        f"({digits(shuffled.varying)})",
        cosine(own.cosine),
        cosine(shuffled.cosine),
        digits(layer.scale),
        digits(layer.theory_scale),
        digits(layer.level),
    ]


KEPT = (
    ("recovery error", "net", "recovery error, ± standard error"),
    ("recovery error", "shuffled", "… shuffled weights"),
    ("recovery error", "untrained", "… untrained"),
    ("recovery error", "other input", "… of h of another input"),
    ("recovery error", "mean h", "… of the mean of h"),
    ("recovery error", "mean input", "… of h of the mean input"),
    (f"found by h,{FIXED}%", "net", f"found by h,{FIXED}%"),
    (f"found by h,{FIXED}%", "shuffled", "… shuffled weights"),
    (f"found by h,{FIXED}%", "untrained", "… untrained"),
    (f"found by pixels,{FIXED}%", "net", f"found by pixels,{FIXED}%"),
    (f"found by pixels,{FIXED}%", "shuffled", "… shuffled weights"),
    (f"found by pixels,{FIXED}%", "untrained", "… untrained"),
    ("centred cosine", "net", "centred cosine, ± standard error"),
    ("centred cosine", "shuffled", "… shuffled weights"),
    ("centred cosine", "untrained", "… untrained"),
    (f"same label,{FIXED}%", "untrained", f"same label, untrained,{FIXED}%"),
    ("spread", "net", "spread of samples"),
)


def kept_cells(layer: LayerSurvey) -> list[str]:
    """A row of the table of what is kept, in the order of KEPT."""
    own, shuffled, fresh = layer.own, layer.shuffled, layer.untrained

    def untrained(name: str) -> float | None:
        value: float | None = None if fresh is None else getattr(fresh, name)
        return value

    def with_error(value: str, error: str) -> str:
        return value if error == NONE else f"{value}{FIXED}±{FIXED}{error}"

    return [
        with_error(digits(own.error), digits(own.error_se)),
        digits(shuffled.error),
        digits(untrained("error")),
        digits(own.unrelated),
        digits(own.varying),
        digits(own.blank),
        *map(percent, (own.found, shuffled.found, untrained("found"))),
        *map(percent, (own.found_pixels, shuffled.found_pixels, untrained("found_pixels"))),
        with_error(cosine(own.centred), digits(own.centred_se)),
        cosine(shuffled.centred),
        cosine(untrained("centred")),
        percent(untrained("agreement")),
        digits(own.spread),
    ]


def controls(survey: Survey) -> list[tuple[str, str]]:
    """The curves of the panels, as (class, words)."""
    fresh = any(one.untrained is not None for one in survey.layers)
    return [
        ("own", "this net"),
        ("shuffled", "weights shuffled"),
        *([("untrained", "untrained")] if fresh else []),
        ("unrelated", "h of another input"),
        ("mean", "the mean of h"),
        ("blank", "h of the mean input"),
    ]


def settings(survey: Survey) -> dict[str, Any]:
    """How the shadows were made."""
    return {
        "reverse": survey.reverse,
        "scales": "none; maps fitted on training inputs"
        if survey.reverse == "fitted"
        else "calibrated on training inputs"
        if survey.calibrated
        else "the theory's",
        "keep": survey.keep,
        "refine": survey.refine,
        "smooth": survey.smooth,
        "match norm": survey.match_norm,
        "switches": survey.switches,
        "seed": survey.seed,
        "inputs": survey.samples,
        "input shape": shape(survey.input_shape),
        "seconds": seconds(survey.seconds),
    }


RESULT = registry.register(
    ResultType(NAME, Survey, FORMAT, read_survey, survey_page, html="shadow.html", rank=5)
)
