"""The paper's protocol to the letter: plain SGD without momentum, its learning rates and no larger.

    python -m experiments.paper.protocol --data-root DIR                    all of it, in the order of PLAN
    python -m experiments.paper.protocol --data-root DIR --seconds 280      a piece of it; call it again
    python -m experiments.paper.protocol --data-root DIR --foretell         the prediction alone

Two hidden layers, batch 100, learning rates 4^a·0.001 with a from −2 to 2, weights 2^b with b from −3 to 3,
chosen on 10,000 held-out points, x′ = r(W₁ r(W₂ h̃₂)) without any scale, with and without dropout 0.5.
Beside it backpropagation with steps as long as SHADOW's, by the gradient norms of `gradients`, and everything
again with momentum 0.9. Learning rates are constant, so a longer run begins as a shorter one does: where each
run is stays in runs/paper-protocol, and PLAN lengthens it. page.py makes a part of docs/paper.md of it.
"""

from __future__ import annotations

import argparse
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from obverse._core import Interrupted
from obverse._core.files import write_text
from obverse.data import Dataset, load
from obverse.training import Diverged, Settings, fit

from .._lab.places import RUNS
from .._lab.result_files import short
from . import gradients
from .run import FOLDER, RATES, WEIGHTS, alternate
from .training import Measured, Run

WORK = RUNS / "paper-protocol"
PREDICTION = "protocol-prediction.json"
SEEDS = (0, 1, 2)
EVERY = 100  # steps between two measurements
SOME = 2000  # test images between the ends of epochs, where all are taken
LARGEST = 4.0 ** RATES[1] * 0.001

PLAIN, SHADOW, DROPOUT, BOTH = "backprop", "SHADOW", "dropout", "SHADOW + dropout"
STEP, DROPOUT_STEP = "backprop, SHADOW's step", "dropout, SHADOW's step"
COLUMNS = ("the paper's protocol", "equal step length", "momentum 0.9")


@dataclass(frozen=True)
class Arm:
    """A way to train. `like`: the arm whose step it has, without shadows; without it, it chooses itself."""

    column: str
    shadows: bool = False
    dropout: float = 0.0
    momentum: float = 0.0
    like: str | None = None


ARMS = {
    PLAIN: Arm(COLUMNS[0]),
    SHADOW: Arm(COLUMNS[0], shadows=True),
    DROPOUT: Arm(COLUMNS[0], dropout=0.5),
    BOTH: Arm(COLUMNS[0], shadows=True, dropout=0.5),
    STEP: Arm(COLUMNS[1], like=SHADOW),
    DROPOUT_STEP: Arm(COLUMNS[1], dropout=0.5, like=BOTH),
    f"{PLAIN}, momentum": Arm(COLUMNS[2], momentum=0.9),
    f"{SHADOW}, momentum": Arm(COLUMNS[2], shadows=True, momentum=0.9),
    f"{DROPOUT}, momentum": Arm(COLUMNS[2], dropout=0.5, momentum=0.9),
    f"{BOTH}, momentum": Arm(COLUMNS[2], shadows=True, dropout=0.5, momentum=0.9),
}


@dataclass(frozen=True)
class Part:
    """One data set at one width; `tuning_steps` are those of each candidate."""

    data: str
    width: int
    tuning_steps: int
    held_out: int = 10_000

    @property
    def base(self) -> Settings:
        return Settings(
            data=self.data,
            hidden=(self.width, self.width),
            weight=0.0,
            lr=LARGEST,
            momentum=0.0,
            match_norm=False,
            precision="bf16",
        )


PARTS = {
    "mnist-1000": Part("mnist", 1000, 250),
    "cifar10-1000": Part("cifar10", 1000, 200),
    "cifar100-1000": Part("cifar100", 1000, 200),
    "mnist-5000": Part("mnist", 5000, 60),
    "cifar10-5000": Part("cifar10", 5000, 60),
    "cifar100-5000": Part("cifar100", 5000, 60),
}
NARROW = ("mnist-1000", "cifar10-1000", "cifar100-1000")
WIDE = ("mnist-5000", "cifar10-5000", "cifar100-5000")
# Epochs that are reached, in this order, so that what is cut off leaves whole comparisons.
PLAN = (*((epochs, part) for epochs in (2, 5, 10) for part in NARROW), *((1, part) for part in WIDE))


class Errors(Measured):
    """As a task of `fit`: the error on some test images, on all after whole epochs and of those held out."""

    def evaluate(self) -> dict[str, Any]:
        x, y = self._everything
        whole = self.run.settings.validation > 0 or self.done % self.task.steps_per_epoch == 0
        points = len(y) if whole else min(SOME, len(y))
        self.task.net.eval()
        with torch.no_grad():
            wrong = sum(
                int((self.task.net(x[rows]).argmax(-1) != y[rows]).sum())
                for start in range(0, points, 1000)
                for rows in [slice(start, min(start + 1000, points))]
            )
        return {"test_error": wrong / points, "points": points}


def read(file: Path) -> dict[str, dict[str, Any]]:
    """The records of a file by arm and seed, or by candidate."""
    if not file.exists():
        return {}
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line]
    return {record["key"]: record for record in lines}


def tidied(curve: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Each step once, in order, without what depends on the machine."""
    by_step = {point["step"]: point for point in curve}
    names = ("step", "train_loss", "test_error", "points")
    return [short({name: by_step[step][name] for name in names}) for step in sorted(by_step)]


class Protocol:
    """The runs of one part, made as they are asked for until `stopped` is set, which raises `Interrupted`."""

    def __init__(
        self,
        name: str,
        part: Part,
        data: Dataset,
        folder: Path,
        work: Path,
        stopped: threading.Event,
    ) -> None:
        self.name, self.part, self.data = name, part, data
        self.folder, self.work, self.stopped = folder, work / name, stopped
        self.steps_per_epoch = len(data.train_x) // part.base.batch_size

    def chosen(self, arm: str) -> Settings:
        """Tuned on held-out points, or with the step of another arm; the seed is still to be set."""
        own = ARMS[arm]
        base = replace(self.part.base, dropout=own.dropout, momentum=own.momentum)
        if own.like is not None:
            other = self.chosen(own.like)
            return replace(base, lr=other.lr * self.length(other.weight))

        def error(a: int, b: int) -> float:
            settings = replace(
                base,
                lr=4.0**a * 0.001,
                weight=2.0**b if own.shadows else 0.0,
                validation=self.part.held_out,
            )
            key = f"{arm}, a = {a}" + (f", b = {b}" if own.shadows else "")
            steps = self.part.tuning_steps
            record = self.train(key, arm, settings, steps, f"protocol-{self.name}-tuning.jsonl", every=steps)
            return float(record["curve"][-1]["test_error"]) if not record["diverged"] else 1.0

        a, b = alternate(error, RATES, WEIGHTS if own.shadows else (0, 0))
        return replace(base, lr=4.0**a * 0.001, weight=2.0**b if own.shadows else 0.0)

    def length(self, weight: float) -> float:
        """How much longer the shadows make a step, as foretold."""
        foretold = json.loads((self.folder / PREDICTION).read_text(encoding="utf-8"))
        return float(foretold[self.name]["own"][f"{weight:g}"]["length"])

    def final(self, arm: str, seed: int, epochs: int) -> dict[str, Any]:
        settings = replace(self.chosen(arm), seed=seed)
        steps = epochs * self.steps_per_epoch
        return self.train(f"{arm}, seed {seed}", arm, settings, steps, f"protocol-{self.name}.jsonl")

    def train(
        self, key: str, arm: str, settings: Settings, steps: int, file: str, every: int | None = None
    ) -> dict[str, Any]:
        """The record of a run with at least so many steps: from the file, or trained further and written."""
        every = every or EVERY
        known = read(self.folder / file).get(key)
        wanted = replace(settings, data_root=None).to_dict()
        if known is not None and known["settings"] != wanted:
            known = None
        if known is not None and (known["diverged"] or known["curve"][-1]["step"] >= steps):
            return known
        torch.set_num_threads(1)
        task = Errors(Run(arm, settings, steps, every, scale=1.0), self.data)  # x′ as it is printed
        place = f"{key}-{settings.lr:g}-{settings.weight:g}".replace(" ", "-")
        kept = self.work / ("tuning" if settings.validation else "runs") / place
        curve: list[Mapping[str, Any]] = list(known["curve"]) if known else []  # a run repeats to the bit
        began, diverged = perf_counter(), False
        try:
            curve += fit(
                task,
                steps // every,
                seed=settings.seed,
                run=kept,
                on_record=curve.append,
                stopped=self.stopped,
            )
        except Diverged:
            diverged = True
        finally:
            record = {
                "key": key,
                "arm": arm,
                "settings": wanted,
                "diverged": diverged,
                "curve": tidied(curve),
            }
            if curve:
                self.write(file, record)
        error = "diverged" if diverged else f"{100 * curve[-1]['test_error']:.2f} %"
        print(f"{self.name}: {key}, {steps} steps: {error}, {perf_counter() - began:.0f} s", flush=True)
        return record

    def write(self, file: str, record: Mapping[str, Any]) -> None:
        """In place of what the file had of this run."""
        place = self.folder / file
        place.parent.mkdir(parents=True, exist_ok=True)
        records = read(place) | {record["key"]: dict(record)}
        write_text(place, "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in records.values()))


def foretell(parts: Sequence[str], folder: Path, data_root: str | None) -> None:
    """Each part's prediction, once: those that are there stay."""
    place = folder / PREDICTION
    known = json.loads(place.read_text(encoding="utf-8")) if place.exists() else {}
    for name in parts:
        part = PARTS[name]
        if "own" in known.get(name, {}):
            continue
        data = load(part.data, data_root)
        if name not in known:
            known[name] = gradients.foretell(part.base, data)
        known[name]["own"] = gradients.foretell_own(part.base, data)
        place.parent.mkdir(parents=True, exist_ok=True)
        write_text(place, json.dumps(known, allow_nan=False, indent=1) + "\n")
        print(f"{name}: foretold", flush=True)


def planned(
    parts: Sequence[str], columns: Sequence[str], seeds: Sequence[int], epochs: int | None
) -> Iterator[tuple[str, str, int, int]]:
    """Part, arm, seed and epochs in the order of the plan."""
    for reached, part in PLAN:
        if part not in parts or (epochs is not None and reached > epochs):
            continue
        for seed in seeds:
            for arm, own in ARMS.items():
                if own.column in columns:
                    yield part, arm, seed, reached


def run(
    data_root: str | None = None,
    part: Sequence[str] | None = None,
    column: Sequence[str] | None = None,
    seed: Sequence[int] | None = None,
    epochs: int | None = None,
    seconds: float | None = None,
    foretell_only: bool = False,
    folder: Path = FOLDER,
    work: Path = WORK,
) -> bool:
    """Whether all that was asked for is done."""
    parts = part or list(PARTS)
    foretell(parts, folder, data_root)
    if foretell_only:
        return True
    stopped = threading.Event()
    timer = threading.Timer(seconds or 0.0, stopped.set)
    timer.daemon = True
    if seconds is not None:
        timer.start()
    made: dict[str, Protocol] = {}
    try:
        for name, arm, one_seed, reached in planned(parts, column or COLUMNS, seed or SEEDS, epochs):
            if name not in made:
                own = PARTS[name]
                made = {name: Protocol(name, own, load(own.data, data_root), folder, work, stopped)}
            made[name].final(arm, one_seed, reached)
            if stopped.is_set():
                return False
    except Interrupted:
        return False
    finally:
        timer.cancel()
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data-root", help="folder that holds mnist/, cifar10/ and cifar100/")
    parser.add_argument("--part", action="append", choices=list(PARTS), help="only this one; may be repeated")
    parser.add_argument("--column", action="append", choices=COLUMNS, help="only this one; may be repeated")
    parser.add_argument("--seed", action="append", type=int, help="only this one; may be repeated")
    parser.add_argument("--epochs", type=int, help="only what the plan has up to so many epochs")
    parser.add_argument("--seconds", type=float, help="stop after about so many; the same command goes on")
    parser.add_argument("--foretell", dest="foretell_only", action="store_true", help="the prediction alone")
    done = run(**vars(parser.parse_args()))
    print("done" if done else "more to do: the same command goes on", flush=True)


if __name__ == "__main__":
    main()
