"""What a decomposition says, as plain values: numbers, a grade, a sentence. Not for computing the parts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..._core import FIXED, brief, counted, in_percent, number
from ..results import MOSTLY, Decomposition, Direction, Grade, Interval, Number
from . import marchenko_pastur as law
from .edges import HEAVY, upper_p
from .profile import unevenness
from .shrinkage import shrunk, strength_errors, strengths
from .split import Split

OFF_THE_LAW = 0.1  # a bulk this much further from the law than noise is not called random
NEAR_THE_LAW = 0.01  # closer than this it is, however sure the difference
FEW = 0.05  # of the directions may be missing beside what is called random
FINITE = (
    0.02  # relative, of the energy: what is left of finite size in strengths, measured on planted signals
)
SPREADS = 6  # standard errors: so much stronger than the weakest that is seen, directions nearly always are
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
        off=0.0 if split.distance is None else split.distance.excess,
        off_error=(split.distance and split.distance.spread) or 0.0,
        surely=split.distance is not None and split.distance.p is not None and split.distance.p < alpha,
        below=len(split.below),
        counted=split.exact,
        zeros=split.zeros,
        at_least=split.at_least,
        is_open=split.is_open,
        cut_short=split.at_least and not split.exact,
        no_bulk=split.scale <= 0,
        heavy=split.kurtosis > HEAVY,
        seen_from=0.0 if count else seen_from(rows, columns, split.kurtosis, alpha),
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
        random_share=_random_share(signal, about, grade),
    )


@dataclass(frozen=True)
class _Facts:
    rank: int
    short: int
    signal: float
    off: float  # how much further from the law than noise
    off_error: float
    surely: bool  # further than chance allows
    below: int
    counted: bool  # or there may be more of them
    zeros: int
    at_least: bool
    is_open: bool  # no gap below the weakest direction
    cut_short: bool  # more directions than the search had room for
    no_bulk: bool
    heavy: bool
    seen_from: float  # the share of the energy from which on a direction would have been seen

    @property
    def missing(self) -> float:
        return self.below / self.short

    @property
    def is_off(self) -> bool:
        """Whether what the signal leaves is not random: where nothing is signal, little is allowed."""
        off = self.surely and self.off > (OFF_THE_LAW if self.rank else NEAR_THE_LAW)
        uncounted = bool(self.below) and not self.counted and not self.rank
        return off or uncounted or self.missing > FEW


def seen_from(rows: int, columns: int, kurtosis: float, alpha: float) -> float:
    """The share of the energy with which one direction beside noise of this shape is nearly always seen.

    Its strength is that of a direction seen right where noise reaches with the chance `alpha`, and `SPREADS`
    standard errors more.
    """
    low, high = law.edges(rows, columns)[1] / 2, 3 * law.edges(rows, columns)[1]
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if upper_p(middle, rows, columns, 1.0, kurtosis) > alpha else (low, middle)
    least = strengths(np.array([high]), rows, columns, 1.0)
    least = np.maximum(least, law.threshold_strength(rows, columns, 1.0))
    sure = float((least + SPREADS * strength_errors(least, rows, columns, 1.0))[0])
    return sure**2 / (sure**2 + rows * columns)


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


def _random_share(signal: Interval, facts: _Facts, grade: Grade) -> Interval:
    """The bulk's share of the energy, times the share of its directions that are where the law has them.

    Where the bulk is structured otherwise, or not all of the signal was found, nothing is known to be random.
    What is left is a bound: of numbers at a distance d from a law, at most a share 1 − d follows it.
    """
    if facts.no_bulk:
        return Interval(1 - signal.value, 1 - signal.high, 1 - signal.low)
    if facts.cut_short or grade == "structured otherwise" or (facts.surely and facts.off > OFF_THE_LAW):
        surely_off = max(0.0, facts.off - 1.96 * facts.off_error) if facts.surely else 0.0
        return Interval.at_most((1 - signal.low) * (1 - max(surely_off, facts.missing)))
    on_the_law = 1 - max(facts.off if facts.surely else 0.0, facts.missing)
    low, high = (1 - signal.high) * on_the_law, (1 - signal.low) * (1 - facts.missing)
    return Interval((1 - signal.value) * on_the_law, low, high)


def _grade(facts: _Facts) -> Grade:
    if facts.at_least and facts.surely and not facts.cut_short:
        return "structured otherwise"
    if facts.no_bulk or facts.signal > MOSTLY:
        return "mostly signal"
    if facts.cut_short:
        return "cannot tell"
    if facts.is_off:
        return "structured otherwise"
    return "signal in a random bulk" if facts.rank or facts.below else "untouched"


def _sentence(grade: Grade, facts: _Facts, empty: tuple[int, int]) -> str:
    parts = []
    signal = in_percent(facts.signal)
    if facts.no_bulk:
        carry = f"{facts.rank} of {facts.short} directions {'carries' if facts.rank == 1 else 'carry'}"
        parts.append(
            f"{carry} everything; the others are empty"
            if facts.counted
            else f"{carry} more than 99.9999{FIXED}% of the energy; what the rest is, only all singular "
            "values tell (--exact)"
        )
    elif facts.rank:
        one = facts.rank == 1
        of = f"{facts.rank} of {facts.short} directions"
        if facts.is_open or facts.cut_short:  # nothing says that these are all
            stands = "stands" if one else "stand"
            gap = f", with no gap below {'it' if one else 'the weakest'}"
            parts.append(
                f"at least {of} {stands} out from noise, {signal} of the energy"
                + ("" if facts.cut_short else gap)
            )
        else:
            least = "at least " if facts.at_least else ""
            verb = "carries" if one and not least else "carry"
            parts.append(f"{least}{of} {verb} the signal, {signal} of the energy")
    else:
        parts.append("no direction stands out from noise")
    if not facts.no_bulk:
        parts += [*_below_sentence(facts), _bulk_sentence(facts)]
    if grade == "untouched" and not facts.heavy:
        parts.append(
            f"a direction with {brief(100 * facts.seen_from)}{FIXED}% of the energy would have shown"
        )
    if facts.heavy:
        parts.append("heavy-tailed or sparse entries, so that weak directions can be missed")
    if any(empty):
        lines = [counted(many, name) for many, name in zip(empty, ("row", "column"), strict=True) if many]
        parts.append(f"{' and '.join(lines)} of zeros left out")
    return "; ".join(parts)


def _below_sentence(facts: _Facts) -> list[str]:
    if not facts.below:
        return []
    zero = "0 to float32 precision"
    if facts.zeros < facts.below:
        zero = f"{facts.zeros} of them {zero}"
    elif facts.below > 1:
        zero = f"all {zero}"
    verb = "is" if facts.below == 1 else "are"
    least = "" if facts.counted else "at least "
    said = f"{least}{counted(facts.below, 'singular value')} {verb} smaller than those of random numbers"
    return [f"{said} ({zero})" if facts.zeros else said]


def _bulk_sentence(facts: _Facts) -> str:
    if facts.cut_short:
        return "whether more do, only all singular values tell (--exact)"
    rest = "the rest of the spectrum" if facts.below else "the spectrum"
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
    off = f"({number(facts.off)} off their distribution)"
    if not facts.rank:
        return f"{rest} is not like that of random numbers {off}"
    nearly = "nearly" if facts.off <= OFF_THE_LAW else "not"
    return f"the rest is {nearly} like random numbers {off}"
