"""How what the signal leaves of a layer is arranged, beside its nulls; and whether its mean is signal."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ._controls import root_mean_square
from ._decomposition.parts import Parts
from ._shuffles import Null, shuffled_null, shuffles_for
from ._structure import Arrangement, arrangement, fourth_moment, without_signal
from ._verdict import Judgement
from .results import Entries, Norms, Offsets, Reversal


def arrange(centred: Tensor, parts: Parts, level: float, generator: torch.Generator) -> Arrangement:
    """Norms, cosines and blocks of what the signal leaves: what is told as signal is not told again.

    What would be remarked, less likely than `level`, must be unlikely under both nulls of heavy tails.
    """
    rest = without_signal(centred, parts, generator)
    kurtosis = fourth_moment(rest) / root_mean_square(rest) ** 4 - 3
    null = _null(rest, kurtosis, generator)
    found = arrangement(rest, kurtosis, generator)
    if null is None:
        return found
    beside = null.beside(found)
    if beside.least_likely >= level:
        return beside
    # Heavy tails or a profile? Shuffled, a profile becomes tails, which are another null for what is measured
    # without it.
    apart = _null(rest, found.kurtosis, generator)
    return beside.doubted(found if apart is None else apart.beside(found))


def measured_fields(
    judged: Judgement,
    entries: Entries,
    offsets: Offsets | None,
    parts: Parts,
    arranged: Arrangement,
    reversal: tuple[Reversal, ...],
    mean_share: float,
) -> dict[str, Any]:
    """What a layer's audit says of its numbers, by the names in LayerAudit."""
    return {
        "verdict": judged.verdict,
        "sentence": judged.sentence,
        "findings": judged.findings,
        "entries": entries,
        "offsets": offsets,
        "parts": judged.parts,
        "values": parts.values,
        "norms": Norms(arranged.row_norms, arranged.column_norms),
        "correlations": arranged.cosines,
        "blocks": arranged.blocks,
        "reversal": reversal,
        "mean_share": mean_share,
    }


def _null(matrix: Tensor, kurtosis: float, generator: torch.Generator) -> Null | None:
    shuffles = shuffles_for(kurtosis, *matrix.shape)
    return shuffled_null(matrix, kurtosis, shuffles, generator) if shuffles else None


def mean_stands_out(found: Entries, level: float) -> bool:
    """Whether the mean is more than chance, and as a part of rank one above the threshold of a signal.

    It has a name of its own, so that it is not told as a direction.
    """
    times = abs(found.mean.value) / found.scale.value
    return found.mean.p is not None and found.mean.p < level and times * found.count**0.25 > _MEAN_FROM


_MEAN_FROM = 0.7  # of the threshold, (rows · columns)^(−1/4) standard deviations: beside noise it adds to it
