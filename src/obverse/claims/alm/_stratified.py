"""Standard normal draws from a Latin hypercube, for expectations that plain Monte Carlo cannot resolve.

Each variable has one draw in each of `count` equally likely strata: what depends on one variable alone is
found to count^(−3/2), and the error is close to normal, as standard errors take it to be. (That of scrambled
Sobol points, tried first, has a median of a tenth of its mean.) Not for W: matrices are drawn plainly.
"""

from __future__ import annotations

import numpy as np
import torch

from ._stream import draw_seed

WIDER = 2.0  # the standard deviation that `widened` draws from


def normal_points(count: int, columns: int, generator: torch.Generator) -> np.ndarray:
    """count × columns, one Latin hypercube; the columns are independent of each other."""
    from scipy.special import ndtri
    from scipy.stats import qmc

    random = np.random.default_rng(draw_seed(generator))
    points: np.ndarray = ndtri(qmc.LatinHypercube(columns, seed=random).random(count))
    return points


def widened(normal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Draws from N(0, 2²) out of draws from N(0, 1), and the weights by which they stand for N(0, 1).

    Importance sampling: without it the outermost stratum, infinitely long, leaves an error of 1/count.
    """
    wide = WIDER * normal
    return wide, WIDER * np.exp(-0.5 * wide**2 * (1 - WIDER**-2))
