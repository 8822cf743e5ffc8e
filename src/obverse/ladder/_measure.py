"""From a teacher and a student, or a real net and its images, to the record of how far events go.

Not for the command line, nor for training a net.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from math import hypot
from statistics import median, pstdev
from time import perf_counter
from typing import Any, Literal

import torch
from torch import Tensor

from .._core import BadInput, Progress, versions
from ..nets import LocalNet
from ._agreement import Agreement, agreements
from ._cluster import event_teacher, find_centres, shuffled
from ._compare import Comparison, EdgeComparison, compare, compare_pass, standard_error
from ._dynamics import Race, race
from ._gaps import rounding
from ._passes import Pass, propagate
from ._real import net_graph, net_student, patches, shared_edges
from ._regions import Edge, RegionGraph
from ._student import Student
from ._teacher import Teacher
from .results import (
    LARGEST,
    MOST_EDGES,
    MOST_MATRICES,
    EdgeFound,
    Explained,
    Gaps,
    Ladder,
    LevelFound,
    Matrix,
    Measured,
    RegionFound,
    Training,
)

DIGITS = 4  # of a probability in a file
GROUPS = 20  # of drawn inputs that are left out in turn, for standard errors
MOST_WORK = 4_000_000  # inputs × edges up to which there are standard errors: half a minute


def measure_teacher(
    teacher: Teacher,
    student: Student,
    *,
    subject: str = "",
    settings: Mapping[str, Any] | None = None,
    steps: int = 0,
    lr: float = 0.1,
    width: int | None = None,
    progress: Progress | None = None,
) -> Ladder:
    """Brute force beside the reformulation; with `steps`, both trainings too, of at most so many steps.

    `width`: how many positions are in a row, where they form a grid.
    """
    began = perf_counter()
    few = GROUPS <= len(teacher.p) <= MOST_WORK // len(teacher.graph.edges)
    drawn = GROUPS if teacher.sampled and few else 0
    total = 1 + drawn + steps

    def tell(done: int, now: str) -> None:
        if progress:
            progress(done, total, now)

    tell(0, "comparison")
    found = compare(teacher, student)
    errors: tuple[float | None, float | None] = None, None
    if drawn and max(found.worst, found.worst_recursive) > rounding(len(teacher.p)):
        errors = _errors(teacher, student, lambda done: tell(1 + done, "standard errors"))

    def tell_step(step: int, _: int, now: str) -> None:
        tell(1 + drawn + step, now)

    run = race(teacher, student, steps, lr, progress=tell_step) if steps else None
    return Ladder(
        kind="teacher",
        subject=subject,
        settings=dict(settings or {}),
        inputs=len(teacher.p),
        worst_error=errors[0],
        worst_recursive_error=errors[1],
        accuracy=None,
        measured=(),
        training=None if run is None else _training(run),
        **_described(found, teacher, student, None, width),
        seconds=perf_counter() - began,
        versions=versions(),
    )


def measure_net(
    net: LocalNet,
    images: tuple[Tensor, Tensor],
    held_out: tuple[Tensor, Tensor],
    *,
    events: int = 8,
    sweep: Sequence[int] = (),
    start: LocalNet | None = None,
    seed: int = 0,
    subject: str = "",
    settings: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Ladder:
    """A real net on images × labels: their events by k-means, `events` a region, and what these tell.

    `held_out` images have the events of the centres that were found on the others. `sweep`: further numbers
    of events. `start`: the net before it was trained, measured beside it. Each beside the control, where
    events are dealt to the images at random.
    """
    began = perf_counter()
    sets: dict[Literal["clustered", "held out"], tuple[Tensor, Tensor]] = {
        "clustered": images,
        "held out": held_out,
    }
    for pictures, labels in sets.values():
        _check_pictures(net, pictures, labels)
    graph, classes = net_graph(net), net.output.out_features
    shared = shared_edges(net, graph)
    nets: dict[Literal["start", "trained"], LocalNet] = {"trained": net}
    if start is not None:
        nets["start"] = start
    students = {name: net_student(one, graph) for name, one in nets.items()}
    lowest = {name: patches(pictures, graph) for name, (pictures, _) in sets.items()}
    passes: dict[tuple[str, str], Pass] = {}
    measured: list[Measured] = []
    detail: tuple[Comparison, Teacher] | None = None
    counts = sorted({events, *sweep})
    for done, count in enumerate(counts):
        if progress:
            progress(done, len(counts), f"{count} events a region")
        centres = find_centres(images[0], graph, count, seed=seed)
        for where, (pictures, labels) in sets.items():
            teacher = event_teacher(pictures, labels, classes, graph, centres)
            dealt = shuffled(teacher, torch.Generator().manual_seed(seed))
            for stage, student in students.items():
                if (where, stage) not in passes:  # the inputs do not know how many events there are
                    passes[where, stage] = propagate(teacher, student, lowest[where])
                for one in (teacher, dealt):
                    found = compare_pass(one, student, passes[where, stage], lowest[where])
                    measured.append(
                        Measured(
                            stage,
                            where,
                            one is dealt,
                            count,
                            found.loss,
                            found.reformulated_loss,
                            _levels(found, one, student, agreements(found, one.model, shared)[1]),
                        )
                    )
                    asked = (count, where, stage) == (events, "clustered", "trained")
                    if asked and one is teacher:
                        detail = found, teacher
    assert detail is not None
    with torch.no_grad():
        right = float((net.eval()(held_out[0]).argmax(1) == held_out[1]).double().mean())
    if progress:
        progress(len(counts), len(counts), "done")
    return Ladder(
        kind="net",
        subject=subject,
        settings=dict(settings or {}),
        inputs=len(images[0]),
        worst_error=None,
        worst_recursive_error=None,
        accuracy=right,
        measured=tuple(measured),
        training=None,
        **_described(*detail, students["trained"], shared, net.input_shape[-1]),
        seconds=perf_counter() - began,
        versions=versions(),
    )


def _errors(teacher: Teacher, student: Student, on_group: Callable[[int], None]) -> tuple[float, float]:
    """Standard errors of the largest gap of ΔW edge by edge and through the recursion, by one jackknife."""
    recursive: list[float] = []

    def worst(found: Comparison) -> float:
        recursive.append(found.worst_recursive)
        on_group(len(recursive))
        return found.worst

    error = standard_error(teacher, student, worst, GROUPS)
    return error, (GROUPS - 1) ** 0.5 * pstdev(recursive)


def _training(run: Race) -> Training:
    return Training(
        run.lr, run.steps, run.loss_inputs, run.loss_events, run.loss_carried, run.largest, run.apart
    )


def _check_pictures(net: LocalNet, pictures: Tensor, labels: Tensor) -> None:
    if len(pictures) == 0 or pictures.shape[1:] != net.input_shape or len(labels) != len(pictures):
        raise BadInput(
            f"images of shape {net.input_shape} and as many labels",
            got=f"shape {tuple(pictures.shape)} and {len(labels)} labels",
            do="give those that the net takes",
        )


def _described(
    found: Comparison,
    teacher: Teacher,
    student: Student,
    shared: Mapping[Edge, str] | None,
    width: int | None,
) -> dict[str, Any]:
    """What a Ladder says of one comparison."""
    graph = found.graph
    edges, levels = agreements(found, teacher.model, shared)
    kept = graph.edges if len(graph.edges) <= MOST_EDGES else graph.edges[-MOST_EDGES:]
    return {
        "sampled": found.sampled,
        "loss": found.loss,
        "reformulated_loss": found.reformulated_loss,
        "regions": tuple(_region(found, teacher, student, name) for name in graph.order),
        "edges": tuple(EdgeFound(*edge, _gaps(found.edges[edge]), _explained(edges[edge])) for edge in kept),
        "edges_total": len(graph.edges),
        "levels": _levels(found, teacher, student, levels),
        "matrices": tuple(_matrix(teacher, edge) for edge in chosen_edges(graph, width)),
    }


def _region(found: Comparison, teacher: Teacher, student: Student, name: str) -> RegionFound:
    own = found.regions.get(name)
    return RegionFound(
        name,
        found.graph.level[name],
        teacher.sizes[name],
        student.nodes[name],
        None if own is None else own.decorrelation.relative,
        None if own is None else own.decorrelation_back.relative,
    )


def _levels(
    found: Comparison, teacher: Teacher, student: Student, by_level: Mapping[int, Agreement]
) -> tuple[LevelFound, ...]:
    graph, nodes = found.graph, student.nodes
    made = []
    for level, agreement in by_level.items():
        names = [name for name in found.regions if graph.level[name] == level]
        gaps = [_gaps(one) for (parent, _), one in found.edges.items() if graph.level[parent] == level]
        made.append(
            LevelFound(
                level,
                len(names),
                len(gaps),
                max(teacher.sizes[name] for name in names),
                max(nodes[name] for name in names),
                _together(gaps, median),
                _together(gaps, max),
                median(found.regions[name].decorrelation.relative for name in names),
                median(found.regions[name].decorrelation_back.relative for name in names),
                _explained(agreement),
            )
        )
    return tuple(made)


def _together(gaps: Sequence[Gaps], pick: Callable[[list[float]], float]) -> Gaps:
    picked: dict[str, float | None] = {}
    for field in fields(Gaps):
        known = [value for one in gaps if (value := getattr(one, field.name)) is not None]
        picked[field.name] = pick(known) if known else None
    return Gaps(**picked)  # type: ignore[arg-type]  # only what may be None is None everywhere


def _gaps(one: EdgeComparison) -> Gaps:
    return Gaps(
        one.focus,
        one.focus_chance,
        one.broadness,
        one.forward.gap.relative,
        one.backward.gap.relative,
        one.weight.gap.relative,
        one.recursive.gap.relative,
        one.fourth.relative,
    )


def _explained(one: Agreement) -> Explained:
    return Explained(
        one.forward.explained, one.backward.explained, one.weight.explained, one.recursive.explained
    )


def chosen_edges(graph: RegionGraph, width: int | None = None) -> list[Edge]:
    """Edges whose P is shown: of every level as many, those in the middle of the input first.

    Regions that see the same positions have the same events: theirs is shown where there is no other.
    `width`: positions in a row, for images: position = row · width + column. None: all are in one row.
    """
    wide = graph.inputs if width is None else width
    height = -(-graph.inputs // wide)

    def off(edge: Edge) -> float:
        places = [divmod(position, wide) for position in graph.positions[edge[1]]]
        row, column = (sum(part) / len(places) for part in zip(*places, strict=True))
        return hypot(row - (height - 1) / 2, column - (wide - 1) / 2)

    by_level: dict[int, list[Edge]] = {}
    told = [edge for edge in graph.edges if graph.positions[edge[0]] != graph.positions[edge[1]]]
    for edge in sorted(told or graph.edges, key=off):
        by_level.setdefault(graph.level[edge[0]], []).append(edge)
    levels = sorted(by_level)
    each, skip = max(1, MOST_MATRICES // len(levels)), -(-len(levels) // MOST_MATRICES)
    return [edge for level in levels[::skip] for edge in by_level[level][:each]]


def _matrix(teacher: Teacher, edge: Edge) -> Matrix:
    link = teacher.conditional(*edge)
    inside = (link.rows < LARGEST) & (link.columns < LARGEST)
    height, width = (min(side, LARGEST) for side in link.shape)
    rows = [[0.0] * width for _ in range(height)]
    for row, column, value in zip(
        link.rows[inside].tolist(), link.columns[inside].tolist(), link.values[inside].tolist(), strict=True
    ):
        rows[row][column] = min(1.0, round(value, DIGITS))
    return Matrix(*edge, link.shape, tuple(map(tuple, rows)))
