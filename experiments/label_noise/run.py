"""What do wrong labels do, and what helps? Labels of MNIST flipped at random, and people's own mistakes.

    python -m experiments.label_noise.run --data-root DIR                   (DIR holds mnist)
    python -m experiments.label_noise.run --data-root DIR --cifar10n FILE   (and cifar10: CIFAR-10N's labels)
    python -m experiments.label_noise.run --quick                           (embedded digits, under a minute)

3,000 training points, two hidden layers of 500, batch 100, momentum 0.9, 10 epochs at a constant rate.
Exactly the share of the labels is wrong, each moved to another class at random. Every method chooses among
the 6 settings of few_labels by its error at the end on 5,000 held-out points whose labels are as wrong: who
has wrong labels has no right ones to tune on. Then 5 seeds, each with points and mistakes of its own, the
same for every method; the official test set, whose labels are right.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from obverse._core.errors import BadInput
from obverse._core.random import SPLIT, derive_generator
from obverse.data import Dataset, load
from obverse.data._noise import flip_labels, read_labels

from .._lab.result_files import short
from ..few_labels.run import (
    TUNING_SEED,
    Setting,
    Trial,
    error_of,
    grid,
    initial,
    key_of,
    read,
    run_missing,
    train,
)

FOLDER = Path(__file__).parent / "results"
QUICK_FOLDER = Path("runs") / "quick" / "label-noise"
METHODS = ("plain", "dropout", "SHADOW", "SHADOW + dropout", "noise", "SHADOW consistency")
FLIPPED = {"20% flipped": 0.2, "40% flipped": 0.4}
HUMAN = ("aggre_label", "worse_label")  # of CIFAR-10N: the vote of three people, and the worst of them
NOT_RUN = (
    "CIFAR-10 with human labels was not run: its label file was not given (--cifar10n CIFAR-10_human.pt)."
)


@dataclass(frozen=True)
class NoisyTrial(Trial):
    """`mistakes` names a share in FLIPPED or a key of the file of human labels."""

    mistakes: str
    epochs: int


@dataclass(frozen=True)
class Plan:
    data: str
    labels: int
    epochs: int
    width: int
    seeds: tuple[int, ...]
    held_out: int
    mistakes: tuple[str, ...]


FULL = Plan("mnist", 3000, 10, 500, tuple(range(5)), 5000, tuple(FLIPPED))
CIFAR = Plan("cifar10", 3000, 10, 500, tuple(range(5)), 5000, HUMAN)
QUICK = Plan("digits", 500, 12, 100, tuple(range(2)), 500, tuple(FLIPPED))


def trials_of(
    plan: Plan, mistakes: str, method: str, settings: list[Setting], seeds: tuple[int, ...], tuning: bool
) -> list[NoisyTrial]:
    steps = plan.epochs * -(-plan.labels // 100)
    head = (plan.data, plan.labels, steps, method)
    return [
        NoisyTrial(*head, *setting, seed, plan.width, plan.held_out, tuning, mistakes, plan.epochs)
        for setting in settings
        for seed in seeds
    ]


def tuning_trials(plan: Plan, mistakes: str, method: str) -> list[NoisyTrial]:
    return trials_of(plan, mistakes, method, grid(method, plan.data), (TUNING_SEED,), True)


def final_trials(plan: Plan, mistakes: str, method: str, setting: Setting) -> list[NoisyTrial]:
    return trials_of(plan, mistakes, method, [setting], plan.seeds, False)


def choose(plan: Plan, mistakes: str, method: str, done: Mapping[str, Mapping[str, Any]]) -> Setting:
    """The setting with the least error at the end on the held-out points with wrong labels."""
    trials = tuning_trials(plan, mistakes, method)
    best = min(trials, key=lambda trial: done[key_of(trial)]["held_out_error"][-1])
    return best.rate, best.strength


def points(trial: NoisyTrial, data: Dataset) -> tuple[Tensor, Tensor]:
    """(training rows, held-out rows); the held-out ones are the same for every seed."""
    everything = torch.randperm(len(data.train_y), generator=derive_generator(0, SPLIT))
    held, rest = everything[: trial.held_out], everything[trial.held_out :]
    order = torch.randperm(len(rest), generator=derive_generator(trial.seed, SPLIT))
    return rest[order[: trial.labels]], held


def mistaken(
    trial: NoisyTrial, data: Dataset, rows: Tensor, human: Mapping[str, Tensor], stream: int
) -> Tensor:
    """The labels that those rows are given."""
    if trial.mistakes in human:
        return human[trial.mistakes][rows]
    generator = derive_generator(trial.seed, SPLIT, stream)
    return flip_labels(data.train_y[rows], FLIPPED[trial.mistakes], len(data.classes), generator)


def run_trial(trial: NoisyTrial, data: Dataset, human: Mapping[str, Tensor]) -> dict[str, Any]:
    """Train one net; after each epoch its error on held-out points (wrong labels) and on the test set.

    `memorized` is the share of the wrong training labels that the net gives back, `seen_through` that of
    the points with a wrong label to which it gives the right one.
    """
    start = perf_counter()
    rows, held = points(trial, data)
    y, held_y = mistaken(trial, data, rows, human, 1), mistaken(trial, data, held, human, 2)
    x, truth = data.train_x[rows], data.train_y[rows]
    net = initial(trial, data)
    curve: dict[str, list[float]] = {"held_out_error": [], "test_error": []}
    every = trial.steps // trial.epochs

    def watch(steps: int) -> None:
        if steps % every or (trial.tuning and steps < trial.steps):
            return
        net.eval()
        curve["held_out_error"].append(error_of(net, data.train_x[held], held_y))
        if not trial.tuning:
            curve["test_error"].append(error_of(net, data.test_x, data.test_y))
        net.train()

    train(net, x, y, trial, len(data.classes), watch)
    net.eval()
    with torch.no_grad():
        answers = torch.cat([net(part).argmax(-1) for part in x.split(1000)])
    wrong = y != truth
    shares = {
        "memorized": float((answers == y)[wrong].double().mean()),
        "seen_through": float((answers == truth)[wrong].double().mean()),
        "wrong": float(wrong.double().mean()),
    }
    error = curve["held_out_error" if trial.tuning else "test_error"][-1]
    return asdict(trial) | short(
        curve | shares | {"error": error, "seconds": round(perf_counter() - start, 2)}
    )


def best_epoch(record: Mapping[str, Any]) -> int:
    """Counted from 0: the first with the least error on the held-out points, which is what a user can see."""
    return min(range(len(record["held_out_error"])), key=lambda epoch: record["held_out_error"][epoch])


def run_plan(plan: Plan, folder: Path, data: Dataset, human: Mapping[str, Tensor]) -> None:
    tuning, final = folder / "tuning.jsonl", folder / "final.jsonl"
    measure = partial(run_trial, data=data, human=human)
    for mistakes in plan.mistakes:
        run_missing([t for m in METHODS for t in tuning_trials(plan, mistakes, m)], tuning, measure)
        done = read(tuning, NoisyTrial)
        chosen = [final_trials(plan, mistakes, m, choose(plan, mistakes, m, done)) for m in METHODS]
        run_missing([trials[i] for i in range(len(plan.seeds)) for trials in chosen], final, measure)


def human_labels(file: Path, data: Dataset) -> dict[str, Tensor]:
    """CIFAR-10N's labels, once its clean ones have been found to be those of the images here."""
    count, classes = len(data.train_y), len(data.classes)
    if not torch.equal(read_labels(file, "clean_label", count, classes), data.train_y):
        raise BadInput(
            f"the labels of {data.name} in their order as clean_label in {file}",
            got="others",
            do="give CIFAR-10_human.pt as its authors publish it",
        )
    return {key: read_labels(file, key, count, classes) for key in HUMAN}


def run(
    quick: bool = False,
    data_root: str | None = None,
    cifar10n: Path | None = None,
    out: Path | None = None,
) -> None:
    torch.set_num_threads(1)
    plan = QUICK if quick else FULL
    folder = out or (QUICK_FOLDER if quick else FOLDER)
    folder.mkdir(parents=True, exist_ok=True)
    run_plan(plan, folder, load(plan.data, data_root), {})
    if cifar10n is None:
        print(NOT_RUN)
        return
    data = load(CIFAR.data, data_root)
    run_plan(CIFAR, folder, data, human_labels(cifar10n, data))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data-root", help="folder that holds mnist/ and cifar10/")
    parser.add_argument("--cifar10n", type=Path, help="CIFAR-10_human.pt, the label file of CIFAR-10N")
    parser.add_argument("--quick", action="store_true", help="embedded digits only, in under a minute")
    parser.add_argument("--out", type=Path, help="folder of the results")
    run(**vars(parser.parse_args()))


if __name__ == "__main__":
    main()
