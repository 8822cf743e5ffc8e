"""The student: a locally connected net with one weight matrix an edge of the region graph. Not how it is run.

W_βα is (nodes of the child) × (nodes of the parent), as in the paper: the transpose of nn.Linear's weight.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import sqrt
from typing import Literal

import torch
from torch import Tensor

from .._core import BadInput, OneLine, or_global
from ._checks import real, whole
from ._model import EventModel
from ._regions import Edge, RegionGraph

MOST_NODES = 2**20  # of a region
MOST_TARGETS = 2**26  # numbers in the identity as targets
Activation = Literal["relu", "linear"]
Norm = Literal["before", "after"]  # the ReLU
Loss = Literal["square", "softmax", "fixed"]
KINDS = ("weights", "biases", "scales", "shifts")  # of parameters


@dataclass(frozen=True)
class Step(OneLine):
    """One number for each parameter: minus the gradient of the loss."""

    weights: Mapping[Edge, Tensor]
    biases: Mapping[str, Tensor] = field(default_factory=dict)
    scales: Mapping[str, Tensor] = field(default_factory=dict)
    shifts: Mapping[str, Tensor] = field(default_factory=dict)

    def tensors(self) -> list[Tensor]:
        return [*self.weights.values(), *self.biases.values(), *self.scales.values(), *self.shifts.values()]


@dataclass(frozen=True)
class Student(OneLine):
    """Parameters and what is done with them.

    `biases` of regions with children, or none at all; `scales` (c₁) and `shifts` (c₀) of the regions between
    lowest and top, where there is batch norm. `top`: whether the top region has a ReLU. `targets` (events of
    the top region × its nodes) and `loss` say what it should give: "square" ½‖f − t‖², "softmax" cross
    entropy, "fixed" a gradient that is t whatever f (the boundary condition, the paper's eq. 7).
    """

    graph: RegionGraph
    weights: Mapping[Edge, Tensor]
    targets: Tensor
    biases: Mapping[str, Tensor] = field(default_factory=dict)
    scales: Mapping[str, Tensor] = field(default_factory=dict)
    shifts: Mapping[str, Tensor] = field(default_factory=dict)
    activation: Activation = "relu"
    norm: Norm | None = None
    top: Activation = "linear"
    loss: Loss = "square"
    eps: float = 0.0

    def __post_init__(self) -> None:
        _check(self)

    @cached_property
    def nodes(self) -> dict[str, int]:
        """n_α of every region."""
        found = {child: self.weights[parent, child].shape[0] for parent, child in self.graph.edges}
        return {**found, self.graph.top: self.targets.shape[1]}

    @cached_property
    def inner(self) -> tuple[str, ...]:
        """The regions that have children."""
        return tuple(name for name in self.graph.order if self.graph.children[name])

    def rectified(self, region: str) -> bool:
        """Whether a region has a ReLU."""
        return (self.top if region == self.graph.top else self.activation) == "relu"

    def normed(self, region: str) -> Norm | None:
        return None if region == self.graph.top else self.norm

    def stepped(self, step: Step, lr: float) -> Student:
        """After a step of gradient descent."""
        if isinstance(lr, bool) or not isinstance(lr, int | float):
            raise BadInput("a learning rate", got=repr(lr), do="give a number")
        for kind in KINDS:
            if set(getattr(step, kind)) != set(getattr(self, kind)):
                raise BadInput(f"a step for the {kind} of this student", got="another's", do="take its own")

        def moved(old: Mapping[str, Tensor], by: Mapping[str, Tensor]) -> dict[str, Tensor]:
            return {name: value + lr * by[name] for name, value in old.items()}

        return replace(
            self,
            weights={edge: value + lr * step.weights[edge] for edge, value in self.weights.items()},
            biases=moved(self.biases, step.biases),
            scales=moved(self.scales, step.scales),
            shifts=moved(self.shifts, step.shifts),
        )

    def parameters(self) -> Step:
        return Step(self.weights, self.biases, self.scales, self.shifts)


def random_student(
    model: EventModel,
    nodes: int | Mapping[str, int],
    *,
    generator: torch.Generator | None = None,
    targets: Tensor | None = None,
    bias: bool = True,
    activation: Activation = "relu",
    norm: Norm | None = None,
    top: Activation = "linear",
    loss: Loss = "square",
    eps: float = 0.0,
) -> Student:
    """Gaussian weights of variance 2/fan-in, offsets 0; float64. Each event of a lowest region is a node.

    `nodes` of the regions between; the top has one for each column of `targets` (the identity: one an event).
    """
    graph, sizes = model.graph, model.sizes
    generator = or_global(generator)
    if isinstance(nodes, Mapping) and not set(nodes) <= set(graph.order):
        raise BadInput(
            "nodes of regions", got=sorted(map(str, set(nodes) - set(graph.order)))[:8], do="see graph.order"
        )
    goal = _identity(sizes[graph.top]) if targets is None else real(targets, "targets")
    if goal.ndim != 2 or goal.shape[0] != sizes[graph.top] or goal.shape[1] < 1:
        raise BadInput(
            f"targets with {sizes[graph.top]:,} rows, one for each event of the top region",
            got=f"shape {tuple(goal.shape)}",
            do="correct it",
        )
    counts = {}
    for name in graph.order:
        if not graph.children[name]:
            counts[name] = sizes[name]
        elif name == graph.top:
            counts[name] = goal.shape[1]
        else:
            given = nodes.get(name) if isinstance(nodes, Mapping) else nodes
            counts[name] = whole(given, f"a number of nodes of {name!r}", 1, MOST_NODES)
    inner = [name for name in graph.order if graph.children[name]]
    weights = {}
    for parent in inner:
        # one of a lowest region's nodes is active at a time
        fan = sum(counts[child] if graph.children[child] else 1 for child in graph.children[parent])
        for child in graph.children[parent]:
            shape = counts[child], counts[parent]
            weights[parent, child] = sqrt(2 / fan) * torch.randn(
                shape, generator=generator, dtype=torch.float64
            )
    between = [name for name in inner if name != graph.top] if norm else []
    return Student(
        graph,
        weights,
        goal,
        {name: torch.zeros(counts[name], dtype=torch.float64) for name in inner} if bias else {},
        {name: torch.ones(counts[name], dtype=torch.float64) for name in between},
        {name: torch.zeros(counts[name], dtype=torch.float64) for name in between},
        activation,
        norm,
        top,
        loss,
        eps,
    )


def _identity(events: int) -> Tensor:
    if events * events > MOST_TARGETS:
        raise BadInput(
            f"targets for a top region of {events:,} events",
            got="none",
            do="give a matrix of events × classes",
        )
    return torch.eye(events, dtype=torch.float64)


def _check(student: Student) -> None:
    graph = student.graph
    for kind in KINDS:
        if not isinstance(getattr(student, kind), Mapping):
            raise BadInput(
                f"{kind} as a mapping", got=type(getattr(student, kind)).__name__, do="see Student"
            )
    if set(student.weights) != set(graph.edges):
        odd = sorted(set(student.weights) ^ set(graph.edges), key=str)
        raise BadInput("one weight matrix an edge", got=f"a difference in {odd[:3]}", do="see graph.edges")
    real(student.targets, "targets")
    for edge, weight in student.weights.items():
        if real(weight, f"the weight of {edge}").ndim != 2:
            raise BadInput(
                f"a matrix as weight of {edge}", got=f"shape {tuple(weight.shape)}", do="correct it"
            )
    if student.targets.ndim != 2:
        raise BadInput(
            "targets, events × nodes", got=f"shape {tuple(student.targets.shape)}", do="correct it"
        )
    nodes = student.nodes
    for (parent, child), weight in student.weights.items():
        if tuple(weight.shape) != (nodes[child], nodes[parent]):
            raise BadInput(
                f"a weight of shape {(nodes[child], nodes[parent])} from {child!r} up to {parent!r}",
                got=tuple(weight.shape),
                do="it is child × parent",
            )
    inner = set(student.inner)
    between = inner - {graph.top} if student.norm else set()
    wanted = {"biases": inner if student.biases else set(), "scales": between, "shifts": between}
    for kind, regions in wanted.items():
        given: Mapping[str, Tensor] = getattr(student, kind)
        if set(given) != regions:
            raise BadInput(
                f"{kind} of {sorted(regions) or 'no region'}", got=sorted(given), do="correct them"
            )
        for name, value in given.items():
            real(value, f"{kind} of {name!r}", (nodes[name],))
    if student.activation not in ("relu", "linear") or student.top not in ("relu", "linear"):
        raise BadInput("relu or linear", got=f"{student.activation}, {student.top}", do="choose one")
    if student.norm not in (None, "before", "after") or student.loss not in ("square", "softmax", "fixed"):
        raise BadInput(
            "norm None, before or after, and loss square, softmax or fixed",
            got=f"{student.norm}, {student.loss}",
            do="choose others",
        )
    if (
        isinstance(student.eps, bool)
        or not isinstance(student.eps, int | float)
        or not 0 <= student.eps < float("inf")
    ):
        raise BadInput("eps of at least 0", got=student.eps, do="correct it")
