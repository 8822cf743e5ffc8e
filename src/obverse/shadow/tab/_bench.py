"""The theory bench: what Theorem 2.3 predicts for one random layer, and the same layer simulated.

The prediction is `shadow.recovery_error`, which knows no simulation; the simulation draws W, h and the mask
and knows no prediction. Not for trained layers in their own order: see the audit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from typing import Any

import torch
from torch import Tensor

from ...present import Fields, Subject, Tab
from .. import best_threshold, recovery_error, theory_scale

MOST_SIDE = 2000
MOST_OFFSET = 6.0  # in units of the noise √(2/t)‖h‖ off the support; 6 of them silence everything
CURVE, POINTS = 81, 13
AXES = ("offset", "sparsity", "kept")
HIDDEN = 8  # draws of h for each W
SECONDS = 0.04  # of simulating in one request, so that others need not wait
MOST_DRAWS = 64
OWN = "layer: "  # entries drawn from those of a layer of the net


def _student(shape: tuple[int, int], generator: torch.Generator) -> Tensor:
    """Student's t with 5 degrees of freedom, whose variance is 5/3.

    χ² of 5 is that of 4, −2 ln(u₁u₂) for uniform u, and a squared normal number.
    """
    uniform = 1 - torch.rand(2, *shape, generator=generator)
    chi = torch.randn(shape, generator=generator).square() - 2 * uniform.prod(0).log()
    return torch.randn(shape, generator=generator) / (chi / 5).sqrt() / sqrt(5 / 3)


def _laplace(shape: tuple[int, int], generator: torch.Generator) -> Tensor:
    size = -torch.log1p(-torch.rand(shape, generator=generator))
    return size * _signs(shape, generator) / sqrt(2)


def _signs(shape: tuple[int, int], generator: torch.Generator) -> Tensor:
    return torch.randint(2, shape, generator=generator).float() * 2 - 1


def _sparse(shape: tuple[int, int], generator: torch.Generator) -> Tensor:
    """One entry in ten is not zero."""
    there = torch.rand(shape, generator=generator) < 0.1
    return torch.randn(shape, generator=generator) * there * sqrt(10)


# Each of mean 0 and variance 1.
LAWS: Mapping[str, Callable[[tuple[int, int], torch.Generator], Tensor]] = {
    "normal": lambda shape, generator: torch.randn(shape, generator=generator),
    "uniform": lambda shape, generator: (torch.rand(shape, generator=generator) - 0.5) * sqrt(12),
    "signs": _signs,
    "laplace": _laplace,
    "student t (5)": _student,
    "one in ten": _sparse,
}


def laws(subject: Subject) -> list[str]:
    """The laws of entries to choose from, those of the net's own layers last."""
    return [*LAWS, *(OWN + one.name for one in subject.weights)]


@dataclass(frozen=True)
class Bench:
    """n, m, k, t and the offset in units of the noise: θ = offset·√(2/t)·‖h‖."""

    inputs: int
    hidden: int
    sparsity: int
    kept: int
    offset: float

    @staticmethod
    def read(fields: Fields) -> Bench:
        inputs = fields.whole("n", 10, MOST_SIDE)
        hidden = fields.whole("m", 10, MOST_SIDE)
        return Bench(
            inputs,
            hidden,
            fields.whole("k", 1, hidden),
            fields.whole("t", 2, inputs),
            fields.number("offset", 0.0, MOST_OFFSET),
        )

    def along(self, axis: str, count: int) -> list[Bench]:
        """This bench with one of its numbers varied, smaller to larger; numbers of units are whole."""
        if axis == "offset":
            values = torch.linspace(0, MOST_OFFSET, count).tolist()
            return [Bench(self.inputs, self.hidden, self.sparsity, self.kept, value) for value in values]
        top, low = (self.hidden, 1) if axis == "sparsity" else (self.inputs, 2)
        spread = torch.logspace(
            torch.log10(torch.tensor(float(low))), torch.log10(torch.tensor(float(top))), count
        )
        whole = sorted({min(top, max(low, round(value))) for value in spread.tolist()})
        if axis == "sparsity":
            return [Bench(self.inputs, self.hidden, value, self.kept, self.offset) for value in whole]
        return [Bench(self.inputs, self.hidden, self.sparsity, value, self.offset) for value in whole]

    def value(self, axis: str) -> float:
        return {"offset": self.offset, "sparsity": self.sparsity, "kept": self.kept}[axis]

    @property
    def threshold(self) -> float:
        """θ for ‖h‖ = 1."""
        return self.offset * sqrt(2 / self.kept)

    def predicted(self) -> float:
        """The expected ‖ĥ − h‖² / ‖h‖² of equal non-zeros, in closed form."""
        return float(recovery_error(_equal(self), self.kept, self.threshold, self.inputs))


def _equal(bench: Bench) -> Tensor:
    """h with k equal entries and ‖h‖ = 1."""
    h = torch.zeros(bench.hidden, dtype=torch.float64)
    h[: bench.sparsity] = 1 / sqrt(bench.sparsity)
    return h


def predict_answer(subject: Subject, fields: Fields) -> dict[str, Any]:
    """The curve along one axis, and the numbers at the place chosen."""
    bench, axis = Bench.read(fields), fields.choice("axis", AXES)
    best = float(best_threshold(_equal(bench), bench.kept, bench.inputs))
    return {
        "axis": axis,
        "curve": [[one.value(axis), one.predicted()] for one in bench.along(axis, CURVE)],
        "at": bench.value(axis),
        "predicted": bench.predicted(),
        "threshold": bench.threshold,
        "best_offset": best / sqrt(2 / bench.kept),
        "best": float(recovery_error(_equal(bench), bench.kept, best, bench.inputs)),
        "theorem": bench.sparsity < bench.kept < bench.sparsity**2,
    }


@torch.no_grad()
def measure_answer(subject: Subject, fields: Fields) -> dict[str, Any]:
    """Some draws of W, beginning with number `first`: sums of errors and of their squares, point by point.

    The last point is the place chosen. Draw number i is the same for every request.
    """
    bench, axis = Bench.read(fields), fields.choice("axis", AXES)
    law = fields.choice("law", laws(subject))
    seed, first = fields.whole("seed", 0, 10**6), fields.whole("first", 0, 10**6)
    points = [*bench.along(axis, POINTS), bench]
    began = time.perf_counter()
    found: list[Tensor] = []
    entries = _entries(subject, law)
    while len(found) < MOST_DRAWS and (not found or time.perf_counter() - began < SECONDS):
        generator = torch.Generator().manual_seed(seed * 1_000_003 + first + len(found))
        found.append(simulate(points, entries, generator))
    errors = torch.stack(found)
    return {
        "at": [one.value(axis) for one in points],
        "first": first,
        "count": len(found),
        "sum": errors.sum(0).tolist(),
        "squares": errors.square().sum(0).tolist(),
    }


def _entries(subject: Subject, law: str) -> Callable[[tuple[int, int], torch.Generator], Tensor]:
    if law in LAWS:
        return LAWS[law]
    own = _own_entries(subject, law.removeprefix(OWN))
    return lambda shape, generator: own[torch.randint(len(own), shape, generator=generator)]


@lru_cache(maxsize=8)
def _own_entries(subject: Subject, name: str) -> Tensor:
    """Entries of a layer, of mean square 1; of a large one a million of them, evenly chosen."""
    found: Tensor = subject.weight(name).load().float().flatten()
    found = found[:: max(1, len(found) // 2**20)]
    return found / found.square().mean().sqrt().clamp(min=1e-30)


def simulate(
    points: list[Bench],
    entries: Callable[[tuple[int, int], torch.Generator], Tensor],
    generator: torch.Generator,
) -> Tensor:
    """One W, and for every point the mean error over a few h: x = r(αWᵀh) ⊙ mask, ĥ = r(Wx − θ).

    Weights are m × n, the transpose of the paper's. All points share W, and points of the same k share h.
    """
    inputs, hidden = points[0].inputs, points[0].hidden
    weights = entries((hidden, inputs), generator)
    order = torch.rand(HIDDEN, hidden, generator=generator).argsort(1)
    lots = torch.rand(HIDDEN, inputs, generator=generator)  # kept where below t/n
    made: dict[tuple[int, int], tuple[Tensor, Tensor]] = {}
    errors = []
    for point in points:
        key = point.sparsity, point.kept
        if key not in made:
            places = order[:, : point.sparsity]
            h = torch.zeros(HIDDEN, hidden).scatter_(1, places, 1 / sqrt(point.sparsity))
            keep = point.kept / inputs
            x = (float(theory_scale(float(inputs), keep)) * h @ weights).relu() * (lots < keep)
            made[key] = h, x @ weights.T
        h, response = made[key]
        errors.append(((response - point.threshold).relu() - h).double().square().sum(1).mean())
    return torch.stack(errors)


TAB = Tab(
    "bench.js",
    "shadow/tab/bench.js",
    {"predict": predict_answer, "measure": measure_answer},
    lambda subject: {
        "bench": {"laws": laws(subject), "most_side": MOST_SIDE, "most_offset": MOST_OFFSET},
    },
)
