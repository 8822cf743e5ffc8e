"""Profile, signal and bulk of a large matrix from few products with it. Not for small ones: see decompose.

The largest singular values come from block Lanczos, the scale from the energy that they leave, the distance
of the bulk from a Lanczos density.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from ..results import Number
from .crowding import crowd_of_density, is_open, most
from .edges import bulk_distance, count_above, count_below, scale_of_energy
from .krylov import BlockLanczos, Krylov, Projected
from .lanczos import Quadrature, fit_law
from .marchenko_pastur import Array
from .profile import sinkhorn
from .split import (
    ROUNDS,
    Split,
    count_signal,
    first_seen,
    image_of,
    moments,
    profile_beside_,
    scale_by,
    to_protect,
)

WIDTH = 32  # of the block
QUICK = 5  # products with it: enough for what distorts the profile
THOROUGH = 16  # a direction at 1.3 times the threshold shows as it does among all singular values
FEWEST = 12  # random vectors beside the known directions: the density is seen from them
ROOM = 1.5  # dimensions for every direction found, beside those that are searched where there is none
GROWTH = 1.25  # more room than for what was found last
ROUNDING = 1e-6  # of the energy: what is left is not a bulk
LARGEST_SPACE = 0.5  # of the shorter side
QUANTILES = 200  # of the density, for charts
_EMPTY = 1e-9  # weight of a node that is none: a start vector had seen all there is before
TOLERANCE = 1e-3  # of the profile: a thirtieth of the sampling error of a row of 2,000 entries
SETTLED = 0.5  # a profile that moves by less, in units of its sampling error, leaves the signal as it is
ONE = 3.0  # times this error no line may move: no more than chance moves the one of a thousand


@torch.no_grad()
def split_fast(matrix: Tensor, alpha: float, generator: torch.Generator) -> Split:
    """`matrix` is float32 with rows ≤ columns, none of them empty."""
    rows, columns = matrix.shape
    profile = sinkhorn(matrix, tolerance=TOLERANCE)
    scaled = torch.empty_like(matrix)  # without its profile: the one copy of the matrix
    known = 0
    search = _Search(scale_by(matrix, *profile, out=scaled), profile, matrix.new_zeros(rows, 0), 0, generator)
    found, thorough = search.look(QUICK, alpha), False
    probabilities: list[float] = []
    settled = False
    for _ in range(ROUNDS):
        probabilities = first_seen(probabilities, found.probabilities, min(known, found.count))
        if found.count == known:
            settled = thorough
            if settled:
                break
            found, thorough = search.look(THOROUGH, alpha), True
            continue
        known = to_protect(found.top.values, found.count, probabilities, known, rows, columns, found.scale)
        left, right = found.left[:, :known], found.right[:, :known]
        scaled.addmm_(left, found.image[:, :known].T, alpha=-1)  # it is not needed any more
        moved = profile_beside_(scaled, profile, left, right, TOLERANCE)
        error = math.sqrt((2 + max(found.kurtosis, -1.0)) / columns)
        stays = search.has_begun and _is_near(profile, moved, error)
        settled = stays and thorough and known == found.count
        if settled:
            break
        if stays:  # what the search has seen so far holds
            scale_by(matrix, *profile, out=scaled)
            search.learn(left, found.image[:, :known])
        else:
            directions = _carried(found.left, profile[0], moved[0])
            profile = moved
            search = _Search(scale_by(matrix, *profile, out=scaled), profile, directions, known, generator)
            if known < found.count:  # do the others show again?
                found, thorough = search.look_along(alpha), False
                continue
        found, thorough = search.look(THOROUGH, alpha), True
    else:
        if not thorough:
            found = search.look(THOROUGH, alpha)
        probabilities = first_seen(probabilities, found.probabilities, min(known, found.count))
    return _described(found, probabilities, alpha, settled)


class _Look:
    """What a search has found so far."""

    def __init__(self, search: _Search, top: Krylov | Projected, alpha: float) -> None:
        rows, columns = search.scaled.shape
        self.profile = search.profile
        self.top, self.kurtosis, self.energy = top, search.kurtosis, search.energy
        values = top.values[: top.half]

        def scale_without(count: int) -> float:
            rest = self.energy - float(values[:count] @ values[:count])
            return (
                scale_of_energy(rest, values[:count], rows, columns) if rest > ROUNDING * self.energy else 0.0
            )

        self.count, self.scale, self.probabilities = count_signal(
            values, rows, columns, scale_without, self.kurtosis, alpha, search.known
        )
        self._scaled = search.scaled

    @cached_property
    def left(self) -> Tensor:
        """Directions of the signal (rows × count)."""
        return self.top.leading(self.count)

    @cached_property
    def image(self) -> Tensor:
        """Of these under the scaled matrix, transposed (columns × count)."""
        if isinstance(self.top, Projected):
            return self.top.image(self.count)
        return image_of(self._scaled, self.left)

    @property
    def right(self) -> Tensor:
        right: Tensor = self.image / torch.linalg.vector_norm(self.image, dim=0)
        return right


class _Search:
    """For the signal under a given profile; few `known` directions are in its first block."""

    def __init__(
        self,
        scaled: Tensor,
        profile: tuple[Tensor, Tensor],
        directions: Tensor,
        known: int,
        generator: torch.Generator,
    ) -> None:
        """Of the `directions` (rows × any number, orthonormal) so many are known, the others may be none."""
        self.scaled, self.profile, self._generator = scaled, profile, generator
        self._lanczos: BlockLanczos | None = None
        self._begun = self._count = 0  # directions in the first block, and in all
        self._directions, self._image = directions, image_of(scaled, directions)
        self.learn(directions[:, :known], self._image[:, :known])

    @property
    def has_begun(self) -> bool:
        return self._lanczos is not None

    def learn(self, known: Tensor, image: Tensor) -> None:
        """Directions that are surely signal: the entries' kurtosis is measured without them."""
        self.known, self._left = known.shape[1], known
        rest, self.kurtosis = moments(self.scaled, known, image)
        self.energy = rest + float(image.square().sum(dtype=torch.float64))

    def look_along(self, alpha: float) -> _Look:
        """In the space of the given directions alone: values there are no larger than in all."""
        return _Look(self, Projected(self._directions, self._image), alpha)

    def look(self, effort: int, alpha: float) -> _Look:
        """Go on until the space has room for what is found in it."""
        rows = self.scaled.shape[0]
        largest = min(max(effort * WIDTH, int(LARGEST_SPACE * rows)), rows)
        lanczos = self._lanczos = self._lanczos or self._begin(effort)
        while True:
            lanczos.extend(math.ceil((self._room(effort) - lanczos.size) / WIDTH))
            found = _Look(self, lanczos.found(), alpha)
            self._count, size = max(found.count, self._begun), lanczos.size
            if effort * WIDTH + ROOM * (self._count - self._begun) <= size or size + WIDTH > largest:
                return found

    def _begin(self, effort: int) -> BlockLanczos:
        self._count = self.known
        self._begun = self.known if self.known <= WIDTH - FEWEST else 0
        return BlockLanczos(
            self.scaled,
            block=WIDTH - self._begun,
            start=self._left if self._begun else None,
            generator=self._generator,
            room=self._room(effort),
        )

    def _room(self, effort: int) -> int:
        """Dimensions for as many directions as are known."""
        rows = self.scaled.shape[0]
        largest = min(max(effort * WIDTH, int(LARGEST_SPACE * rows)), rows)
        return min(effort * WIDTH + math.ceil(GROWTH * ROOM * (self._count - self._begun)), largest)


def _carried(directions: Tensor, before: Tensor, after: Tensor) -> Tensor:
    """Directions (rows × any number) of a signal under one profile as they lie under another, orthonormal."""
    factors = (after / before).sqrt().to(directions)
    carried: Tensor = torch.linalg.qr(directions * factors[:, None]).Q
    return carried


def _is_near(one: tuple[Tensor, Tensor], other: tuple[Tensor, Tensor], error: float) -> bool:
    """Whether two profiles are the same but for a common scale, in all lines together and in each."""
    changes = [(after / before).log() for before, after in zip(one, other, strict=True)]
    changes = [change - change.mean() for change in changes]
    together = math.sqrt(sum(float(change.square().mean()) for change in changes))
    return together < SETTLED * error and max(float(change.abs().max()) for change in changes) < ONE * error


def _quantiles(seen: Quadrature, rows: int, top: Array) -> Array:
    """Singular values as one would draw them: quantiles of the bulk's density, and those of the signal."""
    bulk = max(2, round(QUANTILES * (rows - len(top)) / rows))
    used = seen.weights.mean(axis=0) > _EMPTY
    shares, nodes = seen.shares.mean(axis=0)[used], seen.nodes.mean(axis=0)[used]
    places = np.interp((np.arange(bulk) + 0.5) / bulk, shares, nodes)
    kept = top[np.linspace(0, len(top) - 1, min(len(top), QUANTILES - bulk + 1)).round().astype(int)]
    result: Array = np.concatenate((places, kept[::-1]))
    return result


def _described(
    found: _Look,
    probabilities: list[float],
    alpha: float,
    settled: bool,
) -> Split:
    assert isinstance(found.top, Krylov)  # of a whole search
    rows, columns = len(found.left), len(found.right)
    count, scale, values = found.count, found.scale, found.top.values[: found.top.half]
    kurtosis = found.kurtosis
    low = high = count
    below, below_p = np.zeros(0), None
    distance: Number | None = None
    goes_on = False
    density = values[::-1]
    if scale > 0:
        low, _ = count_above(values, rows, columns, scale, kurtosis, min(alpha, 0.025))
        near, _ = count_above(values, rows, columns, scale, kurtosis, 0.975, count)
        size = (rows - count, columns - count)
        fit = fit_law(seen := found.top.quadrature(count), *size)
        many = crowd_of_density(seen.nodes, seen.weights, size, scale, kurtosis, values[:count])
        high = most(count, near, many, size)
        goes_on = is_open(tuple(probabilities), count, many, alpha)
        distance = bulk_distance(fit.distance, rows - count, kurtosis, error=fit.error)
        density = _quantiles(seen, rows, values[:count])
        smallest = np.sort(seen.nodes[seen.weights > 0])[:1]  # no smaller than the smallest singular value
        lowest, chances = count_below(smallest, *size, scale, alpha, values[:count])
        below, below_p = smallest[:lowest], tuple(chances)
    return Split(
        of_rows=found.profile[0],
        of_columns=found.profile[1],
        left=found.left,
        right=found.right,
        above=values[:count].copy(),
        above_p=tuple(probabilities[: count + 1]),
        below=below,
        below_p=below_p,
        count_low=min(low, count),
        count_high=max(high, count),
        scale=scale,
        kurtosis=kurtosis,
        distance=distance,
        values=density,
        zeros=0,
        energy=found.energy,
        settled=settled,
        at_least=2 * count >= len(values),
        is_open=goes_on,
        exact=False,
    )
