"""Does a rule that ranks layers by the spectrum of the base find the layers where fine-tuning helps most?

    python -m experiments.selection.tuning [--out DIR] [--seeds 0 1 …]

Nets are trained on the standard library's sources and fine-tuned to the text of Python's reference, at an
equal number of trained parameters. Once a quarter of the matrices of each kind is trained, those that a rule
puts first; once updates of low rank are trained, with ranks in proportion to the counts of a rule. Both are
compared, seed by seed, with the mean of random choices. Each fine-tuning is written as it is done.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from obverse.weights import decompose

from .._lab.places import RUNS
from .._lab.result_files import measure
from .net import (
    BLOCKS,
    KINDS,
    Reader,
    Text,
    adapt,
    matrices,
    sources,
    tested,
    topics,
    train,
    unfreeze,
    versions,
)
from .rules import counts, scores

RESULTS = Path(__file__).parent / "results"
BASES = RUNS / "selection"
SEEDS = (0, 1, 2, 3, 4)
TUNED_ON = 100  # the seed of the net by which the learning rates were chosen
BASE_STEPS, BASE_LR = 1200, 3e-3
STEPS = 250
RATES = {"matrices": (3e-4, 1e-3, 3e-3), "updates": (1e-3, 3e-3, 1e-2)}
RANDOM, MIXED = 4, 2  # choices at random per seed
RANK = 8  # mean over the matrices of one shape
BY_COUNT = ("Spectrum", "Gavish–Donoho", "energy 90 %", "ours")


def base(seed: int, text: Text) -> Reader:
    """The net before fine-tuning, trained once and kept."""
    torch.manual_seed(seed)
    net, file = Reader(), BASES / f"{seed}.safetensors"
    if file.exists():
        net.load_state_dict(load_file(file))
        return net
    train(net, text, net.parameters(), steps=BASE_STEPS, lr=BASE_LR, seed=seed)
    file.parent.mkdir(parents=True, exist_ok=True)
    save_file(net.state_dict(), file)
    return net


def measured(net: Reader) -> dict[str, dict[str, dict[str, float]]]:
    """Scores and counts of every rule for every matrix."""
    found: dict[str, dict[str, dict[str, float]]] = {"scores": {}, "counts": {}}
    for name, layer in matrices(net).items():
        matrix = layer.weight.detach()
        found["scores"][name] = scores(matrix)
        parts = decompose(matrix, generator=torch.Generator().manual_seed(0))
        found["counts"][name] = {rule: float(many) for rule, many in counts(matrix, parts).items()}
    return found


def first_of_each_kind(numbers: Mapping[str, float]) -> list[str]:
    """One matrix in four, as there are four blocks; of equals the one of the lower block."""
    return [
        max((name for name in numbers if name.endswith(f".{kind}")), key=lambda name: numbers[name])
        for kind in KINDS
    ]


def at_random(seed: int, draw: int) -> dict[str, float]:
    generator = torch.Generator().manual_seed(1000 * seed + draw)
    return {name: float(torch.rand((), generator=generator)) for name in matrices(Reader())}


def ranks_of(numbers: Mapping[str, float]) -> dict[str, int]:
    """In proportion to the numbers, of the same sum within every group of matrices of one shape.

    By largest remainders; a matrix without a direction gets none, if others of its shape have some.
    """
    ranks: dict[str, int] = {}
    for kinds in (("query", "key", "value", "output"), ("up",), ("down",)):
        names = [name for name in numbers if name.rpartition(".")[2] in kinds]
        total, budget = sum(numbers[name] for name in names), RANK * len(names)
        shares = {name: budget * (numbers[name] / total if total else 1 / len(names)) for name in names}
        ranks |= {name: int(share) for name, share in shares.items()}
        left = budget - sum(int(share) for share in shares.values())
        for name in sorted(names, key=lambda name: int(shares[name]) - shares[name])[:left]:
            ranks[name] += 1
    return ranks


def mixed(numbers: Mapping[str, float], seed: int, draw: int) -> dict[str, float]:
    """The same numbers at other matrices of the same kind."""
    generator = torch.Generator().manual_seed(1000 * seed + draw)
    found = dict(numbers)
    for kind in KINDS:
        names = [name for name in numbers if name.endswith(f".{kind}")]
        order = torch.randperm(len(names), generator=generator).tolist()
        found |= {name: numbers[names[at]] for name, at in zip(names, order, strict=True)}
    return found


def tune_matrices(net: Reader, names: Sequence[str], text: Text, lr: float, seed: int) -> dict[str, Any]:
    own = deepcopy(net)
    parameters = unfreeze(own, names)
    train(own, text, parameters, steps=STEPS, lr=lr, seed=seed)
    return {
        "loss": tested(own, text),
        "parameters": sum(one.numel() for one in parameters),
        "names": list(names),
    }


def tune_updates(net: Reader, ranks: dict[str, int], text: Text, lr: float, seed: int) -> dict[str, Any]:
    own = deepcopy(net)
    parameters = adapt(own, ranks, seed)
    train(own, text, parameters, steps=STEPS, lr=lr, seed=seed)
    return {"loss": tested(own, text), "parameters": sum(one.numel() for one in parameters), "ranks": ranks}


def run(out: Path = RESULTS, seeds: Sequence[int] = SEEDS, ways: Sequence[str] = tuple(RATES)) -> None:
    code, prose = sources(), topics()
    about = {
        "base steps": BASE_STEPS,
        "base lr": BASE_LR,
        "steps": STEPS,
        "rank": RANK,
        "sources": code.sha256,
        "topics": prose.sha256,
        **versions(),
    }
    net = base(TUNED_ON, code)
    everything = list(matrices(net))
    chosen = first_of_each_kind(at_random(TUNED_ON, 0))
    even = dict.fromkeys(everything, RANK)
    entries: dict[str, Any] = {
        f"matrices|{lr:g}": partial(tune_matrices, net, chosen, prose, lr, TUNED_ON)
        for lr in RATES["matrices"]
    }
    entries |= {
        f"updates|{lr:g}": partial(tune_updates, net, even, prose, lr, TUNED_ON) for lr in RATES["updates"]
    }
    found = measure(out / "rates.json", about, entries)["entries"]
    best = {way: min(rates, key=lambda lr: found[f"{way}|{lr:g}"]["loss"]) for way, rates in RATES.items()}
    about |= {"rates": best}
    for way in ways:
        for seed in seeds:
            net = base(seed, code)
            known = measure(out / f"base_{seed}.json", about, {"measured": partial(measured, net)})["entries"]
            by_rule, counted = (by_rules(known["measured"][what]) for what in ("scores", "counts"))
            cells: dict[str, Any]
            if way == "matrices":
                tune = partial(tune_matrices, net, text=prose, lr=best[way], seed=seed)
                cells = {"before": partial(losses, net, prose, code)}
                for draw in range(RANDOM):
                    cells[f"random {draw}"] = partial(tune, first_of_each_kind(at_random(seed, draw)))
                for rule, numbers in by_rule.items():
                    cells[rule] = partial(tune, first_of_each_kind(numbers))
                for block in (0, BLOCKS - 1):
                    own = [f"blocks.{block}.{kind}" for kind in KINDS]
                    cells[f"all of block {block}"] = partial(tune, own)
            else:
                update = partial(tune_updates, net, text=prose, lr=best[way], seed=seed)
                cells = {"equal": partial(update, even)}
                for rule in BY_COUNT:
                    cells[rule] = partial(update, ranks_of(counted[rule]))
                for draw in range(MIXED):
                    ranks = ranks_of(mixed(counted["ours"], seed, draw))
                    cells[f"ours, mixed {draw}"] = partial(update, ranks)
            measure(out / f"{way}_{seed}.json", about, cells)


def by_rules(table: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Of each rule the numbers of all matrices."""
    rules = next(iter(table.values()))
    return {rule: {name: numbers[rule] for name, numbers in table.items()} for rule in rules}


def losses(net: Reader, prose: Text, code: Text) -> dict[str, float]:
    return {"loss": tested(net, prose), "code": tested(net, code)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the results")
    parser.add_argument("--seeds", type=int, nargs="*", default=SEEDS, help="nets to fine-tune")
    parser.add_argument(
        "--ways", nargs="*", choices=tuple(RATES), default=tuple(RATES), help="what is trained"
    )
    asked = parser.parse_args()
    run(asked.out, asked.seeds, asked.ways)
