"""How smoothly pictures change with the seed: perceptual path length (Karras et al. 2019). Not for strips.

On a path between two seeds the features move by d in a small step ε; the number is the mean of d²/ε². Beside
it stands the squared distance of the two ends: on a path without jumps d²/ε² cannot be smaller on average,
and equals it where the path of the features is straight and even. Their ratio has no unit: 1 is straight.

Of a generator that jumps d²/ε² has no limit as ε goes to 0: its mean would be made by the few steps that
happen to fall on a jump. So these are left out of it, and how many paths jump at all is a number of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from .._core import BadInput, Progress, Record, check_confidence, clopper_pearson
from ._interpolation import Decode, Kind, between, check_alone, decode_all
from ._jumps import SIZE, Look, largest_change, narrowed

STEP = 1e-3  # of a path; float32 pictures still differ by thousands of their rounding errors
FEWEST = 2
WALKED = 128  # paths that are looked at from end to end for jumps: a share is known to ± 9 %


@dataclass(frozen=True)
class PathLength(Record):
    """Means over paths between random seeds: the squared speed, and the squared distance of the ends.

    Of `pairs` paths, one step on each; the `jumped` of them that fall on a jump are left out with their
    paths. `jumping` of `walked` paths have a jump somewhere, see jumps; `interval` of that share is exact.
    """

    length: float
    error: float  # standard error
    ends: float
    ratio: float  # length / ends
    ratio_error: float
    median: float
    pairs: int
    step: float
    kind: str
    jumped: int
    walked: int
    jumping: int
    interval: tuple[float, float]

    def __str__(self) -> str:
        return (
            f"path length {self.length:.4g} ± {self.error:.2g}, {self.ratio:.3g} ± {self.ratio_error:.2g} "
            f"times a straight path ({self.pairs} {self.kind} paths); {self.jumping} of {self.walked} jump"
        )


def path_length(
    decode: Decode,
    latent: int,
    *,
    features: Callable[[Tensor], Tensor] | None = None,
    pairs: int = 512,
    step: float = STEP,
    kind: Kind = "spherical",
    confidence: float = 0.95,
    generator: torch.Generator | None = None,
    batch_size: int = 128,
    progress: Progress | None = None,
) -> PathLength:
    """Of Gaussian seeds, at a random place of each path; `features` maps pictures to vectors, or pixels."""
    if latent < 1 or pairs < FEWEST or batch_size < 1:
        raise BadInput(
            f"a latent size ≥ 1, {FEWEST} pairs or more and a batch_size ≥ 1",
            got=f"{latent}, {pairs} and {batch_size}",
            do="correct it",
        )
    if not 0 < step < 1:
        raise BadInput("a step in (0, 1)", got=step, do=f"{STEP} is the default")
    check_confidence(confidence)
    check_alone(decode, torch.randn(2, latent, generator=generator))

    def look(seeds: Tensor) -> Tensor:
        return _features(decode_all(decode, seeds), features)

    blocks = range(0, pairs, batch_size)
    walked = min(pairs, WALKED)
    total = len(blocks) + len(range(0, walked, batch_size))
    drawn, squares, distances = [], [], []
    for done, first in enumerate(blocks, start=1):
        count = min(batch_size, pairs - first)
        start, end = torch.randn(2, count, latent, generator=generator)
        share = torch.rand(count, generator=generator) * (1 - step)
        seeds = [start, end, between(start, end, share, kind), between(start, end, share + step, kind)]
        one, other, here, there = look(torch.cat(seeds)).split(count)
        drawn.append((start, end, share))
        squares.append((there - here).square().sum(1))
        distances.append((other - one).square().sum(1))
        if progress is not None:
            progress(done, total, "paths")
    start, end, share = (torch.cat(parts) for parts in zip(*drawn, strict=True))
    size = SIZE * float(torch.cat(distances).mean()) ** 0.5
    if not size > 0:
        raise BadInput(
            "pictures that differ with the seed",
            got="the same one for all seeds",
            do="nothing can be said of paths: the generator has collapsed",
        )
    jumped = _jumped(
        look, (start, end, share), torch.cat(squares).sqrt() > size, size, step, kind, batch_size
    )
    jumping = 0
    for done, first in enumerate(range(0, walked, batch_size), start=len(blocks) + 1):
        some = slice(first, min(first + batch_size, walked))
        jumping += int((largest_change(look, start[some], end[some], kind) > size).sum())
        if progress is not None:
            progress(done, total, "paths")
    found = _Steps(torch.cat(squares) / step**2, torch.cat(distances), jumped)
    return found.summary(step, kind, walked, jumping, confidence)


def _jumped(
    look: Look,
    paths: tuple[Tensor, Tensor, Tensor],
    large: Tensor,
    size: float,
    step: float,
    kind: Kind,
    batch_size: int,
) -> Tensor:
    """Which of the steps that are large fall on a jump."""
    found = torch.zeros(len(large), dtype=torch.bool)
    which = large.nonzero().flatten()
    for first in range(0, len(which), batch_size):
        rows = which[first : first + batch_size]
        start, end, share = (part[rows] for part in paths)
        found[rows] = narrowed(look, start, end, share.double(), step, kind) > size
    return found


def _features(pictures: Tensor, features: Callable[[Tensor], Tensor] | None) -> Tensor:
    """In float64, as differences of near pictures are next."""
    with torch.no_grad():
        found = pictures if features is None else features(pictures)
    if len(found) != len(pictures) or not bool(torch.isfinite(found).all()):
        raise BadInput(
            f"finite features of {len(pictures)} pictures", got=f"shape {tuple(found.shape)}", do="check them"
        )
    return found.flatten(1).double()


@dataclass(frozen=True, eq=False)
class _Steps:
    """One step of each path: (distance ÷ step)², the squared distance of the ends, and whether it jumped."""

    squares: Tensor
    distances: Tensor
    jumped: Tensor

    def summary(self, step: float, kind: Kind, walked: int, jumping: int, confidence: float) -> PathLength:
        squares, distances = self.squares[~self.jumped], self.distances[~self.jumped]
        count = len(squares)
        if count < FEWEST or not float(distances.mean()) > 0:
            raise BadInput(
                "pictures that change little by little at least here and there",
                got=f"a jump in {len(self.squares) - count} of {len(self.squares)} small steps",
                do="nothing can be said of paths: neighbouring seeds have nothing in common",
            )
        length, ends = float(squares.mean()), float(distances.mean())
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
            pairs=len(self.squares),
            step=step,
            kind=kind,
            jumped=len(self.squares) - count,
            walked=walked,
            jumping=jumping,
            interval=clopper_pearson(jumping, walked, confidence),
        )
