"""The ladders that claims draw: graphs, laws of inputs, events, students. Nothing is measured here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from ..._core import BadInput
from ...ladder import (
    EventModel,
    Pass,
    RegionGraph,
    Step,
    Student,
    Teacher,
    enumerate_teacher,
    grid,
    propagate,
    random_student,
    random_table,
    renumber,
    tree,
    windows,
)
from ..results import Setting
from ._draws import chances, check_choice, check_counts, normal

ROUNDING = 1e-12  # of averages over some dozen inputs in float64, through a few layers
TRIALS = 110  # HoldsIn asks for 104 trials without exception
DRAWS = 1000  # for one student whose gates events settle, before it is said that there is none
# A child with parents on two levels, and one with two parents on the same.
MIXED = RegionGraph.of(
    {"top": ["m", "n", "c"], "m": ["a", "b"], "n": ["b", "c"], "a": [], "b": [], "c": []},
    {"a": [0], "b": [1, 2], "c": [3]},
)
# Graphs and how many values a position takes: 16, 27, 64 and 16 inputs.
SHAPES: dict[str, tuple[RegionGraph, int]] = {
    "tree": (tree(4), 2),
    "windows": (windows(3, 2), 3),
    "grid": (grid(2, 3, 2, 1), 2),
    "mixed": (MIXED, 2),
}
NOISY: dict[str, RegionGraph] = {"tree": tree(3), "windows": windows(3, 2), "deep": windows(4, 2)}
MOST_CLASSES = 16  # contents of the smallest graph
MOST_CONTENTS = 4  # 4,096 inputs of the largest graph
SHARED = 0.9  # how far a content's chance may be from what it would be without the other contents


def check_ladder(setting: Setting) -> None:
    check_counts(setting)
    for name, choices in (
        ("shape", tuple(NOISY if "contents" in setting else SHAPES)),
        ("norm", ("none", "before", "after")),
        ("activation", ("relu", "linear")),
        ("loss", ("square", "softmax", "fixed")),
        ("noise", ("independent", "shared")),
    ):
        if name in setting:
            check_choice(setting, name, *choices)
    for name in ("spread", "scale"):
        if not setting.get(name, 1.0) > 0:
            raise BadInput(f"{name} > 0", got=setting[name], do=f"raise {name}")
    for name, most in (("classes", MOST_CLASSES), ("contents", MOST_CONTENTS)):
        if not 2 <= setting.get(name, 2) <= most:
            raise BadInput(f"{name} from 2 to {most}", got=setting[name], do=f"change {name}")


def drawn_teacher(setting: Setting, generator: torch.Generator) -> Teacher:
    """All inputs of a graph under a law drawn at random; events tell everything."""
    graph, values = SHAPES[setting["shape"]]
    return enumerate_teacher(graph, values=values, p=chances(values**graph.inputs, generator=generator))


def labelled_teacher(setting: Setting, generator: torch.Generator) -> Teacher:
    """The same, but the label is any function of the input."""
    graph, values = SHAPES[setting["shape"]]

    def label(events: Tensor) -> Tensor:
        joint, count = renumber(list(events.T))
        return random_table(count, setting["classes"], generator)[joint]

    p = chances(values**graph.inputs, generator=generator)
    return enumerate_teacher(graph, {graph.top: label}, values=values, p=p)


def drawn_student(
    model: EventModel, setting: Setting, generator: torch.Generator, targets: Tensor | None = None
) -> Student:
    """A random student whose offsets, scales and shifts are random too."""
    norm = setting.get("norm", "none")
    start = random_student(
        model,
        setting.get("nodes", 3),
        generator=generator,
        targets=targets,
        activation=setting.get("activation", "relu"),
        norm=None if norm == "none" else norm,
        loss=setting.get("loss", "square"),
    )

    def noise(group: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {name: normal(len(value), generator=generator) for name, value in group.items()}

    still = {edge: torch.zeros_like(weight) for edge, weight in start.weights.items()}
    return start.stepped(Step(still, noise(start.biases), noise(start.scales), noise(start.shifts)), 0.5)


def apart(pairs: Iterable[tuple[Tensor, Tensor]]) -> float:
    """The largest difference of any two numbers ÷ the largest number."""
    both = list(pairs)
    size = max(float(torch.maximum(one.abs().max(), other.abs().max())) for one, other in both)
    return max(float((one - other).abs().max()) for one, other in both) / size


def noisy_teacher(setting: Setting, generator: torch.Generator) -> Teacher:
    """Positions of two events with `contents` contents each; what is above knows all events, no contents.

    Events have any joint law. Given them, contents are independent of each other, or have any joint law.
    """
    graph, contents = NOISY[setting["shape"]], setting["contents"]
    full = enumerate_teacher(graph, values=2 * contents)
    events: dict[str, Tensor] = {}
    sizes: dict[str, int] = {}
    for name in graph.order:
        if graph.children[name]:
            events[name], sizes[name] = renumber([events[child] for child in graph.children[name]])
        else:
            events[name], sizes[name] = full.events[name] // contents, 2
    joint = renumber([events[name] for name in graph.lowest])[0]
    p = chances(2 ** len(graph.lowest), generator=generator)[joint]
    for name in graph.lowest:
        p = p * chances(2, contents, generator=generator).flatten()[full.events[name]]
    if setting["noise"] == "shared":
        p = p * (1 + SHARED * (2 * torch.rand(len(p), generator=generator, dtype=torch.float64) - 1))
    return Teacher(graph, full.inputs, p / p.sum(), events, sizes)


def noisy_pass(
    setting: Setting, generator: torch.Generator
) -> tuple[Teacher, Student, Pass, dict[str, Tensor]]:
    """A teacher whose events leave contents open, a student, and what it does on every input.

    The lowest regions show their event, and noise of size `spread` that is their content's. Students with a
    ReLU are drawn until each gate is settled by its event, which is what decorrelation comes to, and none
    of its regions is dead.
    """
    graph = NOISY[setting["shape"]]
    for _ in range(DRAWS):
        teacher = noisy_teacher(setting, generator)
        lowest = {}
        for name in graph.lowest:
            shown = torch.eye(2, dtype=torch.float64).repeat_interleave(setting["contents"], 0)
            shown = shown + setting["spread"] * normal(2 * setting["contents"], 2, generator=generator)
            lowest[name] = shown[teacher.inputs[:, graph.positions[name][0]].long()]
        student = drawn_student(teacher.model, setting, generator, _targets(setting, teacher, generator))
        seen = propagate(teacher, student, lowest)
        if all(_settled(teacher, gate, name) and bool(gate.any()) for name, gate in seen.gate.items()):
            return teacher, student, seen, lowest
    raise BadInput("students whose gates events settle", got=f"none in {DRAWS}", do="lower spread or nodes")


def _settled(teacher: Teacher, gate: Tensor, region: str) -> bool:
    opened = teacher.mean(gate.to(torch.float64), region)
    return bool(((opened < ROUNDING) | (opened > 1 - ROUNDING)).all())


def _targets(setting: Setting, teacher: Teacher, generator: torch.Generator) -> Tensor:
    """The identity; for a fixed gradient a₁ where node and event are the same and −a₂ elsewhere (eq. 7)."""
    same = torch.eye(teacher.sizes[teacher.graph.top], dtype=torch.float64)
    if setting["loss"] != "fixed":
        return same
    gain, cost = 0.5 + torch.rand(2, generator=generator, dtype=torch.float64)
    targets: Tensor = gain * same - cost * (1 - same)
    return targets
