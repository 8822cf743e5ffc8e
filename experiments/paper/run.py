"""The paper's Figures 3, 5, 6 and 7, and whether nets stay random-like while they learn: curves of every arm.

    python -m experiments.paper.run --data-root DIR     (DIR/mnist and DIR/cifar10 hold the official files)
    python -m experiments.paper.run --quick             (embedded digits, a minute, into runs/quick)

Nets with two hidden layers as in the paper, batch 100, momentum 0.9 (the paper does not say), constant rate,
pixels in [0, 1], products in bfloat16 (weights, sums and measurements in float32) where a part says so. Each
part below is one data set at one width. Rates are 4^a·0.001 and weights 2^b as in the
paper, chosen on 10,000 held-out points in short runs of one seed: from the largest rate of the paper's grid
to the better neighbour until none is better, then in the same way the weight from 1, and so on in turn. Then
all training points, 3 seeds an arm, the same seeds and batches for every arm. Every finished run is one line
in results/ and is not run again; page.py makes docs/paper.md of them.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from obverse.data import Dataset, load
from obverse.training import Settings

from .training import Run, once

FOLDER = Path(__file__).parent / "results"
QUICK_FOLDER = Path("runs") / "quick" / "paper-curves"
SEEDS = (0, 1, 2)
RATES = (-2, 2)  # the paper's a
WEIGHTS = (-3, 3)  # the paper's b
TUNING_START = 100  # held-out points of the untrained net, which nobody looks at; the end takes all
MORE_RATES = (-2, 5)  # momentum is ours, and narrower nets stand larger steps: where the best rate may lie


@dataclass(frozen=True)
class Arm:
    """A way to train. Without `like` it chooses its rate (and its weight, where it has one) itself.

    `like` names the arm whose rate and weight it takes; with `plain` only its step: backpropagation at
    rate·(1 + weight), which is what a weight makes of a rate.
    """

    changes: dict[str, Any] = field(default_factory=dict)
    like: str | None = None
    plain: bool = False
    scale: float | None = None


BACKPROP, SHADOW, CONTROL = "backprop", "SHADOW", "control: SHADOW's step"
DROPOUT, BOTH, UNSCALED = "dropout", "SHADOW + dropout", "SHADOW, unscaled"
OUTPUT, SAMPLING, SMOOTHING = "SHADOW from h̃3", "SHADOW, sampling", "SHADOW, smoothing"
ARMS = {
    BACKPROP: Arm(),
    SHADOW: Arm({"weight": 1.0}),
    CONTROL: Arm(like=SHADOW, plain=True),
    DROPOUT: Arm({"dropout": 0.5}),
    BOTH: Arm({"weight": 1.0, "dropout": 0.5}),
    UNSCALED: Arm({"weight": 1.0, "match_norm": False}, scale=1.0),
    OUTPUT: Arm({"layer": "h3"}, like=SHADOW),
    SAMPLING: Arm({"keep": 0.5}, like=SHADOW),
    SMOOTHING: Arm({"smooth": True}, like=SHADOW),
}


@dataclass(frozen=True)
class Part:
    """One data set at one width: its arms, and for how long they train."""

    base: Settings
    arms: tuple[str, ...]
    steps: int
    every: int
    tuning_steps: int
    points: int | None = 2000
    all_at_end: bool = True
    audits: tuple[int, ...] = ()
    rates: tuple[int, int] = MORE_RATES
    held_out: int = 10_000
    given: dict[str, tuple[float, float]] = field(default_factory=dict)  # rate and weight, not to be chosen


def plain(data: str, width: int, precision: Literal["float32", "bf16"] = "bf16") -> Settings:
    return Settings(data=data, hidden=(width, width), weight=0.0, precision=precision)


FOUR = (BACKPROP, SHADOW, DROPOUT, BOTH)  # Figures 3 and 5
VARIANTS = (OUTPUT, SAMPLING, SMOOTHING)  # Figures 6 and 7
PARTS = {
    "mnist-1000": Part(
        plain("mnist", 1000),
        FOUR,
        6000,
        600,
        1800,
        points=None,
        audits=(0, 600, 1800, 3000, 6000),
    ),
    "cifar10-1000": Part(plain("cifar10", 1000), (*FOUR, CONTROL), 5000, 500, 1000),
    "cifar10-500": Part(plain("cifar10", 500), (BACKPROP, SHADOW, *VARIANTS), 3000, 500, 500),
    # The others take the rate that backprop chooses, and the weight that SHADOW chose at width 1000: to tune
    # them too would take more time than all their runs.
    "cifar10-5000": Part(
        plain("cifar10", 5000),
        FOUR,
        250,
        50,
        60,
        all_at_end=False,
        rates=RATES,
        given={SHADOW: (0.004, 0.125), DROPOUT: (0.004, 0.0), BOTH: (0.004, 0.125)},
    ),
    # Joins the arms of mnist_width_5000.py, which are in float32.
    "mnist-5000": Part(
        plain("mnist", 5000, "float32"), (UNSCALED,), 300, 100, 100, all_at_end=False, rates=RATES
    ),
    # For those who have the files of CIFAR-100: only when asked for by name.
    "cifar100-500": Part(plain("cifar100", 500), (*FOUR, CONTROL), 1000, 250, 150),
}

BY_NAME_ONLY = ("cifar100-500",)


def reduced(part: Part) -> Part:
    """The same arms in seconds: digits, narrow, a few steps."""
    base = replace(part.base, data="digits", hidden=(64, 64))
    audits = tuple(sorted({round(step * 40 / part.steps / 20) * 20 for step in part.audits}))
    return replace(part, base=base, steps=40, every=20, tuning_steps=20, audits=audits, held_out=200)


def climb(error: Callable[[int], float], start: int, low: int, high: int) -> int:
    """The exponent from which no neighbour in [low, high] has a smaller error; ties stay."""
    best = start
    while True:
        near = [best, *(a for a in (best - 1, best + 1) if low <= a <= high)]
        better = min(near, key=error)
        if better == best:
            return best
        best = better


def _second(error: Callable[[int, int], float], b: int, a: int) -> float:
    return error(a, b)


def alternate(
    error: Callable[[int, int], float], rates: tuple[int, int], weights: tuple[int, int]
) -> tuple[int, int]:
    """Climb in the exponent of the rate, then of the weight, in turn until neither moves."""
    a, b = RATES[1], 0
    while True:
        rate = climb(partial(_second, error, b), a, *rates)
        weight = climb(partial(error, rate), b, *weights)
        if (rate, weight) == (a, b):
            return a, b
        a, b = rate, weight


class Trials:
    """The runs of a part, made as they are asked for."""

    def __init__(self, name: str, part: Part, data: Dataset, folder: Path) -> None:
        self.name, self.part, self.data, self.folder = name, part, data, folder
        self._chosen: dict[str, Settings] = {}

    def chosen(self, arm: str) -> Settings:
        """The settings of an arm, tuned or taken from another one; the seed is still to be set."""
        if arm not in self._chosen:
            self._chosen[arm] = self._choose(arm, ARMS[arm])
        return self._chosen[arm]

    def _choose(self, name: str, arm: Arm) -> Settings:
        base = replace(self.part.base, **arm.changes)
        if name in self.part.given:
            rate, weight = self.part.given[name]
            return replace(base, lr=rate, weight=weight)
        if arm.like is not None:
            other = self.chosen(arm.like)
            if arm.plain:
                return replace(base, lr=other.lr * (1 + other.weight))
            return replace(base, lr=other.lr, weight=other.weight)

        def error(settings: Settings) -> float:
            held = replace(settings, validation=self.part.held_out)
            steps = self.part.tuning_steps
            run = Run(name, held, steps, steps, points=TUNING_START, scale=arm.scale)
            return once(run, self.data, self.folder / f"{self.name}-tuning.jsonl")["test_error"]

        def at(a: int, b: int) -> Settings:
            return replace(base, lr=4.0**a * 0.001, weight=2.0**b if base.weight else 0.0)

        return at(
            *alternate(lambda a, b: error(at(a, b)), self.part.rates, WEIGHTS if base.weight else (0, 0))
        )

    def final(self, arm: str, seed: int) -> dict[str, Any]:
        part = self.part
        run = Run(
            arm,
            replace(self.chosen(arm), seed=seed),
            part.steps,
            part.every,
            part.points,
            part.all_at_end,
            part.audits,
            ARMS[arm].scale,
        )
        return once(run, self.data, self.folder / f"{self.name}.jsonl")


def plan(parts: Sequence[str], arms: Sequence[str], seeds: Sequence[int]) -> Iterator[tuple[str, str, int]]:
    """What is run, seed by seed, so that an interrupted run leaves whole seeds."""
    for part in parts:
        for seed in seeds:
            for arm in PARTS[part].arms:
                if arm in arms:
                    yield part, arm, seed


def run(
    quick: bool = False,
    data_root: str | None = None,
    part: Sequence[str] | None = None,
    arm: Sequence[str] | None = None,
    seed: Sequence[int] | None = None,
) -> None:
    """Only these parts, arms and seeds, where any are named."""
    began = time.perf_counter()
    folder = QUICK_FOLDER if quick else FOLDER
    trials: dict[str, Trials] = {}
    seeds = seed or list(SEEDS[:2] if quick else SEEDS)
    parts = part or [name for name in PARTS if name not in BY_NAME_ONLY]
    for name, each_arm, each_seed in plan(parts, arm or list(ARMS), seeds):
        if name not in trials:
            planned = reduced(PARTS[name]) if quick else PARTS[name]
            trials[name] = Trials(name, planned, load(planned.base.data, data_root), folder)
        trials[name].final(each_arm, each_seed)
    if quick:
        from .figures import draw_all

        draw_all(folder, folder / "figures")
    print(f"{folder}: {time.perf_counter() - began:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data-root", help="folder that holds mnist/ and cifar10/")
    parser.add_argument("--quick", action="store_true", help="a reduced version, and its figures")
    parser.add_argument("--part", action="append", choices=list(PARTS), help="only this one; may be repeated")
    parser.add_argument("--arm", action="append", choices=list(ARMS), help="only this one; may be repeated")
    parser.add_argument("--seed", action="append", type=int, help="only this one; may be repeated")
    run(**vars(parser.parse_args()))


if __name__ == "__main__":
    main()
