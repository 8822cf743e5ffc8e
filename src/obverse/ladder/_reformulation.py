"""Backpropagation on events instead of inputs (Theorem 2, as matrices Theorem 4), with bias and batch norm.

    F_α = D_α ∘ Σ_β P_αβ F_β W_βα        G̃_β = D_β ∘ Σ_α P_αβᵀ G̃_α W_βαᵀ        ΔW_βα = (P_αβ F_β)ᵀ G̃_α

It sees P(z_α), P(z_β | z_α) and the weights, and no input.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from .._core import BadInput, OneLine
from ._batchnorm import affine_gradients, normalize, normalize_back
from ._losses import losses, pull
from ._model import EventModel
from ._passes import check_fit, check_matrices, one_node_each
from ._regions import Edge
from ._student import Step, Student


@dataclass(frozen=True)
class Reformulated(OneLine):
    """By region with children, events × nodes each; gradients G̃ are of minus the loss, times P(z).

    Names as in Pass. `messages` are P_αβ F_β, by edge.
    """

    active: Mapping[str, Tensor]
    before: Mapping[str, Tensor]
    gate: Mapping[str, Tensor]
    arriving: Mapping[str, Tensor]
    gradient: Mapping[str, Tensor]
    messages: Mapping[Edge, Tensor]
    loss: float
    step: Step


def reformulate(
    model: EventModel,
    student: Student,
    *,
    gates: Mapping[str, Tensor] | None = None,
    lowest: Mapping[str, Tensor] | None = None,
) -> Reformulated:
    """One pass there and back over events.

    `gates` are the probabilities D_α = E[gate | z_α] that Theorem 2 takes for granted; without them a gate is
    open where its own mean activation is positive, which is the same thing when z_α tells all of x_α.
    `lowest`: F of the lowest regions (events × nodes); the identity if not given.
    """
    check_fit(model.graph == student.graph, model.sizes, student, lowest is not None)
    if lowest is not None:
        check_matrices(lowest, student, student.graph.lowest, model.sizes)
    if gates is not None:
        check_matrices(gates, student, student.inner, model.sizes)
        if not all(bool(((gate >= 0) & (gate <= 1)).all()) for gate in gates.values()):
            raise BadInput("gates that are probabilities", got="others", do="give E[gate | z]")
    graph = model.graph
    active: dict[str, Tensor] = {}
    before: dict[str, Tensor] = {}
    gate: dict[str, Tensor] = {}
    standard: dict[str, tuple[Tensor, Tensor]] = {}
    messages: dict[Edge, Tensor] = {}
    for name in graph.lowest:
        active[name] = one_node_each(len(model.priors[name])) if lowest is None else lowest[name]
    for name in student.inner:
        prior, norm = model.priors[name], student.normed(name)
        raw = torch.zeros(len(prior), student.nodes[name], dtype=torch.float64)
        if student.biases:
            raw = raw + student.biases[name]
        for child in graph.children[name]:
            messages[name, child] = model.conditionals[name, child] @ active[child]
            raw = raw + messages[name, child] @ student.weights[name, child]
        if norm == "before":
            standard[name] = normalize(raw, prior, student.eps)
            raw = standard[name][0] * student.scales[name] + student.shifts[name]
        before[name] = raw
        if gates is not None:
            gate[name] = gates[name]
        else:
            gate[name] = (raw > 0).to(raw.dtype) if student.rectified(name) else torch.ones_like(raw)
        raw = gate[name] * raw
        if norm == "after":
            standard[name] = normalize(raw, prior, student.eps)
            raw = standard[name][0] * student.scales[name] + student.shifts[name]
        active[name] = raw
    top, prior = graph.top, model.priors[graph.top]
    loss = float((prior * losses(active[top], student.targets, student.loss)).sum())

    arriving: dict[str, Tensor] = {}
    gradient: dict[str, Tensor] = {}
    scales: dict[str, Tensor] = {}
    shifts: dict[str, Tensor] = {}
    for name in reversed(student.inner):
        prior, norm = model.priors[name], student.normed(name)
        if name == top:
            down = prior.unsqueeze(1) * pull(active[top], student.targets, student.loss)
        else:
            down = torch.zeros_like(active[name])
            for parent in graph.parents[name]:
                sent = gradient[parent] @ student.weights[parent, name].T
                down = down + model.conditionals[parent, name].transposed(sent)
        if norm == "after":
            scales[name], shifts[name] = affine_gradients(down, standard[name][0])
            down = student.scales[name] * normalize_back(down, *standard[name], prior)
        arriving[name] = down
        down = gate[name] * down
        if norm == "before":
            scales[name], shifts[name] = affine_gradients(down, standard[name][0])
            down = student.scales[name] * normalize_back(down, *standard[name], prior)
        gradient[name] = down
    step = Step(
        {(parent, child): messages[parent, child].T @ gradient[parent] for parent, child in graph.edges},
        {name: gradient[name].sum(0) for name in student.biases},
        {name: scales[name] for name in student.scales},
        {name: shifts[name] for name in student.shifts},
    )
    inner = student.inner
    return Reformulated(
        {name: active[name] for name in inner}, before, gate, arriving, gradient, messages, loss, step
    )
