"""From numbers to sentences: what a layer's parts come to, and remarks about what else was measured.

Not for measuring. The verdict is the grade of the decomposition, but for two structures that it cannot see:
a mean of the entries that stands out, and blocks of different scale. Remarks say where entries, biases,
norms, cosines, blocks or recovery differ from those of random numbers; they decide nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from .._core import BadInput, counted, in_percent, number
from .results import (
    ALPHA,
    MOSTLY,
    Correlations,
    Decomposition,
    Entries,
    Finding,
    Interval,
    Number,
    Offsets,
    Reversal,
    Verdict,
)

if TYPE_CHECKING:
    from ._structure import Arrangement

PRUNED_FROM = 0.05  # share of exact zeros


@dataclass(frozen=True)
class Judgement:
    verdict: Verdict
    sentence: str
    findings: tuple[Finding, ...]
    parts: Decomposition  # the random share is that of the whole layer, its mean included


def judge(
    thresholds: Thresholds,
    entries: Entries,
    offsets: Offsets | None,
    parts: Decomposition,
    arranged: Arrangement,
    reversal: tuple[Reversal, ...],
    dead: tuple[tuple[int, int], tuple[int, int]] = ((0, 0), (0, 0)),
    mean_share: float = 0.0,
) -> Judgement:
    """The verdict of the parts, and remarks; `dead` counts dead rows and columns."""
    random_like = None if parts.grade == "cannot tell" else parts.grade == "untouched"
    deciding = Finding("parts", random_like, parts.sentence, decides=True)
    shown = [*_dead(dead), *_mean(entries, mean_share), _entries(thresholds, entries)]
    recovery = _recovery(thresholds, reversal)
    blocked = _blocks(thresholds, arranged.blocks)
    remarks = [
        *shown,
        *([_offsets(thresholds, offsets)] if offsets else []),
        _norms(thresholds, arranged),
        _correlations(thresholds, arranged.cosines),
        blocked,
        recovery,
    ]
    said = [one.sentence for one in (*shown, blocked, recovery) if one.random_like is False]
    verdict: Verdict = parts.grade
    share = parts.random_share
    if mean_share and verdict in ("untouched", "signal in a random bulk"):
        signal = parts.signal_share.value if parts.signal_share else 0.0
        carried = mean_share + (1 - mean_share) * signal
        verdict = "mostly signal" if carried > MOSTLY else "signal in a random bulk"
        if verdict != parts.grade:
            (mean,) = _mean(entries, mean_share)
            deciding = Finding("parts", False, f"{mean.sentence}; without it, {parts.sentence}", True)
            said.remove(mean.sentence)
    if blocked.random_like is False and parts.grade == "untouched" and verdict != "mostly signal":
        # the spectrum of two diagonal blocks is that of one matrix of noise
        verdict = "structured otherwise"
        deciding = Finding("parts", False, f"{deciding.sentence}, but {blocked.sentence}", True)
        said.remove(blocked.sentence)
    if share is not None and blocked.random_like is False and verdict == "structured otherwise":
        share = Interval.at_most(share.high)  # blocks of different scale are not known to be random
    if share is not None:
        left = 1 - mean_share
        parts = replace(parts, random_share=Interval(share.value * left, share.low * left, share.high * left))
    return Judgement(verdict, "; ".join([deciding.sentence, *said]), (deciding, *remarks), parts)


def _dead(dead: tuple[tuple[int, int], tuple[int, int]]) -> list[Finding]:
    """(dead, all) rows and columns."""
    parts = [
        f"{count} of {whole} {name} {'is' if count == 1 else 'are'} all 0 and left out"
        for name, (count, whole) in zip(("rows", "columns"), dead, strict=True)
        if count
    ]
    return [Finding("dead", False, ", ".join(parts))] if parts else []


def _mean(entries: Entries, mean_share: float) -> list[Finding]:
    """The mean of all entries is a part of rank one with a name of its own: no direction of the signal."""
    if not mean_share:
        return []
    times = abs(entries.mean.value) / entries.scale.value
    words = f"the mean of the entries ({number(times)} standard deviations) holds {in_percent(mean_share)}"
    return [Finding("mean", False, f"{words} of the energy and was taken off first")]


def _entries(thresholds: Thresholds, entries: Entries) -> Finding:
    normal = not _unlikely(entries.ks, thresholds) or entries.ks.value < thresholds.normal_distance
    parts = []
    if entries.zeros >= PRUNED_FROM:
        parts.append(f"{in_percent(entries.zeros)} of the entries are exactly 0")
    if entries.distinct is not None and entries.distinct <= 2:
        parts.append(f"entries take only {counted(entries.distinct, 'value')}")
    elif entries.step is not None:
        parts.append(f"entries lie on a grid of {entries.distinct} values")
    if not parts and not normal:
        law = entries.best_law
        named = f"closer to {law} than to normal" if law != "normal" else "not normal"
        parts.append(f"entries are {named} (KS {entries.ks.value:.3f})")
    if not parts:
        return Finding("entries", True, f"entries look normal (KS {entries.ks.value:.3f})")
    strong = [name for name, share in _shares(entries).items() if share >= 1]
    if strong:
        parts.append(f"their {' and '.join(strong)} would change the recovery error by 10 % or more")
    return Finding("entries", False, ", ".join(parts))


def _shares(entries: Entries) -> dict[str, float]:
    """Each moment over the size from which it matters for recovery."""
    scale = entries.scale.value
    sizes = {
        "mean": entries.mean.value / scale if scale > 0 else 0.0,
        "skew": entries.skew.value,
        "kurtosis": entries.kurtosis.value,
    }
    return {name: abs(size) / entries.matters_from[name] for name, size in sizes.items()}


def _offsets(thresholds: Thresholds, offsets: Offsets) -> Finding:
    if offsets.mean == 0 and offsets.std == 0:
        return Finding("offsets", True, "offsets are all 0")
    constant = offsets.ratio.value >= thresholds.offset_ratio
    words = "nearly constant" if constant else "not constant"
    ratio = min(offsets.ratio.value, 1e6)
    return Finding("offsets", constant, f"offsets are {words} (|mean|/std {ratio:.3g})")


def _norms(thresholds: Thresholds, arranged: Arrangement) -> Finding:
    parts = []
    for name, one in (("rows", arranged.row_norms), ("columns", arranged.column_norms)):
        if _unlikely(one, thresholds) and _beyond(one) >= thresholds.norm_spread:
            parts.append(f"{name} have unequal norms (spread {one.value:.2f}, chance {one.null:.2f})")
    if parts:
        return Finding("norms", False, " and ".join(parts))
    return Finding("norms", True, "rows and columns have equal norms up to chance or nearly so")


def _correlations(thresholds: Thresholds, correlations: tuple[Correlations, ...]) -> Finding:
    strong = [
        one
        for one in correlations
        if one.rms.null and _unlikely(one.rms, thresholds)
        if abs(one.rms.value / one.rms.null - 1) >= thresholds.correlation
    ]
    if not strong:
        return Finding(
            "correlations", True, "rows and columns are as uncorrelated as those of random entries"
        )
    least = min(strong, key=_times)
    if max(map(_times, strong)) < 1:
        words = f"{least.side} are more orthogonal than chance (rms cosine × {_times(least):.2f})"
        return Finding("correlations", False, words)
    # Correlated columns widen the cosines of rows as much, but evenly; the side with outliers is the cause.
    named = min((one for one in correlations if one.rms.null), key=_chance_of_largest)
    words = f"(rms cosine × {_times(named):.2f}, largest {named.largest.value:.2f})"
    return Finding("correlations", False, f"{named.side} are correlated {words}")


def _times(one: Correlations) -> float:
    return one.rms.value / (one.rms.null or 1.0)


def _chance_of_largest(one: Correlations) -> float:
    """Logarithm of the chance of so large a cosine among vectors with as wide cosines, but random."""
    from scipy.stats import beta

    length = max(one.length / max(_times(one), 1.0) ** 2, 2.0)
    tail = beta.logsf(min(one.largest.value, 1.0) ** 2, 0.5, (length - 1) / 2)
    return float(tail) + 2 * math.log(one.used)


def _blocks(thresholds: Thresholds, blocks: Number) -> Finding:
    if _unlikely(blocks, thresholds) and _beyond(blocks) >= thresholds.block_contrast:
        return Finding("blocks", False, f"blocks have different scales (spread {blocks.value:.2f})")
    return Finding("blocks", True, "no blocks of different scale")


def _recovery(thresholds: Thresholds, reversal: tuple[Reversal, ...]) -> Finding:
    random = [one for one in reversal if one.source == "random"]
    if not random:
        return Finding("recovery", None, "recovery not measured")
    worst = max(random, key=lambda one: one.interval[0])
    low, high = worst.interval
    most = thresholds.recovery_ratio
    words = f"{worst.ratio.value:.2f} × that of its shuffled entries ({low:.2f} to {high:.2f})"
    if low > most:
        return Finding("recovery", False, f"recovery error {words}")
    if worst.ratio.value > most:
        words = f"recovery error {words}: too uncertain to say that it is above {most:g}"
        return Finding("recovery", None, words)
    if high < 1 / most:
        return Finding("recovery", True, f"recovers better than random: error {words}")
    return Finding("recovery", True, f"recovery error {words}")


def _unlikely(number: Number, thresholds: Thresholds) -> bool:
    return number.p is not None and number.p < thresholds.level


def _beyond(number: Number) -> float:
    """What a spread has beyond the one that chance gives."""
    return math.sqrt(max(number.value**2 - (number.null or 0.0) ** 2, 0.0))


# Of an audit, besides what counts as a deviation.
KEEP, SAMPLES = 1.0, 32


@dataclass(frozen=True)
class Thresholds:
    """A remark needs both: too unlikely for random entries (`level`), and large enough to mean something."""

    level: float = ALPHA  # chance of a false direction in a layer of noise, and of a false remark per test
    min_side: int = 32  # smaller layers are listed, not judged: their nulls are too wide
    normal_distance: float = 0.02  # Kolmogorov–Smirnov distance of the entries to a normal law
    offset_ratio: float = 5.0  # |mean| / std of the offsets; the paper's line for nearly constant
    norm_spread: float = 0.2  # coefficient of variation of squared norms, beyond what chance gives
    correlation: float = 0.1  # excess of the rms cosine over 1/√length
    block_contrast: float = 0.2  # relative differences of scale between blocks
    recovery_ratio: float = 1.2  # error of the layer ÷ error of its shuffled entries

    def __post_init__(self) -> None:
        for field in fields(self):
            value: Any = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise BadInput(f"a number > 0 for the threshold {field.name}", got=value, do="set it so")
        if self.level >= 1:
            raise BadInput("level < 1", got=self.level, do="it is a chance")
