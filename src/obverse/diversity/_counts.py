"""The effective support from how many pairs collide, not only whether any does. Not for finding the pairs.

The share of colliding pairs is an unbiased estimate of q = 1/N_eff. Pairs that share a sample are not
independent, so that a heavy atom makes their number vary more than a Poisson number: the chains i–j–k that
were seen say how much more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .._core import BadInput, Record, check_confidence


@dataclass(frozen=True)
class EffectiveSupport(Record):
    """N_eff by counting pairs; None where no pair collided, which says nothing of N_eff."""

    value: float | None
    low: float | None
    high: float | None
    pairs: int  # that collided
    of: int  # that could have
    dispersion: float  # variance of their number ÷ that of a Poisson number

    def __str__(self) -> str:
        if self.value is None:
            return f"no collision among {self.of:,} pairs"
        return f"N_eff ≈ {self.value:,.0f} ({self.low:,.0f}–{self.high:,.0f})"


def effective_support(
    pairs: Sequence[int], chains: Sequence[int], samples: int, confidence: float = 0.95
) -> EffectiveSupport:
    """From the colliding pairs of each batch of M samples, and its chains Σ_i degree_i (degree_i − 1).

    The number of pairs in B batches has mean μ = B·C(M,2)·q and variance
    B·[C(M,2)·q(1−q) + M(M−1)(M−2)(τ − q²)], τ the chance of a chain. The interval is the exact one of a
    Poisson number, widened by the dispersion, variance ÷ μ.
    """
    check_confidence(confidence)
    if samples < 2 or not pairs or len(pairs) != len(chains):
        raise BadInput(
            "batches of at least two samples, pairs and chains of each",
            got=f"{len(pairs)} and {len(chains)} batches of {samples}",
            do="count them all",
        )
    from scipy import stats

    seen = sum(pairs)
    possible = len(pairs) * samples * (samples - 1) // 2
    if seen == 0:
        return EffectiveSupport(None, None, None, 0, possible, 1.0)
    share = seen / possible
    triples = len(pairs) * samples * (samples - 1) * (samples - 2)
    chained = max(0.0, sum(chains) / triples - share**2) if triples else 0.0
    dispersion = max(1.0, 1 - share + triples * chained / seen)
    tail = (1 - confidence) / 2
    low = stats.gamma.ppf(tail, seen / dispersion) * dispersion / possible
    high = stats.gamma.isf(tail, seen / dispersion + 1) * dispersion / possible
    return EffectiveSupport(
        value=1 / share,
        low=1 / min(1.0, float(high)),
        high=1 / float(low),
        pairs=seen,
        of=possible,
        dispersion=dispersion,
    )
