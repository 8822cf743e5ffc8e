"""Whether pictures jump on the way from one seed to another, instead of changing little by little.

A jump is a change by more than a hundredth of the distance of two random pictures within 1/32,768 of a path:
more than 300 times as fast as on an even way. It is found by halving a piece of the path again and again and
keeping the half that changes more. Not for how fast pictures change elsewhere: see smoothness.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ._interpolation import Kind, between

SIZE = 0.01  # of the root mean square distance of two random pictures
WITHIN = 2**-15  # of a path; float32 seeds and pictures still tell it from nothing
PIECES = 32  # of a path, of which the one with the largest change is looked into

Look = Callable[[Tensor], Tensor]  # seeds (n × latent) → features of their pictures (n × d), float64


def largest_change(look: Look, start: Tensor, end: Tensor, kind: Kind = "spherical") -> Tensor:
    """On each path, the change of the picture where it changes most within `WITHIN`.

    In the piece out of 32 with the largest change: a jump that is smaller than the change of a whole other
    piece is not found.
    """
    before = look(start)
    most = torch.full((len(start),), -1.0, dtype=torch.float64)
    low = torch.zeros(len(start), dtype=torch.float64)
    for piece in range(PIECES):
        after = look(between(start, end, (piece + 1) / PIECES, kind))
        change = (after - before).norm(dim=1)
        low = torch.where(change > most, piece / PIECES, low)
        most, before = torch.maximum(most, change), after
    return narrowed(look, start, end, low, 1 / PIECES, kind)


def narrowed(
    look: Look, start: Tensor, end: Tensor, low: Tensor, length: float, kind: Kind = "spherical"
) -> Tensor:
    """The change that is left of that from `low` to `low + length`, after halving it down to `WITHIN`."""
    first = look(between(start, end, low, kind))
    last = look(between(start, end, low + length, kind))
    while length > WITHIN:
        length /= 2
        middle = look(between(start, end, low + length, kind))
        later = (last - middle).norm(dim=1) > (middle - first).norm(dim=1)
        low = torch.where(later, low + length, low)
        first = torch.where(later[:, None], middle, first)
        last = torch.where(later[:, None], last, middle)
    left: Tensor = (last - first).norm(dim=1)
    return left
