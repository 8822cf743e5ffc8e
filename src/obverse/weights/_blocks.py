"""Which block of a net a layer lies in, and what kind of matrix it is there: by its name alone.

>>> place_of("model.layers.31.self_attn.q_proj")
Place(stem='model.layers', number=(31,), block='model.layers.31', kind='model.layers.*.self_attn.q_proj')
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from .results import Audit, LayerAudit

FEWEST_BLOCKS = 4  # of a net that is worth a map
# What nets call the list of their blocks; where no part is called so, the first number is the block's.
_LIST = re.compile(r".*layers?\d*|.*blocks?|blk|h|stages?|features")
_OF_STAGES = ("blocks", "features")  # lists whose items may be lists of blocks: blocks.2.0, features.2.0
# A block's number in its own part of the name, and, as Keras has it, with the kind behind it.
_NUMBERED = re.compile(
    r"(?P<stem>(?:.*_)?(?:layer|encoder|decoder)|.*block|(?:.*_)?stage)[_.]+(?P<number>\d{1,6})"
)
_JOINED = re.compile(r"(?P<stem>(?:.*_)?block)_?(?P<number>\d{1,6})(?P<kind>_.+)")
_EXPERTS = (re.compile(r"(experts)\.\d+"), r"\1.*"), (re.compile(r"\(expert \d+ of"), "(expert * of")
_BLOCKS = re.compile(r"[^*]*\*[./](blocks\.\*\.)?")
_RECURRENT = re.compile(r"(?P<stem>.*)\.(?P<side>weight_(?:ih|hh|hr))_l(?P<layer>\d{1,6})(?P<kind>.*)")


@dataclass(frozen=True)
class Place:
    """Where a layer lies; without a block, block and kind are its whole name."""

    stem: str  # the list that the block is in
    number: tuple[int, ...]  # two where blocks lie in stages
    block: str
    kind: str  # with * for the numbers of the block


@dataclass(frozen=True)
class Group:
    """Layers that share a block or a kind, in the order of the net."""

    name: str
    layers: tuple[LayerAudit, ...]

    @property
    def shares(self) -> tuple[float, ...]:
        """The random shares that are known, smallest first; bounds are not."""
        known = (one.random_share for one in self.layers)
        return tuple(sorted(share.value for share in known if share is not None and not share.is_bound))


@dataclass(frozen=True)
class Square:
    """The layers of one kind in one block, as the map shows them: their median random share, or nothing."""

    layers: tuple[int, ...]  # their places in the audit
    share: float | None
    is_bound: bool  # of some of them only a bound is known


@dataclass(frozen=True)
class Map:
    """Kinds of matrices down, blocks across; None where a block has no such matrix."""

    kinds: tuple[str, ...]
    blocks: tuple[str, ...]
    squares: tuple[tuple[Square | None, ...], ...]


def place_of(name: str) -> Place:
    """Experts of a mixture are of one kind: `experts.7.up_proj` is `experts.*.up_proj`.

    Keras puts a slash between the parts of a name, others a dot.
    """
    if found := _RECURRENT.fullmatch(name):
        stem, number, kind = found["stem"], int(found["layer"]), found["kind"]
        return Place(stem, (number,), f"{stem} (layer {number})", f"{stem}.{found['side']}_l*{kind}")
    sign = "/" if "/" in name else "."
    parts = name.split(sign)
    numbers = [at for at, part in enumerate(parts) if at and _is_number(part)]
    listed = next((at for at in numbers if _LIST.fullmatch(parts[at - 1])), None)
    if listed is None:
        found_in = ((at, match) for at, part in enumerate(parts) if (match := _in_part(part)))
        if first_found := next(found_in, None):
            return _numbered(parts, sign, *first_found)
    if not numbers:
        return Place("", (), name, name)
    first = numbers[0] if listed is None else listed
    last = first
    if parts[first + 1 : first + 2] == ["blocks"] and first + 2 in numbers:
        last = first + 2
    elif parts[first - 1] in _OF_STAGES and first + 1 in numbers and len(parts) > first + 2:
        last = first + 1
    kinds = ["*" if at in (first, last) else part for at, part in enumerate(parts)]
    return Place(
        stem=sign.join(parts[:first]),
        number=tuple(int(parts[at]) for at in sorted({first, last})),
        block=sign.join(parts[: last + 1]),
        kind=_any_expert(sign.join(kinds)),
    )


def _in_part(part: str) -> re.Match[str] | None:
    return _NUMBERED.fullmatch(part) or _JOINED.fullmatch(part)


def _numbered(parts: Sequence[str], sign: str, at: int, match: re.Match[str]) -> Place:
    """`encoder_layer_3.mlp.0` and `conv2_block1_3_conv`: the number is a piece of a part."""
    before, after = list(parts[:at]), list(parts[at + 1 :])
    start, end = match.span("number")
    kind = f"{match.string[:start]}*{match.string[end:]}"
    return Place(
        stem=sign.join([*before, match["stem"]]),
        number=(int(match["number"]),),
        block=sign.join([*before, match.string[:end]]),
        kind=_any_expert(sign.join([*before, kind, *after])),
    )


def _any_expert(kind: str) -> str:
    for pattern, instead in _EXPERTS:
        kind = pattern.sub(instead, kind)
    return kind


def _is_number(part: str) -> bool:
    return part.isascii() and part.isdigit() and len(part) <= 6


def by_block(audit: Audit) -> tuple[Group, ...]:
    return _groups(audit, [place_of(layer.name).block for layer in audit.layers])


def by_kind(audit: Audit) -> tuple[Group, ...]:
    return _groups(audit, [place_of(layer.name).kind for layer in audit.layers])


def _groups(audit: Audit, names: Sequence[str]) -> tuple[Group, ...]:
    members: dict[str, list[LayerAudit]] = defaultdict(list)
    for name, layer in zip(names, audit.layers, strict=True):
        members[name].append(layer)
    return tuple(Group(name, tuple(layers)) for name, layers in members.items())


def map_of(audit: Audit) -> Map | None:
    """Of a net whose layers mostly lie in one list of blocks that are alike; of others a map says nothing."""
    places = [place_of(layer.name) for layer in audit.layers]
    members: dict[tuple[str, tuple[int, ...]], list[int]] = defaultdict(list)
    numbers_in: dict[str, list[tuple[int, ...]]] = defaultdict(list)
    for at, place in enumerate(places):
        members[place.kind, place.number].append(at)
        numbers_in[place.stem] += [place.number] if place.number else []
    stems = [stem for stem in numbers_in if len(set(numbers_in[stem])) >= FEWEST_BLOCKS]
    if not stems or 2 * max(len(numbers_in[stem]) for stem in stems) < len(places):
        return None
    numbers = sorted({number for stem in stems for number in numbers_in[stem]})
    kinds = [
        kind
        for kind, stem in dict.fromkeys((place.kind, place.stem) for place in places)
        if stem in stems and 2 * sum((kind, one) in members for one in numbers) > len(set(numbers_in[stem]))
    ]
    if len(kinds) < 2:
        return None
    squares = tuple(
        tuple(_square(audit, members[kind, one]) if (kind, one) in members else None for one in numbers)
        for kind in kinds
    )
    lists = {found[0] if (found := _BLOCKS.match(kind)) else "" for kind in kinds}
    names = tuple(_BLOCKS.sub("", kind, count=1) if len(lists) == 1 else kind for kind in kinds)
    return Map(names, tuple(".".join(map(str, one)) for one in numbers), squares)


def _square(audit: Audit, places: Sequence[int]) -> Square:
    shares = [one for one in (audit.layers[at].random_share for at in places) if one is not None]
    value = median(one.value for one in shares) if shares else None
    return Square(tuple(places), value, any(one.is_bound for one in shares))
