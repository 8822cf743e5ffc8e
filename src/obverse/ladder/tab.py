"""The Ladder tab: a small region graph, its teacher, and backpropagation on inputs beside that on events.

The graph comes from the page: leaves, and regions that join others. Not for real nets: see `obverse ladder`.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from .._core import BadInput
from ..present import Fields, Subject, Tab
from . import RegionGraph, Student, compare, enumerate_teacher, random_student, tree, windows
from ._compare import Sides
from ._dynamics import Lap, laps
from ._summaries import KINDS
from ._teacher import Teacher

MOST_LEAVES = 8
MOST_REGIONS = 40  # leaves included
MOST_INPUTS = 1024
MOST_LABELS = 64  # events of the top region, each a node of the student
MOST_STEPS = 150
WORK = 3 * 2**20  # inputs × edges × (1 + steps)
SHOWN = 16  # rows and columns of a matrix that are sent
DECIDES = ("leaves", "regions", "summary", "values", "nodes", "seed", "linear", "lr")  # on the course
PRESETS = ("tree", "windows", "threes")
# What a gap has to be below to count as none: float64 adds up some thousand terms of rounding 1e-16.
EXACT = 1e-9


def preset_answer(subject: Subject, fields: Fields) -> dict[str, Any]:
    """The regions of a graph that has a name, to begin with."""
    kind, leaves = fields.choice("kind", PRESETS), fields.whole("leaves", 2, MOST_LEAVES)
    graph = {"tree": tree(leaves), "windows": windows(leaves, 2, 1), "threes": tree(leaves, 3)}[kind]
    if len(graph.order) > MOST_REGIONS:
        raise BadInput(f"at most {MOST_REGIONS} regions", got=len(graph.order), do="take fewer leaves")
    names = {
        name: f"r{index}" for index, name in enumerate(name for name in graph.order if graph.children[name])
    }
    names |= {name: f"x{graph.positions[name][0] + 1}" for name in graph.lowest}
    regions = [
        {"name": names[name], "children": [names[child] for child in graph.children[name]]}
        for name in graph.order
        if graph.children[name]
    ]
    return {"leaves": leaves, "regions": regions}


def ladder_answer(subject: Subject, fields: Fields) -> dict[str, Any]:
    """ΔW of every edge, averaged over inputs and from events, after some steps of gradient descent."""
    steps = fields.whole("steps", 0, MOST_STEPS)
    course = _course(json.dumps({name: fields.raw(name) for name in DECIDES}))
    teacher, graph = course.teacher, course.teacher.graph
    if len(teacher.p) * len(graph.edges) * (1 + steps) > WORK:
        raise BadInput(
            "a graph that is worked through in a moment",
            got=f"{len(teacher.p):,} inputs, {len(graph.edges)} edges and {steps} steps",
            do="take fewer leaves, values of an input or steps",
        )
    seen = course.upto(steps)
    found = compare(teacher, seen[-1].by_inputs)
    which = fields.choice("message", ("weight", "recursive"))
    return {
        "inputs": len(teacher.p),
        "events": dict(teacher.sizes),
        "losses": [[lap.loss_inputs, lap.loss_events] for lap in seen],
        "worst": {"weight": found.worst, "recursive": found.worst_recursive},
        "exact": max(found.worst, found.worst_recursive) < EXACT,
        "edges": [
            {
                "parent": parent,
                "child": child,
                "gap": getattr(edge, which).gap.relative,
                "focus": edge.focus,
                "broadness": edge.broadness,
                "fourth": edge.fourth.relative,
                **_matrices(getattr(edge, which)),
            }
            for (parent, child), edge in found.edges.items()
        ],
    }


class Course:
    """A descent under way, and what it has passed: a step more does not begin at the start again."""

    def __init__(self, teacher: Teacher, student: Student, lr: float) -> None:
        self.teacher = teacher
        self._student, self._lr = student, lr
        self._begin()

    def _begin(self) -> None:
        self._laps = laps(self.teacher, self._student, self._lr)
        self._seen: list[Lap] = []

    def upto(self, steps: int) -> list[Lap]:
        try:
            while len(self._seen) <= steps:
                self._seen.append(next(self._laps))
        except Exception:  # as a rule it diverged: the next one who asks is told the same
            self._begin()
            raise
        return self._seen[: steps + 1]


@lru_cache(maxsize=8)
def _course(question: str) -> Course:
    fields = Fields(json.loads(question))
    teacher = _teacher(_graph(fields), fields)
    return Course(teacher, _student(teacher, fields), fields.number("lr", 0.001, 10))


def _graph(fields: Fields) -> RegionGraph:
    leaves = fields.whole("leaves", 1, MOST_LEAVES)
    regions = fields.raw("regions")
    if not isinstance(regions, list) or not 1 <= len(regions) <= MOST_REGIONS - leaves:
        raise BadInput(
            f"1 to {MOST_REGIONS - leaves} regions above the leaves",
            got=len(regions) if isinstance(regions, list) else type(regions).__name__,
            do="join leaves into regions, up to one top",
        )
    children: dict[str, list[str]] = {f"x{index + 1}": [] for index in range(leaves)}
    for region in regions:
        name = region.get("name") if isinstance(region, dict) else None
        if not isinstance(name, str) or not 0 < len(name) <= 8 or name in children:
            raise BadInput("a name of its own for each region", got=repr(name)[:40], do="rename it")
        below = region.get("children")
        names = isinstance(below, list) and all(isinstance(one, str) and len(one) <= 8 for one in below)
        if not names or not 1 <= len(below) <= MOST_REGIONS:
            raise BadInput(f"regions that {name} joins", got=repr(below)[:40], do="choose some")
        children[name] = below
    return RegionGraph.of(children, {f"x{index + 1}": [index] for index in range(leaves)})


def _teacher(graph: RegionGraph, fields: Fields) -> Teacher:
    values = fields.whole("values", 2, 3)
    if values ** len(graph.lowest) > MOST_INPUTS:
        raise BadInput(
            f"at most {MOST_INPUTS:,} inputs",
            got=f"{values} to the power {len(graph.lowest)}",
            do="take fewer leaves or values of an input",
        )
    teacher = enumerate_teacher(graph, fields.choice("summary", KINDS), values=values)
    if teacher.sizes[graph.top] > MOST_LABELS:
        raise BadInput(
            f"at most {MOST_LABELS} events of the top region",
            got=teacher.sizes[graph.top],
            do="take fewer leaves or values of an input, or a teacher that sums up: majority, xor, and, or",
        )
    return teacher


def _student(teacher: Teacher, fields: Fields) -> Student:
    return random_student(
        teacher.model,
        fields.whole("nodes", 1, 6),
        generator=torch.Generator().manual_seed(fields.whole("seed", 0, 10**6)),
        activation="linear" if fields.flag("linear") else "relu",
    )


def _matrices(sides: Sides) -> dict[str, Any]:
    """Both, at most 16 × 16 of them, in units of the largest entry of the first."""
    size = max(float(sides.brute.abs().max()), 1e-300)
    rows, columns = sides.brute.shape
    return {
        "shape": [rows, columns],
        "exact": _part(sides.brute, size),
        "reformulated": _part(sides.reformulated, size),
    }


def _part(matrix: Tensor, size: float) -> list[list[float]]:
    return [[float(f"{value:.5g}") for value in row] for row in (matrix[:SHOWN, :SHOWN] / size).tolist()]


TABS = (
    Tab(
        "ladder.js",
        "ladder/tab.js",
        {"preset": preset_answer, "ladder": ladder_answer},
        lambda subject: {
            "ladder": {
                "summaries": KINDS,
                "most_leaves": MOST_LEAVES,
                "most_regions": MOST_REGIONS,
                "most_steps": MOST_STEPS,
            }
        },
    ),
)
