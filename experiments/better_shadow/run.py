"""Is there a SHADOW that beats dropout at equal time? Chosen on MNIST, tried on data not used to choose.

    python -m experiments.better_shadow.run --data-root DIR     (DIR holds mnist, fashion-mnist and cifar10)
    python -m experiments.better_shadow.run --quick             (embedded digits, under a minute)

5,000 labels, 784-500-500-10, batch 100, SGD with momentum 0.9, every variant as many steps as fit into the
processor time of BUDGET steps with dropout (costs measured side by side).
Choice: the same 6 trials for everyone (3 rates, 2 strengths; 6 rates where there is no strength) on 5,000
held-out MNIST points. Then all variants on the MNIST test set with fresh seeds; the best of them
against dropout and against noise on Fashion-MNIST and CIFAR-10, with 6 trials of its own on each.
Resumable; results in results/.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from math import fsum
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import torch

from obverse._core.random import STEPS, derive_seed
from obverse.data import Dataset, load
from obverse.shadow import ShadowLoss
from obverse.training import Settings

from .._lab.result_files import measure, read
from .._lab.shadow_variants import FromEitherLayer, HalfTheBatch, Rising, Variant

FOLDER = Path(__file__).parent / "results"
QUICK_FOLDER = Path("runs") / "quick" / "better-shadow"
LABELS, BUDGET = 5000, 800  # steps with dropout that set the time for everyone
BASE = Settings(data="mnist", train_size=LABELS, hidden=(500, 500), weight=0.0, normalize=True, device="cpu")
RATES = (0.025, 0.05, 0.1)
PLAIN_RATES = (0.0125, 0.025, 0.05, 0.1, 0.15, 0.2)
STRENGTHS = (0.5, 2.0)
HELD_OUT = 5000
TUNING_SEEDS, SEEDS = range(1000, 1001), range(5)
UNUSED = ("fashion-mnist", "cifar10")


@dataclass(frozen=True)
class Way:
    """What a variant changes in the base settings; `weighted` names the settings that its strength is for."""

    changes: Mapping[str, Any] = field(default_factory=dict)
    weighted: tuple[str, ...] = ("weight",)
    loss: type[ShadowLoss] = ShadowLoss

    def settings(self, rate: float, strength: float) -> Settings:
        sizes: dict[str, Any] = dict.fromkeys(self.weighted, strength)
        return replace(BASE, lr=rate, **self.changes, **sizes)

    def grid(self) -> list[tuple[float, float]]:
        if not self.weighted:
            return [(rate, 0.0) for rate in PLAIN_RATES]
        return [(rate, strength) for strength in STRENGTHS for rate in RATES]


AGREE, NOISE, DROP = {"labels": "consistency"}, {"control": "noise"}, {"dropout": 0.5}
BOTH = ("weight", "denoise")
WAYS = {
    "backprop": Way(weighted=()),
    "dropout": Way(DROP, ()),
    "noise": Way(NOISE),
    "SHADOW": Way(),
    "consistency": Way(AGREE),
    "sampled, consistency": Way({**AGREE, "keep": 0.5}),
    "either layer": Way({}, ("weight",), FromEitherLayer),
    "half the batch": Way({}, ("weight",), HalfTheBatch),
    "rising weight": Way({}, ("weight",), Rising),
    "denoising": Way({}, ("denoise",)),
    "noise + denoising": Way(NOISE, BOTH),
    "dropout + noise": Way({**DROP, **NOISE}),
    "dropout + denoising": Way(DROP, ("denoise",)),
}
OURS = [name for name in WAYS if name not in ("backprop", "dropout", "noise", "dropout + noise")]


def sized(settings: Settings, data: Dataset) -> Settings:
    """With fewer labels where a data set has not that many."""
    return replace(settings, train_size=min(LABELS, len(data.train_x) // 2))


def make(way: Way, settings: Settings, data: Dataset) -> Variant:
    return Variant(settings, data, way.loss)


def costs(data: Dataset, names: list[str], rounds: int = 5, steps: int = 6) -> dict[str, float]:
    """Processor time of a step over that of a step with dropout: medians of rounds side by side."""
    tasks = {name: make(WAYS[name], sized(WAYS[name].settings(0.01, 1.0), data), data) for name in names}
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for round_ in range(rounds + 1):
        for name, task in tasks.items():
            started = process_time()
            for index in range(steps):
                task.step(round_, index)
            if round_:  # the first warms up
                times[name].append(process_time() - started)
    return {name: median(taken) / median(times["dropout"]) for name, taken in times.items()}


def train(way: Way, settings: Settings, data: Dataset, steps: int) -> dict[str, Any]:
    """Error after so many steps; a run that diverges counts as guessing."""
    task = make(way, settings, data)
    per_epoch = task.steps_per_epoch
    for step in range(steps):
        torch.manual_seed(derive_seed(settings.seed, STEPS, step))
        if not torch.isfinite(torch.tensor(task.step(*divmod(step, per_epoch)))):
            return {"test_error": 1 - 1 / len(data.classes), "diverged": True, "steps": steps}
    task.net.eval()
    with torch.no_grad():
        wrong = sum(
            int((task.net(x).argmax(-1) != y).sum())
            for x, y in zip(task.test_x.split(1000), task.test_y.split(1000), strict=True)
        )
    return {"test_error": wrong / len(task.test_y), "steps": steps}


def held_out(data: Dataset) -> Dataset:
    """The last 10,000 training points (of few a quarter) are put aside; some stand in for the test set."""
    kept = len(data.train_x) - min(10_000, len(data.train_x) // 4)
    held = slice(kept, kept + HELD_OUT)
    x, y = data.train_x, data.train_y
    return replace(data, train_x=x[:kept], train_y=y[:kept], test_x=x[held], test_y=y[held])


def choose(tuning: Mapping[str, Any], name: str, seeds: range = TUNING_SEEDS) -> tuple[float, float, float]:
    """(rate, strength, held-out error) of the best of the six."""

    def error(pair: tuple[float, float]) -> float:
        return fsum(tuning[f"{name}|{pair[0]}|{pair[1]}|{seed}"]["test_error"] for seed in seeds) / len(seeds)

    best = min(WAYS[name].grid(), key=error)
    return *best, error(best)


def read_tuning(folder: Path) -> dict[str, Any]:
    """What was measured on the held-out MNIST points."""
    return read(folder / "mnist-tuning.json")["entries"]


def winner(tuning: Mapping[str, Any]) -> str:
    """The variant with shadows in it that does best on the held-out MNIST points."""
    return min(OURS, key=lambda name: choose(tuning, name)[2])


def tune_and_train(data: Dataset, folder: Path, names: list[str], budget: int) -> None:
    priced = measure(folder / f"{data.name}-costs.json", {}, {"costs": lambda: costs(data, names)})
    about = {"budget": budget, "base": replace(BASE, data=data.name).to_dict() | {"data_root": None}}
    aside = held_out(data)
    for name in names:
        way, steps = WAYS[name], round(budget / priced["entries"]["costs"][name])

        def settings(rate: float, strength: float, seed: int, way: Way = way) -> Settings:
            return sized(replace(way.settings(rate, strength), data=data.name, seed=seed), data)

        tuning = measure(
            folder / f"{data.name}-tuning.json",
            about,
            {
                f"{name}|{rate}|{strength}|{seed}": partial(
                    train, way, settings(rate, strength, seed), aside, steps
                )
                for rate, strength in way.grid()
                for seed in TUNING_SEEDS
            },
        )["entries"]
        rate, strength, _ = choose(tuning, name)
        measure(
            folder / f"{data.name}-final.json",
            about,
            {
                f"{name}|{seed}": partial(train, way, settings(rate, strength, seed), data, steps)
                for seed in SEEDS
            },
        )


def run(quick: bool = False, data_root: str | None = None) -> None:
    if quick:
        digits = replace(load("digits"), name="mnist")
        tune_and_train(digits, QUICK_FOLDER, list(WAYS), 15)
        best = winner(read_tuning(QUICK_FOLDER))
        tune_and_train(replace(digits, name=UNUSED[0]), QUICK_FOLDER, ["dropout", "noise", best], 15)
        return
    tune_and_train(load("mnist", data_root), FOLDER, list(WAYS), BUDGET)
    best = winner(read_tuning(FOLDER))
    for name in UNUSED:
        tune_and_train(load(name, data_root), FOLDER, ["dropout", "noise", best], BUDGET)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data-root", help="folder that holds mnist/, fashion-mnist/ and cifar10/")
    parser.add_argument(
        "--quick", action="store_true", help="a few steps on embedded digits, into runs/quick"
    )
    run(**vars(parser.parse_args()))


if __name__ == "__main__":
    main()
