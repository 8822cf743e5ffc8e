"""State evolution: how well several random layers invert their shadow, predicted layer by layer, not drawn.

Given h^(j) and y = W h^(j), the rest of W is independent of all that happens below, so that exactly

    ĥ^(j) = a h^(j) + noise,   a = Σ_u y_u h̃_u / ‖h^(j)‖²,   noise ~ N(0, Σ_u h̃_u²) across h^(j),

where u runs over the layer below. Both sums concentrate, and Stein's lemma gives a_j = a_(j−1) · P(a unit of
the support stays above its offset): the signal shrinks by the share of the support that is lost. One layer is
`obverse.shadow.recovery_error`. Left out: that ‖h^(j)‖ varies from draw to draw (as 6/k_j of its square).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import exp, inf, log, pi, sqrt

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Layer:
    """What the answer of one layer adds up to at an offset, in units of the layer's σ (its h = σu)."""

    kept: float  # P(h̃ > 0) on the support
    error: float  # E‖h̃ − h‖² / ‖h‖²
    misalignment: float  # 1 − cos²(h̃, h), which is the error after the best common factor
    energy: float  # E‖h̃‖²
    spread: float  # Σ E[u²h̃²]: what makes a fluctuate


@dataclass(frozen=True)
class State:
    """ĥ = (a ± √wobble) h + noise·g before the offset; h has `active` positive and `silent` zero entries."""

    signal: float  # a
    noise: float  # in units of σ
    wobble: float  # variance of a from draw to draw
    active: float
    silent: float
    equal: bool  # h is 1 on its support (the top), or half-normal (all below)

    def at(self, offset: float) -> Layer:
        u, weights = (np.ones(1), np.ones(1)) if self.equal else _half_normal()
        # Across h the noise has no part along h; along h there is the wobble instead.
        own = u**2 * (self.wobble - self.noise**2 / self.active)
        above, first, second = _rectified(self.signal * u - offset, np.sqrt(self.noise**2 + own))
        silent = self.silent * float(_rectified(np.array([-offset]), np.array([self.noise]))[2][0])
        energy = self.active * float(weights @ second) + silent
        product = float(weights @ (u * first))
        return Layer(
            kept=float(weights @ above),
            error=energy / self.active - 2 * product + 1,
            misalignment=1 - self.active * product**2 / energy if energy > 0 else 1.0,
            energy=energy,
            spread=self.active * float(weights @ (u**2 * second)) + silent,
        )


def evolve(
    widths: Sequence[float],
    sparsities: Sequence[float],
    *,
    direction: bool = False,
    halved: bool = False,
) -> list[Layer]:
    """Layers 1 … ℓ at their best offsets, chosen from the bottom up; the top has equal entries.

    Args:
        widths: n_0 … n_ℓ.
        sparsities: k_0 … k_ℓ.
        direction: by default each layer's squared error is made least; with this the direction of the top is
            looked for, so that each layer below gives the next the least noise for its signal.
        halved: half of every layer is dropped on the way up, made up for by a factor 2 (Theorem C.1).
    """
    doubled = 2 if halved else 1
    top = len(widths) - 1
    below = Layer(
        kept=1.0, error=0.0, misalignment=0.0, energy=sparsities[0] / 2, spread=sparsities[0] * 3 / 2
    )
    signal, wobble = 1.0, 0.0
    found: list[Layer] = []
    for layer in range(1, top + 1):
        kept = sparsities[layer - 1]  # α = 2/kept
        signal *= below.kept
        wobble *= below.kept**2
        wobble += 4 / kept**2 * doubled * below.spread - signal**2 / widths[layer - 1]
        active = sparsities[layer] / (1 if layer == top else 2)  # r zeroes half of what the mask keeps
        noise = sqrt(4 / kept**2 * doubled * below.energy * active)
        state = State(signal, noise, max(wobble, 0.0), active, widths[layer] - active, layer == top)
        cost = _error if not direction else _misalignment if layer == top else _noise_over_signal
        below = state.at(_least(state, cost))
        found.append(below)
    return found


def critical_ratio(width: float) -> float:
    """The least k_(j−1)/k_j at which depth has no end, for wide layers with n_j = width · k_j.

    With x the noise over the signal of one layer, the next has x'² = G(x)/r, where G is the least of
    energy / (k/2) / kept² over offsets. A fixed point needs r = G(x)/x² for some x; below the least of these
    x grows without end.
    """
    from scipy import optimize

    active = 1e12  # so wide that the noise along h does not matter

    def ratio(log_noise: float) -> float:
        noise = exp(log_noise)
        state = State(1.0, noise, 0.0, active, (2 * width - 1) * active, equal=False)
        return _noise_over_signal(state.at(_least(state, _noise_over_signal))) / active / noise**2

    grid = np.linspace(log(0.05), log(50), 31)
    return float(optimize.minimize_scalar(ratio, bounds=_around(ratio, grid), method="bounded").fun)


def _error(layer: Layer) -> float:
    return layer.error


def _misalignment(layer: Layer) -> float:
    return layer.misalignment


def _noise_over_signal(layer: Layer) -> float:
    """Of the layer above, squared, up to a factor."""
    return layer.energy / layer.kept**2 if layer.kept > 0 else inf


def _least(state: State, cost: Callable[[Layer], float]) -> float:
    """The offset, of either sign, with the least cost."""
    from scipy import optimize

    def at(offset: float) -> float:
        return cost(state.at(offset))

    # 8 times the noise removes all that is noise, −4 times the noise lets all of it pass
    bounds = _around(at, state.noise * np.linspace(-4, 8, 49))
    options = {"xatol": 1e-6 * state.noise}
    return float(optimize.minimize_scalar(at, bounds=bounds, method="bounded", options=options).x)


def _around(cost: Callable[[float], float], grid: Array) -> tuple[float, float]:
    """The neighbours of the lowest point of a grid: costs can have two minima."""
    best = int(np.argmin([cost(float(point)) for point in grid]))
    return float(grid[max(best - 1, 0)]), float(grid[min(best + 1, len(grid) - 1)])


def _rectified(mean: Array, deviation: Array) -> tuple[Array, Array, Array]:
    """P(z > 0), E r(z) and E r(z)² for z ~ N(mean, deviation²)."""
    from scipy.special import ndtr

    z = mean / deviation
    above = ndtr(z)
    density = deviation * np.exp(-(z**2) / 2) / sqrt(2 * pi)
    return above, mean * above + density, (mean**2 + deviation**2) * above + mean * density


@cache
def _half_normal() -> tuple[Array, Array]:
    """Nodes and weights for u = |g|; beyond 9 there is less than 1e-18 of its mass."""
    nodes, weights = np.polynomial.legendre.leggauss(200)
    u = 4.5 * (nodes + 1)
    return u, 4.5 * weights * np.exp(-(u**2) / 2) * sqrt(2 / pi)
