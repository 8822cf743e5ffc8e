"""The page of a diversity test: verdict first, then the evidence, with pictures. Not for measuring.

What a record says is untrusted text: it goes through the template's escaping, of bounded length; only the SVG
of `diversity_plot`, which is made of numbers, is put in as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._core import ObverseError, named, number, pairs, plain, seconds, shape, unbroken
from ..present import ResultType, axis_for, data_uri, markup, registry, render_page
from ._findings import FINDINGS, findings
from ._numbers import about, down_to, percent, up_to, with_error
from ._verdict import TITLE, copying, levels, notices, outlook, subject
from ._words import (
    birthday_rows,
    command,
    dimension_said,
    memorization_rows,
    quality_rows,
    skipped,
    smoothness_rows,
    unsettled,
)
from .charts import Line, Row, lines, read_pictures, why_not
from .results import FORMAT, NAME, Diversity, LabelFound, read_diversity


@dataclass(frozen=True)
class Shot:
    """A row of pictures with what stands below it."""

    uri: str
    alt: str
    note: str
    width: int
    height: int


@dataclass(frozen=True)
class Gallery:
    """The pictures beside a record, or the sentence that says why there are none."""

    rows: Mapping[str, tuple[Row, ...]]
    missing: str = ""


def diversity_page(path: Path) -> str:
    """The page of a directory, or of its diversity.json with the pictures beside it."""
    found = read_diversity(path)
    return render_diversity(found, gallery(found, path if path.is_dir() else path.parent))


def gallery(found: Diversity, folder: Path) -> Gallery:
    """The pictures that lie beside a record."""
    if reason := why_not(found.shape):
        return Gallery({}, f"No pictures: {plain(reason)}.")
    try:
        read = read_pictures(folder)
    except ObverseError as error:
        said = str(error).replace(f"{folder}/", "")  # where it lies would name the machine or its user
        return Gallery({}, f"No pictures: {plain(said, 400)}.")
    return Gallery(read, "" if read else "No pictures: there are none beside the record.")


def render_diversity(found: Diversity, pictures: Gallery | None = None) -> str:
    """The page as text."""
    pictures = Gallery({}, "No pictures.") if pictures is None else pictures
    return render_page(
        "diversity/page.html.j2",
        found=found,
        b=found.birthday,
        features=named(found.features),
        title=TITLE,
        subject=subject(found),
        verdict=fixed(found.verdict),
        findings=kept(findings(found)),
        headings=FINDINGS,
        confidence=f"{100 * found.birthday.confidence:.4g}",
        outlook=[fixed(sentence) for sentence in outlook(found)],
        notices=[fixed(sentence) for sentence in notices(found)],
        copying=fixed(copying(found)),
        missing=pictures.missing,
        shots=shots(found, pictures.rows),
        pixelated=len(found.shape) == 3 and max(found.shape[1:]) <= 64,
        support=markup(support(found)),
        birthday=kept(birthday_rows(found.birthday)),
        memorization=[] if found.memorization is None else kept(memorization_rows(found.memorization)),
        levels="" if found.memorization is None else fixed(levels(found.memorization)),
        quality=kept(quality_rows(found)),
        dimension=markup(dimensions(found)),
        unsettled=unsettled(found.dimension) or unsettled(found.dimension_real),
        smoothness=kept(smoothness_rows(found)),
        reach="" if found.directions is None else f"{found.directions.reach:.3g}",
        accuracy=fixed(percent(found.label_accuracy)),
        skipped=skipped(found),
        command=command(found),
        settings=pairs(settings(found)),
        versions=pairs(found.versions),
    )


def fixed(text: str) -> str:
    return unbroken(text, " %", " ± ", " = ", " < ", "≤ ")


def kept(rows: Sequence[tuple[str, ...]]) -> list[list[str]]:
    return [[fixed(cell) for cell in row] for row in rows]


def settings(found: Diversity) -> dict[str, Any]:
    """How it was made."""
    made: dict[str, Any] = {
        "samples for the birthday test": f"{found.birthday.samples:,}",
        "samples for the other tests": f"{found.samples:,}",
        "samples there are": "as many as one likes" if found.pool is None else f"{found.pool:,}",
        "shape of a sample": shape(found.shape),
        "training images": "none" if found.train is None else f"{found.train:,}",
        "held-out real data": "none" if found.real is None else f"{found.real:,}",
    }
    made |= {key: value for key, value in found.settings.items() if value is not None}
    return {**made, "seconds": seconds(found.seconds)}


# --- pictures ---


def shots(found: Diversity, rows: Mapping[str, tuple[Row, ...]]) -> dict[str, list[Shot]]:
    """The rows of each kind with their words; a row that the record does not know has none."""
    b = found.birthday
    words: dict[str, list[tuple[str, str]]] = {
        "samples": [("Some samples", "")] * 2,
        "pairs": [
            (
                f"Two samples of one batch at the distance {number(one.distance)}",
                f"{number(one.distance)}" + ("" if one.distance > b.threshold.distance else " · same"),
            )
            for one in b.closest
        ],
        "nearest": [
            (
                f"A sample, and the training image at the distance {number(one.distance)} from it",
                number(one.distance),
            )
            for one in (() if found.memorization is None else found.memorization.closest)
        ],
        "paths": [(f"Pictures on path {at} between two seeds", "") for at in range(1, 41)],
        "directions": [],
        "labels": [
            (
                f"Pictures along the direction of {named(one.label)}",
                f"{named(one.label)} · {grows(one)}",
            )
            for one in found.labels
        ],
    }
    if found.directions is not None:
        shares = found.directions.shares or (None,) * len(found.directions.strengths)
        words["directions"] = [
            (
                f"Pictures along direction {at}",
                f"{number(size)} a step" + ("" if share is None else f", {percent(share)} of all change"),
            )
            for at, (size, share) in enumerate(zip(found.directions.strengths, shares, strict=True), start=1)
        ]
    return {
        kind: [
            Shot(
                data_uri(row.png),
                alt,
                fixed(note),
                row.width,
                row.height,
            )
            for row, (alt, note) in zip(given, words[kind], strict=False)
        ]
        for kind, given in ({kind: rows.get(kind, ()) for kind in words}).items()
    }


def grows(one: LabelFound) -> str:
    """By how much a label becomes likelier, on seeds that have not chosen the direction."""
    return f"{with_error(one.slope, one.error)} a step, up at {percent(one.agreement)} of seeds"


# --- figures ---


def support(found: Diversity) -> str:
    """The numbers of pictures on one axis."""
    b, e = found.birthday, found.birthday.effective
    shown = []
    if b.support_bound is not None:
        shown.append(
            Line(
                "effective support, at most",
                up_to(b.support_bound, 3),
                "own",
                high=b.support_bound,
                open_low=True,
            )
        )
    if b.printed_bound is not None:
        shown.append(
            Line(
                "the printed closed form",
                up_to(b.printed_bound, 3),
                "beside",
                high=b.printed_bound,
                open_low=True,
            )
        )
    if b.support_at_least is not None:
        shown.append(
            Line(
                "different pictures, at least",
                down_to(b.support_at_least, 3),
                "own",
                low=b.support_at_least,
                open_high=True,
            )
        )
    if e.value is not None:
        shown.append(Line("effective support, estimated", about(e.value), "own", e.value, e.low, e.high))
    if b.threshold.real_support is not None:
        real = b.threshold.real_support
        shown.append(Line("the real data, at the same distance", about(real), "beside", real))
    if found.train is not None:
        shown.append(Line("training images", f"{found.train:,}", "beside", float(found.train)))
    if not shown:
        return ""
    values = [
        value
        for line in shown
        for value in (line.value, line.low, line.high)
        if value is not None and value > 0
    ]
    return lines("support", "How many pictures, on a logarithmic axis", shown, axis_for(values, span=1.5))


def dimensions(found: Diversity) -> str:
    shown = [
        Line(words, dimension_said(one), kind, one.value, one.low, one.high)
        for words, kind, one in (
            ("samples", "own", found.dimension),
            ("data", "beside", found.dimension_real),
        )
        if one is not None
    ]
    if not shown:
        return ""
    ends = [value for line in shown for value in (line.low, line.high) if value is not None]
    return lines(
        "dimension",
        "Intrinsic dimension with its interval",
        shown,
        axis_for([0.0, *ends], from_zero=True, span=1e9),
    )


RESULT = registry.register(
    ResultType(NAME, Diversity, FORMAT, read_diversity, diversity_page, html="diversity.html", rank=8)
)
