"""Ladders to make pages from: small real ones, and ones with an attack in every text."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import torch

from obverse.ladder._measure import measure_net, measure_teacher
from obverse.ladder._regions import RegionGraph, tree, windows
from obverse.ladder._student import random_student
from obverse.ladder._teacher import enumerate_teacher, sample_teacher
from obverse.ladder.results import Ladder
from obverse.nets._local import local

ATTACK = "</style></title></svg></table><script>alert(1)</script><b onclick=alert(2)>'\"" + "x" * 5000
VERSIONS = {"obverse": "0.5", "torch": "2.13"}


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@cache
def sample_ladder(kind: str = "exact") -> Ladder:
    """`exact`, `lossy` with both trainings, `broad` with many regions, or `net`."""
    return replace(_net() if kind == "net" else _teacher(kind), seconds=0.25, versions=VERSIONS)


def _teacher(kind: str) -> Ladder:
    graph: RegionGraph = {"exact": tree(4), "lossy": windows(5, 3, 2), "broad": tree(32)}[kind]
    if kind == "broad":
        teacher = sample_teacher(graph, "majority", count=60, generator=generator())
    else:
        teacher = enumerate_teacher(graph, "full" if kind == "exact" else "majority")
    student = random_student(teacher.model, 2, generator=generator())
    settings = {"graph": "tree", "leaves": graph.inputs, "nodes": 2, "norm": None, "seed": 0}
    steps = 40 if kind == "lossy" else 0
    return measure_teacher(teacher, student, subject=f"a {kind} tree", settings=settings, steps=steps)


def _net() -> Ladder:
    kinds = torch.rand(3, 1, 8, 8, generator=generator(), dtype=torch.float64)
    y = torch.arange(90) % 3
    x = kinds[y] + 0.3 * torch.rand(90, 1, 8, 8, generator=generator(1), dtype=torch.float64)
    x[:, :, :4, :4] = 0  # a corner where there is nothing to explain
    windows = ((4, 4), (2, 2))
    start, net = (local((1, 8, 8), 3, windows, generator=generator(seed)).double().eval() for seed in (2, 3))
    settings = {"windows": "4/4,2/2", "events": 4, "shared": False, "norm": None, "seed": 0}
    return measure_net(
        net,
        (x[:60], y[:60]),
        (x[60:], y[60:]),
        events=4,
        sweep=(2, 8),
        start=start,
        subject="digits",
        settings=settings,
    )


def hostile(found: Ladder) -> Ladder:
    """The same with an attack in every text."""

    def name(own: str) -> str:
        return f"{own}{ATTACK}"

    return replace(
        found,
        subject=ATTACK,
        settings={ATTACK: ATTACK, "graph": ATTACK, "windows": ATTACK, "events": 4},
        regions=tuple(replace(one, name=name(one.name)) for one in found.regions),
        edges=tuple(replace(one, parent=name(one.parent), child=name(one.child)) for one in found.edges),
        matrices=tuple(
            replace(one, parent=name(one.parent), child=name(one.child)) for one in found.matrices
        ),
        versions={ATTACK: ATTACK},
    )
