"""The levels of quantized numbers: of each row, column, block of a row, or of all. Not for formats of floats.

They are found from the numbers alone: few different ones; whole multiples of 1/127 of the largest; or evenly
spaced ones, of which a small block uses some. How a number was put on its level, nobody wrote down: to the
nearest, mostly, with the scale as it was before it was stored itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from .grids import PROBE

LEVELS = 256  # of a grid: eight bits
EVEN = 64  # levels of a block that are told by their spacing alone: six bits
BLOCKS = (256, 128, 64, 32, 16)
CROWDED = 0.75  # a grid has fewer levels in use than this share of its numbers
WIDE = 4.0  # times the error of the levels, between two of them: far enough apart to be told
MOSTLY_WIDE = 0.9  # of the gaps; around 0 they are narrow
PARTS = (1, 2, 3)  # the narrowest gap between the numbers of a block is so many times that of the levels
SURE = 0.1  # of a gap between levels: what the numbers are off them, at most
RESCALED = 0.05  # relative, by which a scale may have changed when it was stored
PROBED = 16  # rows of a grouping

Turn = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class OnGrid:
    """Numbers put on the levels that others use."""

    title: str  # "few levels for each row"
    rounded: Tensor  # float64
    step: Tensor  # float64: between the levels on either side
    size: Tensor  # float64: what the errors of the levels are relative to


@dataclass(frozen=True)
class _Slack:
    """Relative errors: of the numbers, as their format stores them; and of the levels, with their scale's."""

    stored: float
    level: float


def on_grids_of(values: Tensor, other: Tensor, *, stored: float, level: float) -> Iterator[OnGrid]:
    """`other` on the levels of `values`, where these are few: in all, of each row, column or block of a row.

    `stored` is the relative error of the numbers, `level` that of the levels, which have a scale that is
    stored in a format of its own.
    """
    slack = _Slack(stored, level)
    for title, there, back in _groupings(values):
        grouped = there(values).double()
        few = grouped[:: max(1, len(grouped) // PROBED)][:PROBED]
        for found in _KINDS:
            if found.holds(few, slack) and found.holds(grouped, slack):
                for rounded, step in found.put(grouped, there(other).double(), slack):
                    size = grouped.abs()
                    if found.has_offset:  # with an error of its own, and the scale's is that of the range
                        sides = size.amax(1) + grouped.amax(1) - grouped.amin(1)
                        size = sides[:, None].expand_as(rounded)
                    else:
                        size = torch.maximum(size, rounded.abs())
                    yield OnGrid(f"{found.name} for {title}", back(rounded), back(step), back(size))


def _groupings(values: Tensor) -> Iterator[tuple[str, Turn, Turn]]:
    """Each as rows of numbers that share their levels, and back."""
    shape = values.shape
    columns = shape[1]

    def as_it_was(one: Tensor) -> Tensor:
        return one.reshape(shape)

    yield "all numbers", lambda one: one.reshape(1, -1), as_it_was
    yield "each row", lambda one: one, as_it_was
    yield "each column", lambda one: one.T.contiguous(), lambda one: one.T.contiguous()
    for block in BLOCKS:
        if columns % block == 0 and columns > block:
            yield f"each {block} numbers of a row", partial(_in_blocks, block=block), as_it_was


def _in_blocks(values: Tensor, block: int) -> Tensor:
    return values.reshape(-1, block)


def _few_levels(grouped: Tensor, slack: _Slack) -> bool:
    """Far fewer different numbers than numbers, and further apart than they are uncertain."""
    if grouped.shape[1] > PROBE and not _few_levels(grouped[:, :PROBE], slack):
        return False
    ordered = grouped.sort(1).values
    gaps = ordered[:, 1:] - ordered[:, :-1]
    distinct = (gaps > 0).sum(1) + 1
    if bool((distinct > min(LEVELS, CROWDED * grouped.shape[1])).any()):
        return False
    sizes = torch.maximum(ordered[:, 1:].abs(), ordered[:, :-1].abs())
    wide = (gaps > WIDE * slack.level * sizes).sum(1)
    return bool(((distinct <= 1 / (2 * slack.level)) | (wide >= MOSTLY_WIDE * (distinct - 1))).all())


def _on_levels(levels: Tensor, values: Tensor, slack: _Slack) -> Iterator[tuple[Tensor, Tensor]]:
    """The nearest of each row's levels, and the distance between those on either side.

    And the same with the scale that they had if the largest number set it, as is the rule.
    """
    yield _nearest_of(levels, values)
    factor = values.abs().amax(1, keepdim=True) / levels.abs().amax(1, keepdim=True).clamp_min(_TINY)
    factor = torch.where((factor - 1).abs() <= RESCALED, factor, 1.0)
    if bool(((factor - 1).abs() > slack.level).any()):
        rounded, step = _nearest_of(levels * factor, values)
        yield rounded / factor, step


def _nearest_of(levels: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    ordered = levels.sort(1).values
    at, last = torch.searchsorted(ordered, values.contiguous()), ordered.shape[1] - 1
    above, below = ordered.gather(1, at.clamp(max=last)), ordered.gather(1, (at - 1).clamp(min=0))
    return torch.where(values - below < above - values, below, above), above - below


def _multiples(grouped: Tensor, slack: _Slack) -> bool:
    """Whole multiples of 1/127 of the largest: eight bits, one of them the sign."""
    if grouped.shape[1] < BLOCKS[-2]:
        return False
    step = _of_the_largest(grouped)
    for part in (grouped[:, :PROBE], grouped):  # most are found out by a few
        times = part / step
        if not bool(((times - times.round()).abs() <= times.abs() * slack.level).all()):
            return False
    return True


def _on_multiples(levels: Tensor, values: Tensor, slack: _Slack) -> Iterator[tuple[Tensor, Tensor]]:
    step = _of_the_largest(levels)
    yield (values / step).round_().clamp_(-LEVELS // 2, LEVELS // 2).mul_(step), step.expand_as(values)


def _of_the_largest(grouped: Tensor) -> Tensor:
    most = grouped.abs().amax(1, keepdim=True)
    return torch.where(most > 0, most, 1.0) / (LEVELS // 2 - 1)


def _even_levels(grouped: Tensor, slack: _Slack) -> bool:
    return grouped.shape[1] <= BLOCKS[0] and _spacing(grouped, slack) is not None


def _on_even_levels(levels: Tensor, values: Tensor, slack: _Slack) -> Iterator[tuple[Tensor, Tensor]]:
    spacing = _spacing(levels, slack)
    assert spacing is not None
    low, high = levels.amin(1, keepdim=True), levels.amax(1, keepdim=True)
    on_it = low + ((values - low) / spacing).round_() * spacing
    yield torch.minimum(torch.maximum(on_it, low), high), spacing.expand_as(values)


def _spacing(grouped: Tensor, slack: _Slack) -> Tensor | None:
    """Of each row's levels, on which all of its numbers lie; None where some row has none."""
    ordered = grouped.sort(1).values
    ordered -= ordered[:, :1].clone()
    errors = WIDE * slack.stored * grouped.abs().amax(1, keepdim=True)
    gaps = ordered[:, 1:] - ordered[:, :-1]
    narrowest = torch.where(gaps > errors, gaps, torch.inf).amin(1, keepdim=True)
    alike = narrowest == torch.inf  # one number, again and again
    narrowest = torch.where(alike, 1.0, narrowest)
    spacing = torch.zeros_like(narrowest)
    for part in PARTS:
        one = narrowest / part
        times = (ordered / one).round_()
        allowed = errors / one * (1 + times)
        fits = ((ordered / one - times).abs_() <= allowed).all(1, keepdim=True)
        fits &= (times[:, -1:] < EVEN) & (allowed[:, -1:] <= SURE)
        spacing = torch.where((spacing == 0) & (fits | alike), one, spacing)
    return spacing if bool((spacing > 0).all()) else None


@dataclass(frozen=True)
class _Kind:
    name: str
    holds: Callable[[Tensor, _Slack], bool]
    put: Callable[[Tensor, Tensor, _Slack], Iterator[tuple[Tensor, Tensor]]]
    has_offset: bool = False  # that is stored beside the scale


_KINDS = (
    _Kind("few levels", _few_levels, _on_levels),
    _Kind("few levels", _multiples, _on_multiples),
    _Kind("evenly spaced levels", _even_levels, _on_even_levels, has_offset=True),
)
_TINY = torch.finfo(torch.float64).tiny
