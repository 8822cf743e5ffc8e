"""Laws of the entries of W beside the normal one: mean 0, variance 1, or a structure added to normal ones.

Each law is a way to draw rows of W, for `stream.Weights`. Not for what becomes of the theorems under them:
see universality.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import sqrt

import numpy as np
import torch

from ..._core import BadInput
from ._stream import Draw, normal, share

SHARE = 0.1  # of the entries that are not zero, under the sparse law
GROUP = 8  # rows, or units, that are alike; rows are drawn in eights
ALIKE = 0.25  # their correlation
EDGE = 1.5  # the spike's singular value, over the largest of a normal W: the spectrum shows it


def signs(random: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """±1 with equal chances."""
    bits = np.unpackbits(random.integers(0, 256, -(-rows * columns // 8), dtype=np.uint8))
    return (2 * bits[: rows * columns].astype(np.float32) - 1).reshape(rows, columns)


def uniform(random: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Uniform on [−√3, √3]."""
    return (2 * random.random((rows, columns), dtype=np.float32) - 1) * np.float32(sqrt(3))


def sparse(random: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Nine zeros out of ten; the others ±√10."""
    alive = random.random((rows, columns), dtype=np.float32) < SHARE
    return signs(random, rows, columns) * alive / np.float32(sqrt(SHARE))


def student(random: np.random.Generator, rows: int, columns: int, *, freedom: int) -> np.ndarray:
    """Student's t, scaled to variance 1: √(ν(u^(−2/ν) − 1)) cos 2πv (Bailey 1994; one of its pair)."""
    found = _share(random, rows, columns)
    np.log(found, out=found)
    found *= -2 / freedom
    np.expm1(found, out=found)
    found *= freedom - 2  # ν, and the variance ν/(ν − 2)
    np.sqrt(found, out=found)
    angle = random.random((rows, columns), dtype=np.float32)
    angle *= 2 * np.pi
    found *= np.cos(angle, out=angle)
    return found


def skewed(random: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Exponential, less its mean 1: not symmetric, as all other laws here are."""
    found: np.ndarray = -np.log(_share(random, rows, columns)) - 1
    return found


def _share(random: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Uniform on (0, 1] with 32 bits: heavy tails come out of the smallest."""
    return share(random.integers(0, 2**32, (rows, columns), dtype=np.uint32))


def alike_rows(random: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Normal; the inputs in groups that see every unit alike."""
    shared = normal(random, -(-rows // GROUP), columns).repeat(GROUP, 0)[:rows]
    return _mixed(shared, normal(random, rows, columns))


def alike_units(random: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Normal; the units in groups with weights alike."""
    shared = normal(random, rows, -(-columns // GROUP)).repeat(GROUP, 1)[:, :columns]
    return _mixed(shared, normal(random, rows, columns))


def _mixed(shared: np.ndarray, own: np.ndarray) -> np.ndarray:
    found: np.ndarray = np.float32(sqrt(ALIKE)) * shared + np.float32(sqrt(1 - ALIKE)) * own
    return found


def spiked(random: np.random.Generator, rows: int, columns: int, *, direction: np.ndarray) -> np.ndarray:
    """Normal, plus a random column times a direction that is the same for all rows of W."""
    found = normal(random, rows, columns)
    found += normal(random, rows, 1) * direction
    return found


def _spike(n: int, m: int, direction: np.ndarray) -> Draw:
    """W + λuvᵀ: u random of length about 1, v the direction scaled to 1, λ = EDGE (√n + √m)."""
    height = EDGE * (sqrt(n) + sqrt(m)) / sqrt(n)
    return partial(spiked, direction=np.float32(height / np.linalg.norm(direction)) * direction)


def _random_spike(n: int, m: int, generator: torch.Generator) -> Draw:
    return _spike(n, m, torch.randn(m, generator=generator).numpy())


def _aligned_spike(n: int, m: int, generator: torch.Generator) -> Draw:
    return _spike(n, m, np.ones(m, dtype=np.float32))


_ENTRIES: dict[str, Draw] = {
    "normal": normal,
    "signs": signs,
    "uniform": uniform,
    "sparse": sparse,
    "student10": partial(student, freedom=10),
    "student5": partial(student, freedom=5),
    "student3": partial(student, freedom=3),
    "skewed": skewed,
    "alike-rows": alike_rows,
    "alike-units": alike_units,
}
_SPIKES: dict[str, Callable[[int, int, torch.Generator], Draw]] = {
    "spike": _random_spike,
    "aligned-spike": _aligned_spike,
}
LAWS = (*_ENTRIES, *_SPIKES)

# E w⁴ of the laws whose entries are independent and symmetric, as far as a simulation's mean of w⁴ settles.
FOURTH = {"normal": 3.0, "signs": 1.0, "uniform": 1.8, "sparse": 1 / SHARE, "student10": 4.0}


def entries(law: str, n: int, m: int, generator: torch.Generator) -> Draw:
    """The law of one W of n × m; what all its rows share comes out of the generator."""
    if law in _ENTRIES:
        return _ENTRIES[law]
    if law in _SPIKES:
        return _SPIKES[law](n, m, generator)
    raise BadInput(f"a law of W out of {', '.join(LAWS)}", got=repr(law), do="pass one of these")
