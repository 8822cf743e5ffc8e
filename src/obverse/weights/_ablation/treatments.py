"""What can be done to a layer's parts, and the controls: functions from `Parts` to a matrix. Not for nets."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from .._decomposition.parts import Parts
from .results import Treatment

STEPS = 40  # of a bisection: the step of a grid to 12 digits


def signal_only(parts: Parts, generator: torch.Generator) -> Tensor:
    """The bulk is removed; the signal's directions stay, at their own singular values.

    Not `parts.signal()`, which is shrunken: closer to what was planted, but weaker than what the net uses.
    """
    return _whole(parts) - parts.without_signal()


def bulk_resampled(parts: Parts, generator: torch.Generator) -> Tensor:
    """The bulk is replaced by fresh normal numbers of its scale and profile."""
    return signal_only(parts, generator) + (parts.resample(generator) - parts.signal())


def bulk_shuffled(parts: Parts, generator: torch.Generator) -> Tensor:
    """The entries of the bulk, without their profile, change places at random."""
    return signal_only(parts, generator) + (parts.shuffled(generator) - parts.signal())


def signal_removed(parts: Parts, generator: torch.Generator) -> Tensor:
    """The signal's directions are taken out whole."""
    return parts.without_signal()


def directions_random(parts: Parts, generator: torch.Generator) -> Tensor:
    """The signal's directions are replaced by random ones of the same singular values, under the profile."""
    rest = parts.without_signal()
    if not parts.rank:
        return rest
    left, right = (
        random_directions(side, parts.rank, generator).to(rest) * scales[:, None].to(rest)
        for side, scales in zip(rest.shape, (parts.row_scales, parts.column_scales), strict=True)
    )
    values = torch.tensor([one.value for one in parts.summary.directions])
    return rest + (left * values.to(rest)) @ right.T


def random_removed(parts: Parts, generator: torch.Generator) -> Tensor:
    """Control: as many random directions of the shorter side are taken out as the signal has."""
    whole = _whole(parts)
    wide = whole.shape[0] <= whole.shape[1]
    tall = whole if wide else whole.T
    taken = random_directions(tall.shape[0], parts.rank, generator).to(whole)
    rest = tall - taken @ (taken.T @ tall)
    return rest if wide else rest.T


def noise_added(parts: Parts, generator: torch.Generator) -> Tensor:
    """Control: normal noise on all entries, of the energy that goes where the signal is removed."""
    whole = _whole(parts)
    noise = torch.empty(whole.shape, device=generator.device).normal_(generator=generator).to(whole)
    return whole + noise * (_norm(signal_only(parts, generator)) / max(_norm(noise), 1e-300))


def rounded(parts: Parts, generator: torch.Generator) -> Tensor:
    """Control: entries rounded to a grid so coarse that the rounding errors have the bulk's energy."""
    whole, step = _whole(parts), rounding_step(parts)
    return whole.clone() if step == 0 else (whole / step).round() * step


TREATMENTS: dict[Treatment, Callable[[Parts, torch.Generator], Tensor]] = {
    "signal only": signal_only,
    "bulk resampled": bulk_resampled,
    "bulk shuffled": bulk_shuffled,
    "signal removed": signal_removed,
    "directions random": directions_random,
    "random directions removed": random_removed,
    "noise added": noise_added,
    "rounded": rounded,
}


def random_directions(length: int, count: int, generator: torch.Generator) -> Tensor:
    """Orthonormal columns, uniformly distributed."""
    drawn = torch.empty(length, count, device=generator.device).normal_(generator=generator)
    directions, triangle = torch.linalg.qr(drawn)
    uniform: Tensor = directions * triangle.diagonal().sign()  # QR alone fixes signs
    return uniform


def rounding_step(parts: Parts) -> float:
    """The grid whose rounding errors have the energy of the bulk; 0 where there is no bulk."""
    whole, wanted = _whole(parts), _norm(parts.without_signal())
    largest = float(whole.abs().max()) if whole.numel() else 0.0
    if wanted == 0 or largest == 0:
        return 0.0
    high = 2.1 * largest  # beyond twice the largest entry all of them become 0
    if wanted >= _norm(whole):
        return high
    low = 0.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        if _norm(whole - (whole / middle).round() * middle) < wanted:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def bits(parts: Parts) -> float | None:
    """Bits that name the grid points from the smallest to the largest entry; None where there is no bulk."""
    step = rounding_step(parts)
    if step == 0:
        return None
    low, high = (round(float(end) / step) for end in torch.aminmax(_whole(parts)))
    return math.log2(high - low + 1)


@dataclass(frozen=True, eq=False)
class Directions:
    """All directions of a matrix without its profile, by their singular values; for the curve."""

    left: Tensor  # with the profile
    right: Tensor
    values: Tensor

    def keep(self, count: int) -> Tensor:
        """The matrix of the `count` largest."""
        return (self.left[:, :count] * self.values[:count]) @ self.right[:, :count].T


def directions_of(parts: Parts) -> Directions:
    """The signal's directions are the first ones; beyond them are those of the bulk."""
    whole = _whole(parts)
    rows, columns = (
        torch.where(scales > 0, scales, 1.0).to(whole) for scales in (parts.row_scales, parts.column_scales)
    )
    left, values, right = torch.linalg.svd(whole / rows[:, None] / columns, full_matrices=False)
    return Directions(left * rows[:, None], right.T * columns[:, None], values)


def _whole(parts: Parts) -> Tensor:
    return parts.matrix.to(torch.promote_types(parts.matrix.dtype, torch.float32))


def _norm(matrix: Tensor) -> float:
    return float(torch.linalg.vector_norm(matrix, dtype=torch.float64))
