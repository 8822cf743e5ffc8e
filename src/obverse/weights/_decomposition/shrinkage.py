"""What noise does to planted singular values and directions, and how to undo it. Not for counting them.

In units of σ√q for a p × q matrix, y = p/q ≤ 1: a planted θ > y^¼ is seen at ℓ² = (1 + θ²)(y + θ²)/θ², with
cosines between the true and the seen directions that depend on θ and y alone (Benaych-Georges and Nadakuditi
2012). The estimate of the planted matrix that is closest in Frobenius norm keeps the seen directions with the
values θ · cosine · cosine = √((ℓ² − y − 1)² − 4y) / ℓ (Gavish and Donoho 2017).
"""

from __future__ import annotations

import math

import numpy as np

from .marchenko_pastur import Array, planted_strength


def strengths(values: Array, rows: float, columns: float, scale: float) -> Array:
    """The planted singular values behind the seen ones."""
    return np.array([planted_strength(float(value), rows, columns, scale) for value in values])


def shrunk(values: Array, rows: int, columns: int, scale: float) -> Array:
    """The values with which the seen directions estimate the planted matrix best; 0 inside the bulk."""
    short, long = sorted((rows, columns))
    unit, y = scale * math.sqrt(long), short / long
    if unit <= 0:
        return np.array(values, dtype=np.float64)
    seen = np.asarray(values, dtype=np.float64) / unit
    visible = seen > 1 + math.sqrt(y)
    seen = np.where(visible, seen, 1 + math.sqrt(y))
    squared = np.maximum((seen**2 - y - 1) ** 2 - 4 * y, 0.0)
    result: Array = np.where(visible, unit * np.sqrt(squared) / seen, 0.0)
    return result


def cosines(strength: Array, rows: int, columns: int, scale: float) -> tuple[Array, Array]:
    """Between planted and seen directions: of the left (in the space of the rows) and of the right ones."""
    short, long = sorted((rows, columns))
    y = short / long
    square = (np.asarray(strength, dtype=np.float64) / (scale * math.sqrt(long))) ** 2
    visible = square**2 > y
    square = np.where(visible, square, 1.0)
    of_short = np.where(visible, 1 - y * (1 + square) / (square * (square + y)), 0.0)
    of_long = np.where(visible, 1 - (y + square) / (square * (square + 1)), 0.0)
    pair = np.sqrt(of_short), np.sqrt(of_long)
    return pair if rows <= columns else pair[::-1]


def strength_errors(strength: Array, rows: int, columns: int, scale: float) -> Array:
    """About the standard error of each strength: σ far above the threshold, wider towards it."""
    square = (np.asarray(strength, dtype=np.float64) / scale) ** 2
    beyond = 1 - rows * columns / square**2
    result: Array = scale / np.sqrt(np.maximum(beyond, 1 / math.sqrt(min(rows, columns))))
    return result
