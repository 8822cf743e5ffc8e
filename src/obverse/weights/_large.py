"""The audit of a layer that is too large to be in memory as a whole.

Its parts, on which the verdict rests, are those of all entries, read a few lines at a time. Everything else
is measured on lines of its longer side that are chosen at random, and the audit says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from ._arrange import arrange, mean_stands_out, measured_fields
from ._biases import offsets
from ._decomposition.parts import SAFE, Parts, decompose_bands
from ._decomposition.signs import SPARSE
from ._decomposition.split_bands import Bands
from ._entries import entries
from ._range import out_of_range
from ._readers.stored import Weight
from ._reversibility import reversals
from ._settings import Settings
from ._verdict import judge
from .results import Finding, LayerAudit

SAMPLE = 2**25  # entries of the lines that all else is measured on


@dataclass(frozen=True)
class Scan:
    """One pass over all entries."""

    long: Tensor  # bool: which lines of the longer side are not empty
    short: Tensor
    total: float
    squares: float
    smallest: float
    largest: float
    filled: int  # entries that are not 0

    @property
    def count(self) -> int:
        """Entries of the lines that are not empty."""
        return int(self.long.sum()) * int(self.short.sum())


def scan(weight: Weight) -> Scan:
    assert weight.bands is not None
    long, short = [], torch.zeros(min(weight.rows, weight.columns), dtype=torch.bool)
    total = squares = 0.0
    smallest, largest, filled = math.inf, -math.inf, 0
    for band in weight.bands():
        present = band != 0
        long.append(present.any(1))
        short |= present.any(0)
        filled += int(present.sum())
        total += float(band.sum(dtype=torch.float64))
        squares += float(torch.linalg.vector_norm(band, dim=1).double().square().sum())
        low, high = torch.aminmax(band)
        smallest, largest = min(smallest, float(low)), max(largest, float(high))
    return Scan(torch.cat(long), short, total, squares, smallest, largest, filled)


def audit_large(weight: Weight, settings: Settings, generator: torch.Generator) -> LayerAudit | None:
    """None where this way does not work: of few entries that are not 0, of equal ones, of extreme sizes."""
    found = scan(weight)
    length, width = int(found.long.sum()), int(found.short.sum())
    extreme = torch.tensor([[found.smallest, found.largest]])
    if (
        width < settings.thresholds.min_side
        or found.smallest == found.largest
        or found.filled < SPARSE * length
        or not 1 / SAFE < float(extreme.abs().max()) < SAFE
    ):
        return None
    turned = weight.rows < weight.columns
    lines = torch.randperm(length, generator=generator)[: max(SAMPLE // width, settings.thresholds.min_side)]
    lines = lines.sort().values
    sample = torch.cat(list(_live(weight, found, 0.0, chosen=lines)))
    sample = sample.T.contiguous() if turned else sample
    bias = weight.load_bias()
    if bias is not None:
        bias = bias[found.short] if turned else bias[found.long][lines]
        if out_of_range(extreme, bias):
            return None
    return _judged(weight, settings, generator, found, sample, lines, bias, turned)


def _judged(
    weight: Weight,
    settings: Settings,
    generator: torch.Generator,
    found: Scan,
    sample: Tensor,
    lines: Tensor,
    bias: Tensor | None,
    turned: bool,
) -> LayerAudit:
    thresholds, level = settings.thresholds, settings.thresholds.level
    empty = (int((~found.long).sum()), int((~found.short).sum()))
    dead_rows, dead_columns = empty[::-1] if turned else empty
    reversal = reversals(sample, bias, keep=settings.keep, samples=settings.samples, generator=generator)
    middle = reversal[len(reversal) // 2]
    distribution = entries(
        sample,
        sparsity=round(middle.sparsity),
        kept=middle.kept,
        error=middle.predicted.error.value,
        generator=generator,
    )
    mean = found.total / found.count if mean_stands_out(distribution, level) else 0.0
    mean_share = min(mean**2 * found.count / found.squares, 1.0)
    width, length = int(found.short.sum()), int(found.long.sum())

    def decomposed(mean: float) -> Parts:
        bands = Bands(length, width, lambda: _live(weight, found, mean))
        return decompose_bands(
            bands,
            turned=turned,
            sample=sample - mean if mean else sample,
            lines=lines,
            empty=(dead_rows, dead_columns),
            alpha=level,
        )

    parts = decomposed(mean)
    if mean and parts.summary.below:  # of a permutation, say, the mean is one of many equal directions
        whole = decomposed(0.0)
        if len(whole.summary.below) < len(parts.summary.below):
            parts, mean_share = whole, 0.0
    arranged = arrange(parts.matrix, parts, level, generator)
    biases = None if bias is None else offsets(bias)
    dead = ((dead_rows, weight.rows), (dead_columns, weight.columns))
    judged = judge(thresholds, distribution, biases, parts.summary, arranged, reversal, dead, mean_share)
    side = "columns" if turned else "rows"
    note = (
        "entries, norms, correlations, blocks and recovery are those of "
        f"{len(lines):,} of {length:,} {side}, chosen at random"
    )
    measured = measured_fields(judged, distribution, biases, parts, arranged, reversal, mean_share)
    measured |= {
        "sentence": f"{judged.sentence} ({note})",
        "findings": (*judged.findings, Finding("sample", None, note)),
    }
    return LayerAudit(
        name=weight.name,
        kind=weight.kind,
        rows=weight.rows,
        columns=weight.columns,
        dead_rows=dead_rows,
        dead_columns=dead_columns,
        **measured,
    )


def _live(weight: Weight, found: Scan, mean: float, chosen: Tensor | None = None) -> Iterator[Tensor]:
    """The bands without empty lines and without a mean; of the lines that are left, all or those `chosen`."""
    assert weight.bands is not None
    whole = bool(found.long.all() & found.short.all())
    start = kept = 0
    for band in weight.bands():
        if not whole:
            mask = found.long[start : start + len(band)]
            start += len(band)
            band = band[mask][:, found.short]
        if chosen is not None:
            inside = chosen[(chosen >= kept) & (chosen < kept + len(band))] - kept
            kept += len(band)
            band = band[inside]
        if len(band):
            yield band - mean if mean else band
