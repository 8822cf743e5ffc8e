"""The paper's §5.3: a spurious event that a finite sample makes predictive.

    python -m experiments.ladder.overfitting [--out FOLDER]   (minutes)

The label is z_α, a table over many contents x_α that the student meets one by one. Beside it are single bits
x_β that have nothing to do with the label, and are easy to distinguish. In n samples each bit seems to
predict the label by ε = (P̃(1 | 1) − P̃(1 | 0)) / 2. A student descends on the sample, and is judged by every
input there is. Its answer is h_α(x_α) + Σ h_β(x_β), so that the loss by spurious events is known exactly:
½ Σ Var h_β(x_β). Writes overfitting.json: by number of samples and by number of contents.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, log, sqrt
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from obverse.ladder._regions import RegionGraph
from obverse.ladder._student import Student, random_student
from obverse.ladder._teacher import Teacher, enumerate_teacher

from .._lab.arguments import folder_asked_for
from .._lab.result_files import error, mean, measure, slope, summary
from .sgd import Parameters, stacked

RESULTS = Path(__file__).parent / "results"
BITS = 4  # spurious ones
NODES, RATE, STEPS, SEEDS = 8, 0.1, 2000, 40
AT = (0, 30, 100, 300, 1000, 2000)
SAMPLES = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
POSITIONS = 6  # of x_α: 64 contents
HARDER = (1, 2, 4, 6, 8)  # positions of x_α in the second part, which has
FEW = 64  # samples
SETTINGS = {
    "bits": BITS,
    "nodes": NODES,
    "rate": RATE,
    "steps": STEPS,
    "seeds": SEEDS,
    "at": AT,
    "positions": POSITIONS,
    "few": FEW,
}
SPURIOUS = [f"β{bit}" for bit in range(BITS)]
BELOW = {"α": "x", **{f"β{bit}": f"bit {bit}" for bit in range(BITS)}}


def graph_of(positions: int) -> RegionGraph:
    lowest: dict[str, tuple[str, ...]] = dict.fromkeys(BELOW.values(), ())
    above = {name: (child,) for name, child in BELOW.items()}
    where = {f"bit {bit}": (positions + bit,) for bit in range(BITS)}
    return RegionGraph.of({**lowest, **above, "label": tuple(BELOW)}, {"x": tuple(range(positions)), **where})


def task(positions: int, seed: int) -> tuple[Tensor, Student]:
    """The label ±1 of every content of x_α, half of them each, and a student at its start."""
    generator = torch.Generator().manual_seed(seed)
    half = torch.cat([torch.full((2 ** (positions - 1),), side, dtype=torch.float64) for side in (-1, 1)])
    labels = half[torch.randperm(len(half), generator=generator)]
    model = inputs_of(positions).model
    return labels, random_student(model, NODES, generator=generator, targets=label_of(positions, labels))


def inputs_of(positions: int) -> Teacher:
    """Every input, with events that tell all."""
    return enumerate_teacher(graph_of(positions))


def label_of(positions: int, labels: Tensor) -> Tensor:
    """Targets by event of the top region, from labels by content of x_α."""
    teacher = inputs_of(positions)
    own = labels[teacher.events["x"]].unsqueeze(1)
    return torch.zeros_like(own).index_copy_(0, teacher.labels, own)


def drawn(labels: Tensor, samples: float, generator: torch.Generator) -> Tensor:
    """The share of each input in a sample, half of it from each class; of an infinite one its probability."""
    if samples == inf:
        return torch.full((len(labels),), 1 / len(labels), dtype=torch.float64)
    counts = torch.zeros(len(labels), dtype=torch.float64)
    for side in (-1, 1):
        of_class = (labels == side).nonzero().squeeze(1)
        chosen = of_class[torch.randint(len(of_class), (int(samples) // 2,), generator=generator)]
        counts.index_add_(0, chosen, torch.ones(len(chosen), dtype=torch.float64))
    return counts / counts.sum()


def parts(parameters: Parameters) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """f and h of every region by its contents: seeds × contents × nodes, and seeds × contents."""
    active, answer = {}, {}
    for name in BELOW:
        raw = parameters[f"{name} < {BELOW[name]}"] + parameters[name].unsqueeze(1)
        active[name] = torch.relu(raw)
        answer[name] = (active[name] @ parameters[f"label < {name}"]).squeeze(2)
    return active, answer


def whole(answer: dict[str, Tensor], offset: Tensor) -> Tensor:
    """The student's answer to every input, seeds × inputs: x_α first, the last bit varying fastest."""
    total = offset + answer["α"]
    for name in SPURIOUS:
        total = (total.unsqueeze(2) + answer[name].unsqueeze(1)).flatten(1)
    return total


def descend(
    parameters: Parameters, p: Tensor, labels: Tensor
) -> Iterator[tuple[int, Parameters, Tensor, dict[str, Tensor]]]:
    """Of all seeds at once: step, parameters, answers to every input, and h by region."""
    for step in range(STEPS + 1):
        own = {name: value.detach().requires_grad_() for name, value in parameters.items()}
        _, answer = parts(own)
        answers = whole(answer, own["label"])
        loss = 0.5 * (p * (answers - labels).square()).sum()
        slopes = torch.autograd.grad(loss, list(own.values()))
        yield step, parameters, answers.detach(), {name: h.detach() for name, h in answer.items()}
        parameters = {
            name: value.detach() - RATE * slope
            for (name, value), slope in zip(own.items(), slopes, strict=True)
        }


def measured(positions: int, samples: float) -> dict[str, Any]:
    tasks = [task(positions, seed) for seed in range(SEEDS)]
    teacher = inputs_of(positions)
    labels = torch.stack([by_content[teacher.events["x"]] for by_content, _ in tasks])
    p = torch.stack(
        [drawn(own, samples, torch.Generator().manual_seed(1000 + seed)) for seed, own in enumerate(labels)]
    )
    parameters = stacked([student for _, student in tasks])
    epsilon = torch.stack([(p * labels) @ teacher.events[name].double() for name in SPURIOUS], 1)
    curve = {}
    for step, now, answers, answer in descend(parameters, p, labels):
        if step in AT:
            curve[str(step)] = {
                "train": (0.5 * p * (answers - labels).square()).sum(1).tolist(),
                "test": (0.5 * (answers - labels).square()).mean(1).tolist(),
                # what the bits add to the loss on every input, where they tell nothing
                "spurious": sum(
                    (0.5 * answer[name].var(1, correction=0) for name in SPURIOUS), torch.zeros(())
                ).tolist(),
                "accuracy": (answers * labels > 0).double().mean(1).tolist(),
            }
        if step == STEPS:
            masses = {name: now[f"label < {name}"].square().sum((1, 2)) for name in BELOW}
    seen = torch.stack([teacher.weighted(own).prior("x") > 0 for own in p])
    first = first_gradients(parameters, p * labels, epsilon)
    return {
        "contents": 2**positions,
        "samples": None if samples == inf else samples,
        "epsilon": root(epsilon.square().mean(1).tolist()),
        "gradient_true": root(first["true"].tolist()),
        "gradient_spurious": root(first["spurious"].tolist()),
        "unpredicted": float(first["unpredicted"]),
        "weights": summary((sum(masses[name] for name in SPURIOUS) / BITS / masses["α"]).tolist()),
        "covered": summary(seen.double().mean(1).tolist()),
        "curve": {
            step: {key: summary(values) for key, values in found.items()} for step, found in curve.items()
        },
        "each": curve[str(STEPS)],
    }


def first_gradients(parameters: Parameters, pull: Tensor, epsilon: Tensor) -> dict[str, Tensor]:
    """Mean squares of Δw = E[f g₀] above α and above β, for the paper's g₀ = ±1 (eqs 16, 17); `pull` is p g₀.

    "unpredicted": how far Δw_k = ε (f_k(1) − f_k(0)), which ε gives for both classes equally often, is off.
    """
    active, _ = parts(parameters)
    tables = pull.reshape(len(pull), -1, *[2] * BITS)
    true = torch.einsum("scn,sc->sn", active["α"], tables.flatten(2).sum(2))
    squares, off = [], torch.zeros(())
    for bit, name in enumerate(SPURIOUS):
        others = [axis for axis in range(1, BITS + 2) if axis != bit + 2]
        step = torch.einsum("scn,sc->sn", active[name], tables.sum(others))
        predicted = epsilon[:, bit : bit + 1] * (active[name][:, 1] - active[name][:, 0])
        off = torch.maximum(off, (step - predicted).abs().max())
        squares.append(step.square().mean(1))
    return {"true": true.square().mean(1), "spurious": torch.stack(squares).mean(0), "unpredicted": off}


def root(values: list[float]) -> dict[str, float]:
    """Root of the mean of squares, and its standard error by that of the mean."""
    centre = mean(values)
    return {"mean": sqrt(centre), "error": error(values) / (2 * sqrt(centre)) if centre else 0.0}


def exponents(entries: dict[str, Any]) -> dict[str, float]:
    """Slopes in log n from as many samples as contents on: ε says −½, and −1 for a loss, its square."""
    rows = [entries[f"samples/{samples}"] for samples in SAMPLES if samples >= 2**POSITIONS]
    across = [log(row["samples"]) for row in rows]
    found = {
        name: slope(across, [log(row[name]["mean"]) for row in rows])
        for name in ("epsilon", "gradient_spurious")
    }
    for step in AT[1:]:
        losses = [log(row["curve"][str(step)]["spurious"]["mean"]) for row in rows]
        found[f"spurious loss after {step} steps"] = slope(across, losses)
    return found


def measure_all(out: Path = RESULTS) -> None:
    entries: dict[str, Any] = {
        f"samples/{samples}": lambda n=samples: measured(POSITIONS, n) for samples in (*SAMPLES, inf)
    }
    for positions in HARDER:
        entries[f"contents/{2**positions}"] = lambda at=positions: measured(at, FEW)
    file = out / "overfitting.json"
    found = measure(file, SETTINGS, entries)
    print(exponents(found["entries"]))


if __name__ == "__main__":
    measure_all(folder_asked_for(__doc__, RESULTS))
