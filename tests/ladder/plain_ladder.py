"""The ladder by hand: loops over inputs and nodes, dictionaries of probabilities, no code of the library.

Of a graph only `children` and `positions` are read, of a student its numbers. Slow on purpose.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import product
from math import exp, log, sqrt

import numpy as np
import torch

from obverse.ladder._regions import RegionGraph, grid, tree, windows
from obverse.ladder._student import Student, random_student
from obverse.ladder._teacher import Teacher, enumerate_teacher

SUMMED = 1e-12  # float64 sums of up to a few hundred terms of size 1, with a margin


def dag() -> RegionGraph:
    """A child with several parents, an edge that skips a level, one that covers more than its children."""
    children = {"top": ("m", "n", "c"), "m": ("a", "b"), "n": ("b", "c"), "a": (), "b": (), "c": ()}
    return RegionGraph.of(children, {"a": [0], "b": [1, 2], "c": [3], "m": [0, 1, 2, 4]})


def deep() -> RegionGraph:
    """One chain of single children beside a wide region: levels 1 to 4 under one top."""
    children = {"top": ["three", "wide"], "three": ["two"], "two": ["one"], "one": ["x", "y"]}
    children |= {"wide": ["x", "y", "z"], "x": [], "y": [], "z": []}
    return RegionGraph.of(children, {"x": [0], "y": [1], "z": [2]})


GRAPHS = {
    "tree4": (tree(4), 2),
    "tree3": (tree(3), 2),
    "ternary": (tree(3, 3), 3),
    "overlap": (windows(4, 2), 2),
    "overlap3": (windows(3, 2), 3),
    "wide": (windows(5, 3, 2), 2),
    "grid": (grid(2, 3, 2, 1), 2),
    "dag": (dag(), [2, 2, 3, 2, 2]),
    "deep": (deep(), [3, 2, 2]),
}


def chances(total: int, seed: int, zeros: bool = True) -> torch.Tensor:
    """Probabilities of all sizes; a third of them 0."""
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.rand(total, generator=generator, dtype=torch.float64) ** 3 + 0.01
    if zeros:
        drawn = torch.where(torch.rand(total, generator=generator) < 1 / 3, 0.0, drawn)
        drawn[0] = 0.1
    return drawn / drawn.sum()


def teacher_of(name: str, summaries="full", seed: int | None = 0, zeros: bool = True) -> Teacher:
    graph, values = GRAPHS[name]
    counts = [values] * graph.inputs if isinstance(values, int) else values
    p = None if seed is None else chances(int(np.prod(counts)), seed, zeros)
    return enumerate_teacher(graph, summaries, values=values, p=p)


def student_of(teacher: Teacher, nodes=2, seed: int = 0, **kind) -> Student:
    """All parameters random: offsets, scales and shifts too, so that none of them hides behind 0 or 1."""
    generator = torch.Generator().manual_seed(seed)
    start = random_student(teacher.model, nodes, generator=generator, **kind)

    def noise(old):
        return torch.randn(old.shape, generator=generator, dtype=torch.float64)

    return Student(
        start.graph,
        start.weights,
        start.targets,
        {name: 0.5 * noise(old) for name, old in start.biases.items()},
        {name: 1 + 0.5 * noise(old) for name, old in start.scales.items()},
        {name: 0.5 * noise(old) for name, old in start.shifts.items()},
        start.activation,
        start.norm,
        start.top,
        start.loss,
        start.eps,
    )


def climb(children) -> list[str]:
    """Children before parents, by repeated search."""
    done: list[str] = []
    while len(done) < len(children):
        done += [name for name in children if name not in done and set(children[name]) <= set(done)]
    return done


def plain_inputs(values: list[int]) -> list[tuple[int, ...]]:
    return list(product(*[range(count) for count in values]))


def plain_events(graph: RegionGraph, inputs, values, rules) -> dict[str, list]:
    """z_α of every input as any Python object: `rules[region]` of the children's events, or the contents."""
    found: dict[str, list] = {}
    for name in climb(graph.children):
        below = graph.children[name]
        if below:
            found[name] = [rules[name](tuple(found[child][i] for child in below)) for i in range(len(inputs))]
        else:
            found[name] = [tuple(x[position] for position in graph.positions[name]) for x in inputs]
    return found


def same_partition(one, other) -> bool:
    """Whether two lists of events are the same but for their names."""
    forth: dict = {}
    back: dict = {}
    for a, b in zip(one, other, strict=True):
        if forth.setdefault(a, b) != b or back.setdefault(b, a) != a:
            return False
    return True


def listed(teacher: Teacher, region: str) -> list[int]:
    return [int(event) for event in teacher.events[region]]


def weights_of(teacher: Teacher) -> list[float]:
    return [float(one) for one in teacher.p]


def plain_prior(events, p, size) -> np.ndarray:
    found = np.zeros(size)
    for event, chance in zip(events, p, strict=True):
        found[event] += chance
    return found


def plain_conditional(above, below, p, shape) -> np.ndarray:
    """P(below | above), rows of events that never happen are 0."""
    joint: dict = defaultdict(float)
    alone: dict = defaultdict(float)
    for a, b, chance in zip(above, below, p, strict=True):
        joint[a, b] += chance
        alone[a] += chance
    found = np.zeros(shape)
    for (a, b), chance in joint.items():
        if alone[a] > 0:
            found[a, b] = chance / alone[a]
    return found


def plain_mean(values, events, p, size) -> np.ndarray:
    """E[values | event], 0 for events that never happen."""
    total, alone = np.zeros((size, values.shape[1])), np.zeros(size)
    for row, event, chance in zip(values, events, p, strict=True):
        total[event] += chance * row
        alone[event] += chance
    return np.array([total[z] / alone[z] if alone[z] > 0 else 0 * total[z] for z in range(size)])


def plain_total(values, events, size) -> np.ndarray:
    found = np.zeros((size, values.shape[1]))
    for row, event in zip(values, events, strict=True):
        found[event] += row
    return found


def plain_norm(raw, p, eps):
    """f̃ and σ of every column; a constant one has both 0 without eps."""
    standard, sigma = np.zeros_like(raw), np.zeros(raw.shape[1])
    happens = [i for i in range(len(p)) if p[i] > 0]
    for node in range(raw.shape[1]):
        column = raw[:, node]
        centre = sum(p[i] * column[i] for i in happens)
        variance = sum(p[i] * (column[i] - centre) ** 2 for i in happens)
        size = max(abs(column[i]) for i in happens)
        if eps == 0 and all(abs(column[i] - column[happens[0]]) <= 1e-13 * size for i in happens):
            continue
        sigma[node] = sqrt(variance + eps)
        standard[:, node] = (column - centre) / sigma[node]
    return standard, sigma


def plain_norm_back(gradient, standard, sigma, p):
    """dL/df from dL/df̃ by the whole Jacobian of (f_1 … f_N) → (f̃_1 … f̃_N), entry by entry.

    ∂f̃_k/∂f_i = (1/σ)(1[k = i] − p_i − p_i f̃_i f̃_k), from ∂μ/∂f_i = p_i and ∂σ/∂f_i = p_i f̃_i.
    """
    found = np.zeros_like(gradient)
    count = len(p)
    for node in range(gradient.shape[1]):
        if sigma[node] == 0:
            continue
        jacobian = np.empty((count, count))
        for k in range(count):
            for i in range(count):
                jacobian[k, i] = (k == i) - p[i] - p[i] * standard[i, node] * standard[k, node]
        found[:, node] = gradient[:, node] @ (jacobian / sigma[node])
    return found


def numbers_of(student: Student) -> dict:
    return {
        "W": {edge: weight.numpy() for edge, weight in student.weights.items()},
        "b": {name: value.numpy() for name, value in student.biases.items()},
        "c1": {name: value.numpy() for name, value in student.scales.items()},
        "c0": {name: value.numpy() for name, value in student.shifts.items()},
    }


def plain_loss(active, target, kind) -> tuple[float, np.ndarray]:
    """The loss of one input and minus its gradient."""
    if kind == "square":
        terms = [(active[j] - target[j]) ** 2 / 2 for j in range(len(active))]
        return sum(terms), np.array([target[j] - active[j] for j in range(len(active))])
    if kind == "softmax":
        largest = max(active)
        shares = [exp(one - largest) for one in active]
        every = sum(shares)
        value = -sum(target[j] * (active[j] - largest - log(every)) for j in range(len(active)))
        mass = sum(target)
        return value, np.array([target[j] - mass * shares[j] / every for j in range(len(active))])
    return -sum(target[j] * active[j] for j in range(len(active))), np.array(target, dtype=float)


def plain_pass(teacher: Teacher, student: Student, lowest=None, numbers=None) -> dict:
    """Forwards and backwards on every input, the chain rule written out; gradients carry p(x)."""
    graph, p, numbers = teacher.graph, weights_of(teacher), numbers or numbers_of(student)
    count, order = len(p), climb(graph.children)
    nodes = {child: numbers["W"][parent, child].shape[0] for parent, child in numbers["W"]}
    top = order[-1]
    nodes[top] = student.targets.shape[1]
    shown, linear, before, gate, standard, sigma = {}, {}, {}, {}, {}, {}
    for name in order:
        if not graph.children[name]:
            if lowest is None:
                shown[name] = np.zeros((count, nodes[name]))
                for i, event in enumerate(listed(teacher, name)):
                    shown[name][i, event] = 1
            else:
                shown[name] = lowest[name].numpy()
            continue
        raw = np.zeros((count, nodes[name]))
        for i in range(count):
            for j in range(nodes[name]):
                raw[i, j] = numbers["b"][name][j] if numbers["b"] else 0
                for child in graph.children[name]:
                    for k in range(nodes[child]):
                        raw[i, j] += shown[child][i, k] * numbers["W"][name, child][k, j]
        linear[name] = raw.copy()
        norm = student.norm if name != top else None
        if norm == "before":
            standard[name], sigma[name] = plain_norm(raw, p, student.eps)
            raw = standard[name] * numbers["c1"][name] + numbers["c0"][name]
        before[name] = raw
        kind = student.top if name == top else student.activation
        gate[name] = np.asarray(raw > 0, dtype=float) if kind == "relu" else np.ones_like(raw)
        raw = gate[name] * raw
        if norm == "after":
            standard[name], sigma[name] = plain_norm(raw, p, student.eps)
            raw = standard[name] * numbers["c1"][name] + numbers["c0"][name]
        shown[name] = raw
    labels, targets = listed(teacher, top), student.targets.tolist()
    loss, down = 0.0, {name: np.zeros_like(shown[name]) for name in order}
    for i in range(count):
        value, pull = plain_loss(shown[top][i], targets[labels[i]], student.loss)
        loss += p[i] * value
        down[top][i] = p[i] * pull
    arriving, gradient = {}, {}
    step: dict = {"W": {}, "b": {}, "c1": {}, "c0": {}}
    for name in reversed(order):
        if not graph.children[name]:
            continue
        norm = student.norm if name != top else None
        back = down[name]
        if norm == "after":
            step["c1"][name], step["c0"][name] = (back * standard[name]).sum(0), back.sum(0)
            back = numbers["c1"][name] * plain_norm_back(back, standard[name], sigma[name], p)
        arriving[name] = back
        back = gate[name] * back
        if norm == "before":
            step["c1"][name], step["c0"][name] = (back * standard[name]).sum(0), back.sum(0)
            back = numbers["c1"][name] * plain_norm_back(back, standard[name], sigma[name], p)
        gradient[name] = back
        if numbers["b"]:
            step["b"][name] = back.sum(0)
        for child in graph.children[name]:
            weight = numbers["W"][name, child]
            change = np.zeros_like(weight)
            for i in range(count):
                for k in range(weight.shape[0]):
                    for j in range(weight.shape[1]):
                        change[k, j] += shown[child][i, k] * back[i, j]
                        down[child][i, k] += weight[k, j] * back[i, j]
            step["W"][name, child] = change
    return {
        "active": shown,
        "linear": linear,
        "before": before,
        "gate": gate,
        "arriving": arriving,
        "gradient": gradient,
        "loss": loss,
        "step": step,
    }


def plain_reformulation(graph, priors, conditionals, student, gates=None, lowest=None) -> dict:
    """Theorem 4 in dense matrices; batch norm by its Jacobian over events."""
    numbers, order = numbers_of(student), climb(graph.children)
    top = order[-1]
    active, before, gate, standard, sigma = {}, {}, {}, {}, {}
    for name in order:
        prior = priors[name]
        if not graph.children[name]:
            active[name] = np.eye(len(prior)) if lowest is None else lowest[name].numpy()
            continue
        raw = 0
        for child in graph.children[name]:
            raw = raw + conditionals[name, child] @ active[child] @ numbers["W"][name, child]
        if numbers["b"]:
            raw = raw + numbers["b"][name]
        norm = student.norm if name != top else None
        if norm == "before":
            standard[name], sigma[name] = plain_norm(raw, prior, student.eps)
            raw = standard[name] * numbers["c1"][name] + numbers["c0"][name]
        before[name] = raw
        kind = student.top if name == top else student.activation
        own = np.asarray(raw > 0, dtype=float) if kind == "relu" else np.ones_like(raw)
        gate[name] = own if gates is None else gates[name].numpy()
        raw = gate[name] * raw
        if norm == "after":
            standard[name], sigma[name] = plain_norm(raw, prior, student.eps)
            raw = standard[name] * numbers["c1"][name] + numbers["c0"][name]
        active[name] = raw
    loss, pulls = 0.0, np.zeros_like(active[top])
    for z, chance in enumerate(priors[top]):
        value, pull = plain_loss(active[top][z], student.targets.tolist()[z], student.loss)
        loss += chance * value
        pulls[z] = chance * pull
    gradient: dict = {}
    step: dict = {"W": {}, "b": {}, "c1": {}, "c0": {}}
    for name in reversed(order):
        if not graph.children[name]:
            continue
        prior, norm = priors[name], student.norm if name != top else None
        if name == top:
            back = pulls
        else:
            above = [one for one in order if name in graph.children[one]]
            back = sum(conditionals[a, name].T @ gradient[a] @ numbers["W"][a, name].T for a in above)
        if norm == "after":
            step["c1"][name], step["c0"][name] = (back * standard[name]).sum(0), back.sum(0)
            back = numbers["c1"][name] * plain_norm_back(back, standard[name], sigma[name], prior)
        back = gate[name] * back
        if norm == "before":
            step["c1"][name], step["c0"][name] = (back * standard[name]).sum(0), back.sum(0)
            back = numbers["c1"][name] * plain_norm_back(back, standard[name], sigma[name], prior)
        gradient[name] = back
        if numbers["b"]:
            step["b"][name] = back.sum(0)
        for child in graph.children[name]:
            step["W"][name, child] = (conditionals[name, child] @ active[child]).T @ back
    return {
        "active": active,
        "before": before,
        "gate": gate,
        "gradient": gradient,
        "loss": loss,
        "step": step,
    }


def assert_same_step(step, by_hand, tolerance: float = SUMMED) -> None:
    """`step` of the library, `by_hand` of this file."""
    groups = {"W": step.weights, "b": step.biases, "c1": step.scales, "c0": step.shifts}
    for kind, group in groups.items():
        assert set(group) == set(by_hand[kind]), kind
        for key, value in group.items():
            np.testing.assert_allclose(value.numpy(), by_hand[kind][key], rtol=tolerance, atol=tolerance)


def assert_same(group, by_hand, tolerance: float = SUMMED) -> None:
    for name, value in group.items():
        np.testing.assert_allclose(value.numpy(), by_hand[name], rtol=tolerance, atol=tolerance)
