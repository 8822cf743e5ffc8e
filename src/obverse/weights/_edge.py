"""How far the largest singular value of pure noise reaches, and how strong what lies beyond it is.

Not for the bulk: see law. Tracy–Widom law of order 1 by Chiani's shifted gamma distribution (2014).
"""

from __future__ import annotations

import math

_SHAPE, _SCALE, _SHIFT = 46.446, 0.186054, 9.84801  # Chiani's fit for β = 1
_VARIANCE = 1.6078  # of the Tracy–Widom law


def edge_probability(
    singular: float,
    rows: int,
    columns: int,
    scale: float,
    *,
    scale_error: float = 0.0,
    kurtosis: float = 0.0,
) -> float:
    """The chance that noise of this shape and scale has a singular value this large or larger.

    Centred and scaled with the halves of Ma (2012), so that it holds from a few dozen rows on;
    `scale_error` is the relative standard error of a scale that was estimated. Heavy-tailed entries reach
    further at finite size, by kurtosis / √(rows · columns) of the squared edge (Hwang et al. 2019).
    """
    from scipy.special import gammaincc

    short, long = math.sqrt(min(rows, columns) - 0.5), math.sqrt(max(rows, columns) - 0.5)
    centre = (short + long) ** 2
    width = (short + long) * (1 / short + 1 / long) ** (1 / 3)
    width = math.sqrt(width**2 + (2 * scale_error * centre) ** 2 / _VARIANCE)
    centre *= 1 + kurtosis / math.sqrt(rows * columns)
    statistic = ((singular / scale) ** 2 - centre) / width
    return float(gammaincc(_SHAPE, max(statistic + _SHIFT, 0.0) / _SCALE))


def threshold_strength(rows: int, columns: int, scale: float) -> float:
    """The strength below which a planted rank-one part leaves no trace (Baik–Ben Arous–Péché)."""
    return float(scale * (rows * columns) ** 0.25)


def planted_strength(singular: float, rows: int, columns: int, scale: float) -> float:
    """The θ of a rank-one part θuvᵀ that noise turns into this singular value (Benaych-Georges–Nadakuditi).

    With y the singular value over s√q and c = p/q: y² = (1 + θ²)(c + θ²)/θ², θ in the same unit. Inside the
    bulk there is no solution; the threshold is returned.
    """
    short, long = sorted((rows, columns))
    c, unit = short / long, scale * math.sqrt(long)
    middle = (singular / unit) ** 2 - 1 - c
    if middle <= 2 * math.sqrt(c):
        return threshold_strength(rows, columns, scale)
    return unit * math.sqrt((middle + math.sqrt(middle**2 - 4 * c)) / 2)
