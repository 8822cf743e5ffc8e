"""The cosine of a ReLU layer's two outputs, for wide normal layers. A closed form: for predictions only."""

from __future__ import annotations

from math import acos, pi, sqrt


def relu_cosine(cosine: float) -> float:
    """κ(c) = (√(1 − c²) + (π − arccos c)c)/π for two inputs of cosine c (the arc-cosine kernel)."""
    return (sqrt(1 - cosine**2) + (pi - acos(cosine)) * cosine) / pi
