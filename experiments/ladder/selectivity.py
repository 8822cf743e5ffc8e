"""The paper's open question of §3.2: does gradient descent make g_j(z) tell the hidden events?

    python -m experiments.ladder.selectivity [--out FOLDER]   (minutes)

Teachers sum up; students see inputs and labels, and no event between. Along descent, for each level: how much
of a node's marginalized gradient g_j(x_α), and of its activation f_j(x_α), the event z_α explains, how often
the paper's criterion g_j(a) > 0 > g_j(b) holds, and the same with events shuffled among contents. Beside each
run another from the same start with labels shuffled among inputs: there the events mean nothing, and what is
left is what any descent gives. Writes selectivity.json: means over seeds, with standard errors.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from obverse.ladder._passes import propagate
from obverse.ladder._reformulation import reformulate
from obverse.ladder._regions import tree
from obverse.ladder._selectivity import Side, chance_of_region, of_region
from obverse.ladder._student import Norm, Student, random_student
from obverse.ladder._summaries import random_table
from obverse.ladder._teacher import Teacher, enumerate_teacher

from .._lab.arguments import folder_asked_for
from .._lab.result_files import mean, measure, summary
from .dynamics import headed, one_hot, summed_up

RESULTS = Path(__file__).parent / "results"
STEPS = 1000
AT = (0, 1, 3, 10, 30, 100, 300, 1000)
NODES, RATE, DRAWS = 8, 0.1, 20
SEEDS = {"tables": 10, "majority": 20, "and-or-and": 20, "xor-and-or": 20}
NORMS: dict[str, Norm | None] = {"plain": None, "batch norm": "before"}
SIDES: tuple[Side, ...] = ("gradient", "active")
SETTINGS = {"steps": STEPS, "at": AT, "nodes": NODES, "rate": RATE, "draws": DRAWS, "seeds": SEEDS}


def teacher_of(kind: str, seed: int) -> Teacher:
    """ "tables": random ones, new for each seed, from 9 to 3 events; the others are one teacher each."""
    graph = headed(tree(9, 3) if kind == "majority" else tree(8))
    if kind == "tables":
        generator = torch.Generator().manual_seed(seed)
        return enumerate_teacher(
            graph, {name: random_table(9, 3, generator) for name in summed_up(graph)}, values=3
        )
    rules = kind.split("-")  # by level from below
    return enumerate_teacher(
        graph, {name: rules[min(graph.level[name], len(rules)) - 1] for name in summed_up(graph)}
    )


def run(teacher: Teacher, labels: Tensor, start: Student, seed: int) -> dict[int, dict[str, Any]]:
    """Descent to `labels`, and selectivity for the teacher's events on the way: by step, then level."""
    # Events that tell everything make the reformulation exact: the same descent, without a pass over inputs.
    every = enumerate_teacher(teacher.graph, values=teacher.sizes[teacher.graph.lowest[0]])
    by_event = torch.zeros(len(every.p), dtype=torch.long).index_copy_(0, every.labels, labels)
    student = replace(start, targets=one_hot(by_event))
    told = replace(teacher, events={**teacher.events, teacher.graph.top: labels})
    found = {}
    for step in range(STEPS + 1):
        if step in AT:
            found[step] = selectivities(teacher, told, student, torch.Generator().manual_seed(seed))
        student = student.stepped(reformulate(every.model, student).step, RATE)
    return found


def selectivities(
    teacher: Teacher, told: Teacher, student: Student, generator: torch.Generator
) -> dict[str, Any]:
    seen = propagate(told, replace(student, targets=one_hot(torch.arange(told.sizes[told.graph.top]))))
    top = told.graph.top
    found: dict[str, Any] = {
        "loss": seen.loss,
        "accuracy": float(told.p @ (seen.active[top].argmax(1) == told.labels).double()),
    }
    levels: dict[str, list[dict[str, float]]] = {}
    for name in summed_up(teacher.graph):
        for side in SIDES:
            own = of_region(teacher, seen, name, side)
            lot = chance_of_region(teacher, seen, name, side, generator=generator, draws=DRAWS)
            levels.setdefault(f"{side} {teacher.graph.level[name]}", []).append(
                {
                    **{key: own.mean(key) for key in ("explained", "correlation", "sign", "told")},
                    **{f"chance {key}": lot.mean(key) for key in ("explained", "correlation", "sign")},
                    "alive": float(own.alive.double().mean()),
                }
            )
    for level, regions in levels.items():
        found[level] = {key: mean([region[key] for region in regions]) for key in regions[0]}
    return found


def measured(kind: str, norm: str) -> dict[str, Any]:
    runs: dict[str, list[dict[int, dict[str, Any]]]] = {"true": [], "shuffled": []}
    for seed in range(SEEDS[kind]):
        teacher = teacher_of(kind, seed)
        generator = torch.Generator().manual_seed(1000 + seed)
        start = random_student(teacher.model, NODES, generator=generator, norm=NORMS[norm])
        mixed = teacher.labels[torch.randperm(len(teacher.p), generator=generator)]
        runs["true"].append(run(teacher, teacher.labels, start, seed))
        runs["shuffled"].append(run(teacher, mixed, start, seed))
    found: dict[str, Any] = {"contents": contents(teacher_of(kind, 0))}
    for name, all_of in runs.items():
        found[name] = {str(step): averaged([one[step] for one in all_of]) for step in AT}
    found["differences"] = {
        level: {
            "end − start": summary(
                [explained(one, level, STEPS) - explained(one, level, 0) for one in runs["true"]]
            ),
            "end − chance": summary(
                [explained(one, level, STEPS) - one[STEPS][level]["chance explained"] for one in runs["true"]]
            ),
            **{
                f"true − shuffled at {step}": summary(
                    [
                        explained(one, level, step) - explained(other, level, step)
                        for one, other in zip(runs["true"], runs["shuffled"], strict=True)
                    ]
                )
                for step in AT
            },
        }
        for level in runs["true"][0][0]
        if level not in ("loss", "accuracy")
    }
    return found


def explained(one: dict[int, dict[str, Any]], level: str, step: int) -> float:
    return float(one[step][level]["explained"])


def contents(teacher: Teacher) -> dict[str, list[int]]:
    """Contents and events of a region of each level."""
    return {
        str(teacher.graph.level[name]): [int(teacher.contents(name).max()) + 1, teacher.sizes[name]]
        for name in summed_up(teacher.graph)
    }


def averaged(results: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in results[0].items():
        if isinstance(value, dict):
            found[key] = {inner: summary([result[key][inner] for result in results]) for inner in value}
        else:
            found[key] = summary([result[key] for result in results])
    return found


def measure_all(out: Path = RESULTS) -> None:
    entries = {
        f"{kind}/{norm}": lambda kind=kind, norm=norm: measured(kind, norm)
        for kind in ("majority", "and-or-and", "xor-and-or", "tables")
        for norm in NORMS
    }
    measure(out / "selectivity.json", SETTINGS, entries)


if __name__ == "__main__":
    measure_all(folder_asked_for(__doc__, RESULTS))
