"""Singular values of normal matrices drawn exactly, without the matrices: the oracle of the spectral tests.

Rotations turn a p × q matrix of independent normal entries into a bidiagonal one whose entries are
independent chi variables (Dumitriu–Edelman 2002): q, q − 1, … degrees of freedom on the diagonal and
p − 1, p − 2, … beside it. A planted θuvᵀ only changes the first: rotate u to the first row, whose length is
then non-central, before anything else is rotated.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh_tridiagonal
from scipy.stats import binomtest


def bidiagonal(
    rows: int, columns: int, random: np.random.Generator, *, planted: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """The diagonal and what lies below it."""
    short, long = sorted((rows, columns))
    diagonal = np.sqrt(random.chisquare(long - np.arange(short)))
    beside = np.sqrt(random.chisquare(short - np.arange(1, short)))
    if planted:
        diagonal[0] = np.sqrt(random.noncentral_chisquare(long, planted**2))
    return diagonal, beside


def normal_singular_values(
    rows: int, columns: int, random: np.random.Generator, *, planted: float = 0.0
) -> np.ndarray:
    """All singular values, ascending, of normal entries of scale 1 with a rank-one part of that strength."""
    diagonal, beside = bidiagonal(rows, columns, random, planted=planted)
    squares = diagonal**2
    squares[1:] += beside**2
    found = eigh_tridiagonal(squares, diagonal[:-1] * beside, eigvals_only=True, lapack_driver="sterf")
    return np.sqrt(np.clip(found, 0, None))


def not_above(count: int, trials: int, level: float, doubt: float = 0.001) -> bool:
    """Whether so many alarms may come from a rate of at most `level`: exact binomial (Clopper–Pearson)."""
    return binomtest(int(count), trials, level, alternative="greater").pvalue >= doubt


def not_below(count: int, trials: int, level: float, doubt: float = 0.001) -> bool:
    """Whether so many may come from a rate of at least `level`."""
    return binomtest(int(count), trials, level, alternative="less").pvalue >= doubt
