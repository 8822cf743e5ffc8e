"""Which parts of the input a locally connected net looks at: regions, from single inputs up to the whole.

A region without children reads input positions itself. Any other one sees what its children see. Not for what
happens in a region: see teacher and student.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any, TypeVar

from .._core import BadInput
from ._checks import whole

Edge = tuple[str, str]  # parent, child
Kind = TypeVar("Kind", str, int)
MOST_POSITIONS = 2**16
POSITIONS = range(MOST_POSITIONS)
MOST_REGIONS = 2**16


@dataclass(frozen=True)
class RegionGraph:
    """A directed acyclic graph of regions with one top.

    `children` names those of every region, none for the lowest; `positions` are the input positions that a
    region covers (receptive field), at least all that its children cover.
    """

    children: Mapping[str, tuple[str, ...]]
    positions: Mapping[str, tuple[int, ...]]

    @staticmethod
    def of(children: Mapping[str, Sequence[str]], positions: Mapping[str, Sequence[int]]) -> RegionGraph:
        """A checked graph. `positions` may leave out regions with children: they cover what these do."""
        named = {
            name: _several(below, str, f"children of {name!r}")
            for name, below in _mapped(children, "children").items()
        }
        given = {
            name: _several(own, int, f"positions of {name!r}")
            for name, own in _mapped(positions, "positions").items()
        }
        strange = sorted(set(given) - set(named), key=str)
        if strange:
            raise BadInput(
                "positions of regions", got=", ".join(map(repr, strange)), do="add them to children"
            )
        known = set(named)
        for name, below in named.items():
            unknown = sorted(set(below) - known)
            if unknown:
                raise BadInput(
                    f"children of {name!r} that are regions",
                    got=", ".join(unknown),
                    do="add them, or correct it",
                )
            if len(set(below)) < len(below):
                raise BadInput(f"each child of {name!r} once", got=", ".join(below), do="name it once")
        try:
            order = tuple(TopologicalSorter(named).static_order())
        except CycleError as error:
            raise BadInput(
                "regions without a cycle", got=" → ".join(error.args[1]), do="no region is part of itself"
            ) from None
        covered: dict[str, tuple[int, ...]] = {}
        for name in order:
            under = {position for child in named[name] for position in covered[child]}
            own = set(given.get(name, under))
            if not own:
                raise BadInput(
                    f"input positions for {name!r}, which has no children", got="none", do="give it some"
                )
            if under - own:
                raise BadInput(
                    f"{name!r} to cover its children",
                    got=f"positions {sorted(own)} without {sorted(under - own)}",
                    do="leave its positions out, or add those",
                )
            covered[name] = tuple(sorted(own))
        inside = {child for below in named.values() for child in below}
        tops = [name for name in named if name not in inside]
        if len(tops) != 1:
            raise BadInput("one top region", got=", ".join(tops[:8]) or "no region", do="add one above them")
        return RegionGraph({name: named[name] for name in order}, covered)

    def __post_init__(self) -> None:
        done: set[str] = set()
        for name, below in self.children.items():
            covered = {position for child in below if child in done for position in self.positions[child]}
            if not set(below) <= done or not covered <= set(self.positions.get(name, ())):
                raise BadInput(
                    "children before parents, and covered by them", got=repr(name), do="use RegionGraph.of"
                )
            done.add(name)

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Children before parents."""
        return tuple(self.children)

    @cached_property
    def parents(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, list[str]] = {name: [] for name in self.order}
        for parent, child in self.edges:
            found[child].append(parent)
        return {name: tuple(above) for name, above in found.items()}

    @property
    def top(self) -> str:
        return self.order[-1]

    @cached_property
    def lowest(self) -> tuple[str, ...]:
        return tuple(name for name in self.order if not self.children[name])

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        return tuple((parent, child) for parent in self.order for child in self.children[parent])

    @cached_property
    def inputs(self) -> int:
        """How many input positions there are."""
        return 1 + max(position for own in self.positions.values() for position in own)

    @cached_property
    def level(self) -> dict[str, int]:
        """0 for the lowest, otherwise one more than the highest child."""
        found: dict[str, int] = {}
        for name in self.order:
            found[name] = 1 + max((found[child] for child in self.children[name]), default=-1)
        return found


def _mapped(given: object, what: str) -> Mapping[str, object]:
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise BadInput(
            f"{what} as a mapping by names of regions", got=type(given).__name__, do="see RegionGraph"
        )
    return given


def _several(given: object, kind: type[Kind], what: str) -> tuple[Kind, ...]:
    """Names, or positions from 0."""
    items: list[Any] = (
        list(given) if isinstance(given, Iterable) and not isinstance(given, str | bytes) else [None]
    )
    if not all(type(item) is kind and (kind is str or item in POSITIONS) for item in items):
        told = "names" if kind is str else f"whole numbers from 0 to below {MOST_POSITIONS:,}"
        raise BadInput(f"{what} as a list of {told}", got=repr(given)[:60], do="correct it")
    return tuple(items)


def _few(regions: Mapping[str, object]) -> None:
    if len(regions) > MOST_REGIONS:
        raise BadInput(f"at most {MOST_REGIONS:,} regions", got="more", do="use a larger stride")


def tree(leaves: int, branching: int = 2) -> RegionGraph:
    """A tree over single positions; where they do not divide evenly, the last region of a level has fewer."""
    return windows(leaves, branching, branching)


def windows(leaves: int, size: int, stride: int = 1) -> RegionGraph:
    """Windows of `size` neighbours every `stride`, level over level, until one is left."""
    whole(leaves, "a number of leaves", 1, MOST_POSITIONS)
    whole(size, "a size of windows", 2, MOST_POSITIONS)
    whole(stride, "a stride", 1, size)
    below = [f"0.{index}" for index in range(leaves)]
    children: dict[str, tuple[str, ...]] = dict.fromkeys(below, ())
    level = 0
    while len(below) > 1:
        level += 1
        starts = range(0, max(1, len(below) - size + stride), stride)
        above = {f"{level}.{index}": tuple(below[start : start + size]) for index, start in enumerate(starts)}
        children |= above
        _few(children)
        below = list(above)
    return RegionGraph.of(children, {f"0.{index}": (index,) for index in range(leaves)})


def grid(height: int, width: int, size: int = 2, stride: int = 2) -> RegionGraph:
    """Square windows over an image, level over level, like receptive fields of a small convolutional net."""
    whole(height, "a height", 1, MOST_POSITIONS)
    whole(width, "a width", 1, MOST_POSITIONS // height)
    whole(size, "a size of windows", 2, MOST_POSITIONS)
    whole(stride, "a stride", 1, size)
    rows, columns, level = height, width, 0
    children: dict[str, tuple[str, ...]] = {f"0.{r}.{c}": () for r in range(rows) for c in range(columns)}
    positions = {f"0.{r}.{c}": (r * width + c,) for r in range(height) for c in range(width)}
    while rows * columns > 1:
        up, across = (range(0, max(1, side - size + stride), stride) for side in (rows, columns))
        for r, top in enumerate(up):
            for c, left in enumerate(across):
                children[f"{level + 1}.{r}.{c}"] = tuple(
                    f"{level}.{y}.{x}"
                    for y in range(top, min(top + size, rows))
                    for x in range(left, min(left + size, columns))
                )
            _few(children)
        rows, columns, level = len(up), len(across), level + 1
    return RegionGraph.of(children, positions)
