"""What changed from one matrix to another of its shape, graded. Not for finding which belong together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..._core import brief, in_percent
from .._decomposition.grade import MIN_SIDE
from .._decomposition.marchenko_pastur import threshold_strength
from .._decomposition.parts import Parts, decompose
from .grids import FORMATS, nearest, rows_of_a_band
from .results import UNCHANGED, UNKNOWN, Change
from .rounded_update import Update, rounded_update
from .rounding import Rounded, rounded_to_a_format, rounding
from .simple import FEW_LINES, counts, lines, reordered, scaled

LARGE = 2**26  # entries, of which a comparison takes several copies in float64
SAMPLE = 2**24  # entries of the rows that are taken apart in place of all
SHOWN = 64
NAMED = 3  # strengths in a sentence
MORE = 4  # directions that may be known beside those that stand out, or half as many as do
_SURELY = 4.0  # standard deviations that separate stochastic rounding from another
_NEARLY_ALL = 0.95
_LEAST_ERROR = 1e-6  # relative energy: directions are found in float32
_MOST_ERROR = 0.5
_ERROR_MARGIN = 2.0  # on the energy by which the directions are misjudged, which is an estimate itself


@dataclass(frozen=True)
class Found:
    """The grade, the sentence, and numbers by their names in LayerDifference."""

    change: Change
    sentence: str
    numbers: dict[str, Any]


@torch.no_grad()
def compare(
    tuned: Tensor,
    base: Tensor,
    *,
    alpha: float,
    exact: bool | None,
    generator: torch.Generator,
) -> Found:
    """From base to tuned: two matrices of one shape, in the precision in which they are stored."""
    numbers = counts(tuned, base)
    if not numbers["changed"]:
        return Found("identical", "identical: every number is the same", numbers)
    if how := rounded_to_a_format(tuned, base):
        return Found("nothing but rounding", f"nothing but rounding: {how}", numbers)
    if base.numel() > LARGE:
        return _of_some_rows(tuned, base, numbers, alpha, exact, generator)
    rounded = rounding(tuned, base)
    if rounded.how:
        return Found("nothing but rounding", f"nothing but rounding: {rounded.how}", numbers)
    moved = tuned.double() - base.double()
    if (factor := scaled(tuned, base, rounded)) is not None:
        said = f"scaled: tuned is base times {brief(factor)}, as near as {rounded.grid} can hold it"
        return Found("scaled", said, numbers | {"factor": factor})
    if (kept := reordered(tuned, base)) is not None:
        said = f"rows in another order: the same rows, {tuned.shape[0] - kept:,} of them in another place"
        return Found("rows in another order", said, numbers)
    return _taken_apart(moved, tuned, base, rounded, numbers, alpha, exact, generator)


def _of_some_rows(
    tuned: Tensor,
    base: Tensor,
    numbers: dict[str, Any],
    alpha: float,
    exact: bool | None,
    generator: torch.Generator,
) -> Found:
    """Of a matrix too large to be taken apart in float64: what is said of some of the rows that changed."""
    height = rows_of_a_band(base)
    other = torch.cat(
        [(one != two).any(1) for one, two in zip(tuned.split(height), base.split(height), strict=True)]
    )
    changed = other.nonzero().flatten()
    most = max(SAMPLE // base.shape[1], MIN_SIDE)
    rows = changed[torch.randperm(len(changed), generator=generator)[:most]].sort().values
    found = compare(tuned[rows], base[rows], alpha=alpha, exact=exact, generator=generator)
    chosen = f"{len(rows):,} of them, chosen at random" if len(rows) < len(changed) else "in these"
    where = f"{len(changed):,} of {len(base):,} rows changed; {chosen}"
    few = len(changed) <= FEW_LINES * len(base)
    grade: Change = "in a few rows" if few and found.change not in (*UNCHANGED, *UNKNOWN) else found.change
    return Found(grade, f"{where}: {found.sentence}", found.numbers | numbers)


def _taken_apart(
    moved: Tensor,
    tuned: Tensor,
    base: Tensor,
    rounded: Rounded,
    numbers: dict[str, Any],
    alpha: float,
    exact: bool | None,
    generator: torch.Generator,
) -> Found:
    """The difference, or what of it rounding cannot have made where that has less noise."""
    energy, beyond_energy = (
        float(moved.square().sum()),
        float(rounded.beyond.square().sum()),
    )
    finer = rounded.one_side and beyond_energy < energy
    change = rounded.beyond if finer else moved
    allowed = rounded.step if finer or not rounded.one_side else rounded.step / 2
    some = change != 0
    rows, columns = int(some.any(1).sum()), int(some.any(0).sum())
    typical = math.sqrt(float(change.square().mean()))
    numbers["visible_from"] = threshold_strength(change.shape[0], change.shape[1], typical)
    where = lines(rows, columns, change)
    if where and finer:
        where = f"what rounding does not explain is {where}"
    if (
        min(rows, columns) < MIN_SIDE
        and (found := _beside_levels(moved, tuned, rounded, numbers)) is not None
    ):
        return found
    if min(rows, columns) < MIN_SIDE:
        return _small(numbers, where)
    scale = float(change.abs().max())
    parts = decompose((change / scale).float(), alpha=alpha, exact=exact, generator=generator)
    if parts.summary.method == "none":
        return _small(numbers, where)
    numbers["parts"] = parts.summary
    if (known := _known_update(parts, tuned, base, rounded, generator)) is not None:
        return _rounded_into_base(known, tuned, base, moved, rounded, numbers, where)
    signal, values = _within(change, parts)
    numbers["rank"], numbers["rank_is_bound"] = parts.rank, parts.summary.rank_is_bound
    if parts.rank:
        numbers["strengths"] = tuple(values[:SHOWN].tolist())
        numbers["share"] = min(1.0, float(values.square().sum() / change.square().sum()))
    if not parts.rank and _is_stochastic(tuned, base, moved, rounded):
        return Found(
            "nothing but rounding",
            f"nothing but rounding: each number is one of the two of {rounded.grid} beside the other, taken "
            "as often as stochastic rounding does, and no direction stands out",
            numbers,
        )
    if not parts.rank and (found := _beside_levels(moved, tuned, rounded, numbers)) is not None:
        return found
    zeroed = bool((tuned == 0)[moved != 0].all())
    return _graded(parts, change, signal, allowed, rounded, numbers, where, zeroed)


def _beside_levels(moved: Tensor, tuned: Tensor, rounded: Rounded, numbers: dict[str, Any]) -> Found | None:
    """Of numbers on few levels, where no direction stands out: a little further than to the nearest."""
    pruned = int((tuned == 0).logical_and_(moved != 0).sum()) > numbers["changed"] / 2
    if not rounded.quantized or pruned:
        return None
    near = float(((rounded.beyond == 0) | (moved.abs() <= rounded.step)).double().mean())
    if near < _NEARLY_ALL:
        return None
    other = "base" if rounded.quantized == "tuned" else "tuned"
    said = (
        f"cannot tell: {rounded.quantized} has {rounded.grid}, and {in_percent(near)} of its numbers are on "
        f"one of the two beside that of {other}, not always on the nearer one"
        f"{'; no direction stands out' if 'rank' in numbers else ''}: another way of rounding does that, and "
        "so does a small change"
    )
    return Found("cannot tell", said, numbers)


def _small(numbers: dict[str, Any], where: str) -> Found:
    if where:
        grade: Change = "in a few rows" if "row" in where else "in a few columns"
        return Found(grade, f"{where}; {_how_much(numbers)}", numbers)
    needs = f"that takes at least {MIN_SIDE} rows and columns that changed"
    said = f"{_how_much(numbers)}; too few to take apart: {needs}"
    return Found("changed", said, numbers)


def _graded(
    parts: Parts,
    change: Tensor,
    signal: Tensor,
    allowed: Tensor,
    rounded: Rounded,
    numbers: dict[str, Any],
    where: str,
    zeroed: bool,
) -> Found:
    said = ""
    if parts.rank:
        said = _rest_is_rounding(change, signal, parts.rank, allowed, rounded)
    if said:
        grade: Change = "directions"
        said = f"{_directions(numbers)}; {said}"
        if parts.rank > 1 and _is_lost_in_part(numbers, change, rounded):
            said += "; rounding into base may have added the weakest of the directions"
    else:
        grade = "scattered" if numbers["changed"] <= change.numel() / 2 else "dense"
        said = f"{_how_much(numbers)}; {_nature(parts, numbers)}"
        if bool((change.abs() <= rounded.step).all()):
            said += f"; no number moved by more than one step of {rounded.grid}"
        if zeroed:
            said += "; all numbers that changed became 0"
    if where:
        grade = "in a few rows" if "row" in where else "in a few columns"
        said = f"{where}; {said}"
    return Found(grade, said, numbers)


def _known_update(
    parts: Parts, tuned: Tensor, base: Tensor, rounded: Rounded, generator: torch.Generator
) -> Update | None:
    """The few directions of which rounding into base alone makes all of the change, where it does.

    Weak ones may be known that do not stand out of what rounding leaves, so some more are allowed.
    """
    if not rounded.fewer_bits or rounded.one_side:
        return None
    (kind,) = (one for one in FORMATS if one.name == rounded.grid)
    return rounded_update(tuned, base, kind, parts.rank + max(MORE, parts.rank // 2), generator)


def _rounded_into_base(
    known: Update,
    tuned: Tensor,
    base: Tensor,
    moved: Tensor,
    rounded: Rounded,
    numbers: dict[str, Any],
    where: str,
) -> Found:
    """How many numbers of tuned are those of base and the update, rounded; base alone has some of them."""
    (kind,) = (one for one in FORMATS if one.name == rounded.grid)
    numbers["rank"], numbers["rank_is_bound"] = len(known.values), False
    numbers["strengths"] = tuple(known.values[:SHOWN].tolist())
    inner = known.left.T @ moved @ known.right
    numbers["share"] = min(1.0, float(inner.square().sum() / moved.square().sum()))
    update = (known.left * known.values) @ known.right.T
    right = int((nearest(base.double() + update, kind) == tuned.double()).sum())
    alone = moved.numel() - numbers["changed"]
    said = (
        f"{_directions(numbers)}; base plus these, rounded to {rounded.grid}, has "
        f"{in_percent(right / moved.numel())} of tuned’s numbers, base alone "
        f"{in_percent(alone / moved.numel())}"
    )
    grade: Change = "directions"
    if where:
        grade = "in a few rows" if "row" in where else "in a few columns"
        said = f"{where}; {said}"
    return Found(grade, said, numbers)


def _is_lost_in_part(numbers: dict[str, Any], change: Tensor, rounded: Rounded) -> bool:
    """Whether an update of few directions can have become more of them.

    Into numbers that are on the grid already it goes where it exceeds half a step, which is no linear rule:
    products of its directions appear beside them, weaker, while a part of the numbers stays as it was.
    """
    return rounded.fewer_bits and not rounded.one_side and numbers["changed"] < _NEARLY_ALL * change.numel()


def _nature(parts: Parts, numbers: dict[str, Any]) -> str:
    """What a change is like that rounding does not explain."""
    summary = parts.summary
    stands_out = _directions(numbers) if parts.rank else "no direction stands out"
    if summary.grade == "untouched":
        return "no direction stands out, as in random numbers"
    if summary.grade == "structured otherwise":
        return f"{stands_out}; the rest is not like random numbers"
    if summary.grade == "cannot tell" or summary.scale == 0:
        return stands_out
    if summary.below:
        fewer = f"{len(summary.below):,} singular value{'s' * (len(summary.below) > 1)} smaller than theirs"
        return f"{stands_out}; the rest is like random numbers, with {fewer}"
    return f"{stands_out}; the rest is like random numbers"


def _how_much(numbers: dict[str, Any]) -> str:
    count = f"{numbers['changed']:,} numbers changed" if numbers["changed"] != 1 else "one number changed"
    size = numbers["size"]
    return count if size is None else f"{count}, by {in_percent(size)} of base’s norm"


def _directions(numbers: dict[str, Any]) -> str:
    rank, strengths = numbers["rank"], numbers["strengths"]
    least = "at least " if numbers["rank_is_bound"] else ""
    what = "one direction" if rank == 1 and not least else f"{least}{rank:,} directions"
    listed = ", ".join(brief(one) for one in strengths[:NAMED]) + (" …" if rank > NAMED else "")
    return f"{what} (strength {listed}) with {in_percent(numbers['share'])} of the change’s energy"


def _within(change: Tensor, parts: Parts) -> tuple[Tensor, Tensor]:
    """What of the change lies in the signal's directions, its profile put back; and its singular values."""
    left, _ = torch.linalg.qr(parts.left.double() * parts.row_scales.double()[:, None])
    right, _ = torch.linalg.qr(parts.right.double() * parts.column_scales.double()[:, None])
    inner = left.T @ change @ right
    return left @ inner @ right.T, torch.linalg.svdvals(inner)


def _rest_is_rounding(change: Tensor, signal: Tensor, rank: int, allowed: Tensor, rounded: Rounded) -> str:
    """What is to be said where rounding can have made all that the directions leave; empty where it cannot.

    Each number may be off by what rounding moves it at most. What is beyond that may come from the error with
    which the directions are known, k (rows + columns) of rows · columns parts of the noise. Where an update
    is mostly rounded away, what is left of it are single steps at the smallest numbers.
    """
    rows, columns = change.shape
    rest = (change - signal).abs_()
    energy = float(rest.square().sum())
    over = float((rest - allowed).clamp_(min=0).square_().sum())
    del rest
    share = _ERROR_MARGIN * rank * (rows + columns) / (rows * columns)
    if over <= min(_MOST_ERROR, share) * energy + _LEAST_ERROR * float(signal.square().sum()):
        return f"the rest is no more than rounding to {rounded.grid} can make"
    moved = change != 0
    single = int((change.abs() <= rounded.step * (1 + _LEAST_ERROR)).logical_and_(moved).sum())
    if rounded.fewer_bits and single >= moved.sum() / 2:
        return (
            f"most numbers that changed did so by one step of {rounded.grid}, so that of the rest nothing "
            "can be told"
        )
    return ""


def _is_stochastic(tuned: Tensor, base: Tensor, moved: Tensor, rounded: Rounded) -> bool:
    """Whether each number went up or down to its neighbours with the chances of stochastic rounding."""
    if not rounded.one_side or rounded.grid not in {one.name for one in FORMATS}:
        return False
    size = moved.abs() / rounded.step
    if bool((size >= 1).any()):
        return False
    # the distance to the number taken is f with the chance 1 − f, and 1 − f with the chance f
    near = torch.minimum(size, 1 - size)
    expected = 2 * near * (1 - near)
    spread = (near * (1 - near) * (1 - 2 * near).square()).sum().sqrt()
    return bool((size - expected).sum().abs() <= _SURELY * spread)
