"""Claims of your own: what a ReLU does to a normal variable. Run them with

obverse claims run --module examples/my_claims.py 'mine.*'
"""

from __future__ import annotations

from math import pi, sqrt

import torch

from obverse.claims import Claim, Equal, grid, register
from obverse.claims.results import Setting

# One setting for each combination; the names are yours, and `measure` and `predict` look them up.
SETTINGS = grid(scale=(0.5, 1.0, 2.0), trials=4000)


# A measurement simulates and knows nothing of the prediction. It returns one number a trial, independent of
# each other, and takes all its randomness from the generator, so that every run gives the same numbers.
# It stands at the top level of the file, because other processes look it up by its name.
def measure_mean(setting: Setting, generator: torch.Generator) -> torch.Tensor:
    draws = torch.randn(setting["trials"], 10, generator=generator, dtype=torch.float64)
    return (setting["scale"] * draws).relu().mean(1)


def measure_variance(setting: Setting, generator: torch.Generator) -> torch.Tensor:
    draws = torch.randn(setting["trials"], 10, generator=generator, dtype=torch.float64)
    return (setting["scale"] * draws).relu().var(1)  # of ten draws, unbiased


register(
    Claim(
        id="mine.relu-mean",
        title="mean of a rectified normal variable",
        statement="E r(g) = s/√(2π) for g ~ N(0, s²) and r(g) = max(g, 0)",
        source="any textbook",
        grid=SETTINGS,
        predict=lambda setting: setting["scale"] / sqrt(2 * pi),
        measure=measure_mean,
        rule=Equal(),
        quantity="mean of r(g)",
        axis="scale",
        reading="exact",
    )
)

# Wrong on purpose: s²/2 is the second moment. A claim that fails is a result like any other; `expected`
# says that this one is known to, so that `--check` speaks up only when that changes.
register(
    Claim(
        id="mine.relu-variance",
        title="variance of a rectified normal variable, as one may think",
        statement="Var r(g) = s²/2 for g ~ N(0, s²), because r keeps one half of g",
        source="a hasty thought",
        grid=SETTINGS,
        predict=lambda setting: setting["scale"] ** 2 / 2,
        measure=measure_variance,
        rule=Equal(),
        quantity="variance of r(g)",
        axis="scale",
        twin="mine.relu-variance-corrected",
        expected="failed",
    )
)

# The same measurement beside the right prediction: both claims judge the very same draws.
register(
    Claim(
        id="mine.relu-variance-corrected",
        title="variance of a rectified normal variable",
        statement="Var r(g) = s²(1/2 − 1/(2π)) for g ~ N(0, s²)",
        source="E r(g)² − (E r(g))²",
        grid=SETTINGS,
        predict=lambda setting: setting["scale"] ** 2 * (1 / 2 - 1 / (2 * pi)),
        measure=measure_variance,
        rule=Equal(),
        quantity="variance of r(g)",
        axis="scale",
        reading="corrected",
        twin="mine.relu-variance",
    )
)
