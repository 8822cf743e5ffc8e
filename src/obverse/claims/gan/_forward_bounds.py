"""The chance of a collision among samples of which a share lies on few points: as printed, and as it is.

Not for the way back from collisions to a support, which the birthday test needs: see obverse.diversity.
"""

from __future__ import annotations

import numpy as np


def forward_bound_printed(samples: int, support: float, mass: float = 1.0, power: int = 1) -> float:
    """1 − exp(−(M² − M)ρ/2N), as printed; with `power` 2 for ρ², which is close but still too large."""
    return float(-np.expm1(-(samples**2 - samples) * mass**power / (2 * support)))


def forward_bound(samples: int, support: int, mass: float = 1.0) -> float:
    """The chance of a collision among M draws if mass ρ is on N points: at least E[1 − Π_{i<j} (1 − i/N)₊].

    j is how many draws fall on the N points, binomial(M, ρ).
    """
    from scipy import stats

    hits = np.arange(samples + 1)
    apart = np.concatenate([[1.0], np.cumprod(np.maximum(1 - np.arange(samples) / support, 0))])
    return float(1 - stats.binom.pmf(hits, samples, mass) @ apart)
