"""The birthday test: how many different pictures a generator makes, from how soon it repeats itself.

Collisions are looked for in fresh, disjoint batches, and every number has its confidence. The bound N* is a
theorem where "the same picture" splits pictures into kinds; for near-duplicates it reads the pictures as if
it did, and the closest pairs are there to be looked at. Not for whether the pictures are good.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from math import inf, isfinite
from typing import Any

import torch
from torch import Tensor

from .._core import BadInput, Progress, Record, check_confidence, clopper_pearson, lower_limit, or_global
from ._bounds import effective_support_bound, printed_bound, support_at_least
from ._counts import EffectiveSupport, effective_support
from ._pairs import Close, close_pairs
from ._sources import FeatureMap, Sampler, Source, open_source
from ._threshold import LEVEL, Threshold, calibrated, chance_of_collisions, largest_batch

PILOTS = 8  # batches to try a size on
FIRST = 8  # the first size that is tried
MOST_BATCHES, FEWEST_BATCHES = 50, 10  # unless asked for: a pool has no more than it has


@dataclass(frozen=True)
class ClosePair(Record):
    """Two samples of one batch and their distance."""

    distance: float
    batch: int
    first: int
    second: int


@dataclass(frozen=True)
class Birthday(Record):
    """What a birthday test found. `support_bound` is on N_eff, `support_at_least` on the support."""

    batch_size: int
    batches: int
    collisions: int  # batches with at least one
    collision_probability: float
    interval: tuple[float, float]  # two-sided, Clopper–Pearson
    confidence: float
    support_bound: float | None  # N*, one-sided: N_eff is at most this; None without a collision
    printed_bound: float | None  # the notes' closed form at the same lower limit
    effective: EffectiveSupport  # from the number of colliding pairs
    support_at_least: float | None  # only where no batch had a collision
    threshold: Threshold
    p_real: float | None  # so many collisions or more, were the generator as diverse as the real data
    closest: tuple[ClosePair, ...]
    samples: int  # drawn in all, pilots included
    constant: bool  # every sample was the same

    def __str__(self) -> str:
        sure = f"{100 * self.confidence:g} %"
        if self.constant:
            return f"all {self.batches * self.batch_size:,} samples are the same picture"
        if self.support_bound is None:
            caveat = "; only exact duplicates count" if self.threshold.origin == "exact" else ""
            return (
                f"no collision seen: the support is at least {_count(self.support_at_least)} ({sure}){caveat}"
            )
        return (
            f"effectively at most {_count(self.support_bound)} pictures ({sure}): "
            f"{self.collisions} of {self.batches} batches of {self.batch_size:,} had a collision"
        )


@dataclass(frozen=True, eq=False)
class BirthdayTest(Birthday):
    """The same, with the closest pairs as pictures, k × 2 × the shape of a sample."""

    pictures: Tensor

    def to_dict(self) -> dict[str, Any]:
        return Birthday(**{field.name: getattr(self, field.name) for field in fields(Birthday)}).to_dict()


def birthday_test(
    sampler: Sampler | Tensor | str | Source | Any,
    batch_size: int | None = None,
    batches: int | None = None,
    threshold: float | None = None,
    confidence: float = 0.95,
    generator: torch.Generator | None = None,
    *,
    real: Any = None,
    features: FeatureMap | None = None,
    level: float = LEVEL,
    budget: int = 100_000,
    show: int = 10,
    latent: int | Sequence[int] | None = None,
    progress: Progress | None = None,
) -> BirthdayTest:
    """Draw `batches` fresh batches (50, or 10 of a pool) and count those in which two samples are the same.

    Without a `batch_size` it is doubled until collisions appear in trial batches, or `budget` samples (of a
    pool: all of it) would be spent; the batches that count are drawn afterwards. Two samples are the same if
    their `features` (pixels unless given) are within `threshold`; without one it is calibrated on `real`,
    held-out real data; without that only exact duplicates count. `show` is how many close pairs to keep.
    The sampler is a function of n and a generator, or of n alone, a pool of samples, or with `latent`, the
    size or shape of its normal seeds, an nn.Module.
    """
    _check(batch_size, batches, threshold, confidence, budget)
    source = open_source(sampler, latent=latent)
    generator = or_global(generator)
    room = budget if source.left is None else source.left
    plan = _plan(source, room, batch_size, batches)
    width = None  # of the features, where real data say
    if threshold is not None:
        limit = Threshold(threshold, "given")
    elif real is None:
        limit = Threshold(0.0, "exact")
    else:
        points = _real_points(real, features, generator)
        width = points.shape[1]
        if batch_size is None:  # no larger than the real data can calibrate
            plan = replace(plan, size=max(2, min(plan.size, largest_batch(len(points), level))))
        # For the largest batches that may come: smaller ones of real data collide less often.
        limit = calibrated(points, plan.size, level)
    look = _Looks(source, features, limit, generator, width)
    if batch_size is None:
        plan = _grow(look, room, plan, batches)
    found = []
    for number in range(plan.batches):
        found.append(look(plan.size, show))
        if progress:
            progress(number + 1, plan.batches, "birthday test")
    _refuse_repeats(found, source)
    return _result(found, plan.size, confidence, look, show)


@dataclass(frozen=True)
class _Plan:
    size: int
    batches: int


def _plan(source: Source, room: int, size: int | None, batches: int | None) -> _Plan:
    """The largest batches that there are samples for; what was asked for is kept."""
    if batches is None:
        batches = MOST_BATCHES if source.left is None else max(1, min(FEWEST_BATCHES, room // 2))
        if size is not None and source.left is not None:
            batches = max(1, min(MOST_BATCHES, room // size))
    if size is None:
        size = room // batches
    if size < 2 or (source.left is not None and size * batches > room):
        raise BadInput(
            f"at least {max(size, 2) * batches:,} samples of {source.name} for {batches} batches",
            got=f"{room:,}",
            do="use smaller or fewer batches, or more samples",
        )
    return _Plan(size, batches)


@dataclass(frozen=True, eq=False)
class _Batch:
    close: Close
    pictures: Tensor  # of the closest pairs
    constant: Tensor | None  # the one sample that all are equal to
    repeated: bool  # sample for sample the batch before


class _Looks:
    """Draws batches and looks for collisions in them."""

    def __init__(
        self,
        source: Source,
        features: FeatureMap | None,
        threshold: Threshold,
        generator: torch.Generator,
        width: int | None,
    ) -> None:
        self.source, self.features, self.generator = source, features, generator
        self.threshold, self.width = threshold, width
        self.drawn = 0
        self._before: Tensor | None = None

    def __call__(self, size: int, show: int) -> _Batch:
        samples = self.source.draw(size, self.generator)
        self.drawn += size
        points = samples.flatten(1) if self.features is None else self.features(samples)
        if self.width not in (None, points.shape[1]):
            raise BadInput(
                f"samples of {self.width} values, as the real data", got=points.shape[1], do="make them alike"
            )
        close = close_pairs(points, self.threshold.distance, show)
        pictures = torch.stack([samples[close.closest.first], samples[close.closest.second]], 1)
        same = bool((samples == samples[:1]).all())
        repeated = self._before is not None and torch.equal(samples, self._before)
        self._before = samples
        return _Batch(close, pictures, samples[0].clone() if same else None, repeated)


def _refuse_repeats(found: list[_Batch], source: Source) -> None:
    """A sampler that hands out the same batch every time would be taken for one with a huge support."""
    fresh = [one.constant is not None or not one.repeated for one in found[1:]]
    if len(found) > 2 and source.left is None and not any(fresh):
        raise BadInput(
            f"other samples in every batch from {source.name}",
            got=f"the same {len(found)} times",
            do="draw with the generator that is passed",
        )


def _real_points(real: Any, features: FeatureMap | None, generator: torch.Generator) -> Tensor:
    source = open_source(real, name="the real data")
    points = source.draw(10_000, generator) if source.pool is None else source.pool
    return points.flatten(1) if features is None else features(points)


def _grow(look: _Looks, room: int, largest: _Plan, batches: int | None) -> _Plan:
    """The first size, doubling, at which a quarter of the trial batches collide; or the largest there is.

    Trials are paid for with samples: at most a fifth of what is left for each size.
    """
    size, chosen = FIRST, largest.size
    while size < largest.size and 5 * PILOTS * size <= room - look.drawn:
        seen = sum(look(size, 0).close.count > 0 for _ in range(PILOTS))
        if 4 * seen >= PILOTS:
            chosen = size
            break
        size *= 2
    left = room - look.drawn
    size = min(chosen, left // largest.batches)
    if batches is None and look.source.left is not None:
        return _Plan(size, min(MOST_BATCHES, left // size))
    return _Plan(size, largest.batches)


def _result(found: list[_Batch], size: int, confidence: float, look: _Looks, show: int) -> BirthdayTest:
    batches = len(found)
    collisions = sum(one.close.count > 0 for one in found)
    limit = lower_limit(collisions, batches, confidence)
    order = sorted(
        (float(distance), number, place)
        for number, one in enumerate(found)
        for place, distance in enumerate(one.close.closest.distance)
    )[:show]
    closest = tuple(
        ClosePair(
            distance,
            number,
            int(found[number].close.closest.first[place]),
            int(found[number].close.closest.second[place]),
        )
        for distance, number, place in order
    )
    pictures = [found[number].pictures[place] for _, number, place in order]
    first = found[0].constant
    return BirthdayTest(
        batch_size=size,
        batches=batches,
        collisions=collisions,
        collision_probability=collisions / batches,
        interval=clopper_pearson(collisions, batches, confidence),
        confidence=confidence,
        support_bound=_finite(effective_support_bound(limit, size)),
        printed_bound=_finite(printed_bound(limit, size)),
        effective=effective_support(
            [one.close.count for one in found],
            [int((one.close.degree * (one.close.degree - 1)).sum()) for one in found],
            size,
            confidence,
        ),
        support_at_least=None if collisions else support_at_least(size, batches, confidence),
        threshold=look.threshold,
        p_real=chance_of_collisions(collisions, batches, size, look.threshold),
        closest=closest,
        samples=look.drawn,
        constant=first is not None
        and all(one.constant is not None and torch.equal(one.constant, first) for one in found),
        pictures=torch.stack(pictures) if pictures else found[0].pictures[:0],
    )


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None


def _count(value: float | None) -> str:
    """To three digits: the bound is not known better than that."""
    value = inf if value is None else value
    return f"{float(f'{value:.3g}'):,.0f}"


def _check(
    batch_size: int | None, batches: int | None, threshold: float | None, confidence: float, budget: int
) -> None:
    if batch_size is not None and (not isinstance(batch_size, int) or batch_size < 2):
        raise BadInput(
            "batches of at least two samples, a whole number", got=batch_size, do="use larger ones"
        )
    if batches is not None and (not isinstance(batches, int) or batches < 1):
        raise BadInput("at least one batch, a whole number", got=batches, do="draw one")
    if threshold is not None and not 0 <= threshold < inf:
        raise BadInput("a threshold ≥ 0", got=threshold, do="use 0 for exact duplicates")
    check_confidence(confidence)
    if budget < 4:
        raise BadInput("a budget of at least four samples", got=budget, do="allow more")
