"""`obverse ladder` without --data: a discrete teacher and its student. Not for what is printed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import isqrt
from pathlib import Path
from typing import TYPE_CHECKING

from ..._core import BadInput
from ...present import layer_progress, make_folder, options

if TYPE_CHECKING:
    import torch

    from .._regions import RegionGraph
    from .._student import Activation, Loss, Norm
    from .._teacher import Teacher
    from ..results import Ladder

GRAPHS = {"tree": "a tree of", "windows": "windows over", "grid": "a grid of"}
ACTIVATIONS, LOSSES = ("relu", "linear"), ("square", "softmax")
MOST_EVENTS = 64  # of the top region that have a node each
CLASSES = 2  # to which they are dealt where there are more


@dataclass(frozen=True)
class TeacherSettings:
    """What is asked of a teacher and its student."""

    graph: str = "tree"
    leaves: int = 8
    size: int = 2
    stride: int | None = None
    summary: str = "full"
    values: int = 2
    sample: int | None = None
    activation: Activation = "relu"
    loss: Loss = "square"
    steps: int = 0
    nodes: str = "3"
    norm: Norm | None = None
    lr: float = 0.1
    seed: int = 0


def run_teacher(asked: TeacherSettings, out: Path | None) -> Ladder:
    import torch

    from .._measure import measure_teacher
    from .._student import random_student

    nodes = _check_teacher(asked)
    generator = torch.Generator().manual_seed(asked.seed)
    teacher = _teacher(asked, generator)
    top, targets = teacher.sizes[teacher.graph.top], None
    if top > MOST_EVENTS:
        dealt = torch.randint(CLASSES, (top,), generator=generator)
        targets = torch.eye(CLASSES, dtype=torch.float64)[dealt]
    student = random_student(
        teacher.model,
        nodes,
        generator=generator,
        norm=asked.norm,
        targets=targets,
        activation=asked.activation,
        loss=asked.loss,
    )
    make_folder(out)
    subject = f"{GRAPHS[asked.graph]} {asked.leaves} with summary {asked.summary}"
    settings = {**asdict(asked), "nodes": nodes}
    if not asked.steps:
        del settings["lr"]
    with layer_progress(subject) as progress:
        return measure_teacher(
            teacher,
            student,
            subject=subject,
            settings=settings,
            steps=asked.steps,
            lr=asked.lr,
            width=isqrt(asked.leaves) if asked.graph == "grid" else None,
            progress=progress,
        )


def _check_teacher(asked: TeacherSettings) -> int:
    """The number of nodes, if all settings make sense together."""
    from .._summaries import KINDS

    counts = options.counts(asked.nodes, "--nodes")
    if len(counts) != 1:
        raise BadInput("one number for --nodes without --data", got=asked.nodes, do="e.g. 3")
    options.check_least("--steps", asked.steps, 0)
    options.check_least("--values", asked.values, 1)
    options.check_choice("--summary", asked.summary, KINDS)
    if asked.summary != "full" and asked.values > 2:
        raise BadInput(
            f"two values for --summary {asked.summary}",
            got=f"--values {asked.values}",
            do="leave out --values or use --summary full",
        )
    options.check_choice("--activation", asked.activation, ACTIVATIONS)
    options.check_choice("--loss", asked.loss, LOSSES)
    return counts[0]


def _teacher(asked: TeacherSettings, generator: torch.Generator) -> Teacher:
    from .._teacher import MOST_INPUTS, enumerate_teacher, sample_teacher

    graph = _graph(asked)
    if asked.sample is not None:
        return sample_teacher(
            graph, asked.summary, values=asked.values, count=asked.sample, generator=generator
        )
    if asked.values**asked.leaves > MOST_INPUTS:
        raise BadInput(
            f"at most {MOST_INPUTS:,} inputs without --sample",
            got=f"{asked.values} values at {asked.leaves} positions",
            do="draw some, e.g. --sample 100000",
        )
    return enumerate_teacher(graph, asked.summary, values=asked.values)


def _graph(asked: TeacherSettings) -> RegionGraph:
    from .._regions import grid, tree, windows

    kind, leaves, size, stride = asked.graph, asked.leaves, asked.size, asked.stride
    options.check_choice("--graph", kind, GRAPHS)
    options.check_least("--leaves", leaves, 2)
    if kind == "tree":
        if stride not in (None, size):
            raise BadInput("no --stride with a tree", got=stride, do="use --graph windows")
        return tree(leaves, size)
    if kind == "windows":
        return windows(leaves, size, 1 if stride is None else stride)
    side = isqrt(leaves)
    if side * side != leaves:
        raise BadInput("--leaves that are a square with a grid", got=leaves, do="e.g. 9 or 16")
    return grid(side, side, size, size if stride is None else stride)
