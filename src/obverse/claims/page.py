"""The page of a sweep: an overview of all claims and a card each, with its plot. Not for running anything.

What a sweep says is untrusted text: it goes through the template's escaping, of bounded length, and only
the SVG of `claims_plot` is put in as it is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._core import FIXED, at_most, counted, listed, number, pairs, plain, printable, seconds
from ..present import ResultType, markup, registry, render_page
from ._series import varied
from ._store import FORMAT, NAME, read_sweep
from .charts import Plot, plot, shared
from .results import VERDICTS, Judged, Outcome, Sweep, Verdict

# A class of the stylesheet for each; the colour never says it alone.
TONES: dict[Verdict, str] = {"held": "good", "failed": "bad", "inconclusive": "mixed", "crashed": "broken"}
LONGEST_CRASH = 4000
_ANCHOR = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class Row:
    """One setting in words."""

    setting: str
    predicted: str
    measured: str
    count: int
    note: str
    verdict: Verdict | None
    seconds: str


@dataclass(frozen=True)
class Card:
    """What the page says about one claim."""

    outcome: Outcome
    anchor: str
    tone: str
    twins: tuple[tuple[str, str, str], ...]  # the others of its group: anchor, id and reading
    plot: Plot | None
    bars: str
    common: str  # settings that are the same everywhere
    numbers: tuple[tuple[str, str], ...]
    rows: tuple[Row, ...]
    more_rows: int
    crash: str


def render_sweep(sweep: Sweep) -> str:
    """The page as text."""
    anchors = _anchors(sweep.outcomes)
    groups = [[card(one, group, anchors) for one in group] for group in grouped(sweep.outcomes)]
    return render_page(
        "claims/page.html.j2",
        scripts=("present/list.js",),
        sweep=sweep,
        groups=groups,
        total=len(sweep.outcomes),
        summary=summary(sweep),
        surprises=[(anchors[id(one)], one) for one in sweep.outcomes if one.surprising],
        verdicts=[(verdict, TONES[verdict], sweep.count(verdict)) for verdict in VERDICTS],
        tones=TONES,
        versions=pairs(sweep.versions),
        duration=duration(sweep.seconds),
        shared=markup(shared()),
    )


def summary(sweep: Sweep) -> str:
    """How many held, failed and so on, in one sentence."""
    words = {"held": "held", "failed": "failed", "inconclusive": "stayed inconclusive", "crashed": "crashed"}
    counts = [(sweep.count(verdict), words[verdict]) for verdict in VERDICTS]
    total = len(sweep.outcomes)
    if not total:
        return "No claim was run."
    said = [f"{count} {word}" for count, word in counts if count]
    kind = "a quick sweep" if sweep.quick else "a full sweep"
    return (
        f"Of {counted(total, 'claim')}, {listed(said)}, in {kind} of "
        f"{duration(sweep.seconds)} with seed {sweep.seed}."
    )


def duration(value: float) -> str:
    if value < 100:
        return f"{seconds(value)} seconds"
    return f"{value / 60:,.0f} minutes" if value < 6000 else f"{number(value / 3600)} hours"


def grouped(outcomes: Sequence[Outcome]) -> list[list[Outcome]]:
    """Readings of the same statement together, the printed one first; otherwise in the order given."""
    by_id = {one.id: one for one in reversed(outcomes)}
    group_of: dict[int, list[Outcome]] = {}
    for one in outcomes:
        twin = by_id.get(one.twin)
        mine = group_of.setdefault(id(one), [one])
        if twin is not None and twin is not one:
            theirs = group_of.setdefault(id(twin), [twin])
            if theirs is not mine:
                mine += theirs
                for other in theirs:
                    group_of[id(other)] = mine
    order = {id(one): place for place, one in enumerate(outcomes)}
    groups = list({id(group): group for group in group_of.values()}.values())
    for group in groups:
        group.sort(key=lambda one: (one.reading != "as printed", order[id(one)]))
    return sorted(groups, key=lambda group: min(order[id(one)] for one in group))


def _anchors(outcomes: Sequence[Outcome]) -> dict[int, str]:
    """The id of a claim is the name of its card, where it can be one and is the first of that name."""
    found: dict[int, str] = {}
    for place, one in enumerate(outcomes, 1):
        name = f"claim-{one.id}"
        fits = _ANCHOR.fullmatch(one.id) and name not in found.values()
        found[id(one)] = name if fits else f"unnamed-{place}"
    return found


def card(outcome: Outcome, group: Sequence[Outcome], anchors: dict[int, str]) -> Card:
    points = outcome.points
    shown, more = at_most(points, 200)
    changing = varied(points)
    common = {} if not points else {k: v for k, v in points[0].setting.items() if k not in changing}
    # the axis of a single point is its name
    names = changing or [outcome.axis]
    return Card(
        outcome=outcome,
        anchor=anchors[id(outcome)],
        tone=TONES[outcome.verdict],
        twins=tuple((anchors[id(one)], one.id, one.reading) for one in group if one is not outcome),
        plot=plot(outcome, group),
        bars=_bars(points),
        common=_assigned(common),
        numbers=tuple(
            (plain(key.replace("_", " ")), number(value)) for key, value in list(outcome.numbers.items())[:20]
        ),
        rows=tuple(_row(point, names) for point in shown),
        more_rows=more,
        crash=_lines(outcome.crash),
    )


def _row(point: Judged, names: Sequence[str]) -> Row:
    shown = {name: point.setting[name] for name in names if name in point.setting}
    predicted, mean, error = alike(point.predicted, point.mean, point.error)
    return Row(
        setting=_assigned(shown),
        predicted=predicted,
        measured=mean if point.error is None else f"{mean}{FIXED}±{FIXED}{error}",
        count=point.count,
        note=plain(point.note),
        verdict=point.verdict,
        seconds=seconds(point.seconds),
    )


def alike(predicted: float, mean: float, error: float | None) -> tuple[str, str, str]:
    """The three with the same decimals, two digits of the error; each for itself where that is no help."""
    place = 1 - math.floor(math.log10(error)) if error and error > 1e-300 else -1
    if not 0 <= place <= 6 or max(abs(mean), abs(predicted)) >= 1e9:
        return number(predicted), number(mean), "" if error is None else number(error)
    one, two, three = (f"{value:,.{place}f}".replace("-", "−") for value in (predicted, mean, error or 0.0))
    return one, two, three


def _assigned(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}{FIXED}={FIXED}{value}" for key, value in pairs(settings))


def _bars(points: Sequence[Judged]) -> str:
    """How long the bars are, in standard errors."""
    lengths = [(one.high - one.low) / 2 / one.error for one in points if one.error and one.high > one.low]
    if not lengths:
        return ""
    low, high = f"{min(lengths):.2g}", f"{max(lengths):.2g}"
    return f"±{FIXED}{low if low == high else f'{low} to {high}'} standard errors"


def _lines(text: str) -> str:
    """The end of a traceback, line by line: there the reason stands."""
    kept = printable(text, keep="\n").strip("\n")
    return kept if len(kept) <= LONGEST_CRASH else f"…{kept[-LONGEST_CRASH:]}"


def sweep_page(path: Path) -> str:
    """The page of a sweep in a file or a directory."""
    return render_sweep(read_sweep(path))


RESULT = registry.register(
    ResultType(NAME, Sweep, FORMAT, read_sweep, sweep_page, html="claims.html", rank=4)
)
