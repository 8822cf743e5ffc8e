"""Layers to train whole, as axolotl's `unfrozen_parameters`: regular expressions in YAML."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Sequence
from textwrap import wrap

from ..._core import BadInput, counted, listed
from .._blocks import place_of
from ..results import Audit
from .candidates import MOST_NAMED, Candidate, candidates, left_out_lines, why_not_pasted
from .kinds import NAMES, PREFER, TOP
from .results import Decision
from .words import base_unproven, begun

WIDTH = 100  # letters in a line of comments
FIRST = {
    "signal": "of the energy in the signal (1 − random share)",
    "random": "of the energy that is like random numbers (random share)",
}


def for_axolotl(audit: Audit, *, top: float = TOP, prefer: str = PREFER[0]) -> Decision:
    """Of each kind of matrix those layers whose share of signal, or of randomness, is largest."""
    found = candidates(audit)
    groups, left_out = _groups(found, prefer)
    chosen: list[Candidate] = []
    for members, whole in groups:
        count = max(1, math.floor(whole * top / 100 + 0.5))
        chosen += sorted(members, key=lambda one: _score(one, prefer), reverse=True)[:count]
    if not chosen:
        raise BadInput(
            "a kind of matrix of which several layers are judged, and one of them "
            + ("has signal" if prefer == "signal" else "has a known random share"),
            got=f"none in {counted(len(audit.layers), 'layer')}",
            do="there is nothing to choose: leave --decide out",
        )
    order = {one.name: at for at, one in enumerate(found)}
    chosen.sort(key=lambda one: order[one.name])
    names = tuple(dict.fromkeys(one.parameter for one in chosen))
    notes = (
        begun(audit, f"--decide lora --format axolotl --top {top:g} --prefer {prefer}"),
        f"Chosen: {counted(len(names), 'parameter')}: of each kind of matrix at most {top:g} % of its layers "
        f"(rounded, at least one), those with the largest share {FIRST[prefer]}; of equal ones the first. "
        "They are trained whole; all else is frozen.",
        *_whole([one for one in chosen if " (" in one.name]),
        *left_out_lines(left_out),
        "Names are those of the audited file. axolotl takes a dot as a dot.",
        base_unproven("where fine-tuning helps"),
    )
    return Decision("lora", "axolotl", NAMES["axolotl"], _yaml(names, notes), notes, names, {})


def _whole(parts: Sequence[Candidate]) -> list[str]:
    if not parts:
        return []
    names = listed([one.name for one in parts], MOST_NAMED)
    return [f"A part of a parameter was chosen, and the whole of it is trained: {names}."]


def _groups(
    found: Sequence[Candidate], prefer: str
) -> tuple[list[tuple[list[Candidate], int]], dict[str, list[str]]]:
    """Of each kind of matrix with several layers those that can be ranked, and how many there are."""
    kinds: dict[str, list[Candidate]] = defaultdict(list)
    for one in found:
        kinds[place_of(one.name).kind].append(one)
    left_out: dict[str, list[str]] = {}
    groups = []
    for members in kinds.values():
        known = []
        for one in members:
            reason = why_not_pasted(one.parameter) or (
                _why_not_ranked(one, prefer) if len(members) > 1 else "the only one of its kind"
            )
            if reason:
                left_out.setdefault(reason, []).append(one.name)
            else:
                known.append(one)
        groups.append((known, len(members)))
    return [(known, whole) for known, whole in groups if known], left_out


def _why_not_ranked(one: Candidate, prefer: str) -> str:
    if one.rank is None:
        return "not judged"
    if one.share is None:
        return "cannot tell"
    if prefer == "random" and one.share.is_bound:
        return "only a bound of the random share is known"
    if prefer == "signal" and one.verdict == "untouched":
        return "no signal was found"
    return ""


def _score(one: Candidate, prefer: str) -> float:
    value = 1.0 if one.share is None else one.share.value
    return value if prefer == "random" else -value


def _yaml(names: Sequence[str], notes: Sequence[str]) -> str:
    comments = [f"# {line}" for note in notes for line in wrap(note, WIDTH - 2, break_on_hyphens=False)]
    return "\n".join([*comments, "unfrozen_parameters:", *map(_item, names)]) + "\n"


def _item(name: str) -> str:
    """The name whole; all but dots escaped: axolotl escapes those itself, once more would match nothing."""
    pattern = ".".join(re.escape(part) for part in name.split("."))
    return "  - '{}'".format(f"^{pattern}$".replace("'", "''"))
