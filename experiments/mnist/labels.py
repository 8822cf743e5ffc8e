"""Does SHADOW help with 5,000 MNIST labels, once everybody is tuned alike, and against controls?

    python -m experiments.mnist.labels --data-root DIR          (DIR/mnist holds the official files)

784-500-500-10, batch 100, momentum 0.9, 25 epochs, pixels in [0, 1]; the 5,000 points are drawn anew
for each seed, the same for every method. Three parts, each resumable, results in results/labels:
untuned (fixed rates and weights), tuning (15 trials a method on 1,000 held-out points, 2 splits each), final
(the chosen settings on all 5,000 points, fresh seeds, the official test set).
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from math import fsum
from pathlib import Path
from typing import Any

from obverse.training import Settings

from .._lab.trials import key_of, run_all

FOLDER = Path(__file__).parent / "results" / "labels"
BASE = Settings(data="mnist", train_size=5000, hidden=(500, 500), epochs=25, weight=0.0, evaluate_every=25)

METHODS: dict[str, dict[str, Any]] = {
    "backprop": {},
    "dropout": {"dropout": 0.5},
    "SHADOW": {"weight": 1.0},
    "SHADOW + dropout": {"weight": 1.0, "dropout": 0.5},
    "control: same x twice": {"weight": 1.0, "control": "same"},
    "control: noise": {"weight": 1.0, "control": "noise"},
    "control: shuffled shadows": {"weight": 1.0, "control": "shuffled"},
}
WEIGHTS = (0.25, 1.0, 4.0)
WEIGHTED_RATES = (0.0125, 0.025, 0.05, 0.1, 0.2)
# Methods without a weight get 15 rates over the range of step sizes rate·(1 + weight) of the others.
PLAIN_RATES = tuple(round(0.0125 * 1.3677**i, 4) for i in range(15))

UNTUNED: dict[str, dict[str, Any]] = {
    "backprop, rate .01": {"lr": 0.01},
    "backprop, rate .05": {"lr": 0.05},
    "same x twice, weight 4, rate .01": {"lr": 0.01, "weight": 4.0, "control": "same"},
    "SHADOW, weight 1, rate .01": {"lr": 0.01, "weight": 1.0},
    "SHADOW, weight 4, rate .01": {"lr": 0.01, "weight": 4.0},
    "dropout, rate .05": {"lr": 0.05, "dropout": 0.5},
    "noise, weight 4, rate .01": {"lr": 0.01, "weight": 4.0, "control": "noise"},
}
TUNING_SEEDS = range(2)
FINAL_SEEDS = range(100, 110)


def grid(method: str) -> list[Settings]:
    """The 15 settings a method may choose from."""
    base = replace(BASE, **METHODS[method])
    if base.weight == 0:
        return [replace(base, lr=rate) for rate in PLAIN_RATES]
    return [replace(base, lr=rate, weight=weight) for rate in WEIGHTED_RATES for weight in WEIGHTS]


def tuning_trials(setting: Settings) -> list[Settings]:
    return [replace(setting, validation=1000, seed=seed) for seed in TUNING_SEEDS]


def final_trials(setting: Settings) -> list[Settings]:
    return [replace(setting, seed=seed) for seed in FINAL_SEEDS]


def choose(method: str, tuning: dict[str, dict]) -> Settings:
    """The setting with the least mean error on the held-out points."""

    def error(setting: Settings) -> float:
        return fsum(tuning[key_of(trial)]["test_error"] for trial in tuning_trials(setting))

    return min(grid(method), key=error)


def measure_all(data_root: str | None = None, jobs: int = 2) -> None:
    def run(trials: list[Settings], name: str) -> dict[str, dict]:
        placed = [replace(trial, data_root=data_root) for trial in trials]
        return run_all(placed, FOLDER / f"{name}.jsonl", jobs)

    run([t for change in UNTUNED.values() for t in final_trials(replace(BASE, **change))], "untuned")
    tuning = run([t for m in METHODS for s in grid(m) for t in tuning_trials(s)], "tuning")
    run([t for m in METHODS for t in final_trials(choose(m, tuning))], "final")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data-root", help="folder that holds mnist/")
    parser.add_argument("--jobs", type=int, default=2)
    measure_all(**vars(parser.parse_args()))


if __name__ == "__main__":
    main()
