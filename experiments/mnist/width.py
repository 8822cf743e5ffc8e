"""The paper's Figures 3 and 5 on MNIST at the paper's width: curves with and without SHADOW and dropout.

    python -m experiments.mnist.width --data-root DIR          (DIR/mnist holds the official files)

784-5000-5000-10, all 60,000 points, batch 100, norm-matched shadows from h̃2, without dropout and with 0.5 of
it. Rates 4^a·0.001 (a = −2…2) and weights 2^b (b = −3…3) as in the paper, chosen on 10,000 held-out points.
The paper trains each candidate to the end; here each gets TUNING_STEPS steps and the weight is searched at
the best rate only. Then 3 seeds of each arm on everything, and of a control: plain backpropagation with
SHADOW's step size, rate·(1 + weight). Resumable; results in results/width.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from obverse._core.random import STEPS, derive_seed
from obverse.data import Dataset, load
from obverse.training import ClassifierTask, Settings

FOLDER = Path(__file__).parent / "results" / "width"
BASE = Settings(data="mnist", hidden=(5000, 5000), weight=0.0)
RATES = tuple(4.0**a * 0.001 for a in range(-2, 3))
WEIGHTS = tuple(2.0**b for b in range(-3, 4))
TUNING_STEPS = 100
SEEDS = range(3)
ARMS: dict[str, dict[str, Any]] = {
    "backprop": {},
    "SHADOW": {"weight": 1.0},
    "dropout": {"dropout": 0.5},
    "SHADOW + dropout": {"weight": 1.0, "dropout": 0.5},
}
CURVE_EVERY = 100  # steps
CURVE_POINTS = 2000  # test points a curve point is measured on; the last one uses all


def train(settings: Settings, data: Dataset, steps: int, file: Path, arm: str, every: int) -> None:
    """Train for so many steps, writing a line to `file` every so often and at the end."""
    task = ClassifierTask(settings, data)
    everything = task.test_x, task.test_y
    started = time.perf_counter()
    for step in range(steps + 1):
        if step % every == 0 or step == steps:
            points = len(everything[0]) if step == steps else CURVE_POINTS
            task.test_x, task.test_y = (tensor[:points] for tensor in everything)
            record = task.evaluate() | {"points": points, "seconds": time.perf_counter() - started}
            line = {"arm": arm, "seed": settings.seed, "rate": settings.lr, "weight": settings.weight}
            with file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(line | {"step": step, "last": step == steps} | record) + "\n")
            print(arm, settings.seed, settings.lr, settings.weight, step, record["test_error"], flush=True)
        if step < steps:
            torch.manual_seed(derive_seed(settings.seed, STEPS, step))
            loss = task.step(*divmod(step, task.steps_per_epoch))
            if loss != loss:
                print(arm, "diverged", settings.lr, settings.weight, flush=True)
                return


def read(file: Path) -> list[dict]:
    return (
        [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []
    )


def tuned(data: Dataset, arm: str) -> Settings:
    """The paper's grid on 10,000 held-out points: the rate first, then, with shadows, the weight."""
    file = FOLDER / "tuning.jsonl"

    def error(settings: Settings) -> float:
        key = (arm, settings.lr, settings.weight)

        def done() -> dict[tuple[str, float, float], float]:
            return {(r["arm"], r["rate"], r["weight"]): r["test_error"] for r in read(file) if r["last"]}

        if key not in done():
            train(replace(settings, validation=10_000), data, TUNING_STEPS, file, arm, every=TUNING_STEPS + 1)
        return done().get(key, 1.0)

    base = replace(BASE, **ARMS[arm])
    best = min((replace(base, lr=rate) for rate in RATES), key=error)
    if not base.weight:
        return best
    return min((replace(best, weight=weight) for weight in WEIGHTS), key=error)


def measure_all(data_root: str | None = None, epochs: float = 2.0) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    data = load("mnist", data_root)
    steps = round(epochs * 600)
    arms = {arm: tuned(data, arm) for arm in ARMS}
    step = arms["SHADOW"].lr * (1 + arms["SHADOW"].weight)
    arms["control: SHADOW's step"] = replace(arms["backprop"], lr=step)
    curves = FOLDER / "curves.jsonl"
    for seed in SEEDS:
        for arm, settings in arms.items():
            done = {(r["arm"], r["seed"]) for r in read(curves) if r["last"]}
            if (arm, seed) not in done:
                kept = [r for r in read(curves) if (r["arm"], r["seed"]) != (arm, seed)]
                curves.write_text("".join(json.dumps(r) + "\n" for r in kept), encoding="utf-8")
                train(replace(settings, seed=seed), data, steps, curves, arm, CURVE_EVERY)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data-root", help="folder that holds mnist/")
    parser.add_argument("--epochs", type=float, default=2.0)
    measure_all(**vars(parser.parse_args()))


if __name__ == "__main__":
    main()
