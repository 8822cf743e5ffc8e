"""The paper's §5.3: stochastic descent as noise on P(z_α, z_β); flatness and generalization by batch size.

    python -m experiments.ladder.sgd [--out FOLDER]   (minutes)

"equal": a step of SGD beside the matrix dynamics with the batch's own P̃, where events tell all. "gap": the
same where events sum up, by batch size. "batch": students from the same starts on the same training sets, at
the same rate, by batch size; compared after equally many steps, after equally many epochs, and when the
training loss first is as low. Flatness is that of the training loss: trace of the Hessian and its largest
eigenvalue. Noise of the gradient is E‖∇ℓ_i − ∇L‖², by which the gradient answers to a change of P̃.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from obverse.ladder._passes import propagate
from obverse.ladder._reformulation import reformulate
from obverse.ladder._regions import tree
from obverse.ladder._student import Step, Student, random_student
from obverse.ladder._teacher import Teacher, enumerate_teacher

from .._lab.arguments import folder_asked_for
from .._lab.result_files import measure, summary
from .dynamics import headed, summed_up

RESULTS = Path(__file__).parent / "results"
GRAPH = headed(tree(9, 3))
CLASSES = torch.eye(2, dtype=torch.float64)
NODES, RATE = 8, 0.02
TRAINING = 96  # samples
BATCHES = (1, 2, 4, 8, 16, 32, 96)
SEEDS = 20
STEPS = 3000  # compared after as many,
EPOCHS = 250  # and after as many of these,
LOSS = 0.02  # and when the training loss is this low, looked at every
EVERY = 100  # steps
LONGEST = 24000  # steps: of single samples in as many epochs
EQUAL: dict[str, Any] = {"steps": 500, "batches": [1, 4, 16, 64], "rate": 0.05}
GAP_BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
GAP_DRAWS = 60
SETTINGS = {
    "nodes": NODES,
    "rate": RATE,
    "training": TRAINING,
    "seeds": SEEDS,
    "steps": STEPS,
    "epochs": EPOCHS,
    "loss": LOSS,
    "every": EVERY,
    "longest": LONGEST,
    "equal": EQUAL,
    "gap draws": GAP_DRAWS,
}
Parameters = dict[str, Tensor]  # each seeds × …; named "parent < child" for weights, by region for offsets


def summing() -> Teacher:
    return enumerate_teacher(GRAPH, dict.fromkeys(summed_up(GRAPH), "majority"))


def telling() -> Teacher:
    return enumerate_teacher(GRAPH)


def start_of(seed: int) -> Student:
    return random_student(summing().model, NODES, generator=torch.Generator().manual_seed(seed))


def stacked(students: list[Student]) -> Parameters:
    """Many students as one: parameters with a seed in front."""
    return {
        name: torch.stack([named(student.parameters())[name] for student in students])
        for name in named(students[0].parameters())
    }


def named(values: Step) -> Parameters:
    weights = {f"{parent} < {child}": weight for (parent, child), weight in values.weights.items()}
    return {**weights, **values.biases}


def answers(parameters: Mapping[str, Tensor], inputs: Tensor) -> Tensor:
    """seeds × inputs × classes, from inputs (seeds × inputs × positions). Plain PyTorch, for autograd."""
    seeds = torch.arange(len(inputs)).unsqueeze(1)
    active: dict[str, Tensor] = {}
    for name in GRAPH.order:
        if not GRAPH.children[name]:
            continue
        raw = parameters[name].unsqueeze(1)
        for child in GRAPH.children[name]:
            weight = parameters[f"{name} < {child}"]
            if child in active:
                raw = raw + active[child] @ weight
            else:
                raw = raw + weight[seeds, inputs[:, :, GRAPH.positions[child][0]]]
        active[name] = raw if name == GRAPH.top else torch.relu(raw)
    return active[GRAPH.top]


def losses(parameters: Mapping[str, Tensor], inputs: Tensor, labels: Tensor) -> Tensor:
    """seeds × inputs."""
    return 0.5 * (answers(parameters, inputs) - CLASSES[labels]).square().sum(2)


def stepped(parameters: Parameters, inputs: Tensor, labels: Tensor, rate: float) -> Parameters:
    """A step of SGD for every seed on its own batch."""
    own = {name: value.detach().requires_grad_() for name, value in parameters.items()}
    loss = losses(own, inputs, labels).mean(1).sum()
    slopes = torch.autograd.grad(loss, list(own.values()))
    return {
        name: value.detach() - rate * slope for (name, value), slope in zip(own.items(), slopes, strict=True)
    }


def equal(batch: int) -> dict[str, Any]:
    """SGD by autograd on drawn samples, beside the matrix dynamics that sees P̃ of the same batches."""
    teacher, labels = telling(), summing().labels
    generator = torch.Generator().manual_seed(batch)
    student = start_of(0)
    goal = torch.zeros(len(labels), 2, dtype=torch.float64).index_copy_(0, teacher.labels, CLASSES[labels])
    told = Student(GRAPH, student.weights, goal, student.biases)
    parameters, largest = stacked([student]), 0.0
    for _ in range(int(EQUAL["steps"])):
        chosen = torch.randint(len(labels), (batch,), generator=generator)
        rows = teacher.inputs[chosen].long().unsqueeze(0)
        parameters = stepped(parameters, rows, labels[chosen].unsqueeze(0), EQUAL["rate"])
        p = torch.bincount(chosen, minlength=len(labels)).double() / batch
        told = told.stepped(reformulate(teacher.weighted(p).model, told).step, EQUAL["rate"])
        beside = named(told.parameters())
        largest = max(largest, *(float((parameters[name][0] - beside[name]).abs().max()) for name in beside))
    every = propagate(summing(), Student(GRAPH, told.weights, student.targets, told.biases))
    return {"batch": batch, "largest": largest, "loss": every.loss}


def gap(batch: int) -> dict[str, Any]:
    """How far a step of the matrix dynamics with the batch's P̃ is from SGD's, where events sum up."""
    teacher = summing()
    generator = torch.Generator().manual_seed(batch)
    found: dict[str, list[float]] = {"start": [], "trained": []}
    for name, students in {"start": starts(10), "trained": trained(10)}.items():
        for draw in range(GAP_DRAWS):
            student = students[draw % len(students)]
            chosen = torch.randint(len(teacher.p), (batch,), generator=generator)
            p = torch.bincount(chosen, minlength=len(teacher.p)).double() / batch
            seen = teacher.weighted(p)
            brute, told = (
                propagate(seen, student).step.tensors(),
                reformulate(seen.model, student).step.tensors(),
            )
            off = sum(float((a - b).square().sum()) for a, b in zip(brute, told, strict=True))
            size = sum(float(a.square().sum()) for a in brute)
            found[name].append((off / size) ** 0.5)
    return {"batch": batch, **{name: summary(values) for name, values in found.items()}}


def starts(count: int) -> list[Student]:
    return [start_of(seed) for seed in range(count)]


def trained(count: int) -> list[Student]:
    """After some descent on all inputs: about half way."""
    teacher, found = summing(), []
    for student in starts(count):
        for _ in range(200):
            student = student.stepped(propagate(teacher, student).step, 0.1)
        found.append(student)
    return found


def jacobian(parameters: Parameters, inputs: Tensor) -> Tensor:
    """Of every answer by every parameter: seeds × inputs × classes × parameters."""

    def answer(own: Mapping[str, Tensor], row: Tensor) -> Tensor:
        single = {name: value.unsqueeze(0) for name, value in own.items()}
        return answers(single, row.reshape(1, 1, -1)).reshape(-1)

    each = torch.func.vmap(torch.func.vmap(torch.func.jacrev(answer), (None, 0)), (0, 0))
    return torch.cat([slope.flatten(3) for slope in each(parameters, inputs).values()], 3)


def largest_curvature(parameters: Parameters, inputs: Tensor, labels: Tensor, rounds: int = 60) -> Tensor:
    """The largest eigenvalue of the Hessian of each seed's training loss, by power iteration."""
    generator = torch.Generator().manual_seed(0)
    own = {name: value.detach().requires_grad_() for name, value in parameters.items()}
    loss = losses(own, inputs, labels).mean(1).sum()
    slopes = torch.autograd.grad(loss, list(own.values()), create_graph=True)
    v = [torch.randn(slope.shape, generator=generator, dtype=torch.float64) for slope in slopes]
    for _ in range(rounds):
        size = sum((part.square().flatten(1).sum(1) for part in v), torch.zeros(())).sqrt()
        v = [part / size.reshape(-1, *[1] * (part.ndim - 1)) for part in v]
        turned = torch.autograd.grad(slopes, list(own.values()), v, retain_graph=True)
        found = sum(((a * b).flatten(1).sum(1) for a, b in zip(v, turned, strict=True)), torch.zeros(()))
        v = list(turned)
    return found


def batches(batch: int) -> dict[str, Any]:
    """All seeds at once, equally long for every batch size; looked at when it is time."""
    teacher = summing()
    inputs, labels = teacher.inputs.long(), teacher.labels
    chosen = torch.stack(
        [
            torch.randperm(len(labels), generator=torch.Generator().manual_seed(500 + seed))[:TRAINING]
            for seed in range(SEEDS)
        ]
    )
    rows, own = inputs[chosen], labels[chosen]
    tests = inputs.expand(SEEDS, -1, -1), labels.expand(SEEDS, -1)
    parameters = stacked(starts(SEEDS))
    seeds = torch.arange(SEEDS).unsqueeze(1)
    generator = torch.Generator().manual_seed(batch)
    epoch = TRAINING // batch  # steps in one
    ends = {"steps": STEPS, "epochs": EPOCHS * epoch}
    found: dict[str, dict[str, list[float | None]]] = {"loss": {}}
    crossed = torch.full((SEEDS,), -1)
    for step in range(LONGEST + 1):
        if step % epoch == 0:
            order = torch.rand(SEEDS, TRAINING, generator=generator).argsort(1)
        if step % EVERY == 0:
            with torch.no_grad():
                new = (losses(parameters, rows, own).mean(1) <= LOSS) & (crossed < 0)
            crossed[new] = step
            if bool(new.any()):
                for key, values in state_of(parameters, rows, own, *tests).items():
                    kept = found["loss"].setdefault(key, [None] * SEEDS)
                    for seed in new.nonzero().squeeze(1).tolist():
                        kept[seed] = values[seed]
        for name, end in ends.items():
            if step == end:
                found[name] = {
                    key: [*values] for key, values in state_of(parameters, rows, own, *tests).items()
                }
        if step >= max(ends.values()) and bool((crossed >= 0).all()):
            break
        part = order[:, (step % epoch) * batch : (step % epoch + 1) * batch]
        parameters = stepped(parameters, rows[seeds, part], own[seeds, part], RATE)
    return {"batch": batch, "crossed": crossed.tolist(), **found}


def state_of(
    parameters: Parameters, rows: Tensor, own: Tensor, every: Tensor, right: Tensor
) -> dict[str, list[float]]:
    """Of each seed: losses, accuracy on every input, flatness and noise on the training set."""
    with torch.no_grad():
        answer = answers(parameters, every)
        slopes = jacobian(parameters, rows)
        residual = answers(parameters, rows) - CLASSES[own]
        pulls = (residual.unsqueeze(3) * slopes).sum(2)  # ∇ℓ_i
    return {
        "train": (0.5 * residual.square().sum(2).mean(1)).tolist(),
        "test": (0.5 * (answer - CLASSES[right]).square().sum(2).mean(1)).tolist(),
        "accuracy": (answer.argmax(2) == right).double().mean(1).tolist(),
        # an answer is linear in any one weight, so that its second derivatives add nothing to the trace
        "trace": slopes.square().sum((2, 3)).mean(1).tolist(),
        "largest": largest_curvature(parameters, rows, own).tolist(),
        "noise": (pulls - pulls.mean(1, keepdim=True)).square().sum(2).mean(1).tolist(),
    }


def measure_all(out: Path = RESULTS) -> None:
    entries: dict[str, Any] = {}
    for batch in EQUAL["batches"]:
        entries[f"equal/{batch}"] = lambda batch=batch: equal(batch)
    for batch in GAP_BATCHES:
        entries[f"gap/{batch}"] = lambda batch=batch: gap(batch)
    for batch in reversed(BATCHES):
        entries[f"batch/{batch}"] = lambda batch=batch: batches(batch)
    measure(out / "sgd.json", SETTINGS, entries)


if __name__ == "__main__":
    measure_all(folder_asked_for(__doc__, RESULTS))
