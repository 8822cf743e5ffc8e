"""What the directions of a signal do to the noise beside them: its singular values are pushed away.

Given the squared singular values ℓ of the signal, those of the noise, λ, have the weights of noise with as
many rows and columns less, times √(ℓ − λ) for each ℓ: the Vandermonde determinant gives ℓ − λ, and the
average over all directions that the planted ones may have (a rank-one spherical integral) takes half of the
power back. A signal far from the bulk changes nothing; many directions near to it press the bulk together,
by more than the largest singular value of noise strays. To first order in 1 / size, with the squared edges a
and b of the noise and ζ = (strength ÷ threshold)² for each direction:

- b moves inwards by 4b / (b − a) · Σ 1 / (ζ − 1), a outwards by 4a / (b − a) · Σ 1 / (ζ + 1),
- above an angle φ, with λ = (a + b) / 2 + (b − a) / 2 · cos φ, there are Σ ½ (h(φ) − φ/π) values fewer, where
  h(φ) = 2/π · arctan((ζ + 1) / (ζ − 1) · tan φ/2) is the harmonic measure seen from ℓ,
- the energy of the noise is less by σ² √(rows · columns) / ζ for each direction.
"""

from __future__ import annotations

import math

import numpy as np

from . import marchenko_pastur as law
from .marchenko_pastur import Array

NOTHING: Array = np.zeros(0)
STEPS = 4  # towards the place to which the edge is pushed: nearer to it than a tenth of what it strays


def distances(values: Array, rows: int, columns: int, scale: float) -> Array:
    """ζ of seen singular values, beside noise of so many rows and columns.

    Seen from the edge where they have pushed it. Nearer to it than noise's own largest value strays, a
    distance cannot be told: ζ is at least that of such a value.
    """
    if not len(values) or scale <= 0:
        return NOTHING
    low, high = law.edges(rows, columns)
    quarter = (high**2 - low**2) / 4  # √(rows · columns)
    least = law.edge_width(rows, columns)
    beyond = (np.asarray(values) / scale) ** 2 - high**2

    def seen_from(pushed: float) -> Array:
        excess = np.maximum(beyond + pushed, least) / quarter  # ζ + 1/ζ − 2
        result: Array = 1 + excess / 2 + np.sqrt(excess + excess**2 / 4)
        return result

    pushed = 0.0
    for _ in range(STEPS):
        pushed = (pushed + inwards(seen_from(pushed), rows, columns)) / 2
    return seen_from(pushed)


def inwards(zetas: Array, rows: int, columns: int) -> float:
    """How far the squared upper edge is pushed down, in units of the scale squared."""
    low, high = law.edges(rows, columns)
    return float(4 * high**2 / (high**2 - low**2) * np.sum(1 / (zetas - 1))) if len(zetas) else 0.0


def downwards(zetas: Array, rows: int, columns: int) -> float:
    """By which share the squared lower edge is pushed down; at a hard edge, by half of that."""
    low, high = law.edges(rows, columns)
    return float(4 / (high**2 - low**2) * np.sum(1 / (zetas + 1))) if len(zetas) else 0.0


def energy_lost(values: Array, rows: int, columns: int, scale: float) -> float:
    """What the noise has less of, because the seen directions took it with them."""
    zetas = distances(values, rows, columns, scale)
    return float(scale**2 * math.sqrt(rows * columns) * np.sum(1 / zetas)) if len(zetas) else 0.0


def missing(cosines: Array, zetas: Array) -> Array:
    """How many values fewer there are above each angle (given by its cosine)."""
    angles = np.arccos(np.clip(cosines, -1, 1))
    result: Array = np.zeros_like(angles)
    half = np.tan(np.minimum(angles, math.pi - 1e-9) / 2)
    for zeta in zetas:
        result += np.arctan((zeta + 1) / (zeta - 1) * half) / math.pi - angles / (2 * math.pi)
    return result


def cosines(singular: Array, rows: int, columns: int) -> Array:
    """Of the angles at which singular values of noise of scale 1 lie between the edges."""
    low, high = law.edges(rows, columns)
    result: Array = (2 * singular**2 - low**2 - high**2) / (high**2 - low**2)
    return result


def quantiles(shares: Array, rows: int, columns: int, zetas: Array) -> Array:
    """The singular values of noise of scale 1 below which lie the given shares, beside a signal."""
    plain = law.quantiles(shares, rows, columns)
    if not len(zetas):
        return plain
    fewer = missing(cosines(plain, rows, columns), zetas) / min(rows, columns)
    return law.quantiles(np.clip(shares - fewer, 0, 1), rows, columns)


def cdf(singular: Array, rows: int, columns: int, scale: float, zetas: Array) -> Array:
    """The share of singular values at or below each, beside a signal."""
    shares = law.cdf(singular, rows, columns, scale)
    if not len(zetas):
        return shares
    fewer = missing(cosines(np.asarray(singular) / scale, rows, columns), zetas) / min(rows, columns)
    return np.clip(shares + fewer, 0, 1)
