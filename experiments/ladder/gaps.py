"""How far is backpropagation on events from that on inputs, by what the teacher's regions tell?

    python -m experiments.ladder.gaps [--out FOLDER]      (half a minute)

Trees of pairs and of threes, overlapping windows of three, correlated inputs; students with 4 nodes a region.
Means over the edges or regions, medians over SEEDS students; and the worst of all.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from statistics import median

import torch
from torch import Tensor

from obverse.ladder._compare import compare
from obverse.ladder._regions import RegionGraph, tree, windows
from obverse.ladder._student import Norm, random_student
from obverse.ladder._teacher import enumerate_teacher

from .._lab.arguments import folder_asked_for
from .._lab.result_files import measure

RESULTS = Path(__file__).parent / "results"
SEEDS = 20
NODES = 4
GRAPHS: dict[str, RegionGraph] = {"pairs": tree(8), "threes": tree(9, 3), "windows": windows(6, 3, 1)}
AGREE = 0.8
SETTINGS = {
    "seeds": SEEDS,
    "nodes": NODES,
    "pairs": [8, 2],
    "threes": [9, 3],
    "windows": [6, 3, 1],
    "agree": AGREE,
}
ROWS: dict[str, tuple[str, str, Norm | None, bool]] = {
    "pairs, full": ("pairs", "full", None, False),
    "pairs, full, batch norm before ReLU": ("pairs", "full", "before", False),
    "pairs, full, batch norm after ReLU": ("pairs", "full", "after", False),
    "windows, full, correlated inputs": ("windows", "full", None, True),
    "pairs, and": ("pairs", "and", None, False),
    "pairs, xor": ("pairs", "xor", None, False),
    "pairs, xor, correlated inputs": ("pairs", "xor", None, True),
    "threes, majority": ("threes", "majority", None, False),
    "windows, majority": ("windows", "majority", None, False),
    "windows, majority, correlated inputs": ("windows", "majority", None, True),
    "windows, majority, batch norm before ReLU": ("windows", "majority", "before", False),
}


def copied(leaves: int, agree: float) -> Tensor:
    """Even bits, each of which is equal to the one half the way round with probability `agree`."""
    inputs = torch.cartesian_prod(*[torch.arange(2)] * leaves)
    half = leaves // 2
    same = (inputs[:, :half] == inputs[:, half:]).double()
    return (same * agree + (1 - same) * (1 - agree)).prod(1) / 2**half


def gaps(graph: RegionGraph, summary: str, norm: Norm | None, correlated: bool) -> dict[str, float]:
    p = copied(graph.inputs, AGREE) if correlated else None
    teacher = enumerate_teacher(graph, summary, p=p)
    targets = None
    if summary == "full":  # the label is the parity of the input: something to learn
        labels = teacher.labels.new_zeros(teacher.sizes[graph.top])
        labels[teacher.labels] = teacher.inputs.sum(1).long() % 2
        targets = torch.eye(2, dtype=torch.float64)[labels]
    rows: dict[str, list[float]] = {}
    for seed in range(SEEDS):
        generator = torch.Generator().manual_seed(seed)
        student = random_student(teacher.model, NODES, generator=generator, norm=norm, targets=targets)
        found = compare(teacher, student)
        own = {
            "focus": [edge.focus or 0.0 for edge in found.edges.values()],
            "broadness": [edge.broadness for edge in found.edges.values()],
            "fourth": [edge.fourth.relative for edge in found.edges.values()],
            "decorrelation": [region.decorrelation.relative for region in found.regions.values()],
            "forward": [edge.forward.gap.relative for edge in found.edges.values()],
            "backward": [edge.backward.gap.relative for edge in found.edges.values()],
            "weight": [edge.weight.gap.relative for edge in found.edges.values()],
            "recursive": [edge.recursive.gap.relative for edge in found.edges.values()],
        }
        for name, values in own.items():
            rows.setdefault(name, []).append(sum(values) / len(values))
            rows.setdefault(f"{name} worst", []).append(max(values))
    return {name: max(values) if name.endswith("worst") else median(values) for name, values in rows.items()}


def measure_all(out: Path = RESULTS) -> None:
    entries = {
        name: partial(gaps, GRAPHS[graph], summary, norm, correlated)
        for name, (graph, summary, norm, correlated) in ROWS.items()
    }
    measure(out / "gaps.json", SETTINGS, entries)


if __name__ == "__main__":
    measure_all(folder_asked_for(__doc__, RESULTS))
