"""From numbers to sentences: which aspects of a layer are random-like, and what it comes to.

Not for measuring. The verdict is about what the reversibility theorem needs of the weights: the spectrum,
norms, correlations and the recovery itself. That entries are not normal, or offsets not constant, is said
but does not decide it: the theorem does not rest on it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

from .._core import BadInput, counted
from .results import Correlations, Entries, Finding, Number, Offsets, Reversal, Spectrum, Verdict

PRUNED_FROM = 0.05  # share of exact zeros
MANY, FEW = 0.05, 3  # of the singular values, and in the smallest layer
MISSING_RANK = 0.05  # of the singular values that are 0: from there on the rank is what there is to say


@dataclass(frozen=True)
class Judgement:
    verdict: Verdict
    sentence: str
    findings: tuple[Finding, ...]


def judge(
    thresholds: Thresholds,
    entries: Entries,
    offsets: Offsets | None,
    spectrum: Spectrum,
    correlations: tuple[Correlations, ...],
    blocks: Number,
    reversal: tuple[Reversal, ...],
    size: int,
    dead: tuple[tuple[int, int], tuple[int, int]] = ((0, 0), (0, 0)),
) -> Judgement:
    """All findings and what they come to; `size` counts singular values, `dead` dead rows and columns."""
    norms = _norms(thresholds, spectrum)
    correlated = _correlations(thresholds, correlations)
    blocked = _blocks(thresholds, blocks)
    wide = _spectrum(thresholds, spectrum, size, causes=[norms, correlated, blocked])
    recovery, uncertain = _recovery(thresholds, reversal)
    mean = _mean(thresholds, entries, spectrum)
    deciding = [*(one for one in mean if one.decides), wide, norms, correlated, blocked, recovery]
    about = _entries(thresholds, entries)
    remarks = [about, *([_offsets(thresholds, offsets)] if offsets else []), *_dead(dead)]
    remarks += [one for one in mean if not one.decides]
    findings = (*remarks, *deciding)
    reasons = [finding.sentence for finding in deciding if finding.random_like is False]
    notes = [one.sentence for one in (*_dead(dead), *mean, about) if one.random_like is False]
    notes = [note for note in notes if note not in reasons] + ([uncertain] if uncertain else [])
    beside = "".join(f"; {note}" for note in notes)
    outside = _outside(spectrum)
    if reasons:
        if outside and wide.random_like:
            reasons.append(f"{outside} beyond the bulk" if spectrum.spikes else outside)
        return Judgement("not random-like", f"not random-like: {'; '.join(reasons)}{beside}", findings)
    if any(finding.random_like is None for finding in deciding):
        unsure = "; ".join(one.sentence for one in deciding if one.random_like is None)
        return Judgement("cannot tell", f"cannot tell at this resolution: {unsure}{beside}", findings)
    if spectrum.is_estimated:
        beside = f", as far as a density of its singular values shows{beside}"
    if outside:
        sentence = f"random-like bulk with {outside}{beside}"
        return Judgement("random-like bulk with spikes", sentence, findings)
    return Judgement("random-like", f"random-like{beside}", findings)


def _outside(spectrum: Spectrum) -> str:
    """Spikes above and values below the bulk, in words; empty where there are none."""
    parts = []
    least = "at least " if spectrum.is_estimated else ""
    if spectrum.spikes:
        parts.append(
            f"{least}{counted(len(spectrum.spikes), 'spike')} ({spectrum.spike_share:.1%} of the energy)"
        )
    if spectrum.below:
        zeros = min(spectrum.null_directions, spectrum.below)
        which = f" ({zeros} of them 0)" if zeros else ""
        parts.append(f"{least}{counted(spectrum.below, 'singular value')} below it{which}")
    return " and ".join(parts)


def _dead(dead: tuple[tuple[int, int], tuple[int, int]]) -> list[Finding]:
    """(dead, all) rows and columns."""
    parts = [
        f"{count} of {whole} {name} {'is' if count == 1 else 'are'} all 0 and left out"
        for name, (count, whole) in zip(("rows", "columns"), dead, strict=True)
        if count
    ]
    return [Finding("dead", False, ", ".join(parts), decides=False)] if parts else []


def _mean(thresholds: Thresholds, entries: Entries, spectrum: Spectrum) -> list[Finding]:
    """The mean of all entries is a part of rank one with a name of its own: no spike."""
    if spectrum.mean_share > thresholds.spike_share:
        return [
            Finding("mean", False, f"the mean of the entries holds {spectrum.mean_share:.0%} of the energy")
        ]
    if not spectrum.mean_share:
        return []
    times = abs(entries.mean.value) / entries.scale.value
    words = f"the mean of the entries is {times:.2f} of their standard deviation"
    return [Finding("mean", False, words, decides=False)]


def _entries(thresholds: Thresholds, entries: Entries) -> Finding:
    normal = not _unlikely(entries.ks, thresholds) or entries.ks.value < thresholds.normal_distance
    parts = []
    if entries.zeros >= PRUNED_FROM:
        parts.append(f"{entries.zeros:.0%} of the entries are exactly 0 (pruned)")
    if entries.distinct is not None and entries.distinct <= 2:
        parts.append(f"entries take only {counted(entries.distinct, 'value')}")
    elif entries.step is not None:
        parts.append(f"entries lie on a grid of {entries.distinct} values (quantized)")
    if not parts and not normal:
        law = entries.best_law
        named = f"{law} rather than normal" if law != "normal" else "not normal"
        parts.append(f"entries are {named} (KS {entries.ks.value:.3f})")
    if not parts:
        return Finding("entries", True, f"entries look normal (KS {entries.ks.value:.3f})", decides=False)
    strong = [name for name, share in _shares(entries).items() if share >= 1]
    if strong:
        parts.append(f"their {' and '.join(strong)} would change the recovery error by 10 % or more")
    return Finding("entries", False, ", ".join(parts), decides=False)


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
        return Finding("offsets", True, "offsets are all 0", decides=False)
    constant = offsets.ratio.value >= thresholds.offset_ratio
    words = "nearly constant" if constant else "not constant"
    ratio = min(offsets.ratio.value, 1e6)
    return Finding("offsets", constant, f"offsets are {words} (|mean|/std {ratio:.3g})", decides=False)


def _norms(thresholds: Thresholds, spectrum: Spectrum) -> Finding:
    parts = []
    for name, number in (("rows", spectrum.row_norms), ("columns", spectrum.column_norms)):
        if _unlikely(number, thresholds) and _beyond(number) >= thresholds.norm_spread:
            parts.append(f"{name} have unequal norms (spread {number.value:.2f}, chance {number.null:.2f})")
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
        return Finding("correlations", True, "rows and columns are as uncorrelated as chance has it")
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


def _distance_that_counts(thresholds: Thresholds, spikes: int, size: int) -> float:
    """The more values are taken off, the more freely the law fits the rest: at half, chance decides."""
    return thresholds.spectrum_distance * max(1 - 2 * spikes / size, 0.0)


def is_wide(thresholds: Thresholds, spikes: int, share: float, size: int) -> bool:
    """Whether so many values hold most of the energy that they are the spectrum, not spikes beside a bulk."""
    return spikes > max(FEW, MANY * size) and share > thresholds.spike_share


def is_off_the_law(thresholds: Thresholds, distance: Number, error: float, spikes: int, size: int) -> bool:
    """Whether the bulk is surely so far from the law that there is no speaking of spikes beside it."""
    least = distance.value - error
    return _unlikely(distance, thresholds) and least > _distance_that_counts(thresholds, spikes, size)


def _spectrum(thresholds: Thresholds, spectrum: Spectrum, size: int, causes: list[Finding]) -> Finding:
    error = spectrum.error or 0.0
    value = spectrum.distance.value
    spikes, least = len(spectrum.spikes), "at least " if spectrum.is_estimated else ""
    from_size = _distance_that_counts(thresholds, spikes, size)
    far = is_off_the_law(thresholds, spectrum.distance, error, spikes, size)
    reach = f"distance {value:.3f}" + (f", at most {value + error:.3f}" if spectrum.is_estimated else "")
    rank = size - spectrum.null_directions
    if rank < (1 - MISSING_RANK) * size:
        return Finding("spectrum", False, f"rank {'at most ' if least else ''}{rank} of {size}")
    wide = is_wide(thresholds, spikes, spectrum.spike_share, size)
    if spectrum.spike_share > thresholds.spike_share and not wide:
        held = f"hold{'s' * (spikes == 1)} {spectrum.spike_share:.0%} of the energy"
        return Finding("spectrum", False, f"{least}{counted(spikes, 'spike')} {held}")
    if wide and not far:
        words = (
            f"{least}{spikes} of {size} values beyond its edge hold {spectrum.spike_share:.0%} of the energy"
        )
        return Finding("spectrum", False, f"spectrum off the Marchenko–Pastur law ({words})")
    if not far and value + error > max(from_size, spectrum.critical) and spectrum.is_estimated:
        low, high = max(value - error, 0.0), value + error
        words = f"the spectrum is {low:.3f} to {high:.3f} away from the Marchenko–Pastur law"
        found = f"; {_outside(spectrum)}" if spikes or spectrum.below else ""
        return Finding("spectrum", None, f"{words}, {from_size:.3f} would count{found}")
    if not far:
        words = f"spectrum follows the Marchenko–Pastur law ({reach})"
        parts = [f"{least}{counted(spikes, 'spike')}"] if spikes else []
        if spectrum.below:
            parts.append(f"{least}{counted(spectrum.below, 'value')} below it")
        return Finding("spectrum", True, words + (f" but for {' and '.join(parts)}" if parts else ""))
    words = f"spectrum off the Marchenko–Pastur law (distance {value:.3f}"
    if spectrum.is_estimated:
        words += f", at least {value - error:.3f}"
    elif spikes == size // 2:  # no more are counted
        least = "at least "
    words += f", {least}{counted(spikes, 'value')} beyond its edge)" if spikes else ")"
    found_causes = [cause for cause in causes if not cause.random_like]
    again = spectrum.rescaled.value + (spectrum.rescaled_error or 0.0) <= thresholds.spectrum_distance or (
        not spectrum.rescaled_error and not _unlikely(spectrum.rescaled, thresholds)
    )
    if again and any(cause.aspect == "norms" for cause in found_causes):
        words += ", by the norms alone: with equal norms it follows the law"
    elif not found_causes:
        words += ", not by norms, correlations or blocks"
    return Finding("spectrum", False, words)


def _recovery(thresholds: Thresholds, reversal: tuple[Reversal, ...]) -> tuple[Finding, str]:
    """The finding, and a remark where the ratio is above its threshold but not surely."""
    random = [one for one in reversal if one.source == "random"]
    if not random:
        return Finding("recovery", True, "recovery not measured"), ""
    worst = max(random, key=lambda one: one.interval[0])
    low, high = worst.interval
    most = thresholds.recovery_ratio
    words = f"{worst.ratio.value:.2f} × that of its shuffled entries ({low:.2f} to {high:.2f})"
    if low > most:
        return Finding("recovery", False, f"recovery error {words}"), ""
    if worst.ratio.value > most:
        words = f"recovery error {words}: too uncertain to say that it is above {most:g}"
        return Finding("recovery", True, words), words
    if high < 1 / most:
        return Finding("recovery", True, f"recovers better than random: error {words}"), ""
    return Finding("recovery", True, f"recovery error {words}"), ""


def _unlikely(number: Number, thresholds: Thresholds) -> bool:
    return number.p is not None and number.p < thresholds.level


def _beyond(number: Number) -> float:
    """What a spread has beyond the one that chance gives."""
    return math.sqrt(max(number.value**2 - (number.null or 0.0) ** 2, 0.0))


# Of an audit, besides what counts as a deviation.
KEEP, SAMPLES, BUDGET, SEED = 1.0, 32, 120.0, 0


@dataclass(frozen=True)
class Thresholds:
    """A finding needs both: too unlikely for random entries (`level`), and large enough to mean something."""

    level: float = 0.001  # chance of a false alarm, for each test of each layer
    min_side: int = 32  # smaller layers are listed, not judged: their nulls are too wide
    normal_distance: float = 0.02  # Kolmogorov–Smirnov distance of the entries to a normal law
    offset_ratio: float = 5.0  # |mean| / std of the offsets; the paper's line for nearly constant
    spectrum_distance: float = 0.03  # of the bulk to the Marchenko–Pastur law
    norm_spread: float = 0.2  # coefficient of variation of squared norms, beyond what chance gives
    correlation: float = 0.1  # excess of the rms cosine over 1/√length
    block_contrast: float = 0.2  # relative differences of scale between blocks
    spike_share: float = 0.5  # of the energy: from there on the spikes are the layer
    recovery_ratio: float = 1.2  # error of the layer ÷ error of its shuffled entries

    def __post_init__(self) -> None:
        for field in fields(self):
            value: Any = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise BadInput(f"a number > 0 for the threshold {field.name}", got=value, do="set it so")
        if self.level >= 1 or self.spike_share > 1:
            raise BadInput("level < 1 and spike_share ≤ 1", got=self, do="they are fractions")
