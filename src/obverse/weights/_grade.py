"""What a decomposition says, as plain values: numbers, a grade, a sentence. Not for computing the parts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .._core import FIXED, brief, counted, number
from . import _marchenko_pastur as law
from ._decompose import Split
from ._edges import HEAVY
from ._profile import unevenness
from ._shrinkage import shrunk, strength_errors, strengths
from .results import Decomposition, Direction, Grade, Interval, Number

OFF_THE_LAW = 0.1  # a bulk this much further from the law than noise is not called random
NEAR_THE_LAW = 0.01  # closer than this it is, however sure the difference
MOSTLY = 0.5  # of the energy
FINITE = (
    0.02  # relative, of the energy: what is left of finite size in strengths, measured on planted signals
)
MIN_SIDE = 32  # smaller matrices have no bulk that could be compared with the law


def nothing_to_tell(
    rows: int, columns: int, empty: tuple[int, int], alpha: float, sentence: str
) -> Decomposition:
    """For matrices that are too small or empty."""
    return Decomposition(
        rows=rows,
        columns=columns,
        empty_rows=empty[0],
        empty_columns=empty[1],
        method="none",
        alpha=alpha,
        grade="cannot tell",
        sentence=f"cannot tell: {sentence}",
        rank=0,
        rank_interval=(0, max(0, min(rows - empty[0], columns - empty[1]))),
        rank_is_bound=True,
        settled=True,
        directions=(),
        upper_p=None,
        below=(),
        lower_p=None,
        null_directions=0,
        scale=0.0,
        lower=0.0,
        upper=0.0,
        kurtosis=0.0,
        heavy_tails=False,
        distance=None,
        profile_share=None,
        signal_share=None,
        random_share=None,
    )


def summarize(split: Split, shape: tuple[int, int], empty: tuple[int, int], alpha: float) -> Decomposition:
    """The numbers of a matrix that was taken apart."""
    rows, columns = len(split.of_rows), len(split.of_columns)
    count = len(split.above)
    size = (rows - count, columns - count)
    planted = planted_strengths(split)
    kept = shrunk(split.above, *size, split.scale)
    lower, upper = law.edges(*size, split.scale) if split.scale > 0 else (0.0, 0.0)
    signal = _signal_share(split, planted)
    about = _Facts(
        rank=count,
        short=min(rows, columns),
        signal=signal.value,
        off=_excess(split.distance),
        surely=split.distance is not None and split.distance.p is not None and split.distance.p < alpha,
        below=len(split.below),
        zeros=split.zeros,
        at_least=split.at_least,
        is_open=split.is_open,
        cut_short=split.at_least and not split.exact,
        no_bulk=split.scale <= 0,
        heavy=split.kurtosis > HEAVY,
    )
    grade = _grade(about)
    return Decomposition(
        rows=shape[0],
        columns=shape[1],
        empty_rows=empty[0],
        empty_columns=empty[1],
        method="exact" if split.exact else "krylov",
        alpha=alpha,
        grade=grade,
        sentence=_sentence(grade, about, empty),
        rank=count,
        rank_interval=(split.count_low, split.count_high),
        rank_is_bound=split.at_least or split.is_open,
        settled=split.settled,
        directions=tuple(
            Direction(float(value), float(strength), float(best), p)
            for value, strength, best, p in zip(
                split.above, planted, kept, split.above_p[:count], strict=True
            )
        ),
        upper_p=split.above_p[count] if len(split.above_p) > count else None,
        below=tuple(split.below.tolist()),
        lower_p=split.below_p[0] if split.below_p else None,
        null_directions=split.zeros,
        scale=split.scale,
        lower=lower,
        upper=upper,
        kurtosis=split.kurtosis,
        heavy_tails=about.heavy,
        distance=split.distance,
        profile_share=_profile_share(split),
        signal_share=signal,
        random_share=_random_share(signal, about),
    )


@dataclass(frozen=True)
class _Facts:
    rank: int
    short: int
    signal: float
    off: float  # how much further from the law than noise
    surely: bool  # further than chance allows
    below: int
    zeros: int
    at_least: bool
    is_open: bool  # no gap below the weakest direction
    cut_short: bool  # more directions than the search had room for
    no_bulk: bool
    heavy: bool


def _excess(distance: Number | None) -> float:
    if distance is None or distance.null is None:
        return 0.0
    return max(0.0, distance.value - distance.null)


def planted_strengths(split: Split) -> law.Array:
    """Without what the noise adds, and without what the profile does: it divides by energies of lines that
    are themselves measured, with a relative variance of (2 + kurtosis) / length."""
    rows, columns = len(split.of_rows), len(split.of_columns)
    count = len(split.above)
    if split.scale <= 0:
        return split.above
    # the directions lengthen each other too, half as much as those of the noise do
    seen = strengths(split.above, rows - count / 2, columns - count / 2, split.scale)
    inflated = 1 + (2 + max(split.kurtosis, -2.0)) * (1 / rows + 1 / columns)
    result: law.Array = seen / math.sqrt(inflated)
    return result


def _signal_share(split: Split, planted: law.Array) -> Interval:
    """‖S‖² ÷ (‖S‖² + E‖N‖²), from the strengths; the interval knows their errors and that of the count."""
    rows, columns = len(split.of_rows), len(split.of_columns)
    noise = rows * columns * split.scale**2
    if split.scale <= 0:
        return Interval(1.0, 1.0, 1.0) if len(planted) else Interval(0.0, 0.0, 0.0)
    energy = float(planted @ planted)
    errors = strength_errors(planted, rows, columns, split.scale)
    error = 1.96 * math.sqrt(float(np.sum((2 * planted * errors) ** 2))) + FINITE * energy
    surely = planted[: split.count_low]
    maybe = (split.count_high - len(planted)) * law.threshold_strength(rows, columns, split.scale) ** 2
    low = max(0.0, min(energy - error, float(surely @ surely)))
    high = energy + error + maybe
    return Interval(energy / (energy + noise), low / (low + noise), high / (high + noise))


def _profile_share(split: Split) -> Number:
    """Of the layer's energy: what it would not have if all rows and columns were as the typical one."""
    rows, columns = len(split.of_rows), len(split.of_columns)
    of_rows, of_columns = unevenness(split.of_rows), unevenness(split.of_columns)
    # equal rows of noise: relative variance (2 + kurtosis) / columns of their energies, half of it here
    null = (2 + max(split.kurtosis, -2.0)) / 2 * (1 / rows + 1 / columns)
    return Number(1 - (1 - of_rows) * (1 - of_columns), null=min(null, 1.0))


def _random_share(signal: Interval, facts: _Facts) -> Interval:
    """The bulk's share of the energy, times the share of its directions that are where the law has them.

    Where the bulk is structured otherwise, nothing is known to be random.
    """
    on_the_law = 1 - facts.off if facts.surely else 1.0
    random = facts.off <= OFF_THE_LAW and not facts.cut_short
    low = (1 - signal.high) * on_the_law if random else 0.0
    return Interval((1 - signal.value) * on_the_law, low, 1 - signal.low)


def _grade(facts: _Facts) -> Grade:
    if facts.at_least and facts.surely and not facts.cut_short:
        return "structured otherwise"
    if facts.no_bulk or facts.signal > MOSTLY:
        return "mostly signal"
    if facts.cut_short:
        return "cannot tell"
    off = facts.surely and facts.off > (NEAR_THE_LAW if facts.rank == 0 else OFF_THE_LAW)
    if off or (facts.rank == 0 and facts.below):
        return "structured otherwise"
    return "signal in a random bulk" if facts.rank else "untouched"


def _sentence(grade: Grade, facts: _Facts, empty: tuple[int, int]) -> str:
    parts = []
    share = f"{brief(round(100 * facts.signal, 1))}{FIXED}%"
    if facts.no_bulk:
        parts.append(
            f"{facts.rank} of {facts.short} directions carry everything; the others are empty"
            if facts.rank != 1
            else f"1 of {facts.short} directions carries everything; the others are empty"
        )
    elif facts.rank:
        one = facts.rank == 1
        of = f"{facts.rank} of {facts.short} directions"
        if facts.is_open or facts.cut_short:  # nothing says that these are all
            stands = "stands" if one else "stand"
            gap = f", with no gap below {'it' if one else 'the weakest'}"
            parts.append(
                f"at least {of} {stands} out from noise, {share} of the energy"
                + ("" if facts.cut_short else gap)
            )
        else:
            least = "at least " if facts.at_least else ""
            verb = "carries" if one and not least else "carry"
            parts.append(f"{least}{of} {verb} the signal, {share} of the energy")
    else:
        parts.append("no direction stands out from noise")
    if not facts.no_bulk:
        parts.append(_bulk_sentence(facts))
    if facts.below and not facts.no_bulk:
        zero = f" ({facts.zeros} of them 0)" if facts.zeros else ""
        parts.append(f"{counted(facts.below, 'singular value')} smaller than random numbers have{zero}")
    if facts.heavy:
        parts.append("heavy-tailed or sparse entries, so that weak directions can be missed")
    if any(empty):
        lines = [counted(many, name) for many, name in zip(empty, ("row", "column"), strict=True) if many]
        parts.append(f"{' and '.join(lines)} of zeros left out")
    return "; ".join(parts)


def _bulk_sentence(facts: _Facts) -> str:
    if facts.cut_short:
        return "whether more do, only all singular values tell (--exact)"
    rest = "the rest" if facts.rank else "the spectrum"
    if facts.is_open:  # nothing is known of the rest but its singular values
        if not facts.surely or facts.off <= NEAR_THE_LAW:
            return "the singular values of the rest are like those of random numbers"
        if facts.off <= OFF_THE_LAW:
            return (
                "the singular values of the rest are nearly like those of random numbers "
                f"({number(facts.off)} off their distribution)"
            )
    elif not facts.surely or facts.off <= NEAR_THE_LAW:
        return (
            f"{rest} is like that of random numbers" if not facts.rank else "the rest is like random numbers"
        )
    off = number(facts.off)
    if facts.off <= OFF_THE_LAW and facts.rank:
        return f"the rest is nearly like random numbers ({off} off their distribution)"
    return f"{rest} is not like that of random numbers ({off} off their distribution)"
