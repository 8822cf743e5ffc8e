"""Descent on inputs and on events side by side: exact, and as events tell less and less.

    python -m experiments.ladder.dynamics [--out FOLDER]   (minutes, one thread)

Writes dynamics.json. "exact": full information, several graphs and nets. "graded": one task told through
events that tell more and more; inputs, labels and start stay the same, so that descent on inputs is one and
the same run and only what the events tell differs. "named": AND, OR, majority and XOR.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor

from obverse.ladder._dynamics import Race, entropy, lost_bits, race
from obverse.ladder._gaps import broadness_gap
from obverse.ladder._passes import propagate
from obverse.ladder._regions import RegionGraph, grid, tree, windows
from obverse.ladder._student import Student, random_student
from obverse.ladder._summaries import random_table
from obverse.ladder._teacher import Teacher, enumerate_teacher

from .._lab.arguments import folder_asked_for
from .._lab.result_files import mean, measure, summary

RESULTS = Path(__file__).parent / "results"
GRAPHS: dict[str, tuple[RegionGraph, int]] = {  # and how many values a position takes
    "tree over 4": (tree(4), 2),
    "windows of 3 over 4": (windows(4, 3), 3),
    "windows of 2 over 5": (windows(5, 2), 2),
    "grid of 2 × 4": (grid(2, 4), 2),
    "overlapping grid of 3 × 3": (grid(3, 3, 2, 1), 2),
}
NETS: dict[str, dict[str, Any]] = {
    "ReLU": {"bias": False},
    "ReLU with bias": {},
    "batch norm before ReLU": {"norm": "before"},
    "batch norm after ReLU": {"norm": "after"},
    "linear": {"activation": "linear"},
    "softmax loss": {"loss": "softmax"},
}
EXACT = {"steps": 1000, "nodes": 4, "rate": 0.05}
DRIFT = {"steps": 1000, "nodes": 8, "rate": 0.05, "seeds": 12, "records": 40}
SPLITS = (1, 2, 4, 8, 16, 32, 64, 256)
NAMED = ("and", "or", "majority", "xor")
SETTINGS = {"exact": EXACT, "drift": DRIFT}


def uneven(count: int, generator: torch.Generator) -> Tensor:
    """Probabilities from nearly 0 to three times the average."""
    p = torch.rand(count, generator=generator, dtype=torch.float64).square()
    return p / p.sum()


def one_hot(labels: Tensor) -> Tensor:
    return torch.eye(int(labels.max()) + 1, dtype=torch.float64)[labels]


def headed(graph: RegionGraph) -> RegionGraph:
    """One more region above the top: a linear top by itself gives no more than sums over its children."""
    positions = {name: graph.positions[name] for name in graph.lowest}
    return RegionGraph.of({**graph.children, "head": (graph.top,)}, positions)


def summed_up(graph: RegionGraph) -> list[str]:
    """The regions whose events say less than their children's: all but the lowest and the head."""
    return [name for name in graph.order if len(graph.children[name]) > 1]


def exact(graph: str, net: str) -> dict[str, Any]:
    """Full information, random classes, uneven probabilities: how far the two descents ever are apart."""
    regions, values = GRAPHS[graph]
    generator = torch.Generator().manual_seed(list(GRAPHS).index(graph))
    count = values**regions.inputs
    teacher = enumerate_teacher(regions, "full", values=values, p=uneven(count, generator))
    goal = one_hot(torch.randint(2, (count,), generator=generator))
    start = random_student(teacher.model, int(EXACT["nodes"]), generator=generator, targets=goal, **NETS[net])
    steps, rate = int(EXACT["steps"]), EXACT["rate"]
    run = race(teacher, start, steps, rate, records=20)
    return {
        "graph": graph,
        "net": net,
        "inputs": count,
        "loss": [run.loss_inputs[0], run.loss_inputs[-1]],
        "largest": run.largest[-1],
        "rounding": disturbed(teacher, start, steps, rate),
    }


def disturbed(teacher: Teacher, student: Student, steps: int, rate: float) -> float:
    """The largest difference of descent on inputs from itself, when the start is off by one rounding."""
    weights = {edge: weight * (1 + 2**-52) for edge, weight in student.weights.items()}
    one, other, largest = student, replace(student, weights=weights), 0.0
    for _ in range(steps):
        one = one.stepped(propagate(teacher, one).step, rate)
        other = other.stepped(propagate(teacher, other).step, rate)
        pairs = zip(one.parameters().tensors(), other.parameters().tensors(), strict=True)
        largest = max(largest, *(float((a - b).abs().max()) for a, b in pairs))
    return largest


def split_events(coarse: Teacher, splits: int, generator: torch.Generator) -> tuple[Teacher, Tensor]:
    """Each event split in up to `splits`, by what the children tell; and the coarse event of the top ones.

    With as many splits as there are contents nothing is lost.
    """
    events: dict[str, Tensor] = {}
    sizes: dict[str, int] = {}
    for name in coarse.graph.order:
        below = coarse.graph.children[name]
        if not below:
            events[name], sizes[name] = coarse.events[name], coarse.sizes[name]
            continue
        joint = torch.zeros(len(coarse.p), dtype=torch.long)
        for child in below:
            joint = joint * sizes[child] + events[child]
        # the children's joint events in random order, dealt out to the parts of their coarse event
        known, place = torch.unique(joint, return_inverse=True)
        place = torch.randperm(len(known), generator=generator)[place]
        own = torch.zeros(len(known), dtype=torch.long).index_copy_(0, place, coarse.events[name])
        part = torch.zeros(len(known), dtype=torch.long)
        for event in range(coarse.sizes[name]):
            among = (own == event).nonzero().squeeze(1)
            part[among] = torch.arange(len(among)) % splits
        pairs, events[name] = torch.unique((own * splits + part)[place], return_inverse=True)
        sizes[name] = len(pairs)
    return Teacher(coarse.graph, coarse.inputs, coarse.p, events, sizes), pairs // splits


def tables(seed: int) -> Teacher:
    """Two events in each region over eight positions, by random tables."""
    generator = torch.Generator().manual_seed(seed)
    graph = headed(tree(8))
    rules: dict[str, Any] = {name: random_table(4, 2, generator) for name in summed_up(graph)}
    return enumerate_teacher(graph, rules, p=uneven(2**8, generator))


def graded(splits: int) -> dict[str, Any]:
    runs, teachers = [], []
    for seed in range(int(DRIFT["seeds"])):
        coarse = tables(seed)
        teacher, label = split_events(coarse, splits, torch.Generator().manual_seed(seed))
        runs.append(run(teacher, replace(start(coarse, seed), targets=one_hot(label))))
        teachers.append(teacher)
    return drift(runs, teachers)


def named(rule: str) -> dict[str, Any]:
    """Positions are independent, and on as often as makes both labels likely."""
    # XOR over eight positions is more than descent on inputs learns in so many steps
    graph = headed({"majority": tree(9, 3), "xor": tree(4)}.get(rule, tree(8)))
    often = {"and": 0.5 ** (1 / 8), "or": 1 - 0.5 ** (1 / 8)}.get(rule, 0.5)
    inputs = enumerate_teacher(graph).inputs.double()
    p = (inputs * often + (1 - inputs) * (1 - often)).prod(1)
    teacher = enumerate_teacher(graph, dict.fromkeys(summed_up(graph), rule), p=p)
    runs = [run(teacher, start(teacher, seed)) for seed in range(int(DRIFT["seeds"]))]
    return drift(runs, [teacher] * len(runs))


def start(teacher: Teacher, seed: int) -> Student:
    return random_student(
        teacher.model, int(DRIFT["nodes"]), generator=torch.Generator().manual_seed(1000 + seed)
    )


def run(teacher: Teacher, student: Student) -> Race:
    return race(teacher, student, int(DRIFT["steps"]), DRIFT["rate"], records=int(DRIFT["records"]))


def drift(runs: list[Race], teachers: list[Teacher]) -> dict[str, Any]:
    """Means over runs, of bits over regions that sum up and of broadness over edges."""
    lost, told, broad = [], [], []
    for teacher in teachers:
        inner = summed_up(teacher.graph)
        lost.append(mean([lost_bits(teacher, name) for name in inner]))
        told.append(mean([entropy(teacher.prior(name)) for name in inner]))
        broad.append(mean([broadness_gap(teacher, *edge) for edge in teacher.graph.edges]))
    curves = {
        name: [mean(values) for values in zip(*(getattr(one, name) for one in runs), strict=True)]
        for name in ("loss_inputs", "loss_events", "loss_carried", "apart")
    }
    return {
        "lost_bits": summary(lost),
        "told_bits": summary(told),
        "broadness": summary(broad),
        "apart": summary([one.apart[-1] for one in runs])
        | {"median": median([one.apart[-1] for one in runs])},
        "first": summary([one.apart[1] for one in runs]),  # after one step
        "largest": max(one.largest[-1] for one in runs),
        **{
            name: summary([getattr(one, name)[-1] for one in runs])
            for name in ("loss_inputs", "loss_events", "loss_carried")
        },
        "loss_start": summary([one.loss_inputs[0] for one in runs]),
        "each": {
            "lost_bits": lost,
            "broadness": broad,
            "apart": [one.apart[-1] for one in runs],
            "loss_inputs": [one.loss_inputs[-1] for one in runs],
            "loss_carried": [one.loss_carried[-1] for one in runs],
        },
        "curve": {"steps": list(runs[0].steps), **curves},
    }


def measure_all(out: Path = RESULTS) -> None:
    entries: dict[str, Any] = {}
    for graph in GRAPHS:
        for net in NETS:
            entries[f"exact/{graph}/{net}"] = lambda graph=graph, net=net: exact(graph, net)
    for splits in SPLITS:
        entries[f"graded/{splits}"] = lambda splits=splits: graded(splits)
    for rule in NAMED:
        entries[f"named/{rule}"] = lambda rule=rule: named(rule)
    measure(out / "dynamics.json", SETTINGS, entries)


if __name__ == "__main__":
    measure_all(folder_asked_for(__doc__, RESULTS))
