"""Laws on points that stand for pictures, batches drawn from them, and which of these collide.

A point is a number; the samples of a diffuse rest never collide. Not for telling when two pictures are the
same, which the test of a real generator must.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ..._core import BadInput
from .._claim import grid
from ..results import Setting

BIRTHDAY = "Theory of Deep Learning: Generative Models (2018), “Empirically detecting mode collapse”"

ROUNDING = 1e-9  # of a product of up to a thousand factors and of sums of positive terms
AT_ONCE = 2_000_000  # samples drawn in one go


def rooms(*sizes: tuple[int, int], **more: object) -> tuple[Setting, ...]:
    """Settings for pairs of points and samples."""
    return tuple(
        {"points": points, "samples": samples, **rest}
        for points, samples in sizes
        for rest in grid(**more)  # type: ignore[arg-type]
    )


def check(setting: Setting) -> None:
    if not (setting["points"] >= 1 and setting["samples"] >= 2):
        raise BadInput("at least one point and two samples", got=dict(setting), do="raise them")
    if not 0 < setting.get("rho", 1.0) <= 1:
        raise BadInput("ρ in (0, 1]", got=setting["rho"], do="change rho")


def masses(setting: Setting) -> Tensor:
    """The probabilities of N points, ρ in all; what is missing to 1 is diffuse.

    uniform; zipf: 1/i; atom: `heavy` on one point and the rest equal; and rest = "atom": the missing 1 − ρ on
    one more point.
    """
    check(setting)
    law, points = setting.get("law", "uniform"), setting["points"]
    if law == "uniform":
        weights = torch.ones(points, dtype=torch.float64)
    elif law == "zipf":
        weights = 1 / torch.arange(1, points + 1, dtype=torch.float64)
    elif law == "atom":
        weights = torch.full((points,), (1 - setting["heavy"]) / max(points - 1, 1), dtype=torch.float64)
        weights[0] = setting["heavy"]
    else:
        raise BadInput("law uniform, zipf or atom", got=law, do="name one of them")
    rho = setting.get("rho", 1.0)
    chances: Tensor = rho * weights / weights.sum()
    if setting.get("rest", "diffuse") == "atom":
        chances = torch.cat([chances, chances.new_tensor([1 - rho])])
    return chances


def draw(chances: Tensor, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Points by their numbers; each sample of the diffuse rest has a negative number of its own."""
    edges = chances.cumsum(0)
    if float(edges[-1]) > 1 - ROUNDING:
        edges[-1] = 1.0
    where = torch.searchsorted(edges, torch.rand(shape, generator=generator, dtype=torch.float64), right=True)
    own = -1 - torch.arange(where.numel()).reshape(shape)
    return torch.where(where < len(chances), where, own)


def collided(batches: Tensor) -> Tensor:
    """For each row, whether two of its samples are equal."""
    ordered = batches.sort(-1).values
    return (ordered[..., 1:] == ordered[..., :-1]).any(-1)


def count_collided(chances: Tensor, samples: int, batches: int, generator: torch.Generator) -> int:
    """In how many of so many fresh batches there was a collision."""
    at_once, count = max(1, AT_ONCE // samples), 0
    for start in range(0, batches, at_once):
        rows = min(at_once, batches - start)
        count += int(collided(draw(chances, (rows, samples), generator)).sum())
    return count


def all_different(setting: Setting) -> float:
    """P(no collision) of any law: M! times the elementary symmetric polynomial of its masses, and a rest.

    f_j = j!·e_j grows by j·p_i·f_{j−1} with each point: sums of positive terms, accurate to rounding.
    """
    return exactly_different(masses(setting).numpy(), setting["samples"])


def exactly_different(chances: np.ndarray, samples: int) -> float:
    from scipy import stats

    orders = np.arange(1, samples + 1)
    different = np.zeros(samples + 1)
    different[0] = 1.0
    for chance in chances:
        different[1:] += orders * chance * different[:-1]
    whole = float(chances.sum())
    if whole > 1 - ROUNDING:
        return float(different[-1])
    hits = np.arange(samples + 1)  # f_j/ρ^j is for j draws on the points, and j is binomial(M, ρ)
    return float(stats.binom.pmf(hits, samples, whole) @ (different / whole**hits))


def equal_pairs(batches: Tensor) -> Tensor:
    """For each row, how many pairs are equal; two columns that far apart in order, for every distance."""
    ordered = batches.sort(-1).values
    pairs = torch.zeros(len(batches), dtype=torch.int64)
    for apart in range(1, ordered.shape[-1]):
        equal = (ordered[:, apart:] == ordered[:, :-apart]).sum(-1)
        if not equal.any():
            break
        pairs += equal
    return pairs
