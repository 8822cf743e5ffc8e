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
MOST_SPIKES = 0.05  # of the singular values: with more, the spectrum is wide rather than spiked
FEW_SPIKES = 3  # so many are spikes in the smallest layer


def most_spikes(size: int) -> float:
    """How many values beyond the edge are still spikes, of `size` singular values."""
    return max(FEW_SPIKES, MOST_SPIKES * size)


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
) -> Judgement:
    """All findings and what they come to; `size` is the number of singular values."""
    norms = _norms(thresholds, spectrum)
    correlated = _correlations(thresholds, correlations)
    blocked = _blocks(thresholds, blocks)
    wide = _spectrum(thresholds, spectrum, size, causes=[norms, correlated, blocked])
    recovery = _recovery(thresholds, reversal)
    deciding = [wide, norms, correlated, blocked, recovery]
    remarks = [_entries(thresholds, entries)] + ([_offsets(thresholds, offsets)] if offsets else [])
    findings = (*remarks, *deciding)
    spikes = len(spectrum.spikes)
    reasons = [finding.sentence for finding in deciding if not finding.random_like]
    notes = "".join(f"; {remark.sentence}" for remark in remarks[:1] if not remark.random_like)
    held = f"{counted(spikes, 'spike')} ({spectrum.spike_share:.1%} of the energy)"
    if reasons:
        if spikes and wide.random_like:
            reasons.append(f"{held} beyond the bulk")
        return Judgement("not random-like", f"not random-like: {'; '.join(reasons)}{notes}", findings)
    if spikes:
        return Judgement("random-like bulk with spikes", f"random-like bulk with {held}{notes}", findings)
    return Judgement("random-like", f"random-like{notes}", findings)


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


def _spectrum(thresholds: Thresholds, spectrum: Spectrum, size: int, causes: list[Finding]) -> Finding:
    far = _unlikely(spectrum.distance, thresholds) and spectrum.distance.value > thresholds.spectrum_distance
    many = len(spectrum.spikes) > most_spikes(size)
    rank = size - spectrum.null_directions
    distance = f"distance {spectrum.distance.value:.3f}"
    if rank < (1 - MOST_SPIKES) * size:
        return Finding("spectrum", False, f"rank {rank} of {size}")
    if spectrum.spike_share > thresholds.spike_share and not many:
        held = f"hold{'s' * (len(spectrum.spikes) == 1)} {spectrum.spike_share:.0%} of the energy"
        return Finding("spectrum", False, f"{counted(len(spectrum.spikes), 'spike')} {held}")
    if not far and not many:
        words = f"spectrum follows the Marchenko–Pastur law ({distance})"
        if spectrum.spikes:
            words += f" but for {counted(len(spectrum.spikes), 'spike')}"
        return Finding("spectrum", True, words)
    again = spectrum.rescaled.value <= thresholds.spectrum_distance or not _unlikely(
        spectrum.rescaled, thresholds
    )
    found = [cause for cause in causes if not cause.random_like]
    words = f"spectrum off the Marchenko–Pastur law ({distance}"
    least = "at least " if len(spectrum.spikes) == size // 2 else ""  # no more are counted
    words += f", {least}{counted(len(spectrum.spikes), 'value')} beyond its edge)" if many else ")"
    if again and any(cause.aspect == "norms" for cause in found):
        words += ", by the norms alone: with equal norms it follows the law"
    elif not found:
        words += ", not by norms, correlations or blocks"
    return Finding("spectrum", False, words)


def _recovery(thresholds: Thresholds, reversal: tuple[Reversal, ...]) -> Finding:
    random = [one for one in reversal if one.source == "random"]
    if not random:
        return Finding("recovery", True, "recovery not measured")
    worst = max(random, key=lambda one: one.interval[0])
    low, high = worst.interval
    words = f"{worst.ratio.value:.2f} × that of its shuffled entries ({low:.2f} to {high:.2f})"
    if low > thresholds.recovery_ratio:
        return Finding("recovery", False, f"recovery error {words}")
    if high < 1 / thresholds.recovery_ratio:
        return Finding("recovery", True, f"recovers better than random: error {words}")
    return Finding("recovery", True, f"recovery error {words}")


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
