"""Averages over drawn inputs in place of all: their standard errors, and how fast they fall."""

from __future__ import annotations

from collections.abc import Iterator
from math import erf, sqrt

import torch
from torch import Tensor

from ...ladder import (
    Sides,
    Teacher,
    compare,
    enumerate_teacher,
    sample_teacher,
    windows,
)
from .._claim import Claim, grid, measurement
from .._rates import Along, Exponent
from .._registry import register
from .._rules import Equal
from ..results import Setting
from ._ladders import drawn_student
from ._lossy import bits_law, check_lossy

SMALL = windows(3, 2)  # where inputs are drawn


STILL = 1e-8  # a standard error below this is the rounding of a difference of squares


BIASED = torch.tensor([0.3, 0.6, 0.8], dtype=torch.float64)


def _draw(count: int, generator: torch.Generator) -> Tensor:
    return (torch.rand(count, 3, generator=generator, dtype=torch.float64) < BIASED).long()


def _drawn(setting: Setting, generator: torch.Generator) -> Iterator[tuple[list[Sides], list[Sides]]]:
    """The same messages of every edge from drawn inputs and from all of them; one student in all trials."""
    whole = enumerate_teacher(SMALL, "majority", p=bits_law(BIASED))
    student = drawn_student(whole.model, setting, torch.Generator().manual_seed(0))

    def messages(teacher: Teacher) -> list[Sides]:
        return [getattr(edge, setting["message"]) for edge in compare(teacher, student).edges.values()]

    exact = messages(whole)
    for _ in range(setting["trials"]):
        some = sample_teacher(SMALL, "majority", count=setting["count"], draw=_draw, generator=generator)
        yield messages(some), exact


@measurement("ladder.lossy.measure_units")
def measure_units(setting: Setting, generator: torch.Generator) -> list[float]:
    """The share of numbers that are within two of their stated standard errors of the truth."""
    found = []
    for drawn, exact in _drawn(setting, generator):
        within = []
        for some, whole in zip(drawn, exact, strict=True):
            assert some.error is not None
            live = some.error > STILL  # others do not vary
            within.append(((some.brute - whole.brute).abs() <= 2 * some.error)[live])
        found.append(float(torch.cat(within).to(torch.float64).mean()))
    return found


@measurement("ladder.lossy.measure_sampled")
def measure_sampled(setting: Setting, generator: torch.Generator) -> list[float]:
    """‖drawn − exact‖ ÷ ‖exact‖."""
    found = []
    for drawn, exact in _drawn(setting, generator):
        off = torch.cat(
            [(some.brute - whole.brute).flatten() for some, whole in zip(drawn, exact, strict=True)]
        )
        found.append(float(off.norm() / torch.cat([whole.brute.flatten() for whole in exact]).norm()))
    return found


def root(setting: Setting) -> float:
    return float(1 / sqrt(setting["count"]))


register(
    Claim(
        id="ladder.sampled.errors",
        title="Standard errors of drawn inputs",
        statement=(
            "Averages over drawn inputs are within two of their stated standard errors of the exact ones "
            "with probability 0.954."
        ),
        source="of this library; the paper takes frequencies for probabilities",
        grid=grid(message=("forward", "backward", "weight"), count=1000, nodes=3, trials=250),
        quick=grid(message="weight", count=1000, nodes=3, trials=40),
        predict=erf(sqrt(2)),
        measure=measure_units,
        domain=check_lossy,
        # the normal law is off by as much for the least frequent event here, of some 50 inputs
        rule=Equal(tolerance=0.01),
        quantity="share within two standard errors",
        axis="message",
        reading="beyond the paper",
    )
)


COUNTS = (250, 500, 1000, 2000, 4000, 8000)


register(
    Claim(
        id="ladder.sampled.rate",
        title="Drawn inputs approach all inputs",
        statement="ΔW from n drawn inputs is off by the order of 1/√n.",
        source="of this library; the paper takes frequencies for probabilities",
        grid=grid(message="weight", count=(100, 200, 400), nodes=3, trials=250)
        + grid(message="weight", count=COUNTS, nodes=3, trials=100),
        quick=grid(message="weight", count=COUNTS, nodes=3, trials=10),
        predict=root,
        measure=measure_sampled,
        domain=check_lossy,
        rule=Exponent(Along("count")),
        quantity="‖ΔW drawn − ΔW‖ ÷ ‖ΔW‖",
        axis="count",
        reading="beyond the paper",
    )
)
