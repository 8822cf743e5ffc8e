"""What depth does to a convex problem, and what the last layer of the memorizing net has to do."""

from __future__ import annotations

from math import sqrt

import torch
from torch import Tensor

from ..._core import BadInput
from ...identity import Landscape
from .._claim import Claim, grid, measurement, per_trial
from .._registry import register
from .._rules import Equal, HoldsIn
from ..results import Setting
from ._memorizing import REVIEW

ROUNDING = 1e-9  # of a risk, relative to its terms: products of a few matrices in float64


def check_depth(setting: Setting) -> None:
    if not (setting["d"] >= 1 and setting.get("layers", 1) >= 1 and setting.get("size", 1.0) > 0):
        raise BadInput("d ≥ 1, layers ≥ 1 and size > 0", got=dict(setting), do="raise them")


def _problem(setting: Setting) -> tuple[Tensor, Tensor]:
    """R = I + size·G and Σ, the same in every trial of a setting."""
    check_depth(setting)
    d = setting["d"]
    generator = torch.Generator().manual_seed(d)
    gap, root = torch.randn(2, d, d, generator=generator, dtype=torch.float64)
    target = torch.eye(d, dtype=torch.float64) + setting["size"] * gap / sqrt(d)
    return target, root @ root.T / d + 0.1 * torch.eye(d, dtype=torch.float64)


@measurement("identity.depth.measure_midpoint")
@per_trial
def measure_midpoint(setting: Setting, generator: torch.Generator) -> float:
    """f halfway between two minima that differ in which layer makes R; the others are the identity."""
    target, covariance = _problem(setting)
    layers, d = setting["layers"], setting["d"]
    places = torch.randperm(layers, generator=generator)[:2]
    minima = torch.zeros(2, layers, d, d, dtype=torch.float64)
    for one, place in zip(minima, places, strict=True):
        one[place] = target - torch.eye(d, dtype=torch.float64)
    landscape = Landscape(target, covariance)
    heights = [float(landscape.risk(one)) for one in minima]
    if max(heights) > ROUNDING:
        raise BadInput("two minima", got=f"risks {heights}", do="correct the setting")
    return float(landscape.risk(minima.mean(0)))


def halfway(setting: Setting) -> float:
    """‖((R − I)/2)²Σ^½‖², as ((I + R)/2)² − R = ((R − I)/2)²."""
    target, covariance = _problem(setting)
    half = (target - torch.eye(len(target), dtype=torch.float64)) / 2
    square = half @ half
    return float((square @ covariance * square).sum())


@measurement("identity.depth.measure_chord")
@per_trial
def measure_chord(setting: Setting, generator: torch.Generator) -> float:
    """f at a point between two random ones less the chord there, by the size of f; one layer."""
    target, covariance = _problem(setting)
    ends = torch.randn(2, 1, setting["d"], setting["d"], generator=generator, dtype=torch.float64)
    share = float(torch.rand((), generator=generator))
    landscape = Landscape(target, covariance)
    first, second = (float(landscape.risk(one)) for one in ends)
    between = float(landscape.risk(share * ends[0] + (1 - share) * ends[1]))
    return (between - share * first - (1 - share) * second) / max(first, second)


def none(setting: Setting) -> float:
    check_depth(setting)
    return ROUNDING


register(
    Claim(
        id="identity.nonconvex",
        title="Depth makes it non-convex",
        statement=(
            "With l ≥ 2 layers f is not convex: halfway between two of its minima, R in one layer or in "
            "another, it is ‖((R − I)/2)²Σ^½‖²_F above both."
        ),
        source=f"{REVIEW}, Section 2, below eq. 2; the height is derived here",
        place=(
            "“Simply by adding depth without changing expressivity of our model induces nonconvexity”, "
            "Section 2, below eq. 2, line 36"
        ),
        grid=grid(d=(2, 5, 10), layers=(2, 3, 8), size=(0.2, 1.0), trials=3),
        quick=grid(d=(2, 5), layers=(2, 3), size=1.0, trials=3),
        predict=halfway,
        measure=measure_midpoint,
        rule=Equal(tolerance=1e-9),  # rounding
        quantity="f halfway − f at the minima",
        axis="d",
        series="layers",
    )
)

register(
    Claim(
        id="identity.convex",
        title="Without depth it is convex",
        statement="Eq. 1, the same problem in one layer, is convex: f lies nowhere above its chords.",
        source=f"{REVIEW}, Section 2, eq. 1",
        place="“Equation 1 is a convex optimization problem”, Section 2, below eq. 2, line 36",
        grid=grid(d=(2, 5, 10), size=(0.2, 1.0), trials=200),
        quick=grid(d=(2, 5), size=1.0, trials=110),
        predict=none,
        measure=measure_chord,
        rule=HoldsIn(),
        quantity="(f − chord) ÷ the larger end",
        axis="d",
        series="size",
    )
)


def check_classes(setting: Setting) -> None:
    if not (setting["k"] >= 2 and setting["r"] >= 2):
        raise BadInput("k ≥ 2 and r ≥ 2", got=dict(setting), do="raise them")


@measurement("identity.depth.measure_last")
@per_trial
def measure_last(setting: Setting, generator: torch.Generator) -> float:
    """The largest entry of T(q_j) − e_j for r random unit vectors, T(h) = B r(Ah + b) with A of rows q_j.

    b is the largest product of two of them, B the r × r matrix that makes what is left 1.
    """
    check_classes(setting)
    q = torch.randn(setting["r"], setting["k"], generator=generator, dtype=torch.float64)
    q = q / q.norm(dim=1, keepdim=True)
    cosines = q @ q.T
    nearest = float((cosines - 2 * torch.eye(len(q), dtype=torch.float64)).max())
    outer = torch.eye(len(q), dtype=torch.float64) / (1 - nearest)
    found = (q @ q.T - nearest).relu() @ outer.T
    return float((found - torch.eye(len(q), dtype=torch.float64)).abs().max())


def exactly(setting: Setting) -> float:
    check_classes(setting)
    return ROUNDING


register(
    Claim(
        id="identity.last-layer",
        title="The last layer maps q_j to e_j",
        statement=(
            "A last layer B r(Ah + b) can map every q_j to e_j, for r random unit vectors: with rows q_j in "
            "A, −max⟨q_i, q_j⟩ in b and a diagonal r × r matrix B."
        ),
        source=f"{REVIEW}, Section 3, step 3 of the construction",
        place="“must map each q_j to e_j for all possible labels”, Section 3, line 115",
        grid=grid(k=(5, 20, 50), r=(2, 10, 50), trials=110),
        quick=grid(k=(5, 20), r=(2, 10), trials=110),
        predict=exactly,
        measure=measure_last,
        rule=HoldsIn(),
        quantity="largest entry of T(q_j) − e_j",
        axis="r",
        series="k",
        remark=(
            "The text has B in ℝ^{k×k}, which does not fit behind r units; its own count of parameters, kr + "
            "r² + r, has B in ℝ^{r×r}."
        ),
    )
)
