"""How a region sums up its children's events: all of them, AND, OR, XOR, majority, a table, a function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import torch
from torch import Tensor

from .._core import SUMMARIES, BadInput, or_global
from ._checks import whole

# By name, by a table over the children's joint events (the last child varying fastest), or by a function of
# their events (inputs × children) that gives a whole number from 0 for each input.
Summary = str | Tensor | Callable[[Tensor], Tensor]
KINDS = SUMMARIES
MOST_JOINT = 2**24  # joint events in a table


def summarize(name: str, rule: Summary, parts: Sequence[Tensor], ranges: Sequence[int]) -> tuple[Tensor, int]:
    """Events of region `name` from its children's: (an event for each input, how many there are)."""
    if isinstance(rule, str):
        return _by_name(name, rule, parts, ranges)
    if isinstance(rule, Tensor):
        return _by_table(name, rule, parts, ranges)
    if not callable(rule):
        raise BadInput(
            f"a summary for {name!r}: {', '.join(KINDS)}, a table or a function",
            got=repr(rule),
            do="give one",
        )
    found = rule(torch.stack(list(parts), 1))
    if not isinstance(found, Tensor) or found.shape != parts[0].shape or not _whole(found):
        got = f"{tuple(found.shape)}, {found.dtype}" if isinstance(found, Tensor) else type(found).__name__
        raise BadInput(
            f"a tensor of {len(parts[0]):,} whole numbers from the function of {name!r}",
            got=got,
            do="correct it",
        )
    if int(found.min()) < 0:
        raise BadInput(f"events from 0 for {name!r}", got=int(found.min()), do="number them from 0")
    return found.long(), _count(name, found)


def random_table(joint: int, events: int, generator: torch.Generator | None = None) -> Tensor:
    """A table that sends each joint event to one of `events`, evenly and at random; every event occurs."""
    whole(joint, "a number of joint events", 1, MOST_JOINT)
    whole(events, "a number of events", 1, joint)
    generator = or_global(generator)
    table = torch.cat([torch.arange(events), torch.randint(events, (joint - events,), generator=generator)])
    return table[torch.randperm(joint, generator=generator)]


def renumber(parts: Sequence[Tensor]) -> tuple[Tensor, int]:
    """Joint events numbered by what occurs, however many there could be: (one for each input, how many)."""
    place = torch.zeros_like(parts[0])
    count = 1
    for part in parts:
        width = int(part.max()) + 1
        occurring, place = torch.unique(place * width + part, return_inverse=True)
        count = len(occurring)
    return place, count


def _whole(values: Tensor) -> bool:
    return not (values.is_floating_point() or values.is_complex())


def _by_name(name: str, rule: str, parts: Sequence[Tensor], ranges: Sequence[int]) -> tuple[Tensor, int]:
    if rule == "full":  # children that overlap have fewer joint events than pairs
        return renumber(parts)
    if rule not in KINDS:
        raise BadInput(f"a summary out of {', '.join(KINDS)} for {name!r}", got=repr(rule), do="choose one")
    if max(ranges) > 2:
        raise BadInput(
            f"two events in each child of {name!r} for {rule!r}",
            got=list(ranges),
            do="give each two values, or use a table or a function",
        )
    ones = torch.stack(list(parts), 1).sum(1)
    count = len(parts)
    found = {"and": ones == count, "or": ones > 0, "xor": ones % 2 == 1, "majority": 2 * ones > count}[rule]
    return found.long(), 2


def _by_table(name: str, table: Tensor, parts: Sequence[Tensor], ranges: Sequence[int]) -> tuple[Tensor, int]:
    joint = prod(ranges)
    if table.shape != (joint,) or not _whole(table) or joint > MOST_JOINT:
        raise BadInput(
            f"a table of {joint:,} whole numbers for {name!r}, one for each joint event of its children",
            got=f"shape {tuple(table.shape)}, {table.dtype}",
            do="correct its size",
        )
    if int(table.min()) < 0:
        raise BadInput(
            f"events from 0 in the table of {name!r}", got=int(table.min()), do="number them from 0"
        )
    place = torch.zeros_like(parts[0])
    for part, count in zip(parts, ranges, strict=True):
        place = place * count + part
    return table.long()[place], _count(name, table)


def _count(name: str, events: Tensor) -> int:
    most = int(events.max())
    if most >= MOST_JOINT:
        raise BadInput(
            f"events of {name!r} below {MOST_JOINT:,}", got=f"{most:,}", do="number them without gaps"
        )
    return most + 1
