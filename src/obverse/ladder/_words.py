"""What a ladder says, in plain sentences, and its tables as text. Not for computing it.

Words from a file are of bounded length here; escaping them is the page's affair.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .._core import NONE, listed, named, number, spell
from ..data import NAMES
from ._gaps import rounding

if TYPE_CHECKING:
    from .results import EdgeFound, Explained, Gaps, Ladder, LevelFound, Measured

MARGIN = 10  # over the rounding of sums: batch norm divides by spreads that may be small
WHOLE = 1e-9  # how near to 1 a share is written as 100
LIKE, PARTLY = 0.9, 0.5  # shares of ΔW from which on a level behaves like the theory, or in part
ROUNDED = 0.005  # of a share: half a percent
MISLED = -0.05  # shares from which downwards events are said to mislead; what is between is nothing
NEARLY = 0.5  # events a drawn input from which on nearly every input is one of its own
BEYOND = 0.05  # what a distance between distributions must be beyond chance, to be called one
MOST_ROWS = 60  # edges in the table


def name(found: Ladder) -> str:
    return named(found.subject, "no name")


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
    if value >= 1 - WHOLE:
        return "100"
    return f"{min(100 * value, 99.9):.1f}" if value > 0.99 else f"{100 * value:.0f}"


def gap(value: float | None) -> str:
    """A gap; what is only rounding is a power of ten."""
    if value is None:
        return NONE
    return f"{value:.2f}" if value >= 0.0095 else f"{value:.3f}" if value >= 0.00095 else number(value)


def is_exact(found: Ladder) -> bool:
    return max(found.worst, found.worst_recursive) <= _rounding(found)


def _rounding(found: Ladder) -> float:
    return MARGIN * rounding(found.inputs)


def level_name(found: Ladder, level: LevelFound) -> str:
    """Which edges: those up into the regions of this level."""
    if level.level == max(one.level for one in found.levels):
        return f"{level.level}, the top"
    if level.level == 1 and found.kind == "net":
        return "1, above the pixels"
    return f"{level.level}"


def by_construction(found: Ladder, level: LevelFound) -> bool:
    """Whether both ends of the edges up into this level see the same pixels, hence have the same events."""
    return found.kind == "net" and level.level == 1


def verdict(found: Ladder) -> str:
    """One sentence: do events tell what inputs do?"""
    return _of_net(found) if found.kind == "net" else _of_teacher(found)


def _inputs(found: Ladder) -> str:
    return f"these {found.inputs:,} drawn inputs" if found.sampled else f"all {found.inputs:,} inputs"


def _of_teacher(found: Ladder) -> str:
    edges = "the edge" if found.edges_total == 1 else f"all {found.edges_total:,} edges"
    if is_exact(found):
        return (
            f"Exact{_bounds(found)}: on {edges}, ΔW from events alone equals ΔW from {_inputs(found)}, to "
            f"{number(max(found.worst, found.worst_recursive))} of its size."
        )
    worst = max(found.levels, key=lambda one: one.worst.weight)
    local = _with_error(found.worst, found.worst_error)
    recursive = _with_error(found.worst_recursive, found.worst_recursive_error)
    return (
        f"Not exact: ΔW from events alone is off by up to {local} of its size edge by edge (level "
        f"{worst.level}) and by up to {recursive} through the whole recursion, against {_inputs(found)}."
    )


def _bounds(found: Ladder) -> str:
    """How far exactness goes where inputs were drawn."""
    if not found.sampled:
        return ""
    most = max(region.events for region in found.regions)
    if most < NEARLY * found.inputs:
        return f" for these {found.inputs:,} inputs, which says nothing of others"
    return f" by construction ({most:,} events for {found.inputs:,} drawn inputs, nearly one each)"


def _with_error(value: float, error: float | None) -> str:
    return gap(value) + ("" if error is None else f" ± {gap(error)}")


def _of_net(found: Ladder) -> str:
    events = found.settings.get("events")
    count = f"With {events} events a region" if isinstance(events, int) else "Of the net"
    start = measured_under(found, net="start")
    said = ""
    for message, how in (
        ("weight", f"{count}, edge by edge from true averages, events "),
        ("recursive", "Through the whole recursion, which is what Theorems 2 and 4 are about, they "),
    ):
        said += f"{' ' if said else ''}{how}{_does(found, message)}"
        if start is not None:
            values = [share(getattr(level.explained, message)) for level in start.levels]
            said += f"; before training it was {listed(values)} %"
        said += "."
    return said


def _does(found: Ladder, message: str) -> str:
    """What events do at which levels: explain so much of ΔW, nothing, or mislead."""
    told: list[str] = []
    others: dict[str, list[str]] = {
        "explain nothing": [],
        "mislead": [],
        "have next to nothing to explain": [],
    }
    nothing, misled, untold = others.values()
    for level in found.levels:
        value, place = getattr(level.explained, message), _place(found, level)
        if value is None:
            untold.append(place)
        elif value <= MISLED:
            misled.append(place)
        elif value < ROUNDED:
            nothing.append(place)
        else:
            told.append(f"{share(value)} %{'' if told else ' of ΔW'} {place}")
    parts = [f"explain {listed(told)}"] if told else []
    parts += [f"{what} {listed(places)}" for what, places in others.items() if places]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])}, and {parts[-1]}"


def _place(found: Ladder, level: LevelFound) -> str:
    if level is found.levels[-1]:
        return "at the top"
    return "above the pixels" if level.level == 1 and found.kind == "net" else f"at level {level.level}"


def has_control(found: Ladder) -> bool:
    return measured_under(found, shuffled=True) is not None


def has_chance(found: Ladder) -> bool:
    """Whether focus stands beside what chance shows."""
    return any(level.gaps.focus_chance is not None for level in found.levels)


def measured_under(
    found: Ladder, *, net: str = "trained", images: str = "clustered", shuffled: bool = False
) -> Measured | None:
    """The measurement with as many events as the levels have, under other conditions."""
    events = found.settings.get("events")
    for one in found.measured:
        if (one.net, one.images, one.shuffled, one.events) == (net, images, shuffled, events):
            return one if len(one.levels) == len(found.levels) else None
    return None


def outlook(found: Ladder) -> list[str]:
    """What it means for the reader, and what it comes from."""
    if found.kind == "net":
        return [_use_of_net(found), *_behaviour(found), *_control(found)]
    return [_use_of_teacher(found), *([] if is_exact(found) else [_conditions(found)])]


def _use_of_teacher(found: Ladder) -> str:
    """Whether events can take the place of inputs, and what to try."""
    whole = f"{found.inputs:,} inputs"
    if is_exact(found):
        more = "" if found.sampled else "; to see where that ends, let events forget more, e.g. --summary xor"
        return f"So here training can be computed and understood from events, without the {whole}{more}."
    return (
        f"So events cannot take the place of the {whole} here: a step computed from them would be another "
        "step. With --summary full every event tells all of its region: there the theory is exact in trees."
    )


def _use_of_net(found: Ladder) -> str:
    """At which levels an argument about events is one about the net."""
    levels = [level for level in found.levels if level.explained.weight is not None]
    good = [str(level.level) for level in levels if (level.explained.weight or 0.0) >= LIKE]
    bad = [str(level.level) for level in levels if (level.explained.weight or 0.0) < PARTLY]
    parts = []
    if good:
        parts.append(f"at level{'s' * (len(good) > 1)} {listed(good)} what training does follows from events")
    if bad:
        many = "s" * (len(bad) > 1)
        parts.append(f"at level{many} {listed(bad)} it depends on more than events, so look at inputs")
    if not parts:
        parts.append("at no level do events say all or nothing of what training does")
    return f"So, edge by edge, {'; '.join(parts)}."


def _behaviour(found: Ladder) -> list[str]:
    local, recursive = _like(found, "weight"), _like(found, "recursive")
    said = f"Edge by edge it behaves {local}; through the recursion {recursive}."
    above = [one.explained for one in found.levels if one.level > 1]  # below, both ends have the same events
    forward = [one.forward for one in above if one.forward is not None]
    backward = [one.backward for one in above if one.backward is not None]
    if forward and backward:
        up, down = _range(forward), _range(backward)
        said += f" Above level 1 events tell {up} of what goes up and {down} of what comes down."
    return [said]


def _like(found: Ladder, message: str) -> str:
    groups: dict[str, list[str]] = {"like the theory": [], "in part": [], "not": []}
    for level in found.levels:
        value = getattr(level.explained, message)
        if value is not None:
            how = "like the theory" if value >= LIKE else "in part" if value >= PARTLY else "not"
            groups[how].append(str(level.level))
    return ", ".join(
        f"{how} at level{'s' if len(own) > 1 else ''} {listed(own)}" if own else f"{how} at no level"
        for how, own in groups.items()
        if own or how == "like the theory"
    )


def _range(values: Sequence[float]) -> str:
    low, high = share(min(values)), share(max(values))
    if max(values) < ROUNDED:
        return "nothing"
    if min(values) < ROUNDED:
        return f"at most {high} %"
    return f"{low} %" if low == high else f"{low} to {high} %"


def _control(found: Ladder) -> list[str]:
    dealt = measured_under(found, shuffled=True)
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
    exact = _rounding(found)
    holds = [what for what, value in worst.items() if value <= exact]
    fails = [f"{what} (by up to {gap(value)})" for what, value in worst.items() if value > exact]
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
        f"After {run.steps[-1]:,} steps at lr {run.lr:g} the loss on inputs is "
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
    dealt = measured_under(found, shuffled=True)
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
                *(
                    NONE
                    if by_construction(found, level) and what in ("forward", "backward")
                    else _pair(own, other, what)
                    for what in ("forward", "backward", "weight", "recursive")
                ),
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
            f"{named(edge.child)} → {named(edge.parent)}",
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
        "activation",
        "loss",
        "steps",
        "lr",
        "rate",  # its name before
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
        "lr",
        "rate",  # its name before
        "weights",
        "seed",
    ),
}


def command(found: Ladder) -> str:
    """What makes it again; where the data lie is not said, as that would name the machine or its user."""
    words = ["obverse", "ladder"]
    if found.kind == "net":
        words += ["--data", named(found.subject, "DATA")]
    for flag in FLAGS[found.kind]:
        value = found.settings.get(flag)
        if value is True:
            words.append(f"--{flag}")
        elif value is not None and value is not False:
            words += [f"--{flag}", named(spell(value))]
    return shlex.join([*words, "--out", "DIR"])


def is_known(found: Ladder) -> bool:
    """Whether the command can be given as it stands."""
    return found.kind == "teacher" or found.subject in NAMES
