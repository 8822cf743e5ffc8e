"""Seconds that the generators of run.py take to train and to draw, on a quiet machine.

Training is timed over some of its steps and multiplied; run this alone, after run.py.

    python -m experiments.generators.timing [DATA_ROOT]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any

import torch

from obverse.data import Dataset, load
from obverse.training._classify import ClassifierTask
from obverse.training._generators.fit import generator_task

from .._lab.machine import machine
from .._lab.result_files import measure
from .run import GIBBS, METHODS, OUT, RBM, SHADOW, THREADS, TRAINING, Sampler, deal

STEPS = 100  # of training that are timed, after a tenth as many
DRAWN = 1000


def of_steps(task: Any, epochs: int) -> float:
    """The median step, times all steps."""
    seconds = []
    for index in range(STEPS + STEPS // 10):
        start = perf_counter()
        task.step(0, index)
        seconds.append(perf_counter() - start)
    # Games move the generator every few steps: the mean of five such rounds is a step.
    rounds = [sum(seconds[at : at + 5]) / 5 for at in range(STEPS // 10, len(seconds) - 4, 5)]
    return median(rounds) * task.steps_per_epoch * epochs


def of_generator(name: str, data: Dataset) -> float:
    task = generator_task(TRAINING[name], data)
    assert task.settings.epochs is not None
    return of_steps(task, task.settings.epochs)


def of_shadow_net(data: Dataset) -> float:
    return of_steps(ClassifierTask(SHADOW, data), SHADOW.epochs)


def of_boltzmann(data: Dataset) -> float:
    from sklearn.neural_network import BernoulliRBM

    x = data.train_x.flatten(1).numpy()
    start = perf_counter()
    BernoulliRBM(**(RBM | {"n_iter": 1}), random_state=0).fit(x)
    return (perf_counter() - start) * RBM["n_iter"]


def of_drawing(sampler: Sampler) -> float:
    seconds = []
    for seed in range(3):
        start = perf_counter()
        sampler(DRAWN, torch.Generator().manual_seed(seed))
        seconds.append(perf_counter() - start)
    return median(seconds)


TRAIN: dict[str, Callable[[Dataset], float]] = {
    **{name: partial(of_generator, name) for name in TRAINING},
    "RBM": of_boltzmann,
    "shadow": of_shadow_net,
    "shadow, keep 0.5": of_shadow_net,
}


def timed(name: str, data: Dataset) -> dict[str, float]:
    return {"train": TRAIN[name](data), "per_1000": of_drawing(METHODS[name](data))}


def run(root: str | None = None) -> None:
    torch.set_num_threads(THREADS)
    data, _ = deal(load("mnist", root))
    settings = {"machine": machine(), "threads": THREADS, "gibbs": GIBBS}
    measure(
        OUT / "timing.json", settings, {name: partial(timed, name, data) for name in TRAIN}, threads=THREADS
    )


if __name__ == "__main__":
    run(*sys.argv[1:2])
