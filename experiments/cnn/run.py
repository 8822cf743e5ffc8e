"""Does SHADOW carry over to convolutional nets? CIFAR-10 and Fashion-MNIST with 1,000, 5,000 and all labels.

    python -m experiments.cnn.run PART [PART …] --data-root DIR      (an hour and a half on a core)

Parts, in this order: tune, final-1000, search, final-5000, chosen-1000, final-all, shuffled, search-heavy,
tune-noise, controls, chosen-5000, measure, collect. Every finished run is one JSON file (and its weights) in
runs/cnn; what is there is not run again. `collect` puts the records into results/runs.jsonl,
from which page.py makes docs/cnn.md.

small_cnn(8, 16, 64) without norm, batch 100, SGD with momentum 0.9, pixels in [0, 1], no augmentation; the
rate rises for 50 steps, then falls to 0 as a cosine. Points, start and batches depend on the seed alone.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from obverse._core.files import write_json
from obverse.data import Dataset, load

from .._lab.places import RUNS
from .training import Run, initial_net, shadow_measures, train

FOLDER = RUNS / "cnn"
RESULTS = Path(__file__).parent / "results"

PARTS = (  # in the order in which each finds what it builds on
    "tune",
    "final-1000",
    "search",
    "final-5000",
    "chosen-1000",
    "final-all",
    "shuffled",
    "search-heavy",
    "tune-noise",
    "controls",
    "chosen-5000",
    "measure",
    "collect",
)
DATA = ("fashion-mnist", "cifar10")
ALL = 0
EPOCHS = {1000: 40, 5000: 20, ALL: 3}
RATES = {"fashion-mnist": (0.02, 0.04, 0.08), "cifar10": (0.01, 0.02, 0.04)}
TUNING_SEEDS = (900,)
SEEDS = {1000: range(5), 5000: range(5), ALL: range(3)}

PLAIN: dict[str, dict[str, Any]] = {
    "plain": {},
    "dropout": {"dropout": 0.5},
    "mixup": {"mixup": 1.0},
    "label smoothing": {"smoothing": 0.1},
}
NOISE: dict[str, dict[str, Any]] = {
    f"noise {std:g}": {"weight": 1.0, "control": "noise", "noise": std} for std in (0.1, 0.5)
}
SHADOW: dict[str, dict[str, Any]] = {"SHADOW": {"weight": 1.0}}
SHUFFLED: dict[str, dict[str, Any]] = {"shuffled shadows": {"weight": 1.0, "control": "shuffled"}}
# What the search varies; the rate stays the one that SHADOW chose. conv3 with weight 1 is SHADOW itself.
VARIANTS: dict[str, dict[str, Any]] = {
    f"SHADOW {layer}, weight {weight:g}": {"layer": layer, "weight": weight}
    for weight, layers in {
        0.25: ("conv3", "conv2", "conv1", "output"),
        1.0: ("conv2", "conv1", "output"),
        4.0: ("conv1", "conv2", "conv3", "output"),
    }.items()
    for layer in layers
} | {
    "SHADOW keep 0.5": {"weight": 1.0, "keep": 0.5},
    "SHADOW consistency": {"weight": 1.0, "targets": "consistency"},
    "SHADOW own scale": {"weight": 1.0, "match_norm": False},
}
# Tried last, in a part of their own (search-heavy): the smaller weights had been harmful already.
HEAVY = [name for name in VARIANTS if name.endswith("weight 4") or name == "SHADOW output, weight 1"]
METHODS = PLAIN | NOISE | SHADOW | SHUFFLED | VARIANTS
LONG = "plain, twice the steps"


def tuning_runs(
    methods: dict[str, dict[str, Any]], rates: Callable[[str, str], tuple[float, ...]], labels: int
) -> Iterator[Run]:
    """Every method with every rate, on held-out points."""
    for seed in TUNING_SEEDS:
        for method, change in methods.items():
            for data in DATA:
                for rate in rates(data, method):
                    yield Run(data, labels, method, rate, seed, True, EPOCHS[labels], **change)


def final_runs(
    methods: Callable[[str], Iterable[str]], rate_of: Callable[[str, str], float], labels: int
) -> Iterator[Run]:
    """A data set's methods with their rates, all seeds, on the test set; seed by seed: pairs come early."""
    for seed in SEEDS[labels]:
        for data in DATA:
            for method in methods(data):
                base = "plain" if method == LONG else method
                epochs = EPOCHS[labels] * (2 if method == LONG else 1)
                yield Run(data, labels, method, rate_of(data, method), seed, epochs=epochs, **METHODS[base])


def best(
    records: list[dict[str, Any]], data: str, methods: tuple[str, ...], labels: int = 5000
) -> dict[str, Any]:
    """The tuning record of least held-out error among the methods (summed over tuning seeds)."""
    mine = [
        r
        for r in records
        if r["held_out"] and (r["data"], r["labels"]) == (data, labels) and r["method"] in methods
    ]

    def total(record: dict[str, Any]) -> float:
        key = (record["method"], record["rate"])
        return math.fsum(r["error"] for r in mine if (r["method"], r["rate"]) == key)

    return min(mine, key=total)


def read_records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.json"))]


def plan(part: str, folder: Path) -> list[Run]:
    """The runs of a part; the later parts look at what the earlier ones found."""
    records = read_records(folder)

    def rate_of(data: str, method: str) -> float:
        tuned = {LONG: "plain", "shuffled shadows": "SHADOW"}.get(method, method)
        return float(best(records, data, ("SHADOW" if tuned in VARIANTS else tuned,))["rate"])

    if part == "tune":
        return list(tuning_runs(PLAIN | SHADOW, lambda data, method: RATES[data], 5000))
    if part == "tune-noise":
        runs = list(tuning_runs(NOISE, lambda data, method: RATES[data], 5000))
        return [run for run in runs if (run.data, run.method) != ("cifar10", "noise 0.5")]  # to save time
    if part in ("final-1000", "final-5000"):
        return list(final_runs(lambda data: (*PLAIN, *SHADOW), rate_of, int(part[6:])))
    if part == "final-all":
        return list(final_runs(lambda data: (*PLAIN, *SHADOW), rate_of, ALL))
    if part in ("search", "search-heavy"):
        light = ["plain", *SHADOW, *(name for name in VARIANTS if name not in HEAVY)]
        arms = {name: METHODS[name] for name in (light if part == "search" else HEAVY)}
        return list(tuning_runs(arms, lambda data, method: (rate_of(data, method),), 1000))
    if part in ("chosen-1000", "chosen-5000"):
        chosen = {data: best(records, data, tuple(VARIANTS), 1000)["method"] for data in DATA}
        return list(final_runs(lambda data: (chosen[data],), rate_of, int(part[7:])))
    if part == "shuffled":
        return list(final_runs(lambda data: SHUFFLED, rate_of, 1000))
    if part == "controls":
        noise = {data: best(records, data, tuple(NOISE))["method"] for data in DATA}
        return list(final_runs(lambda data: (noise[data], LONG), rate_of, 1000))
    raise SystemExit(f"no part {part!r}")


def run_all(runs: list[Run], folder: Path, load_data: Callable[[str], Dataset]) -> int:
    """Train what is not there yet, one after the other; how many that were."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    todo = [run for run in runs if not (folder / f"{run.name}.json").exists()]
    for count, run in enumerate(todo, start=1):
        record, net = train(run, load_data(run.data))
        if not run.held_out:
            weights = {name: tensor.contiguous() for name, tensor in net.state_dict().items()}
            save_file(weights, folder / f"{run.name}.safetensors")
        write_json(folder / f"{run.name}.json", record)
        print(f"{count}/{len(todo)} {run.name} {record['error']:.4f} {record['seconds']} s", flush=True)
    return len(todo)


def measure(folder: Path, load_data: Callable[[str], Dataset]) -> None:
    """Add to every final record what the net does with the shadows of the test set."""
    from safetensors.torch import load_file

    for file in sorted(folder.glob("final_*.json")):
        record = json.loads(file.read_text(encoding="utf-8"))
        if "shadow_error" in record:
            continue
        fields = {name: record[name] for name in Run.__dataclass_fields__}
        run = Run(**fields | {"widths": tuple(fields["widths"])})
        net = initial_net(replace(run, dropout=0.0), load_data(run.data))
        net.load_state_dict(load_file(file.with_suffix(".safetensors")))
        write_json(file, record | shadow_measures(net, load_data(run.data)))


def collect(folder: Path, place: Path) -> None:
    place.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(record, sort_keys=True) for record in read_records(folder)]
    (place / "runs.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(lines)} records in {place / 'runs.jsonl'}")


def run(
    parts: Sequence[str] = PARTS,
    data_root: str | None = None,
    runs: Path = FOLDER,
    seeds: int | None = None,
) -> None:
    torch.set_num_threads(1)
    loaded: dict[str, Dataset] = {}

    def load_data(name: str) -> Dataset:
        if name not in loaded:
            loaded[name] = load(name, data_root)
        return loaded[name]

    for part in parts:
        if part == "measure":
            measure(runs, load_data)
            continue
        if part == "collect":
            collect(runs, RESULTS)
            continue
        planned = plan(part, runs)
        if seeds:
            planned = [one for one in planned if one.held_out or one.seed < seeds]
        count = run_all(planned, runs, load_data)
        print(f"{part}: {count} runs", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("parts", nargs="+")
    parser.add_argument("--data-root", help="folder that holds cifar10/ and fashion-mnist/")
    parser.add_argument("--runs", type=Path, default=FOLDER)
    parser.add_argument("--seeds", type=int, help="only so many seeds of what is judged on the test set")
    run(**vars(parser.parse_args()))


if __name__ == "__main__":
    main()
