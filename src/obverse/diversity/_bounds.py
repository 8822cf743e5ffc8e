"""What the birthday paradox says of a distribution, in closed form. Not for finding collisions.

M samples are drawn from probabilities p_i; q = Σ p_i² is the chance that two of them are equal, and 1/q the
effective support N_eff (Rényi's of order 2).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log, log1p, sqrt

import numpy as np

from .._core import BadInput, check_confidence


def log_no_collision(samples: int, support: float) -> float:
    """ln Π_{k<M} (1 − k/N)₊: no collision among M draws from N equal chances; N need not be whole.

    For every discrete distribution it is a lower bound at N = N_eff (Chebyshev's association inequality).
    """
    if support <= samples - 1:
        return -inf if samples > 1 else 0.0
    return float(np.log1p(-np.arange(1, samples) / support).sum())


def effective_support_bound(collision: float, samples: int) -> float:
    """N* with Π_{k<M} (1 − k/N*) = 1 − γ: if collisions have chance γ or more, N_eff ≤ N*."""
    _check(collision, samples)
    if collision == 0:
        return inf
    if collision == 1:
        return float(samples - 1)
    return _solve(samples, log1p(-collision))


def support_at_least(samples: int, batches: int, confidence: float = 0.95) -> float:
    """No collision in any of B batches of M: the support is at least this, with so much confidence.

    It bounds the support, not N_eff: among laws on N points the uniform one collides least.
    """
    _check(0.0, samples)
    check_confidence(confidence)
    if batches < 1:
        raise BadInput("at least one batch", got=batches, do="draw one")
    return _solve(samples, log(1 - confidence) / batches)


def printed_bound(collision: float, samples: int, mass: float = 1.0) -> float:
    """The notes' closed form, 2Mρ² / (−3 + √(9 + (24/M) ln 1/(1−γ)) − 2M(1−ρ)²).

    At ρ = 1 it is at least N* while ln 1/(1−γ) is below about 1.2√M, and a little less beyond. For ρ < 1 it
    holds only for mass that is uniform on S, and may turn negative.
    """
    _check(collision, samples)
    if collision == 0:
        return inf
    if collision == 1:
        return 0.0
    lost = -log1p(-collision)
    # −3 + √(9 + a) loses its digits for small a: a / (3 + √(9 + a)) is the same.
    small = 24 * lost / samples
    below = small / (3 + sqrt(9 + small)) - 2 * samples * (1 - mass) ** 2
    return 2 * samples * mass**2 / below if below else inf


def popular_estimate(collision: float, samples: int) -> float:
    """M(M−1) / (2 ln 1/(1−γ)): close to N*, and below it. No upper bound."""
    _check(collision, samples)
    if collision in (0, 1):
        return inf if collision == 0 else 0.0
    return samples * (samples - 1) / (-2 * log1p(-collision))


@dataclass(frozen=True)
class Collisions:
    """M samples collide with this chance: what is said of the number of points that they come from.

    >>> birthdays = Collisions(chance=0.5, samples=23)
    >>> round(birthdays.effective_support_bound()), round(birthdays.printed_bound())
    (373, 389)
    """

    chance: float  # γ, that some two are equal
    samples: int  # M

    def effective_support_bound(self) -> float:
        """N*: at most this is 1 / Σ p_i², whatever the distribution."""
        return effective_support_bound(self.chance, self.samples)

    def printed_bound(self, mass: float = 1.0) -> float:
        """The notes' closed form, where a share ρ of the mass is uniform on the points; may be negative."""
        return printed_bound(self.chance, self.samples, mass)

    def popular_estimate(self) -> float:
        """M(M−1) / (2 ln 1/(1−γ)), as often used: a little below N*, and no upper bound."""
        return popular_estimate(self.chance, self.samples)


def _solve(samples: int, level: float) -> float:
    """N with ln Π (1 − k/N) = level < 0, by bisection on ln(N − (M − 1)): the product rises with N."""
    pairs = samples * (samples - 1) / 2
    low, high = -80.0, log(pairs / -level) + 1  # ln(1 − u) ≥ −u/(1 − u): at that N the product is above
    while log_no_collision(samples, samples - 1 + np.exp(high)) < level:
        high += 1
    while high - low > 1e-15 * max(1.0, abs(high)):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if log_no_collision(samples, samples - 1 + np.exp(middle)) < level:
            low = middle
        else:
            high = middle
    return float(samples - 1 + np.exp(high))  # the upper end, so that a bound stays one


def _check(collision: float, samples: int) -> None:
    if samples < 2:
        raise BadInput("batches of at least two samples", got=samples, do="draw larger ones")
    if not 0 <= collision <= 1:
        raise BadInput("a collision probability in [0, 1]", got=collision, do="check it")
