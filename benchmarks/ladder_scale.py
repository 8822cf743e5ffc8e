"""Brute force beside the reformulation: is its cost linear in inputs × edges, and what do 2²⁰ inputs take?

Full-information teachers, a student with 3 nodes a region and batch norm, everything that `compare` measures.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from math import log
from pathlib import Path
from statistics import median

import torch
from measure import Outcome, alternate, publish

from obverse.ladder._compare import compare as compare_ladder
from obverse.ladder._regions import RegionGraph, tree, windows
from obverse.ladder._student import Norm, random_student
from obverse.ladder._teacher import enumerate_teacher

# More inputs on trees, and more edges over the same inputs: windows that overlap.
GRAPHS = [
    *((tree(leaves), leaves) for leaves in (14, 15, 16, 17, 18, 19)),
    *((windows(16, 4, stride), 16) for stride in (1, 2, 4)),
]
SIDES = {f"{2**leaves:,} inputs, {len(graph.edges)} edges": (graph, leaves) for graph, leaves in GRAPHS}
MOST_SECONDS, MOST_BYTES = 60.0, 6 * 10**9
FRESH = """
import json, sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from ladder_scale import ladder
from obverse.ladder._regions import tree
start = time.perf_counter()
found = ladder(tree(20), 20, sys.argv[2])()
seconds = time.perf_counter() - start
peak = 1024 * int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
print(json.dumps([seconds, peak, found]))
"""


def ladder(graph: RegionGraph, leaves: int, norm: Norm = "before") -> Callable[[], float]:
    """Everything on these regions, from the teacher on; returns the largest gap of an entry of ΔW."""

    def run() -> float:
        teacher = enumerate_teacher(graph)
        generator = torch.Generator().manual_seed(0)
        labels = torch.randint(2, (2**leaves,), generator=generator)
        targets = torch.eye(2, dtype=torch.float64)[labels]
        student = random_student(teacher.model, 3, generator=generator, targets=targets, norm=norm)
        return max(edge.weight.gap.largest for edge in compare_ladder(teacher, student).edges.values())

    return run


def linear_ratio(repetitions: int) -> Outcome:
    """The exponent of the time in inputs × edges, by least squares over all sizes; 1 is linear."""
    work = {name: 2**leaves * len(graph.edges) for name, (graph, leaves) in SIDES.items()}
    taken = alternate({name: ladder(*side) for name, side in SIDES.items()}, repetitions, warm_up=1)
    seconds = {name: median(values) for name, values in taken.items()}
    x, y = [log(work[name]) for name in SIDES], [log(seconds[name]) for name in SIDES]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    spread = sum((one - mean_x) ** 2 for one in x)
    slope = sum((one - mean_x) * (other - mean_y) for one, other in zip(x, y, strict=True)) / spread
    rest = [other - mean_y - slope * (one - mean_x) for one, other in zip(x, y, strict=True)]
    error = (sum(one**2 for one in rest) / (len(x) - 2) / spread) ** 0.5
    return Outcome(
        "ladder_linear",
        "exponent of the time in inputs × edges (spread: ± 2 standard errors of the fit)",
        slope,
        1.1,
        (slope - 2 * error, slope + 2 * error),
        details={
            "repetitions": repetitions,
            "median_seconds": seconds,
            "nanoseconds_an_input_and_edge": {name: 1e9 * seconds[name] / work[name] for name in SIDES},
        },
    )


def whole_ratio(repetitions: int) -> Outcome:
    """2²⁰ inputs, 20 leaves, in a fresh process: the larger of seconds ÷ 60 and peak memory ÷ 6 GB."""
    found = {}
    for norm in ("before", "after"):
        command = [sys.executable, "-c", FRESH, str(Path(__file__).parent), norm]
        run = subprocess.run(command, check=True, capture_output=True, text=True)
        seconds, peak, largest = json.loads(run.stdout)
        found[f"batch norm {norm}"] = {
            "seconds": seconds,
            "peak_gigabytes": peak / 1e9,
            "largest_gap": largest,
        }
    ratio = max(
        max(one["seconds"] / MOST_SECONDS, one["peak_gigabytes"] * 1e9 / MOST_BYTES) for one in found.values()
    )
    return Outcome(
        "ladder_2_20",
        "2^20 inputs: seconds ÷ 60 or peak memory ÷ 6 GB, the larger",
        ratio,
        1.0,
        details=found,
    )


if __name__ == "__main__":
    publish(linear_ratio, repetitions=5)
    publish(whole_ratio, repetitions=2)
