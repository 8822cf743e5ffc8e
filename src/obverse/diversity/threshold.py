"""How close two pictures must be to count as one: calibrated on real data. Not for judging a generator.

Among real pictures some are close by chance. The threshold is where a batch of real pictures of the same
size holds `level` such pairs on average, so that at most so large a share of real batches shows any.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, floor, inf, nextafter
from typing import Literal

import torch
from torch import Tensor

from ..errors import BadInput
from ..records import Record
from .distances import OnBlock
from .pairs import close_pairs, closest_pairs
from .sources import flat_points

LEVEL = 0.05
_MOST = 20_000  # pairs that are looked at: a larger share of all pairs needs fewer real points


@dataclass(frozen=True)
class Threshold(Record):
    """Pairs at a distance of at most `distance` are duplicates.

    `level`: such a share of real batches of the size it was made for shows one by chance, at most.
    `real_support` is the effective support of the real data at this distance: what to compare with.
    """

    distance: float
    origin: Literal["given", "calibrated", "exact"]
    level: float | None = None
    real_points: int | None = None
    real_support: float | None = None

    def __str__(self) -> str:
        if self.origin == "exact":
            return "exact duplicates only: there was no real data to calibrate a threshold on"
        if self.origin == "given":
            return f"distance ≤ {self.distance:.4g}, as given"
        return (
            f"distance ≤ {self.distance:.4g}: at most {100 * (self.level or 0):.3g} % of real batches show "
            f"such a pair ({self.real_points:,} real points)"
        )


class Calibration:
    """The closest pairs of real data, found once, for thresholds at any batch size."""

    def __init__(self, real: Tensor, level: float = LEVEL, on_block: OnBlock | None = None) -> None:
        if not 0 < level < 1:
            raise BadInput("a level in (0, 1)", got=level, do="use 0.05, for example")
        self._real, self._level, self._on_block = flat_points(real, "the real data"), level, on_block
        self._found: dict[int, Tensor] = {}

    def at(self, batch_size: int) -> Threshold:
        """Real batches of this size show a pair within the threshold with probability `level` at most.

        By Markov's inequality: the mean number of such pairs is the number of pairs in a batch times the
        share of all real pairs, which is measured on all of them. With too few real points for the level
        asked for, the closest real pair gives the threshold, and the level that it stands for is said.
        """
        if batch_size < 2:
            raise BadInput("batches of at least two", got=batch_size, do="use larger ones")
        points = self._points(batch_size)
        ratio = comb(points, 2) / comb(batch_size, 2)
        rank = floor(self._level * ratio)
        # Too few real points for this level: below the closest of their pairs, and that is one in `ratio`.
        level = self._level if rank else min(1.0, 1 / ratio)
        distances = self._closest(points, rank + 1)
        above = float(distances[min(rank, len(distances) - 1)])
        if above == 0:  # more equal real pictures than the level allows: equal is as strict as it gets
            rank = close_pairs(self._some(points), 0.0, 0).count
            level = min(1.0, rank / ratio)
        distance = max(0.0, nextafter(above, -inf))
        return Threshold(distance, "calibrated", level, points, comb(points, 2) / max(rank, 1))

    def _points(self, batch_size: int) -> int:
        """All real points, or as many as need no more than `_MOST` pairs."""
        points = len(self._real)
        while self._level * comb(points, 2) / comb(batch_size, 2) > _MOST:
            points //= 2
        return points

    def _closest(self, points: int, count: int) -> Tensor:
        if len(self._found.get(points, ())) < count:
            some = self._some(points)
            self._found[points] = closest_pairs(some, count, on_block=self._on_block).distance
        return self._found[points]

    def _some(self, points: int) -> Tensor:
        """So many of the real points, at equal steps: a file may be in the order of its classes."""
        if points == len(self._real):
            return self._real
        return self._real[torch.linspace(0, len(self._real) - 1, points).round().long()]
