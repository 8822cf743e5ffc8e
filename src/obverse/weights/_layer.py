"""The audit of one layer: everything measured against random numbers of its shape, and judged."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ._biases import offsets
from ._controls import root_mean_square
from ._entries import entries
from ._live import live_part
from ._marchenko_pastur import edges
from ._range import out_of_range
from ._readers.stored import Weight
from ._reversibility import reversals
from ._shuffles import LEAST, Null, shuffled_null, shuffles_for
from ._spectrum import (
    Bulk,
    affordable,
    bulk_from_values,
    count_zeros,
    lanczos_bulk,
    rescaled_distance,
    singular_values,
)
from ._structure import Arrangement, arrangement, fourth_moment, without_spikes
from ._verdict import Thresholds, is_off_the_law, is_wide, judge
from .results import Entries, LayerAudit, Number, Spectrum


@torch.no_grad()
def audit_layer(
    weight: Weight,
    thresholds: Thresholds,
    *,
    own: Tensor | None,
    keep: float,
    samples: int,
    budget: float,
    generator: torch.Generator,
) -> LayerAudit:
    """One layer. Its rows and columns of zeros are counted, and left out of everything else."""
    began = time.perf_counter()
    about: dict[str, Any] = {
        "name": weight.name,
        "kind": weight.kind,
        "rows": weight.rows,
        "columns": weight.columns,
    }
    side = min(weight.rows, weight.columns)
    if side < thresholds.min_side:
        sentence = f"too small to judge (a side of {side}, at least {thresholds.min_side} needed)"
        return LayerAudit(**about, verdict="not judged", sentence=sentence)
    matrix, bias = weight.load(), weight.load_bias()
    live = live_part(matrix)
    if not live.matrix.numel() or float(live.matrix.min()) == float(live.matrix.max()):
        dead = live.dead_rows + live.dead_columns > 0 and live.matrix.numel() > 0
        rest = " that are not in a row or column of zeros" if dead else ""
        value = float(live.matrix[0, 0]) if live.matrix.numel() else 0.0
        sentence = f"not random-like: all entries{rest} are {value:g}"
        return LayerAudit(**about, verdict="not random-like", sentence=sentence)
    about |= {"dead_rows": live.dead_rows, "dead_columns": live.dead_columns}
    if reason := out_of_range(live.matrix, bias):
        return LayerAudit(**about, verdict="not judged", sentence=reason)
    matrix, size = live.matrix, min(live.matrix.shape)
    if size < thresholds.min_side:
        sentence = (
            "too small to judge without its rows and columns of zeros "
            f"({live.dead_rows} of {weight.rows} rows, "
            f"{live.dead_columns} of {weight.columns} columns): a side of {size} is left, "
            f"at least {thresholds.min_side} needed"
        )
        return LayerAudit(**about, verdict="not judged", sentence=sentence)
    if bias is not None:
        bias = bias[live.rows.to(bias.device)]
    if own is not None:
        own = own[:, live.rows.to(own.device)]
    reversal = reversals(matrix, bias, keep=keep, samples=samples, own=own, generator=generator)
    middle = reversal[len([one for one in reversal if one.source == "random"]) // 2]
    found = entries(
        matrix,
        sparsity=round(middle.sparsity),
        kept=middle.kept,
        error=middle.predicted.error.value,
        generator=generator,
    )
    spectrum, arranged = measure_arrangement(matrix, found, thresholds, budget, generator)
    biases = None if bias is None else offsets(bias)
    left_out = ((live.dead_rows, weight.rows), (live.dead_columns, weight.columns))
    judged = judge(
        thresholds, found, biases, spectrum, arranged.cosines, arranged.blocks, reversal, size, left_out
    )
    return LayerAudit(
        **about,
        verdict=judged.verdict,
        sentence=judged.sentence,
        findings=judged.findings,
        entries=found,
        offsets=biases,
        spectrum=spectrum,
        correlations=arranged.cosines,
        blocks=arranged.blocks,
        reversal=reversal,
        seconds=time.perf_counter() - began,
    )


def measure_arrangement(
    matrix: Tensor, found: Entries, thresholds: Thresholds, budget: float, generator: torch.Generator
) -> tuple[Spectrum, Arrangement]:
    """Singular values and what is left without spikes: norms, cosines, blocks.

    The mean of all entries, where it would be a spike, is a part of rank one that has its own name: it is
    taken off first. What is told as a spike is taken off before anything else is measured, however many
    there are; where the bulk is off the law, its outer values are not told as spikes, and stay.
    """
    level, kurtosis = thresholds.level, found.kurtosis.value
    mean = found.mean.value if mean_stands_out(found, level) else 0.0
    centred = matrix - mean
    energy = matrix.numel() * root_mean_square(matrix) ** 2
    mean_share = min(matrix.numel() * mean**2 / energy, 1.0)
    rows, columns = matrix.shape
    times = affordable(matrix, budget)
    shuffles = shuffles_for(kurtosis, rows, columns)
    if shuffles:  # each of them twice: once more with equal norms
        shuffles = min(shuffles, max(LEAST, (times - 2) // 2))
    exact = times >= 2 + 2 * shuffles
    values = singular_values(centred) if exact else None

    def spectrum_beside(null: Null) -> Bulk:
        if values is None:
            return lanczos_bulk(centred, level, generator, null.tails)
        return bulk_from_values(values, rows, columns, level, null.tails)

    null = shuffled_null(centred, kurtosis, shuffles, exact, generator)
    bulk = spectrum_beside(null)

    def spiked(bulk: Bulk) -> int:
        spikes, error = len(bulk.spikes), bulk.error or 0.0
        off = is_off_the_law(thresholds, bulk.distance, error, spikes, min(rows, columns))
        share = sum(spike.share for spike in bulk.spikes)
        return 0 if off or is_wide(thresholds, spikes, share, min(rows, columns)) else spikes

    rest = without_spikes(centred, spiked(bulk), generator, bulk.directions)
    if shuffles and spiked(bulk):
        # The spikes made the entries' tails heavier than the rest's are: what the rest allows may be less.
        kurtosis = fourth_moment(rest) / root_mean_square(rest) ** 4 - 3
        null = shuffled_null(
            rest, kurtosis, min(shuffles, shuffles_for(kurtosis, rows, columns)), exact, generator
        )
        again = spectrum_beside(null)
        if len(again.spikes) >= len(bulk.spikes):
            bulk = again
            rest = without_spikes(centred, spiked(bulk), generator, bulk.directions)
    zeros = bulk.null_directions
    if zeros and mean and exact:  # the mean is one direction more
        zeros = count_zeros(singular_values(matrix))
    low, high = edges(rows, columns, bulk.scale)
    arranged = arrangement(rest, kurtosis, generator)
    tails = replace(null.tails, kurtosis=arranged.kurtosis, distance=null.rescaled)
    rescaled, rescaled_error = rescaled_distance(rest, exact, generator, tails)
    arranged = null.beside(arranged)
    spikes = tuple(replace(spike, share=spike.share * (1 - mean_share)) for spike in bulk.spikes)
    return Spectrum(
        method="exact" if exact else "lanczos",
        scale=bulk.scale,
        lower=low,
        upper=high,
        distance=bulk.distance,
        rescaled=rescaled,
        row_norms=arranged.row_norms,
        column_norms=arranged.column_norms,
        spikes=spikes,
        spike_share=sum(spike.share for spike in spikes),
        stable_rank=_stable_rank(energy * (1 - mean_share), bulk.largest, rows, columns),
        null_directions=zeros,
        values=tuple(bulk.values.tolist()),
        error=bulk.error,
        critical=bulk.critical,
        rescaled_error=rescaled_error or None,
        below=bulk.below,
        mean_share=mean_share,
    ), arranged


def mean_stands_out(found: Entries, level: float) -> bool:
    """Whether the mean is more than chance, and as a part of rank one above the threshold of spikes."""
    times = abs(found.mean.value) / found.scale.value
    return found.mean.p is not None and found.mean.p < level and times * found.count**0.25 > _MEAN_FROM


_MEAN_FROM = 0.7  # of the threshold, (rows · columns)^(−1/4) standard deviations: beside noise it adds to it


def _stable_rank(energy: float, largest: float, rows: int, columns: int) -> Number:
    # noise: energy rows·columns over the edge squared, whose relative mean and spread are Tracy–Widom's
    width = (1 / math.sqrt(rows) + 1 / math.sqrt(columns)) ** (1 / 3) / (math.sqrt(rows) + math.sqrt(columns))
    expected = rows * columns / (math.sqrt(rows) + math.sqrt(columns)) ** 2 / (1 - 1.2065 * width)
    return Number(energy / largest**2, 1.268 * width * expected, expected)
