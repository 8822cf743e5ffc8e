"""How smoothly pictures change with the seed: perceptual path length (Karras et al. 2019). Not for strips.

On a path between two seeds the features move by d in a small step ε; the number is the mean of d²/ε². Beside
it stands the squared distance of the two ends: d²/ε² cannot be smaller on average, and equals it where the
path of the features is straight and even. Their ratio has no unit: 1 is straight, jumps make it large.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import BadInput
from ..records import Record
from .interpolation import Decode, Kind, OnBlock, between, check_alone, decode_all

STEP = 1e-3  # of a path; float32 pictures still differ by thousands of their rounding errors
FEWEST = 2


@dataclass(frozen=True)
class PathLength(Record):
    """Means over paths between random seeds: the squared speed, and the squared distance of the ends."""

    length: float
    error: float  # standard error
    ends: float
    ratio: float  # length / ends
    ratio_error: float
    median: float
    pairs: int
    step: float
    kind: str

    def __str__(self) -> str:
        return (
            f"path length {self.length:.4g} ± {self.error:.2g}, {self.ratio:.3g} ± {self.ratio_error:.2g} "
            f"times a straight path ({self.pairs} {self.kind} paths)"
        )


def path_length(
    decode: Decode,
    latent: int,
    *,
    features: Callable[[Tensor], Tensor] | None = None,
    pairs: int = 512,
    step: float = STEP,
    kind: Kind = "spherical",
    generator: torch.Generator | None = None,
    batch: int = 128,
    on_block: OnBlock | None = None,
) -> PathLength:
    """Of Gaussian seeds, at a random place of each path; `features` maps pictures to vectors, or pixels."""
    if latent < 1 or pairs < FEWEST or batch < 1:
        raise BadInput(
            f"a latent size ≥ 1, {FEWEST} pairs or more and a batch ≥ 1",
            got=f"{latent}, {pairs} and {batch}",
            do="correct it",
        )
    if not 0 < step < 1:
        raise BadInput("a step in (0, 1)", got=step, do=f"{STEP} is the default")
    check_alone(decode, torch.randn(2, latent, generator=generator))
    squares, distances = [], []
    blocks = range(0, pairs, batch)
    for done, first in enumerate(blocks, start=1):
        count = min(batch, pairs - first)
        start, end = torch.randn(2, count, latent, generator=generator)
        share = torch.rand(count, generator=generator) * (1 - step)
        seeds = [start, end, between(start, end, share, kind), between(start, end, share + step, kind)]
        one, other, here, there = _features(decode_all(decode, torch.cat(seeds)), features).split(count)
        squares.append((there - here).square().sum(1) / step**2)
        distances.append((other - one).square().sum(1))
        if on_block is not None:
            on_block(done, len(blocks))
    return _summary(torch.cat(squares), torch.cat(distances), step, kind)


def _features(pictures: Tensor, features: Callable[[Tensor], Tensor] | None) -> Tensor:
    """In float64, as differences of near pictures are next."""
    with torch.no_grad():
        found = pictures if features is None else features(pictures)
    if len(found) != len(pictures) or not bool(torch.isfinite(found).all()):
        raise BadInput(
            f"finite features of {len(pictures)} pictures", got=f"shape {tuple(found.shape)}", do="check them"
        )
    return found.flatten(1).double()


def _summary(squares: Tensor, distances: Tensor, step: float, kind: Kind) -> PathLength:
    count = len(squares)
    length, ends = float(squares.mean()), float(distances.mean())
    if not ends > 0:
        raise BadInput(
            "pictures that differ with the seed",
            got="the same one for all seeds",
            do="nothing can be said of paths: the generator has collapsed",
        )
    ratio = length / ends
    # of a ratio of means, to first order: the spread of a − (A/B)·b over B
    spread = float((squares - ratio * distances).std()) / ends
    return PathLength(
        length=length,
        error=float(squares.std()) / count**0.5,
        ends=ends,
        ratio=ratio,
        ratio_error=spread / count**0.5,
        median=float(squares.median()),
        pairs=count,
        step=step,
        kind=kind,
    )
