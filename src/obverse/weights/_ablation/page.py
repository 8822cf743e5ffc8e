"""The page of an ablation: headline, a row per layer, curves. Not for measuring anything.

What a record says is untrusted text: it goes through the template's escaping, of bounded length; only the SVG
of `charts`, which is made of numbers and of names that it escapes, is put in as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..._core import at_most, named, pairs, plain, seconds
from ...present import ResultType, markup, registry, render_page
from . import charts
from .results import FORMAT, NAME, Ablation, Effect, Score, Treatment, read_ablation
from .words import CONTROLS, MEANINGS, about, bend_of, change, is_clear, sentences, subject, unit, value

MOST = 500  # layers in the table
CURVES = 60


@dataclass(frozen=True)
class Cell:
    """One number of the table: the score, and how it differs from the untreated net's."""

    value: str
    change: str
    clear: bool


def ablation_page(path: Path) -> str:
    """The page of a directory, or of its ablation.json."""
    return render_ablation(read_ablation(path))


def render_ablation(found: Ablation) -> str:
    """The page as text."""
    layers, more = at_most(found.layers, MOST)
    drawn = [(at, layer) for at, layer in enumerate(found.layers, start=1) if layer.curve][:CURVES]
    shown: list[Treatment] = [one.treatment for one in found.together]
    return render_page(
        "weights/_ablation/page.html.j2",
        name=named(found.model, "this net"),
        summary=plain(f"{found.summary[0].upper()}{found.summary[1:]}.", 600),
        sentences=[plain(said, 600) for said in sentences(found)],
        subject=subject(found),
        treatments=[(one, one in CONTROLS, markup(charts.swatch(one)), MEANINGS[one]) for one in shown],
        strips=markup(charts.strips(found)) if found.together else "",
        unit=unit(found.measure),
        together=_cells(found, found.together, shown),
        rows=[(layer, about(layer), bend_of(layer), _cells(found, layer.effects, shown)) for layer in layers],
        more=more,
        joint=markup(charts.joint_curve(found)) if found.together_curve else "",
        curves=[(layer, markup(charts.layer_curve(found, layer, at))) for at, layer in drawn],
        recalibrated=found.recalibration_inputs,
        settings=pairs({"seconds": seconds(found.seconds), **found.settings}),
        versions=pairs(found.versions),
    )


def _cells(found: Ablation, effects: tuple[Effect, ...], shown: list[Treatment]) -> list[list[Cell]]:
    """For each treatment its cell, and a second one where batch norms were also estimated anew."""
    given = {one.treatment: one for one in effects}
    table = []
    for treatment in shown:
        one = given.get(treatment)
        scores: list[Score | None] = [None if one is None else one.score]
        if one is not None and one.recalibrated is not None:
            scores.append(one.recalibrated)
        table.append(
            [
                Cell(value(found.measure, score), change(found.measure, score), is_clear(score))
                for score in scores
            ]
        )
    return table


RESULT = registry.register(
    ResultType(NAME, Ablation, FORMAT, read_ablation, ablation_page, html="ablation.html", rank=9)
)
