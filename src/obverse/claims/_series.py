"""The curves of a claim: which settings belong together, where they stand, what is predicted there.

Not for drawing them. Settings and names are of unknown origin, and of bounded number and length here.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .._core import plain, spell
from .results import Judged, Outcome

MOST_POINTS = 600
MOST_SERIES = 14  # as many as there are markers
MOST_CATEGORIES = 30
LONGEST_NAME = 40


@dataclass(frozen=True)
class Series:
    """Points of one curve in the order of the axis, with the predictions as they are drawn."""

    name: str  # "k = 10"; empty where there is one curve
    points: tuple[Judged, ...]
    places: tuple[float, ...]  # along the axis: its value, or the number of a category
    predicted: tuple[float, ...]


@dataclass(frozen=True)
class Curves:
    """All that is drawn of a claim; `categories` are the names along an axis that has no numbers."""

    series: tuple[Series, ...]
    categories: tuple[str, ...]
    fitted: tuple[tuple[float, float], ...]
    constant: str  # how the free constant of a rate was chosen; empty where there is none
    left_out: int  # points


def curves(outcome: Outcome) -> Curves:
    finite = [
        point for point in outcome.points if math.isfinite(point.mean) and math.isfinite(point.predicted)
    ]
    shown = finite[:MOST_POINTS]
    values: list[Any] = [point.setting.get(outcome.axis) for point in shown]
    numeric = all(_is_number(value) for value in values) and len(set(map(str, values))) > 1
    names = [] if numeric else list(dict.fromkeys(plain(spell(value), LONGEST_NAME) for value in values))
    names = names[:MOST_CATEGORIES]
    grouped: dict[str, list[tuple[float, Judged]]] = defaultdict(list)
    splitting = _splitting(outcome, shown)
    for point, value in zip(shown, values, strict=True):
        label = plain(spell(value), LONGEST_NAME)
        if not numeric and label not in names:
            continue
        grouped[_name(point, splitting)].append((float(value) if numeric else names.index(label), point))
    kept = dict(list(grouped.items())[:MOST_SERIES])
    ordered = {name: sorted(group, key=lambda pair: pair[0]) for name, group in kept.items()}
    constants, how = _constants(outcome, list(ordered.values()))
    series = tuple(
        Series(
            name if len(grouped) > 1 else "",
            tuple(point for _, point in group),
            tuple(place for place, _ in group),
            tuple(constant * point.predicted for _, point in group),
        )
        for (name, group), constant in zip(ordered.items(), constants, strict=True)
    )
    fitted = [pair for pair in outcome.curve[:MOST_POINTS] if all(map(math.isfinite, pair))]
    drawn = sum(len(one.points) for one in series)
    return Curves(series, tuple(names), tuple(fitted) if numeric else (), how, len(outcome.points) - drawn)


def varied(points: Sequence[Judged]) -> list[str]:
    """The names of the settings that are not the same at every point."""
    names = dict.fromkeys(name for point in points for name in point.setting)
    return [name for name in names if len({str(point.setting.get(name)) for point in points}) > 1]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _splitting(outcome: Outcome, points: Sequence[Judged]) -> list[str]:
    """The settings that tell curves apart: the claim's own, and what differs between points at one place."""
    own = [outcome.series] if outcome.series else []
    places: dict[tuple[str, str], list[Judged]] = defaultdict(list)
    for point in points:
        places[str(point.setting.get(outcome.axis)), str(point.setting.get(outcome.series))].append(point)
    more = dict.fromkeys(name for group in places.values() for name in varied(group))
    return [*own, *more]


def _name(point: Judged, names: Sequence[str]) -> str:
    return ", ".join(
        f"{plain(name, LONGEST_NAME)} = {plain(spell(point.setting.get(name)), LONGEST_NAME)}"
        for name in names
    )


def _constants(outcome: Outcome, groups: Sequence[Sequence[tuple[float, Judged]]]) -> tuple[list[float], str]:
    """What each curve of predictions is multiplied by, and the words for it.

    An exponent's constant is fitted, for all curves together. A rate goes through the end of its curve at
    which its variable is smallest, so that what grows faster leaves it upwards: which end, the growth of
    the ratio along the axis tells (the rule's variable may run against the axis, as k/t does against t).
    """
    pairs = [(place, point) for group in groups for place, point in group]
    positive = all(point.mean > 0 and point.predicted > 0 for _, point in pairs)
    what = outcome.kind
    if what in ("value", "bound") or not pairs or not positive:
        return [1.0] * len(groups), ""
    if what == "exponent":
        logs = [math.log(point.mean) - math.log(point.predicted) for _, point in pairs]
        return [_exp(sum(logs) / len(logs))] * len(groups), "its constant fitted"
    middle = sum(place for place, _ in pairs) / len(pairs)
    along = sum(
        (place - middle) * (math.log(point.mean) - math.log(point.predicted)) for place, point in pairs
    )
    end = -1 if along * outcome.numbers.get("growth", 0.0) < 0 else 0
    ratios = [_exp(math.log(group[end][1].mean) - math.log(group[end][1].predicted)) for group in groups]
    return ratios, f"its free constant chosen to meet the {'last' if end else 'first'} point"


def _exp(value: float) -> float:
    return math.exp(min(max(value, -600.0), 600.0))
