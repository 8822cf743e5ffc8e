"""The level of the whole way down from a layer: one factor, found in ten passes. Not the scales of single
layers: see calibrate.

Along the ray of images `mean + factor · what came down` the first guess gives shadows the spread of the
inputs. Then h is taken for linear between two factors (least squares, a secant), and the error for a parabola
through three.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import exp, inf, isfinite, log

import torch
from torch import Tensor

from ._recovery import relative_error

PASSES = 10  # over the inputs; two over one image come on top
LEAST_SPREAD = 0.1  # of that of the inputs, below which shadows look alike
MOST_SPREAD = 10.0
GAIN = 0.01  # by which a level must beat one image for all inputs
NEAR = 0.03  # steps of less than this share of the factor are not worth a pass
LOPSIDED, GOLDEN = 3.0, 0.382
FEW = 8  # inputs, below which it is chance how many are found again
SECANTS = 3  # factors that are tried before parabolas
STEP = 1.6  # from the best of two factors on, where it is better still


@dataclass(frozen=True)
class Level:
    """What the whole way down from a layer ends with: x̃ is `factor` times what comes down, plus the mean of
    each channel of the calibration data where `centred`. `theory`: the way itself takes the theory's scales,
    which weigh the paths of a residual net against each other better than the calibrated ones there.

    `error` is that of recovering h of the inputs it was found on, `uncalibrated` that without it, by the
    theory's scales, and `mean` that of their mean h for all of them; None where nothing was searched.
    """

    factor: float = 1.0
    centred: bool = False
    theory: bool = False
    error: float | None = field(default=None, compare=False)
    uncalibrated: float | None = field(default=None, compare=False)
    mean: float | None = field(default=None, compare=False)

    def __str__(self) -> str:
        around = " around the mean input" if self.centred else ""
        scales = ", the way down by the theory's scales" if self.theory else ""
        said = f"factor {self.factor:.3g}{around}{scales}"
        if self.error is None or self.mean is None or self.uncalibrated is None:
            return said
        said += f"; recovery error {self.error:.3g}, without calibration {self.uncalibrated:.3g}"
        if self.error < self.mean:
            return f"{said}, of the mean of h {self.mean:.3g}"
        return f"{said}: no better than the mean of h for every input, {self.mean:.3g}"


@dataclass(frozen=True)
class WayDown:
    """All that the level of a layer is found from: what comes down from it, by the scales of `theory` or not,
    and h, which it should give back. `finish` is what the input ends with; `mean` one number a channel."""

    infer: Callable[[Tensor], Tensor]
    down: Tensor
    h: Tensor
    x: Tensor
    finish: Callable[[Tensor], Tensor]
    mean: Tensor
    theory: bool

    def look(self, level: Level) -> Look:
        around = self.mean if level.centred else torch.zeros_like(self.mean)
        recovered = self.infer(self.finish(around + level.factor * self.down)).to(self.h)
        return Look(level, recovered, relative_error(recovered, self.h), found_again(recovered, self.h))

    def constant(self, centred: bool) -> Tensor:
        """h of one image for all inputs, which a factor close to 0 comes down to."""
        around = self.mean if centred else torch.zeros_like(self.mean)
        return self.infer(self.finish((around + torch.zeros_like(self.down))[:1]))

    def natural(self) -> float | None:
        """The factor at which shadows differ from each other as much as the inputs do; None for no answer."""
        wanted, have = spread(self.x), spread(self.down)
        factor = wanted / have if have > 0 else 0.0
        return factor if 0 < factor < inf else None


@dataclass(frozen=True)
class Look:
    """What one pass over the net told of a level: its error, and how many inputs are found again by h."""

    level: Level
    recovered: Tensor
    error: float
    found: int


@dataclass
class _Ray:
    """One way and one centre: the levels tried so far, and h of the factor 0."""

    way: WayDown
    natural: float
    constant: Tensor
    looks: list[Look]

    @property
    def best(self) -> Look:
        return min(self.looks, key=_error)

    @property
    def promise(self) -> float:
        """The least error so far; after one look, that where the straight line to h of the factor 0 comes
        closest to h: at the first factor, rays that end lower can be far above others."""
        if len(self.looks) > 1:
            return _error(self.best)
        share = self._within(self._secant()) / self.natural
        line = torch.lerp(self.constant.expand_as(self.best.recovered), self.best.recovered, share)
        error = relative_error(line, self.way.h)
        return error if isfinite(error) else inf

    def _within(self, factor: float) -> float:
        return min(max(factor, LEAST_SPREAD * self.natural), MOST_SPREAD * self.natural)

    def next(self) -> Level | None:
        """What to try next; None where another pass would change little."""
        here = self.best.level
        # Secants are quick where little of h is missed, and stop short where much is.
        early = len(self.looks) < SECANTS
        for factor in (self._secant(), self._parabola()) if early else (self._parabola(), self._secant()):
            factor = self._within(factor)
            if all(abs(log(factor / look.level.factor)) > NEAR for look in self.looks):
                return Level(factor, here.centred, here.theory)
        return None

    def _secant(self) -> float:
        """Where the straight line through h of the best factor and of that nearest to it is closest to h."""
        best, factor = self.best, self.best.level.factor
        others = [(look.level.factor, look.recovered) for look in self.looks if look is not best]
        near, h = min([*others, (0.0, self.constant)], key=lambda one: abs(one[0] - factor))
        slope = (best.recovered - h).double()
        size = float(slope.square().sum())
        share = float(((self.way.h - best.recovered).double() * slope).sum()) / size if size > 0 else 0.0
        found = factor + share * (factor - near)
        return found if isfinite(found) else factor

    def _parabola(self) -> float:
        """The lowest point of the parabola through the best and its neighbours, by the logarithm of the
        factor; a step on where the best is at an end."""
        ordered = sorted(self.looks, key=lambda look: look.level.factor)
        place = ordered.index(self.best)
        if place in (0, len(ordered) - 1):
            return self.best.level.factor * (STEP if place else 1 / STEP)
        (x1, e1), (x2, e2), (x3, e3) = (
            (log(look.level.factor), _error(look)) for look in ordered[place - 1 : place + 2]
        )
        left, right = x2 - x1, x3 - x2
        if max(left, right) > LOPSIDED * min(left, right):  # then parabolas creep: cut the long side
            return exp(x2 + GOLDEN * (right if right > left else -left))
        low, high = (x2 - x1) * (e2 - e3), (x2 - x3) * (e2 - e1)
        if not isfinite(low - high) or low == high:
            return exp((x1 + x3) / 2)
        return exp(x2 - ((x2 - x1) * low - (x2 - x3) * high) / (2 * (low - high)))


@torch.no_grad()
def calibrate_level(ways: Sequence[WayDown], uncalibrated: WayDown) -> Level:
    """The level at which infer(x̃) is closest to h, of all ways, around 0 and around the mean.

    h of different inputs may have so much in common that one image for all of them is closer to it than any
    shadow. What is best then says nothing about the shadows, and would make them alike. So shadows have to
    differ by a tenth of what the inputs differ by, and as many inputs as without calibration, less one, and
    half as many as at any level tried have to be found again: h of their shadow is nearest to their own.
    Where no level is clearly better than one image, as many as at any level tried, less one: there the error
    alone would choose the faintest shadows. No calibration is a choice always, so that calibration does no
    harm on these inputs.
    """
    plain = uncalibrated.look(Level(theory=True))
    constants = {centred: ways[0].constant(centred) for centred in (False, True)}
    alike = min(relative_error(one.expand_as(ways[0].h), ways[0].h) for one in constants.values())
    rays = []
    for way in ways:
        natural = way.natural()
        for centred in (False, True) if natural is not None else ():
            assert natural is not None
            look = way.look(Level(natural, centred, way.theory))
            rays.append(_Ray(way, natural, constants[centred], [look]))
    for _ in range(PASSES - 1 - len(rays)):
        steps = [(ray.promise, place, level) for place, ray in enumerate(rays) if (level := ray.next())]
        if not steps:
            break
        # The two best rays once more each, then the best: at another factor another one may be.
        fresh = [one for one in sorted(steps, key=_by_error)[:2] if len(rays[one[1]].looks) == 1]
        _, place, level = min(fresh or steps, key=_by_error)
        rays[place].looks.append(rays[place].way.look(level))
    looks = [plain, *(look for ray in rays for look in ray.looks)]
    best = min(_allowed(looks, plain, alike), key=_error)
    h = uncalibrated.h
    mean = relative_error(h.mean(0, keepdim=True).expand_as(h), h)
    return replace(best.level, error=best.error, uncalibrated=plain.error, mean=mean)


def _allowed(looks: Sequence[Look], plain: Look, alike: float) -> list[Look]:
    """The levels that are not bought by shadows that look alike; no calibration is one of them. `looks` has
    `plain`, too."""
    if len(plain.recovered) < FEW:  # that two of three are found again says nothing
        return list(looks)
    most = max(look.found for look in looks)
    least = max(plain.found - 1, most / 2)
    better = [look for look in looks if _error(look) < (1 - GAIN) * alike and look.found >= least]
    if better:
        return [*better, plain]
    return [*(look for look in looks if look.found >= most - 1), plain]


def _by_error(step: tuple[float, int, Level]) -> tuple[float, int]:
    return step[:2]


def _error(look: Look) -> float:
    return look.error if isfinite(look.error) else inf


def found_again(recovered: Tensor, h: Tensor) -> int:
    """Of how many rows the recovered h is nearer to their own h than to that of any other row."""
    ours, theirs = recovered.double().flatten(1), h.double().flatten(1)
    # by inner products: ‖a − b‖² up to ‖a‖², which is the same for all b
    distance = theirs.square().sum(1) - 2 * ours @ theirs.T
    own = distance.diagonal()
    distance = distance.clone().fill_diagonal_(inf)
    return int((own < distance.amin(1)).sum()) if len(h) > 1 else 1


def spread(x: Tensor) -> float:
    """How far rows are from the next, the median: one row a thousand times as large as the others is one."""
    return float((x - x.roll(1, 0)).double().flatten(1).norm(dim=1).median())
