"""Seconds of `obverse audit --quick` on nets below 30 million parameters, alone and beside other work."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from statistics import median
from time import perf_counter

from decompose import Shape, minilm, resnet50, trained
from measure import Outcome, publish
from safetensors.torch import save_file

SECONDS = 20.0  # alone
TIMES = 2.0  # beside one other busy process
SHARE = 0.04  # of the directions carry signal

# What else the machine does: one thread, or as many as there are cores.
BUSY = {
    "one busy thread": "while True: pass",
    "a process of torch on all cores": "import torch\nA = torch.randn(2000, 2000)\nwhile True: A @ A",
}
NETS: dict[str, Callable[[], Sequence[Shape]]] = {
    "ResNet-50": resnet50,
    "MiniLM": lambda: (*minilm(), (30522, 384)),  # its vocabulary too
}


def seconds_of(path: Path) -> float:
    """Of a fresh process, its start included."""
    environment = {**os.environ, "COLUMNS": "200"}
    begin = perf_counter()
    command = [sys.executable, "-m", "obverse", "audit", str(path), "--quick", "--out", str(path.parent)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    return perf_counter() - begin


@contextlib.contextmanager
def beside(program: str) -> Iterator[None]:
    other = subprocess.Popen([sys.executable, "-c", program])
    try:
        yield
    finally:
        other.kill()
        other.wait()


@cache
def measured(repetitions: int) -> dict[str, dict[str, list[float]]]:
    """Of each net, alone and beside each kind of other work, in turn."""
    found: dict[str, dict[str, list[float]]] = {}
    for net, shapes in NETS.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "net.safetensors"
            save_file(
                {f"layer{at}.weight": trained(shape, SHARE, at) for at, shape in enumerate(shapes())}, path
            )
            times = found[net] = {side: [] for side in ("alone", *BUSY)}
            for _ in range(repetitions):
                times["alone"].append(seconds_of(path))
                for side, program in BUSY.items():
                    with beside(program):
                        times[side].append(seconds_of(path))
    return found


def alone(repetitions: int) -> Outcome:
    """Seconds of the slowest net ÷ those allowed."""
    times = {net: median(sides["alone"]) for net, sides in measured(repetitions).items()}
    slowest = max(times, key=times.__getitem__)
    return Outcome(
        "audit_quick",
        f"seconds of obverse audit --quick ÷ {SECONDS:g}, {slowest}",
        times[slowest] / SECONDS,
        1.0,
        details={
            "median_seconds": times,
            "parameters": {net: sum(a * b for a, b in shapes()) for net, shapes in NETS.items()},
        },
    )


def beside_another(repetitions: int) -> Outcome:
    """Beside one busy thread ÷ alone, the worst net; beside a process that uses all cores in the details."""
    times = {
        net: {side: median(values) for side, values in sides.items()}
        for net, sides in measured(repetitions).items()
    }
    ratios = {net: {side: sides[side] / sides["alone"] for side in BUSY} for net, sides in times.items()}
    worst = max(ratios, key=lambda net: ratios[net]["one busy thread"])
    return Outcome(
        "audit_quick_beside",
        f"obverse audit --quick beside one busy thread ÷ alone, {worst}",
        ratios[worst]["one busy thread"],
        TIMES,
        details={"median_seconds": times, "ratios": ratios},
    )


if __name__ == "__main__":
    for one in (alone, beside_another):
        publish(one, repetitions=3)
