"""The student on every single input: activations forwards, gradients backwards, by autograd.

This is the brute force that the reformulation is compared with; of events it knows the lowest and the label.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isqrt
from typing import Any

import torch
from torch import Tensor

from .._core import BadInput, OneLine
from ._batchnorm import normalize
from ._checks import named, real
from ._heap import give_back
from ._losses import losses
from ._student import KINDS, Step, Student
from ._teacher import Teacher

MOST_NUMBERS = 2**27  # in a matrix with a column for each event: 1 GB


@dataclass(frozen=True)
class Pass(OneLine):
    """By region with children, inputs × nodes each; gradients are of minus the loss, times p(x).

    `before` goes into the ReLU and `gate` is its derivative; `arriving` is the gradient where its output is,
    `gradient` the one at the linear map, behind gate and batch norm: ΔW = Σ_x f(x)ᵀ gradient(x).
    `active` is what the parents read.
    """

    active: Mapping[str, Tensor]
    before: Mapping[str, Tensor]
    gate: Mapping[str, Tensor]
    arriving: Mapping[str, Tensor]
    gradient: Mapping[str, Tensor]
    loss: float
    step: Step


def one_hot(teacher: Teacher, region: str) -> Tensor:
    """What a lowest region shows of every input: a node for each event, f_k(z) = 1[k = z]."""
    size = teacher.sizes[region]
    if size * len(teacher.p) > MOST_NUMBERS:
        raise BadInput(
            f"lowest regions of at most {MOST_NUMBERS // len(teacher.p):,} events for as many inputs",
            got=f"{size:,} in {region!r}",
            do="split it",
        )
    return one_node_each(size)[teacher.events[region]]


def one_node_each(events: int) -> Tensor:
    """F of a lowest region: the identity."""
    if events * events > MOST_NUMBERS:
        raise BadInput(
            f"at most {isqrt(MOST_NUMBERS):,} events in a lowest region", got=f"{events:,}", do="split it"
        )
    return torch.eye(events, dtype=torch.float64)


def propagate(teacher: Teacher, student: Student, lowest: Mapping[str, Tensor] | None = None) -> Pass:
    """Run the student on all inputs of the teacher, there and back.

    `lowest`: what the lowest regions show (inputs × nodes), instead of one node for each event. Autograd goes
    region by region, each computed again, so that no more is kept than what is returned.
    """
    check_fit(teacher.graph == student.graph, teacher.sizes, student, lowest is not None)
    if lowest is not None:
        check_matrices(
            lowest, student, student.graph.lowest, dict.fromkeys(student.graph.order, len(teacher.p))
        )
    graph, names = teacher.graph, student.inner
    # In one block each: many small ones among those that come and go would tear holes into the memory.
    room = {name: (len(teacher.p), student.nodes[name]) for name in names}
    active, before, arriving, gradient = (_block(room) for _ in range(4))
    with torch.no_grad():
        for name in names:
            _, into, _, out = _region(teacher, student, student.parameters(), name, active, lowest)
            before[name].copy_(into)
            active[name].copy_(out)
    shown = active[graph.top].detach().requires_grad_()
    with torch.enable_grad():
        loss = -(teacher.p * losses(shown, student.targets[teacher.labels], student.loss)).sum()
    for values in gradient.values():
        values.zero_()  # until a region's turn comes, what its parents have sent down
    gradient[graph.top].copy_(torch.autograd.grad(loss, shown)[0])
    found: dict[str, dict[Any, Tensor]] = {kind: {} for kind in KINDS}
    for name in reversed(names):
        _back(teacher, student, name, active, lowest, gradient, arriving[name], found)
        give_back(sum(rows * nodes for rows, nodes in room.values()))
    gates = {
        name: value > 0 if student.rectified(name) else torch.ones_like(value, dtype=torch.bool)
        for name, value in before.items()
    }
    steps = ({key: found[kind][key] for key in getattr(student, kind)} for kind in KINDS)
    return Pass(active, before, gates, arriving, gradient, -float(loss.detach()), Step(*steps))


def _back(
    teacher: Teacher,
    student: Student,
    name: str,
    active: Mapping[str, Tensor],
    lowest: Mapping[str, Tensor] | None,
    gradient: Mapping[str, Tensor],
    arriving: Tensor,
    found: Mapping[str, dict[Any, Tensor]],
) -> None:
    """One region backwards: turns its `gradient` from that at its output into that at its linear map."""
    own = _leaves(student, name)
    below = {
        child: active[child].detach().requires_grad_()
        for child in student.graph.children[name]
        if child in active
    }
    keys = [(kind, key) for kind in KINDS for key in getattr(own, kind)]
    with torch.enable_grad():
        linear, _, rectified, out = _region(teacher, student, own, name, below, lowest)
        asked = [linear, rectified, *own.tensors(), *below.values()]
        at_linear, at_output, *rest = torch.autograd.grad(out, asked, gradient[name], materialize_grads=True)
    arriving.copy_(at_output)  # first: without batch norm above the ReLU it is gradient[name] itself
    gradient[name].copy_(at_linear)
    for (kind, key), step in zip(keys, rest[: len(keys)], strict=True):
        found[kind][key] = step
    for child, down in zip(below, rest[len(keys) :], strict=True):
        gradient[child].add_(down)


def _block(shapes: Mapping[str, tuple[int, int]]) -> dict[str, Tensor]:
    """Matrices of these shapes side by side in one piece of memory."""
    parts = torch.empty(sum(rows * columns for rows, columns in shapes.values()), dtype=torch.float64).split(
        [rows * columns for rows, columns in shapes.values()]
    )
    return {name: part.view(shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)}


def _region(
    teacher: Teacher,
    student: Student,
    own: Step,
    name: str,
    active: Mapping[str, Tensor],
    lowest: Mapping[str, Tensor] | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """One region on all inputs: the linear map, what goes into the ReLU, what leaves it, what is read."""
    raw = own.biases[name] if own.biases else torch.zeros((), dtype=torch.float64)
    for child in teacher.graph.children[name]:
        weight = own.weights[name, child]
        if child in active:
            raw = raw + active[child] @ weight
        elif lowest is not None:
            raw = raw + lowest[child] @ weight
        else:
            raw = raw + weight[teacher.events[child]]
    linear, norm = raw, student.normed(name)
    if norm == "before":
        raw = normalize(raw, teacher.p, student.eps)[0] * own.scales[name] + own.shifts[name]
    before = raw
    # a tensor of its own where there is no ReLU, so that its gradient can be asked for
    raw = torch.relu(raw) if student.rectified(name) else raw * 1
    rectified = raw
    if norm == "after":
        raw = normalize(raw, teacher.p, student.eps)[0] * own.scales[name] + own.shifts[name]
    return linear, before, rectified, raw


def _leaves(student: Student, name: str) -> Step:
    """The parameters of one region, ready for autograd."""
    edges = [(name, child) for child in student.graph.children[name]]
    return Step(
        {edge: student.weights[edge].detach().requires_grad_() for edge in edges},
        *(
            {name: given[name].detach().requires_grad_()} if name in given else {}
            for given in (student.biases, student.scales, student.shifts)
        ),
    )


def check_matrices(
    given: Mapping[str, Tensor], student: Student, regions: tuple[str, ...], rows: Mapping[str, int]
) -> None:
    """Whether these are matrices with a column for each node of their region."""
    nodes = student.nodes
    for name, values in named(given, regions, "matrices").items():
        real(values, f"the matrix of {name!r}", (rows[name], nodes[name]))


def check_fit(same: bool, sizes: Mapping[str, int], student: Student, given: bool) -> None:
    """Whether a student can be run on these events."""
    if not same:
        raise BadInput(
            "a student on the teacher's regions", got="another graph", do="give both the same graph"
        )
    graph, nodes = student.graph, student.nodes
    if student.targets.shape[0] != sizes[graph.top]:
        raise BadInput(
            f"targets for {sizes[graph.top]:,} events of the top region",
            got=student.targets.shape[0],
            do="correct it",
        )
    if not graph.children[graph.top]:
        raise BadInput("a graph with a region above the lowest", got="a single region", do="add one")
    for name in graph.lowest:
        if not given and nodes[name] != sizes[name]:
            raise BadInput(
                f"a node for each of {sizes[name]} events in the lowest region {name!r}",
                got=nodes[name],
                do="give as many, or `lowest`",
            )
