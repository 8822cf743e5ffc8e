"""Which matrices of two checkpoints belong together: those of one name, perhaps with a prefix more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ..._core import BadInput, counted, listed
from .._readers.stored import Weight

_NAMED = 3


@dataclass(frozen=True)
class Paired:
    """In the order of tuned; `notes` say how names were matched, and what to do where they were not."""

    pairs: tuple[tuple[Weight, Weight], ...]  # tuned, base
    only_tuned: tuple[str, ...]
    only_base: tuple[str, ...]
    notes: tuple[str, ...]


def paired(tuned: Sequence[Weight], base: Sequence[Weight]) -> Paired:
    here, there = _by_name(tuned, "tuned"), _by_name(base, "base")
    partner = {name: name for name in here if name in there}
    notes = []
    if found := _prefix(here, there, set(partner.values())):
        prefix, is_tuned, more = found
        partner |= more
        side = "tuned" if is_tuned else "base"
        notes.append(f"{counted(len(more), 'name')} matched without the prefix {prefix!r} of {side}")
    only_tuned = tuple(name for name in here if name not in partner)
    only_base = tuple(name for name in there if name not in partner.values())
    if only_tuned and only_base:
        notes.append(
            f"names do not match: {listed([repr(one) for one in only_tuned], _NAMED)} in tuned, "
            f"{listed([repr(one) for one in only_base], _NAMED)} in base; rename the tensors of one of them, "
            "or pass both to Python as state dicts of the same names"
        )
    pairs = tuple((here[name], there[partner[name]]) for name in here if name in partner)
    return Paired(pairs, only_tuned, only_base, tuple(notes))


def _by_name(weights: Sequence[Weight], side: str) -> dict[str, Weight]:
    found = {one.name: one for one in weights}
    if len(found) < len(weights):
        name, _ = Counter(one.name for one in weights).most_common(1)[0]
        raise BadInput(
            f"layers of different names in {side}, to pair them",
            got=f"{name!r} more than once",
            do="rename them",
        )
    return found


def _prefix(
    here: dict[str, Weight], there: dict[str, Weight], done: set[str]
) -> tuple[str, bool, dict[str, str]] | None:
    """The one prefix ending in a dot that, taken off one side's names, pairs most layers of equal shape."""
    best: list[tuple[str, bool, dict[str, str]]] = []
    for is_tuned, longer, shorter in ((True, here, there), (False, there, here)):
        for prefix in _prefixes([name for name in longer if name not in done]):
            more = {}
            for name, one in longer.items():
                other = name.removeprefix(prefix)
                if name in done or other == name or other in done or other not in shorter:
                    continue
                if (one.rows, one.columns) == (shorter[other].rows, shorter[other].columns):
                    more[name if is_tuned else other] = other if is_tuned else name
            if more:
                best.append((prefix, is_tuned, more))
    most = max((len(one[2]) for one in best), default=0)
    first = [one for one in best if len(one[2]) == most]
    return first[0] if len(first) == 1 else None


def _prefixes(names: Sequence[str]) -> set[str]:
    found = set()
    for name in names:
        parts = name.split(".")
        found |= {".".join(parts[:count]) + "." for count in range(1, len(parts))}
    return found
