"""What helps with 100, 500, 1,000 or 5,000 labels and no other data? Methods and controls, tuned alike.

    python -m experiments.few_labels.run --data-root DIR     (DIR holds mnist, fashion-mnist and cifar10)
    python -m experiments.few_labels.run --quick             (embedded digits, under a minute)
    python -m experiments.few_labels.run --seconds 300 …     (that long; call it again to go on)

Two hidden layers of 500, batch 100, momentum 0.9, a constant rate, pixels in [0, 1]. Every method first tries
6 settings (6 rates for plain training, 3 rates × 2 strengths for the others) on one draw of labelled points,
judged on HELD_OUT points that no run ever trains on; the best is then trained on 5 other draws, the same for
every method, with as many labels a class, and tested on the official test set. Each trial is a line in
results/; what is there is not run again.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from math import inf
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from obverse._core.files import write_text
from obverse._core.random import INITIAL, SPLIT, STEPS, derive_generator, derive_seed
from obverse.data import Dataset, load
from obverse.nets import relu_mlp
from obverse.training._batches import Batches

from .._lab.result_files import short
from .methods import EVERY, FITTED, METHODS, batch_loss, dropout_of, pretrained

FOLDER = Path(__file__).parent / "results"
QUICK_FOLDER = Path("runs") / "quick" / "few-labels"
BATCH = 100
TUNING_SEED = 1000
Setting = tuple[float, float | None]  # rate and strength
PLAIN_RATES = (0.005, 0.01, 0.02, 0.04, 0.08, 0.16)
RATES = (0.01, 0.04, 0.16)  # out of the same range; four times the one before, as in the paper
# Images of CIFAR-10 have three times the norm of MNIST's: a step goes further, and large ones diverge.
RATE_UNIT = {"cifar10": 0.2}


@dataclass(frozen=True)
class Cell:
    """One data set with so many labels, and who takes part."""

    data: str
    labels: int
    steps: int
    methods: tuple[str, ...] = tuple(METHODS)


@dataclass(frozen=True)
class Plan:
    cells: tuple[Cell, ...]
    width: int
    seeds: tuple[int, ...]
    held_out: int
    longer: tuple[Cell, ...] = ()  # some methods again with many more steps, to see what training length does
    fitted: tuple[Cell, ...] = ()  # the same cells with shadows by the fitted reverse


# Labels and steps, as many as there was time for: a step on CIFAR-10 costs more than twice as much.
SIZES = {
    "mnist": ((100, 150), (500, 200), (1000, 250), (5000, 300)),
    "fashion-mnist": ((100, 100), (500, 150), (1000, 200), (5000, 250)),
    "cifar10": ((100, 60), (500, 70), (1000, 80), (5000, 120)),
}
LONGER = ("plain", "SHADOW", "SHADOW consistency", "noise consistency", "label smoothing", "dropout")
FULL = Plan(
    cells=tuple(Cell(data, *size) for data, sizes in SIZES.items() for size in sizes),
    width=500,
    seeds=tuple(range(5)),
    held_out=5000,
    longer=(Cell("mnist", 500, 1000, LONGER),),
    fitted=tuple(Cell(data, *size, tuple(FITTED)) for data, sizes in SIZES.items() for size in sizes),
)
QUICK = Plan(
    cells=(Cell("digits", 50, 30), Cell("digits", 200, 40)),
    width=100,
    seeds=tuple(range(2)),
    held_out=500,
    longer=(Cell("digits", 50, 80, LONGER),),
    fitted=(Cell("digits", 50, 30, tuple(FITTED)),),
)


@dataclass(frozen=True)
class Trial:
    """One training; `strength` is the value of the method's knob, None for plain training."""

    data: str
    labels: int
    steps: int
    method: str
    rate: float
    strength: float | None
    seed: int
    width: int
    held_out: int  # so many points are never trained on
    tuning: bool  # tested on those, in place of the test set


T = TypeVar("T", bound=Trial)


def grid(method: str, data: str) -> list[Setting]:
    """The 6 settings a method may choose from: rate and strength."""
    unit, strengths = RATE_UNIT.get(data, 1.0), EVERY[method].strengths
    if not strengths:
        return [(round(unit * rate, 6), None) for rate in PLAIN_RATES]
    return [(round(unit * rate, 6), strength) for rate in RATES for strength in strengths]


def tuning_trials(plan: Plan, cell: Cell, method: str) -> list[Trial]:
    return [
        Trial(*_head(cell), method, *setting, TUNING_SEED, plan.width, plan.held_out, True)
        for setting in grid(method, cell.data)
    ]


def final_trials(plan: Plan, cell: Cell, method: str, setting: Setting) -> list[Trial]:
    return [
        Trial(*_head(cell), method, *setting, seed, plan.width, plan.held_out, False) for seed in plan.seeds
    ]


def _head(cell: Cell) -> tuple[str, int, int]:
    return cell.data, cell.labels, cell.steps


def labelled(data: Dataset, labels: int, held_out: int, seed: int) -> tuple[Tensor, Tensor]:
    """(labelled rows, held-out rows): as many of each class, drawn by the seed outside the held-out rows.

    The held-out rows are the same for every seed. With one seed fewer labels are a part of more.
    """
    everything = torch.randperm(len(data.train_y), generator=derive_generator(0, SPLIT))
    held, rest = everything[:held_out], everything[held_out:]
    rest = rest[torch.randperm(len(rest), generator=derive_generator(seed, SPLIT))]
    classes = len(data.classes)
    y = data.train_y[rest]
    rows = torch.cat([rest[y == label][: labels // classes] for label in range(classes)])
    assert len(rows) == labels, "as many points of each class"
    return rows, held


def initial(trial: Trial, data: Dataset) -> nn.Sequential:
    dropout = dropout_of(trial.method, trial.strength)
    generator = derive_generator(trial.seed, INITIAL)
    return relu_mlp(
        data.input_shape, (trial.width,) * 2, len(data.classes), dropout=dropout, generator=generator
    )


def train(
    net: nn.Sequential,
    x: Tensor,
    y: Tensor,
    trial: Trial,
    classes: int,
    watch: Callable[[int], None] | None = None,
) -> float:
    """The net trained in place; the loss of the last batch. `watch` is told how many steps were made."""
    generator = derive_generator(trial.seed, STEPS)
    numbers = np.random.default_rng(derive_seed(trial.seed, STEPS))
    shape = tuple(x.shape[1:])
    loss_of = batch_loss(trial.method, trial.strength, net, shape, classes, generator, numbers)
    optimizer = torch.optim.SGD(net.parameters(), trial.rate, momentum=0.9)
    batches = Batches(len(x), BATCH, trial.seed)
    net.train()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(trial.seed, STEPS))  # dropout
        for step in range(trial.steps):
            rows = batches.rows(*divmod(step, len(batches)))
            optimizer.zero_grad()
            loss = loss_of(x[rows], y[rows])
            loss.backward()
            optimizer.step()
            if watch is not None:
                watch(step + 1)
    return loss.item()


@torch.no_grad()
def error_of(net: nn.Module, x: Tensor, y: Tensor) -> float:
    """The share of wrong answers; what diverged counts as guessing."""
    logits = torch.cat([net(part) for part in x.split(1000)])
    if not bool(logits.isfinite().all()):
        return 1 - 1 / logits.shape[1]
    return float((logits.argmax(-1) != y).double().mean())


def run_trial(trial: Trial, data: Dataset) -> dict[str, Any]:
    """Train one net; its error on the test set, or on the held-out points."""
    start = perf_counter()
    rows, held = labelled(data, trial.labels, trial.held_out, trial.seed)
    x, y = data.train_x[rows], data.train_y[rows]
    net = initial(trial, data)
    if EVERY[trial.method].knob == "corruption":
        net = _pretrained(trial.data, trial.labels, trial.strength, trial.seed, net, x)
    loss = train(net, x, y, trial, len(data.classes))
    net.eval()
    place = (data.train_x[held], data.train_y[held]) if trial.tuning else (data.test_x, data.test_y)
    measured = {"error": error_of(net, *place), "train_loss": loss if loss == loss else None}
    return asdict(trial) | short(measured) | {"seconds": round(perf_counter() - start, 2)}


_kept: dict[tuple[Any, ...], nn.Sequential] = {}  # the last pretrained nets: the rates of a tuning share one


def _pretrained(
    name: str, labels: int, corruption: float | None, seed: int, net: nn.Sequential, x: Tensor
) -> nn.Sequential:
    assert corruption is not None
    key = (name, labels, corruption, seed, len(net))
    if key not in _kept:
        if len(_kept) >= 2:
            _kept.clear()
        _kept[key] = pretrained(net, x, corruption, derive_generator(seed, STEPS, 1))
    return deepcopy(_kept[key])


def key_of(trial: Trial) -> str:
    return json.dumps(asdict(trial), sort_keys=True)


def read(file: Path, kind: type[Trial] = Trial) -> dict[str, dict[str, Any]]:
    """Results by trial; a last line that was cut short is left out."""
    if not file.exists():
        return {}
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    records = [json.loads(line) for line in lines if line.endswith("\n")]
    names = [each.name for each in fields(kind)]
    return {key_of(kind(**{name: record[name] for name in names})): record for record in records}


def choose(
    plan: Plan, cell: Cell, method: str, done: dict[str, dict[str, Any]]
) -> tuple[float, float | None]:
    """The setting with the least error on the held-out points; of equals the first."""
    best = min(tuning_trials(plan, cell, method), key=lambda trial: done[key_of(trial)]["error"])
    return best.rate, best.strength


def run(
    quick: bool = False,
    data_root: str | None = None,
    out: Path | None = None,
    seconds: float = inf,
    data: str | None = None,
    labels: int | None = None,
) -> None:
    """Of the cells of the plan, or of one data set or number of labels; begins no trial after `seconds`."""
    plan = QUICK if quick else FULL
    folder = out or (QUICK_FOLDER if quick else FOLDER)
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    until = perf_counter() + seconds
    for cell in (*plan.cells, *plan.longer, *plan.fitted):
        if data in (None, cell.data) and labels in (None, cell.labels):
            run_cell(plan, cell, folder, data_root, until)


def run_cell(plan: Plan, cell: Cell, folder: Path, data_root: str | None, until: float = inf) -> None:
    """Tuning, then the chosen settings seed by seed."""
    tuning, final = folder / "tuning.jsonl", folder / "final.jsonl"

    def measure(trial: Trial) -> dict[str, Any]:
        return run_trial(trial, _load(cell.data, data_root))

    run_missing([t for m in cell.methods for t in tuning_trials(plan, cell, m)], tuning, measure, until)
    if perf_counter() >= until:
        return
    done = read(tuning)
    chosen = {m: final_trials(plan, cell, m, choose(plan, cell, m, done)) for m in cell.methods}
    trials = [each[i] for i in range(len(plan.seeds)) for each in chosen.values()]
    run_missing(trials, final, measure, until)


def run_missing(
    trials: Sequence[T], file: Path, measure: Callable[[T], dict[str, Any]], until: float = inf
) -> None:
    """Each trial that is not in the file, its line written as it is done; none is begun after `until`."""
    done = read(file, type(trials[0]))
    cut_short(file)
    with file.open("a", encoding="utf-8") as lines:
        for trial in trials:
            if key_of(trial) not in done and perf_counter() < until:
                record = measure(trial)
                lines.write(json.dumps(record, allow_nan=False) + "\n")
                lines.flush()
                print(*(record[name] for name in SHOWN), flush=True)


def cut_short(file: Path) -> None:
    """Drop a last line without its end, which a crash has left."""
    if file.exists() and not (text := file.read_text(encoding="utf-8")).endswith("\n"):
        write_text(file, text[: text.rfind("\n") + 1])


SHOWN = ("data", "labels", "method", "rate", "strength", "seed", "error", "seconds")


@lru_cache(maxsize=1)
def _load(name: str, root: str | None) -> Dataset:
    return load(name, root)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data-root", help="folder that holds mnist/, fashion-mnist/ and cifar10/")
    parser.add_argument("--quick", action="store_true", help="embedded digits only, in under a minute")
    parser.add_argument("--out", type=Path, help="folder of the results")
    parser.add_argument("--seconds", type=float, default=inf, help="begin no trial after so many")
    parser.add_argument("--data", help="one data set of the plan")
    parser.add_argument("--labels", type=int, help="one number of labels of the plan")
    run(**vars(parser.parse_args()))


if __name__ == "__main__":
    main()
