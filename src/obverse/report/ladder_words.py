"""What a ladder says, in plain sentences, and its tables as text. Not for computing it.

Words from a file are of bounded length here; escaping them is the page's affair.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from ..data import NAMES
from ..ladder.results import EdgeFound, Explained, Gaps, Ladder, LevelFound, Measured
from .audit_numbers import number
from .template import plain, spell
from .words import listed

NONE = "–"
EXACT = 1e-9  # relative: float64 rounds at 1e-16, and sums of a million terms at some 1e-12
LIKE, PARTLY = 0.9, 0.5  # shares of ΔW from which on a level behaves like the theory, or in part
ROUNDED = 0.005  # of a share: half a percent
BEYOND = 0.05  # what a distance between distributions must be beyond chance, to be called one
LONGEST_NAME = 80
MOST_ROWS = 60  # edges in the table


def name(found: Ladder) -> str:
    return plain(found.subject, LONGEST_NAME) or "no name"


def title(found: Ladder) -> str:
    if found.kind == "net":
        return f"A local net on {name(found)}: what its events tell"
    return f"The ladder of {name(found)}"


def share(value: float | None) -> str:
    """A share in percent; below nothing is all the same."""
    if value is None:
        return NONE
    if value < -ROUNDED:
        return "<0"
    if value < ROUNDED:
        return "0"
    if value >= 1 - EXACT:
        return "100"
    return f"{min(100 * value, 99.9):.1f}" if value > 0.99 else f"{100 * value:.0f}"


def gap(value: float | None) -> str:
    """A gap; what is only rounding is a power of ten."""
    if value is None:
        return NONE
    return f"{value:.2f}" if value >= 0.0095 else f"{value:.3f}" if value >= 0.00095 else number(value)


def is_exact(found: Ladder) -> bool:
    return max(found.worst, found.worst_recursive) <= EXACT


def level_name(found: Ladder, level: LevelFound) -> str:
    """Which edges: those up into the regions of this level."""
    if level.level == max(one.level for one in found.levels):
        return f"{level.level}, the top"
    if level.level == 1 and found.kind == "net":
        return "1, above the pixels"
    return f"{level.level}"


def verdict(found: Ladder) -> str:
    """One sentence: do events tell what inputs do?"""
    return _of_net(found) if found.kind == "net" else _of_teacher(found)


def _inputs(found: Ladder) -> str:
    return f"{found.inputs:,} drawn inputs" if found.sampled else f"all {found.inputs:,} inputs"


def _of_teacher(found: Ladder) -> str:
    edges = "the edge" if found.edges_total == 1 else f"all {found.edges_total:,} edges"
    if is_exact(found):
        return (
            f"Exact: on {edges}, ΔW from events alone equals ΔW from {_inputs(found)}, to "
            f"{number(max(found.worst, found.worst_recursive))} of its size."
        )
    worst = max(found.levels, key=lambda one: one.worst.weight)
    return (
        f"Not exact: ΔW from events alone is off by up to {gap(found.worst)} of its size edge by edge (level "
        f"{worst.level}) and by {gap(found.worst_recursive)} through the whole recursion, against "
        f"{_inputs(found)}."
    )


def _of_net(found: Ladder) -> str:
    told = [_told(found, level) for level in found.levels]
    events = found.settings.get("events")
    count = f"With {events} events a region" if isinstance(events, int) else "Of the net"
    return f"{count}, events explain {listed(told)}{_before(found)}."


def _told(found: Ladder, level: LevelFound) -> str:
    value = level.explained.weight
    much = "nothing" if value is None or value < ROUNDED else f"{share(value)} %"
    what = " of ΔW" if level is found.levels[0] else ""
    return f"{much}{what} {_place(found, level)}"


def _place(found: Ladder, level: LevelFound) -> str:
    if level is found.levels[-1]:
        return "at the top"
    return "above the pixels" if level.level == 1 and found.kind == "net" else f"at level {level.level}"


def _before(found: Ladder) -> str:
    start = beside(found, net="start")
    if start is None:
        return ""
    values = [share(level.explained.weight) for level in start.levels]
    return f"; before training it was {listed(values)} %"


def beside(
    found: Ladder, *, net: str = "trained", images: str = "clustered", shuffled: bool = False
) -> Measured | None:
    """The measurement with as many events as the levels have, under other conditions."""
    events = found.settings.get("events")
    for one in found.measured:
        if (one.net, one.images, one.shuffled, one.events) == (net, images, shuffled, events):
            return one if len(one.levels) == len(found.levels) else None
    return None


def outlook(found: Ladder) -> list[str]:
    """What it comes from."""
    if found.kind == "net":
        return [*_behaviour(found), *_control(found)]
    return [] if is_exact(found) else [_conditions(found)]


def _behaviour(found: Ladder) -> list[str]:
    groups: dict[str, list[str]] = {"like the theory": [], "in part": [], "not": []}
    for level in found.levels:
        value = level.explained.weight or 0.0
        how = "like the theory" if value >= LIKE else "in part" if value >= PARTLY else "not"
        groups[how].append(str(level.level))
    parts = [
        f"{how}: " + (f"level{'s' if len(own) > 1 else ''} {listed(own)}" if own else "no level")
        for how, own in groups.items()
        if own or how == "like the theory"
    ]
    said = f"Behaves {'; '.join(parts)}."
    forward = [one.explained.forward for one in found.levels[1:] if one.explained.forward is not None]
    backward = [one.explained.backward for one in found.levels[1:] if one.explained.backward is not None]
    if forward and backward:
        said += f" Of what goes up {_range(forward)} is told, of what comes down {_range(backward)}."
    return [said]


def _range(values: Sequence[float]) -> str:
    low, high = share(min(values)), share(max(values))
    if max(values) < ROUNDED:
        return "nothing"
    if min(values) < ROUNDED:
        return f"at most {high} %"
    return f"{low} %" if low == high else f"{low} to {high} %"


def _control(found: Ladder) -> list[str]:
    dealt = beside(found, shuffled=True)
    if dealt is None:
        return []
    values = [level.explained.weight for level in dealt.levels if level.explained.weight is not None]
    told = _range([0.0, *values])
    return [f"Events dealt to the images at random, the control, explain {told} of ΔW."]


def _conditions(found: Ladder) -> str:
    """Which conditions of the theorem hold and which do not."""
    worst = {
        "focus": max(_beyond_chance(one.worst) for one in found.levels),
        "broadness": max(one.worst.broadness for one in found.levels),
        "decorrelation": max(
            max(one.decorrelation or 0, one.decorrelation_back or 0) for one in found.regions
        ),
        "the fourth condition": max(one.worst.fourth for one in found.levels),
    }
    holds = [what for what, value in worst.items() if value <= EXACT]
    fails = [f"{what} (by up to {gap(value)})" for what, value in worst.items() if value > EXACT]
    said = f"{listed(fails)} {'fails' if len(fails) == 1 else 'fail'}" if fails else ""
    kept = f"{listed(holds)} {'holds' if len(holds) == 1 else 'hold'}" if holds else ""
    if found.sampled and holds:
        kept += ", as far as drawn inputs tell"
    text = "; ".join(part for part in (said, kept) if part)
    return f"{text[:1].upper()}{text[1:]}."


def _beyond_chance(gaps: Gaps) -> float:
    """The gap of focus; 0 where drawn inputs show no more than chance does."""
    focus, chance = gaps.focus or 0.0, gaps.focus_chance
    return focus if chance is None or focus > chance + BEYOND else 0.0


def training(found: Ladder) -> str:
    """The two trainings in a sentence."""
    run = found.training
    if run is None:
        return ""
    return (
        f"After {run.steps[-1]:,} steps at rate {run.rate:g} the loss on inputs is "
        f"{number(run.loss_inputs[-1])}, with the weights that saw events alone "
        f"{number(run.loss_carried[-1])}; no parameter was ever more than {number(run.largest[-1])} apart."
    )


LEVEL_HEADINGS = (
    "level",
    "regions",
    "edges",
    "events",
    "focus",
    "broadness",
    "decorrelation",
    "fourth",
    "ΔW gap",
    "recursion",
    "forward %",
    "backward %",
    "ΔW %",
    "recursion %",
)


def level_rows(found: Ladder) -> list[tuple[str, ...]]:
    """One row a level, in the order of LEVEL_HEADINGS; in brackets what the control has."""
    dealt = beside(found, shuffled=True)
    rows = []
    for at, level in enumerate(found.levels):
        own = level.explained
        other = dealt.levels[at].explained if dealt else None
        rows.append(
            (
                level_name(found, level),
                f"{level.regions:,}",
                f"{level.edges:,}",
                f"{level.events:,}",
                _focus(level.gaps),
                gap(level.gaps.broadness),
                gap(max(level.decorrelation, level.decorrelation_back)),
                gap(level.gaps.fourth),
                gap(level.gaps.weight),
                gap(level.gaps.recursive),
                *(_pair(own, other, what) for what in ("forward", "backward", "weight", "recursive")),
            )
        )
    return rows


def _focus(gaps: Gaps) -> str:
    """Beside what chance shows in as many inputs that were drawn."""
    return gap(gaps.focus) + ("" if gaps.focus_chance is None else f" ({gap(gaps.focus_chance)})")


def _pair(own: Explained, other: Explained | None, what: str) -> str:
    text = share(getattr(own, what))
    return text if other is None or text == NONE else f"{text} ({share(getattr(other, what))})"


EDGE_HEADINGS = ("edge", "focus", "broadness", "fourth", "ΔW gap", "forward %", "backward %", "ΔW %")


def edge_rows(found: Ladder) -> list[tuple[str, ...]]:
    """The edges whose ΔW is told worst, in the order of EDGE_HEADINGS."""

    def told(edge: EdgeFound) -> tuple[float, float]:
        value = edge.explained.weight
        return (2.0 if value is None else value, -edge.gaps.weight)

    return [
        (
            f"{plain(edge.child, LONGEST_NAME)} → {plain(edge.parent, LONGEST_NAME)}",
            _focus(edge.gaps),
            gap(edge.gaps.broadness),
            gap(edge.gaps.fourth),
            gap(edge.gaps.weight),
            share(edge.explained.forward),
            share(edge.explained.backward),
            share(edge.explained.weight),
        )
        for edge in sorted(found.edges, key=told)[:MOST_ROWS]
    ]


FLAGS = {
    "teacher": (
        "graph",
        "leaves",
        "size",
        "stride",
        "summary",
        "values",
        "sample",
        "nodes",
        "norm",
        "steps",
        "rate",
        "seed",
    ),
    "net": (
        "windows",
        "nodes",
        "shared",
        "norm",
        "events",
        "sweep",
        "images",
        "epochs",
        "rate",
        "weights",
        "seed",
    ),
}


def command(found: Ladder) -> str:
    """What makes it again; where the data lie is not said, as that would name the machine or its user."""
    words = ["obverse", "ladder"]
    if found.kind == "net":
        words += ["--data", plain(found.subject, LONGEST_NAME) or "DATA"]
    for flag in FLAGS[found.kind]:
        value = found.settings.get(flag)
        if value is True:
            words.append(f"--{flag}")
        elif value is not None and value is not False:
            words += [f"--{flag}", plain(spell(value), LONGEST_NAME)]
    return shlex.join([*words, "--out", "DIR"])


def is_known(found: Ladder) -> bool:
    """Whether the command can be given as it stands."""
    return found.kind == "teacher" or found.subject in NAMES
